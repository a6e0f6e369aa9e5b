package variables

import (
	"strings"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/internal/exc"
)

// callDunder calls a special method of a builtin container by its name, as in v.__len__() or list.__add__(v, w). It
// breaks the graph for names that it does not implement.
func callDunder(tx Translator, v VariableTracker, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	bare, begins := strings.CutPrefix(name, "__")
	bare, ends := strings.CutSuffix(bare, "__")
	if !begins || !ends || len(kwargs) > 0 {
		return nil, wrongCall(tx, v, name, args, kwargs)
	}
	switch len(args) {
	case 0:
		switch bare {
		case "len":
			n, err := Len(tx, v)
			return IntConst(tx, n), err
		case "iter":
			return Iter(tx, v)
		case "bool":
			t, err := Truth(tx, v)
			return BoolConst(t), err
		case "repr", "str":
			text, err := reprText(tx, v)
			return NewConstant(tx.Scope().Str(text), nil), err
		case "reversed":
			return builtinReversed(tx, []VariableTracker{v})
		case "hash":
			return callBuiltin(tx, "hash", v)
		}
	case 1:
		switch bare {
		case "contains":
			in, err := Contains(tx, v, args[0])
			return BoolConst(in), err
		case "getitem":
			return GetItem(tx, v, args[0])
		case "delitem":
			return NoneConst(), SetItem(tx, v, args[0], nil)
		}
		if op, ok := opcode.CompareOpOf(bare); ok {
			w, err := Realize(tx, args[0])
			if err != nil {
				return nil, err
			}
			r, err := compareSlot(tx, op, v, w)
			if r == nil && err == nil {
				r = notImplemented(tx)
			}
			return r, err
		}
		if op, ok := opcode.BinaryOpOf(bare); ok {
			w, err := Realize(tx, args[0])
			if err != nil {
				return nil, err
			}
			r, ok, err := containerOperator(tx, op.Plain(), op.Inplace(), v, valueOf(w), v)
			if !ok && err == nil {
				break // list.__add__ raises TypeError here, and dict.__or__ returns NotImplemented
			}
			return r, err
		}
	case 2:
		if bare == "setitem" {
			return NoneConst(), SetItem(tx, v, args[0], args[1])
		}
	}
	return nil, wrongCall(tx, v, name, args, kwargs)
}

func notImplemented(tx Translator) VariableTracker {
	return NewConstant(tx.World().Builtin("NotImplemented"), nil)
}

// callBuiltin calls a function of the builtins module.
func callBuiltin(tx Translator, name string, args ...VariableTracker) (VariableTracker, error) {
	return builtinOf(tx, name).(*BuiltinVariable).Call(tx, args, nil)
}

// number calls `method`, a special method of the instance that is written in Python. It refuses a result that is not a
// number of type `kind`. If the class has no such method, number returns the instance's builtin value (the int of an
// int subclass), or nil if there is none.
func (o *ObjectVariable) number(tx Translator, method, kind string) (VariableTracker, error) {
	m, err := o.lookupSpecial(tx, method)
	if err != nil {
		return nil, err
	}
	if m == nil {
		if o.value != nil {
			return o.value, nil
		}
		return nil, nil
	}
	r, err := Call(tx, m, nil, nil)
	if err != nil {
		return nil, err
	}
	if r, err = Realize(tx, r); err != nil {
		return nil, err
	}
	c, ok := AsConstant(tx, r)
	if !ok || c.Kind() != kinds[kind] {
		return nil, unsupported(exc.CallUnsupported, "%s of %s", method, Describe(tx, o))
	}
	return r, nil
}

// indexed returns a slice whose start, stop and step are converted by __index__.
func (s *SliceVariable) indexed(tx Translator) (VariableTracker, error) {
	var parts [3]VariableTracker
	for i, p := range s.parts {
		k, err := indexOf(tx, p)
		if err != nil {
			return nil, err
		}
		parts[i] = NewConstant(k, nil)
	}
	return NewSlice(parts[0], parts[1], parts[2]), nil
}
