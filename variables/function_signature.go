package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// This file handles calls of inspect.signature on a Python function. CPython computes the signature. Everything that
// CPython reads from the function is guarded: the code, the defaults, the annotations, and the absence of attributes
// that override them. A Signature is a constant, and its attribute `parameters` is a mappingproxy.

// signatureOf returns inspect.signature(v). v is a function, a method or a class. The signature of a method lacks the
// first parameter.
func signatureOf(tx Translator, v VariableTracker) (VariableTracker, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return nil, err
	}
	if sig, err := guardedSignature(tx, v); sig != nil || err != nil {
		return sig, err
	}
	fn, bound := v, py.False()
	if m, ok := v.(*MethodVariable); ok {
		if fn, err = Realize(tx, m.Fn); err != nil {
			return nil, err
		}
		bound = py.True()
	}
	f, ok := fn.(*FunctionVariable)
	if !ok || f.Fn.IsNull() || f.Src == nil || tx.World().Calls > 0 {
		return nil, unsupported(exc.CallUnsupported, "inspect.signature of %s", Describe(tx, v))
	}
	if err := guardSignature(tx, f); err != nil {
		return nil, err
	}
	r, err := tx.Scope().Call(tx.World().signature, f.Fn, bound)
	if err != nil {
		return nil, observed(err)
	}
	return NewConstant(r, nil), nil
}

// guardedSignature returns the signature of a class or a singledispatch function. A guard computes it again. It returns
// nil for other callables, and if the program has changed an object in this frame.
func guardedSignature(tx Translator, v VariableTracker) (VariableTracker, error) {
	var obj py.Object
	var src guards.Source
	switch x := v.(type) {
	case *ClassVariable:
		obj, src = x.Class, classSource(tx, x.Class)
	case *TorchVariable:
		if x.kind == kindDispatch && x.Src != nil {
			obj, src = x.Fn, x.Src
		}
	}
	w := tx.World()
	if obj.IsNull() || w.Calls > 0 || w.Effects > 0 {
		return nil, nil
	}
	r, err := tx.Scope().Call(w.guardedSignature, obj)
	if err != nil || r == pyNone {
		return nil, observed(err)
	}
	found, holds := tx.Scope().Items(r)[0], tx.Scope().Items(r)[1]
	tx.Output().AddGuards(guards.PyCheck(src, tx.Output().Const(holds), "has the same signature"))
	return NewConstant(found, nil), nil
}

// guardSignature guards everything that inspect.signature reads from a function.
func guardSignature(tx Translator, f *FunctionVariable) error {
	for name, field := range map[string]guards.FuncField{"__code__": guards.FuncCode,
		"__defaults__":   guards.FuncDefaults,
		"__kwdefaults__": guards.FuncKwDefaults, "__annotations__": guards.FuncAnnotations} {
		v, err := tx.Scope().GetAttr(f.Fn, name)
		if err != nil {
			return observed(err)
		}
		if name == "__annotations__" && v.Kind() == py.Dict {
			guardAnnotations(tx, v, guards.NewFunctionFieldSource(f.Src, field))
			continue
		}
		parts := []VariableTracker{MustRealize(tx, tx.Build(v, guards.NewFunctionFieldSource(f.Src, field)))}
		if d, ok := parts[0].(*DictVariable); ok {
			parts = d.values
		}
		for _, p := range parts {
			if _, known := AsConstant(tx, MustRealize(tx, p)); !known {
				return unsupported(exc.CallUnsupported, "inspect.signature of a function with these %s", name)
			}
		}
	}
	d, hasDict := tx.Scope().InstanceDict(f.Fn)
	for _, name := range []string{"__wrapped__", "__signature__", "__text_signature__"} {
		if hasDict {
			if v, ok := tx.Scope().DictGetName(d, name); ok {
				if name != "__wrapped__" || v.Type() != tx.World().FunctionType {
					return unsupported(exc.CallUnsupported, "inspect.signature of a function with %s", name)
				}
				src := guards.NewAttrSource(f.Src, name)
				tx.Output().AddGuards(guards.TypeMatch(src, tx.Output().Const(tx.World().FunctionType)))
				if err := guardSignature(tx, NewFunction(v, src)); err != nil {
					return err
				}
				continue
			}
		}
		tx.Output().AddGuards(guards.HasAttr(f.Src, name, false))
	}
	return nil
}

