package variables

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// check captures torch._check_with(error_type, cond, message), which torch._check and similar functions call. A
// condition known only at run time makes the call an effect that may raise; after it, the condition is a fact. For
// other conditions the function is inlined.
func (t *TorchVariable) check(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if len(args) == 3 && len(kwargs) == 0 {
		v, err := Realize(tx, args[1])
		if err != nil {
			return nil, err
		}
		if cond, ok := v.(*undecidedVariable); ok {
			return NoneConst(), tx.Output().CheckInGraph(tx, cond.cond)
		}
		if cond, ok := v.(*ComputedVariable); ok && cond.cond != nil && tx.Output().WholeGraph() {
			return NoneConst(), tx.Output().CheckInGraph(tx, *cond.cond)
		} else if ok && cond.Type == tx.World().Builtin("bool") {
			return NoneConst(), t.checkAtRunTime(tx, cond, args)
		}
	}
	return tx.Inline(NewFunction(t.Fn, guards.NewConstSource(tx.Output().Const(t.Fn), "___function_"+name)), args,
		kwargs)
}

func (t *TorchVariable) checkAtRunTime(tx Translator, cond *ComputedVariable, args []VariableTracker) error {
	tx.Output().Const(t.Fn)
	err := tx.Output().Effect(tx, args, func(e Emitter) error {
		e.PushNull()
		e.LoadConst(t.Fn)
		if err := LoadAll(e, args); err != nil {
			return err
		}
		e.Call(len(args), nil)
		e.PopTop()
		return nil
	})
	if err == nil && cond.cond != nil {
		tx.World().Env().Assume(*cond.cond)
	}
	return err
}

// undecidedVariable is a condition on numbers in a translation for export: on numbers known only at run time, or one
// that an operation takes (Output.LeaveUndecided). torch._check and torch.cond accept it.
type undecidedVariable struct {
	Base
	cond sym.Cond
}

// NewUndecided returns the tracker of a condition that is not decided before its truth is needed.
func NewUndecided(c sym.Cond) VariableTracker { return &undecidedVariable{cond: c} }

// IsUndecided reports whether v is a condition that is not decided.
func IsUndecided(v VariableTracker) bool {
	_, ok := v.(*undecidedVariable)
	return ok
}

// Kind implements VariableTracker.
func (*undecidedVariable) Kind() string { return "UndecidedVariable" }

// Truth implements Truther.
func (v *undecidedVariable) Truth(tx Translator) (bool, error) { return tx.Output().Decide(tx, v.cond) }

// AsProxy implements Proxy.
func (v *undecidedVariable) AsProxy(tx Translator) (fxgraph.Arg, error) {
	return tx.Output().ConditionNode(tx, v.cond)
}

// PythonType implements Typed.
func (*undecidedVariable) PythonType(tx Translator) (py.Object, error) {
	return tx.World().Builtin("bool"), nil
}

// comparedAtRunTime compares two ints if err reports that the condition c is undecided. At least one of the ints is
// known only at run time. The result is a bool computed at run time.
func comparedAtRunTime(tx Translator, c sym.Cond, err error, operands []VariableTracker,
	emit func(e Emitter)) (VariableTracker, error) {
	u, ok := err.(*exc.Unsupported)
	if ok && u.DataDependent && tx.World().Exporting && tx.World().FixesSizes == 0 {
		return &undecidedVariable{cond: c}, nil
	}
	if !ok || !u.DataDependent || tx.Output().WholeGraph() && !tx.Output().Unbacked() ||
		tx.World().FixesSizes > 0 {
		return nil, err
	}
	for i, v := range operands {
		if err := tx.Output().Freeze(tx, v); err != nil {
			return nil, err
		}
		operands[i] = settled(tx, v)
	}
	v, err := compute(tx, tx.World().Builtin("bool"), operands, func(e Emitter) error {
		if err := LoadAll(e, operands); err != nil {
			return err
		}
		emit(e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	v.cond = &c
	return v, nil
}
