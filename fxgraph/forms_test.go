package fxgraph

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func small() *Graph {
	g := NewGraph()
	x := g.Placeholder("x")
	two := Lit{1, "2"}
	add := g.CallFunction(Target{2, "operator.add"}, []Arg{x, two}, nil)
	sum := g.CallMethod("sum", []Arg{add}, []Kwarg{{"dim", List{[]Arg{Lit{3, "0"}}}}})
	cat := g.CallFunction(Target{4, "torch.cat"}, []Arg{Tuple{Items: []Arg{add}}}, []Kwarg{{"dim", Lit{3, "0"}}})
	item := g.CallFunction(Target{5, "operator.getitem"},
		[]Arg{cat, Slice{Lit{NoPool, "None"}, two, Lit{NoPool, "None"}}}, nil)
	g.Output(Tuple{Items: []Arg{sum, item}})
	return g
}

func TestCodeReadsAsPython(t *testing.T) {
	assert.Equal(t, `def forward(self, x):
    add = x + 2
    sum_1 = add.sum(dim = [0])
    cat = torch.cat((add,), dim = 0)
    getitem = cat[slice(None, 2, None)]
    return (sum_1, getitem)
`, small().Code())
	assert.Equal(t, "def forward(self):\n    pass\n", NewGraph().Code())
}

func TestTableHasARowForEachNode(t *testing.T) {
	lines := strings.Split(strings.TrimRight(small().Table(), "\n"), "\n")
	assert.Len(t, lines, 2+6)
	assert.Equal(t, []string{"opcode", "name", "target", "args", "kwargs"}, strings.Fields(lines[0]))
	assert.Equal(t, []string{"placeholder", "x", "x", "()", "{}"}, strings.Fields(lines[2]))
	assert.Equal(t, "call_method    sum_1    sum               (add,)                       {dim: [0]}", lines[4])
}
