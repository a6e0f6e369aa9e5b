package translate

import (
	"strconv"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/variables"
)

// loadAttr implements LOAD_ATTR.
//
//	stack: object -- value      arg: index of the name
//	breaks: GD0202
func (tx *InstructionTranslator) loadAttr(inst *bytecode.Instruction) error {
	v, err := variables.GetAttr(tx, tx.pop(), tx.d.code.Names[inst.Arg])
	if err != nil {
		return err
	}
	tx.push(v)
	return nil
}

// loadMethod implements LOAD_METHOD. It pushes the bound attribute above NULL, as for a plain callable. A C method
// that may reject its object is pushed unbound, below the object.
//
//	stack: object -- NULL method      arg: index of the name; 3.13: method NULL
//	stack: object -- function object
//	breaks: GD0202
func (tx *InstructionTranslator) loadMethod(inst *bytecode.Instruction) error {
	below, top, err := variables.LoadMethod(tx, tx.pop(), tx.d.code.Names[inst.Arg])
	if err != nil {
		return err
	}
	if below == nil {
		tx.pushCallee(top)
	} else {
		tx.push(below)
		tx.push(top)
	}
	return nil
}

// storeAttr implements STORE_ATTR.
//
//	stack: value object --      arg: index of the name
//	breaks: GD0209
func (tx *InstructionTranslator) storeAttr(inst *bytecode.Instruction) error {
	obj, v := tx.pop(), tx.pop()
	return variables.SetAttr(tx, obj, tx.d.code.Names[inst.Arg], v)
}

// deleteAttr implements DELETE_ATTR.
//
//	stack: object --      arg: index of the name
//	breaks: GD0209
func (tx *InstructionTranslator) deleteAttr(inst *bytecode.Instruction) error {
	return variables.SetAttr(tx, tx.pop(), tx.d.code.Names[inst.Arg], nil)
}

// binarySubscr implements BINARY_SUBSCR.
//
//	stack: object key -- value
//	breaks: GD0208
func (tx *InstructionTranslator) binarySubscr(*bytecode.Instruction) error {
	key, obj := tx.pop(), tx.pop()
	v, err := variables.GetItem(tx, obj, key)
	if err != nil {
		return err
	}
	tx.push(v)
	return nil
}

// storeSubscr implements STORE_SUBSCR.
//
//	stack: value object key --
//	breaks: GD0209
func (tx *InstructionTranslator) storeSubscr(*bytecode.Instruction) error {
	key, obj, v := tx.pop(), tx.pop(), tx.pop()
	return variables.SetItem(tx, obj, key, v)
}

// deleteSubscr implements DELETE_SUBSCR.
//
//	stack: object key --
//	breaks: GD0209
func (tx *InstructionTranslator) deleteSubscr(*bytecode.Instruction) error {
	key, obj := tx.pop(), tx.pop()
	return variables.SetItem(tx, obj, key, nil)
}

// binaryOp implements BINARY_OP.
//
//	stack: lhs rhs -- result      arg: index of the operator
//	breaks: GD0207, GD0502
func (tx *InstructionTranslator) binaryOp(inst *bytecode.Instruction) error {
	if err := tx.settle(2, true); err != nil {
		return err
	}
	rhs, lhs := tx.pop(), tx.pop()
	v, err := variables.Binary(tx, opcode.BinaryOp(inst.Arg), lhs, rhs)
	if err != nil {
		return err
	}
	tx.push(v)
	return nil
}

// compareOp implements COMPARE_OP.
//
//	stack: lhs rhs -- result      arg: index of the operator
//	breaks: GD0207
func (tx *InstructionTranslator) compareOp(inst *bytecode.Instruction) error {
	if err := tx.settle(2, true); err != nil {
		return err
	}
	rhs, lhs := tx.pop(), tx.pop()
	v, err := variables.Compare(tx, opcode.CompareOp(inst.Arg), lhs, rhs)
	if err != nil {
		return err
	}
	tx.push(v)
	return nil
}

// isOp implements IS_OP.
//
//	stack: lhs rhs -- bool      arg: 1 negates
//	breaks: GD0207
func (tx *InstructionTranslator) isOp(inst *bytecode.Instruction) error {
	rhs, lhs := tx.pop(), tx.pop()
	same, err := variables.Is(tx, lhs, rhs)
	if err != nil {
		return err
	}
	tx.push(variables.BoolConst(same != (inst.Arg == 1)))
	return nil
}

// containsOp implements CONTAINS_OP.
//
//	stack: value container -- bool      arg: 1 negates
//	breaks: GD0102, GD0207, GD0502
func (tx *InstructionTranslator) containsOp(inst *bytecode.Instruction) error {
	container, v := tx.pop(), tx.pop()
	in, err := variables.Contains(tx, container, v)
	if err != nil {
		return notBranch(err)
	}
	tx.push(variables.BoolConst(in != (inst.Arg == 1)))
	return nil
}

