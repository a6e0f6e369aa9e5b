package fxgraph

import (
	"fmt"
	"strconv"
	"strings"
)

// Parse reads the output of String or Dump. From Dump's text it returns an equal graph. From String's text it returns a
// graph in which every pool index is NoPool, and in which a constant that prints like a list, tuple, dict or slice has
// become a List, Tuple, Dict or Slice. Errors contain the line number, counted from 1. Every graph that Parse returns
// passes Lint.
func Parse(text string) (*Graph, error) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if lines[0] != plainHeader && lines[0] != dumpHeader {
		return nil, fmt.Errorf("fxgraph: line 1: %q is no graph", lines[0])
	}
	p := parser{graph: NewGraph(), byName: map[string]*Node{}, users: map[*Node]int{}, pool: lines[0] == dumpHeader}
	for i, line := range lines[1:] {
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("fxgraph: line %d: %w", i+2, err)
		}
	}
	for n, users := range p.users {
		if n.NumUsers() != users {
			return nil, fmt.Errorf("fxgraph: %%%s says num_users=%d and has %d", n.Name, users, n.NumUsers())
		}
	}
	if err := p.graph.Lint(); err != nil {
		return nil, err
	}
	return p.graph, nil
}

type parser struct {
	graph  *Graph
	byName map[string]*Node
	users  map[*Node]int // each node's num_users in the text
	pool   bool
	rest   string // unread part of the line
	bare   bool
}

var opByName = func() map[string]OpKind {
	m := map[string]OpKind{}
	for i, name := range opNames {
		m[name] = OpKind(i)
	}
	return m
}()

func (p *parser) line(line string) error {
	var ok bool
	if p.rest, ok = strings.CutPrefix(line, "    "); !ok {
		return fmt.Errorf("not indented by 4")
	}
	n, err := p.node()
	if err != nil {
		return err
	}
	if err := p.comment(n); err != nil {
		return err
	}
	if p.rest != "" {
		return fmt.Errorf("%q is left over", p.rest)
	}
	return nil
}

func (p *parser) node() (*Node, error) {
	if rest, ok := strings.CutPrefix(p.rest, "return "); ok {
		p.rest = rest
		p.bare = true
		value, err := p.arg(0)
		p.bare = false
		if err != nil {
			return nil, err
		}
		return p.graph.Output(value), nil
	}
	if err := p.expect("%"); err != nil {
		return nil, err
	}
	n := &Node{Name: p.word()}
	if err := p.expect(" : [num_users="); err != nil {
		return nil, err
	}
	users, err := p.number()
	if err != nil {
		return nil, err
	}
	if err := p.expect("] = "); err != nil {
		return nil, err
	}
	var known bool
	op := p.word()
	if n.Op, known = opByName[op]; !known || n.Op == Output {
		return nil, fmt.Errorf("unknown kind %q", op)
	}
	if err := p.target(n); err != nil {
		return nil, err
	}
	args, kwargs, err := p.operands(n.Op)
	if err != nil {
		return nil, err
	}
	if !p.graph.names.claim(n.Name) {
		return nil, fmt.Errorf("the name %q is taken", n.Name)
	}
	p.byName[n.Name] = n
	p.users[n] = users
	return p.graph.insert(n, args, kwargs), nil
}

func (p *parser) target(n *Node) error {
	if err := p.expect("[target="); err != nil {
		return err
	}
	text, err := p.text(']')
	if err != nil {
		return err
	}
	n.Target = Target{NoPool, text}
	if p.pool && n.Op == CallFunction {
		if err := p.expect("@"); err != nil {
			return err
		}
		if n.Target.Pool, err = p.number(); err != nil {
			return err
		}
	}
	return p.expect("]")
}

