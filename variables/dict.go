package variables

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// dictKey identifies a key: constants by value as CPython compares them, other objects by identity.
type dictKey struct {
	kind byte // 's' text, 'i' integer, 'o' identity, 'v' tracker identity, 'r' type and repr
	text string
	num  int64
	id   uint64
	v    VariableTracker
}

func keyOf(tx Translator, v VariableTracker) (dictKey, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return dictKey{}, err
	}
	if o, ok := AsConstant(tx, v); ok {
		switch o.Kind() {
		case py.Str:
			return dictKey{kind: 's', text: py.GoString(o)}, nil
		case py.Int, py.BoolKind:
			if n, ok := py.AsInt(o); ok {
				return dictKey{kind: 'i', num: n}, nil
			}
		case py.Float: // 1.0 and 1 are one key
			if i, err := tx.Scope().CallMethod(o, "is_integer"); err == nil && i == py.True() {
				if n, err := tx.Scope().CallMethod(o, "__int__"); err == nil {
					if v, ok := py.AsInt(n); ok {
						return dictKey{kind: 'i', num: v}, nil
					}
				}
			}
		case py.NoneKind, py.EllipsisKind:
			return dictKey{kind: 'o', id: o.ID()}, nil
		case py.Other, py.TypeKind, py.TypeSub:
			if tx.World().IsEnum(tx.Scope(), o) || py.Is(o.Type(), py.IdentityHash) {
				return dictKey{kind: 'o', id: o.ID()}, nil
			}
		}
		return dictKey{kind: 'r', text: py.TypeName(o.Type()) + ":" + tx.Scope().Repr(o)}, nil
	}
	switch v.(type) {
	case *TensorVariable, *FunctionVariable, *ClassVariable, *BuiltinVariable, *TorchVariable, *ModuleVariable:
		return dictKey{kind: 'v', v: v}, nil // these hash by identity
	case *ObjectVariable:
		if t, err := PythonType(tx, v); err == nil && py.Is(t, py.IdentityHash) {
			return dictKey{kind: 'v', v: v}, nil
		}
	}
	return dictKey{}, unsupported(exc.SubscriptUnsupported, "dict key %s", Describe(tx, v))
}

// DictVariable is a dict, or a subclass whose storage is a plain dict's (OrderedDict, defaultdict when class is set), keys known.
type DictVariable struct {
	Base
	keys   []VariableTracker
	values []VariableTracker
	index  map[dictKey]int
	class  py.Object // zero: exact dict
	// view marks an instance's __dict__: what is stored in it would have to be seen as attributes, so it is only read.
	view bool
}

// NewDict returns an empty dict.
func NewDict(src guards.Source) *DictVariable {
	return &DictVariable{Base: Base{Src: src}, index: map[dictKey]int{}}
}

// Kind implements VariableTracker.
func (*DictVariable) Kind() string { return "ConstDictVariable" }

// Children implements Container.
func (d *DictVariable) Children() []VariableTracker {
	return append(append([]VariableTracker(nil), d.keys...), d.values...)
}

// changeable refuses changes of an instance's __dict__.
func (d *DictVariable) changeable() error {
	if d.view {
		return unsupported(exc.StoreUnsupported, "item of an instance's __dict__")
	}
	return nil
}

func (d *DictVariable) put(tx Translator, key, value VariableTracker) error {
	k, err := keyOf(tx, key)
	if err != nil {
		return err
	}
	if i, ok := d.index[k]; ok {
		d.values[i] = value
		return nil
	}
	d.index[k] = len(d.keys)
	d.keys = append(d.keys, key)
	d.values = append(d.values, value)
	return nil
}

// Lookup finds the value of a key.
func (d *DictVariable) Lookup(tx Translator, key VariableTracker) (VariableTracker, bool, error) {
	return d.get(tx, key)
}

func (d *DictVariable) get(tx Translator, key VariableTracker) (VariableTracker, bool, error) {
	k, err := keyOf(tx, key)
	if err != nil {
		return nil, false, err
	}
	i, ok := d.index[k]
	if !ok {
		return nil, false, nil
	}
	return d.values[i], true, nil
}

