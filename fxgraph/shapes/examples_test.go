package shapes

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godynamo/godynamo/fxgraph/sym"
)

// testdata/examples.txt lists calls and torch's results (scripts/shape_examples.py). The rules must give the same
// results.

type example struct {
	line           int
	name           string // of a function, or of a method
	method         bool
	args           []Value
	kwargs         []Kwarg
	text, expected string
}

func examples(t *testing.T) []example {
	text, err := os.ReadFile("testdata/examples.txt")
	require.NoError(t, err)
	var out []example
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		call, expected, ok := strings.Cut(line, " = ")
		require.True(t, ok, "line %d: %s", i+1, line)
		p := &parser{rest: call}
		e := p.call()
		require.Empty(t, p.rest, "line %d: %s", i+1, line)
		e.line, e.text, e.expected = i+1, call, expected
		out = append(out, e)
	}
	return out
}

func value(n Int) int64 { v, _ := n.Const(); return v }

func (e example) result() (Value, bool) {
	x := Context{DefaultDtype: torchFloat32, CPU: "cpu", Env: sym.NewEnv(), Fresh: true, Untraced: true}
	if e.method {
		return Method(x, e.name, e.args, e.kwargs)
	}
	return Function(x, e.name, e.args, e.kwargs)
}

func TestExamples(t *testing.T) {
	for _, e := range examples(t) {
		v, ok := e.result()
		found := "nothing"
		if ok {
			found = text(v)
		}
		assert.Regexp(t, "^"+strings.ReplaceAll(regexp.QuoteMeta(found), `\?`, "[0-9]+")+"$", e.expected,
			"line %d: %s", e.line, e.text)
	}
}

func TestEachRuleHasAnExample(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range examples(t) {
		seen[e.name] = true
	}
	for name := range functions {
		if strings.HasPrefix(name, "torch.ops.torchvision.") || strings.HasPrefix(name, "torch.ops.transformers.") {
			continue // tested by TestRegions and TestGroupedProduct
		}
		if strings.HasPrefix(name, "torch.func.") {
			continue // our own operations, tested by TestSamples
		}
		if name == "torch.slice" { // the graph's name of torch.ops.aten.slice
			name = "torch.ops.aten.slice.Tensor"
		}
		assert.True(t, seen[name] || inPlace[name],
			"%s: add a line to testdata/examples.txt and run scripts/shape_examples.py", name)
	}
	for name := range methods {
		assert.True(t, seen[name] || inPlace[name],
			"the method %s: add a line to testdata/examples.txt and run scripts/shape_examples.py", name)
	}
}

func TestChangesInPlaceReturnTheirOperand(t *testing.T) {
	operand := &Tensor{Sizes(2, 3), torchFloat32, "cpu"}
	for name := range inPlace {
		if functions[name] != nil && strings.HasSuffix(name, "_") {
			v, ok := Function(Context{}, name, []Value{operand}, nil)
			assert.True(t, ok && v == Value(operand), name)
		}
	}
}

// text formats a result as in the examples. A size that depends on data is printed as "?".
func text(v Value) string {
	switch v := v.(type) {
	case *Tensor:
		sizes := "()"
		if len(v.Shape) > 0 {
			sizes = ""
			for i, n := range v.Shape {
				if i > 0 {
					sizes += ", "
				}
				if _, known := n.Const(); known {
					sizes += sym.NewEnv().Text(n)
				} else {
					sizes += "?" // depends on data
				}
			}
		}
		return string(v.Dtype) + "[" + sizes + "]"
	case List:
		parts := make([]string, len(v))
		for i, it := range v {
			parts[i] = text(it)
		}
		return "(" + strings.Join(parts, ", ") + ")"
	case None:
		return "None"
	case Bool:
		return map[Bool]string{true: "True", false: "False"}[v]
	case Dtype:
		return "torch." + string(v)
	case Device:
		return "device(type='" + string(v) + "')"
	case Int:
		return sym.NewEnv().Text(v.Size)
	}
	return fmt.Sprint(v)
}

// parser parses the Python expressions of the examples: calls, tensors, numbers, strings, tuples, lists, slices,
// ..., dtypes.
type parser struct{ rest string }

func (p *parser) skip(s string) bool {
	p.rest = strings.TrimLeft(p.rest, " ")
	if !strings.HasPrefix(p.rest, s) {
		return false
	}
	p.rest = p.rest[len(s):]
	return true
}

func (p *parser) must(s string) {
	if !p.skip(s) {
		panic(fmt.Sprintf("%q expected at %q", s, p.rest))
	}
}

// word reads letters, digits, "_" and ".".
func (p *parser) word() string {
	p.rest = strings.TrimLeft(p.rest, " ")
	i := 0
	for i < len(p.rest) && (p.rest[i] == '_' || p.rest[i] == '.' || p.rest[i] >= '0' && p.rest[i] <= '9' ||
		p.rest[i]|0x20 >= 'a' && p.rest[i]|0x20 <= 'z') {
		i++
	}
	w := p.rest[:i]
	p.rest = p.rest[i:]
	return w
}

func (p *parser) call() (e example) {
	if first := p.rest; kinds[Dtype(first[:strings.IndexAny(first, "[.(")])] != unknownKind {
		e.args, e.method = []Value{p.value()}, true
		p.must(".")
	}
	e.name = p.word()
	p.must("(")
	for !p.skip(")") {
		name, _, named := strings.Cut(p.rest, "=")
		if at := strings.IndexAny(p.rest, ",()[]'"); named && len(name) < at || named && at < 0 {
			p.rest = strings.TrimLeft(p.rest, " ")
			name = p.word()
			p.must("=")
			e.kwargs = append(e.kwargs, Kwarg{name, p.value()})
		} else {
			e.args = append(e.args, p.value())
		}
		p.skip(",")
	}
	return e
}

func (p *parser) items(end string) (out List) {
	out = List{}
	for !p.skip(end) {
		out = append(out, p.value())
		p.skip(",")
	}
	return out
}

func (p *parser) value() Value {
	switch {
	case p.skip("..."):
		return Ellipsis{}
	case p.skip("("):
		return p.items(")")
	case p.skip("["):
		return p.items("]")
	case p.skip("'"):
		s, rest, _ := strings.Cut(p.rest, "'")
		p.rest = rest
		return Str(s)
	case p.skip("-"):
		switch n := p.value().(type) {
		case Int:
			return Constant(-int(value(n)))
		case Float:
			return -n
		}
		panic("a number expected after -")
	}
	w := p.word()
	switch w {
	case "None":
		return None{}
	case "True", "False":
		return Bool(w == "True")
	case "slice":
		p.must("(")
		parts := p.items(")")
		return Slice{parts[0], parts[1], parts[2]}
	case "torch.device":
		p.must("(")
		return Device(p.items(")")[0].(Str))
	}
	if d, ok := strings.CutPrefix(w, "torch."); ok {
		return Dtype(d)
	}
	if Dtype(w).Known() {
		p.must("[")
		t := &Tensor{nil, Dtype(w), "cpu"}
		for _, n := range p.items("]") {
			if i, ok := n.(Int); ok {
				t.Shape = append(t.Shape, i.Size)
			}
		}
		return t
	}
	if i, err := strconv.Atoi(w); err == nil {
		return Constant(i)
	}
	f, err := strconv.ParseFloat(w, 64)
	if err != nil {
		panic(fmt.Sprintf("no value: %q, before %q", w, p.rest))
	}
	return Float(f)
}
