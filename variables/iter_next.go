package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// watched is a container whose iterators detect changes.
type watched interface {
	// changes returns the size that iterators compare, a counter of changes to the members, and the container's name
	// in the text of the RuntimeError.
	changes() (size, version int, what string)
}

// indexed is a sequence that builds each item when it is read.
type indexed interface {
	at(i int) VariableTracker
}

// SequenceIterator iterates over the known items of a sequence. If a list grows meanwhile, the iterator sees the
// new items; if a dict, set or deque changes, it raises RuntimeError.
type SequenceIterator struct {
	Base
	seq           Sequence
	owner         VariableTracker // the tracker that implements seq; Settle may replace both fields
	index         int
	size, version int
	done          bool
	looped        bool              // only a `for` statement holds it; see LoopCopy
	items         []VariableTracker // the items of a set, in CPython's order
	empty         py.Object         // an empty container for an exhausted iterator, set by Settle
}

// NewSequenceIterator returns an iterator over seq's items that starts at index.
func NewSequenceIterator(owner VariableTracker, seq Sequence, index int) *SequenceIterator {
	it := &SequenceIterator{seq: seq, owner: owner, index: index}
	if c, ok := owner.(watched); ok {
		it.size, it.version, _ = c.changes()
	}
	return it
}

// Kind implements VariableTracker.
func (*SequenceIterator) Kind() string { return "SequenceIterator" }

// Children implements Container.
func (s *SequenceIterator) Children() []VariableTracker { return []VariableTracker{s.owner} }

// Next implements Iterator.
func (s *SequenceIterator) Next(tx Translator) (VariableTracker, bool, error) {
	if Materialized(s) {
		return nil, false, unsupported(exc.IterUnsupported, "an iterator that other code holds")
	}
	if tx.World().Calls > 0 && changeable(s.owner) {
		return nil, false, unsupported(exc.IterUnsupported, "%s, which a Python call may have changed",
			Describe(tx, s.owner))
	}
	if s.done {
		return nil, false, nil
	}
	if c, ok := s.owner.(watched); ok {
		size, version, what := c.changes()
		if size != s.size {
			text := what + " changed size during iteration"
			if what == "deque" {
				text = "deque mutated during iteration"
			}
			s.size = -1 // CPython raises the error again at each step
			return nil, false, &exc.Observed{TypeName: "RuntimeError", Text: text}
		}
		if version != s.version {
			return nil, false, unsupported(exc.IterUnsupported, "a %s whose members were replaced during iteration",
				what)
		}
	}
	if v, ok := s.seq.(indexed); ok {
		if s.index >= s.size {
			s.done = true
			return nil, false, nil
		}
		s.index++
		return v.at(s.index - 1), true, nil
	}
	items := s.items
	if items == nil {
		var err error
		if items, err = s.seq.Items(tx); err != nil {
			return nil, false, err
		}
		if _, set := s.owner.(*SetVariable); set { // CPython computes the order of a set only once
			s.items = items
		}
	}
	if s.index >= len(items) {
		s.done = true
		return nil, false, nil
	}
	s.index++
	return items[s.index-1], true, nil
}

// PythonType implements Typed.
func (s *SequenceIterator) PythonType(tx Translator) (py.Object, error) {
	empty, err := emptyLike(tx, s.owner)
	if err != nil {
		return py.Object{}, err
	}
	it, err := tx.Scope().CallMethod(empty, "__iter__")
	return it.Type(), observed(err)
}

// Settle implements Settler. It checks that the iterator can be materialized at this point. If it does not iterate
// over a builtin container, it becomes an iterator over a tuple of its remaining items.
func (s *SequenceIterator) Settle(tx Translator) error {
	if err := madeBy(tx, s.owner, "__iter__"); err != nil {
		return err
	}
	if c, ok := s.owner.(watched); ok && !s.done {
		if size, version, what := c.changes(); size != s.size || version != s.version {
			return unsupported(exc.Reconstruct, "iterator over a %s that was changed", what)
		}
	}
	if s.done { // as in CPython, an exhausted iterator has released its sequence
		var err error
		s.empty, err = emptyLike(tx, s.owner)
		if err == nil {
			tx.Output().Const(s.empty)
			return nil
		}
		s.seq, s.owner, s.index, s.done = NewTuple(nil, nil), NewTuple(nil, nil), 0, false
	}
	switch s.owner.(type) {
	case *ListVariable, *TupleVariable, *RangeVariable, *DictVariable, *DictViewVariable, *SetVariable, *DequeVariable,
		*ShadowVariable, *ConstantVariable:
		return nil
	}
	items, err := s.seq.Items(tx)
	if err != nil {
		return err
	}
	rest := NewTuple(append([]VariableTracker(nil), items[min(s.index, len(items)):]...), nil)
	s.seq, s.owner, s.index = rest, rest, 0
	return nil
}

