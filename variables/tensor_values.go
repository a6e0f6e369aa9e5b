package variables

import (
	"math"
	"slices"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// This file captures methods that return a tensor's data as Python numbers: item, tolist, int(t), float(t) and bool(t).
// The method is an operation of the graph. Its result is known only at run time: an int is a symbol without a hint, a
// float or a bool is a ComputedVariable. If the backend compiles whole graphs and does not trace operators, only ints
// are captured.

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

// format implements format() of a tensor without dimensions: torch formats its number. It returns nil for others.
func (t *TensorVariable) format(tx Translator, spec VariableTracker) (VariableTracker, error) {
	if !t.Class.IsNull() || !isPlainTensor(tx, t) {
		return nil, nil
	}
	if on, err := tx.World().TorchFunctionModeActive(tx.Scope()); err != nil || on {
		return nil, err
	}
	m, err := t.Sizes(tx)
	if err != nil || len(m.Shape) > 0 {
		if _, unknown := err.(*exc.Unsupported); unknown {
			err = nil
		}
		return nil, err
	}
	number, ok, err := t.runTimeValue(tx, "item")
	if err != nil || !ok {
		return nil, err
	}
	return Format(tx, number, "", spec)
}

// captured lists the methods that runTimeValue may capture.
var captured = map[string]bool{"item": true, "__int__": true, "__float__": true, "__bool__": true, "tolist": true}

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
	if name != "tolist" && tx.Output().Unbacked() {
		return t.unbackedValue(tx, name, m, kind)
	}
	switch name {
	case "item":
	case "__bool__":
		if kind != notNumber {
			kind = boolNumber
		}
	case "__int__":
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

// unbackedValue does the same as runTimeValue for a compiler. Compilers have unbacked ints and floats, so a bool is an
// int that is 0 or 1. Compilers do not convert numbers either, so the tensor is converted.
func (t *TensorVariable) unbackedValue(tx Translator, name string, m *TensorMeta, kind number) (VariableTracker, bool,
	error) {
	convert, of := "", kind
	switch {
	case name == "__float__" && (kind == boolNumber || kind == intNumber) && hasDoubles(tx, m):
		convert, of = "double", floatNumber
	case kind == boolNumber && name != "__float__":
		convert, of = "long", intNumber
	case name == "item", name == "__int__" && kind == intNumber, name == "__float__" && kind == floatNumber:
	default:
		return nil, false, nil
	}
	if !captures(tx, of) {
		return nil, false, nil
	}
	t.Need(tx, "dtype")
	if convert != "" {
		node, err := tx.Output().CallMethod(tx, convert, []VariableTracker{t}, nil)
		if err != nil {
			return nil, false, err
		}
		t = NewTensor(node)
	}
	node, err := tx.Output().CallMethod(tx, "item", []VariableTracker{t}, nil)
	if err != nil {
		return nil, false, err
	}
	if kind != boolNumber || of == floatNumber {
		v, err := numberFrom(tx, node, of)
		return v, err == nil, err
	}
	flag := tx.Output().AtRunTime(node, nil, 0, 1)
	if name == "__int__" {
		return flag, true, nil
	}
	v, err := boolOf(tx, flag)
	return v, err == nil, err
}

// hasDoubles reports whether tensors on the device are known to have the dtype float64. Some devices have none.
func hasDoubles(tx Translator, m *TensorMeta) bool {
	device, ok := py.Answered(tx.Scope().GetAttr(m.Device, "type"))
	return ok && device.Kind() == py.Str && (py.GoString(device) == "cpu" || py.GoString(device) == "cuda")
}

// captures reports whether an operation that returns a number of this kind may be in the graph. A compiler has unbacked
// ints and floats, but no bools.
func captures(tx Translator, kind number) bool {
	return kind != notNumber && tx.Output().CapturesNumbers(kind != intNumber) &&
		!(kind == boolNumber && tx.Output().Unbacked())
}

// operatorInGraph adds an operator to a whole graph if an operand is a float that the graph computes. A compiler's
// graph has no division: a compiled division by zero does not raise.
func operatorInGraph(tx Translator, n opcode.BinaryOp, a, b VariableTracker, ka, kb byte) (VariableTracker, bool,
	error) {
	x, left := a.(*ComputedVariable)
	y, right := b.(*ComputedVariable)
	if !(left && x.Node != nil || right && y.Node != nil) {
		return nil, false, nil
	}
	if mixed := ka != 'f' || kb != 'f'; mixed && (tx.Output().Unbacked() || !isConstantInt(a) && !isConstantInt(b)) {
		return nil, false, nil
	}
	switch n {
	case opcode.NB_ADD, opcode.NB_SUBTRACT, opcode.NB_MULTIPLY:
	case opcode.NB_TRUE_DIVIDE:
		if tx.Output().Unbacked() {
			return nil, false, nil
		}
	default:
		return nil, false, nil
	}
	name := n.Function()
	node, err := tx.Output().CallFunction(tx, tx.World().Operator(name), "operator."+name, []VariableTracker{a, b}, nil)
	if err != nil {
		return nil, false, err
	}
	return tx.Output().NumberInGraph(node, "float"), true, nil
}

func isConstantInt(v VariableTracker) bool {
	k, ok := v.(*ConstantVariable)
	return ok && k.Value.Kind() == py.Int
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
	if tx.Output().WholeGraph() {
		return tx.Output().NumberInGraph(node, class), nil
	}
	result := NewTensor(node) // only to load the node's result
	v, err := compute(tx, tx.World().Builtin(class), nil, func(e Emitter) error { return e.Load(result) })
	if err == nil {
		v.passed = nil // it depends on data
	}
	return v, err
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

// countAtRunTime captures a method that returns the number of dimensions or elements, for a tensor whose sizes cannot
// be computed while translating, such as the values of a sparse tensor. ok is false if it cannot be captured.
func (t *TensorVariable) countAtRunTime(tx Translator, name string) (v VariableTracker, ok bool, err error) {
	switch name {
	case "dim", "ndimension", "numel", "nelement":
		return t.numberOfMethod(tx, name, result{kind: givesInt}, []VariableTracker{t}, nil)
	}
	return nil, false, nil
}

// numberOfMethod captures a method that returns an int, a float or a bool which no data or sizes determine while
// translating: `is_coalesced`, `_nnz`, `q_scale`. The operation reads it at run time. ok is false for other methods, and
// before a backend that compiles whole graphs. all holds the tensor, followed by the arguments.
func (t *TensorVariable) numberOfMethod(tx Translator, name string, kind result, all []VariableTracker,
	kwargs []Kw) (v VariableTracker, ok bool, err error) {
	w := tx.World()
	if w.FixesSizes > 0 || !t.Class.IsNull() && t.Class != w.ParameterType || t.Node.Foreign || isDunder(name) ||
		addresses[name] || !capturesResult(tx, kind) {
		return nil, false, nil
	}
	node, err := tx.Output().CallMethod(tx, name, all, kwargs)
	if err != nil {
		return nil, false, err
	}
	v, err = numberFrom(tx, node, resultNumbers[kind.kind])
	return v, err == nil, err
}

// numberOfFunction does the same as numberOfMethod for a function of torch, such as torch.equal.
func numberOfFunction(tx Translator, fn py.Object, name string, kind result, args []VariableTracker,
	kwargs []Kw) (v VariableTracker, ok bool, err error) {
	tensor := slices.ContainsFunc(args, func(a VariableTracker) bool {
		v, err := Argument(tx, a)
		return err == nil && IsTensor(v)
	})
	if !tensor || tx.World().FixesSizes > 0 || !capturesResult(tx, kind) {
		return nil, false, nil
	}
	node, err := tx.Output().CallFunction(tx, fn, name, args, kwargs)
	if err != nil {
		return nil, false, err
	}
	v, err = numberFrom(tx, node, resultNumbers[kind.kind])
	return v, err == nil, err
}

// capturesResult reports whether an operation with such a result may be in the graph. A compiler's graph takes numbers
// of data only.
func capturesResult(tx Translator, kind result) bool {
	return kind.number() && !tx.Output().Unbacked() && tx.Output().CapturesNumbers(true)
}

var resultNumbers = map[resultKind]number{givesInt: intNumber, givesFloat: floatNumber, givesBool: boolNumber}

// addresses lists the methods whose result depends on the memory that an operation has got.
var addresses = map[string]bool{"data_ptr": true}
