package variables

import (
	"math"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// This file captures methods that return a tensor's data as Python numbers: item, tolist, int(t) and float(t). The
// method is an operation of the graph. Its result is known only at run time: an int is a symbol without a hint, a float
// or a bool is a ComputedVariable. If the backend compiles whole graphs and does not trace operators, only ints are
// captured.

// maxListed is the largest number of elements for which tolist is captured.
const maxListed = 64

// number is a kind of Python number.
type number byte

const (
	notNumber number = iota
	boolNumber
	intNumber
	floatNumber
)

// numberOf returns the kind of number that a tensor's elements are in Python.
func numberOf(tx Translator, m *TensorMeta) number {
	for kind, name := range map[number]string{floatNumber: "is_floating_point", notNumber: "is_complex"} {
		if v, ok := py.Answered(tx.Scope().GetAttr(m.Dtype, name)); !ok || v == py.True() {
			return kind
		}
	}
	switch tx.Scope().Repr(m.Dtype) {
	case "torch.bool":
		return boolNumber
	case "torch.uint8", "torch.int8", "torch.int16", "torch.int32", "torch.int64":
		return intNumber
	}
	return notNumber
}

// captured lists the methods that runTimeValue may capture.
var captured = map[string]bool{"item": true, "__int__": true, "__float__": true, "tolist": true}

// runTimeValue captures a method that returns data. ok is false if it cannot be captured.
func (t *TensorVariable) runTimeValue(tx Translator, name string) (v VariableTracker, ok bool, err error) {
	w := tx.World()
	if w.FixesSizes > 0 || !t.Class.IsNull() && t.Class != w.ParameterType || !captured[name] {
		return nil, false, nil
	}
	m, err := t.Sizes(tx)
	if err != nil {
		if _, unknown := err.(*exc.Unsupported); unknown {
			err = nil
		}
		return nil, false, err
	}
	kind := numberOf(tx, m)
	switch name {
	case "item":
	case "__int__":
		if tx.Output().Unbacked() {
			if kind != intNumber {
				return nil, false, nil
			}
			name = "item" // compilers do not convert numbers
		} else if kind != notNumber {
			kind = intNumber
		}
	case "__float__":
		if tx.Output().Unbacked() {
			if kind != floatNumber {
				return nil, false, nil
			}
			name = "item"
		} else if kind != notNumber {
			kind = floatNumber
		}
	case "tolist":
		return t.listed(tx, m, kind)
	default:
		return nil, false, nil
	}
	if !captures(tx, kind) {
		return nil, false, nil
	}
	t.Need(tx, "dtype")
	node, err := tx.Output().CallMethod(tx, name, []VariableTracker{t}, nil)
	if err != nil {
		return nil, false, err
	}
	v, err = numberFrom(tx, node, kind)
	return v, err == nil, err
}

// captures reports whether an operation that returns a number of this kind may be in the graph. A compiler has unbacked
// ints and floats, but no bools.
func captures(tx Translator, kind number) bool {
	return kind != notNumber && tx.Output().CapturesNumbers(kind != intNumber) &&
		!(kind == boolNumber && tx.Output().Unbacked())
}

// operatorInGraph adds an operator to a compiler's graph if an operand is a float that the graph computes. It leaves
// out division: a compiled division by zero does not raise.
func operatorInGraph(tx Translator, n opcode.BinaryOp, a, b VariableTracker, ka, kb byte) (VariableTracker, bool,
	error) {
	x, left := a.(*ComputedVariable)
	y, right := b.(*ComputedVariable)
	if !(left && x.Node != nil || right && y.Node != nil) || ka != 'f' || kb != 'f' {
		return nil, false, nil
	}
	switch n {
	case opcode.NB_ADD, opcode.NB_SUBTRACT, opcode.NB_MULTIPLY:
	default:
		return nil, false, nil
	}
	name := n.Function()
	node, err := tx.Output().CallFunction(tx, tx.World().Operator(name), "operator."+name, []VariableTracker{a, b}, nil)
	if err != nil {
		return nil, false, err
	}
	return tx.Output().FloatInGraph(node), true, nil
}

// numberFrom returns the tracker of a number that a node computes.
func numberFrom(tx Translator, node *fxgraph.Node, kind number) (VariableTracker, error) {
	class := "float"
	if kind == floatNumber && tx.Output().Unbacked() {
		return tx.Output().FloatInGraph(node), nil
	}
	switch kind {
	case intNumber:
		return tx.Output().AtRunTime(node, nil, math.MinInt64, math.MaxInt64), nil
	case boolNumber:
		class = "bool"
	}
	result := NewTensor(node) // only to load the node's result
	return compute(tx, tx.World().Builtin(class), nil, func(e Emitter) error { return e.Load(result) })
}

// listed captures tolist of a vector.
func (t *TensorVariable) listed(tx Translator, m *TensorMeta, kind number) (VariableTracker, bool, error) {
	if len(m.Shape) != 1 || !captures(tx, kind) {
		return nil, false, nil
	}
	if n, known := tx.World().Env().Hint(m.Shape[0]); !known || n > maxListed {
		return nil, false, nil
	}
	n, err := Specialise(tx, m.Shape[0])
	if err != nil {
		return nil, false, err
	}
	t.Need(tx, "dtype")
	t.Need(tx, "shape")
	list, err := tx.Output().CallMethod(tx, "tolist", []VariableTracker{t}, nil)
	if err != nil {
		return nil, false, err
	}
	items := make([]VariableTracker, n)
	for i := range items {
		item, err := tx.Output().CallFunction(tx, tx.World().Operator("getitem"), "operator.getitem",
			[]VariableTracker{&TensorSequence{Node: list, n: int(n)}, IntConst(tx, i)}, nil)
		if err != nil {
			return nil, false, err
		}
		if items[i], err = numberFrom(tx, item, kind); err != nil {
			return nil, false, err
		}
	}
	return NewList(items, nil), true, nil
}
