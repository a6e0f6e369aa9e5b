package translate

import (
	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// item is one value on the stack of a resumed frame: NULL, a tracked value, or what the native instruction left.
type item struct {
	null   bool
	v      variables.VariableTracker
	result int // temp that holds the native instruction's result; used when v is nil
}

// breakHere splits the frame before inst: what was captured runs, then inst in CPython, then a resume function for the rest
// (two for a branch).
func (tx *InstructionTranslator) breakHere(inst *bytecode.Instruction, why error) error {
	o := tx.out
	if u, ok := why.(*exc.Unsupported); ok {
		o.breaks = append(o.breaks, u)
	}
	o.breakLine = int(inst.Pos.Line)
	pops, _ := bytecode.StackUse(inst, false)
	if inst.Op == opcode.FOR_ITER || inst.Op == opcode.JUMP_IF_FALSE_OR_POP || inst.Op == opcode.JUMP_IF_TRUE_OR_POP {
		pops = 1
	}
	if pops > len(tx.stack) {
		return &exc.SkipFrame{Reason: "stack shorter than the instruction needs"}
	}
	operands := tx.popn(pops)
	live := tx.liveAfter(inst)
	if err := tx.freezeLive(operands, live); err != nil {
		return err
	}
	c := newCodegen(o)
	o.codegen = c
	if err := c.runEvents(); err != nil {
		return err
	}
	here := tx.chainHere()
	c.at(here, false)
	for _, v := range operands {
		if v == nil {
			c.PushNull()
			continue
		}
		if err := c.Load(v); err != nil {
			return err
		}
	}
	if o.runsPython(inst, operands) {
		c.needsHook = true
	}
	if err := tx.writeNative(c, inst, live); err != nil {
		return err
	}
	return o.finalize(c)
}

// liveAfter lists the localsplus slots that either continuation reads.
func (tx *InstructionTranslator) liveAfter(inst *bytecode.Instruction) map[int]bool {
	all := bytecode.Liveness(tx.d.code)
	live := map[int]bool{}
	add := func(in *bytecode.Instruction) {
		for _, s := range all[in].Slots() {
			if tx.locals[s] != nil {
				live[s] = true
			}
		}
	}
	next := tx.d.index[inst] + 1
	if next < len(tx.d.code.Instructions) {
		add(tx.d.code.Instructions[next])
	}
	if inst.Target != nil {
		add(inst.Target)
	}
	if usesFrame(tx.d.code) {
		for i, v := range tx.locals {
			if v != nil {
				live[i] = true
			}
		}
	}
	if hasZeroArgSuper(tx.d.code) {
		if tx.locals[0] != nil {
			live[0] = true
		}
		for i, l := range tx.d.code.Locals {
			if l.Name == "__class__" && tx.locals[i] != nil {
				live[i] = true
			}
		}
	}
	return live
}

// usesFrame tells code that asks for its own locals: all of them stay.
func usesFrame(c *bytecode.Code) bool {
	for _, in := range c.Instructions {
		if in.Op == opcode.LOAD_GLOBAL {
			switch c.Names[in.Arg>>1] {
			case "locals", "eval", "exec", "vars", "dir", "breakpoint":
				return true
			}
		}
	}
	return false
}

func hasZeroArgSuper(c *bytecode.Code) bool {
	for i, in := range c.Instructions {
		if isSuperCall(c, i, in) {
			return true
		}
	}
	return false
}

func isSuperCall(c *bytecode.Code, i int, in *bytecode.Instruction) bool {
	if in.Op != opcode.LOAD_GLOBAL || c.Names[in.Arg>>1] != "super" || i+1 >= len(c.Instructions) {
		return false
	}
	next := c.Instructions[i+1]
	return next.Op == opcode.CALL && next.Arg == 0
}

// freezeLive makes real what the rest of the frame will see.
func (tx *InstructionTranslator) freezeLive(operands []variables.VariableTracker, live map[int]bool) error {
	for _, v := range append(append([]variables.VariableTracker(nil), tx.stack...), operands...) {
		if v != nil {
			if err := tx.out.Freeze(tx, v); err != nil {
				return &exc.SkipFrame{Reason: err.Error()}
			}
		}
	}
	for i := range tx.locals {
		if live[i] {
			if err := tx.out.Freeze(tx, tx.locals[i]); err != nil {
				return &exc.SkipFrame{Reason: err.Error()}
			}
		}
	}
	return nil
}

// runsPython tells whether the instruction may call Python code that was not inlined.
func (o *OutputGraph) runsPython(inst *bytecode.Instruction, operands []variables.VariableTracker) bool {
	switch inst.Op {
	case opcode.CALL, opcode.CALL_FUNCTION_EX:
		for _, v := range operands[:2] {
			switch x := v.(type) {
			case nil:
			case *variables.BuiltinVariable, *variables.BoundBuiltin, *variables.TorchVariable:
				return false
			case *variables.LazyVariable:
				switch x.Peek().Kind() {
				case py.Builtin, py.MethodDescr:
					return false
				}
			}
		}
		return true
	case opcode.LOAD_ATTR, opcode.LOAD_METHOD, opcode.STORE_ATTR, opcode.BINARY_OP, opcode.BINARY_SUBSCR, opcode.COMPARE_OP,
		opcode.CONTAINS_OP, opcode.STORE_SUBSCR, opcode.FOR_ITER, opcode.GET_ITER:
		for _, v := range operands {
			if _, ok := v.(*variables.ObjectVariable); ok {
				return true
			}
		}
	}
	return false
}

// writeNative writes inst as CPython runs it, and the calls of the resume functions behind it.
func (tx *InstructionTranslator) writeNative(c *Codegen, inst *bytecode.Instruction, live map[int]bool) error {
	below := make([]item, len(tx.stack))
	for i, v := range tx.stack {
		below[i] = item{null: v == nil, v: v}
	}
	next := tx.d.index[inst] + 1
	var after *bytecode.Instruction
	if next < len(tx.d.code.Instructions) {
		after = tx.d.code.Instructions[next]
	}
	resume := func(target *bytecode.Instruction, stack []item) error {
		return tx.callResume(c, inst, target, stack, live)
	}
	result := func() item {
		t := c.newTemp()
		c.emit(opcode.STORE_FAST, spaceTemp|t)
		return item{result: t}
	}
	name := func() string { return tx.d.code.Names[inst.Arg] }
	switch inst.Op {
	case opcode.POP_JUMP_IF_FALSE, opcode.POP_JUMP_IF_TRUE, opcode.POP_JUMP_IF_NONE, opcode.POP_JUMP_IF_NOT_NONE:
		j := c.emit(inst.Op, 0)
		if err := resume(after, below); err != nil {
			return err
		}
		return c.arm(j, func() error { return resume(inst.Target, below) })
	case opcode.JUMP_IF_FALSE_OR_POP, opcode.JUMP_IF_TRUE_OR_POP:
		j := c.emit(inst.Op, 0)
		if err := resume(after, below); err != nil {
			return err
		}
		return c.arm(j, func() error { return resume(inst.Target, append(below[:len(below):len(below)], result())) })
	case opcode.FOR_ITER:
		j := c.emit(inst.Op, 0)
		v := result()
		it := result()
		if err := resume(after, append(below[:len(below):len(below)], it, v)); err != nil {
			return err
		}
		return c.arm(j, func() error { return resume(inst.Target, below) })
	case opcode.LOAD_METHOD: // taken bound: a NULL result could not be handed on
		c.LoadAttr(name())
		return resume(after, append(below, item{null: true}, result()))
	case opcode.LOAD_GLOBAL:
		c.emit(opcode.LOAD_GLOBAL, c.name(tx.d.code.Names[inst.Arg>>1])<<1)
		if inst.Arg&1 != 0 {
			below = append(below, item{null: true})
		}
		return resume(after, append(below, result()))
	case opcode.CALL:
		c.Call(inst.Arg, tx.kwargs)
	case opcode.LOAD_ATTR, opcode.STORE_ATTR, opcode.DELETE_ATTR, opcode.STORE_GLOBAL, opcode.DELETE_GLOBAL, opcode.IMPORT_NAME,
		opcode.IMPORT_FROM:
		c.emit(inst.Op, c.name(name()))
	case opcode.RAISE_VARARGS:
		c.emit(inst.Op, inst.Arg)
		return nil
	case opcode.LIST_APPEND, opcode.LIST_EXTEND, opcode.SET_ADD, opcode.SET_UPDATE, opcode.MAP_ADD, opcode.DICT_UPDATE, opcode.DICT_MERGE:
		return &exc.SkipFrame{Reason: "split while a display is built"}
	default:
		c.emit(inst.Op, inst.Arg)
	}
	_, pushes := bytecode.StackUse(inst, false)
	results := make([]item, pushes)
	for i := pushes - 1; i >= 0; i-- {
		results[i] = result()
	}
	return resume(after, append(below, results...))
}

// arm writes the second continuation of a branch and lets j jump to it.
func (c *Codegen) arm(j *bytecode.Instruction, write func() error) error {
	start := len(c.list)
	if err := write(); err != nil {
		return err
	}
	nop := bytecode.New(opcode.NOP, 0).At(c.pos)
	c.list = append(c.list[:start:start], append([]*bytecode.Instruction{nop}, c.list[start:]...)...)
	for i := range c.marks {
		if c.marks[i].start > start {
			c.marks[i].start++
		}
	}
	j.Target = nop
	return nil
}

// callResume writes: return resume(stack values, live locals).
func (tx *InstructionTranslator) callResume(c *Codegen, inst, target *bytecode.Instruction, stack []item, live map[int]bool) error {
	c.at(tx.chainHere(), true)
	fn, params, err := tx.resumeFunction(inst, target, stack, live)
	if err != nil {
		return err
	}
	c.PushNull()
	c.LoadConst(fn)
	n := 0
	for _, slot := range params {
		if err := c.Load(tx.locals[slot]); err != nil {
			return err
		}
		n++
	}
	for _, it := range stack {
		switch {
		case it.null:
			continue
		case it.v != nil:
			if err := c.Load(it.v); err != nil {
				return err
			}
		default:
			c.emit(opcode.LOAD_FAST, spaceTemp|it.result)
		}
		n++
	}
	c.Call(n, nil)
	c.emit(opcode.RETURN_VALUE, 0)
	return nil
}

// resumeFunction makes the callable for the rest of the frame from target on: a prologue that pushes the stack and jumps into
// a copy of the whole code. Live locals keep their names; cells come in as plain parameters (LOAD_DEREF and
// STORE_DEREF work on a slot that holds a cell), so inner functions made before the split share them.
func (tx *InstructionTranslator) resumeFunction(inst, target *bytecode.Instruction, stack []item, live map[int]bool) (py.Object, []int, error) {
	src := tx.d.code
	code := src.Clone()
	var params []int
	for i := range src.Locals {
		if live[i] {
			params = append(params, i)
		}
	}
	place := make([]int, len(src.Locals))
	for i := range place {
		place[i] = -1
	}
	used := map[string]bool{}
	for _, l := range src.Locals {
		used[l.Name] = true
	}
	var locals []bytecode.Local
	for p, i := range params {
		place[i] = p
		locals = append(locals, bytecode.Local{Name: src.Locals[i].Name, Kind: opcode.CO_FAST_LOCAL})
	}
	shape := ""
	first := len(locals)
	for i, it := range stack {
		if it.null {
			shape += "N"
			continue
		}
		shape += "v"
		name := "___stack" + itoa(i)
		for k := 1; used[name]; k++ {
			name = "___stack" + itoa(i) + "_" + itoa(k)
		}
		used[name] = true
		locals = append(locals, bytecode.Local{Name: name, Kind: opcode.CO_FAST_LOCAL})
	}
	argCount := len(locals)
	for i, l := range src.Locals {
		if place[i] < 0 {
			place[i] = len(locals)
			locals = append(locals, bytecode.Local{Name: l.Name, Kind: opcode.CO_FAST_LOCAL})
		}
	}
	body := code.Instructions
	goal := body[tx.d.index[target]]
	prologue := []*bytecode.Instruction{bytecode.New(opcode.RESUME, 0).At(goal.Pos)}
	k := first
	for _, it := range stack {
		if it.null {
			prologue = append(prologue, bytecode.New(opcode.PUSH_NULL, 0).At(goal.Pos))
			continue
		}
		prologue = append(prologue, bytecode.New(opcode.LOAD_FAST, k).At(goal.Pos))
		k++
	}
	prologue = append(prologue, bytecode.NewJump(opcode.JUMP, goal).At(goal.Pos))
	body = resumeBody(code, body, place)
	code.Locals = locals
	code.ArgCount, code.PosOnlyArgCount, code.KwOnlyArgCount = argCount, 0, 0
	code.Flags = opcode.CO_OPTIMIZED | opcode.CO_NEWLOCALS
	code.Instructions = append(prologue, body...)
	origin := &Origin{Code: tx.d.object, Target: tx.d.index[target], Params: params, Stack: shape}
	name := "resume_in_" + src.Name + "_at_" + itoa(int(inst.Pos.Line))
	tx.out.resumes = append(tx.out.resumes, name)
	fn, err := tx.out.installer.Resume(tx.Scope(), origin, func() (py.Object, error) {
		raw, err := bytecode.Lower(code, Version)
		if err != nil {
			return py.Object{}, err
		}
		obj, err := tx.out.installer.NewCode(tx.Scope(), raw, tx.d.consts)
		if err != nil {
			return py.Object{}, err
		}
		return tx.Scope().NewFunction(obj, tx.out.frame.Globals, py.Object{}, name, name, py.Object{})
	})
	return fn, params, err
}

// resumeBody renumbers the locals of a copied body and drops what only a frame's start does. super() without arguments gets both:
// it would look for __class__ among the free variables, which are parameters now.
func resumeBody(code *bytecode.Code, body []*bytecode.Instruction, place []int) []*bytecode.Instruction {
	classSlot := -1
	for i, l := range code.Locals {
		if l.Name == "__class__" {
			classSlot = i
		}
	}
	var out []*bytecode.Instruction
	for i, in := range body {
		superCall := classSlot >= 0 && isSuperCall(code, i, in)
		switch in.Op {
		case opcode.MAKE_CELL, opcode.COPY_FREE_VARS:
			in.Op, in.Arg = opcode.NOP, 0
		}
		switch in.Op.ArgKind() {
		case opcode.ArgLocal, opcode.ArgFree:
			in.Arg = place[in.Arg]
		}
		out = append(out, in)
		if superCall {
			load := opcode.LOAD_FAST
			if code.Locals[0].Kind&opcode.CO_FAST_CELL != 0 {
				load = opcode.LOAD_DEREF
			}
			a, b := bytecode.New(opcode.LOAD_DEREF, place[classSlot]).At(in.Pos), bytecode.New(load, place[0]).At(in.Pos)
			a.Handler, b.Handler = in.Handler, in.Handler
			out = append(out, a, b)
			body[i+1].Arg = 2
		}
	}
	return out
}
