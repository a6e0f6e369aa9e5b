package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// enteredMode is a TorchFunctionMode that the program has entered. The translator does not enter the mode in torch; it
// inlines the mode's handler before each operation. A graph break while a mode is entered moves to before the
// instruction that entered it. CPython then runs the rest of the frame, and every call made while a mode is entered.
type enteredMode struct {
	mode VariableTracker
	step int // step of the outermost frame at which the mode was entered
}

// EnteredAt returns the step at which the outermost mode was entered, or false if no mode is entered.
func (w *World) EnteredAt() (step int, ok bool) {
	if len(w.modes) == 0 {
		return 0, false
	}
	return w.modes[0].step, true
}

// UnderModes reports whether the program has entered a mode, also while the mode's handler runs.
func (w *World) UnderModes() bool { return len(w.modes) > 0 || w.handling > 0 }

// UnderDefaultDevice guards the default device if torch has entered a mode for it before the frame runs. Frames are
// captured under no other kind of mode. Operations run under this mode as in eager mode.
func (w *World) UnderDefaultDevice(tx Translator) error {
	device, err := tx.Scope().Call(w.defaultDevice)
	if err != nil || device == py.None() {
		return err
	}
	out := tx.Output()
	src := guards.NewConstSource(out.Const(device), "___default_device")
	out.AddGuards(guards.GlobalState(), guards.PyCheck(src, out.Const(w.isDefaultDevice), "is the default device"))
	w.underDevice = true
	return nil
}

// activeMode returns the mode whose handler the next operation calls. It returns nil if no mode is entered, or while
// an operation calls only torch.Tensor's handler.
func activeMode(tx Translator) (VariableTracker, error) {
	w := tx.World()
	if len(w.modes) == 0 || w.handlersAside > 0 {
		return nil, nil
	}
	off, err := tx.Scope().Call(w.modesOff)
	if err != nil || off == py.True() {
		return nil, err
	}
	return w.modes[len(w.modes)-1].mode, nil
}

// withoutModes breaks the graph at an operation if a mode is active, since the operation would not be passed to the
// mode.
func withoutModes(tx Translator, what string) error {
	mode, err := activeMode(tx)
	if err == nil && mode != nil {
		err = unsupported(exc.TensorSubclass, "%s while a torch function mode is entered", what)
	}
	return err
}

// ModesSee breaks the graph at an operation that was not passed to the active mode. It permits reading an item of an
// operation's sequence of results.
func (w *World) ModesSee(tx Translator, operation string, args []VariableTracker) error {
	if len(args) > 0 {
		if _, ok := args[0].(*TensorSequence); ok {
			return nil
		}
	}
	return withoutModes(tx, operation)
}

// OutOfSight runs an operation whose own steps the program's modes would see, such as the calls of a transform. It
// breaks the graph unless the handlers of all entered modes pass such steps on unchanged.
func (w *World) OutOfSight(tx Translator, what string, run func() error) error {
	mode, err := activeMode(tx)
	if err != nil {
		return err
	}
	if mode == nil {
		return run()
	}
	for _, m := range w.modes {
		if o, ok := m.mode.(*ObjectVariable); !ok || !w.truth(tx.Scope(), w.changesItemsOnly, o.Class) {
			return withoutModes(tx, what)
		}
	}
	return w.HandlersAside(run)
}

// HandlersAside runs operations that the program's modes do not see.
func (w *World) HandlersAside(run func() error) error {
	w.handlersAside++
	defer func() { w.handlersAside-- }()
	return run()
}

// modeCall handles calls of torch's functions that read or change the stack of modes.
func (t *TorchVariable) modeCall(tx Translator, name string, args []VariableTracker) (VariableTracker, error) {
	w := tx.World()
	tx.Output().AddGuards(guards.GlobalState()) // no mode was entered before the frame ran
	if w.underDevice {
		return nil, unsupported(exc.CallUnsupported, "%s under a default device", name)
	}
	switch {
	case t.detail == "push" && len(args) == 1:
		mode, err := Realize(tx, args[0])
		if err != nil {
			return nil, err
		}
		if _, ok := mode.(*ObjectVariable); !ok || w.PythonOps {
			return nil, unsupported(exc.CallUnsupported, "%s of %s", name, Describe(tx, mode))
		}
		w.modes = append(w.modes, enteredMode{mode, tx.Output().Step()})
		return NoneConst(), nil
	case t.detail == "pop" && len(args) == 0 && len(w.modes) > 0:
		last := len(w.modes) - 1
		mode := w.modes[last].mode
		w.modes = w.modes[:last:last]
		return mode, nil
	case t.detail == "number" && len(args) == 0:
		return IntConst(tx, len(w.modes)), nil
	case t.detail == "at" && len(args) == 1:
		if i, ok := ConstInt(tx, MustRealize(tx, args[0])); ok && i >= 0 && i < len(w.modes) {
			return w.modes[i].mode, nil
		}
	case t.detail == "active" && len(args) == 0:
		mode, err := activeMode(tx)
		return BoolConst(mode != nil), err
	}
	return nil, unsupported(exc.CallUnsupported, "%s", name)
}

// runMode inlines the handler of the active mode. While the handler runs, the mode is not active.
func (c *handlerCall) runMode(tx Translator, mode VariableTracker) (VariableTracker, error) {
	handler, err := GetAttr(tx, mode, "__torch_function__")
	if err != nil {
		return nil, err
	}
	w := tx.World()
	entered := w.modes
	w.modes = entered[: len(entered)-1 : len(entered)-1]
	w.handling++
	defer func() {
		w.modes = entered
		w.handling--
	}()
	return c.callHandler(tx, handler)
}
