package sym

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Text returns s as a Python expression over the names of its symbols.
func (env *Env) Text(s Size) string {
	if s.IsUnknown() {
		return "unknown"
	}
	if s.t == nil {
		return fmt.Sprint(s.c)
	}
	var out strings.Builder
	for i, t := range s.t.terms {
		coef := t.coef
		switch {
		case i == 0 && coef == -1:
			out.WriteString("-")
		case i > 0 && coef < 0:
			out.WriteString(" - ")
			coef = -coef
		case i > 0:
			out.WriteString(" + ")
		}
		if coef != 1 && coef != -1 || coef == -1 && i > 0 {
			fmt.Fprintf(&out, "%d*", coef)
		}
		for j, x := range t.m.atoms {
			if j > 0 {
				out.WriteString("*")
			}
			out.WriteString(env.atomText(x))
		}
	}
	switch {
	case s.c > 0:
		fmt.Fprintf(&out, " + %d", s.c)
	case s.c < 0:
		fmt.Fprintf(&out, " - %s", strings.TrimPrefix(fmt.Sprint(s.c), "-"))
	}
	return out.String()
}

var floatTexts = map[operation]string{opFloatAdd: " + ", opFloatSub: " - ", opFloatMul: " * ", opFloatDiv: " / ",
	opFloatPow: " ** ", opFloatLt: " < ", opFloatLe: " <= ", opFloatEq: " == ", opFloatMax: "max",
	opFloatMin: "min", opToFloat: "float", opSqrt: "math.sqrt", opFloor: "math.floor", opCeil: "math.ceil",
	opTrunc: "int", opRound: "round"}

// floatAtomText is atomText for an operation on floats.
func (env *Env) floatAtomText(x *atom) string {
	operand := func(s Size) string {
		if f, ok := (Float{s}).Const(); ok && x.op.takesFloats() {
			return FloatText(f)
		}
		return env.Text(s)
	}
	a, sign := operand(x.a), floatTexts[x.op]
	switch {
	case x.op.unary():
		return sign + "(" + a + ")"
	case x.op == opFloatMax || x.op == opFloatMin:
		return sign + "(" + a + ", " + operand(x.b) + ")"
	}
	return "(" + a + sign + operand(x.b) + ")"
}

// FloatText returns a float as Python writes it.
func FloatText(f float64) string {
	switch {
	case math.IsInf(f, 0), math.IsNaN(f):
		return "float('" + strings.ToLower(strings.TrimPrefix(fmt.Sprint(f), "+")) + "')"
	case f == math.Trunc(f) && math.Abs(f) < 1e15:
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func (env *Env) atomText(x *atom) string {
	if x.op.onFloats() {
		return env.floatAtomText(x)
	}
	switch x.op {
	case opSymbol:
		return env.symbols[x.sym].Name
	case opMax:
		return "max(" + env.Text(x.a) + ", " + env.Text(x.b) + ")"
	case opMin:
		return "min(" + env.Text(x.a) + ", " + env.Text(x.b) + ")"
	}
	sign := " // "
	if x.op == opMod {
		sign = " % "
	}
	return "(" + env.operandText(x.a) + sign + env.operandText(x.b) + ")"
}

// operandText returns the text of s, in parentheses unless s is an atom or a non-negative constant.
func (env *Env) operandText(s Size) string {
	text := env.Text(s)
	if s.t == nil && s.c >= 0 || s.atom() != nil && s.c == 0 {
		return text
	}
	return "(" + text + ")"
}

// CondText returns c as a Python expression.
func (env *Env) CondText(c Cond) string {
	switch c.rel {
	case relZero:
		return env.Text(c.e) + " == 0"
	case relNotZero:
		return env.Text(c.e) + " != 0"
	}
	return env.Text(c.e) + " >= 0"
}