// Snapshot implements Snapshotter.
func (s *SequenceIterator) Snapshot() VariableTracker {
	return &SequenceIterator{seq: s.seq, owner: s.owner, index: s.index, done: s.done, empty: s.empty}
}

// Reconstruct implements Reconstructer with iter(seq). The new iterator is advanced by __setstate__ if it has this
// method, else step by step.
func (s *SequenceIterator) Reconstruct(e Emitter) error {
	if s.done && !s.empty.IsNull() {
		e.PushNull()
		e.LoadConst(spentFunction)
		e.LoadConst(s.empty)
		e.Call(1, nil)
		return nil
	}
	if s.stepwise() && s.index > 0 {
		e.PushNull()
		e.LoadConst(advancedFunction)
		if err := e.Load(s.owner); err != nil {
			return err
		}
		e.LoadInt(s.index)
		e.Call(2, nil)
		return nil
	}
	if err := e.Load(s.owner); err != nil {
		return err
	}
	e.GetIter()
	if s.index > 0 {
		e.Copy(1)
		e.LoadMethod("__setstate__")
		e.LoadInt(s.index)
		e.CallMethod(1, nil)
		e.PopTop()
	}
	return nil
}

// stepwise reports whether the iterator has no __setstate__ and can only be advanced by calling next.
func (s *SequenceIterator) stepwise() bool {
	c, ok := s.owner.(*ConstantVariable)
	_, watch := s.owner.(watched)
	return watch || ok && c.Value.Kind() == py.FrozenSet
}

var advancedFunction, spentFunction py.Object // set by loadFacts; never freed

// ObjectIterator represents an instance whose class has __next__, used as an iterator.
type ObjectIterator struct {
	Base
	obj   *ObjectVariable
	value VariableTracker // the value of the StopIteration that ended the iteration
}

// StopValue implements Returner.
func (i *ObjectIterator) StopValue() VariableTracker { return i.value }

// Kind implements VariableTracker.
func (*ObjectIterator) Kind() string { return "UserDefinedIterator" }

// Children implements Container.
func (i *ObjectIterator) Children() []VariableTracker { return []VariableTracker{i.obj} }

// Next implements Iterator.
func (i *ObjectIterator) Next(tx Translator) (VariableTracker, bool, error) {
	m, err := i.obj.lookupSpecial(tx, "__next__")
	if err != nil {
		return nil, false, err
	}
	if m == nil {
		return nil, false, unsupported(exc.IterUnsupported, "next of %s", Describe(tx, i.obj))
	}
	v, err := Call(tx, m, nil, nil)
	o, raised := err.(*exc.Observed)
	if !raised || !raises(tx, o, "StopIteration") {
		return v, err == nil, err
	}
	e, err := ExceptionOf(tx, o)
	if err != nil {
		return nil, false, err
	}
	i.value = NoneConst()
	if e.exc == nil {
		return nil, false, unsupported(exc.IterUnsupported, "end of %s", Describe(tx, i.obj))
	}
	if len(e.exc.args) > 0 {
		i.value = e.exc.args[0]
	}
	return nil, false, nil
}

// step runs one step of an iteration. An exception of a class named in `ends` ends the iteration and is not returned.
func step(tx Translator, run func() (VariableTracker, error), ends ...string) (VariableTracker, bool, error) {
	v, err := run()
	if o, ok := err.(*exc.Observed); ok {
		for _, name := range ends {
			if raises(tx, o, name) {
				return nil, false, nil
			}
		}
	}
	return v, err == nil, err
}

// raises reports whether o is an exception of the builtin class `name`, or of a subclass.
func raises(tx Translator, o *exc.Observed, name string) bool {
	if o.TypeName == name {
		return true
	}
	v, ok := o.Value.(*ObjectVariable)
	return ok && py.IsSubtype(v.Class, tx.World().Builtin(name))
}

// Reconstruct implements Reconstructer.
func (i *ObjectIterator) Reconstruct(e Emitter) error { return e.Load(i.obj) }