// notBranch marks a graph break as caused by an operator, not by a branch. If an operator needs a data-dependent truth
// value, the graph then breaks at the instruction of that operator.
func notBranch(err error) error {
	if u, ok := err.(*exc.Unsupported); ok {
		u.DataDependent = false
	}
	return err
}

// unary implements UNARY_POSITIVE, UNARY_NEGATIVE, UNARY_INVERT, UNARY_NOT.
//
//	stack: value -- result
//	breaks: GD0101, GD0207
func (tx *InstructionTranslator) unary(inst *bytecode.Instruction) error {
	op := map[opcode.Op]int{opcode.UNARY_POSITIVE: 0, opcode.UNARY_NEGATIVE: 1, opcode.UNARY_INVERT: 2,
		opcode.UNARY_NOT: 3}[inst.Op]
	v, err := variables.Unary(tx, op, tx.pop())
	if err != nil {
		return notBranch(err)
	}
	tx.push(v)
	return nil
}

// buildTuple implements BUILD_TUPLE. The tuple has the guards of its items.
//
//	stack: items -- tuple      arg: number of items
func (tx *InstructionTranslator) buildTuple(inst *bytecode.Instruction) error {
	items := tx.popn(inst.Arg)
	tx.push(variables.WithGuardsOf(variables.NewTuple(items, nil), items))
	return nil
}

// buildList implements BUILD_LIST. The list has the guards of its items.
//
//	stack: items -- list      arg: number of items
func (tx *InstructionTranslator) buildList(inst *bytecode.Instruction) error {
	items := tx.popn(inst.Arg)
	tx.push(variables.WithGuardsOf(variables.NewList(items, nil), items))
	return nil
}

// buildSet implements BUILD_SET.
//
//	stack: items -- set      arg: number of items
func (tx *InstructionTranslator) buildSet(inst *bytecode.Instruction) error {
	s, err := variables.NewSet(tx, tx.popn(inst.Arg), false, nil)
	if err != nil {
		return err
	}
	tx.push(s)
	return nil
}

// buildMap implements BUILD_MAP.
//
//	stack: pairs -- dict      arg: number of pairs; a pair is a key and, above it, its value
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

// buildConstKeyMap implements BUILD_CONST_KEY_MAP.
//
//	stack: values keys -- dict      arg: number of values; keys is one tuple
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

// buildSlice implements BUILD_SLICE.
//
//	stack: start stop [step] -- slice      arg: 2, or 3 with a step
func (tx *InstructionTranslator) buildSlice(inst *bytecode.Instruction) error {
	p := tx.popn(inst.Arg)
	if len(p) == 2 {
		p = append(p, variables.NoneConst())
	}
	for i := range p {
		v, err := variables.Argument(tx, p[i])
		if err != nil {
			return err
		}
		p[i] = v
	}
	tx.push(variables.NewSlice(p[0], p[1], p[2]))
	return nil
}

// buildString implements BUILD_STRING.
//
//	stack: texts -- text      arg: number of texts
//	breaks: GD0207
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
	text, err := variables.CallMethod(tx, variables.StrConst(tx, ""), "join",
		[]variables.VariableTracker{variables.NewTuple(parts, nil)}, nil)
	if err != nil {
		return err
	}
	tx.push(text)
	return nil
}

// formatValue implements FORMAT_VALUE. It supports known values, whose text CPython computes, and objects with
// special methods.
//
//	stack: value [spec] -- text      arg: bits 0, 1: conversion; bit 2: spec
//	breaks: GD0102, GD0207
func (tx *InstructionTranslator) formatValue(inst *bytecode.Instruction) error {
	spec := variables.VariableTracker(variables.StrConst(tx, ""))
	if inst.Arg&4 != 0 {
		spec = tx.pop()
	}
	text, err := variables.Format(tx, tx.pop(), conversions[inst.Arg&3], spec)
	if err != nil {
		return notBranch(err)
	}
	tx.push(text)
	return nil
}

// conversions has the builtin for each conversion in the argument of FORMAT_VALUE and CONVERT_VALUE.
var conversions = []string{"", "str", "repr", "ascii"}

// convertValue implements CONVERT_VALUE.
//
//	stack: value -- text      arg: the conversion
//	breaks: GD0102, GD0207
func (tx *InstructionTranslator) convertValue(inst *bytecode.Instruction) error {
	text, err := variables.Format(tx, tx.pop(), conversions[inst.Arg&3], variables.StrConst(tx, ""))
	if err != nil {
		return notBranch(err)
	}
	tx.push(text)
	return nil
}

