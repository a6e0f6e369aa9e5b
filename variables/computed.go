package variables

import (
	"math"
	"slices"
	"strings"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// ComputedVariable is a plain Python value that is computed at run time, such as a random number or a result computed
// from one. The translator knows only its exact type. The program may store, return and print such a value and compute
// with it. The value may be an operand of the graph. Control flow that depends on it breaks the graph.
//
// An event (Output.Compute) computes the value. For a whole-graph backend, these events precede the graph, and the
// computed numbers are inputs of the graph.
type ComputedVariable struct {
	Base
	Type py.Object
	// limit bounds the absolute value of an int. It is 0 if no bound is known.
	limit int64
	// madeAt is the step of the outermost frame at which the value is computed. It is 0 for values passed to the frame.
	madeAt int
	// cond is the condition on sizes whose truth is the value of a bool, or nil.
	cond *sym.Cond
	// size is the value of a float as an expression over sizes, or nil.
	size *sym.Float
	// decided is the comparison whose result is the value of a bool, if a guard can check the outcome.
	decided *floatCondition
	// flag is an int that is 1 if the value, a bool, is True, and else 0. It is nil for other values.
	flag *SymNodeVariable
	// passed lists the floats passed to the frame that the value is computed from, by their places. It is nil if the
	// value depends on something else: neither a float or int passed to the frame nor a constant.
	passed []string
	// value is the value that a float passed to the frame has in the translated call. It must not affect the
	// translation.
	value py.Object
	// mixed is set for a power of two floats, which is a float, or a complex if the base is negative. Type is complex
	// then. Such a value may only be an operand of a tensor's operator.
	mixed bool
	// real is set for a float or an int, such as the maximum of both. Type is complex then. Such a value may only be an
	// operand of arithmetic whose result is a float whatever it is.
	real bool
	// Node computes the value, a float, in a compiler's graph. Such a value has no event.
	Node *fxgraph.Node
	// input is the tensor that represents the number in a whole graph. It is made when it is first needed.
	input *TensorVariable
}

// AsPredicted is the operation that compares the outcome of a branch with the graph's prediction.
const AsPredicted = "godynamo.as_predicted"

// AsFloat is the operation that checks that a power of floats is a float.
const AsFloat = "godynamo.as_float"

// All ints whose absolute value is at most exactInt are exactly representable as floats.
const exactInt = 1 << 53

// Mixed reports whether the value is a float or a complex.
func (v *ComputedVariable) Mixed() bool { return v.mixed }

// Kind implements VariableTracker.
func (*ComputedVariable) Kind() string { return "ComputedVariable" }

// PythonType implements Typed.
func (v *ComputedVariable) PythonType(Translator) (py.Object, error) {
	if v.mixed || v.real {
		return py.Object{}, unsupported(exc.CallUnsupported, "type of a number that depends on values")
	}
	return v.Type, nil
}

// Truth implements Truther. The value is computed at run time, so Truth breaks the graph unless a guard can check the
// outcome.
func (v *ComputedVariable) Truth(tx Translator) (bool, error) {
	if holds, ok := v.decide(tx); ok {
		return holds, nil
	}
	if holds, ok := v.sizeTruth(tx); ok {
		return holds, nil
	}
	v.looked(tx)
	return false, &exc.Unsupported{Code: exc.DataDependentBranch, Context: "a " + py.TypeName(v.Type) +
		" that each call computes", DataDependent: true}
}

// compute adds an event that computes a value of exactly this type. The code that emit writes leaves the value on the
// stack.
func compute(tx Translator, class py.Object, operands []VariableTracker,
	emit func(e Emitter) error) (*ComputedVariable, error) {
	v := &ComputedVariable{Type: class, passed: passedFloats(tx, operands), madeAt: tx.Output().Step()}
	slot, err := tx.Output().Compute(tx, operands, false, emit)
	if err != nil {
		return nil, err
	}
	SetSlot(v, slot)
	return v, nil
}

// FlagMadeAt returns the step of the outermost frame at which a bool that each call computes is made, or 0 for other
// values.
func FlagMadeAt(tx Translator, v VariableTracker) int {
	if x, ok := v.(*ComputedVariable); ok && x.Type == tx.World().Builtin("bool") {
		return x.madeAt
	}
	return 0
}

// NewPassed returns the tracker of a float that was passed to the frame and differs between calls.
func NewPassed(obj py.Object, src guards.Source) *ComputedVariable {
	return &ComputedVariable{Base: Base{Src: src}, Type: obj.Type(), passed: []string{src.Name()}, value: obj}
}

// Passed returns the value that a float passed to the frame has in the translated call, or the null object for other
// values. The value must not affect the translation, except by conditions that are guarded.
func (v *ComputedVariable) Passed() py.Object { return v.value }

// IsPassed reports whether v is computed from constants and from floats and ints passed to the frame, and from nothing
// else. With these floats as constants, v is a constant.
func IsPassed(v VariableTracker) bool {
	x, ok := v.(*ComputedVariable)
	return ok && x.passed != nil
}

// passedFloats returns the field `passed` for the result of an operation on these operands.
func passedFloats(tx Translator, operands []VariableTracker) []string {
	out := []string{}
	for _, v := range operands {
		switch x := v.(type) {
		case *ConstantVariable:
		case *ComputedVariable:
			if x.passed == nil {
				return nil
			}
			out = append(out, x.passed...)
		case *SymNodeVariable:
			if !tx.World().passedInts(x.Size) {
				return nil
			}
		default:
			return nil
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// looked records that the translation used a number computed from floats passed to the frame.
func (v *ComputedVariable) looked(tx Translator) {
	if len(v.passed) > 0 {
		w := tx.World()
		w.FloatLooks = append(w.FloatLooks, v.passed...)
	}
}

// ComputedBefore returns the tracker of a value that the frame computed before the last graph break. It returns nil if
// the value is not of a plain type.
func ComputedBefore(tx Translator, obj py.Object, src guards.Source) VariableTracker {
	v := &ComputedVariable{Base: Base{Src: src}, Type: obj.Type()}
	if !IsComputedPlain(tx, v) {
		return nil
	}
	tx.Output().AddGuards(guards.TypeMatch(src, tx.Output().Const(v.Type)))
	return v
}

// IsComputedPlain reports whether v is a computed number or text.
func IsComputedPlain(tx Translator, v VariableTracker) bool {
	x, ok := v.(*ComputedVariable)
	if !ok {
		return false
	}
	_, number := numberLetter(tx, x)
	return number || x.Type == tx.World().Builtin("str")
}

// isComputed reports whether v is a value of which at most the type is known: a ComputedVariable or a TensorOrInt.
func isComputed(v VariableTracker) bool {
	switch v.(type) {
	case *ComputedVariable, *TensorOrInt:
		return true
	}
	return false
}

// isComputedNumber reports whether v is a computed or known float, int or bool.
func isComputedNumber(tx Translator, v VariableTracker) bool {
	_, ok := numberLetter(tx, v)
	return ok
}

// numberLetter returns 'f', 'i' or 'b' for a known or computed float, int or bool, and false for other values.
func numberLetter(tx Translator, v VariableTracker) (byte, bool) {
	var t py.Object
	switch x := v.(type) {
	case *ComputedVariable:
		t = x.Type
		x.looked(tx)
	case *ConstantVariable:
		t = x.Value.Type()
	case *SymNodeVariable:
		return 'i', true
	default:
		return 0, false
	}
	switch t {
	case tx.World().Builtin("float"):
		return 'f', true
	case tx.World().Builtin("int"):
		return 'i', true
	case tx.World().Builtin("bool"):
		return 'b', true
	}
	return 0, false
}

// computedOperator computes an arithmetic operator with a computed operand. It returns false if no operand is computed.
// It breaks the graph at an operation that may raise before earlier effects of the program have run.
func computedOperator(tx Translator, n opcode.BinaryOp, a, b VariableTracker) (VariableTracker, bool, error) {
	if !isComputed(a) && !isComputed(b) {
		return nil, false, nil
	}
	if r, err := floatArithmetic(tx, n, a, b); r != nil || err != nil {
		return r, true, err
	}
	no := unsupported(exc.OperatorUnsupported, "%s %s %s", Describe(tx, a), n.Function(), Describe(tx, b))
	ka, ok := arithmeticLetter(tx, a)
	kb, ok2 := arithmeticLetter(tx, b)
	if !ok || !ok2 || ka == 'b' || kb == 'b' || (ka == 'r' || kb == 'r') && !yieldsFloat(n, ka, kb) {
		return nil, true, no
	}
	if v, ok, err := operatorInGraph(tx, n, a, b, ka, kb); ok || err != nil {
		return v, true, err
	}
	la, lb := limitOf(a), limitOf(b)
	raises, ok := arithmeticRaises(tx, n, a, b, ka, kb)
	mixed := !ok && n == opcode.NB_POWER && ka == 'f' && kb == 'f'
	if !ok && !mixed || raises && !mayRaiseInBlock(tx) {
		return nil, true, no
	}
	class := "float"
	if ka == 'i' && kb == 'i' && n != opcode.NB_TRUE_DIVIDE {
		class = "int"
	}
	operands := []VariableTracker{a, b}
	v, err := compute(tx, tx.World().Builtin(class), operands, func(e Emitter) error {
		if err := LoadAll(e, operands); err != nil {
			return err
		}
		e.BinaryOp(n)
		return nil
	})
	if err == nil && mixed {
		v.Type, v.mixed = tx.World().Builtin("complex"), true
	}
	if err == nil && class == "int" && la > 0 && lb > 0 {
		v.limit = limited(map[opcode.BinaryOp]int64{
			opcode.NB_ADD:          la + lb,
			opcode.NB_SUBTRACT:     la + lb,
			opcode.NB_MULTIPLY:     la * lb,
			opcode.NB_FLOOR_DIVIDE: la + 1,
			opcode.NB_REMAINDER:    lb,
		}[n], la, lb)
	}
	return v, true, err
}

// yieldsFloat reports whether the result of arithmetic is a float, although an operand ('r') may be a float or an int.
func yieldsFloat(n opcode.BinaryOp, ka, kb byte) bool {
	switch n {
	case opcode.NB_TRUE_DIVIDE:
		return true
	case opcode.NB_ADD, opcode.NB_SUBTRACT, opcode.NB_MULTIPLY:
		return ka == 'f' || kb == 'f'
	}
	return false
}

// limited returns limit, the bound of a result, if it is valid. It returns 0 if limit exceeds exactInt or may have
// overflowed. la and lb are the operands' bounds.
func limited(limit, la, lb int64) int64 {
	if la > 1<<30 && lb > 1<<30 || limit > exactInt {
		return 0
	}
	return limit
}

// limitOf returns a bound of the absolute value of a known or computed int, or 0 if no bound is known.
func limitOf(v VariableTracker) int64 {
	switch x := v.(type) {
	case *ComputedVariable:
		return x.limit
	case *ConstantVariable:
		if i, ok := py.AsInt(x.Value); ok && i >= -exactInt && i <= exactInt {
			return max(i, -i, 1)
		}
	}
	return 0
}

func isZero(tx Translator, k *ConstantVariable) bool {
	t, ok := py.Answered(tx.Scope().Truth(k.Value))
	return !ok || !t
}

// computedComparison compares two numbers, at least one of them computed. It returns false if neither is computed.
func computedComparison(tx Translator, op opcode.CompareOp, a, b VariableTracker) (VariableTracker, bool, error) {
	if !isComputed(a) && !isComputed(b) {
		return nil, false, nil
	}
	if holds, ok, err := floatComparison(tx, op, a, b); ok || err != nil {
		return BoolConst(holds), true, err
	}
	if _, ok := arithmeticLetter(tx, a); ok {
		if _, ok := arithmeticLetter(tx, b); ok {
			operands := []VariableTracker{a, b}
			v, err := compute(tx, tx.World().Builtin("bool"), operands, func(e Emitter) error {
				if err := LoadAll(e, operands); err != nil {
					return err
				}
				e.CompareOp(op)
				return nil
			})
			if err == nil {
				v.decided = floatConditionOf(tx, op, a, b)
			}
			return v, true, err
		}
	}
	return nil, true, unsupported(exc.OperatorUnsupported, "%s %s %s", Describe(tx, a), op.Name(), Describe(tx, b))
}

// computedUnary computes the unary operator + (op is 0) or - (op is 1) of a computed number.
func computedUnary(tx Translator, op int, v *ComputedVariable) (VariableTracker, error) {
	if k, ok := numberLetter(tx, v); !ok || k == 'b' || op > 1 {
		return nil, unsupported(exc.OperatorUnsupported, "%s %s", unaryNames[op], Describe(tx, v))
	}
	r, err := compute(tx, v.Type, []VariableTracker{v}, func(e Emitter) error {
		if err := e.Load(v); err != nil {
			return err
		}
		e.UnaryOp(op)
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.limit = v.limit
	if v.size != nil && takesSizeFloats(tx) {
		f := *v.size
		if op == 1 {
			f = tx.World().Env().FloatOp(sym.FloatMul, f, sym.FloatConst(-1))
		}
		r.size = &f
	}
	return r, nil
}

// negated computes `not` of a bool.
func negated(tx Translator, v *ComputedVariable) (VariableTracker, error) {
	return compute(tx, v.Type, []VariableTracker{v}, func(e Emitter) error {
		err := e.Load(v)
		e.UnaryOp(3)
		return err
	})
}

// computedBuiltins maps a builtin to the type of its result for a computed number. An empty string is the number's own
// type. None of these builtins raises.
var computedBuiltins = map[string]string{"float": "float", "abs": "", "str": "str", "repr": "str", "bool": "bool"}

// computedCall calls a builtin on a computed number, or reads a clock. It returns false for other values and other
// builtins.
func computedCall(tx Translator, fn py.Object, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, bool, error) {
	if len(args) == 1 && len(kwargs) == 0 && flagOf(args[0]) != nil && (name == "int" || name == "bool") {
		if name == "bool" {
			return args[0], true, nil
		}
		return flagOf(args[0]), true, nil
	}
	if v, ok, err := readClock(tx, fn, args, kwargs); ok || err != nil {
		return v, ok, err
	}
	if v, ok, err := roundedAtRunTime(tx, fn, name, args, kwargs); ok || err != nil {
		return v, ok, err
	}
	if v, ok, err := floatFunction(tx, fn, name, args, kwargs); ok || err != nil {
		return v, ok, err
	}
	gives, known := computedBuiltins[name]
	if !known || len(args) != 1 || len(kwargs) > 0 {
		return nil, false, nil
	}
	v, err := Realize(tx, args[0])
	if err != nil {
		return nil, true, err
	}
	x, ok := v.(*ComputedVariable)
	if !ok {
		return exceptionTextOf(tx, v, name)
	}
	letter, number := numberLetter(tx, x)
	if !number && !(x.Type == tx.World().Builtin("str") && (name == "str" || name == "repr" || name == "bool")) ||
		name != "abs" && name != "bool" && letter == 'i' && x.limit == 0 || name == "abs" && letter == 'b' {
		return nil, true, unsupported(exc.CallUnsupported, "%s of %s", name, Describe(tx, x))
	}
	class := x.Type
	if gives != "" {
		class = tx.World().Builtin(gives)
	}
	tx.Output().Const(fn)
	r, err := compute(tx, class, []VariableTracker{x}, func(e Emitter) error {
		return EmitCall(e, fn, []VariableTracker{x})
	})
	if err == nil && name == "abs" {
		r.limit = x.limit
	}
	if err == nil && name == "float" {
		r.size = x.size
	}
	return r, true, err
}

// roundings are the functions that round a float to an int.
var roundings = map[string]bool{"int": true, "round": true, "math.floor": true, "math.ceil": true, "math.trunc": true}

// roundedAtRunTime rounds a computed float to an int. It returns false for other calls. The call raises for an infinity
// or a NaN. So it is captured only where code runs in program order, and where the frames can go on at a handler of the
// program.
func roundedAtRunTime(tx Translator, fn py.Object, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, bool, error) {
	if !roundings[name] || len(args) != 1 || len(kwargs) > 0 {
		return nil, false, nil
	}
	x, ok := args[0].(*ComputedVariable)
	if !ok || x.Type != tx.World().Builtin("float") {
		return nil, false, nil
	}
	if s := roundedSize(tx, name, x); s != nil {
		return s, true, nil
	}
	if !mayRaiseInBlock(tx) {
		return nil, false, nil
	}
	tx.Output().Const(fn)
	slot, err := tx.Output().Compute(tx, []VariableTracker{x}, false, func(e Emitter) error {
		return EmitCall(e, fn, []VariableTracker{x})
	})
	if err != nil {
		return nil, true, err
	}
	return tx.Output().AtRunTime(nil, slot, math.MinInt64, math.MaxInt64), true, nil
}

// computedFormat implements format(v, spec) after the given conversion ("", "str" or "repr"). It breaks the graph if
// the spec may raise for some value of v.
func computedFormat(tx Translator, v *ComputedVariable, conversion, spec string) (VariableTracker, error) {
	s, w := tx.Scope(), tx.World()
	if conversion != "" {
		r, ok, err := computedCall(tx, w.Builtin(conversion), conversion, []VariableTracker{v}, nil)
		if err != nil || ok && spec == "" {
			return r, err
		}
		if v, ok = r.(*ComputedVariable); !ok {
			return nil, unsupported(exc.OperatorUnsupported, "format of a %s", py.TypeName(v.Type))
		}
	}
	letter, number := numberLetter(tx, v)
	// str() of an int with too many digits raises
	if !number && v.Type != w.Builtin("str") || letter == 'i' && v.limit == 0 {
		return nil, unsupported(exc.OperatorUnsupported, "format of a %s", py.TypeName(v.Type))
	}
	example, err := s.Call(v.Type)
	if err != nil {
		return nil, err
	}
	fn := w.Builtin("format")
	_, ok := py.Answered(s.Call(fn, example, s.Str(spec)))
	if !ok || strings.HasSuffix(spec, "c") { // "c" raises for an int that is no code point
		return nil, unsupported(exc.OperatorUnsupported, "format of a %s by %q", py.TypeName(v.Type), spec)
	}
	return computeText(tx, []VariableTracker{v}, func(e Emitter) error {
		e.PushNull()
		e.LoadConst(fn)
		if err := e.Load(v); err != nil {
			return err
		}
		e.LoadStr(spec)
		e.Call(2, nil)
		return nil
	})
}

// JoinComputed joins texts, at least one of them computed. It returns false if none is computed.
func JoinComputed(tx Translator, parts []VariableTracker) (VariableTracker, bool, error) {
	found := false
	parts = append([]VariableTracker(nil), parts...)
	for i, p := range parts {
		parts[i] = MustRealize(tx, p)
		switch x := parts[i].(type) {
		case *ComputedVariable:
			found = true
		case *ConstantVariable:
			if x.Value.Kind() != py.Str {
				return nil, false, nil
			}
		default:
			return nil, false, nil
		}
	}
	if !found {
		return nil, false, nil
	}
	v, err := computeText(tx, parts, func(e Emitter) error {
		e.LoadStr("")
		e.LoadMethod("join")
		if err := LoadAll(e, parts); err != nil {
			return err
		}
		e.BuildTuple(len(parts))
		e.CallMethod(1, nil)
		return nil
	})
	return v, true, err
}

// wholeGraphOperators are operators that compute bitwise the same result with a 0-dimensional tensor as with a Python
// number. The other operand must have at least one dimension and a dtype that the number does not change.
var wholeGraphOperators = map[string]bool{"add": true, "sub": true, "mul": true, "truediv": true, "lt": true,
	"le": true, "eq": true,
	"ne": true, "gt": true, "ge": true, "iadd": true, "isub": true, "imul": true, "itruediv": true}

// numberOperands replaces computed numbers among the operands of an operator on tensors. Each becomes a 0-dimensional
// tensor that is an input of the whole graph. A Python number cannot be such an input: a backend would compile it as a
// constant.
func numberOperands(tx Translator, name string, operands []VariableTracker) error {
	for i, v := range operands {
		x, ok := v.(*ComputedVariable)
		if !ok || x.Node != nil || tx.Output().TakesNumbers() {
			continue
		}
		letter, _ := numberLetter(tx, x)
		t, beside := operands[1-i].(*TensorVariable)
		if x.mixed || !wholeGraphOperators[name] || !beside || letter == 'i' && x.limit == 0 || letter == 'b' {
			return unsupported(exc.OperatorUnsupported, "%s of a tensor and %s", name, Describe(tx, v))
		}
		m, err := t.Sizes(tx)
		if err != nil {
			return err
		}
		t.Need(tx, "ndim")
		t.Need(tx, "dtype")
		floats, err := tx.Scope().GetAttr(m.Dtype, "is_floating_point")
		if err != nil {
			return err
		}
		if len(m.Shape) == 0 || floats != py.True() && letter == 'f' {
			return unsupported(exc.OperatorUnsupported, "%s of a tensor and %s", name, Describe(tx, v))
		}
		if x.input == nil {
			if x.input, err = tensorOf(tx, x); err != nil {
				return err
			}
		}
		operands[i] = x.input
	}
	return nil
}

// tensorOf returns the graph input that represents a computed number.
func tensorOf(tx Translator, x *ComputedVariable) (*TensorVariable, error) {
	if tx.Output().AfterGraph(x) {
		return nil, unsupported(exc.CallUnsupported, "a number computed from results of the graph, as its operand")
	}
	fn, example, err := computedModule(tx, "as_tensor", x.Type)
	if err != nil {
		return nil, err
	}
	slot, err := tx.Output().Compute(tx, []VariableTracker{x}, false, func(e Emitter) error {
		return EmitCall(e, fn, []VariableTracker{x})
	})
	if err != nil {
		return nil, err
	}
	return tx.Output().ComputedInput(slot, example), nil
}

// computedModule returns the function of this name in _called/computed.py. example is the function's result for
// class().
func computedModule(tx Translator, name string, class py.Object) (fn, example py.Object, err error) {
	s := tx.Scope()
	m, err := s.Import("godynamo._called.computed")
	if err != nil {
		return fn, example, err
	}
	if fn, err = s.GetAttr(m, name); err != nil {
		return fn, example, err
	}
	tx.Output().Const(fn)
	zero, err := s.Call(class)
	if err != nil {
		return fn, example, err
	}
	example, err = s.Call(fn, zero)
	return fn, example, err
}

// TakesData reports whether the operation makes a tensor of numbers, which may be in lists. The tensor's dtype depends
// on their types only.
func TakesData(operation string) bool {
	return makesTensor[operation] && operation != "torch.from_numpy"
}

// TakesNumber reports whether this computed number may be an operand of the operation, in a graph that runs operation
// by operation. It may if its value does not affect the metadata of the result.
func (v *ComputedVariable) TakesNumber(tx Translator, operation string) bool {
	letter, ok := numberLetter(tx, v)
	if ok && operation == AsPredicted {
		return true
	}
	if !ok {
		return v.mixed && (operation == AsFloat || strings.HasPrefix(operation, "operator.") ||
			OnLists(operation) && isInPlace(operation))
	}
	if strings.HasPrefix(operation, "operator.") {
		return true
	}
	if TakesData(operation) {
		return true
	}
	if letter != 'f' {
		return false
	}
	for _, word := range []string{"range", "space", "interpolate", "upsample", "histc", "bincount", "window"} {
		if strings.Contains(operation, word) {
			return false
		}
	}
	return true
}

// AsProxy implements Proxy. It breaks the graph: v is a number in a container that is an operand.
func (v *ComputedVariable) AsProxy(tx Translator) (fxgraph.Arg, error) {
	v.looked(tx)
	return nil, unsupported(exc.CallUnsupported, "%s within an operand of the graph", Describe(tx, v))
}
