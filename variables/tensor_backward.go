package variables

import (
	"cmp"
	"slices"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
)

// t.backward() is an operation of the graph, which runs as in eager mode. Afterwards the gradients of the graph's
// leaves are other tensors. The translation predicts each gradient that the program reads later: a new tensor if there
// was none before, else the same tensor with other data. Two more operations, before and after it, check this, and
// whether hooks may have run (godynamo._called.gradients). If anything else has happened, the frames go on in CPython.

// backwardCall is one call of backward().
type backwardCall struct {
	checked *fxgraph.Node // the operation after it, whose result has the gradients of `fresh`
	// leaves has the graph's inputs that require gradients, and whether the gradient probably reaches them.
	leaves  map[*TensorVariable]bool
	reached map[*fxgraph.Node]bool // the nodes that the gradient probably reaches
	sparse  map[*fxgraph.Node]bool // those of them whose gradient is probably sparse
	inputs  []*TensorVariable      // the only tensors that get gradients; nil if all leaves do
	history []*fxgraph.Node        // the roots, if the gradients have a history of their own
	first   *fxgraph.Node          // the operation before it
	// others report whether leaves with hooks of the program had other hooks before.
	others []VariableTracker
	// fresh are the leaves that get their first gradient; kept are those that keep their tensor or None.
	fresh, kept []fxgraph.Arg
	// sparseFresh has the positions in fresh of the leaves whose gradient is sparse.
	sparseFresh []fxgraph.Arg
}

// backward handles t.backward(gradient, retain_graph, create_graph, inputs).
func (t *TensorVariable) backward(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	p, err := newPass(tx, py.Object{}, "Tensor.backward", append([]VariableTracker{t}, args...), kwargs)
	if err != nil {
		return nil, err
	}
	return p.accumulate(tx)
}

// accumulate adds a pass that gives the leaves their gradients.
func (p *backwardPass) accumulate(tx Translator) (VariableTracker, error) {
	b, leaves, err := p.leaves(tx)
	if err != nil {
		return nil, err
	}
	result := NoneConst()
	if err := b.call(tx, p, leaves, result); err != nil {
		return nil, err
	}
	tx.World().backwards = append(tx.World().backwards, b)
	return result, nil
}

// leaves returns the leaves of the graph that require gradients, and the pass as far as it is known from them. It
// breaks the graph if the pass may run code of the program.
func (p *backwardPass) leaves(tx Translator) (*backwardCall, []VariableTracker, error) {
	roots := make([]*fxgraph.Node, len(p.roots))
	for i, r := range p.roots {
		roots[i] = r.Node
	}
	d, why, err := tx.Output().Differentiates(roots)
	if p.createsGraph && tx.World().registered {
		why = "with create_graph and hooks"
	}
	if err != nil || why != "" {
		return nil, nil, cmp.Or(err, p.refused(why))
	}
	b := &backwardCall{leaves: map[*TensorVariable]bool{}, reached: d.Reached, sparse: d.Sparse,
		inputs: p.inputs}
	if p.createsGraph {
		b.history = roots
	}
	leaves, reals := []VariableTracker{}, []py.Object{}
	for _, in := range d.Inputs {
		real := in.real()
		if in.dispatches(tx) {
			continue // it requires no gradient
		}
		if real.IsNull() || !in.Class.IsNull() && in.Class != tx.World().ParameterType {
			return nil, nil, p.refused("reaches " + in.Src.Name() + ", a tensor of another class")
		}
		tx.Output().NeedField(in, uint16(guards.TensorRequiresGrad))
		needs, err := tx.Scope().GetAttr(real, "requires_grad")
		if err != nil {
			return nil, nil, err
		}
		if on, switched := d.Switched[in]; !on && (switched || needs != py.True()) {
			continue
		}
		if _, leaf := tx.Scope().TensorGrad(real); !leaf {
			return nil, nil, p.refused("reaches operations that ran before this graph")
		}
		tx.Output().Reads(guards.NewGradSource(in.Src))
		b.leaves[in] = d.Reached[in.Node] && b.isInput(in)
		reals = append(reals, real)
		if on := tx.World().hooked[in.Node]; on != nil && on.live > 0 {
			b.others = append(b.others, NewForeign(on.others, ""))
		} else {
			leaves = append(leaves, in)
		}
	}
	hooked, err := mayRunHooks(tx, reals)
	if err == nil && hooked {
		err = p.refused("may run hooks of the program")
	}
	return b, leaves, err
}

