package variables

import (
	"slices"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Asked counts a translation's queries about tensors that the graph computes: their sizes, by rule if there is one; all
// of their metadata; the operation that they come from; and queries whose answers depend on earlier in-place changes.
type Asked struct{ Sizes, Meta, Origin, Changes int }

// Since is the number of queries since before.
func (a Asked) Since(before Asked) Asked {
	return Asked{a.Sizes - before.Sizes, a.Meta - before.Meta, a.Origin - before.Origin, a.Changes - before.Changes}
}

// Above says of values that hold a module whose call is being captured that they do, or, with -1, that they did: code
// that meets them may come to the module by its very place, and not as an equal one would come to itself.
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

// Pairing says which value of a later call stands in place of which of an earlier one.
type Pairing struct {
	Nodes   map[*fxgraph.Node]*fxgraph.Node
	Tensors [][2]*TensorVariable // computed ones, earlier and later
	back    map[*fxgraph.Node]*fxgraph.Node
	values  map[VariableTracker]VariableTracker
	tuples  map[VariableTracker]VariableTracker // the other way round
}

// NewPairing returns the empty one.
func NewPairing() *Pairing {
	return &Pairing{Nodes: map[*fxgraph.Node]*fxgraph.Node{}, back: map[*fxgraph.Node]*fxgraph.Node{},
		values: map[VariableTracker]VariableTracker{}, tuples: map[VariableTracker]VariableTracker{}}
}

// Operands pairs the operands of two calls; false if a function may behave differently with the later ones. Objects of
// the frame and constants are equal if they are one object, computed tensors if they replace each other, the program's
// tuples part by part. Mutable objects that the program made are never equal.
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

// Keywords is Operands for keyword arguments, which come in one order.
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
	case *LazyVariable: // that nobody has looked at
		y, ok := b.(*LazyVariable)
		equal = ok && x.obj == y.obj && x.Src.Name() == y.Src.Name()
	case *BuiltinVariable, *TorchVariable, *ClassVariable, *ModuleVariable:
		equal = a == b
	default:
		equal = a == b && a.Source() != nil // and nothing of the frame has been changed, see World.Own
	}
	if equal {
		p.values[a] = b
	}
	return equal
}

// Stored notes values that the program has put into what the frame has.
func (w *World) Stored(vs ...VariableTracker) { w.stored = append(w.stored, vs...) }

// ReadFrom reports whether an operand, or something that the program has stored so far, was read from a place that
// below says yes to, or holds such a value.
func (w *World) ReadFrom(args []VariableTracker, kwargs []Kw, below func(src guards.Source) bool) bool {
	found := false
	each := func(v VariableTracker) { found = found || v.Source() != nil && below(v.Source()) }
	seen := map[VariableTracker]bool{}
	eachMade(operands(args, kwargs), seen, each)
	eachMade(w.stored, seen, each)
	return found
}

// AlsoStored reports whether something that the program has made and stored is an operand too: code may then come to it
// by both ways.
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

// eachMade calls f for values, and for what those of them hold that the program has made.
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

// peek is what a lazy value has become, if it has been looked at.
func peek(v VariableTracker) VariableTracker {
	if l, ok := v.(*LazyVariable); ok && l.real != nil {
		return l.real
	}
	return v
}

// plainComputed recognizes tensors that the graph computes and of which nothing else is known.
func plainComputed(t *TensorVariable) bool {
	return t.Src == nil && t.Example.IsNull() && t.Class.IsNull() && t.attrs == nil && t.known == nil &&
		t.made == nil && t.outside == nil
}

// nodes pairs two nodes, one to one.
func (p *Pairing) nodes(a, b *fxgraph.Node) bool {
	to, known := p.Nodes[a]
	from, used := p.back[b]
	if known || used {
		return to == b && from == a
	}
	p.Nodes[a], p.back[b] = b, a
	return true
}

// SameMetadata reports whether paired tensors have the same sizes, dtypes and devices, or all the same metadata, as far
// as the earlier ones were queried.
func (p *Pairing) SameMetadata(tx Translator, asked Asked) bool {
	if asked.Sizes == 0 && asked.Meta == 0 {
		return true
	}
	for _, pair := range p.Tensors {
		if pair[0] == pair[1] {
			continue
		}
		var metas [2]*TensorMeta
		for i, t := range pair {
			ask := t.Sizes
			if asked.Meta > 0 {
				ask = t.Meta
			}
			m, err := ask(tx)
			if err != nil {
				return false
			}
			metas[i] = m
			t.Need(tx, "shape")
			t.Need(tx, "dtype")
			if asked.Meta > 0 {
				t.Need(tx, "requires_grad")
			}
		}
		if !metas[0].equal(metas[1], asked.Meta > 0) {
			return false
		}
	}
	return true
}

func (m *TensorMeta) equal(o *TensorMeta, all bool) bool {
	return slices.Equal(m.Shape, o.Shape) && m.Dtype == o.Dtype && m.Device == o.Device && m.Layout == o.Layout &&
		(!all || slices.Equal(m.Stride, o.Stride) && m.RequiresGrad == o.RequiresGrad)
}

// Changed marks the later tensors, paired with these nodes of earlier ones, as changed in place.
func (p *Pairing) Changed(earlier map[*fxgraph.Node]bool) {
	for was, now := range p.values {
		if t, ok := was.(*TensorVariable); ok && earlier[t.Node] && t.Changed {
			now.(*TensorVariable).change()
		}
	}
}

// Stands records which tensor of the frame replaces which.
func (p *Pairing) Stands(earlier, later *TensorVariable) {
	p.Nodes[earlier.Node] = later.Node
	p.values[earlier] = later
}

// Result is a later call's result, made from the earlier one's: tensors by their nodes. It is false if the result holds
// anything but tensors, constants and tuples.
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

// PlainTensors recognizes translations in which no tensor of a subclass was met, no mode of the program is entered, no
// handler is set aside, and no other tensors stand in place of a module's.
func (w *World) PlainTensors() bool {
	return len(w.nodeClass) == 0 && len(w.modes) == 0 && w.handlersAside == 0 && w.Replaced == 0
}

// KindOf numbers modules of the frame that look alike (_translator/alike.Kinds); nothing rests on it. -1: it looks like
// no other.
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

// Drew reports whether the program has drawn numbers of Python's random module.
func (w *World) Drew() bool { return w.drew }
