package variables

import (
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// ShadowVariable is a mutable object of a C type that holds only plain data (bytearray, array.array). CPython computes
// on a copy of the object, and changes are replayed on the real object at run time. See
// python/godynamo/_translator/shadows.py.
type ShadowVariable struct {
	Base
	real   py.Object   // the copy, which each change replaces by another copy
	recipe []py.Object // a callable and the arguments that make an equal object, set by Settle
}

// shadowLimit bounds the number of items that one call may create while translating.
const shadowLimit = 1 << 20

// Kind implements VariableTracker.
func (*ShadowVariable) Kind() string { return "ShadowVariable" }

// PythonType implements Typed.
func (v *ShadowVariable) PythonType(Translator) (py.Object, error) { return v.real.Type(), nil }

// Len implements Lener.
func (v *ShadowVariable) Len(tx Translator) (int, error) { return tx.Scope().Len(v.real) }

// Truth implements Truther.
func (v *ShadowVariable) Truth(tx Translator) (bool, error) { return tx.Scope().Truth(v.real) }

// contents returns the copy. If the frame has changed a tensor in place, it refuses an object that existed before the
// frame ran: the tensor may share the object's memory (torch.frombuffer).
func (v *ShadowVariable) contents(tx Translator) (py.Object, error) {
	tx.World().Asked.Changes++
	if v.Src != nil && tx.Output().ChangesTensors() {
		return py.Object{}, unsupported(exc.AttrUnsupported, "%s, whose memory a tensor may share", Describe(tx, v))
	}
	return v.real, nil
}

// Items implements Sequence.
func (v *ShadowVariable) Items(tx Translator) ([]VariableTracker, error) {
	real, err := v.contents(tx)
	if err != nil {
		return nil, err
	}
	items, err := listOf(tx, real)
	if err != nil {
		return nil, err
	}
	if len(items) > maxUnroll {
		return nil, unsupported(exc.TooLarge, "%s of more than %d items", py.TypeName(v.real.Type()), maxUnroll)
	}
	out := make([]VariableTracker, len(items))
	for i, it := range items {
		out[i] = NewConstant(it, nil)
	}
	return out, nil
}

// isShadowType reports whether a ShadowVariable may represent instances of t.
func (w *World) isShadowType(t py.Object) bool { return dictHasType(w.shadowMethods, t) }

// wrapShadow wraps an object that existed before the frame ran and guards its type and contents.
func wrapShadow(tx Translator, obj py.Object, src guards.Source,
	ofType []guards.Guard) (VariableTracker, []guards.Guard, error) {
	s, w := tx.Scope(), tx.World()
	real, err := s.Call(w.shadowCopied, obj)
	if err != nil {
		return nil, nil, err
	}
	same, err := s.Call(w.shadowIs, real)
	if err != nil {
		return nil, nil, err
	}
	return &ShadowVariable{Base: Base{Src: src}, real: real},
		append(ofType, guards.PyCheck(src, tx.Output().Const(same), "holds "+s.Repr(real))), nil
}

// newShadow calls a shadow type and returns the tracker of the new object.
func newShadow(tx Translator, class py.Object, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	objs, _, err := shadowArguments(tx, append(append([]VariableTracker(nil), args...), KwValues(kwargs)...))
	if err != nil {
		return nil, err
	}
	for _, o := range objs {
		if n, ok := py.AsInt(o); o.Kind() == py.Int && (!ok || n > shadowLimit) {
			return nil, unsupported(exc.TooLarge, "%s of great size", py.TypeName(class))
		}
	}
	if err := tx.World().computable(tx, objs); err != nil {
		return nil, err
	}
	r, err := tx.Scope().CallKw(class, objs, KwNames(kwargs))
	if err != nil {
		namesTypes(tx, err, objs)
		return nil, observed(err)
	}
	return shadowResult(tx, r)
}

// shadowResult wraps a result that CPython computed from copies. If the result is of a shadow type, it counts as a new
// object.
func shadowResult(tx Translator, o py.Object) (VariableTracker, error) {
	if tx.World().isShadowType(o.Type()) {
		return &ShadowVariable{real: o}, nil
	}
	if k := o.Kind(); k == py.List || k == py.Tuple {
		items := tx.Scope().Items(o)
		out := make([]VariableTracker, len(items))
		for i, it := range items {
			v, err := shadowResult(tx, it)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		if k == py.List {
			return NewList(out, nil), nil
		}
		return NewTuple(out, nil), nil
	}
	return immutableResult(tx, o)
}

// shadowArguments returns the real objects of known arguments, and the trackers that the effect passes to the real
// method. It exhausts iterators, so the effect passes lists of their items.
func shadowArguments(tx Translator, args []VariableTracker) ([]py.Object, []VariableTracker, error) {
	objs := make([]py.Object, len(args))
	given := make([]VariableTracker, len(args))
	for i, a := range args {
		v, err := Realize(tx, a)
		if err != nil {
			return nil, nil, err
		}
		if o, ok := v.(*ObjectVariable); ok && o.value == nil {
			k, err := indexOf(tx, o)
			if err != nil {
				return nil, nil, err
			}
			v = NewConstant(k, nil)
		}
		o, ok := copyOf(tx, v)
		if _, iterates := v.(Iterator); !ok && iterates {
			items, err := UnpackSized(tx, v)
			if err != nil {
				return nil, nil, err
			}
			v = NewList(items, nil)
			o, ok = copyOf(tx, v)
		}
		if !ok {
			return nil, nil, unsupported(exc.CallUnsupported, "bytes or numbers from %s", Describe(tx, v))
		}
		objs[i], given[i] = o, v
	}
	return objs, given, nil
}

// CallMethod implements MethodCaller.
func (v *ShadowVariable) CallMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	s, w := tx.Scope(), tx.World()
	if name == "__iter__" && len(args)+len(kwargs) == 0 {
		return Iter(tx, v)
	}
	methods, _ := s.DictGet(w.shadowMethods, v.real.Type())
	changes, known := s.DictGetName(methods, name)
	if !known {
		return nil, wrongCall(tx, v, name, args, kwargs)
	}
	real, err := v.contents(tx)
	if err != nil {
		return nil, err
	}
	objs, given, err := shadowArguments(tx, append(append([]VariableTracker(nil), args...), KwValues(kwargs)...))
	if err != nil {
		return nil, err
	}
	kw, err := kwDict(s, kwargs, objs[len(args):])
	if err != nil {
		return nil, err
	}
	if err := w.computable(tx, objs); err != nil {
		return nil, err
	}
	r, err := s.Call(w.shadowCalled, real, s.Name(name), s.Tuple(objs[:len(args)]...), kw)
	if err != nil {
		namesTypes(tx, err, objs)
		return nil, observed(err)
	}
	if r == pyNone {
		return nil, wrongCall(tx, v, name, args, kwargs)
	}
	parts := s.Items(r)
	if changes != py.True() {
		return shadowResult(tx, parts[0])
	}
	if len(kwargs) > 0 || v.Src != nil && tx.InsideTry() { // raises if the real object's buffer is in use
		return nil, wrongCall(tx, v, name, args, kwargs)
	}
	v.real = parts[1]
	if err := methodEffect(tx, v, name, given); err != nil {
		return nil, err
	}
	if v.Src != nil {
		tx.Output().MaySeeEffect()
	}
	if parts[0] == parts[1] { // x.__iadd__(y) returns x
		return v, nil
	}
	return shadowResult(tx, parts[0])
}

// GetAttr implements AttrGetter.
func (v *ShadowVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	d, ok := tx.Scope().TypeLookup(v.real.Type(), name)
	if ok && name != "__class__" && (d.Kind() == py.GetSet || d.Kind() == py.Member) {
		r, err := tx.Scope().GetAttr(v.real, name)
		if err != nil {
			return nil, observed(err)
		}
		return immutableResult(tx, r)
	}
	return methodAttr(tx, v, name)
}

// GetItem implements ItemGetter.
func (v *ShadowVariable) GetItem(tx Translator, key VariableTracker) (VariableTracker, error) {
	k, err := indexOf(tx, key)
	if err != nil {
		return nil, err
	}
	real, err := v.contents(tx)
	if err != nil {
		return nil, err
	}
	r, err := tx.Scope().GetItem(real, k)
	if err != nil {
		return nil, observed(err)
	}
	return shadowResult(tx, r)
}

// SetItem implements ItemSetter.
func (v *ShadowVariable) SetItem(tx Translator, key, value VariableTracker) error {
	k, err := indexOf(tx, key)
	if err != nil {
		return err
	}
	name, args := "__setitem__", []VariableTracker{NewConstant(k, nil), value}
	if k.Kind() == py.Slice {
		if args[0], err = NewSliceObject(tx, k); err != nil {
			return err
		}
	}
	if value == nil {
		name, args = "__delitem__", args[:1]
	}
	_, err = v.CallMethod(tx, name, args, nil)
	return err
}

// shadowOperator computes a binary operator if an operand is a ShadowVariable. It returns false for other operands.
func shadowOperator(tx Translator, op, n opcode.BinaryOp, inplace bool, a,
	b VariableTracker) (VariableTracker, bool, error) {
	x, left := a.(*ShadowVariable)
	if _, right := b.(*ShadowVariable); !left && !right {
		return nil, false, nil
	}
	for _, v := range []VariableTracker{a, b} {
		switch v.(type) {
		case *ShadowVariable, *ConstantVariable, *TupleVariable:
		case *ListVariable, *DequeVariable, *SetVariable, *DictVariable:
			if inplace && v == a && !left { // the operator changes this object
				return nil, false, nil
			}
		default: // methods of v may take precedence
			return nil, false, nil
		}
	}
	objs, _, err := shadowArguments(tx, []VariableTracker{a, b})
	if err != nil {
		return nil, true, err
	}
	if n == opcode.NB_MULTIPLY {
		for _, o := range objs {
			if k, ok := py.AsInt(o); o.Kind() == py.Int && (!ok || k > shadowLimit) {
				return nil, true, unsupported(exc.TooLarge, "repetition")
			}
		}
	}
	if left && inplace {
		name := n.InplaceMethod()
		if _, ok := tx.Scope().TypeLookup(x.real.Type(), name); ok {
			r, err := x.CallMethod(tx, name, []VariableTracker{b}, nil)
			// The method's error and the operator's error have different texts.
			if o, failed := err.(*exc.Observed); failed && o.TypeName == "TypeError" {
				return nil, true, unsupported(exc.OperatorUnsupported, "%s %s= %s", Describe(tx, a), n.Function(),
					Describe(tx, b))
			}
			return r, true, err
		}
	}
	r, err := computeKnown(tx, "binary", int(op), objs...)
	if err != nil {
		return nil, true, observed(err)
	}
	v, err := shadowResult(tx, r)
	return v, true, err
}

// compare computes a rich comparison. It returns nil if b is not known or the type does not support the comparison.
func (v *ShadowVariable) compare(tx Translator, op opcode.CompareOp, b VariableTracker) (VariableTracker, error) {
	o, ok := AsConstant(tx, b)
	real, err := v.contents(tx)
	if s, is := b.(*ShadowVariable); is && err == nil {
		o, err = s.contents(tx)
		ok = true
	}
	if err != nil || !ok {
		return nil, err
	}
	r, err := tx.Scope().CallMethod(real, op.Method(), o)
	if err != nil {
		return nil, observed(err)
	}
	if r.Kind() == py.NotImplemented {
		return nil, nil
	}
	return NewConstant(r, nil), nil
}

// Settle implements Settler.
func (v *ShadowVariable) Settle(tx Translator) error {
	r, err := tx.Scope().Call(tx.World().shadowRecipe, v.real)
	if err != nil {
		return err
	}
	v.recipe = tx.Scope().Items(r)
	for _, o := range v.recipe {
		tx.Output().Const(o)
	}
	return nil
}

// Snapshot implements Snapshotter.
func (v *ShadowVariable) Snapshot() VariableTracker {
	return &ShadowVariable{real: v.real, recipe: v.recipe}
}

// Reconstruct implements Reconstructer.
func (v *ShadowVariable) Reconstruct(e Emitter) error {
	e.PushNull()
	for _, o := range v.recipe {
		e.LoadConst(o)
	}
	e.Call(len(v.recipe)-1, nil)
	return nil
}
