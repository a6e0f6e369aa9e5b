package sym

import (
	"fmt"
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

func (env *Env) atomText(x *atom) string {
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