// SubscriptIterator iterates over an instance that has only __getitem__, from index 0 until IndexError.
type SubscriptIterator struct {
	Base
	obj   *ObjectVariable
	index int
	done  bool
}

// Kind implements VariableTracker.
func (*SubscriptIterator) Kind() string { return "SubscriptIterator" }

// Children implements Container.
func (i *SubscriptIterator) Children() []VariableTracker { return []VariableTracker{i.obj} }

// Next implements Iterator.
func (i *SubscriptIterator) Next(tx Translator) (VariableTracker, bool, error) {
	if Materialized(i) {
		return nil, false, unsupported(exc.IterUnsupported, "an iterator that other code holds")
	}
	if i.done {
		return nil, false, nil
	}
	v, ok, err := step(tx, func() (VariableTracker, error) { return i.obj.GetItem(tx, IntConst(tx, i.index)) },
		"IndexError", "StopIteration")
	i.index++
	i.done = !ok && err == nil
	return v, ok, err
}

// Snapshot implements Snapshotter.
func (i *SubscriptIterator) Snapshot() VariableTracker {
	return &SubscriptIterator{obj: i.obj, index: i.index, done: i.done}
}

// Reconstruct implements Reconstructer.
func (i *SubscriptIterator) Reconstruct(e Emitter) error {
	if i.done {
		e.BuildTuple(0)
		e.GetIter()
		return nil
	}
	if err := e.Load(i.obj); err != nil {
		return err
	}
	e.GetIter()
	e.Copy(1)
	e.LoadMethod("__setstate__")
	e.LoadInt(i.index)
	e.CallMethod(1, nil)
	e.PopTop()
	return nil
}

// Unpack returns all items that iterating v yields.
func Unpack(tx Translator, v VariableTracker) ([]VariableTracker, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return nil, err
	}
	if s, ok := v.(Sequence); ok {
		items, err := s.Items(tx)
		return append([]VariableTracker(nil), items...), err
	}
	it, err := Iter(tx, v)
	if err != nil {
		return nil, err
	}
	out, err := nextItems(tx, it, maxUnroll)
	if err == nil && len(out) == maxUnroll {
		err = unsupported(exc.TooLarge, "iterator of more than %d items", maxUnroll)
	}
	return out, err
}

// UnpackSome returns all items of a sequence, or at most n items of another iterable. Any further items stay in the
// iterator.
func UnpackSome(tx Translator, v VariableTracker, n int) ([]VariableTracker, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return nil, err
	}
	if _, ok := v.(Sequence); ok {
		return Unpack(tx, v)
	}
	it, err := Iter(tx, v)
	if err != nil {
		return nil, err
	}
	return nextItems(tx, it, n)
}

// nextItems takes at most n items from an iterator.
func nextItems(tx Translator, it VariableTracker, n int) ([]VariableTracker, error) {
	var out []VariableTracker
	for len(out) < n {
		item, ok, err := next(tx, it)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		out = append(out, item)
	}
	return out, nil
}

// constantItems returns the items of an iterable constant.
func constantItems(tx Translator, v VariableTracker, o py.Object) ([]VariableTracker, error) {
	switch o.Kind() {
	case py.Str, py.Bytes, py.Tuple, py.FrozenSet:
	case py.TypeKind, py.TypeSub:
		if !tx.World().IsEnumClass(tx.Scope(), o) {
			return nil, notIterable(tx, v)
		}
		if names, ok := tx.Scope().TypeLookup(o, "_member_names_"); ok { // guard the order of the members
			order, err := Unpack(tx, tx.Build(names, guards.NewTypeAttrSource(classSource(tx, o), "_member_names_")))
			for i := 0; i < len(order) && err == nil; i++ {
				_, err = Realize(tx, order[i])
			}
			if err != nil {
				return nil, err
			}
		}
		if err := guardMembers(tx, o); err != nil {
			return nil, err
		}
	default:
		if tx.World().IsEnum(tx.Scope(), o) && py.Is(o.Type(), py.HasIter) { // guards the members that a Flag combines
			if !plainMember(tx, o, "__iter__", "__getitem__", "__len__", "__length_hint__") {
				return nil, unsupported(exc.IterUnsupported, "iteration over %s", Describe(tx, v))
			}
			if err := readsMember(tx, o); err != nil {
				return nil, err
			}
			break
		}
		if o.Kind() == py.TupleSub && (tx.World().IsSingletonType(o.Type()) || o.Type() == tx.World().SizeType) {
			break // sys.version_info, torch.Size()
		}
		if !py.Is(o.Type(), py.HasIter) {
			return nil, notIterable(tx, v)
		}
		return nil, unsupported(exc.IterUnsupported, "iteration over %s", Describe(tx, v))
	}
	items, err := listOf(tx, o)
	if err != nil {
		return nil, err
	}
	out := make([]VariableTracker, len(items))
	for i, it := range items {
		if isImmutable(tx, it) { // a tuple keeps its identity
			if tx.World().IsEnum(tx.Scope(), o) {
				if err := foundMember(tx, it); err != nil {
					return nil, err
				}
			}
			out[i] = NewConstant(it, nil)
		} else {
			out[i] = knownResult(tx, it)
		}
	}
	return out, nil
}

