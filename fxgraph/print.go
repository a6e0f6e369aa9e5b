package fxgraph

import (
	"strconv"
	"strings"
)

// The two headers tell the forms apart.
const (
	plainHeader = "graph():"
	dumpHeader  = "graph(pool):"
)

// String returns the graph as FX prints it. Two things differ from FX: a constant is printed by its repr, and what would not
// read back (a text with an open bracket, say) is quoted as $"...".
func (g *Graph) String() string { return g.print(false) }

// Dump returns the text with everything in it: after each constant and each called function its pool index (2@7), after a
// node its flags and user stack as a comment. Parse gives an equal graph.
func (g *Graph) Dump() string { return g.print(true) }

// Format returns a node's line as String prints it.
func (n *Node) Format() string {
	p := printer{}
	p.node(n)
	return p.String()
}

func (g *Graph) print(pool bool) string {
	p := printer{pool: pool}
	if pool {
		p.WriteString(dumpHeader)
	} else {
		p.WriteString(plainHeader)
	}
	p.WriteByte('\n')
	for _, n := range g.nodes {
		p.WriteString("    ")
		p.node(n)
		if pool {
			p.comment(n)
		}
		p.WriteByte('\n')
	}
	return p.String()
}

type printer struct {
	strings.Builder
	pool bool // print pool indices
	bare bool // nodes without %, as FX prints what a graph returns
}

func (p *printer) node(n *Node) {
	if n.Op == Output {
		p.WriteString("return ")
		p.bare = true
		p.arg(n.Args[0], 0)
		p.bare = false
		return
	}
	p.WriteString("%" + n.Name + " : [num_users=" + strconv.Itoa(n.NumUsers()) + "] = " + n.Op.String() + "[target=")
	p.text(n.Target.Text, ']')
	if p.pool && n.Op == CallFunction {
		p.WriteString("@" + strconv.Itoa(n.Target.Pool))
	}
	p.WriteByte(']')
	if n.Op == Placeholder || n.Op == GetAttr {
		return
	}
	p.WriteString("(args = ")
	p.arg(Tuple{Items: n.Args}, 0)
	p.WriteString(", kwargs = {")
	for i, k := range n.Kwargs {
		if i > 0 {
			p.WriteString(", ")
		}
		p.text(k.Name, ':')
		p.WriteString(": ")
		p.arg(k.Value, '}')
	}
	p.WriteString("})")
}

// arg prints an operand; end is the byte that closes what it stands in (0: the line's end).
func (p *printer) arg(a Arg, end byte) {
	switch x := a.(type) {
	case *Node:
		if !p.bare {
			p.WriteByte('%')
		}
		p.WriteString(x.Name)
	case Lit:
		if p.bare && !p.pool && isIdentifier(x.Text) && !illegalNames[x.Text] {
			p.WriteString("$" + strconv.Quote(x.Text)) // it could be a node's name
			return
		}
		p.text(x.Text, end)
		if p.pool {
			p.WriteString("@" + strconv.Itoa(x.Pool))
		}
	case List:
		p.WriteByte('[')
		p.items(x.Items, ']')
	case Tuple:
		p.WriteByte('(')
		p.items(x.Items, ')')
	case Slice:
		p.WriteString("slice(")
		p.items([]Arg{x.Start, x.Stop, x.Step}, ')')
	case Dict:
		p.WriteByte('{')
		for i := range x.Keys {
			if i > 0 {
				p.WriteString(", ")
			}
			p.arg(x.Keys[i], ':')
			p.WriteString(": ")
			p.arg(x.Values[i], '}')
		}
		p.WriteByte('}')
	}
}

func (p *printer) items(items []Arg, end byte) {
	for i, it := range items {
		if i > 0 {
			p.WriteString(", ")
		}
		p.arg(it, end)
	}
	if end == ')' && len(items) == 1 {
		p.WriteByte(',')
	}
	p.WriteByte(end)
}

// text prints a constant's or target's text, quoted when the parser would not find its end or take it for something else.
func (p *printer) text(s string, end byte) {
	if !readsBack(s, end) {
		p.WriteString("$" + strconv.Quote(s))
		return
	}
	p.WriteString(s)
}

// readsBack tells whether the scanner, started on s with what follows it, stops exactly behind it and takes it for a text.
func readsBack(s string, end byte) bool {
	if s == "" || s[0] == '%' || s[0] == '$' || strings.ContainsAny(s, "\n\r@") || strings.TrimSpace(s) != s {
		return false
	}
	for _, stop := range []byte{',', end} {
		if stop != 0 {
			if n, ok := scanText(s+string(stop), stop); !ok || n != len(s) {
				return false
			}
		}
	}
	return true
}

func (p *printer) comment(n *Node) {
	if !n.Inplace && len(n.Stack) == 0 {
		return
	}
	p.WriteString("  #")
	if n.Inplace {
		p.WriteString(" inplace")
	}
	for _, f := range n.Stack {
		p.WriteString(" " + strconv.Quote(f.Name) + " " + strconv.Quote(f.File) + ":" + strconv.Itoa(f.Line))
	}
}
