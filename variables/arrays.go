package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
)

// arrayTensor is torch.from_numpy of an array of the frame's: a tensor that shares its memory, made by each call in front of the graph, and an
// input of that. The array's layout is guarded, its contents are not. Nothing is read when it is made, so its place does not matter.
func (t *TorchVariable) arrayTensor(tx Translator, array VariableTracker) (VariableTracker, error) {
	s, w, out := tx.Scope(), tx.World(), tx.Output()
	l, ok := array.(*LazyVariable)
	if !ok || l.Realized() || l.Src == nil || l.obj.Type() != w.arrayType || w.PythonOps {
		return nil, unsupported(exc.CallUnsupported, "torch.from_numpy of %s", Describe(tx, array))
	}
	if err := withoutModes(tx, "torch.from_numpy"); err != nil {
		return nil, err
	}
	if on, err := w.TorchFunctionModeActive(s); err != nil || on {
		return nil, unsupported(exc.TensorSubclass, "a torch function mode is active")
	}
	parts, err := s.Call(w.arrayShared, l.obj)
	if err != nil {
		return nil, observed(err)
	}
	if parts == pyNone {
		return nil, unsupported(exc.CallUnsupported, "torch.from_numpy of an array that it may refuse")
	}
	example, same := s.Items(parts)[0], s.Items(parts)[1]
	out.AddGuards(guards.GlobalState(), guards.TypeMatch(l.Src, out.Const(w.arrayType)),
		guards.PyCheck(l.Src, out.Const(same), "has the same layout"))
	fn := t.Fn
	slot, err := out.Compute(tx, []VariableTracker{l}, false, func(e Emitter) error {
		e.PushNull()
		e.LoadConst(fn)
		if err := e.Load(l); err != nil {
			return err
		}
		e.Call(1, nil)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out.ComputedInput(slot, example), nil
}
