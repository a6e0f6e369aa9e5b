package translate

import (
	"fmt"
	"sort"
	"strings"

	"github.com/godynamo/godynamo/bytecode/opcode"
)

// tracebackTable maps the transformed code to user frames. Each chain (the user's stack at an instruction) is listed
// once, even if several rows and operations refer to it.
type tracebackTable struct {
	rows       []TracebackRow
	chains     []*chain
	operations []Operation
	index      map[*chain]int
}

func (t *tracebackTable) chain(ch *chain) int {
	k, ok := t.index[ch]
	if !ok {
		k = len(t.chains)
		t.index[ch] = k
		t.chains = append(t.chains, ch)
	}
	return k
}

// tracebackTable builds the traceback table from the marks. Lower must have set the offsets of the instructions. The
// written code may contain additional NOPs, and a PUSH_NULL may have moved to after its callable.
func (c *Codegen) tracebackTable() *tracebackTable {
	at := func(i int) int {
		if i >= len(c.list) {
			return 1 << 30
		}
		offset := c.list[i].Offset
		if c.list[i].Op == opcode.PUSH_NULL && i+1 < len(c.list) {
			offset = min(offset, c.list[i+1].Offset)
		}
		return offset
	}
	t := &tracebackTable{index: map[*chain]int{}}
	graph := c.numberOperations()
	for i, m := range c.marks {
		end := 1 << 30
		if i+1 < len(c.marks) {
			end = at(c.marks[i+1].start)
		}
		t.rows = append(t.rows, TracebackRow{
			Start: at(m.start), End: end, Chain: t.chain(m.chain), Drop: m.drop, Graph: m.graph, Protected: m.protected,
		})
		if row := &t.rows[len(t.rows)-1]; m.graph && graph != nil {
			row.Place = t.chain(graph)
		} else {
			row.Place = row.Chain
		}
	}
	sort.Slice(t.rows, func(a, b int) bool { return t.rows[a].Start < t.rows[b].Start })
	if !c.out.backend.Inline() {
		for _, e := range c.out.events {
			if e.node != nil && e.chain != nil {
				t.operations = append(t.operations, Operation{Name: e.node.Name, Chain: t.chain(e.chain)})
			}
		}
	}
	for _, b := range c.out.inside {
		for _, e := range b.events {
			if e.chain != nil && !b.replayed {
				t.operations = append(t.operations,
					Operation{Name: e.node.Name, Chain: t.chain(e.chain), Outside: b.outside})
			}
		}
	}
	return t
}

// numberOperations stores in each operation's chain how many times the instruction has run before. In a loop, an
// instruction may run several times, and each run has its own chain. numberOperations returns the chain that represents
// the whole graph: that of the last operation inside a `try` or `with` block or, if there is none, that of the last
// operation.
func (c *Codegen) numberOperations() (graph *chain) {
	runs := map[string]int{}
	handled := false
	var last *chain
	for _, e := range c.out.events {
		if e.node == nil || e.chain == nil {
			continue
		}
		key, inBlock := e.chain.path()
		if inBlock || !handled {
			graph, handled = e.chain, inBlock
		}
		if e.chain != last {
			e.chain.nth = runs[key]
			runs[key]++
			last = e.chain
		}
		e.chain.done = e.chain.done || c.out.stays(e)
	}
	return graph
}

// path returns a key for the chain's position. inBlock reports whether the position is inside a `try` or `with` block
// of the user's code.
func (c *chain) path() (key string, inBlock bool) {
	var b strings.Builder
	for ; c != nil; c = c.parent {
		fmt.Fprintf(&b, "%p %d ", c.d.object.Ptr(), c.inst.Offset)
		inBlock = inBlock || c.inst.Block() != nil
	}
	return b.String(), inBlock
}
