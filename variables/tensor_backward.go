package variables

import (
	"cmp"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
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
	leaves      map[*TensorVariable]bool
	fresh, kept []fxgraph.Arg // the leaves that get their first gradient, and those that keep their tensor or None
}

// backward handles t.backward(gradient, retain_graph, create_graph, inputs).
func (t *TensorVariable) backward(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	refused := unsupported(exc.UnknownResult, "Tensor.backward")
	if !plainBackward(tx, args, kwargs) || tx.World().Calls > 0 || tx.Output().WholeGraph() {
		return nil, refused
	}
	inputs, reached, ordinary := tx.Output().Differentiates(t.Node)
	if !ordinary {
		return nil, refused
	}
	b := &backwardCall{leaves: map[*TensorVariable]bool{}}
	leaves, reals := []VariableTracker{}, []py.Object{}
	for _, in := range inputs {
		real := in.real()
		if real.IsNull() || !in.Class.IsNull() && in.Class != tx.World().ParameterType {
			return nil, refused
		}
		tx.Output().NeedField(in, uint16(guards.TensorRequiresGrad))
		needs, err := tx.Scope().GetAttr(real, "requires_grad")
		if err != nil {
			return nil, err
		}
		if needs != py.True() {
			continue
		}
		if _, leaf := tx.Scope().TensorGrad(real); !leaf {
			return nil, refused // its history is not known
		}
		tx.Output().Reads(guards.NewGradSource(in.Src))
		b.leaves[in] = reached[in.Node]
		leaves, reals = append(leaves, in), append(reals, real)
	}
	if hooked, err := mayRunHooks(tx, reals); err != nil || hooked {
		return nil, cmp.Or(err, refused)
	}
	result := NoneConst()
	if err := b.call(tx, leaves, append([]VariableTracker{t}, args...), kwargs, result); err != nil {
		return nil, err
	}
	tx.World().backwards = append(tx.World().backwards, b)
	return result, nil
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
func (b *backwardCall) call(tx Translator, leaves, args []VariableTracker, kwargs []Kw, result VariableTracker) error {
	s, out := tx.Scope(), tx.Output()
	m, err := s.Import("godynamo._called.gradients")
	if err != nil {
		return err
	}
	before, err := s.GetAttr(m, "before")
	if err != nil {
		return err
	}
	after, err := s.GetAttr(m, "after")
	if err != nil {
		return err
	}
	later := NewTuple(nil, nil)
	first, err := out.CallForeign(tx, before, "godynamo.before_backward",
		[]VariableTracker{NewTuple(leaves, nil), later}, nil)
	if err != nil {
		return err
	}
	if _, err := out.CallForeign(tx, py.Object{}, "backward", args, kwargs); err != nil {
		return err
	}
	b.checked, err = out.CallLeaving(tx, after, "godynamo.after_backward",
		[]VariableTracker{NewForeign(first, ""), later, later}, result, "Tensor.backward")
	if err != nil {
		return err
	}
	out.Later(first, func() []fxgraph.Arg { return []fxgraph.Arg{first.Args[0], fxgraph.Tuple{Items: b.kept}} })
	out.Later(b.checked, func() []fxgraph.Arg {
		return []fxgraph.Arg{first, fxgraph.Tuple{Items: b.fresh}, fxgraph.Tuple{Items: b.kept}}
	})
	return nil
}

// plainBackward reports whether the arguments ask for a backward pass that is not differentiated itself, and for all
// leaves.
func plainBackward(tx Translator, args []VariableTracker, kwargs []Kw) bool {
	given := map[string]VariableTracker{}
	for i, name := range []string{"gradient", "retain_graph", "create_graph", "inputs"} {
		if i < len(args) {
			given[name] = args[i]
		}
	}
	for _, kw := range kwargs {
		given[kw.Name] = kw.Value
	}
	for name, v := range given {
		v, err := Realize(tx, v)
		if err != nil {
			return false
		}
		c, constant := AsConstant(tx, v)
		switch g, tensor := v.(*TensorVariable); {
		case name == "gradient" && tensor && !g.foreign() && g.class(tx) == tx.World().TensorType:
		case constant && (c == pyNone || c == py.False() || name == "retain_graph" && c == py.True()):
		default:
			return false
		}
	}
	return len(args) <= 4
}

// after returns the gradient of t after the call; before is the gradient before it.
func (b *backwardCall) after(tx Translator, t *TensorVariable, before VariableTracker) (VariableTracker, error) {
	g, err := Realize(tx, before)
	if err != nil {
		return nil, err
	}
	if !b.leaves[t] || !isNone(g) {
		b.kept = append(b.kept, t.Node)
		if g, ok := g.(*TensorVariable); ok {
			g.change()
		}
		return g, nil
	}
	n, err := tx.Output().CallFunction(tx, tx.World().Operator("getitem"), "godynamo.item",
		[]VariableTracker{NewForeign(b.checked, ""), IntConst(tx, len(b.fresh))}, nil)
	if err != nil {
		return nil, err
	}
	n.Item = true
	tx.Output().Declare(n, Declared{Like: t.Node, Gradient: true})
	b.fresh = append(b.fresh, t.Node)
	return NewTensor(n), nil
}
