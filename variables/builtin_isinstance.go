package variables

import (
	"strings"

	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// builtinIsInstance implements isinstance. If the value has a real object, CPython checks that object. Otherwise,
// CPython checks whether the value's type is a subclass of cls.
func builtinIsInstance(tx Translator, a []VariableTracker) (VariableTracker, error) {
	v, err := Realize(tx, a[0])
	if err != nil {
		return nil, err
	}
	cls, ok := knownClass(tx, MustRealize(tx, a[1]))
	if !ok {
		return nil, unsupported(exc.CallUnsupported, "isinstance with %s", Describe(tx, a[1]))
	}
	asked, pure := instanceChecks(tx, cls)
	if !pure {
		if r, err := asksMetaclass(tx, v, MustRealize(tx, a[1])); r != nil || err != nil {
			return r, err
		}
		return nil, unsupported(exc.CallUnsupported, "isinstance with a class that overrides __instancecheck__")
	}
	s := tx.Scope()
	var real py.Object
	switch x := v.(type) {
	case *TensorVariable:
		var r VariableTracker
		if r, real, err = x.instanceOf(tx, cls); r != nil || err != nil {
			return r, err
		}
	case *ConstantVariable:
		real = x.Value
		if tx.World().IsEnum(s, real) && !plainMember(tx, real, "__class__") {
			return nil, unsupported(exc.CallUnsupported, "isinstance of %s", Describe(tx, x))
		}
		tx.World().RestsOnBases(tx, real.Type())
	}
	if !real.IsNull() {
		r, err := s.IsInstance(real, cls)
		if err == nil {
			err = registered(tx, real.Type(), cls, asked, r)
		}
		return BoolConst(r), observed(err)
	}
	t, err := PythonType(tx, v)
	if err != nil {
		return nil, err
	}
	if x, ok := v.(*TensorVariable); ok {
		return x.isInstance(tx, t, cls)
	}
	if _, ok := v.(*ObjectVariable); ok && claimsClass(tx, t) {
		if asksAbstract(tx, asked) { // an abstract class reads the instance's __class__
			return nil, unsupported(exc.CallUnsupported, "isinstance of %s with an abstract class", Describe(tx, v))
		}
		if k := cls.Kind(); k != py.TypeKind && k != py.TypeSub { // a tuple, whose classes are checked in turn
			return isAnyInstance(tx, v, cls)
		}
	}
	tx.World().RestsOnBases(tx, t)
	r, err := s.IsSubclass(t, cls)
	if err != nil {
		return nil, observed(err)
	}
	if err := registered(tx, t, cls, asked, r); err != nil || r {
		return BoolConst(r), err
	}
	return saysItIs(tx, v, t, cls)
}

// asksMetaclass implements isinstance by the __instancecheck__ of a metaclass written in Python. It returns nil if cls
// has none, or is a tuple.
func asksMetaclass(tx Translator, v, cls VariableTracker) (VariableTracker, error) {
	c, ok := cls.(*ClassVariable)
	if !ok {
		return nil, nil
	}
	m, err := c.metaMethod(tx, "__instancecheck__")
	if err != nil || m == nil {
		return nil, err
	}
	t, err := PythonType(tx, v)
	if err != nil {
		return nil, err
	}
	if t == c.Class { // CPython does not call the method
		return BoolConst(true), nil
	}
	r, err := Call(tx, m, []VariableTracker{v}, nil)
	if err != nil {
		return nil, err
	}
	truth, err := Truth(tx, r)
	return BoolConst(truth), err
}

// instanceOf implements isinstance for a tensor. `known` is the result, or nil if the tensor's possible types do not
// determine it. `real` is a real tensor on which CPython can compute the result, or zero.
func (t *TensorVariable) instanceOf(tx Translator, cls py.Object) (known VariableTracker, real py.Object, err error) {
	s, w := tx.Scope(), tx.World()
	if t.unknownClass(tx) {
		if w.truth(s, w.decidesItself, cls) {
			return nil, real, t.unknownForeign("class")
		}
		among, err := t.foreignClasses(tx)
		if err != nil {
			return nil, real, err
		}
		is := w.TensorTypeIs(s, among[0], cls)
		for _, c := range among[1:] {
			if w.TensorTypeIs(s, c, cls) != is {
				return nil, real, t.unknownForeign("class")
			}
		}
		return BoolConst(is), real, nil
	}
	if is, err := t.marked(tx, cls); is || err != nil {
		return BoolConst(is), real, err
	}
	if t.Class.IsNull() || t.Class == w.ParameterType {
		real = t.Example
		if !real.IsNull() && asksForDtype(tx, cls) {
			tx.Output().NeedField(t, 2|4|8)
		}
	} else {
		real = t.Real
	}
	if among := t.classes(tx); len(among) > 1 {
		first := w.TensorTypeIs(s, among[0], cls)
		for _, c := range among[1:] {
			if w.TensorTypeIs(s, c, cls) != first {
				return nil, real, unsupported(exc.TensorSubclass, "isinstance of %s, which may be an operand",
					t.describe())
			}
		}
		return BoolConst(first), real, nil
	}
	if real.IsNull() && w.TensorTypeIs(s, w.ParameterType, cls) != w.TensorTypeIs(s, w.TensorType, cls) {
		class, err := t.exactType(tx)
		if err != nil {
			return nil, real, err
		}
		if class == w.ParameterType {
			return BoolConst(w.TensorTypeIs(s, class, cls)), real, nil
		}
	}
	return nil, real, nil
}

// marked reports whether an attribute of the tensor makes it an instance of one of the classes: nn.Parameter and
// nn.Buffer have such attributes.
func (t *TensorVariable) marked(tx Translator, cls py.Object) (bool, error) {
	s, w := tx.Scope(), tx.World()
	if w.TensorTypeIs(s, t.class(tx), cls) {
		return false, nil
	}
	names, err := s.Call(w.tensorMarks, cls)
	if err != nil {
		return false, observed(err)
	}
	for _, name := range s.Items(names) {
		if is, err := t.hasMark(tx, py.GoString(name)); is || err != nil {
			return is, err
		}
	}
	return false, nil
}

func (t *TensorVariable) hasMark(tx Translator, name string) (bool, error) {
	v, err := t.instanceAttr(tx, name)
	if v == nil || err != nil {
		return false, err
	}
	if c, ok := AsConstant(tx, MustRealize(tx, v)); !ok || c != py.True() {
		return false, unsupported(exc.CallUnsupported, "isinstance of %s, whose attribute %s is not True",
			t.describe(), name)
	}
	return true, nil
}

// isInstance implements isinstance for a tensor computed by the graph. typ is the tensor's type.
func (t *TensorVariable) isInstance(tx Translator, typ, cls py.Object) (VariableTracker, error) {
	s, w := tx.Scope(), tx.World()
	if is := w.TensorTypeIs(s, typ, cls); is || !w.truth(s, w.decidesItself, cls) {
		return BoolConst(is), nil
	}
	if !asksForDtype(tx, cls) {
		r, err := s.Call(w.tensorLikeIs, pyNone, cls)
		return BoolConst(r == py.True()), observed(err)
	}
	looks, err := t.looks(tx)
	if err != nil {
		return nil, err
	}
	r, err := s.Call(w.tensorLikeIs, looks, cls)
	if err != nil {
		return nil, observed(err)
	}
	return BoolConst(r == py.True()), nil
}

// looks returns what legacy classes such as torch.FloatTensor check of a tensor, for tensor_types.tensor_like_is.
func (t *TensorVariable) looks(tx Translator) (py.Object, error) {
	out := tx.Output()
	negative, err := out.MayBeNegative()
	if err != nil {
		return py.Object{}, err
	}
	if m, ok := out.Sizes(t); ok && !negative && !strings.Contains(tx.Scope().Repr(m.Dtype), "complex") {
		for _, field := range []string{"dtype", "device", "layout"} {
			t.Need(tx, field)
		}
		return tx.Scope().Tuple(m.Dtype, m.Device, m.Layout), nil
	}
	t.Need(tx, "stride") // and all others
	return out.Sample(t)
}

// saysItIs implements the second step of isinstance, which checks the value's __class__. The first step has found that
// the value's type is not a subclass of cls.
func saysItIs(tx Translator, v VariableTracker, t, cls py.Object) (VariableTracker, error) {
	if !claimsClass(tx, t) {
		return BoolConst(false), nil
	}
	o, ok := v.(*ObjectVariable)
	if !ok {
		return nil, unsupported(exc.CallUnsupported, "__class__ of %s", Describe(tx, v))
	}
	claimed, err := o.GetAttr(tx, "__class__")
	if e, ok := err.(*exc.Observed); ok && raises(tx, e, "AttributeError") {
		return BoolConst(false), nil
	}
	if err != nil {
		return nil, err
	}
	k, ok := AsConstant(tx, MustRealize(tx, claimed))
	if !ok || !py.IsSubtype(k.Type(), tx.World().TypeType) {
		return nil, unsupported(exc.CallUnsupported, "isinstance of an object whose __class__ is %s",
			Describe(tx, claimed))
	}
	tx.World().RestsOnBases(tx, k)
	r, err := tx.Scope().IsSubclass(k, cls)
	return BoolConst(r), observed(err)
}

// claimsClass reports whether user code computes the __class__ of instances of class t.
func claimsClass(tx Translator, t py.Object) bool {
	d, _ := tx.Scope().TypeLookup(t, "__class__")
	hook, _ := tx.Scope().TypeLookup(t, "__getattribute__")
	return !py.IsNative(t, "__getattribute__", hook) || !tx.World().IsObjectMethod(tx.Scope(), "__class__", d)
}

// isAnyInstance implements isinstance with a tuple of classes.
func isAnyInstance(tx Translator, v VariableTracker, classes py.Object) (VariableTracker, error) {
	if classes.Kind() != py.Tuple {
		return nil, unsupported(exc.CallUnsupported, "isinstance of %s with %s", Describe(tx, v),
			py.TypeName(classes.Type()))
	}
	for _, c := range tx.Scope().Items(classes) {
		r, err := builtinIsInstance(tx, []VariableTracker{v, NewConstant(c, nil)})
		if err != nil {
			return nil, err
		}
		if is, err := Truth(tx, r); err != nil || is {
			return r, err
		}
	}
	return BoolConst(false), nil
}

// knownClass returns the class or the tuple of classes with which isinstance compares.
func knownClass(tx Translator, v VariableTracker) (py.Object, bool) {
	if c, ok := v.(*ClassVariable); ok {
		return c.Class, true
	}
	return AsConstant(tx, v)
}
