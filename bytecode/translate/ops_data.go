package translate

import (
	"strconv"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/variables"
)

func (tx *InstructionTranslator) loadAttr(inst *bytecode.Instruction) error {
	v, err := variables.GetAttr(tx, tx.pop(), tx.d.code.Names[inst.Arg])
	if err != nil {
		return err
	}
	tx.push(v)
	return nil
}

// loadMethod implements LOAD_METHOD: the attribute is taken bound, with NULL below it as for a plain callable, but for a C method that
// may refuse to be bound.
//
//	stack: object -- NULL method | function object
func (tx *InstructionTranslator) loadMethod(inst *bytecode.Instruction) error {
	below, top, err := variables.LoadMethod(tx, tx.pop(), tx.d.code.Names[inst.Arg])
	if err != nil {
		return err
	}
	tx.push(below)
	tx.push(top)
	return nil
}

func (tx *InstructionTranslator) storeAttr(inst *bytecode.Instruction) error {
	obj, v := tx.pop(), tx.pop()
	return variables.SetAttr(tx, obj, tx.d.code.Names[inst.Arg], v)
}

func (tx *InstructionTranslator) deleteAttr(inst *bytecode.Instruction) error {
	return variables.SetAttr(tx, tx.pop(), tx.d.code.Names[inst.Arg], nil)
}

func (tx *InstructionTranslator) binarySubscr(*bytecode.Instruction) error {
	key, obj := tx.pop(), tx.pop()
	v, err := variables.GetItem(tx, obj, key)
	if err != nil {
		return err
	}
	tx.push(v)
	return nil
}

func (tx *InstructionTranslator) storeSubscr(*bytecode.Instruction) error {
	key, obj, v := tx.pop(), tx.pop(), tx.pop()
	return variables.SetItem(tx, obj, key, v)
}

func (tx *InstructionTranslator) deleteSubscr(*bytecode.Instruction) error {
	key, obj := tx.pop(), tx.pop()
	return variables.SetItem(tx, obj, key, nil)
}

// binaryOp implements BINARY_OP.
//
//	stack: lhs rhs -- result      arg: index of the operator
//	breaks: GD0207
func (tx *InstructionTranslator) binaryOp(inst *bytecode.Instruction) error {
	rhs, lhs := tx.pop(), tx.pop()
	v, err := variables.Binary(tx, inst.Arg, lhs, rhs)
	if err != nil {
		return err
	}
	tx.push(v)
	return nil
}

func (tx *InstructionTranslator) compareOp(inst *bytecode.Instruction) error {
	rhs, lhs := tx.pop(), tx.pop()
	v, err := variables.Compare(tx, inst.Arg, lhs, rhs)
	if err != nil {
		return err
	}
	tx.push(v)
	return nil
}

func (tx *InstructionTranslator) isOp(inst *bytecode.Instruction) error {
	rhs, lhs := tx.pop(), tx.pop()
	same, err := variables.Is(tx, lhs, rhs)
	if err != nil {
		return err
	}
	tx.push(variables.BoolConst(same != (inst.Arg == 1)))
	return nil
}

func (tx *InstructionTranslator) containsOp(inst *bytecode.Instruction) error {
	container, v := tx.pop(), tx.pop()
	in, err := variables.Contains(tx, container, v)
	if err != nil {
		return notBranch(err)
	}
	tx.push(variables.BoolConst(in != (inst.Arg == 1)))
	return nil
}

// notBranch: a data-dependent truth inside an operator is the break of that instruction, not a branch.
func notBranch(err error) error {
	if u, ok := err.(*exc.Unsupported); ok {
		u.DataDependent = false
	}
	return err
}

func (tx *InstructionTranslator) unary(inst *bytecode.Instruction) error {
	op := map[opcode.Op]int{opcode.UNARY_POSITIVE: 0, opcode.UNARY_NEGATIVE: 1, opcode.UNARY_INVERT: 2, opcode.UNARY_NOT: 3}[inst.Op]
	v, err := variables.Unary(tx, op, tx.pop())
	if err != nil {
		return notBranch(err)
	}
	tx.push(v)
	return nil
}

// buildTuple implements BUILD_TUPLE: the tuple rests on its items' guards.
func (tx *InstructionTranslator) buildTuple(inst *bytecode.Instruction) error {
	items := tx.popn(inst.Arg)
	tx.push(variables.AddGuards(variables.NewTuple(items, nil), variables.Propagate(items...)))
	return nil
}

func (tx *InstructionTranslator) buildList(inst *bytecode.Instruction) error {
	items := tx.popn(inst.Arg)
	tx.push(variables.AddGuards(variables.NewList(items, nil), variables.Propagate(items...)))
	return nil
}

