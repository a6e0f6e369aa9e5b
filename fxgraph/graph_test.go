package fxgraph

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sample returns a graph with every kind of node and operand.
func sample() *Graph {
	g := NewGraph()
	x := g.Placeholder("x")
	w := g.GetAttr("layers.0.weight")
	add := g.CallFunction(Target{0, "operator.add"}, []Arg{x, Lit{1, "1"}}, nil)
	y := g.Placeholder("Y")
	relu := g.CallFunction(Target{2, "torch.nn.functional.relu"}, []Arg{add}, []Kwarg{{"inplace", Lit{3, "False"}}})
	relu.Stack = []Frame{{Name: "inner", File: "/tmp/a b.py", Line: 3}, {Name: "f", File: "f.py", Line: 12}}
	cat := g.CallFunction(Target{4, "torch.cat"}, []Arg{List{[]Arg{relu, add, y}}}, []Kwarg{{"dim", Lit{5, "-1"}}})
	item := g.CallFunction(Target{6, "operator.getitem"}, []Arg{cat, Tuple{Items: []Arg{
		Slice{Lit{7, "None"}, Lit{8, "2"}, Lit{7, "None"}}, Lit{9, "Ellipsis"}, Lit{10, "'a, (b'"}, Lit{11, "(1, 2)"},
	}}}, nil)
	m := g.CallMethod("add_", []Arg{item, w}, []Kwarg{{"out", Dict{[]Arg{Lit{12, "'k'"}}, []Arg{x}}}})
	m.Inplace = true
	l := g.CallModule("layers.0", []Arg{m, Tuple{Items: []Arg{x}}, Tuple{}, List{}, Dict{}}, nil)
	odd := g.CallFunction(Target{13, "<lambda>"}, []Arg{l, Lit{14, "open("}, Lit{15, "{1, 2}"}, Lit{16, "a@b"},
		Lit{17, ""}}, nil)
	g.Output(Tuple{Items: []Arg{l, odd}})
	return g
}

