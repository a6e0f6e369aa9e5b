package variables

import (
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/pyhook/py"
)

// floatFunctions maps each function of numbers that returns a float to its number of arguments.
var floatFunctions = map[string]int{}

// neverRaise has the functions of floatFunctions that never raise for floats.
var neverRaise = map[string]bool{}

func init() {
	for _, name := range []string{"atan", "degrees", "erf", "erfc", "fabs", "radians", "tanh"} {
		floatFunctions["math."+name], neverRaise["math."+name] = 1, true
	}
	for _, name := range []string{"acos", "asin", "cos", "cosh", "exp", "exp2", "expm1", "log", "log10", "log1p",
		"log2", "sin", "sinh", "sqrt", "tan"} {
		floatFunctions["math."+name] = 1
	}
	for _, name := range []string{"fmod", "pow"} {
		floatFunctions["math."+name] = 2
	}
	for _, name := range []string{"atan2", "copysign"} {
		floatFunctions["math."+name], neverRaise["math."+name] = 2, true
	}
}

// mayRaiseHere reports whether a value can be computed at run time if its computation may raise. It can where code runs
// in program order and no handler of the program is active.
func mayRaiseHere(tx Translator) bool {
	return !tx.Output().WholeGraph() && !tx.Catches() && tx.World().FixesSizes == 0
}

// mayRaiseInBlock is like mayRaiseHere, for a value of Compute. With an active handler, the frames go on in CPython if
// the computation raises.
func mayRaiseInBlock(tx Translator) bool {
	if mayRaiseHere(tx) {
		return true
	}
	return !tx.Output().WholeGraph() && tx.World().FixesSizes == 0 && tx.Output().LeavesIfRaised(tx)
}

// floatFunction calls a function of floatFunctions with a size or a computed number among its arguments. It returns
// false for other calls.
func floatFunction(tx Translator, fn py.Object, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, bool, error) {
	if n := floatFunctions[name]; n == 0 || len(args) != n || len(kwargs) > 0 {
		return nil, false, nil
	}
	if name == "math.sqrt" {
		if v, err := sizeSqrt(tx, fn, args[0]); v != nil || err != nil {
			return v, true, err
		}
	}
	operands, raises, found := make([]VariableTracker, len(args)), !neverRaise[name], false
	for i, v := range args {
		if x := asSymNode(tx, v); x != nil {
			if tx.World().FixesOpaque {
				return nil, false, nil
			}
			least, _ := tx.World().Env().Bounds(x.Size)
			raises = raises && (name != "math.sqrt" || least < 0)
			operands[i], found = x, true
			continue
		}
		operands[i] = MustRealize(tx, v)
		letter, number := numberLetter(tx, operands[i])
		if !number || letter == 'b' {
			return nil, false, nil
		}
		found = found || isComputed(operands[i])
		raises = raises || letter == 'i' && limitOf(operands[i]) == 0
	}
	if !found || raises && !mayRaiseInBlock(tx) || !raises && tx.World().FixesSizes > 0 {
		return nil, false, nil
	}
	for i, v := range operands {
		if x, ok := v.(*SymNodeVariable); ok {
			c, err := x.computed(tx)
			if err != nil {
				return nil, false, err
			}
			operands[i] = c
		}
	}
	tx.Output().Const(fn)
	v, err := compute(tx, tx.World().Builtin("float"), operands, func(e Emitter) error {
		return EmitCall(e, fn, operands)
	})
	return v, err == nil, err
}

// arithmeticRaises reports whether an arithmetic operator on numbers of these letters (numberLetter) may raise. ok is
// false if the type of the result depends on the values.
func arithmeticRaises(tx Translator, n opcode.BinaryOp, a, b VariableTracker, ka, kb byte) (raises, ok bool) {
	unlimited := ka == 'i' && limitOf(a) == 0 || kb == 'i' && limitOf(b) == 0
	raises = ka != kb && unlimited // an int may be too large for a float
	switch n {
	case opcode.NB_ADD, opcode.NB_SUBTRACT, opcode.NB_MULTIPLY:
		return raises, true
	case opcode.NB_TRUE_DIVIDE, opcode.NB_FLOOR_DIVIDE, opcode.NB_REMAINDER:
		k, known := b.(*ConstantVariable)
		return raises || !known || isZero(tx, k) || n == opcode.NB_TRUE_DIVIDE && unlimited, true
	case opcode.NB_POWER:
		return true, ka == 'f' && kb == 'i' || kb == 'f' && isPositive(tx, a)
	}
	return false, false
}

// isPositive reports whether v is a known positive number.
func isPositive(tx Translator, v VariableTracker) bool {
	k, ok := v.(*ConstantVariable)
	if !ok {
		return false
	}
	s := tx.Scope()
	r, ok := py.Answered(s.Compare(opcode.CMP_GT, k.Value, s.Int(0)))
	return ok && r == py.True()
}
