package variables

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/pyhook/py"
)

// SizesIterator is the iterator of a `for` statement or comprehension whose number of items is a size that may differ
// between calls: iter(range(n)), iter(t) or iter(zip(t, ...)) of tensors. The loop may be captured once for all sizes
// (translate/graph_loops.go). Otherwise the iterator is replaced by one with constant sizes (Fixed).
type SizesIterator struct {
	Base
	N    sym.Size // number of items
	Args []VariableTracker
	// Zip is set for zip(*Args). Otherwise Args has the tensor, or the end of the range.
	Zip   bool
	fixed func(tx Translator) (VariableTracker, error)
	world *World
}

// Kind implements VariableTracker.
func (*SizesIterator) Kind() string { return "SizesIterator" }

// PythonType implements Typed.
func (it *SizesIterator) PythonType(tx Translator) (py.Object, error) {
	v, err := it.Fixed(tx)
	if err != nil {
		return py.Object{}, err
	}
	return PythonType(tx, v)
}

// Fixed returns the iterator for the number of items in this call, and records the condition.
func (it *SizesIterator) Fixed(tx Translator) (VariableTracker, error) { return it.fixed(tx) }

// Next implements Iterator. Translate replaces the iterator before it is advanced.
func (it *SizesIterator) Next(Translator) (VariableTracker, bool, error) {
	return nil, false, DataDependent("number of items of an iterator")
}

// Children implements Container.
func (it *SizesIterator) Children() []VariableTracker { return it.Args }

// Range reports whether the items are ints.
func (it *SizesIterator) Range() bool {
	_, tensor := it.Args[0].(*TensorVariable)
	return !it.Zip && !tensor
}

// Reconstruct implements Reconstructer.
func (it *SizesIterator) Reconstruct(e Emitter) error {
	w := it.world
	name := ""
	switch {
	case it.Zip:
		name = "zip"
	case it.Range():
		name = "range"
	}
	if name != "" {
		e.PushNull()
		e.LoadConst(w.Builtin(name))
	}
	if err := LoadAll(e, it.Args); err != nil {
		return err
	}
	if name != "" {
		e.Call(len(it.Args), nil)
	}
	e.GetIter()
	return nil
}

// rangeOfSize returns the iterator of `for i in range(n)`, where n is a size that may differ between calls. It returns
// nil for other calls.
func rangeOfSize(tx Translator, args []VariableTracker) VariableTracker {
	if len(args) != 1 {
		return nil
	}
	x := asSymNode(tx, args[0])
	if x == nil || !tx.Output().AtLoop("range") {
		return nil
	}
	n := tx.World().Env().Max(x.Size, sym.Const(0))
	if n.IsUnknown() {
		return nil
	}
	return &SizesIterator{N: n, Args: []VariableTracker{x}, world: tx.World(),
		fixed: func(tx Translator) (VariableTracker, error) {
			r, err := constantRange(tx, []VariableTracker{x}, nil)
			if err != nil {
				return nil, err
			}
			return Iter(tx, r)
		}}
}

// TensorOfSizes returns the iterator of `for row in t`, where the number of rows may differ between calls. It returns
// nil for other values.
func TensorOfSizes(tx Translator, v VariableTracker) VariableTracker {
	n, ok := rowsOf(tx, v)
	if !ok || !tx.Output().AtLoop("") {
		return nil
	}
	v = MustRealize(tx, v)
	return &SizesIterator{N: n, Args: []VariableTracker{v}, world: tx.World(),
		fixed: func(tx Translator) (VariableTracker, error) { return Iter(tx, v) }}
}

// zipOfSizes returns the iterator of `for a, b in zip(t, u)`, where t and u are tensors whose numbers of rows may
// differ between calls. It returns nil for other calls.
func zipOfSizes(tx Translator, args []VariableTracker, kwargs []Kw) VariableTracker {
	if len(args) == 0 || len(kwargs) > 0 {
		return nil
	}
	tensors := make([]VariableTracker, len(args))
	var n sym.Size
	for i, a := range args {
		rows, ok := rowsOf(tx, a)
		if !ok {
			return nil
		}
		tensors[i] = MustRealize(tx, a)
		if i == 0 {
			n = rows
		} else {
			n = tx.World().Env().Min(n, rows)
		}
	}
	if n.IsUnknown() || !tx.Output().AtLoop("zip") {
		return nil
	}
	return &SizesIterator{N: n, Args: tensors, Zip: true, world: tx.World(),
		fixed: func(tx Translator) (VariableTracker, error) { return constantZip(tx, args, nil) }}
}

// rowsOf returns the number of rows of a tensor, if it is a size that may differ between calls.
func rowsOf(tx Translator, v VariableTracker) (n sym.Size, ok bool) {
	r, err := Realize(tx, v)
	if err != nil {
		return n, false
	}
	t, ok := r.(*TensorVariable)
	if !ok || !isPlainTensor(tx, t) || tx.World().FixesSizes > 0 || tx.Output().WholeGraph() {
		return n, false
	}
	m, err := t.Sizes(tx)
	if err != nil || len(m.Shape) == 0 {
		return n, false
	}
	t.Need(tx, "ndim")
	n = tx.World().Env().Simplify(m.Shape[0])
	_, known := n.Const()
	return n, !known
}

// LoopList is the list of a comprehension that is captured once: the loop appends a tensor in each turn.
type LoopList struct {
	Base
	Node *fxgraph.Node // represents the list in operands of the graph
	N    sym.Size      // its length
}

// Kind implements VariableTracker.
func (*LoopList) Kind() string { return "LoopList" }

// PythonType implements Typed.
func (*LoopList) PythonType(tx Translator) (py.Object, error) { return tx.World().ListType, nil }

// isLoopList reports whether v is a LoopList.
func isLoopList(v VariableTracker) bool {
	_, ok := v.(*LoopList)
	return ok
}

// Truth implements Truther.
func (l *LoopList) Truth(tx Translator) (bool, error) {
	empty, err := decide(tx, sym.Zero(l.N))
	return !empty, err
}

// AsProxy implements Proxy.
func (l *LoopList) AsProxy(Translator) (fxgraph.Arg, error) { return l.Node, nil }

// IsNewEmpty reports whether list is empty, was made by the frame, and has no real object yet.
func IsNewEmpty(list *ListVariable) bool {
	return len(list.items) == 0 && list.Source() == nil && !Materialized(list)
}
