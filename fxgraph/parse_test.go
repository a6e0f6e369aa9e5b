package fxgraph

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// flat turns operands into comparable data. A node becomes its position.
func flat(a Arg) any {
	each := func(items []Arg) []any {
		out := []any{}
		for _, it := range items {
			out = append(out, flat(it))
		}
		return out
	}
	switch x := a.(type) {
	case *Node:
		return x.Index
	case List:
		return []any{"list", each(x.Items)}
	case Tuple:
		return []any{"tuple", each(x.Items)}
	case Dict:
		return []any{"dict", each(x.Keys), each(x.Values)}
	case Slice:
		return []any{"slice", flat(x.Start), flat(x.Stop), flat(x.Step)}
	}
	return a
}

func requireEqual(t require.TestingT, want, got *Graph) {
	require.Len(t, got.Nodes(), len(want.Nodes()))
	for i, w := range want.Nodes() {
		g := got.Nodes()[i]
		require.Equal(t, []any{w.Op, w.Target, w.Inplace, w.NumUsers()}, []any{g.Op, g.Target, g.Inplace, g.NumUsers()},
			w.Name)
		if w.Op != Output { // an output's name is not printed
			require.Equal(t, w.Name, g.Name)
		}
		require.Equal(t, len(w.Stack), len(g.Stack))
		for k := range w.Stack {
			require.Equal(t, w.Stack[k], g.Stack[k])
		}
		require.Equal(t, flat(List{w.Args}), flat(List{g.Args}), w.Name)
		require.Equal(t, len(w.Kwargs), len(g.Kwargs))
		for k := range w.Kwargs {
			require.Equal(t, w.Kwargs[k].Name, g.Kwargs[k].Name)
			require.Equal(t, flat(w.Kwargs[k].Value), flat(g.Kwargs[k].Value))
		}
	}
}

func TestBothFormsReadBack(t *testing.T) {
	g := sample()
	again, err := Parse(g.Dump())
	require.NoError(t, err)
	requireEqual(t, g, again)
	require.Equal(t, g.Dump(), again.Dump())
	again, err = Parse(g.String())
	require.NoError(t, err)
	require.Equal(t, g.String(), again.String())
}

func TestParseNamesTheLineThatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":             "line 1",
		"graph():\n%x": "line 2: not indented",
		"graph():\n    %x : [num_users=1] = placeholder[target=x]":                                                 "has 0",
		"graph():\n    %x : [num_users=0] = nonsense[target=x]":                                                    `unknown kind "nonsense"`,
		"graph():\n    %x : [num_users=0] = output[target=x]":                                                      `unknown kind "output"`,
		"graph():\n    return (%x,)\n    return 1":                                                                 "not the last",
		"graph():\n    %a : [num_users=0] = call_method[target=m](args = (%b,), kwargs = {})":                      "line 2: no node %b",
		"graph():\n    %a : [num_users=0] = call_method[target=m](args = (1, kwargs = {})":                         "expected",
		"graph():\n    %x : [num_users=0] = placeholder[target=x] more":                                            "left over",
		"graph(pool):\n    %a : [num_users=0] = call_method[target=m](args = (1,), kwargs = {})":                   "neither a node nor a constant",
		"graph(pool):\n    %a : [num_users=0] = call_function[target=m](args = (1@1,), kwargs = {})":               `"@" expected`,
		"graph():\n    %x : [num_users=0] = placeholder[target=x]\n    %x : [num_users=0] = placeholder[target=x]": "line 3: the name",
	} {
		_, err := Parse(text)
		assert.ErrorContains(t, err, want, text)
	}
}

// randomGraph builds a graph from random decisions.
func randomGraph(r *rand.Rand) *Graph {
	g := NewGraph()
	texts := []string{"1", "None", "'x, y'", "(1, 2)", "[1]", "{1: 2}", "{1, 2}", "slice(0, 1, None)", "torch.float32",
		"open(", "a@3", "\"q'\"",
		"device(type='cpu')", "x", "add", " pad ", "", "%x", "$y", "a: b", "<object at 0x1>", "1j", "b'\\''", "tab\t",
		"x  # y", "é", "\n"}
	text := func() string { return texts[r.Intn(len(texts))] }
	var arg func(depth int) Arg
	items := func(depth int) []Arg {
		var out []Arg
		for range r.Intn(4) {
			out = append(out, arg(depth-1))
		}
		return out
	}
	lit := func() Arg { return Lit{r.Intn(50) - 1, text()} }
	arg = func(depth int) Arg {
		kind := r.Intn(7)
		if depth == 0 {
			kind %= 2
		}
		switch kind {
		case 0:
			if len(g.nodes) > 0 {
				return g.nodes[r.Intn(len(g.nodes))]
			}
		case 2:
			return List{items(depth)}
		case 3:
			return Tuple{Items: items(depth)}
		case 4:
			d := Dict{Values: items(depth)}
			for range d.Values {
				d.Keys = append(d.Keys, lit())
			}
			return d
		case 5:
			return Slice{arg(0), arg(0), arg(0)}
		}
		return lit()
	}
	name := func() string {
		if s := text(); s != "" {
			return s
		}
		return "m"
	}
	for range r.Intn(8) {
		var n *Node
		var kwargs []Kwarg
		for i := range r.Intn(3) {
			kwargs = append(kwargs, Kwarg{fmt.Sprintf("%s%d", text(), i), arg(2)})
		}
		switch r.Intn(5) {
		case 0:
			n = g.Placeholder(name())
		case 1:
			n = g.GetAttr(name())
		case 2:
			n = g.CallFunction(Target{r.Intn(9) - 1, name()}, items(3), kwargs)
		case 3:
			n = g.CallMethod(name(), append([]Arg{arg(2)}, items(3)...), kwargs)
		default:
			n = g.CallModule(name(), items(3), kwargs)
		}
		n.Inplace = r.Intn(4) == 0
		for range r.Intn(2) {
			n.Stack = append(n.Stack, Frame{Name: text(), File: text(), Line: r.Intn(100)})
		}
	}
	if r.Intn(3) > 0 {
		g.Output(arg(3))
	}
	return g
}

func TestRandomGraphsReadBack(t *testing.T) {
	for seed := range 3000 {
		roundTrip(t, randomGraph(rand.New(rand.NewSource(int64(seed)))))
	}
}

func roundTrip(t *testing.T, g *Graph) {
	t.Helper()
	require.NoError(t, g.Lint())
	again, err := Parse(g.Dump())
	require.NoError(t, err, g.Dump())
	requireEqual(t, g, again)
	plain, err := Parse(g.String())
	require.NoError(t, err, g.String())
	require.Equal(t, g.String(), plain.String())
}

func FuzzGraphRoundTrip(f *testing.F) {
	f.Add(int64(1))
	f.Fuzz(func(t *testing.T, seed int64) { roundTrip(t, randomGraph(rand.New(rand.NewSource(seed)))) })
}

// FuzzParse checks that Parse either rejects a text or returns a valid graph whose text is a fixed point.
func FuzzParse(f *testing.F) {
	f.Add(sample().String())
	f.Add(sample().Dump())
	f.Fuzz(func(t *testing.T, text string) {
		g, err := Parse(text)
		if err != nil {
			return
		}
		roundTrip(t, g)
	})
}
