package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Place is a place in the user's code, as logging and warnings report it.
type Place struct {
	File, Name string
	Line       int
	Globals    py.Object
	Code       py.Object
}

func (p Place) tuple(s *py.Scope) py.Object {
	return s.Tuple(s.Str(p.File), s.Int(int64(p.Line)), s.Str(p.Name))
}

// report records an effect that calls a function of effects.py. That function replaces a call that inspects its
// caller's frame (logging, warnings).
func report(tx Translator, name string, args []VariableTracker) (VariableTracker, error) {
	fn, err := effect(tx, name)
	if err != nil {
		return nil, err
	}
	return NoneConst(), told(tx, args, func(e Emitter) error {
		e.PushNull()
		e.LoadConst(fn)
		if err := LoadAll(e, args); err != nil {
			return err
		}
		e.Call(len(args), nil)
		e.PopTop()
		return nil
	})
}

// effect returns a function of python/godynamo/_called/effects.py.
func effect(tx Translator, name string) (py.Object, error) {
	m, err := tx.Scope().Import("godynamo._called.effects")
	if err != nil {
		return py.Object{}, err
	}
	fn, err := tx.Scope().GetAttr(m, name)
	if err == nil {
		tx.Output().Const(fn)
	}
	return fn, err
}

func askEffects(tx Translator, name string, args ...py.Object) (py.Object, error) {
	fn, err := effect(tx, name)
	if err != nil {
		return py.Object{}, err
	}
	return tx.Scope().Call(fn, args...)
}

// queued returns an error if an effect that prints cannot be queued and replayed in program order.
func queued(tx Translator, what string, values []VariableTracker) error {
	if !tx.World().QueueEffects || tx.InsideTry() { // a replacement of sys.stdout may raise
		return unsupported(exc.CallUnsupported, "%s", what)
	}
	for _, v := range values {
		if !printable(tx, v) {
			return unsupported(exc.CallUnsupported, "%s of %s", what, Describe(tx, v))
		}
	}
	return nil
}

// told records an effect that prints, logs or warns.
func told(tx Translator, values []VariableTracker, emit func(e Emitter) error) error {
	for _, v := range values {
		if _, known := AsConstant(tx, v); !known { // printing a tensor runs operations
			if err := withoutModes(tx, "a value that is shown"); err != nil {
				return err
			}
		}
	}
	if err := tx.Output().Effect(tx, values, emit); err != nil {
		return err
	}
	for _, v := range values {
		if _, known := AsConstant(tx, v); !known {
			tx.Output().ReadsTensors()
			break
		}
	}
	return nil
}

// callLogging implements logger.info(message, *args) and similar calls, if all handlers are classes of the logging
// module. The log record is made at run time, in program order among the operations.
func callLogging(tx Translator, fn py.Object, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	s := tx.Scope()
	what := s.Repr(fn)
	if len(kwargs) > 0 {
		return nil, unsupported(exc.CallUnsupported, "%s with %s", what, kwargs[0].Name)
	}
	method, err := askEffects(tx, "is_method", fn)
	if err != nil {
		return nil, err
	}
	var logger VariableTracker
	name := "log"
	if method == py.True() {
		if len(args) == 0 {
			return nil, unsupported(exc.CallUnsupported, "%s", what)
		}
		if logger, err = Realize(tx, args[0]); err != nil {
			return nil, err
		}
		args = args[1:]
	} else {
		root, err := askEffects(tx, "root")
		if err != nil {
			return nil, err
		}
		logger, name = NewObject(root, guards.NewConstSource(tx.Output().Const(root), "___root_logger")), "log_root"
	}
	level, err := askEffects(tx, "level_of", fn)
	if err != nil {
		return nil, err
	}
	if level == pyNone && len(args) > 0 {
		o, ok := AsConstant(tx, MustRealize(tx, args[0]))
		if !ok || o.Kind() != py.Int {
			return nil, unsupported(exc.CallUnsupported, "%s of an unknown level", what)
		}
		level, args = o, args[1:]
	}
	l, ok := logger.(*ObjectVariable)
	if !ok || l.Src == nil || l.Obj.IsNull() || len(args) == 0 {
		return nil, unsupported(exc.CallUnsupported, "%s", what)
	}
	plain, err := effect(tx, "plain_logger")
	if err != nil {
		return nil, err
	}
	if !tx.World().truth(s, plain, l.Obj) {
		return nil, unsupported(exc.CallUnsupported, "%s to a logger with the program's own handlers", what)
	}
	if err := queued(tx, what, args); err != nil {
		return nil, err
	}
	place, ok := tx.Place(1)
	if !ok {
		return nil, unsupported(exc.CallUnsupported, "%s", what)
	}
	tx.Output().AddGuards(guards.PyCheck(l.Src, tx.Output().Const(plain), "has handlers of logging's own"))
	return report(tx, name, append([]VariableTracker{l, NewConstant(level, nil), NewConstant(place.tuple(s), nil)},
		args...))
}

// callWarn implements warnings.warn(message, category, stacklevel).
func callWarn(tx Translator, fn py.Object, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	s := tx.Scope()
	var given [3]VariableTracker
	copy(given[:], args)
	for _, kw := range kwargs {
		i, ok := map[string]int{"message": 0, "category": 1, "stacklevel": 2}[kw.Name]
		if !ok || given[i] != nil {
			return nil, unsupported(exc.CallUnsupported, "warnings.warn with %s", kw.Name)
		}
		given[i] = kw.Value
	}
	if len(args) > 3 || given[0] == nil {
		return nil, unsupported(exc.CallUnsupported, "warnings.warn")
	}
	text, err := Realize(tx, given[0])
	if err != nil {
		return nil, err
	}
	if _, ok := ConstStr(tx, text); !ok {
		return nil, unsupported(exc.CallUnsupported, "warnings.warn of %s", Describe(tx, text))
	}
	category, depth := tx.World().Builtin("UserWarning"), 1
	if given[1] != nil {
		c, ok := AsConstant(tx, MustRealize(tx, given[1]))
		if !ok || c != pyNone && (c.Kind() != py.TypeKind && c.Kind() != py.TypeSub ||
			!py.IsSubtype(c, tx.World().Builtin("Warning"))) {
			return nil, unsupported(exc.CallUnsupported, "warnings.warn of %s", Describe(tx, given[1]))
		}
		if c != pyNone {
			category = c
		}
	}
	if given[2] != nil {
		n, ok := ConstInt(tx, MustRealize(tx, given[2]))
		if !ok {
			return nil, unsupported(exc.CallUnsupported, "warnings.warn with an unknown stacklevel")
		}
		depth = max(n, 1)
	}
	plain, err := effect(tx, "plain_warnings")
	if err != nil {
		return nil, err
	}
	if !tx.World().truth(s, plain, pyNone) {
		return nil, unsupported(exc.CallUnsupported, "warnings.warn where the program replaces showwarning")
	}
	if err := queued(tx, "warnings.warn", nil); err != nil {
		return nil, err
	}
	place, ok := tx.Place(depth)
	if !ok {
		return nil, unsupported(exc.CallUnsupported, "warnings.warn about the caller's caller")
	}
	module, err := s.Import("warnings")
	if err != nil {
		return nil, err
	}
	tx.Output().AddGuards(guards.PyCheck(guards.NewConstSource(tx.Output().Const(module), "___warnings"),
		tx.Output().Const(plain), "shows warnings itself"))
	return report(tx, "warn", []VariableTracker{text, NewConstant(category, nil), NewConstant(place.tuple(s), nil),
		NewConstant(place.Globals, nil)})
}