// mayRunHooks reports whether a leaf has hooks now. The check in each call would then fail.
func mayRunHooks(tx Translator, leaves []py.Object) (bool, error) {
	core, err := tx.Scope().Import("godynamo._C")
	if err != nil {
		return false, err
	}
	found, err := tx.Scope().CallMethod(core, "gradients_run_code", tx.Scope().Tuple(leaves...))
	return found == py.True(), err
}

// call adds the operations.
func (b *backwardCall) call(tx Translator, p *backwardPass, leaves []VariableTracker, result VariableTracker) error {
	out, later := tx.Output(), NewTuple(nil, nil)
	first, err := callCheck(tx, "before", append([]VariableTracker{NewTuple(leaves, nil), later}, b.others...))
	if err != nil {
		return err
	}
	b.first = first
	fn := p.fn
	if fn.IsNull() && len(p.args) == 1 && len(p.kwargs) == 0 {
		if fn, err = checkOf(tx, "backward"); err != nil {
			return err
		}
	}
	if _, err := out.CallForeign(tx, fn, p.target(), p.args, p.kwargs); err != nil {
		return err
	}
	after, err := checkOf(tx, "after")
	if err != nil {
		return err
	}
	b.checked, err = out.CallLeaving(tx, after, "godynamo.after_backward",
		[]VariableTracker{NewForeign(first, ""), later, later}, Leaving{Result: result, Why: p.name})
	if err != nil {
		return err
	}
	out.Later(first, func() []fxgraph.Arg {
		return append([]fxgraph.Arg{first.Args[0], fxgraph.Tuple{Items: b.kept}}, first.Args[2:]...)
	})
	out.Later(b.checked, func() []fxgraph.Arg {
		operands := []fxgraph.Arg{first, fxgraph.Tuple{Items: b.fresh}, fxgraph.Tuple{Items: b.kept}}
		if len(b.sparseFresh) > 0 {
			operands = append(operands, fxgraph.Tuple{Items: b.sparseFresh})
		}
		return operands
	})
	return nil
}

// target is the name of the operation in the graph.
func (p *backwardPass) target() string {
	if p.fn.IsNull() {
		return "backward"
	}
	return p.name
}

// checkOf returns a function of godynamo._called.gradients.
func checkOf(tx Translator, name string) (py.Object, error) {
	m, err := tx.Scope().Import("godynamo._called.gradients")
	if err != nil {
		return py.Object{}, err
	}
	return tx.Scope().GetAttr(m, name)
}

// callCheck adds a call of such a function.
func callCheck(tx Translator, name string, args []VariableTracker) (*fxgraph.Node, error) {
	fn, err := checkOf(tx, name)
	if err != nil {
		return nil, err
	}
	return tx.Output().CallForeign(tx, fn, "godynamo."+name+"_backward", args, nil)
}

func (b *backwardCall) isInput(t *TensorVariable) bool {
	return b.inputs == nil || slices.Contains(b.inputs, t)
}

// givesTo reports whether the gradient probably reaches t, a leaf.
func (b *backwardCall) givesTo(t *TensorVariable) bool {
	if t.Src == nil {
		return b.reached[t.Node] && b.isInput(t)
	}
	return b.leaves[t]
}

// after returns the gradient of t after the call; before is the gradient before it.
func (b *backwardCall) after(tx Translator, t *TensorVariable, before VariableTracker) (VariableTracker, error) {
	g, err := Realize(tx, before)
	if err != nil {
		return nil, err
	}
	// a gradient that retain_grad keeps, or that has a history of its own, is a new tensor after each pass
	if !b.givesTo(t) || !isNone(g) && !t.retains && b.history == nil {
		b.kept = append(b.kept, t.Node)
		if g, ok := g.(*TensorVariable); ok {
			g.change()
		}
		return g, nil
	}
	at := IntConst(tx, len(b.fresh))
	n, err := tx.Output().CallFunction(tx, tx.World().Operator("getitem"), "godynamo.item",
		[]VariableTracker{NewForeign(b.checked, ""), at}, nil)
	if err != nil {
		return nil, err
	}
	n.Item = true
	sparse := b.sparse[t.Node] && b.history == nil
	tx.Output().Declare(n, Declared{Like: t.Node, Gradient: true, Sparse: sparse, History: b.history})
	if sparse {
		position, err := at.AsProxy(tx)
		if err != nil {
			return nil, err
		}
		b.sparseFresh = append(b.sparseFresh, position)
	}
	b.fresh = append(b.fresh, t.Node)
	return NewTensor(n), nil
}