func (p *parser) operands(op OpKind) ([]Arg, []Kwarg, error) {
	if op == Placeholder || op == GetAttr {
		return nil, nil, nil
	}
	if err := p.expect("(args = ("); err != nil {
		return nil, nil, err
	}
	args, err := p.items(')')
	if err != nil {
		return nil, nil, err
	}
	if err := p.expect(", kwargs = {"); err != nil {
		return nil, nil, err
	}
	var kwargs []Kwarg
	for !strings.HasPrefix(p.rest, "}") {
		if len(kwargs) > 0 {
			if err := p.expect(", "); err != nil {
				return nil, nil, err
			}
		}
		name, err := p.text(':')
		if err != nil {
			return nil, nil, err
		}
		if err := p.expect(": "); err != nil {
			return nil, nil, err
		}
		value, err := p.arg('}')
		if err != nil {
			return nil, nil, err
		}
		kwargs = append(kwargs, Kwarg{name, value})
	}
	return args, kwargs, p.expect("})")
}

// arg reads one operand. end is the byte that closes the enclosing construct.
func (p *parser) arg(end byte) (Arg, error) {
	if strings.HasPrefix(p.rest, "%") && !p.bare {
		p.rest = p.rest[1:]
		return p.reference(p.word())
	}
	length, ok := scanText(p.rest, end)
	if !ok {
		return nil, fmt.Errorf("%q has no end", p.rest)
	}
	raw, start := p.rest[:length], p.rest
	if strings.HasPrefix(p.rest[length:], "@") {
		return p.literal(end)
	}
	if p.bare && p.byName[raw] != nil {
		p.rest = p.rest[length:]
		return p.reference(raw)
	}
	value, err := p.structure(raw)
	switch {
	case p.pool:
		return value, err
	case err == nil && value != nil:
		// (1) and {1, 2} are constants: a list, tuple, dict or slice would print differently.
		if pr := (printer{bare: p.bare}); pr.reprint(value) == raw {
			return value, nil
		}
	}
	p.rest = start
	return p.literal(end)
}

func (p *printer) reprint(a Arg) string {
	p.arg(a, 0)
	return p.String()
}

func (p *parser) reference(name string) (Arg, error) {
	n := p.byName[name]
	if n == nil {
		return nil, fmt.Errorf("no node %%%s before", name)
	}
	return n, nil
}

func (p *parser) literal(end byte) (Arg, error) {
	text, err := p.text(end)
	if err != nil {
		return nil, err
	}
	lit := Lit{NoPool, text}
	if p.pool {
		if err := p.expect("@"); err != nil {
			return nil, err
		}
		if lit.Pool, err = p.number(); err != nil {
			return nil, err
		}
	}
	return lit, nil
}

// structure reads a list, tuple, dict or slice. It returns nil without an error for any other text that has no pool
// index.
func (p *parser) structure(raw string) (Arg, error) {
	rest, open := p.rest, ""
	for _, o := range []string{"[", "(", "{", "slice("} {
		if strings.HasPrefix(raw, o) {
			open = o
		}
	}
	p.rest = rest[len(open):]
	switch open {
	case "[":
		items, err := p.items(']')
		return List{items}, err
	case "(":
		items, err := p.items(')')
		return Tuple{Items: items}, err
	case "slice(":
		items, err := p.items(')')
		if err == nil && len(items) != 3 {
			err = fmt.Errorf("a slice of %d", len(items))
		}
		if err != nil {
			return nil, err
		}
		return Slice{items[0], items[1], items[2]}, nil
	case "{":
		return p.dict()
	}
	if p.pool {
		return nil, fmt.Errorf("%q is neither a node nor a constant of the pool", raw)
	}
	return nil, nil
}

// items reads operands up to and including end.
func (p *parser) items(end byte) ([]Arg, error) {
	var items []Arg
	for {
		if len(p.rest) > 0 && p.rest[0] == end {
			p.rest = p.rest[1:]
			return items, nil
		}
		if len(items) > 0 {
			if err := p.expect(", "); err != nil {
				return nil, err
			}
		}
		item, err := p.arg(end)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		if end == ')' && len(items) == 1 && strings.HasPrefix(p.rest, ",)") {
			p.rest = p.rest[1:]
		}
	}
}

