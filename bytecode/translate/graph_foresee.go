package translate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// Torch's own code reads Python values from tensors, for example to find out whether a mask is causal, whether a
// variance is negative, or how many sequences there are. Such a value is foreseen: the translation computes it, and a
// guard computes it again in each call. The code around the read then stays one graph, and the graph need not compute
// the value. This requires that the value follows from at most one tensor of the frame by a few cheap operations, and
// that no tensor was changed before the read. It applies to torch's code only. Users can avoid such reads in their own
// code, and would be surprised by one translation for each value. If a read has seen many values, the graph breaks
// there (_translator/foreseen).

const (
	// maxForeseen bounds the number of operations between the frame's tensor and the value.
	maxForeseen = 16
)

// costly lists substrings of the names of operations that are too expensive to compute twice, or whose result differs
// each time.
var costly = []string{"matmul", "mm", "conv", "linear", "einsum", "bilinear", "attention", "lstm", "gru", "rnn",
	"empty", "resize", "inverse", "svd", "eig"}

// asked holds what the translation has learned so far from tensors' data and from the backend.
type asked struct {
	foreseen   map[string]py.Object // foreseen values by sliceKey
	foreseenBy map[*fxgraph.Node]bool
	// apartMatters is set if the translation depends on whether the backend traces operators with AOTAutograd.
	apartMatters bool
	// unchanged is set if the graph is correct only if the backend runs it as it is captured.
	unchanged bool
}

// Foresee implements variables.Output.
func (o *OutputGraph) Foresee(tx variables.Translator, t *variables.TensorVariable,
	ask string) (py.Object, bool, error) {
	if !t.Class.IsNull() && t.Class != o.world.ParameterType {
		return py.Object{}, false, nil
	}
	return o.foresee(tx, t.Node, nil, ask)
}

// foresee computes the value that n has right after the operation `at`, or n's present value if `at` is nil.
func (o *OutputGraph) foresee(tx variables.Translator, n, at *fxgraph.Node,
	ask string) (value py.Object, ok bool, err error) {
	if n.Foreign || o.hasLoops() || o.bodies > 0 || o.world.Calls > 0 || o.opts.Exporting || !o.libraryCode(tx) {
		return value, false, nil // an exported program has no guards on data
	}
	o.world.Asked.Origin++
	in, nodes := o.sliceOf(n, at)
	if in == nil && nodes == nil {
		return value, false, nil
	}
	start, example := int64(-1), py.None()
	if in != nil {
		start, example = int64(in.Node.Index), in.Example
	}
	if o.foreseenBy == nil {
		o.foreseen, o.foreseenBy = map[string]py.Object{}, map[*fxgraph.Node]bool{}
	}
	key := o.sliceKey(nodes, in, ask)
	if v, ok := o.foreseen[key]; ok {
		o.computedByGuard(nodes)
		return v, true, nil
	}
	s := o.scope
	rows, err := o.sizeRows(nodes)
	if err != nil {
		return value, false, err
	}
	for _, node := range nodes {
		row, err := NodeRow(s, node, o.pool, o.refClass())
		if err != nil {
			return value, false, err
		}
		rows = append(rows, s.Tuple(s.Int(int64(node.Index)), row))
	}
	m, err := s.Import("godynamo._translator.foreseen")
	if err != nil {
		return value, false, err
	}
	r, err := s.CallMethod(m, "foresee", s.Tuple(rows...), s.Int(start), s.Int(int64(n.Index)), s.Name(ask), example,
		o.frame.Code, s.Str(question(nodes, in, ask)))
	if err != nil {
		return value, false, err
	}
	if r == py.None() {
		return value, false, nil
	}
	parts := s.Items(r)
	o.foreseen[key] = parts[0]
	o.computedByGuard(nodes)
	o.AddGuards(guards.GlobalState())
	if in != nil {
		o.AddGuards(guards.PyCheck(in.Src, o.Const(parts[1]), py.GoString(parts[2])))
	}
	return parts[0], true, nil
}

