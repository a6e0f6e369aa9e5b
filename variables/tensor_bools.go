package variables

import (
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/internal/exc"
)

// Compilers have no unbacked bools. So in a compiler's graph, a bool of the data is an int that is 0 or 1, the flag. It
// replaces the bool in arithmetic. The bool itself is computed from the flag after the graph, if it is needed.

// boolOf returns the bool of an int that is 0 or 1.
func boolOf(tx Translator, flag *SymNodeVariable) (VariableTracker, error) {
	fn := tx.World().Builtin("bool")
	tx.Output().Const(fn)
	v, err := compute(tx, fn, []VariableTracker{flag}, func(e Emitter) error {
		return EmitCall(e, fn, []VariableTracker{flag})
	})
	if err != nil {
		return nil, err
	}
	tx.Output().OnlyIfLoaded(v.slot)
	v.flag = flag
	return v, nil
}

// flagOf returns the int that a bool of the data equals, or nil for other values.
func flagOf(v VariableTracker) *SymNodeVariable {
	if x, ok := v.(*ComputedVariable); ok {
		return x.flag
	}
	return nil
}

// arithmetic lists the operators whose result for a bool is that for the int that the bool equals.
var arithmetic = map[opcode.BinaryOp]bool{opcode.NB_ADD: true, opcode.NB_SUBTRACT: true, opcode.NB_MULTIPLY: true,
	opcode.NB_TRUE_DIVIDE: true, opcode.NB_FLOOR_DIVIDE: true, opcode.NB_REMAINDER: true}

// withFlags replaces bools of the data, beside a number, by ints. Other operands are returned unchanged.
func withFlags(tx Translator, n opcode.BinaryOp, a, b VariableTracker) (x, y VariableTracker) {
	p, q := flagOf(a), flagOf(b)
	if p == nil && q == nil || !arithmetic[n] || p == nil && !isComputedNumber(tx, a) ||
		q == nil && !isComputedNumber(tx, b) {
		return a, b
	}
	if p != nil {
		a = p
	}
	if q != nil {
		b = q
	}
	return a, b
}

// flagsBesideTensors has the operators on tensors whose result for a bool is that for the int that the bool equals, if
// the tensor's dtype is not bool. Subtraction of a bool raises.
var flagsBesideTensors = map[string]bool{"add": true, "mul": true, "truediv": true, "lt": true, "le": true, "eq": true,
	"ne": true, "gt": true, "ge": true, "iadd": true, "imul": true, "itruediv": true}

// flagOperands replaces a bool of the data beside a tensor by an int.
func flagOperands(tx Translator, name string, operands []VariableTracker) error {
	for i, v := range operands {
		flag := flagOf(v)
		if flag == nil {
			continue
		}
		t, beside := operands[1-i].(*TensorVariable)
		if !beside || !flagsBesideTensors[name] {
			return unsupported(exc.OperatorUnsupported, "%s of a tensor and %s", name, Describe(tx, v))
		}
		m, err := t.Sizes(tx)
		if err != nil {
			return err
		}
		t.Need(tx, "dtype")
		if numberOf(tx, m) == boolNumber {
			return unsupported(exc.OperatorUnsupported, "%s of a tensor of bools and %s", name, Describe(tx, v))
		}
		operands[i] = flag
	}
	return nil
}