func (d *DictVariable) remove(tx Translator, key VariableTracker) (VariableTracker, bool, error) {
	k, err := keyOf(tx, key)
	if err != nil {
		return nil, false, err
	}
	i, ok := d.index[k]
	if !ok {
		return nil, false, nil
	}
	v := d.values[i]
	d.keys = append(append([]VariableTracker(nil), d.keys[:i]...), d.keys[i+1:]...)
	d.values = append(append([]VariableTracker(nil), d.values[:i]...), d.values[i+1:]...)
	delete(d.index, k)
	for kk, j := range d.index {
		if j > i {
			d.index[kk] = j - 1
		}
	}
	return v, true, nil
}

func (d *DictVariable) clear() {
	d.keys, d.values, d.index = nil, nil, map[dictKey]int{}
}

// Items implements Sequence: iterating a dict gives its keys.
func (d *DictVariable) Items(Translator) ([]VariableTracker, error) { return d.keys, nil }

// Len implements Lener.
func (d *DictVariable) Len(Translator) (int, error) { return len(d.keys), nil }

// Truth implements Truther.
func (d *DictVariable) Truth(Translator) (bool, error) { return len(d.keys) > 0, nil }

// PythonType implements Typed.
func (d *DictVariable) PythonType(tx Translator) (py.Object, error) {
	if !d.class.IsNull() {
		return d.class, nil
	}
	return tx.World().DictType, nil
}

// AsProxy implements Proxy.
func (d *DictVariable) AsProxy(tx Translator) (fxgraph.Arg, error) {
	k, err := proxies(tx, d.keys)
	if err != nil {
		return nil, err
	}
	v, err := proxies(tx, d.values)
	return fxgraph.Dict{Keys: k, Values: v}, err
}

// GetItem implements ItemGetter.
func (d *DictVariable) GetItem(tx Translator, key VariableTracker) (VariableTracker, error) {
	v, ok, err := d.get(tx, key)
	if err != nil {
		return nil, err
	}
	if !ok {
		if !d.class.IsNull() {
			return nil, unsupported(exc.SubscriptUnsupported, "missing key of a %s", py.TypeName(d.class))
		}
		return nil, &exc.Observed{TypeName: "KeyError", Text: Describe(tx, key)}
	}
	return v, nil
}

// SetItem implements ItemSetter.
func (d *DictVariable) SetItem(tx Translator, key, value VariableTracker) error {
	if err := d.changeable(); err != nil {
		return err
	}
	if value == nil {
		if _, ok, err := d.remove(tx, key); err != nil || !ok {
			if err == nil {
				err = &exc.Observed{TypeName: "KeyError", Text: Describe(tx, key)}
			}
			return err
		}
		return writeThrough(tx, d, []VariableTracker{key}, func(e Emitter, vs []VariableTracker) error {
			if err := loadAll(e, []VariableTracker{d, vs[0]}); err != nil {
				return err
			}
			e.DeleteSubscr()
			return nil
		})
	}
	if err := d.put(tx, key, value); err != nil {
		return err
	}
	return writeThrough(tx, d, []VariableTracker{key, value}, func(e Emitter, vs []VariableTracker) error {
		if err := loadAll(e, []VariableTracker{vs[1], d, vs[0]}); err != nil {
			return err
		}
		e.StoreSubscr()
		return nil
	})
}

// Snapshot implements Snapshotter.
func (d *DictVariable) Snapshot() VariableTracker {
	return &DictVariable{keys: append([]VariableTracker(nil), d.keys...), values: append([]VariableTracker(nil), d.values...), class: d.class}
}

// Reconstruct implements Reconstructer.
func (d *DictVariable) Reconstruct(e Emitter) error {
	if !d.class.IsNull() {
		e.PushNull()
		e.LoadConst(d.class)
	}
	for i := range d.keys {
		if err := loadAll(e, []VariableTracker{d.keys[i], d.values[i]}); err != nil {
			return err
		}
	}
	e.BuildMap(len(d.keys))
	if !d.class.IsNull() {
		e.Call(1, nil)
	}
	return nil
}