// sizeRows returns a row for each size among the operands of nodes. The row computes the value of the size, which
// becomes a constant.
func (o *OutputGraph) sizeRows(nodes []*fxgraph.Node) (rows []py.Object, err error) {
	s, seen := o.scope, map[*fxgraph.Node]bool{}
	for _, n := range nodes {
		n.EachInput(func(in *fxgraph.Node) {
			v, ok := o.symbols.values[in]
			if !ok || seen[in] || err != nil {
				return
			}
			seen[in] = true
			var none py.Object
			if none, err = s.Dict(); err == nil {
				row := s.Tuple(s.Name("call_function"), s.Str(in.Name), o.world.Builtin("int"),
					s.Tuple(v.Settled(o.world).Value), none, s.Str(""), s.Str(""))
				rows = append(rows, s.Tuple(s.Int(int64(in.Index)), row))
			}
		})
	}
	return rows, err
}

// computedByGuard marks operations that the graph need not run if only the foreseen value depends on them. The guard
// has already run these operations, on the same tensor and without an exception.
func (o *OutputGraph) computedByGuard(nodes []*fxgraph.Node) {
	for _, n := range nodes {
		o.foreseenBy[n] = !n.Inplace
	}
}

// libraryCode reports whether the innermost frame runs torch's own code.
func (o *OutputGraph) libraryCode(tx variables.Translator) bool {
	it, ok := tx.(*InstructionTranslator)
	if !ok {
		return false
	}
	name, ok := o.scope.DictGetName(it.globals, "__name__")
	return ok && name.Kind() == py.Str && strings.HasPrefix(py.GoString(name), "torch.")
}

// slice collects the operations that compute a value from at most one tensor of the frame.
type slice struct {
	out   *OutputGraph
	in    *variables.TensorVariable
	nodes map[*fxgraph.Node]bool
	sizes []*variables.SymNodeVariable // ints among the operands; they become constants
	ok    bool
}

// sliceOf lists, in order, the operations that compute n from one tensor of the frame or from none. The list includes
// operations that change intermediate results in place, up to the operation `at` (all of them if `at` is nil). It
// returns nil if the operations cannot run separately, or if a tensor that came with the frame may have changed.
func (o *OutputGraph) sliceOf(n, at *fxgraph.Node) (in *variables.TensorVariable, nodes []*fxgraph.Node) {
	c := &slice{out: o, nodes: map[*fxgraph.Node]bool{}, ok: true}
	c.add(n)
	if !c.ok {
		return nil, nil
	}
	found := false
	for _, e := range o.events {
		if e.shared {
			return nil, nil
		}
		if e.node == nil {
			continue
		}
		switch {
		case e.node.State:
			// Switches of grad mode and profiler blocks do not affect values.
			if name := e.node.Target.Text; !gradModes[name] && name != "enter_record" && name != "leave_entered" {
				return nil, nil
			}
		case e.node.Target.Text == storesGradient: // changes the data of no tensor
		case o.traceOf(e.node) >= copied:
			return nil, nil
		case e.node.Inplace && o.changesOwn(e.node):
			c.changes(e.node)
		case e.node.Inplace:
			return nil, nil
		}
		if c.nodes[e.node] {
			nodes = append(nodes, e.node)
			found = found || e.node == n
		}
		if !c.ok || e.node == at {
			break
		}
	}
	if !c.ok || !found && o.inputOf[n] == nil || len(nodes) != len(c.nodes) {
		return nil, nil
	}
	for _, v := range c.sizes {
		if _, err := v.Fixed(o.current); err != nil {
			return nil, nil
		}
	}
	return c.in, nodes
}

// question returns a text that identifies a foreseen value of the frame across translations. It leaves out constants,
// since their pool indexes differ between translations.
func question(nodes []*fxgraph.Node, in *variables.TensorVariable, ask string) string {
	text := ask
	if in != nil {
		text += " of " + in.Src.Name()
	}
	for _, n := range nodes {
		text += "; " + n.Target.Text
	}
	return text
}