func (p *parser) dict() (Arg, error) {
	var d Dict
	for !strings.HasPrefix(p.rest, "}") {
		if len(d.Keys) > 0 {
			if err := p.expect(", "); err != nil {
				return nil, err
			}
		}
		key, err := p.arg(':')
		if err != nil {
			return nil, err
		}
		if err := p.expect(": "); err != nil {
			return nil, err
		}
		value, err := p.arg('}')
		if err != nil {
			return nil, err
		}
		d.Keys, d.Values = append(d.Keys, key), append(d.Values, value)
	}
	return d, p.expect("}")
}

// text reads the text of a constant or target.
func (p *parser) text(end byte) (string, error) {
	if strings.HasPrefix(p.rest, "$") {
		quoted, err := strconv.QuotedPrefix(p.rest[1:])
		if err != nil {
			return "", fmt.Errorf("%q: %w", p.rest, err)
		}
		p.rest = p.rest[1+len(quoted):]
		return strconv.Unquote(quoted)
	}
	length, ok := scanText(p.rest, end)
	if !ok || length == 0 {
		return "", fmt.Errorf("%q has no end", p.rest)
	}
	text := p.rest[:length]
	p.rest = p.rest[length:]
	return text, nil
}

var closers = map[byte]byte{'(': ')', '[': ']', '{': '}'}

// scanText finds the end of a text: the end of the line or, outside brackets and quotes, the place before a comma, an
// @, the byte end, or two spaces and a #. ok is false for mismatched brackets and unclosed quotes.
func scanText(s string, end byte) (length int, ok bool) {
	var open []byte
	for i := 0; i < len(s); i++ {
		c := s[i]
		if len(open) == 0 && (c == ',' || c == '@' || c == end || strings.HasPrefix(s[i:], "  #")) {
			return i, true
		}
		switch c {
		case '\'', '"':
			for i++; i < len(s) && s[i] != c; i++ {
				if s[i] == '\\' {
					i++
				}
			}
			if i >= len(s) {
				return 0, false
			}
		case '(', '[', '{':
			open = append(open, closers[c])
		case ')', ']', '}':
			if len(open) == 0 || open[len(open)-1] != c {
				return 0, false
			}
			open = open[:len(open)-1]
		}
	}
	return len(s), len(open) == 0
}

func (p *parser) comment(n *Node) error {
	if !strings.HasPrefix(p.rest, "  #") {
		return nil
	}
	p.rest = p.rest[len("  #"):]
	if rest, ok := strings.CutPrefix(p.rest, " inplace"); ok {
		n.Inplace, p.rest = true, rest
	}
	for p.rest != "" {
		var f Frame
		var err error
		for _, field := range []*string{&f.Name, &f.File} {
			if err = p.expect(" "); err != nil {
				return err
			}
			quoted, err := strconv.QuotedPrefix(p.rest)
			if err != nil {
				return fmt.Errorf("stack %q: %w", p.rest, err)
			}
			p.rest = p.rest[len(quoted):]
			if *field, err = strconv.Unquote(quoted); err != nil {
				return err
			}
		}
		if err = p.expect(":"); err != nil {
			return err
		}
		if f.Line, err = p.number(); err != nil {
			return err
		}
		n.Stack = append(n.Stack, f)
	}
	return nil
}

func (p *parser) expect(s string) error {
	rest, ok := strings.CutPrefix(p.rest, s)
	if !ok {
		return fmt.Errorf("%q expected at %q", s, p.rest)
	}
	p.rest = rest
	return nil
}

func (p *parser) word() string {
	i := 0
	for i < len(p.rest) && isWord(p.rest[i]) {
		i++
	}
	word := p.rest[:i]
	p.rest = p.rest[i:]
	return word
}

func (p *parser) number() (int, error) {
	i := 0
	for i < len(p.rest) && (isDigit(p.rest[i]) || i == 0 && p.rest[0] == '-') {
		i++
	}
	n, err := strconv.Atoi(p.rest[:i])
	p.rest = p.rest[i:]
	return n, err
}
