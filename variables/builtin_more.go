package variables

import (
	"strings"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

func init() { // runs after builtin.go's init, which makes the map
	for name, h := range map[string]builtinHandler{
		"round":  builtinRound,
		"format": positional(1, 2, builtinFormat),
		"iter":   positional(1, 2, builtinIter),
		"bytearray": func(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
			return newShadow(tx, tx.World().Builtin("bytearray"), args, kwargs)
		},
	} {
		builtinHandlers[name] = h
	}
}

// builtinRound implements round by calling an instance's __round__. It leaves other values to constant folding.
func builtinRound(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	number, digits := arg(args, 0), arg(args, 1)
	for _, kw := range kwargs {
		switch {
		case kw.Name == "number" && number == nil:
			number = kw.Value
		case kw.Name == "ndigits" && digits == nil:
			digits = kw.Value
		default:
			return nil, nil
		}
	}
	if number == nil || len(args) > 2 {
		return nil, nil
	}
	v, err := Realize(tx, number)
	if err != nil {
		return nil, err
	}
	if digits != nil {
		if digits, err = Realize(tx, digits); err != nil {
			return nil, err
		}
		if o, ok := AsConstant(tx, digits); ok && o == py.None() {
			digits = nil
		}
	}
	o, ok := v.(*ObjectVariable)
	if !ok {
		return nil, nil
	}
	m, err := o.lookupSpecial(tx, "__round__")
	if err != nil || m == nil {
		return nil, err
	}
	if digits == nil {
		return Call(tx, m, nil, nil)
	}
	return Call(tx, m, []VariableTracker{digits}, nil)
}

func builtinFormat(tx Translator, a []VariableTracker) (VariableTracker, error) {
	if len(a) == 1 {
		return Format(tx, a[0], "", StrConst(tx, ""))
	}
	if _, ok := ConstStr(tx, MustRealize(tx, a[1])); !ok {
		return nil, nil
	}
	return Format(tx, a[0], "", a[1])
}

// builtinIter implements iter(), with one argument or with a callable and a sentinel.
func builtinIter(tx Translator, a []VariableTracker) (VariableTracker, error) {
	if len(a) == 1 {
		it, err := Iter(tx, a[0])
		if o, ok := it.(*ObjectIterator); ok && err == nil {
			return o.obj, nil // an instance that is its own iterator is returned unchanged
		}
		return it, err
	}
	fn, err := Realize(tx, a[0])
	if err != nil {
		return nil, err
	}
	if _, ok := fn.(Caller); !ok {
		return nil, nil
	}
	return &CallIterator{fn: builtinOf(tx, "iter"), args: []VariableTracker{fn, a[1]}, next: nextUntil}, nil
}

// nextUntil calls the callable of iter(callable, sentinel). The iterator is exhausted if the result equals the
// sentinel, if the callable raises StopIteration, or if the callable itself has exhausted the iterator.
func nextUntil(tx Translator, it *CallIterator) (VariableTracker, bool, error) {
	v, err := Call(tx, it.args[0], nil, nil)
	same := false
	if err == nil && len(it.args) == 2 {
		if same, err = Equal(tx, it.args[1], v); err == nil && !same {
			return v, true, nil
		}
	}
	if o, ok := err.(*exc.Observed); err != nil && !(ok && raises(tx, o, "StopIteration")) {
		return nil, false, asCallBreak(err, "iter")
	}
	it.args = []VariableTracker{NewTuple(nil, nil)}
	it.next = func(Translator, *CallIterator) (VariableTracker, bool, error) { return nil, false, nil }
	return nil, false, err
}

// appliedFunction returns the subclass of autograd.Function whose method `apply` is b. It returns nil for other
// builtins.
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
