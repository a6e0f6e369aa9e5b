package variables

import (
	"slices"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Asked counts a translation's queries about computed tensors. Sizes counts queries about sizes, answered by a shape
// rule if there is one. Flags counts queries about requires_grad. Meta counts queries about all metadata. Origin counts
// queries about the operation that made the tensor. Changes counts queries whose answer depends on earlier in-place
// changes.
type Asked struct{ Sizes, Flags, Meta, Origin, Changes int }

// Since returns the counts of the queries made since `before` was copied.
func (a Asked) Since(before Asked) Asked {
	return Asked{a.Sizes - before.Sizes, a.Flags - before.Flags, a.Meta - before.Meta, a.Origin - before.Origin,
		a.Changes - before.Changes}
}

// Above adds `by` to Base.above of each value: 1 when the capture of a module starts, -1 when it ends. The counter is
// the number of modules in the value whose capture is in progress. Code that reads such a value may reach the module by
// a path that an equal module does not have.
func Above(vs []VariableTracker, by int) {
	for _, v := range vs {
		v.base().above += by
	}
}

func metAbove(tx Translator, v VariableTracker) {
	if v != nil && v.base().above > 0 {
		tx.World().Asked.Origin++
	}
}

// Pairing maps the values of an earlier call of a module to the values that replace them in a later call of an equal
// module.
type Pairing struct {
	Nodes   map[*fxgraph.Node]*fxgraph.Node
	Tensors [][2]*TensorVariable // computed tensors: earlier, later
	back    map[*fxgraph.Node]*fxgraph.Node
	values  map[VariableTracker]VariableTracker
	tuples  map[VariableTracker]VariableTracker // from the later tuple to the earlier
}

// NewPairing returns an empty Pairing.
func NewPairing() *Pairing {
	return &Pairing{Nodes: map[*fxgraph.Node]*fxgraph.Node{}, back: map[*fxgraph.Node]*fxgraph.Node{},
		values: map[VariableTracker]VariableTracker{}, tuples: map[VariableTracker]VariableTracker{}}
}

// Operands pairs the operands of two calls. It returns false if a function may behave differently with the later
// operands. Objects passed to the frame, and constants, must be the same object in both calls. A computed tensor must
// be paired with the other call's tensor. Tuples made by the program are compared item by item. Mutable objects made by
// the program are never equal.
func (p *Pairing) Operands(tx Translator, earlier, later []VariableTracker) bool {
	if len(earlier) != len(later) {
		return false
	}
	for i := range earlier {
		if !p.operand(tx, earlier[i], later[i]) {
			return false
		}
	}
	return true
}

// Keywords does the same as Operands, for keyword arguments. Both calls must have them in the same order.
func (p *Pairing) Keywords(tx Translator, earlier, later []Kw) bool {
	if len(earlier) != len(later) {
		return false
	}
	for i := range earlier {
		if earlier[i].Name != later[i].Name || !p.operand(tx, earlier[i].Value, later[i].Value) {
			return false
		}
	}
	return true
}

func (p *Pairing) operand(tx Translator, a, b VariableTracker) bool {
	a, b = peek(a), peek(b)
	if a == nil || b == nil {
		return a == b
	}
	if known, ok := p.values[a]; ok {
		return known == b
	}
	equal := false
	switch x := a.(type) {
	case *TensorVariable:
		y, ok := b.(*TensorVariable)
		equal = ok && (x == y || plainComputed(x) && plainComputed(y)) && p.nodes(x.Node, y.Node)
		if equal && x.Src == nil {
			p.Tensors = append(p.Tensors, [2]*TensorVariable{x, y})
		}
	case *ConstantVariable:
		y, ok := b.(*ConstantVariable)
		equal = ok && x.Value == y.Value
	case *TupleVariable:
		y, ok := b.(*TupleVariable)
		made := func(t *TupleVariable) bool { return t.Src == nil && t.real.IsNull() && t.holder == nil }
		equal = ok && (x == y || x.class == y.class && made(x) && made(y)) && p.tuples[b] == nil &&
			p.Operands(tx, x.items, y.items)
		p.tuples[b] = a
	case *LazyVariable: // neither value has been read
		y, ok := b.(*LazyVariable)
		equal = ok && x.obj == y.obj && x.Src.Name() == y.Src.Name()
	case *BuiltinVariable, *TorchVariable, *ClassVariable, *ModuleVariable:
		equal = a == b
	case *SymNodeVariable: // equal expressions have one tracker
		y, ok := b.(*SymNodeVariable)
		equal = ok && (x == y || tx.World().Env().Simplify(x.Size) == tx.World().Env().Simplify(y.Size))
	default:
		// holds if the program has changed no object passed to the frame: see World.Own
		equal = a == b && a.Source() != nil
	}
	if equal {
		p.values[a] = b
	}
	return equal
}

// Stored records values that the program has stored in objects passed to the frame.
func (w *World) Stored(vs ...VariableTracker) { w.stored = append(w.stored, vs...) }

// ReadFrom reports whether a value was read from a source for which `below` returns true. It searches the operands and
// the values that the program has stored so far, and the contents of both.
func (w *World) ReadFrom(args []VariableTracker, kwargs []Kw, below func(src guards.Source) bool) bool {
	found := false
	each := func(v VariableTracker) { found = found || v.Source() != nil && below(v.Source()) }
	seen := map[VariableTracker]bool{}
	eachMade(operands(args, kwargs), seen, each)
	eachMade(w.stored, seen, each)
	return found
}

// AlsoStored reports whether an operand is also a value that the program has made and stored. Code can reach such a
// value by two paths: as an operand, and at the place where it is stored.
func (w *World) AlsoStored(args []VariableTracker, kwargs []Kw) bool {
	if len(w.stored) == 0 {
		return false
	}
	given, found := map[any]bool{}, false
	made := func(v VariableTracker) any {
		switch x := v.(type) {
		case *ConstantVariable:
			return nil
		case *TensorVariable:
			return x.Node
		}
		return v
	}
	eachMade(operands(args, kwargs), map[VariableTracker]bool{}, func(v VariableTracker) {
		if v.Source() == nil {
			given[made(v)] = true
		}
	})
	delete(given, nil)
	eachMade(w.stored, map[VariableTracker]bool{}, func(v VariableTracker) { found = found || given[made(v)] })
	return found
}

func operands(args []VariableTracker, kwargs []Kw) []VariableTracker {
	all := slices.Clone(args)
	for _, k := range kwargs {
		all = append(all, k.Value)
	}
	return all
}

// eachMade calls f for each value and, recursively, for the contents of those that the program made.
func eachMade(vs []VariableTracker, seen map[VariableTracker]bool, f func(v VariableTracker)) {
	for _, v := range vs {
		if v = peek(v); v == nil || seen[v] {
			continue
		}
		seen[v] = true
		f(v)
		if c, ok := v.(Container); ok && v.Source() == nil {
			eachMade(c.Children(), seen, f)
		}
	}
}

// peek returns the tracker of a realized lazy value, and other trackers unchanged.
func peek(v VariableTracker) VariableTracker {
	if l, ok := v.(*LazyVariable); ok && l.real != nil {
		return l.real
	}
	return v
}

// plainComputed reports whether the graph computes the tensor and nothing else is known about it, such as a subclass
// or Python attributes.
func plainComputed(t *TensorVariable) bool {
	return t.Src == nil && t.Example.IsNull() && t.Class.IsNull() && t.attrs == nil && t.known == nil &&
		t.made == nil && t.outside == nil
}

// nodes pairs two nodes. It returns false if one of them is already paired with another node.
func (p *Pairing) nodes(a, b *fxgraph.Node) bool {
	to, known := p.Nodes[a]
	from, used := p.back[b]
	if known || used {
		return to == b && from == a
	}
	p.Nodes[a], p.back[b] = b, a
	return true
}

// SameMetadata reports whether paired tensors have equal metadata. It compares sizes, dtypes, devices and layouts, and
// what else `asked` counts queries for.
func (p *Pairing) SameMetadata(tx Translator, asked Asked) bool {
	if asked.Sizes == 0 && asked.Flags == 0 && asked.Meta == 0 {
		return true
	}
	for _, pair := range p.Tensors {
		if pair[0] == pair[1] {
			continue
		}
		var metas [2]*TensorMeta
		var flags [2]bool
		for i, t := range pair {
			ask := t.Sizes
			if asked.Meta > 0 {
				ask = t.Meta
			}
			m, err := ask(tx)
			if err != nil {
				return false
			}
			if asked.Flags > 0 {
				if flags[i], err = t.requiresGrad(tx); err != nil {
					return false
				}
			}
			metas[i] = m
			t.Need(tx, "shape")
			t.Need(tx, "dtype")
			if asked.Meta > 0 || asked.Flags > 0 {
				t.Need(tx, "requires_grad")
			}
		}
		if flags[0] != flags[1] || !metas[0].equal(tx, metas[1], asked.Meta > 0) {
			return false
		}
	}
	return true
}

func (m *TensorMeta) equal(tx Translator, o *TensorMeta, all bool) bool {
	env := tx.World().Env()
	same := func(a, b sym.Size) bool { return env.Simplify(a) == env.Simplify(b) }
	return slices.EqualFunc(m.Shape, o.Shape, same) && m.Dtype == o.Dtype && m.Device == o.Device &&
		m.Layout == o.Layout && (!all || slices.Equal(m.Stride, o.Stride) && m.RequiresGrad == o.RequiresGrad)
}

// Changed marks the later tensor of a pair as changed in place if the earlier tensor was changed and is computed by one
// of the nodes in `earlier`.
func (p *Pairing) Changed(earlier map[*fxgraph.Node]bool) {
	for was, now := range p.values {
		if t, ok := was.(*TensorVariable); ok && earlier[t.Node] && t.Changed {
			now.(*TensorVariable).change()
		}
	}
}

// Stands pairs two tensors that were passed to the frame.
func (p *Pairing) Stands(earlier, later *TensorVariable) {
	p.Nodes[earlier.Node] = later.Node
	p.values[earlier] = later
}

// Result builds the result of the later call from that of the earlier call, with the later tensors. It returns false
// if the result contains anything but tensors, constants and tuples.
func (p *Pairing) Result(v VariableTracker) (VariableTracker, bool) {
	v = peek(v)
	if known, ok := p.values[v]; ok {
		return known, true
	}
	var out VariableTracker
	switch x := v.(type) {
	case *TensorVariable:
		switch node, moved := p.Nodes[x.Node]; {
		case moved && plainComputed(x):
			out = NewTensor(node)
		case !moved && x.Src != nil:
			out = x
		}
	case *ConstantVariable:
		if x.Src == nil || x.Value.Kind() == py.NoneKind || x.Value.Kind() == py.BoolKind {
			out = x
		}
	case *SymNodeVariable:
		out = x
	case *TupleVariable:
		if x.Src != nil || x.holder != nil || !x.real.IsNull() {
			break
		}
		items := make([]VariableTracker, len(x.items))
		for i, it := range x.items {
			item, ok := p.Result(it)
			if !ok {
				return nil, false
			}
			items[i] = item
		}
		out = NewTupleOf(items, x.class, nil)
	}
	if out == nil {
		return nil, false
	}
	p.values[v] = out
	return out, true
}

// PlainTensors reports whether torch's operations behave in the plain way: the translation has reached no tensor of a
// subclass, the program has entered no mode, no operation runs with torch.Tensor's own handler, and no module's tensors
// are replaced.
func (w *World) PlainTensors() bool {
	return len(w.nodeClass) == 0 && len(w.modes) == 0 && w.handlersAside == 0 && w.Replaced == 0
}

// KindOf returns a number that is equal for modules that look alike (_translator/alike.Kinds), or -1 if no other
// module looks like this one. It is only a hint.
func (w *World) KindOf(s *py.Scope, module py.Object) int {
	if w.kinds.IsNull() {
		kinds, ok := py.Answered(s.Call(w.moduleKinds))
		if !ok {
			return -1
		}
		w.kinds = kinds
	}
	r, ok := py.Answered(s.CallMethod(w.kinds, "of", module))
	if !ok {
		return -1
	}
	kind, _ := py.AsInt(r)
	return int(kind)
}

// Drew reports whether the program has drawn random numbers from Python's random module.
func (w *World) Drew() bool { return w.drew }