func (tx *InstructionTranslator) buildSet(inst *bytecode.Instruction) error {
	s, err := variables.NewSet(tx, tx.popn(inst.Arg), false, nil)
	if err != nil {
		return err
	}
	tx.push(s)
	return nil
}

func (tx *InstructionTranslator) buildMap(inst *bytecode.Instruction) error {
	kv := tx.popn(2 * inst.Arg)
	d := variables.NewDict(nil)
	for i := 0; i < len(kv); i += 2 {
		if err := d.SetItem(tx, kv[i], kv[i+1]); err != nil {
			return err
		}
	}
	tx.push(d)
	return nil
}

func (tx *InstructionTranslator) buildConstKeyMap(inst *bytecode.Instruction) error {
	keys, err := variables.Unpack(tx, tx.pop())
	if err != nil {
		return err
	}
	values := tx.popn(inst.Arg)
	d := variables.NewDict(nil)
	for i := range keys {
		if err := d.SetItem(tx, keys[i], values[i]); err != nil {
			return err
		}
	}
	tx.push(d)
	return nil
}

func (tx *InstructionTranslator) buildSlice(inst *bytecode.Instruction) error {
	p := tx.popn(inst.Arg)
	if len(p) == 2 {
		p = append(p, variables.NoneConst())
	}
	for i := range p {
		v, err := variables.Realize(tx, p[i])
		if err != nil {
			return err
		}
		p[i] = v
	}
	tx.push(variables.NewSlice(p[0], p[1], p[2]))
	return nil
}

func (tx *InstructionTranslator) buildString(inst *bytecode.Instruction) error {
	parts := tx.popn(inst.Arg)
	if text, ok, err := variables.JoinComputed(tx, parts); ok || err != nil {
		if err == nil {
			tx.push(text)
		}
		return err
	}
	for i, p := range parts {
		if _, ok := variables.AsConstant(tx, p); !ok {
			return exc.Break(exc.OperatorUnsupported, "text of %s", variables.Describe(tx, parts[i]))
		}
	}
	text, err := variables.CallMethod(tx, variables.StrConst(tx, ""), "join", []variables.VariableTracker{variables.NewTuple(parts, nil)}, nil)
	if err != nil {
		return err
	}
	tx.push(text)
	return nil
}

// formatValue implements FORMAT_VALUE on known values whose text is CPython's own, and on objects with special methods.
//
//	stack: value [spec] -- text      arg: 3 conversion bits, 4: a spec
func (tx *InstructionTranslator) formatValue(inst *bytecode.Instruction) error {
	spec := variables.VariableTracker(variables.StrConst(tx, ""))
	if inst.Arg&4 != 0 {
		spec = tx.pop()
	}
	text, err := variables.Format(tx, tx.pop(), []string{"", "str", "repr", "ascii"}[inst.Arg&3], spec)
	if err != nil {
		return notBranch(err)
	}
	tx.push(text)
	return nil
}

// onContainer calls a method of the container at stack depth arg (after the value has been popped).
func (tx *InstructionTranslator) onContainer(depth int, name string, args ...variables.VariableTracker) error {
	_, err := variables.CallMethod(tx, tx.top(depth), name, args, nil)
	return err
}

func (tx *InstructionTranslator) listAppend(inst *bytecode.Instruction) error {
	v := tx.pop()
	return tx.onContainer(inst.Arg, "append", v)
}

func (tx *InstructionTranslator) listExtend(inst *bytecode.Instruction) error {
	v := tx.pop()
	return tx.onContainer(inst.Arg, "extend", v)
}

func (tx *InstructionTranslator) listToTuple(*bytecode.Instruction) error {
	items, err := variables.Unpack(tx, tx.pop())
	if err != nil {
		return err
	}
	tx.push(variables.NewTuple(items, nil))
	return nil
}

func (tx *InstructionTranslator) setAdd(inst *bytecode.Instruction) error {
	v := tx.pop()
	return tx.onContainer(inst.Arg, "add", v)
}

func (tx *InstructionTranslator) setUpdate(inst *bytecode.Instruction) error {
	v := tx.pop()
	return tx.onContainer(inst.Arg, "update", v)
}

func (tx *InstructionTranslator) mapAdd(inst *bytecode.Instruction) error {
	v, k := tx.pop(), tx.pop()
	return variables.SetItem(tx, tx.top(inst.Arg), k, v)
}

func (tx *InstructionTranslator) dictUpdate(inst *bytecode.Instruction) error {
	v := tx.pop()
	if !variables.HasKeys(tx, v) {
		return exc.Break(exc.CallUnsupported, "{**x} of %s", variables.Describe(tx, v))
	}
	err := tx.onContainer(inst.Arg, "update", v)
	if o, ok := err.(*exc.Observed); ok && o.TypeName == "AttributeError" { // CPython says that v is no mapping
		return exc.Break(exc.CallUnsupported, "{**x} of %s", variables.Describe(tx, v))
	}
	return err
}

