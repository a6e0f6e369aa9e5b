package variables

import (
	"strings"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// appliedFunction is the class whose apply this is; nil for other builtins.
func (b *BuiltinVariable) appliedFunction(tx Translator) *ClassVariable {
	if !strings.HasSuffix(b.name, ".apply") || b.Fn.Kind() != py.Builtin {
		return nil
	}
	class, ok := py.Answered(tx.Scope().GetAttr(b.Fn, "__self__"))
	if !ok || class.Kind() != py.TypeSub || !py.IsSubtype(class, tx.World().AutogradFunction) {
		return nil
	}
	return NewClass(class, guards.NewConstSource(tx.Output().Const(class), "___function_class"))
}

// applyFunction is MyFunction.apply of a torch.autograd.Function: one operation of the graph, which calls the function itself, so that
// autograd has its backward. Its forward is translated once for what it rests on, with a stand-in for ctx; a forward that does something
// that can be seen, or asks ctx for more than to keep tensors, is CPython's.
func applyFunction(tx Translator, class *ClassVariable, args []VariableTracker) (VariableTracker, error) {
	w, s := tx.World(), tx.Scope()
	refused := unsupported(exc.CallUnsupported, "%s.apply", py.TypeName(class.Class))
	for i, a := range args {
		v, err := Realize(tx, a)
		if err != nil {
			return nil, err
		}
		if _, known := AsConstant(tx, v); !known && !isTensor(v) {
			return nil, refused
		}
		args[i] = v
	}
	r, err := s.Call(w.autogradParts)
	if err != nil {
		return nil, err
	}
	parts := s.Items(r)
	context := NewClass(parts[0], guards.NewConstSource(tx.Output().Const(parts[0]), "___ctx"))
	seen, err := tx.Output().Tentative(func() error {
		ctx, err := Call(tx, context, nil, nil)
		if err != nil {
			return err
		}
		forward, err := class.GetAttr(tx, "forward")
		if err != nil {
			return err
		}
		setup, _ := s.TypeLookup(class.Class, "setup_context")
		if theirs, _ := s.TypeLookup(w.AutogradFunction, "setup_context"); setup == theirs {
			_, err = Call(tx, forward, append([]VariableTracker{ctx}, args...), nil)
			return err
		}
		r, err := Call(tx, forward, args, nil)
		if err != nil {
			return err
		}
		m, err := class.GetAttr(tx, "setup_context")
		if err != nil {
			return err
		}
		_, err = Call(tx, m, []VariableTracker{ctx, NewTuple(args, nil), r}, nil)
		return err
	})
	if isObserved(err) || err == nil && seen {
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
		return nil, observed(err)
	}
	return callAllowed(tx, apply, py.TypeName(class.Class)+".apply", args, nil)
}