// notIterable returns the TypeError of iter(v). The text is marked as vague, since unpacking and calls with a star have
// texts of their own.
func notIterable(tx Translator, v VariableTracker) error {
	err := typeError(tx, "'\x00' object is not iterable", v)
	if o, ok := err.(*exc.Observed); ok {
		o.Value, o.Vague = nil, true // the caller makes the text
	}
	return err
}

// Iter returns iter(v).
func Iter(tx Translator, v VariableTracker) (VariableTracker, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return nil, err
	}
	if _, ok := v.(Iterator); ok {
		return v, nil
	}
	if s, ok := v.(Sequence); ok {
		items, err := s.Items(tx)
		if err != nil {
			return nil, err
		}
		if _, ok := v.(*TensorVariable); ok { // x.unbind(0) runs once, and its tuple is iterated
			t := NewTuple(items, nil)
			return NewSequenceIterator(t, t, 0), nil
		}
		return NewSequenceIterator(v, s, 0), nil
	}
	switch x := v.(type) {
	case *ArrayVariable:
		return x.iter(tx)
	case *ObjectVariable:
		return x.iter(tx)
	case *ClassVariable:
		m, err := x.metaMethod(tx, "__iter__")
		if err != nil {
			return nil, err
		}
		if m != nil {
			r, err := Call(tx, m, nil, nil)
			if err != nil {
				return nil, err
			}
			if r, err = Realize(tx, r); err != nil {
				return nil, err
			}
			if _, ok := r.(Iterator); !ok {
				return nil, unsupported(exc.IterUnsupported, "iterator %s", Describe(tx, r))
			}
			return r, nil
		}
	}
	o, ok := AsConstant(tx, v)
	if !ok {
		return nil, unsupported(exc.IterUnsupported, "iteration over %s", Describe(tx, v))
	}
	items, err := constantItems(tx, v, o)
	if err != nil {
		return nil, err
	}
	t := NewTuple(items, nil)
	switch o.Kind() {
	case py.Str, py.Bytes, py.Tuple, py.FrozenSet:
		return NewSequenceIterator(v, t, 0), nil
	}
	return NewSequenceIterator(t, t, 0), nil
}

// iter returns iter(o). It uses the class's __iter__, the iteration of the builtin type that the class extends, or
// __getitem__.
func (o *ObjectVariable) iter(tx Translator) (VariableTracker, error) {
	m, err := o.lookupSpecial(tx, "__iter__")
	if err != nil {
		return nil, err
	}
	if m != nil {
		r, err := Call(tx, m, nil, nil)
		if err != nil {
			return nil, err
		}
		if r, err = Realize(tx, r); err != nil {
			return nil, err
		}
		if _, ok := r.(Iterator); ok {
			return r, nil
		}
		if it, ok := r.(*ObjectVariable); ok {
			if py.Is(it.Class, py.HasIterNext) {
				return &ObjectIterator{obj: it}, nil
			}
			return nil, typeError(tx, "iter() returned non-iterator of type '\x00'", it)
		}
		if _, ok := AsConstant(tx, r); ok {
			return nil, typeError(tx, "iter() returned non-iterator of type '\x00'", r)
		}
		return nil, unsupported(exc.IterUnsupported, "iterator %s", Describe(tx, r))
	}
	if d, ok := tx.Scope().TypeLookup(o.Class, "__iter__"); ok && d.Kind() == py.NoneKind {
		return nil, notIterable(tx, o)
	}
	if o.value != nil {
		return onHeld(o, func() (VariableTracker, error) { return Iter(tx, o.value) })
	}
	if m, err = o.lookupSpecial(tx, "__getitem__"); err != nil {
		return nil, err
	}
	if m == nil {
		return nil, notIterable(tx, o)
	}
	return &SubscriptIterator{obj: o}, nil
}
