package higher

import (
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
	sizes, seen, err := tx.Output().Tentative(func() (variables.VariableTracker, error) {
		ctx, err := variables.Call(tx, context, nil, nil)
		if err != nil {
			return nil, err
		}
		forward, err := class.GetAttr(tx, "forward")
		if err != nil {
			return nil, err
		}
		setup, _ := s.TypeLookup(class.Class, "setup_context")
		if theirs, _ := s.TypeLookup(w.AutogradFunction, "setup_context"); setup == theirs {
			return variables.Call(tx, forward, append([]variables.VariableTracker{ctx}, args...), nil)
		}
		r, err := variables.Call(tx, forward, args, nil)
		if err != nil {
			return nil, err
		}
		m, err := class.GetAttr(tx, "setup_context")
		if err != nil {
			return nil, err
		}
		_, err = variables.Call(tx, m, []variables.VariableTracker{ctx, variables.NewTuple(args, nil), r}, nil)
		return r, err
	})
	if variables.IsObserved(err) || err == nil && seen {
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
	if sizes == nil {
		return variables.CallAllowed(tx, apply, name, args, nil)
	}
	node, err := tx.Output().CallFunction(tx, apply, name, args, nil)
	if err != nil {
		return nil, err
	}
	tx.Output().GiveSizes(node, sizes)
	return variables.NewTensor(node), nil
}
