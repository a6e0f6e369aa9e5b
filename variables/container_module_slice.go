package variables

import (
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// ModuleSliceVariable is a slice of an nn.ModuleList or nn.Sequential. In CPython this is a new container of the same
// submodules. While translating, it acts as the sequence of the submodules. If the slice must exist at run time,
// CPython slices the container again.
type ModuleSliceVariable struct {
	Base
	of    *ObjectVariable
	dict  *DictVariable // the container's _modules
	key   VariableTracker
	items []VariableTracker
}

// moduleSlice returns obj[key] if obj is an exact ModuleList or Sequential and key is a slice. It returns nil
// otherwise.
func moduleSlice(tx Translator, obj, key VariableTracker) (*ModuleSliceVariable, error) {
	o, ok := obj.(*ObjectVariable)
	if !ok || o.Class != tx.World().ModuleList && o.Class != tx.World().Sequential {
		return nil, nil
	}
	if _, ok := key.(*SliceVariable); !ok {
		return nil, nil
	}
	d, err := modulesOf(tx, o)
	if err != nil {
		return nil, err
	}
	all := NewTuple(append([]VariableTracker(nil), d.values...), nil)
	part, err := sequenceItem(tx, all, all, key)
	if err != nil {
		return nil, err
	}
	return &ModuleSliceVariable{of: o, dict: d, key: key, items: part.(*TupleVariable).items}, nil
}

// modulesOf returns `_modules`, a container's dict of submodules.
func modulesOf(tx Translator, o *ObjectVariable) (*DictVariable, error) {
	v, err := GetAttr(tx, o, "_modules")
	if err != nil {
		return nil, err
	}
	if v, err = Realize(tx, v); err != nil {
		return nil, err
	}
	d, ok := v.(*DictVariable)
	if !ok {
		return nil, unsupported(exc.SubscriptUnsupported, "slice of a %s", py.TypeName(o.Class))
	}
	return d, nil
}

// Kind implements VariableTracker.
func (*ModuleSliceVariable) Kind() string { return "NNModuleSliceVariable" }

// Children implements Container.
func (m *ModuleSliceVariable) Children() []VariableTracker {
	return append([]VariableTracker{m.of}, m.items...)
}

// Items implements Sequence.
func (m *ModuleSliceVariable) Items(Translator) ([]VariableTracker, error) { return m.items, nil }

// Len implements Lener.
func (m *ModuleSliceVariable) Len(Translator) (int, error) { return len(m.items), nil }

// Truth implements Truther.
func (m *ModuleSliceVariable) Truth(Translator) (bool, error) { return len(m.items) > 0, nil }

// PythonType implements Typed.
func (m *ModuleSliceVariable) PythonType(Translator) (py.Object, error) { return m.of.Class, nil }

// GetItem implements ItemGetter for an integer key.
func (m *ModuleSliceVariable) GetItem(tx Translator, key VariableTracker) (VariableTracker, error) {
	if _, ok := ConstInt(tx, key); !ok {
		return nil, unsupported(exc.SubscriptUnsupported, "slice of a slice of modules")
	}
	all := NewTuple(m.items, nil)
	return sequenceItem(tx, all, all, key)
}

// Call implements Caller as Sequential.forward does. A slice of a Sequential is a new module, so it has no hooks.
func (m *ModuleSliceVariable) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if m.of.Class != tx.World().Sequential || len(args) != 1 || len(kwargs) > 0 {
		return nil, unsupported(exc.CallUnsupported, "slice of a %s", py.TypeName(m.of.Class))
	}
	v := args[0]
	for _, it := range m.items {
		var err error
		if v, err = Call(tx, it, []VariableTracker{v}, nil); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// Reconstruct implements Reconstructer. It breaks the graph if the program has changed the container.
func (m *ModuleSliceVariable) Reconstruct(e Emitter) error {
	if len(m.of.order) > 0 || m.dict.mutated {
		return unsupported(exc.Reconstruct, "slice of modules that were changed")
	}
	if err := LoadAll(e, []VariableTracker{m.of, m.key}); err != nil {
		return err
	}
	e.Subscript()
	return nil
}
