package higher

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// applyFunction implements MyFunction.apply of a torch.autograd.Function. The call becomes one operation of the graph.
// That operation calls the real apply, so that autograd uses the function's backward. The forward is translated once,
// with a stand-in for ctx, only to find its guards. The graph breaks if the forward has visible side effects or uses
// ctx for more than saving tensors.
func applyFunction(tx variables.Translator, class *variables.ClassVariable,
	args []variables.VariableTracker) (variables.VariableTracker, error) {
	w, s := tx.World(), tx.Scope()
	refused := exc.Break(exc.CallUnsupported, "%s.apply", py.TypeName(class.Class))
	for i, a := range args {
		v, err := variables.Realize(tx, a)
		if err != nil {
			return nil, err
		}
		if _, known := variables.AsConstant(tx, v); !known && !variables.IsTensor(v) {
			return nil, refused
		}
		args[i] = v
	}
	parts, err := w.AutogradParts(s)
	if err != nil {
		return nil, err
	}
	context := variables.NewClass(parts[0], guards.NewConstSource(tx.Output().Const(parts[0]), "___ctx"))
	f := &autogradFunction{class, context, args}
	sizes, seen, draws, err := tx.Output().Tentative(func() (variables.VariableTracker, error) {
		_, r, err := f.forward(tx)
		return r, err
	})
	if variables.IsObserved(err) || err == nil && (seen || draws && tx.Output().WholeGraph()) {
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	apply, err := s.GetAttr(class.Class, "apply")
	if tx.Output().WholeGraph() {
		apply, err = s.Call(parts[1], class.Class)
	}
	if err != nil {
		return nil, variables.Observe(err)
	}
	name := py.TypeName(class.Class) + ".apply"
	var node *fxgraph.Node
	r := variables.VariableTracker(nil)
	if sizes == nil {
		r, err = variables.CallMarked(tx, apply, name, args, func(n *fxgraph.Node) { node = n })
	} else if node, err = tx.Output().CallFunction(tx, apply, name, args, nil); err == nil {
		tx.Output().GiveSizes(node, sizes)
		r = variables.NewTensor(node)
	}
	if err != nil {
		return nil, err
	}
	node.Opaque = node.Opaque || draws
	return r, tx.Output().Custom(node, func() error { return f.differentiate(tx, parts[2]) })
}

// autogradFunction is a call of an autograd.Function.
type autogradFunction struct {
	class, context *variables.ClassVariable
	args           []variables.VariableTracker
}

// forward calls the function's forward, with a stand-in for ctx.
func (f *autogradFunction) forward(tx variables.Translator) (ctx, r variables.VariableTracker, err error) {
	if ctx, err = variables.Call(tx, f.context, nil, nil); err != nil {
		return nil, nil, err
	}
	forward, err := f.class.GetAttr(tx, "forward")
	if err != nil {
		return nil, nil, err
	}
	setup, _ := tx.Scope().TypeLookup(f.class.Class, "setup_context")
	if theirs, _ := tx.Scope().TypeLookup(tx.World().AutogradFunction, "setup_context"); setup == theirs {
		r, err = variables.Call(tx, forward, append([]variables.VariableTracker{ctx}, f.args...), nil)
		return ctx, r, err
	}
	if r, err = variables.Call(tx, forward, f.args, nil); err != nil {
		return nil, nil, err
	}
	m, err := f.class.GetAttr(tx, "setup_context")
	if err != nil {
		return nil, nil, err
	}
	_, err = variables.Call(tx, m, []variables.VariableTracker{ctx, variables.NewTuple(f.args, nil), r}, nil)
	return ctx, r, err
}

// differentiate calls forward and backward. fn is _polyfills.autograd.differentiate.
func (f *autogradFunction) differentiate(tx variables.Translator, fn py.Object) error {
	ctx, r, err := f.forward(tx)
	if err != nil {
		return err
	}
	needs := make([]variables.VariableTracker, len(f.args))
	for i, a := range f.args {
		if needs[i] = variables.BoolConst(false); variables.IsTensor(a) {
			if needs[i], err = variables.GetAttr(tx, a, "requires_grad"); err != nil {
				return err
			}
		}
	}
	if err := variables.SetAttr(tx, ctx, "needs_input_grad", variables.NewTuple(needs, nil)); err != nil {
		return err
	}
	call := variables.NewFunction(fn, guards.NewConstSource(tx.Output().Const(fn), "___differentiate"))
	_, err = variables.Call(tx, call, []variables.VariableTracker{f.class, ctx, r}, nil)
	return err
}