// toBool implements TO_BOOL. The jump or UNARY_NOT that follows tests the value itself.
//
//	stack: value -- value
//	breaks: GD0101, GD0207
func (tx *InstructionTranslator) toBool(inst *bytecode.Instruction) error {
	if next := tx.d.index[inst] + 1; next < len(tx.d.code.Instructions) {
		switch tx.d.code.Instructions[next].Op {
		case opcode.POP_JUMP_IF_FALSE, opcode.POP_JUMP_IF_TRUE, opcode.UNARY_NOT:
			return nil
		}
	}
	t, err := variables.Truth(tx, tx.pop())
	if err != nil {
		return err
	}
	tx.push(variables.BoolConst(t))
	return nil
}

// onContainer calls a method of the container at stack depth `depth`. The instruction's value has already been
// popped.
func (tx *InstructionTranslator) onContainer(depth int, name string, args ...variables.VariableTracker) error {
	_, err := variables.CallMethod(tx, tx.top(depth), name, args, nil)
	return err
}

// listAppend implements LIST_APPEND.
//
//	stack: list ... item -- list ...      arg: how far below the item the list is
func (tx *InstructionTranslator) listAppend(inst *bytecode.Instruction) error {
	v := tx.pop()
	if done, err := tx.appendInLoop(tx.top(inst.Arg), v); done || err != nil {
		return err
	}
	return tx.onContainer(inst.Arg, "append", v)
}

// listExtend implements LIST_EXTEND.
//
//	stack: list ... iterable -- list ...      arg: how far below the iterable the list is
func (tx *InstructionTranslator) listExtend(inst *bytecode.Instruction) error {
	v := tx.pop()
	return tx.onContainer(inst.Arg, "extend", v)
}

// listToTuple implements LIST_TO_TUPLE.
//
//	stack: list -- tuple
func (tx *InstructionTranslator) listToTuple(*bytecode.Instruction) error {
	items, err := variables.Unpack(tx, tx.pop())
	if err != nil {
		return err
	}
	tx.push(variables.NewTuple(items, nil))
	return nil
}

// setAdd implements SET_ADD.
//
//	stack: set ... item -- set ...      arg: how far below the item the set is
func (tx *InstructionTranslator) setAdd(inst *bytecode.Instruction) error {
	v := tx.pop()
	return tx.onContainer(inst.Arg, "add", v)
}

// setUpdate implements SET_UPDATE.
//
//	stack: set ... iterable -- set ...      arg: how far below the iterable the set is
func (tx *InstructionTranslator) setUpdate(inst *bytecode.Instruction) error {
	v := tx.pop()
	return tx.onContainer(inst.Arg, "update", v)
}

// mapAdd implements MAP_ADD.
//
//	stack: dict ... key value -- dict ...      arg: how far below the key the dict is
//	breaks: GD0209
func (tx *InstructionTranslator) mapAdd(inst *bytecode.Instruction) error {
	v, k := tx.pop(), tx.pop()
	return variables.SetItem(tx, tx.top(inst.Arg), k, v)
}

// dictUpdate implements DICT_UPDATE.
//
//	stack: dict ... mapping -- dict ...      arg: how far below the mapping the dict is
//	breaks: GD0201
func (tx *InstructionTranslator) dictUpdate(inst *bytecode.Instruction) error {
	v := tx.pop()
	if !variables.HasKeys(tx, v) {
		return exc.Break(exc.CallUnsupported, "{**x} of %s", variables.Describe(tx, v))
	}
	err := tx.onContainer(inst.Arg, "update", v)
	// CPython's error says that v is not a mapping.
	if o, ok := err.(*exc.Observed); ok && o.TypeName == "AttributeError" {
		return exc.Break(exc.CallUnsupported, "{**x} of %s", variables.Describe(tx, v))
	}
	return err
}

// dictMerge implements DICT_MERGE, which adds the keywords of **mapping in a call. A repeated keyword raises the
// call's TypeError.
//
//	stack: dict ... mapping -- dict ...      arg: how far below the mapping the dict is
//	breaks: GD0201
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
				err = &exc.Observed{TypeName: "TypeError", Text: "got multiple values for keyword argument",
					Vague: true}
			}
			return err
		}
	}
	return tx.onContainer(inst.Arg, "update", src)
}