// dictMerge implements DICT_MERGE: keywords from **mapping; a repeated one is the call's TypeError.
func (tx *InstructionTranslator) dictMerge(inst *bytecode.Instruction) error {
	v, err := variables.Realize(tx, tx.pop())
	if err != nil {
		return err
	}
	src, ok := v.(*variables.DictVariable)
	if !ok {
		return exc.Break(exc.CallUnsupported, "keywords from %s", variables.Describe(tx, v))
	}
	dst := tx.top(inst.Arg)
	keys, err := src.Items(tx)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if in, err := variables.Contains(tx, dst, k); err != nil || in {
			if err == nil {
				err = &exc.Observed{TypeName: "TypeError", Text: "got multiple values for keyword argument", Vague: true}
			}
			return err
		}
	}
	return tx.onContainer(inst.Arg, "update", src)
}

func (tx *InstructionTranslator) unpackSequence(inst *bytecode.Instruction) error {
	items, err := variables.UnpackSome(tx, tx.pop(), inst.Arg+1)
	if err != nil {
		return err
	}
	if len(items) != inst.Arg {
		text := "too many values to unpack (expected " + strconv.Itoa(inst.Arg) + ")"
		if len(items) < inst.Arg {
			text = "not enough values to unpack (expected " + strconv.Itoa(inst.Arg) + ", got " + strconv.Itoa(len(items)) + ")"
		}
		return variables.RaiseText(tx, "ValueError", text)
	}
	for i := len(items) - 1; i >= 0; i-- {
		tx.push(items[i])
	}
	return nil
}

func (tx *InstructionTranslator) unpackEx(inst *bytecode.Instruction) error {
	before, after := inst.Arg&0xff, inst.Arg>>8
	items, err := variables.UnpackIterator(tx, tx.pop())
	if err != nil {
		return err
	}
	if len(items) < before+after {
		return variables.RaiseText(tx, "ValueError", "not enough values to unpack (expected at least "+strconv.Itoa(before+after)+
			", got "+strconv.Itoa(len(items))+")")
	}
	for i := len(items) - 1; i >= len(items)-after; i-- {
		tx.push(items[i])
	}
	mid := append([]variables.VariableTracker(nil), items[before:len(items)-after]...)
	tx.push(variables.NewList(mid, nil))
	for i := before - 1; i >= 0; i-- {
		tx.push(items[i])
	}
	return nil
}

func (tx *InstructionTranslator) getIter(*bytecode.Instruction) error {
	it, err := variables.Iter(tx, tx.pop())
	if err != nil {
		return err
	}
	tx.push(it)
	return nil
}

func (tx *InstructionTranslator) getLen(*bytecode.Instruction) error {
	n, err := variables.Len(tx, tx.top(1))
	if err != nil {
		return err
	}
	tx.push(variables.IntConst(tx, n))
	return nil
}

// forIter implements FOR_ITER.
//
//	stack: iterator -- iterator value, or -- when it is exhausted
func (tx *InstructionTranslator) forIter(inst *bytecode.Instruction) error {
	v, err := variables.Realize(tx, tx.top(1))
	if err != nil {
		return err
	}
	it, ok := v.(variables.Iterator)
	if !ok {
		return exc.Break(exc.IterUnsupported, "%s", variables.Describe(tx, v))
	}
	tx.out.world.Wrote(v)
	item, ok, err := it.Next(tx)
	if err != nil {
		return err
	}
	if !ok {
		tx.pop()
		tx.jump(inst.Target)
		return nil
	}
	tx.push(item)
	return nil
}

func (tx *InstructionTranslator) jumpTo(inst *bytecode.Instruction) error {
	tx.jump(inst.Target)
	return nil
}

func (tx *InstructionTranslator) popJumpIf(inst *bytecode.Instruction) error {
	t, err := variables.Truth(tx, tx.pop())
	if err != nil {
		return err
	}
	if t == (inst.Op == opcode.POP_JUMP_IF_TRUE) {
		tx.jump(inst.Target)
	}
	return nil
}

func (tx *InstructionTranslator) jumpIfOrPop(inst *bytecode.Instruction) error {
	t, err := variables.Truth(tx, tx.top(1))
	if err != nil {
		return err
	}
	if t == (inst.Op == opcode.JUMP_IF_TRUE_OR_POP) {
		tx.jump(inst.Target)
	} else {
		tx.pop()
	}
	return nil
}

func (tx *InstructionTranslator) popJumpIfNone(inst *bytecode.Instruction) error {
	none, err := variables.Is(tx, tx.pop(), variables.NoneConst())
	if err != nil {
		return err
	}
	if none == (inst.Op == opcode.POP_JUMP_IF_NONE) {
		tx.jump(inst.Target)
	}
	return nil
}
