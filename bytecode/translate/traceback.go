package translate

import (
	"fmt"
	"sort"
	"strings"

	"github.com/godynamo/godynamo/bytecode"
)

// tracebackTable says which user frames the transformed code stands for. Chains are listed once, however many rows and operations
// have them.
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

// tracebackTable turns marks into the traceback table, once Lower has given the instructions their offsets.
func (c *Codegen) tracebackTable(code *bytecode.Code) *tracebackTable {
	prologue := len(code.Instructions) - len(c.list)
	at := func(i int) int {
		if i += prologue; i < len(code.Instructions) {
			return code.Instructions[i].Offset
		}
		return 1 << 30
	}
	t := &tracebackTable{index: map[*chain]int{}}
	places := c.places()
	for i, m := range c.marks {
		end := 1 << 30
		if i+1 < len(c.marks) {
			end = at(c.marks[i+1].start)
		}
		t.rows = append(t.rows, TracebackRow{
			Start: at(m.start), End: end, Chain: t.chain(m.chain), Drop: m.drop, Graph: m.graph, Protected: m.protected,
			Place: t.chain(places.of(m)),
		})
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
				t.operations = append(t.operations, Operation{Name: e.node.Name, Chain: t.chain(e.chain), Outside: b.outside})
			}
		}
	}
	return t
}

// places says, for the blocks that operations are in, where the first operation inside of them is.
type places struct {
	first map[string]*chain
	graph *chain // for the call of a graph as a whole
}

// blocks names the handlers of the user's that would see what is raised at a place, in each of its frames.
func (c *chain) blocks() (key string, handled bool) {
	var b strings.Builder
	for ; c != nil; c = c.parent {
		fmt.Fprintf(&b, "%p %p ", c.code.Ptr(), c.inst.Handler)
		handled = handled || c.inst.Handler != nil
	}
	return b.String(), handled
}

// places looks through the operations. For a graph it prefers the blocks of the last operation that is in any.
func (c *Codegen) places() places {
	p := places{first: map[string]*chain{}}
	last := ""
	for _, e := range c.out.events {
		if e.node == nil || e.chain == nil {
			continue
		}
		key, handled := e.chain.blocks()
		if p.first[key] == nil {
			p.first[key] = e.chain
		}
		if handled || last == "" {
			last = key
		}
	}
	p.graph = p.first[last]
	return p
}

func (p places) of(m mark) *chain {
	if m.graph && p.graph != nil {
		return p.graph
	}
	if m.protected && m.chain != nil {
		key, _ := m.chain.blocks()
		if ch := p.first[key]; ch != nil {
			return ch
		}
	}
	return m.chain
}