// unpackSequence implements UNPACK_SEQUENCE.
//
//	stack: iterable -- items      arg: number of items; the first is on top
//	breaks: GD0210
func (tx *InstructionTranslator) unpackSequence(inst *bytecode.Instruction) error {
	v := tx.pop()
	items, err := variables.UnpackForeignSizes(tx, v, inst.Arg)
	if items == nil && err == nil {
		items, err = variables.UnpackSome(tx, v, inst.Arg+1)
	}
	if err != nil {
		return err
	}
	if len(items) > inst.Arg {
		return variables.TooMany(tx, v, inst.Arg)
	}
	if len(items) < inst.Arg {
		return variables.RaiseText(tx, "ValueError", "not enough values to unpack (expected "+
			strconv.Itoa(inst.Arg)+", got "+strconv.Itoa(len(items))+")")
	}
	for i := len(items) - 1; i >= 0; i-- {
		tx.push(items[i])
	}
	return nil
}

// unpackEx implements UNPACK_EX.
//
//	stack: iterable -- after list before      arg: low byte: length of before; bits above: of after
//	breaks: GD0210, GD0502
func (tx *InstructionTranslator) unpackEx(inst *bytecode.Instruction) error {
	before, after := inst.Arg&0xff, inst.Arg>>8
	items, err := variables.UnpackIterator(tx, tx.pop())
	if err != nil {
		return err
	}
	if len(items) < before+after {
		return variables.RaiseText(tx, "ValueError",
			"not enough values to unpack (expected at least "+strconv.Itoa(before+after)+
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

// getIter implements GET_ITER.
//
//	stack: iterable -- iterator
//	breaks: GD0210
func (tx *InstructionTranslator) getIter(*bytecode.Instruction) error {
	v := tx.pop()
	if it := variables.TensorOfSizes(tx, v); it != nil {
		tx.push(it)
		return nil
	}
	it, err := variables.Iter(tx, v)
	if err != nil {
		return err
	}
	variables.OnlyLooped(tx, it, v)
	tx.push(it)
	return nil
}

// getLen implements GET_LEN.
//
//	stack: value -- value length
//	breaks: GD0201
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
//	stack: iterator -- iterator value
//	jumps: iterator --      the iterator is exhausted
//	breaks: GD0210
func (tx *InstructionTranslator) forIter(inst *bytecode.Instruction) error {
	v, err := variables.Realize(tx, tx.top(1))
	if err != nil {
		return err
	}
	if x, ok := v.(*variables.SizesIterator); ok {
		if l := tx.out.loops.active; l != nil && l.tx == tx && l.head == inst {
			return tx.turnEnds(inst)
		}
		if entered, err := tx.enterLoop(inst, x); entered || err != nil {
			return err
		}
		if v, err = x.Fixed(tx); err != nil {
			return notBranch(err)
		}
		tx.replace(x, v)
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

// replace puts v in the place of the iterator old, on the stack and in the variables.
func (tx *InstructionTranslator) replace(old, v variables.VariableTracker) {
	for t := tx; t != nil; t = t.parent {
		for _, vs := range [][]variables.VariableTracker{t.locals, t.stack} {
			for i, x := range vs {
				if x == old {
					vs[i] = v
				}
			}
		}
	}
}

// jumpTo implements JUMP.
//
//	stack: --
func (tx *InstructionTranslator) jumpTo(inst *bytecode.Instruction) error {
	tx.jump(inst.Target)
	return nil
}

// popJumpIf implements POP_JUMP_IF_FALSE, POP_JUMP_IF_TRUE.
//
//	stack: value --
//	breaks: GD0101, GD0207
func (tx *InstructionTranslator) popJumpIf(inst *bytecode.Instruction) error {
	v := tx.pop()
	t, err := variables.Truth(tx, v)
	if err != nil {
		t, err = tx.predictedBranch(inst, v, err)
	}
	if err != nil {
		return tx.breakAtFlag(v, err)
	}
	if t == (inst.Op == opcode.POP_JUMP_IF_TRUE) {
		tx.jump(inst.Target)
	}
	return nil
}

// jumpIfOrPop implements JUMP_IF_FALSE_OR_POP, JUMP_IF_TRUE_OR_POP.
//
//	stack: value --
//	jumps: value -- value
//	breaks: GD0101, GD0207
func (tx *InstructionTranslator) jumpIfOrPop(inst *bytecode.Instruction) error {
	v := tx.pop()
	t, err := variables.Truth(tx, v)
	if err != nil {
		t, err = tx.predicted(inst, v, err, func(bool) variables.VariableTracker { return v })
	}
	if err != nil {
		return tx.breakAtFlag(v, err)
	}
	if t == (inst.Op == opcode.JUMP_IF_TRUE_OR_POP) {
		tx.push(v)
		tx.jump(inst.Target)
	}
	return nil
}

// popJumpIfNone implements POP_JUMP_IF_NONE, POP_JUMP_IF_NOT_NONE.
//
//	stack: value --
//	breaks: GD0207
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
