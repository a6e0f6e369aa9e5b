package fxgraph

import (
	"fmt"
	"strings"
)

// Table returns the graph as a table, like FX's print_tabular. Each node has a row with its kind, name, target and
// operands.
func (g *Graph) Table() string {
	rows := [][]string{{"opcode", "name", "target", "args", "kwargs"}}
	for _, n := range g.nodes {
		rows = append(rows, []string{n.Op.String(), n.Name, n.Target.Text, code(Tuple{Items: n.Args}),
			keywords(n.Kwargs, ": ", "{", "}")})
	}
	widths := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, cell := range r {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	var out strings.Builder
	for i, r := range rows {
		line := ""
		for k, cell := range r {
			line += fmt.Sprintf("%-*s  ", widths[k], cell)
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
		if i == 0 {
			for _, w := range widths {
				out.WriteString(strings.Repeat("-", w) + "  ")
			}
			out.WriteString("\n")
		}
	}
	return out.String()
}

// infix maps functions of the operator module to the symbols of their infix operators.
var infix = map[string]string{
	"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
	"and_": "&", "or_": "|",
	"xor": "^", "lshift": "<<", "rshift": ">>", "lt": "<", "le": "<=", "eq": "==", "ne": "!=", "gt": ">", "ge": ">=",
}

// Code returns the graph as an equivalent Python function, for reading. It prints a constant that has no source form
// as the constant's repr.
func (g *Graph) Code() string {
	var inputs []string
	var body strings.Builder
	returns := false
	for _, n := range g.nodes {
		switch n.Op {
		case Placeholder:
			inputs = append(inputs, n.Name)
		case Output:
			returns = true
			body.WriteString("    return " + code(n.Args[0]) + "\n")
		default:
			body.WriteString("    " + n.Name + " = " + expression(n) + "\n")
		}
	}
	if !returns && body.Len() == 0 {
		body.WriteString("    pass\n")
	}
	return "def forward(" + strings.Join(append([]string{"self"}, inputs...), ", ") + "):\n" + body.String()
}

func expression(n *Node) string {
	switch n.Op {
	case GetAttr:
		return "self." + n.Target.Text
	case CallModule:
		return "self." + n.Target.Text + call(n.Args, n.Kwargs)
	case CallMethod:
		if len(n.Args) > 0 {
			return code(n.Args[0]) + "." + n.Target.Text + call(n.Args[1:], n.Kwargs)
		}
	}
	name, ofOperator := strings.CutPrefix(n.Target.Text, "operator.")
	if ofOperator && len(n.Args) == 2 && len(n.Kwargs) == 0 {
		if sign, ok := infix[name]; ok {
			return code(n.Args[0]) + " " + sign + " " + code(n.Args[1])
		}
		if name == "getitem" {
			return code(n.Args[0]) + "[" + code(n.Args[1]) + "]"
		}
	}
	return n.Target.Text + call(n.Args, n.Kwargs)
}

func call(args []Arg, kwargs []Kwarg) string {
	var parts []string
	for _, a := range args {
		parts = append(parts, code(a))
	}
	if len(kwargs) > 0 {
		parts = append(parts, keywords(kwargs, " = ", "", ""))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

func keywords(kwargs []Kwarg, between, open, end string) string {
	var parts []string
	for _, k := range kwargs {
		parts = append(parts, k.Name+between+code(k.Value))
	}
	return open + strings.Join(parts, ", ") + end
}

// code prints an operand in Python source form.
func code(a Arg) string {
	list := func(items []Arg) string {
		var parts []string
		for _, it := range items {
			parts = append(parts, code(it))
		}
		return strings.Join(parts, ", ")
	}
	switch x := a.(type) {
	case *Node:
		return x.Name
	case Lit:
		return x.Text
	case List:
		return "[" + list(x.Items) + "]"
	case Tuple:
		if len(x.Items) == 1 {
			return "(" + list(x.Items) + ",)"
		}
		return "(" + list(x.Items) + ")"
	case Slice:
		return "slice(" + list([]Arg{x.Start, x.Stop, x.Step}) + ")"
	case Dict:
		var parts []string
		for i := range x.Keys {
			parts = append(parts, code(x.Keys[i])+": "+code(x.Values[i]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprint(a)
}
