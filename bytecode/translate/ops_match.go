package translate

import (
	"strconv"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// matchKind implements MATCH_SEQUENCE and MATCH_MAPPING. As in CPython, the result is a flag of the subject's type.
//
//	stack: subject -- subject bool
//	breaks: GD0207
func (tx *InstructionTranslator) matchKind(inst *bytecode.Instruction) error {
	class, err := variables.PythonType(tx, tx.top(1))
	if err != nil {
		return exc.Break(exc.OperatorUnsupported, "pattern on %s", variables.Describe(tx, tx.top(1)))
	}
	matches, err := tx.World().Matches(tx, class, inst.Op != opcode.MATCH_MAPPING)
	if err != nil {
		return err
	}
	tx.push(variables.BoolConst(matches))
	return nil
}

// matchKeys implements MATCH_KEYS.
//
//	stack: subject keys -- subject keys values-or-None
//	breaks: GD0207, GD0401
func (tx *InstructionTranslator) matchKeys(*bytecode.Instruction) error {
	v, err := variables.Realize(tx, tx.top(2))
	if err != nil {
		return err
	}
	d, ok := v.(*variables.DictVariable)
	if !ok {
		return exc.Break(exc.OperatorUnsupported, "mapping pattern on %s", variables.Describe(tx, v))
	}
	keys, err := variables.Unpack(tx, tx.top(1))
	if err != nil {
		return err
	}
	for i, k := range keys {
		for _, other := range keys[:i] {
			if same, err := variables.Equal(tx, k, other); err != nil || same {
				if err == nil {
					return exc.Break(exc.ProgramRaises, "mapping pattern checks a key twice")
				}
				return notBranch(err)
			}
		}
	}
	values := make([]variables.VariableTracker, len(keys))
	for i, k := range keys {
		value, found, err := d.Lookup(tx, k)
		if err != nil {
			return err
		}
		if !found {
			tx.push(variables.NoneConst())
			return nil
		}
		values[i] = value
	}
	tx.push(variables.NewTuple(values, nil))
	return nil
}

// matchClass implements MATCH_CLASS.
//
//	stack: subject class names -- attributes-or-None      arg: number of positional patterns
//	breaks: GD0201, GD0202, GD0207, GD0401
func (tx *InstructionTranslator) matchClass(inst *bytecode.Instruction) error {
	names, class, subject := tx.pop(), tx.pop(), tx.pop()
	cls, err := variables.Realize(tx, class)
	if err != nil {
		return err
	}
	c, ok := variables.AsConstant(tx, cls)
	if !ok || (c.Kind() != py.TypeKind && c.Kind() != py.TypeSub) {
		return exc.Break(exc.OperatorUnsupported, "class pattern %s", variables.Describe(tx, cls))
	}
	isinstance := variables.NewBuiltin(tx.World().Builtin("isinstance"), "isinstance", nil)
	r, err := variables.Call(tx, isinstance, []variables.VariableTracker{subject, cls}, nil)
	if err != nil {
		return notBranch(err)
	}
	if is, err := variables.Truth(tx, r); err != nil || !is {
		tx.push(variables.NoneConst())
		return notBranch(err)
	}
	attrs, rest, err := tx.positionalPatterns(cls, c, subject, inst.Arg)
	if err != nil {
		return err
	}
	keywords, err := variables.Unpack(tx, names)
	if err != nil {
		return err
	}
	for _, k := range keywords {
		name, _ := variables.ConstStr(tx, k)
		rest = append(rest, name)
	}
	seen := map[string]bool{}
	for _, name := range rest {
		if seen[name] {
			return &exc.Observed{TypeName: "TypeError", Text: py.TypeName(c) +
				"() got multiple sub-patterns for attribute '" + name + "'"}
		}
		seen[name] = true
		v, err := variables.GetAttr(tx, subject, name)
		if o, ok := err.(*exc.Observed); ok && o.TypeName == "AttributeError" {
			tx.push(variables.NoneConst())
			return nil
		}
		if err != nil {
			return err
		}
		attrs = append(attrs, v)
	}
	tx.push(variables.NewTuple(attrs, nil))
	return nil
}

// positionalPatterns returns what n positional patterns are matched against. This is either the subject itself, as a
// value, or the names of its attributes in the class's `__match_args__`.
func (tx *InstructionTranslator) positionalPatterns(cls variables.VariableTracker, c py.Object,
	subject variables.VariableTracker, n int) ([]variables.VariableTracker, []string, error) {
	if n == 0 {
		return nil, nil, nil
	}
	tooMany := func(allowed int) error {
		plural := "s"
		if allowed == 1 {
			plural = ""
		}
		return &exc.Observed{TypeName: "TypeError", Text: py.TypeName(c) + "() accepts " + strconv.Itoa(allowed) +
			" positional sub-pattern" + plural +
			" (" + strconv.Itoa(n) + " given)"}
	}
	args, err := variables.GetAttr(tx, cls, "__match_args__")
	if o, ok := err.(*exc.Observed); ok && o.TypeName == "AttributeError" {
		switch self := py.Is(c, py.MatchesSelf); {
		case self && n == 1:
			return []variables.VariableTracker{subject}, nil, nil
		case self:
			return nil, nil, tooMany(1)
		}
		return nil, nil, tooMany(0)
	}
	if err != nil {
		return nil, nil, err
	}
	if t, err := variables.PythonType(tx, args); err != nil {
		return nil, nil, err
	} else if t != tx.World().TupleType {
		return nil, nil, variables.RaiseText(tx, "TypeError",
			py.TypeName(c)+".__match_args__ must be a tuple (got "+py.TypeName(t)+")")
	}
	items, err := variables.Unpack(tx, args)
	if err != nil {
		return nil, nil, err
	}
	if n > len(items) {
		return nil, nil, tooMany(len(items))
	}
	names := make([]string, n)
	for i, it := range items[:n] {
		if it, err = variables.Realize(tx, it); err != nil {
			return nil, nil, err
		}
		name, ok := variables.ConstStr(tx, it)
		if !ok {
			return nil, nil, exc.Break(exc.ProgramRaises, "__match_args__ of %s", py.TypeName(c))
		}
		names[i] = name
	}
	return nil, names, nil
}
