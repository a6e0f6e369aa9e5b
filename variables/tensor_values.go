package variables

import (
	"math"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// This file captures methods that return a tensor's data as Python numbers: item, tolist, int(t) and float(t). The
// method is an operation of the graph. Its result is known only at run time: an int is a symbol without a hint, a float
// or a bool is a ComputedVariable. A graph that is compiled as a whole has only ints, if its backend does not trace
// operators.

// maxListed is the number of elements up to which tolist is captured.
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

// captured has the methods that runTimeValue may capture.
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
		kind = min(kind, intNumber)
		if kind != notNumber {
			kind = intNumber
		}
	case "__float__":
		if kind != notNumber {
			kind = floatNumber
		}
	case "tolist":
		return t.listed(tx, m, kind)
	default:
		return nil, false, nil
	}
	if kind == notNumber || !tx.Output().CapturesNumbers(kind != intNumber) {
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

// numberFrom returns the tracker of a number that a node computes.
func numberFrom(tx Translator, node *fxgraph.Node, kind number) (VariableTracker, error) {
	class := "float"
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
	if len(m.Shape) != 1 || kind == notNumber || !tx.Output().CapturesNumbers(kind != intNumber) {
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