// DictViewVariable is d.keys(), d.values() or d.items() of a tracked dict: it shows the dict's later changes.
type DictViewVariable struct {
	Base
	dict *DictVariable
	what string
}

// Kind implements VariableTracker.
func (*DictViewVariable) Kind() string { return "DictViewVariable" }

// Children implements Container.
func (v *DictViewVariable) Children() []VariableTracker { return []VariableTracker{v.dict} }

// Items implements Sequence.
func (v *DictViewVariable) Items(Translator) ([]VariableTracker, error) {
	switch v.what {
	case "keys":
		return v.dict.keys, nil
	case "values":
		return v.dict.values, nil
	}
	out := make([]VariableTracker, len(v.dict.keys))
	for i := range out {
		out[i] = NewTuple([]VariableTracker{v.dict.keys[i], v.dict.values[i]}, nil)
	}
	return out, nil
}

// Len implements Lener.
func (v *DictViewVariable) Len(Translator) (int, error) { return len(v.dict.keys), nil }

// Truth implements Truther.
func (v *DictViewVariable) Truth(Translator) (bool, error) { return len(v.dict.keys) > 0, nil }

// Reconstruct implements Reconstructer.
func (v *DictViewVariable) Reconstruct(e Emitter) error {
	if err := e.Load(v.dict); err != nil {
		return err
	}
	e.LoadMethod(v.what)
	e.CallMethod(0, nil)
	return nil
}

// SetVariable is a set or frozenset whose items are known.
type SetVariable struct {
	Base
	d      *DictVariable // keys are the items, in order of insertion
	frozen bool
}

// NewSet returns a set of the items.
func NewSet(tx Translator, items []VariableTracker, frozen bool, src guards.Source) (*SetVariable, error) {
	s := &SetVariable{Base: Base{Src: src}, d: NewDict(nil), frozen: frozen}
	for _, it := range items {
		if err := s.d.put(tx, it, it); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Kind implements VariableTracker.
func (*SetVariable) Kind() string { return "SetVariable" }

// Children implements Container.
func (s *SetVariable) Children() []VariableTracker { return s.d.keys }

// Items implements Sequence. CPython's own order of iteration is not insertion order: only sets of one item or none are walked.
func (s *SetVariable) Items(tx Translator) ([]VariableTracker, error) {
	if len(s.d.keys) > 1 {
		return nil, unsupported(exc.IterUnsupported, "order of a set")
	}
	return s.d.keys, nil
}

// Len implements Lener.
func (s *SetVariable) Len(Translator) (int, error) { return len(s.d.keys), nil }

// Truth implements Truther.
func (s *SetVariable) Truth(Translator) (bool, error) { return len(s.d.keys) > 0, nil }

// PythonType implements Typed.
func (s *SetVariable) PythonType(tx Translator) (py.Object, error) {
	if s.frozen {
		return tx.World().FrozenSetType, nil
	}
	return tx.World().SetType, nil
}

// Snapshot implements Snapshotter.
func (s *SetVariable) Snapshot() VariableTracker {
	d := &DictVariable{keys: append([]VariableTracker(nil), s.d.keys...)}
	return &SetVariable{d: d, frozen: s.frozen}
}

// Reconstruct implements Reconstructer.
func (s *SetVariable) Reconstruct(e Emitter) error {
	if s.frozen {
		return unsupported(exc.Reconstruct, "frozenset of tracked values")
	}
	if err := loadAll(e, s.d.keys); err != nil {
		return err
	}
	e.BuildSet(len(s.d.keys))
	return nil
}

// writeThrough records a change to a value that exists as a real object, at its place among the operations. The
// program's own containers that nothing outside has seen need none.
func writeThrough(tx Translator, v VariableTracker, values []VariableTracker, emit func(e Emitter, vs []VariableTracker) error) error {
	if !Materialized(v) {
		return nil
	}
	v.base().mutated = true
	return tx.Output().Effect(tx, append([]VariableTracker{v}, values...), func(e Emitter) error { return emit(e, values) })
}