func TestTheSampleIsValidAndPrintsAsRecorded(t *testing.T) {
	g := sample()
	require.NoError(t, g.Lint())
	golden(t, "sample.txt", g.String())
	golden(t, "sample_pool.txt", g.Dump())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestNamesAreThoseThatFXGives(t *testing.T) {
	data, err := os.ReadFile("testdata/names.txt")
	require.NoError(t, err)
	for _, group := range strings.Split(string(data), "\n\n") {
		g := NewGraph()
		for _, line := range strings.Split(strings.TrimSuffix(group, "\n"), "\n") {
			target, want, ok := strings.Cut(line, "\t")
			if !ok {
				continue
			}
			require.Equal(t, want, g.Placeholder(target).Name, "target %q in %q", target, group)
		}
	}
}

func TestInputsHaveTargetsOfTheirOwn(t *testing.T) {
	g := NewGraph()
	targets := map[string]bool{}
	for _, name := range []string{"a", "a", "a_1", "a", "class", "class", "a_1"} {
		n := g.Placeholder(name)
		assert.False(t, targets[n.Target.Text], n.Target.Text)
		targets[n.Target.Text] = true
	}
	assert.Equal(t, "a", g.Nodes()[0].Target.Text)
}

func TestCallFunctionIsNamedAfterTheLastPartOfItsTarget(t *testing.T) {
	for target, want := range map[string]string{
		"operator.add": "add", "torch.nn.functional.relu": "relu", "relu": "relu", "max": "max_1", "torch.max": "max_1",
		"torch.ops.aten.add.Tensor": "add_tensor", "torch.ops.aten.add": "add", "f.<lambda>": "_lambda_",
	} {
		g := NewGraph()
		assert.Equal(t, want, g.CallFunction(Target{0, target}, nil, nil).Name, target)
	}
}

func TestUsersAreCountedOncePerNode(t *testing.T) {
	g := NewGraph()
	x := g.Placeholder("x")
	y := g.CallFunction(Target{0, "operator.add"}, []Arg{x, x}, nil)
	require.Equal(t, 1, x.NumUsers())
	require.True(t, x.UsedBy(y))
	g.SetArgs(y, []Arg{x, Lit{1, "1"}}, nil)
	require.Equal(t, 1, x.NumUsers())
	g.SetArgs(y, nil, nil)
	require.Zero(t, x.NumUsers())
	require.NoError(t, g.Lint())
}

func TestDeadCodeGoesButWhatHasAnEffectStays(t *testing.T) {
	g := NewGraph()
	x := g.Placeholder("x")
	unused := g.Placeholder("unused")
	a := g.CallFunction(Target{0, "torch.sin"}, []Arg{x}, nil)
	b := g.CallFunction(Target{0, "torch.sin"}, []Arg{a}, nil)
	kept := g.CallMethod("add_", []Arg{x, Lit{2, "1"}}, nil)
	kept.Inplace = true
	random := g.CallFunction(Target{3, "torch.rand"}, []Arg{Lit{4, "2"}}, nil)
	c := g.CallFunction(Target{5, "torch.cos"}, []Arg{x}, nil)
	out := g.Output(Tuple{Items: []Arg{c}})

	erased := g.EliminateDeadCode(func(n *Node) bool { return n.Target.Text == "torch.rand" })
	require.Equal(t, 2, erased)
	require.Equal(t, []*Node{x, unused, kept, random, c, out}, g.Nodes())
	require.Equal(t, -1, a.Index)
	require.Equal(t, -1, b.Index)
	require.NoError(t, g.Lint())
	require.Zero(t, g.EliminateDeadCode(func(*Node) bool { return true }))
	require.Equal(t, "sin_2", g.CallFunction(Target{0, "torch.sin"}, []Arg{x}, nil).Name, "names stay taken")
}

func TestPlaceholdersComeFirstInTheirOrder(t *testing.T) {
	g := sample()
	g.PlaceholdersFirst()
	require.NoError(t, g.Lint())
	require.Equal(t, "x", g.Nodes()[0].Name)
	require.Equal(t, "y", g.Nodes()[1].Name)
	require.Equal(t, "layers_0_weight", g.Nodes()[2].Name)
}

func TestReplaceAllUsesReachesNestedOperands(t *testing.T) {
	g := sample()
	x := g.Nodes()[0]
	z := g.Placeholder("z")
	nodes := g.Nodes() // the node moves to the front, so that it comes before its new users
	copy(nodes[1:], nodes[:len(nodes)-1])
	nodes[0] = z
	for i, n := range nodes {
		n.Index = i
	}
	require.Equal(t, 3, g.ReplaceAllUsesWith(x, z))
	require.Zero(t, x.NumUsers())
	require.NoError(t, g.Lint())
	require.NoError(t, g.Erase(x))
	require.Error(t, g.Erase(x))
	require.ErrorContains(t, g.Erase(z), "3 users")
}

func TestLintNamesWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		break_ func(*Graph)
		text   string
	}{
		"operand of another graph": {func(g *Graph) { g.SetArgs(g.nodes[2], []Arg{NewGraph().Placeholder("x")}, nil) },
			"not in the graph"},
		"operand comes later":   {func(g *Graph) { g.SetArgs(g.nodes[2], []Arg{g.nodes[5]}, nil) }, "comes later"},
		"wrong index":           {func(g *Graph) { g.nodes[2].Index = 7 }, "index 7"},
		"name taken":            {func(g *Graph) { g.nodes[2].Name = "x" }, "taken"},
		"name is no identifier": {func(g *Graph) { g.nodes[2].Name = "a b" }, "no identifier"},
		"output in the middle":  {func(g *Graph) { g.Placeholder("late") }, "not the last"},
		"users not kept":        {func(g *Graph) { g.nodes[2].Args = []Arg{Lit{0, "0"}} }, "users recorded"},
		"unknown operand type":  {func(g *Graph) { g.SetArgs(g.nodes[2], []Arg{3}, nil) }, "type int"},
		"nil slice bound":       {func(g *Graph) { g.SetArgs(g.nodes[2], []Arg{Slice{}}, nil) }, "type <nil>"},
		"nil node":              {func(g *Graph) { g.nodes[2].Args = []Arg{(*Node)(nil)} }, "nil node"},
		"keyword twice": {func(g *Graph) {
			g.SetArgs(g.nodes[2], nil, []Kwarg{{"a", Lit{0, "0"}}, {"a", Lit{0, "0"}}})
		}, "twice"},
		"dict of odd length": {func(g *Graph) { g.SetArgs(g.nodes[2], []Arg{Dict{Keys: []Arg{Lit{0, "0"}}}}, nil) },
			"1 keys"},
		"node in a dict key": {func(g *Graph) {
			g.SetArgs(g.nodes[2], []Arg{Dict{[]Arg{g.nodes[0]}, []Arg{Lit{0, "0"}}}}, nil)
		}, "dict key"},
		"method without self":  {func(g *Graph) { g.SetArgs(g.nodes[7], nil, nil) }, "without self"},
		"no target":            {func(g *Graph) { g.nodes[2].Target.Text = "" }, "no target"},
		"input with operands":  {func(g *Graph) { g.SetArgs(g.nodes[3], []Arg{g.nodes[0]}, nil) }, "takes no operands"},
		"kind that is not one": {func(g *Graph) { g.nodes[2].Op = 99 }, "unknown kind"},
	} {
		t.Run(name, func(t *testing.T) {
			g := sample()
			c.break_(g)
			require.ErrorContains(t, g.Lint(), c.text)
		})
	}
}
