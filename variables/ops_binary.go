package variables

import (
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// binaryRow names an NB_* operator: its operator-module function and the special method.
var binaryNames = [...]string{"add", "and_", "floordiv", "lshift", "matmul", "mul", "mod", "or_", "pow", "rshift", "sub", "truediv", "xor"}
var binarySpecial = [...]string{"add", "and", "floordiv", "lshift", "matmul", "mul", "mod", "or", "pow", "rshift", "sub", "truediv", "xor"}

// Binary is a BINARY_OP; op counts as opcode.BinaryOp, in-place operators from 13 on.
func Binary(tx Translator, op int, a, b VariableTracker) (VariableTracker, error) {
	inplace := op >= len(binaryNames)
	n := op
	if inplace {
		n -= len(binaryNames)
	}
	a, err := Realize(tx, a)
	if err != nil {
		return nil, err
	}
	if b, err = Realize(tx, b); err != nil {
		return nil, err
	}
	if isOpaque(a) || isOpaque(b) {
		return PythonBinary(tx, op, a, b)
	}
	if isTensor(a) || isTensor(b) {
		if l, ok := a.(*ListVariable); !ok || !inplace || l == nil {
			return tensorOperator(tx, binaryNames[n], inplace, a, b)
		}
	}
	if r, ok, err := listOperator(tx, n, inplace, a, b); ok || err != nil {
		return r, err
	}
	if oa, ok := AsConstant(tx, a); ok {
		if ob, ok := AsConstant(tx, b); ok {
			if tooBig(tx, n, oa, ob) {
				return nil, unsupported(exc.TooLarge, "constant of great size")
			}
			r, err := tx.Scope().Binary(op, oa, ob)
			if err != nil {
				return nil, observed(err)
			}
			return immutableResult(tx, r)
		}
		if ob, ok := copyOf(tx, b); ok && binaryNames[n] == "mod" && (oa.Kind() == py.Str || oa.Kind() == py.Bytes) {
			r, err := tx.Scope().Binary(op, oa, ob)
			if err != nil {
				return nil, observed(err)
			}
			return plainResult(tx, r, "%")
		}
	}
	return objectOperator(tx, n, inplace, a, b)
}

// tooBig keeps constant folding from making giants (2 ** 10**9, "a" * 10**9) while translating.
func tooBig(tx Translator, n int, a, b py.Object) bool {
	y, ok := py.AsInt(b)
	if b.Kind() != py.Int {
		return false
	}
	switch binaryNames[n] {
	case "pow", "lshift":
		return a.Kind() == py.Int && (!ok || y > 4096)
	case "mul":
		k := a.Kind()
		return (k == py.Str || k == py.Bytes || k == py.Tuple) && (!ok || y > maxUnroll)
	}
	return false
}

func listOperator(tx Translator, n int, inplace bool, a, b VariableTracker) (VariableTracker, bool, error) {
	switch x := a.(type) {
	case *ListVariable:
		switch binaryNames[n] {
		case "add":
			if inplace {
				_, err := x.CallMethod(tx, "extend", []VariableTracker{b}, nil)
				return x, true, err
			}
			if y, ok := b.(*ListVariable); ok {
				return NewList(append(append([]VariableTracker(nil), x.items...), y.items...), nil), true, nil
			}
		case "mul":
			k, ok := ConstInt(tx, b)
			if !ok || k*len(x.items) > maxUnroll {
				break
			}
			if !inplace {
				return NewList(repeat(x.items, k), nil), true, nil
			}
			return x, true, x.setSlice(tx, NewSlice(NoneConst(), NoneConst(), NoneConst()), NewList(repeat(x.items, k), nil))
		}
	case *TupleVariable:
		switch binaryNames[n] {
		case "add":
			if y, ok := b.(*TupleVariable); ok {
				if x.class.IsNull() && y.class.IsNull() {
					if len(y.items) == 0 {
						return x, true, nil // CPython gives the operand itself
					}
					if len(x.items) == 0 {
						return y, true, nil
					}
					return NewTuple(append(append([]VariableTracker(nil), x.items...), y.items...), nil), true, nil
				}
			}
		case "mul":
			if k, ok := ConstInt(tx, b); ok {
				if r := x.repeated(k); r != nil {
					return r, true, nil
				}
			}
		}
	case *DictVariable:
		if y, ok := b.(*DictVariable); ok && binaryNames[n] == "or_" && x.class.IsNull() {
			if inplace {
				return x, true, x.update(tx, []VariableTracker{y}, nil)
			}
			r, err := x.CallMethod(tx, "copy", nil, nil)
			if err != nil {
				return nil, true, err
			}
			return r, true, r.(*DictVariable).update(tx, []VariableTracker{y}, nil)
		}
	}
	if k, ok := ConstInt(tx, a); ok && binaryNames[n] == "mul" {
		switch y := b.(type) {
		case *ListVariable:
			if k*len(y.items) <= maxUnroll {
				return NewList(repeat(y.items, k), nil), true, nil
			}
		case *TupleVariable:
			if r := y.repeated(k); r != nil {
				return r, true, nil
			}
		}
	}
	return nil, false, nil
}

// repeated is t * k of an exact tuple, t itself once; nil when it would be too large or another class decides.
func (t *TupleVariable) repeated(k int) *TupleVariable {
	switch {
	case !t.class.IsNull() || k*len(t.items) > maxUnroll:
		return nil
	case k == 1:
		return t
	}
	return NewTuple(repeat(t.items, k), nil)
}

func repeat(items []VariableTracker, k int) []VariableTracker {
	var out []VariableTracker
	for i := 0; i < k; i++ {
		out = append(out, items...)
	}
	return out
}

// objectOperator runs a user class's special methods in CPython's order: in-place, left (right first when its type is a
// proper subclass), reflected.
func objectOperator(tx Translator, n int, inplace bool, a, b VariableTracker) (VariableTracker, error) {
	try := func(x, y VariableTracker, name string) (VariableTracker, bool, error) {
		return trySpecial(tx, x, y, name)
	}
	type step struct {
		x, y VariableTracker
		name string
	}
	var steps []step
	if inplace {
		steps = append(steps, step{a, b, "__i" + binarySpecial[n] + "__"})
	}
	left := step{a, b, "__" + binarySpecial[n] + "__"}
	right := step{b, a, "__r" + binarySpecial[n] + "__"}
	if properSubclass(tx, b, a) {
		steps = append(steps, right, left)
	} else {
		steps = append(steps, left, right)
	}
	for _, s := range steps {
		if r, ok, err := try(s.x, s.y, s.name); ok || err != nil {
			return r, err
		}
	}
	return nil, unsupported(exc.OperatorUnsupported, "%s %s %s", Describe(tx, a), binaryNames[n], Describe(tx, b))
}

func properSubclass(tx Translator, b, a VariableTracker) bool {
	bo, ok := b.(*ObjectVariable)
	if !ok {
		return false
	}
	ao, ok := a.(*ObjectVariable)
	return ok && bo.Class != ao.Class && py.IsSubtype(bo.Class, ao.Class)
}

var unaryNames = [...]string{"pos", "neg", "invert"}

// Unary is + (0), - (1), ~ (2) or not (3).
func Unary(tx Translator, op int, v VariableTracker) (VariableTracker, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return nil, err
	}
	if op == 3 {
		t, err := Truth(tx, v)
		if err != nil {
			return nil, err
		}
		return BoolConst(!t), nil
	}
	if isOpaque(v) {
		return PythonUnary(tx, op, v)
	}
	if isTensor(v) {
		return tensorOperator(tx, unaryNames[op], false, v)
	}
	if o, ok := AsConstant(tx, v); ok {
		r, err := tx.Scope().Unary(op, o)
		if err != nil {
			return nil, observed(err)
		}
		return immutableResult(tx, r)
	}
	if o, ok := v.(*ObjectVariable); ok {
		m, err := o.lookupSpecial(tx, "__"+unaryNames[op]+"__")
		if err != nil {
			return nil, err
		}
		if m != nil {
			return Call(tx, m, nil, nil)
		}
	}
	return nil, unsupported(exc.OperatorUnsupported, "%s %s", unaryNames[op], Describe(tx, v))
}
