package variables

import (
	"math"
	"strconv"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
)

// A branch may depend on a comparison of a known number with a float that differs between calls. The float's value in
// the translated call decides the branch. A guard checks that the comparison has the same outcome.

// floatCondition is a comparison of a float passed to the frame with a finite float.
type floatCondition struct {
	float *ComputedVariable
	rel   guards.FloatRel
	bound py.Object
}

// maxFloatConditions bounds the conditions on one float. If there are more, a branch on the float makes it a constant.
const maxFloatConditions = 32

var floatRels = map[opcode.CompareOp]guards.FloatRel{opcode.CMP_LT: guards.FloatLT, opcode.CMP_LE: guards.FloatLE,
	opcode.CMP_EQ: guards.FloatEQ, opcode.CMP_NE: guards.FloatNE, opcode.CMP_GT: guards.FloatGT,
	opcode.CMP_GE: guards.FloatGE}

// floatConditionOf returns a comparison as a floatCondition, or nil for other comparisons.
func floatConditionOf(tx Translator, op opcode.CompareOp, a, b VariableTracker) *floatCondition {
	x, ok := a.(*ComputedVariable)
	if !ok {
		a, b, op = b, a, op.Swapped()
		x, ok = a.(*ComputedVariable)
	}
	k, known := b.(*ConstantVariable)
	rel, compares := floatRels[op]
	if !ok || !known || !compares || x.value.IsNull() || x.Src == nil {
		return nil
	}
	bound, ok := finiteFloat(tx, k.Value)
	if !ok {
		return nil
	}
	return &floatCondition{x, rel, bound}
}

// finiteFloat returns k as a float if k is a finite float or an int that a float represents exactly.
func finiteFloat(tx Translator, k py.Object) (py.Object, bool) {
	switch k.Kind() {
	case py.Int:
		n, ok := py.AsInt(k)
		return tx.Scope().Float(float64(n)), ok && n >= -exactInt && n <= exactInt
	case py.Float:
		f, err := strconv.ParseFloat(tx.Scope().Repr(k), 64)
		return k, err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
	}
	return k, false
}

// decide returns the truth of a float passed to the frame, or of a comparison with one, and adds the guard on which the
// truth depends. It returns false for other values.
func (v *ComputedVariable) decide(tx Translator) (truth, ok bool) {
	c, want := v.decided, true
	if !v.value.IsNull() && v.Src != nil { // a float is false if it equals 0
		c, want = &floatCondition{v, guards.FloatEQ, tx.Scope().Float(0)}, false
	}
	if c == nil || tx.World().FixesSizes > 0 {
		return false, false
	}
	w, s, place := tx.World(), tx.Scope(), c.float.Src.Name()
	r, answered := py.Answered(s.Compare(opcode.CompareOp(c.rel), c.float.value, c.bound))
	if w.floatConditions[place] >= maxFloatConditions || !answered {
		return false, false
	}
	if w.floatConditions == nil {
		w.floatConditions = map[string]int{}
	}
	w.floatConditions[place]++
	holds := r == py.True()
	tx.Output().AddGuards(guards.FloatCompare(c.float.Src, c.rel, tx.Output().Const(c.bound), holds))
	return holds == want, true
}
