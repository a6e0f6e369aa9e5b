package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// DequeVariable is a collections.deque whose items are tracked.
type DequeVariable struct {
	Base
	items   []VariableTracker
	maxlen  py.Object // None or an int
	version int
}

// Kind implements VariableTracker.
func (*DequeVariable) Kind() string { return "DequeVariable" }

// Children implements Container.
func (d *DequeVariable) Children() []VariableTracker { return d.items }

// Items implements Sequence.
func (d *DequeVariable) Items(Translator) ([]VariableTracker, error) { return d.items, nil }

// Len implements Lener.
func (d *DequeVariable) Len(Translator) (int, error) { return len(d.items), nil }

// Truth implements Truther.
func (d *DequeVariable) Truth(Translator) (bool, error) { return len(d.items) > 0, nil }

// PythonType implements Typed.
func (d *DequeVariable) PythonType(tx Translator) (py.Object, error) {
	return tx.World().DequeType, nil
}

// changes implements watched. Any change of a deque ends iterations over it.
func (d *DequeVariable) changes() (size, version int, what string) {
	return d.version, d.version, "deque"
}

func (d *DequeVariable) row() *[]VariableTracker { return &d.items }
func (d *DequeVariable) changed()                { d.version++ }

func (d *DequeVariable) scratch(tx Translator, n int) (py.Object, error) {
	return tx.Scope().Call(tx.World().DequeType, tx.Scope().Tuple(positions(tx, 0, n)...), d.maxlen)
}

// newDeque implements deque(iterable, maxlen).
func newDeque(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	d := &DequeVariable{maxlen: py.None()}
	for _, kw := range kwargs {
		if kw.Name == "maxlen" && len(args) < 2 {
			args = append(append([]VariableTracker(nil), args...), kw.Value)
			if len(args) == 1 {
				args = []VariableTracker{NewTuple(nil, nil), kw.Value}
			}
			continue
		}
		return nil, unsupported(exc.CallUnsupported, "deque with %s", kw.Name)
	}
	if len(args) > 2 {
		return nil, unsupported(exc.CallUnsupported, "deque with %d arguments", len(args))
	}
	if len(args) == 2 {
		m, err := indexOf(tx, args[1])
		if err != nil {
			return nil, err
		}
		d.maxlen = m
		if _, err := d.scratch(tx, 0); err != nil {
			return nil, observed(err)
		}
	}
	if len(args) == 0 {
		return d, nil
	}
	_, err := rearrange(tx, d, dequeRearranging["extend"], "extend", args[:1])
	d.version = 0
	return d, err
}

// wrapDeque wraps a deque that existed before the frame ran and guards its type, items and maxlen.
func wrapDeque(tx Translator, obj py.Object, src guards.Source) (VariableTracker, []guards.Guard, error) {
	out, s := tx.Output(), tx.Scope()
	list, err := s.Call(tx.World().ListType, obj)
	if err != nil {
		return nil, nil, err
	}
	items := s.Items(list)
	if err := bounded(obj, len(items)); err != nil {
		return nil, nil, err
	}
	d := &DequeVariable{Base: Base{Src: src}}
	if d.maxlen, err = s.GetAttr(obj, "maxlen"); err != nil {
		return nil, nil, observed(err)
	}
	for i, it := range items {
		d.items = append(d.items, tx.Build(it, guards.NewIndexSource(src, i)))
	}
	same, err := s.Call(tx.World().maxlenIs, d.maxlen)
	if err != nil {
		return nil, nil, err
	}
	typ := out.Const(obj.Type())
	return d, []guards.Guard{guards.TypeMatch(src, typ), guards.ListLength(src, typ, len(items)),
		guards.PyCheck(src, out.Const(same), "maxlen is "+s.Repr(d.maxlen))}, nil
}

// GetAttr implements AttrGetter.
func (d *DequeVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	if name == "maxlen" {
		return NewConstant(d.maxlen, nil), nil
	}
	return methodAttr(tx, d, name)
}

// CallMethod implements MethodCaller.
func (d *DequeVariable) CallMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if len(kwargs) > 0 {
		return nil, wrongCall(tx, d, name, args, kwargs)
	}
	if m, ok := dequeRearranging[name]; ok {
		return rearrange(tx, d, m, name, args)
	}
	switch name {
	case "copy", "__copy__":
		if len(args) == 0 {
			return &DequeVariable{items: append([]VariableTracker(nil), d.items...), maxlen: d.maxlen}, nil
		}
	case "remove":
		return removeItem(tx, d, args)
	case "index", "count":
		return sequenceSearch(tx, d, d.items, name, args)
	}
	return callDunder(tx, d, name, args, kwargs)
}

// GetItem implements ItemGetter.
func (d *DequeVariable) GetItem(tx Translator, key VariableTracker) (VariableTracker, error) {
	k, err := indexOf(tx, key)
	if err != nil {
		return nil, err
	}
	real, err := d.scratch(tx, len(d.items))
	if err != nil {
		return nil, err
	}
	r, err := tx.Scope().GetItem(real, k)
	if err != nil {
		return nil, observed(err)
	}
	n, _ := py.AsInt(r)
	return d.items[n], nil
}

// SetItem implements ItemSetter.
func (d *DequeVariable) SetItem(tx Translator, key, value VariableTracker) error {
	k, err := indexOf(tx, key)
	if err != nil {
		return err
	}
	return setArrayItem(tx, d, k, value)
}

// Snapshot implements Snapshotter.
func (d *DequeVariable) Snapshot() VariableTracker {
	return &DequeVariable{items: append([]VariableTracker(nil), d.items...), maxlen: d.maxlen}
}

// Reconstruct implements Reconstructer.
func (d *DequeVariable) Reconstruct(e Emitter) error {
	e.PushNull()
	e.LoadConst(dequeType)
	if err := LoadAll(e, d.items); err != nil {
		return err
	}
	e.BuildTuple(len(d.items))
	e.LoadConst(d.maxlen)
	e.Call(2, nil)
	return nil
}

var dequeType py.Object // set when a World is made; never freed
