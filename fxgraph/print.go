package fxgraph

import (
	"strconv"
	"strings"
)

// The first line of a text shows which of the two forms it has.
const (
	plainHeader = "graph():"
	dumpHeader  = "graph(pool):"
)

// String returns the graph as FX prints it, with two differences. A constant is printed by its repr. A text that could
// not be parsed back, for example one with an open bracket, is quoted as $"...".
func (g *Graph) String() string { return g.print(false) }

// Dump returns the graph's text with all details. It has the pool index after each constant and called function (2@7),
// and each node's flags and user stack as a comment. Parse returns an equal graph.
func (g *Graph) Dump() string { return g.print(true) }

// Format returns a node's line as printed by String.
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
	bare bool // print nodes without %, as FX prints a graph's results
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

// arg prints an operand. end is the byte that closes the enclosing construct, or 0 at the end of a line.
func (p *printer) arg(a Arg, end byte) {
	switch x := a.(type) {
	case *Node:
		if !p.bare {
			p.WriteByte('%')
		}
		p.WriteString(x.Name)
	case Lit:
		if p.bare && !p.pool && isIdentifier(x.Text) && !illegalNames[x.Text] {
			p.WriteString("$" + strconv.Quote(x.Text)) // without quotes it would be parsed as a node's name
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

// text prints the text of a constant or target. It quotes the text if the parser would not find its end or would
// misread it.
func (p *printer) text(s string, end byte) {
	if !readsBack(s, end) {
		p.WriteString("$" + strconv.Quote(s))
		return
	}
	p.WriteString(s)
}

// readsBack reports whether the parser reads s back as a text: it must stop exactly after s.
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
