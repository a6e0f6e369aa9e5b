package variables

import (
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// TensorOrInt is the result of max or min of a tensor without dimensions and an int: one of the two objects, depending
// on the tensor's data. The call is an operation of the graph. A use is captured only if its result has the same type,
// dtype, device and number of dimensions for both objects: arithmetic with a tensor, and a slice of a tensor. Any other
// use breaks the graph.
type TensorOrInt struct {
	Base
	Node *fxgraph.Node
	meta *TensorMeta // of the tensor
}

// Kind implements VariableTracker.
func (*TensorOrInt) Kind() string { return "TensorOrInt" }

// asTensorOrInt returns v if it is a TensorOrInt, and nil otherwise.
func asTensorOrInt(v VariableTracker) *TensorOrInt {
	x, _ := v.(*TensorOrInt)
	return x
}

// operand returns the tracker by which an operation of the graph refers to v.
func (v *TensorOrInt) operand() VariableTracker { return NewTensor(v.Node) }

// tensorOrInt captures max or min of a tensor of ints without dimensions and an int. It returns nil for other operands,
// and if the backend does not run operations in program order.
func tensorOrInt(tx Translator, name string, items []VariableTracker) (VariableTracker, error) {
	if len(items) != 2 || tx.World().PythonOps {
		return nil, nil
	}
	operands, at := make([]VariableTracker, 2), -1
	for i, it := range items {
		v, err := Argument(tx, it)
		if err != nil {
			return nil, err
		}
		operands[i] = v
		if IsTensor(v) {
			at = i
		}
	}
	if at < 0 || !isPlainInt(operands[1-at]) {
		return nil, nil
	}
	out := tx.Output()
	if out.WholeGraph() || !out.CapturesNumbers(true) {
		return nil, nil
	}
	t, ok := operands[at].(*TensorVariable)
	if !ok || !isPlainTensor(tx, t) {
		return nil, nil
	}
	m, err := t.Sizes(tx)
	if err != nil {
		if _, unknown := err.(*exc.Unsupported); unknown {
			err = nil
		}
		return nil, err
	}
	if len(m.Shape) != 0 || numberOf(tx, m) != intNumber {
		return nil, nil
	}
	if mode, err := activeMode(tx); err != nil || mode != nil {
		return nil, err
	}
	for _, field := range []string{"dtype", "ndim", "layout", "device"} {
		t.Need(tx, field)
	}
	node, err := out.CallFunction(tx, tx.World().Builtin(name), "builtins."+name, operands, nil)
	if err != nil {
		return nil, err
	}
	return &TensorOrInt{Node: node, meta: m}, nil
}

// isPlainInt reports whether v is exactly an int.
func isPlainInt(v VariableTracker) bool {
	switch x := v.(type) {
	case *SymNodeVariable:
		return true
	case *ConstantVariable:
		return x.Value.Kind() == py.Int
	}
	return false
}

// isPlainTensor reports whether t is a torch.Tensor or Parameter, so that no operation on it calls a handler.
func isPlainTensor(tx Translator, t *TensorVariable) bool {
	return t.Class.IsNull() || t.Class == tx.World().ParameterType || t.Class == tx.World().TensorType
}

// operatorWithTensorOrInt runs a binary operator with a TensorOrInt as an operand. It returns false if there is none.
func operatorWithTensorOrInt(tx Translator, n opcode.BinaryOp, inplace bool, a,
	b VariableTracker) (VariableTracker, bool, error) {
	x, other := asTensorOrInt(a), b
	if x == nil {
		x, other = asTensorOrInt(b), a
	}
	if x == nil {
		return nil, false, nil
	}
	no := unsupported(exc.OperatorUnsupported, "%s %s %s", Describe(tx, a), n.Function(), Describe(tx, b))
	t, ok := other.(*TensorVariable)
	if !ok || inplace || !isPlainTensor(tx, t) {
		return nil, true, no
	}
	switch n {
	case opcode.NB_ADD, opcode.NB_SUBTRACT, opcode.NB_MULTIPLY, opcode.NB_TRUE_DIVIDE:
	default:
		return nil, true, no
	}
	if same, err := x.sameResult(tx, t); err != nil || !same {
		if err == nil {
			err = no
		}
		return nil, true, err
	}
	if err := withoutModes(tx, n.Function()); err != nil {
		return nil, true, err
	}
	operands := []VariableTracker{a, b}
	for i, v := range operands {
		if y := asTensorOrInt(v); y != nil {
			operands[i] = y.operand()
		}
	}
	name := n.Function()
	node, err := tx.Output().CallFunction(tx, tx.World().Operator(name), "operator."+name, operands, nil)
	if err != nil {
		return nil, true, err
	}
	return NewTensor(node), true, nil
}

// sameResult reports whether arithmetic of t and v has a result of the same dtype and device for both objects that v
// may be. The tensor takes part in type promotion as an operand without dimensions, and the int does not, unless t is a
// tensor of bools. A quotient of ints has the default dtype either way.
func (v *TensorOrInt) sameResult(tx Translator, t *TensorVariable) (bool, error) {
	m, err := t.Sizes(tx)
	if err != nil {
		return false, err
	}
	for _, field := range []string{"dtype", "ndim", "layout", "device"} {
		t.Need(tx, field)
	}
	s := tx.Scope()
	same := func(a, b py.Object) bool { return a == b || s.Repr(a) == s.Repr(b) }
	if m.Layout != v.meta.Layout || !same(m.Device, v.meta.Device) {
		return false, nil
	}
	switch numberOf(tx, m) {
	case floatNumber:
		return true, nil
	case intNumber:
		return len(m.Shape) > 0 || same(m.Dtype, v.meta.Dtype), nil
	case boolNumber:
		return s.Repr(v.meta.Dtype) == "torch.int64", nil
	}
	return false, nil
}

// sliceBounds returns a tensor's subscript in which each TensorOrInt that bounds a slice is an operand of the graph.
// It breaks the graph if the tensor may call a handler.
func (t *TensorVariable) sliceBounds(tx Translator, key VariableTracker) (VariableTracker, error) {
	found := false
	bounded := func(v VariableTracker) VariableTracker {
		x, ok := v.(*SliceVariable)
		if !ok || x.Source() != nil {
			return v
		}
		parts := x.parts
		for i, p := range parts[:2] {
			if b := asTensorOrInt(p); b != nil {
				parts[i], found = b.operand(), true
			}
		}
		return NewSlice(parts[0], parts[1], parts[2])
	}
	out := key
	switch x := key.(type) {
	case *SliceVariable:
		out = bounded(x)
	case *TupleVariable:
		if x.Source() != nil || !x.class.IsNull() {
			return key, nil
		}
		items := make([]VariableTracker, len(x.items))
		for i, it := range x.items {
			items[i] = bounded(it)
		}
		out = NewTuple(items, nil)
	}
	if !found {
		return key, nil
	}
	if !isPlainTensor(tx, t) {
		return nil, unsupported(exc.TensorSubclass, "subscript of a %s by %s", py.TypeName(t.Class), "a TensorOrInt")
	}
	return out, withoutModes(tx, "operator.getitem")
}