// sliceKey returns a text that identifies the computation of a value from a tensor: equal texts mean equal
// computations.
func (o *OutputGraph) sliceKey(nodes []*fxgraph.Node, in *variables.TensorVariable, ask string) string {
	at := map[*fxgraph.Node]int{}
	var b strings.Builder
	b.WriteString(ask)
	if in != nil {
		at[in.Node] = -1
		b.WriteString(" of " + in.Src.Name())
	}
	var write func(a fxgraph.Arg)
	list := func(items []fxgraph.Arg) {
		b.WriteByte('(')
		for _, a := range items {
			write(a)
		}
		b.WriteByte(')')
	}
	write = func(a fxgraph.Arg) {
		switch x := a.(type) {
		case *fxgraph.Node:
			if v, ok := o.symbols.values[x]; ok {
				b.WriteString(" =" + o.scope.Repr(v.Settled(o.world).Value))
				return
			}
			fmt.Fprintf(&b, " %%%d", at[x])
		case fxgraph.Lit:
			fmt.Fprintf(&b, " #%d", x.Pool)
		case fxgraph.List:
			b.WriteByte('l')
			list(x.Items)
		case fxgraph.Tuple:
			b.WriteByte('t')
			list(x.Items)
		case fxgraph.Dict:
			b.WriteByte('d')
			list(x.Keys)
			list(x.Values)
		case fxgraph.Slice:
			b.WriteByte('s')
			list([]fxgraph.Arg{x.Start, x.Stop, x.Step})
		}
	}
	for i, n := range nodes {
		fmt.Fprintf(&b, "; %v %s", n.Op, n.Target.Text)
		list(n.Args)
		for _, k := range n.Kwargs {
			b.WriteString(" " + k.Name)
			write(k.Value)
		}
		at[n] = i
	}
	return b.String()
}

// add adds n and the nodes on which it depends.
func (c *slice) add(n *fxgraph.Node) {
	if c.nodes[n] || !c.ok {
		return
	}
	o := c.out
	if t := o.inputOf[n]; t != nil {
		c.ok = (c.in == nil || c.in == t) && !t.Changed && t.Src != nil &&
			(t.Class.IsNull() || t.Class == o.world.ParameterType)
		c.in = t
		return
	}
	if v, ok := o.symbols.values[n]; ok {
		if !slices.Contains(c.sizes, v) {
			c.sizes = append(c.sizes, v)
		}
		return
	}
	if len(c.nodes) >= maxForeseen || !o.repeatable(n) {
		c.ok = false
		return
	}
	c.nodes[n] = true
	n.EachInput(c.add)
}

// changes adds n to the slice, the operations from which the value is computed. n changes, in place, a tensor that the
// slice made. If n may change such a tensor through a view of it, c.ok becomes false.
func (c *slice) changes(n *fxgraph.Node) {
	changed, _ := changedBy(n)
	if c.nodes[changed] {
		c.add(n)
		return
	}
	seen := map[*fxgraph.Node]bool{}
	var look func(n *fxgraph.Node)
	look = func(n *fxgraph.Node) {
		if seen[n] {
			return
		}
		seen[n] = true
		c.ok = c.ok && !c.nodes[n]
		n.EachInput(look)
	}
	look(changed)
}

// repeatable reports whether an operation is cheap and may run twice.
func (o *OutputGraph) repeatable(n *fxgraph.Node) bool {
	if n.Op != fxgraph.CallFunction && n.Op != fxgraph.CallMethod || n.State || o.traceOf(n) != noTrace || hasOut(n) {
		return false
	}
	if n.Op == fxgraph.CallFunction && !strings.HasPrefix(n.Target.Text, "torch.") && !strings.HasPrefix(n.Target.Text,
		"operator.") {
		return false
	}
	name := n.Target.Text[strings.LastIndexByte(n.Target.Text, '.')+1:]
	for _, part := range costly {
		if strings.Contains(name, part) {
			return false
		}
	}
	return true
}

// foreseeSize handles a node whose sizes are unknown, since they depend on a data-dependent size of an earlier node. It
// computes that earlier size, as foresee computes values, and passes it to the fake session. Then the session computes
// the later values again.
func (o *OutputGraph) foreseeSize(tx variables.Translator, n *fxgraph.Node) (bool, error) {
	if o.meta == nil {
		return false, nil
	}
	r, err := o.scope.CallMethod(o.meta.object, "root", o.scope.Int(int64(n.Index)))
	if err != nil {
		return false, err
	}
	root, ok := py.AsInt(r)
	if !ok || root < 0 {
		return false, nil
	}
	n = o.graph.Nodes()[root]
	v, ok, err := o.foresee(tx, n, n, "size")
	if !ok || err != nil {
		return false, err
	}
	if _, err := o.scope.CallMethod(o.meta.object, "input", o.scope.Int(root), v); err != nil {
		return false, err
	}
	o.meta.forget(int(root) + 1)
	o.meta.done[root] = true
	return true, nil
}
