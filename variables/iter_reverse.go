package variables

import (
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// ReverseIterator represents reversed(v) of a list, tuple, str, bytes, dict, view or deque, or of an instance with
// __len__ and __getitem__. Each step reads the current contents.
type ReverseIterator struct {
	Base
	owner         VariableTracker
	seq           Sequence // nil for an instance, whose items are read by subscript
	index         int      // index of the next item; -1 when exhausted
	size, version int
}

// builtinReversed returns reversed(v).
func builtinReversed(tx Translator, a []VariableTracker) (VariableTracker, error) {
	v, err := Realize(tx, a[0])
	if err != nil {
		return nil, err
	}
	switch x := v.(type) {
	case *ListVariable, *TupleVariable, *DictVariable, *DequeVariable, *DictViewVariable, *ShadowVariable:
		return newReverse(tx, v, v.(Sequence))
	case *RangeVariable:
		s := tx.Scope()
		r, err := s.CallMethod(x.Value, "__reversed__")
		if err != nil {
			return nil, observed(err)
		}
		parts, err := s.CallMethod(r, "__reduce__")
		if err != nil {
			return nil, observed(err)
		}
		flipped := NewRangeObject(s.Items(s.Items(parts)[1])[0], nil)
		return NewSequenceIterator(flipped, flipped, 0), nil
	case *ConstantVariable:
		switch k := x.Value.Kind(); {
		case k == py.Str, k == py.Bytes, k == py.Tuple, x.Value.Type() == tx.World().SizeType:
			items, err := Unpack(tx, v)
			if err != nil {
				return nil, err
			}
			return newReverse(tx, v, NewTuple(items, nil))
		}
	case *ObjectVariable:
		return reversedObject(tx, x)
	}
	return nil, unsupported(exc.CallUnsupported, "reversed of %s", Describe(tx, v))
}

func newReverse(tx Translator, owner VariableTracker, seq Sequence) (VariableTracker, error) {
	items, err := seq.Items(tx)
	if err != nil {
		return nil, err
	}
	it := &ReverseIterator{owner: owner, seq: seq, index: len(items) - 1}
	if c, ok := owner.(watched); ok {
		it.size, it.version, _ = c.changes()
	}
	return it, nil
}

// reversedObject returns reversed(o) of an instance. It uses __reversed__, or else __len__ and __getitem__.
func reversedObject(tx Translator, o *ObjectVariable) (VariableTracker, error) {
	m, err := o.lookupSpecial(tx, "__reversed__")
	if err != nil {
		return nil, err
	}
	if m != nil {
		return Call(tx, m, nil, nil)
	}
	if d, ok := tx.Scope().TypeLookup(o.Class, "__reversed__"); ok && d.Kind() == py.NoneKind {
		return nil, typeError(tx, "'\x00' object is not reversible", o)
	}
	if o.value != nil {
		if _, isDict := o.value.(*DictVariable); isDict && o.overrides(tx, "__iter__", "__len__") {
			return nil, unsupported(exc.CallUnsupported, "reversed of %s", Describe(tx, o))
		}
		if o.overrides(tx, "__len__", "__getitem__") {
			return nil, unsupported(exc.CallUnsupported, "reversed of %s", Describe(tx, o))
		}
		return builtinReversed(tx, []VariableTracker{o.value})
	}
	if _, ok := tx.Scope().TypeLookup(o.Class, "__getitem__"); !ok {
		return nil, typeError(tx, "'\x00' object is not reversible", o)
	}
	n, err := o.Len(tx)
	if err != nil {
		return nil, err
	}
	return &ReverseIterator{owner: o, index: n - 1}, nil
}

// Kind implements VariableTracker.
func (*ReverseIterator) Kind() string { return "ReverseIterator" }

// Children implements Container.
func (r *ReverseIterator) Children() []VariableTracker { return []VariableTracker{r.owner} }

// PythonType implements Typed.
func (r *ReverseIterator) PythonType(tx Translator) (py.Object, error) {
	reversed := tx.World().Builtin("reversed")
	if r.seq == nil {
		return reversed, nil
	}
	empty, err := emptyLike(tx, r.owner)
	if err != nil {
		return py.Object{}, err
	}
	it, err := tx.Scope().Call(reversed, empty)
	return it.Type(), observed(err)
}

// Next implements Iterator.
func (r *ReverseIterator) Next(tx Translator) (VariableTracker, bool, error) {
	if Materialized(r) {
		return nil, false, unsupported(exc.IterUnsupported, "an iterator that other code holds")
	}
	if tx.World().Calls > 0 && changeable(r.owner) {
		return nil, false, unsupported(exc.IterUnsupported, "%s, which a Python call may have changed",
			Describe(tx, r.owner))
	}
	if r.index < 0 {
		return nil, false, nil
	}
	if r.seq == nil {
		v, ok, err := step(tx, func() (VariableTracker, error) {
			return r.owner.(*ObjectVariable).GetItem(tx, IntConst(tx, r.index))
		}, "IndexError", "StopIteration")
		r.index--
		if !ok && err == nil {
			r.index = -1
		}
		return v, ok, err
	}
	if c, ok := r.owner.(watched); ok {
		if size, version, what := c.changes(); size != r.size {
			text := what + " changed size during iteration"
			if what == "deque" {
				text = "deque mutated during iteration"
			}
			r.size = -1 // CPython raises the error again at each step
			return nil, false, &exc.Observed{TypeName: "RuntimeError", Text: text}
		} else if version != r.version {
			return nil, false, unsupported(exc.IterUnsupported, "a %s whose members were replaced during iteration",
				what)
		}
	}
	items, err := r.seq.Items(tx)
	if err != nil {
		return nil, false, err
	}
	if r.index >= len(items) { // the list has become shorter
		r.index = -1
		return nil, false, nil
	}
	r.index--
	return items[r.index+1], true, nil
}

// madeBy breaks the graph for an iterator or view over the contents of an instance, if the instance's class overrides
// one of the methods `names`. CPython makes the iterator or view with these methods.
func madeBy(tx Translator, owner VariableTracker, names ...string) error {
	if v, ok := owner.(*DictViewVariable); ok {
		owner, names = v.dict, []string{v.what, "__getattribute__"}
	}
	if o := Holder(owner); o != nil && o.overrides(tx, names...) {
		return unsupported(exc.Reconstruct, "iterator over %s", Describe(tx, o))
	}
	return nil
}

// Settle implements Settler.
func (r *ReverseIterator) Settle(tx Translator) error {
	if err := madeBy(tx, r.owner, "__reversed__", "__len__", "__getitem__"); err != nil {
		return err
	}
	if c, ok := r.owner.(watched); ok {
		if size, version, what := c.changes(); size != r.size || version != r.version {
			return unsupported(exc.Reconstruct, "iterator over a %s that was changed", what)
		}
	}
	return nil
}

// Snapshot implements Snapshotter.
func (r *ReverseIterator) Snapshot() VariableTracker {
	c := *r
	c.Base = Base{}
	return &c
}

// Reconstruct implements Reconstructer with reversed(v). The new iterator is advanced by __setstate__ if it has this
// method, else step by step.
func (r *ReverseIterator) Reconstruct(e Emitter) error {
	_, stepwise := r.owner.(watched)
	if stepwise {
		e.PushNull()
		e.LoadConst(advancedFunction)
	}
	e.PushNull()
	e.LoadConst(reversedType)
	if err := e.Load(r.owner); err != nil {
		return err
	}
	e.Call(1, nil)
	if stepwise {
		n := r.size - 1 - r.index
		if r.index < 0 {
			n++ // the iterator is exhausted
		}
		e.LoadInt(n)
		e.Call(2, nil)
		return nil
	}
	e.Copy(1)
	e.LoadMethod("__setstate__")
	e.LoadInt(r.index)
	e.CallMethod(1, nil)
	e.PopTop()
	return nil
}

var reversedType py.Object // set by loadFacts; never freed

// emptyLike returns an empty container of the same type as v. An iterator of the right type can be made from it.
func emptyLike(tx Translator, v VariableTracker) (py.Object, error) {
	s, w := tx.Scope(), tx.World()
	switch x := v.(type) {
	case *ListVariable:
		return s.List(), nil
	case *TupleVariable:
		return s.Tuple(), nil
	case *RangeVariable:
		return s.Call(w.RangeType, s.Int(0))
	case *SetVariable:
		return s.Call(w.SetType)
	case *DequeVariable:
		return s.Call(w.DequeType)
	case *DictVariable:
		return s.Call(x.classOrDict(tx))
	case *DictViewVariable:
		d, err := s.Call(x.dict.classOrDict(tx))
		if err != nil {
			return d, observed(err)
		}
		return s.CallMethod(d, x.what)
	case *ConstantVariable:
		switch k := x.Value.Kind(); {
		case k == py.Str, k == py.Bytes, k == py.Tuple, k == py.FrozenSet, x.Value.Type() == w.SizeType:
			return s.Call(x.Value.Type())
		}
	}
	return py.Object{}, unsupported(exc.IterUnsupported, "type of an iterator")
}