// guardAnnotations guards the names of annotations and the identity of each value. The entry holds strong references
// to the values that are not classes.
func guardAnnotations(tx Translator, d py.Object, src guards.Source) {
	s := tx.Scope()
	keys, values := s.DictItems(d)
	tx.Output().AddGuards(guards.DictKeys(src, tx.Output().Const(tx.World().DictType),
		tx.Output().Const(s.Tuple(keys...)), len(keys)))
	for i, v := range values {
		keep := guards.KeepStrong
		if k := v.Kind(); k == py.TypeKind || k == py.TypeSub {
			keep = guards.KeepWeak
		}
		tx.Output().AddGuards(guards.IDMatch(guards.NewDictGetItemSource(src, tx.Output().Const(keys[i])),
			tx.Output().Const(v), keep))
	}
}

// MappingProxyVariable represents a mappingproxy of a mapping that does not change.
type MappingProxyVariable struct {
	Base
	proxy py.Object
	items *DictVariable
}

// newMappingProxy returns the tracker of a constant's mappingproxy.
func newMappingProxy(tx Translator, proxy py.Object) (VariableTracker, error) {
	copied, err := tx.Scope().CallMethod(proxy, "copy")
	if err != nil {
		return nil, err
	}
	keys, values := tx.Scope().DictItems(copied)
	d := NewDict(nil)
	if t := copied.Type(); t == tx.World().OrderedDictType {
		d.class = t // views have other types then
	}
	for i, k := range keys {
		v, err := immutableResult(tx, values[i])
		if err != nil {
			return nil, err
		}
		if err := d.put(tx, NewConstant(k, nil), v); err != nil {
			return nil, err
		}
	}
	tx.Output().Const(proxy)
	return &MappingProxyVariable{proxy: proxy, items: d}, nil
}

// Kind implements VariableTracker.
func (*MappingProxyVariable) Kind() string { return "MappingProxyVariable" }

// Children implements Container.
func (m *MappingProxyVariable) Children() []VariableTracker { return []VariableTracker{m.items} }

// PythonType implements Typed.
func (m *MappingProxyVariable) PythonType(Translator) (py.Object, error) { return m.proxy.Type(), nil }

// Len implements Lener.
func (m *MappingProxyVariable) Len(tx Translator) (int, error) { return m.items.Len(tx) }

// Truth implements Truther.
func (m *MappingProxyVariable) Truth(tx Translator) (bool, error) { return m.items.Truth(tx) }

// Items implements Sequence. It returns the keys.
func (m *MappingProxyVariable) Items(tx Translator) ([]VariableTracker, error) {
	return m.items.Items(tx)
}

// GetItem implements ItemGetter.
func (m *MappingProxyVariable) GetItem(tx Translator, key VariableTracker) (VariableTracker, error) {
	return m.items.GetItem(tx, key)
}

// CallMethod implements MethodCaller for methods that only read the mapping.
func (m *MappingProxyVariable) CallMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	switch name {
	case "keys", "values", "items", "get", "__contains__", "__getitem__", "__len__", "__iter__":
		return m.items.CallMethod(tx, name, args, kwargs)
	}
	return nil, unsupported(exc.CallUnsupported, "mappingproxy.%s", name)
}

// Reconstruct implements Reconstructer.
func (m *MappingProxyVariable) Reconstruct(e Emitter) error {
	e.LoadConst(m.proxy)
	return nil
}
