package translate

import (
	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
	"slices"
)

// keepingReraises adds calls to the body of a resume function, like those that keepInTraceback writes into transformed
// code. They take effect if the body runs untranslated. The called function looks up the frame's variables itself.
func (tx *InstructionTranslator) keepingReraises(code *bytecode.Code, body []*bytecode.Instruction,
	consts []py.Object) ([]*bytecode.Instruction, []py.Object) {
	var out []*bytecode.Instruction
	first := len(consts)
	for _, in := range body {
		bare := in.Op == opcode.RAISE_VARARGS && in.Arg == 0
		if in.Handler != nil || in.Op != opcode.RERAISE && !bare {
			out = append(out, in)
			continue
		}
		if len(consts) == first {
			c := tx.out.codegen
			consts = append(consts[:first:first], c.core(quietCalls.name()), c.core("keep_in_traceback"),
				tx.d.object, py.None())
			code.NumConsts = len(consts)
		}
		raise := *in
		at := func(op opcode.Op, arg int) *bytecode.Instruction { return bytecode.New(op, arg).At(raise.Pos) }
		*in = *at(opcode.LOAD_CONST, first) // changed in place, since jumps target it
		out = append(out, in, at(opcode.LOAD_CONST, first+1))
		if bare {
			out = append(out, at(opcode.LOAD_CONST, first+3))
		} else {
			out = append(out, at(opcode.COPY, 3))
		}
		out = append(out, at(opcode.LOAD_CONST, first+2), at(opcode.BUILD_TUPLE, 3), at(opcode.BINARY_SUBSCR, 0),
			at(opcode.POP_TOP, 0), &raise)
	}
	return out, consts
}

// keepInTraceback writes the code that precedes an instruction which reraises an exception. The exception's traceback
// refers to the frame of an earlier piece, not to the frame of the resume function. The added call makes that
// traceback keep the variables alive.
func (tx *InstructionTranslator) keepInTraceback(c *Codegen, inst *bytecode.Instruction,
	operands []variables.VariableTracker, live map[int]bool) error {
	var raised variables.VariableTracker
	switch {
	case inst.Handler != nil || c.out.frame.Origin == nil:
	case inst.Op == opcode.RERAISE:
		raised = operands[0]
	case inst.Op == opcode.RAISE_VARARGS && inst.Arg == 0 && len(tx.handled) > 0:
		raised = tx.handled[len(tx.handled)-1]
	}
	if raised == nil {
		return nil
	}
	var held []int
	for i := range tx.locals {
		if live[i] && tx.out.heldHere(tx.locals[i]) {
			held = append(held, i)
		}
	}
	if len(held) == 0 {
		return nil
	}
	err := c.as(quietCalls, func() error {
		c.PushNull()
		c.LoadConst(c.core("keep_in_traceback"))
		if err := c.Load(raised); err != nil {
			return err
		}
		c.LoadConst(tx.d.object)
		for _, i := range held {
			c.LoadConst(tx.Scope().Int(int64(i)))
			if err := c.Load(tx.locals[i]); err != nil {
				return err
			}
		}
		c.Call(2+2*len(held), nil)
		return nil
	})
	c.PopTop()
	return err
}

// dropRaised writes code that clears the slots of an exception that is about to leave the frame, and of its cause. Both
// objects are on the stack then. The exception's traceback keeps the frame alive, so a slot that held the exception
// would form a reference cycle. Only the garbage collector could then free the frame's variables.
func (tx *InstructionTranslator) dropRaised(c *Codegen, inst *bytecode.Instruction,
	operands []variables.VariableTracker) {
	if inst.Handler != nil || inst.Op != opcode.RAISE_VARARGS && inst.Op != opcode.RERAISE {
		return
	}
	o := tx.out
	r := &reach{o: o, params: map[int]bool{}, slots: map[int]bool{}, seen: map[variables.VariableTracker]bool{}}
	r.all(tx.locals)
	r.all(tx.stack)
	r.all(tx.handled)
	dropped := map[drop]bool{}
	for _, v := range operands {
		if v == nil || r.seen[v] {
			continue
		}
		var d drop
		if s := variables.SlotOf(v); s != nil && !r.slots[s.Index] {
			d = drop{index: s.Index}
		} else if src, ok := v.Source().(*guards.LocalSource); ok && o.frame.Origin != nil && !r.params[src.Slot] {
			d = drop{param: true, index: src.Slot}
		} else {
			continue
		}
		if !dropped[d] {
			dropped[d] = true
			c.drop(d)
		}
	}
}

// leaveOffsets changes the RERAISEs of a resume function's body that would read an offset from its first stack: they
// raise at their own place. No code can push an offset (CPython 3.14 has it as a tagged integer, not as an object), so
// the prologue pushes something else there. The place is only seen in the frame's line number and by trace functions.
func leaveOffsets(code *bytecode.Code, stack []item) error {
	if !slices.ContainsFunc(stack, func(it item) bool { return it.lasti }) {
		return nil
	}
	if stack[0].rest != nil { // lies below the user's own stack
		stack = stack[1:]
	}
	depths, err := bytecode.StackDepths(code)
	if err != nil {
		return err
	}
	for i, in := range code.Instructions {
		if in.Op != opcode.RERAISE || in.Arg == 0 {
			continue
		}
		if at := depths[i] - 1 - in.Arg; at >= 0 && at < len(stack) && stack[at].lasti {
			in.Arg = 0
		}
	}
	return nil
}
