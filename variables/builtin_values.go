package variables

import (
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// newFunction implements a direct call of __new__: object.__new__(cls), tuple.__new__(cls, items).
func (b *BuiltinVariable) newFunction(tx Translator, args []VariableTracker,
	kwargs []Kw) (VariableTracker, bool, error) {
	if b.Fn.Kind() != py.Builtin || len(args) == 0 {
		return nil, false, nil
	}
	name, ok := py.Answered(tx.Scope().GetAttr(b.Fn, "__name__"))
	if !ok || py.GoString(name) != "__new__" {
		return nil, false, nil
	}
	base, ok := newOwner(tx, b.Fn)
	cls, ok2 := knownClass(tx, MustRealize(tx, args[0]))
	if k := cls.Kind(); !ok || !ok2 || (k != py.TypeKind && k != py.TypeSub) {
		return nil, false, nil
	}
	if base != tx.World().ObjectType && cls == base {
		return nil, false, nil
	}
	v, err := newInstance(tx, base, cls, args[1:], kwargs)
	return v, true, err
}

func valueText(text func(Translator, VariableTracker) (string, error)) func(Translator,
	[]VariableTracker) (VariableTracker, error) {
	return func(tx Translator, a []VariableTracker) (VariableTracker, error) {
		v, err := Realize(tx, a[0])
		if err != nil {
			return nil, err
		}
		if IsTensor(v) {
			return nil, nil
		}
		t, err := text(tx, v)
		return NewConstant(tx.Scope().Str(t), nil), err
	}
}

func builtinSet(tx Translator, a []VariableTracker) (VariableTracker, error) {
	if len(a) == 0 {
		return NewSet(tx, nil, false, nil)
	}
	v, err := Realize(tx, a[0])
	if err != nil {
		return nil, err
	}
	return freshSet(tx, v)
}

func builtinFrozenSet(tx Translator, a []VariableTracker) (VariableTracker, error) {
	if len(a) == 1 {
		v, err := Realize(tx, a[0])
		if err != nil {
			return nil, err
		}
		if c, ok := AsConstant(tx, v); ok && c.Kind() == py.FrozenSet {
			return v, nil
		}
		s, err := freshSet(tx, v)
		if err != nil {
			return nil, err
		}
		if len(s.members) > 0 {
			s.frozen = true
			return s, nil
		}
		// frozenset() copies the hash table of a set, but adds the items of a list or tuple one by one. To get the same
		// hash table as CPython, it is called with a copy of v if v is known.
		from := s.real
		if t, ok := knownCopy(tx, v); ok {
			from = t
		}
		r, err := tx.Scope().Call(tx.World().FrozenSetType, from)
		return NewConstant(r, nil), observed(err)
	}
	r, err := tx.Scope().Call(tx.World().FrozenSetType)
	return NewConstant(r, nil), observed(err)
}

// builtinID handles id(). The identity of a tensor or an object that was passed to the frame is guarded, so its id is a
// constant of this process. Other ids break the graph: an object that the program made does not exist yet. So do,
// before a whole graph, ids of objects other than modules: they often differ from call to call, and each would have an
// entry.
func builtinID(tx Translator, a []VariableTracker) (VariableTracker, error) {
	v, err := Realize(tx, a[0])
	if err != nil {
		return nil, err
	}
	var real py.Object
	switch x := v.(type) {
	case *TensorVariable:
		if !tx.Output().WholeGraph() {
			real = x.real()
		}
	case *ObjectVariable:
		if x.Src != nil && (!tx.Output().WholeGraph() || x.IsModule(tx)) {
			real = x.Obj
		}
	}
	if real.IsNull() || tx.World().Calls > 0 {
		return nil, unsupported(exc.CallUnsupported, "id of %s", Describe(tx, v))
	}
	id, err := tx.Scope().Call(tx.World().Builtin("id"), real)
	if err != nil {
		return nil, err
	}
	tx.Output().AddGuards(guards.IDMatch(v.Source(), tx.Output().Const(real), guards.KeepWeak))
	tx.World().OnlyHere.Local = "id(): an address"
	return NewConstant(id, nil), nil
}

func builtinHash(tx Translator, a []VariableTracker) (VariableTracker, error) {
	v, err := Realize(tx, a[0])
	if err != nil {
		return nil, err
	}
	if o, ok := v.(*ObjectVariable); ok {
		m, err := o.lookupSpecial(tx, "__hash__")
		if err != nil {
			return nil, err
		}
		if m != nil {
			r, err := Call(tx, m, nil, nil)
			if err != nil {
				return nil, err
			}
			k, ok := AsConstant(tx, MustRealize(tx, r))
			if !ok || k.Kind() != py.Int {
				return nil, unsupported(exc.CallUnsupported, "hash of %s", Describe(tx, o))
			}
			h, err := hashResult(tx, k)
			return NewConstant(h, nil), err
		}
		if d, _ := tx.Scope().TypeLookup(o.Class, "__hash__"); d.Kind() == py.NoneKind {
			return nil, typeError(tx, "unhashable type: '\x00'", o)
		}
		if o.value == nil {
			return nil, unsupported(exc.CallUnsupported, "hash of %s", Describe(tx, o))
		}
		v = o.value
		if c, ok := AsConstant(tx, v); ok && c.Kind() == py.Float { // the hash of a NaN depends on its address
			if same, ok := py.Answered(tx.Scope().Compare(opcode.CMP_EQ, c, c)); !ok || same == py.True() {
				return builtinHash(tx, []VariableTracker{v})
			}
			return nil, unsupported(exc.CallUnsupported, "hash of %s", Describe(tx, o))
		}
	}
	tx.World().Seeded = true
	if o, ok := AsConstant(tx, v); ok {
		switch o.Kind() {
		case py.Int, py.BoolKind, py.Float, py.Complex, py.Str, py.Bytes, py.Tuple, py.FrozenSet, py.NoneKind:
			h, err := hashOf(tx, o)
			return NewConstant(h, nil), err
		}
	}
	if _, ok := AsConstant(tx, v); ok {
		return nil, nil // constant folding computes the hash
	}
	if t, ok := v.(*TupleVariable); ok && plainHash(tx, t.class, tx.World().TupleType) {
		if items, ok := constants(tx, t.items); ok {
			return builtinHash(tx, []VariableTracker{NewConstant(tx.Scope().Tuple(items...), nil)})
		}
	}
	switch v.(type) {
	case *ListVariable, *DictVariable, *SetVariable, *DequeVariable, *ShadowVariable:
		return nil, typeError(tx, "unhashable type: '\x00'", v)
	}
	return nil, unsupported(exc.CallUnsupported, "hash of %s", Describe(tx, v))
}

func builtinAbs(tx Translator, a []VariableTracker) (VariableTracker, error) {
	v, err := Realize(tx, a[0])
	if err != nil {
		return nil, err
	}
	if IsTensor(v) {
		return tensorOperator(tx, "abs", false, v)
	}
	if o, ok := v.(*ObjectVariable); ok {
		m, err := o.lookupSpecial(tx, "__abs__")
		if err != nil || m != nil {
			if err != nil {
				return nil, err
			}
			return Call(tx, m, nil, nil)
		}
	}
	return nil, nil
}

func builtinDivmod(tx Translator, a []VariableTracker) (VariableTracker, error) {
	x, y := MustRealize(tx, a[0]), MustRealize(tx, a[1])
	for _, v := range []VariableTracker{x, y} {
		if t, ok := v.(*TupleVariable); ok && !t.class.IsNull() {
			looksFor(tx, t.class, "__divmod__", "__rdivmod__")
		}
	}
	return objectOperator(tx, "divmod", false, x, y)
}

// nextOfObject implements next(o[, default]).
func nextOfObject(tx Translator, o *ObjectVariable, a []VariableTracker) (VariableTracker, error) {
	m, err := o.lookupSpecial(tx, "__next__")
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, typeError(tx, "'\x00' object is not an iterator", o)
	}
	v, err := Call(tx, m, nil, nil)
	if e, ok := err.(*exc.Observed); ok && len(a) == 2 && raises(tx, e, "StopIteration") {
		return a[1], nil
	}
	return v, err
}
