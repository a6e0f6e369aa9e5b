package translate

import (
	"slices"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// frameAskers lists the builtins that inspect their caller's frame.
var frameAskers = map[string]bool{"locals": true, "eval": true, "exec": true, "vars": true, "dir": true,
	"breakpoint": true}

// asks counts the instructions of c that load one of frameAskers. inLoop reports whether any of these instructions is
// in a loop.
func asks(c *bytecode.Code) (n int, inLoop bool) {
	for i, in := range c.Instructions {
		if in.Op == opcode.LOAD_GLOBAL && frameAskers[c.Names[in.Arg>>1]] {
			n++
			inLoop = inLoop || loops(c, i)
		}
	}
	return n, inLoop
}

// loops reports whether instruction i is in a loop: it, or a later instruction, jumps to i or to an earlier
// instruction.
func loops(c *bytecode.Code, i int) bool {
	at := map[*bytecode.Instruction]int{}
	for k, in := range c.Instructions {
		at[in] = k
	}
	for _, in := range c.Instructions[i:] {
		if in.Target != nil && at[in.Target] <= i {
			return true
		}
	}
	return false
}

// usesFrame reports whether the code inspects its own frame. Such a frame keeps all its variables.
func usesFrame(c *bytecode.Code) bool {
	n, _ := asks(c)
	return n > 0
}

// FrameLocals implements variables.Translator. A frame has one dict for its locals, which every call of locals()
// updates. The contents of the dict are known if the code makes only one such call, outside loops.
func (tx *InstructionTranslator) FrameLocals() ([]variables.Kw, bool, error) {
	if n, inLoop := asks(tx.d.code); n != 1 || inLoop {
		return nil, false, nil
	}
	var out []variables.Kw
	for i, l := range tx.d.code.Locals {
		v := tx.locals[i]
		if v == nil {
			continue
		}
		if l.Kind&(opcode.CO_FAST_CELL|opcode.CO_FAST_FREE) != 0 {
			real, err := variables.Realize(tx, v)
			if err != nil {
				return nil, false, err
			}
			if c, ok := real.(*variables.CellVariable); ok {
				if v, err = c.Get(tx); err != nil {
					return nil, false, err
				}
			}
		}
		if v != nil {
			out = append(out, variables.Kw{Name: l.Name, Value: v})
		}
	}
	return out, true, nil
}

// GlobalSource implements variables.Translator.
func (tx *InstructionTranslator) GlobalSource(name string) guards.Source {
	if tx.globalsSrc == nil {
		return guards.NewGlobalSource(name)
	}
	return guards.NewDictGetItemSource(tx.globalsSrc, tx.out.Const(tx.Scope().Name(name)))
}

// rest describes how a resume function for a single instruction continues. It has the next resume function, and the
// variables and the number of stack values that are passed to that function.
type rest struct {
	fn     py.Object
	params []int
	values int
}

// restAfter makes the resume function for the code after inst, a call that reads the frame's variables (locals(), for
// example). It returns nil if the code after the call cannot run in another frame. Each such call sees what the
// previous such call left in the frame's dict, so the code must contain only one.
func (tx *InstructionTranslator) restAfter(inst *bytecode.Instruction, live map[int]bool) (*rest, error) {
	next := tx.d.index[inst] + 1
	if n, inLoop := asks(tx.d.code); n != 1 || inLoop {
		return nil, nil
	}
	if inst.Op != opcode.CALL || inst.Handler != nil || len(tx.handled) > 0 || next >= len(tx.d.code.Instructions) {
		return nil, nil
	}
	pops, _ := bytecode.StackUse(inst, false)
	var stack []item
	for _, v := range tx.stack[:len(tx.stack)-pops] {
		if it := stackItem(v); it.kind() != 'v' {
			return nil, nil
		} else {
			stack = append(stack, it)
		}
	}
	stack = append(stack, item{})
	fn, params, err := tx.resumeFunction(inst, tx.d.code.Instructions[next], stack, live)
	if err == nil && slices.ContainsFunc(params, func(slot int) bool { return slot < 0 }) {
		return nil, nil
	}
	return &rest{fn, params, len(stack)}, err
}

// callAfter inserts `return rest(variables..., values...)` into the body of a resume function, after the instruction
// with index at. The callable is on the stack, below the values. The inserted code moves the values to the slots from
// free on, and loads them again after the variables.
func (r *rest) callAfter(body []*bytecode.Instruction, at int, place []int, free int) []*bytecode.Instruction {
	pos := body[at].Pos
	var tail []*bytecode.Instruction
	put := func(op opcode.Op, arg int) { tail = append(tail, bytecode.New(op, arg).At(pos)) }
	for i := r.values - 1; i >= 0; i-- {
		put(opcode.STORE_FAST, free+i)
	}
	for _, slot := range r.params {
		put(opcode.LOAD_FAST, place[slot])
	}
	for i := 0; i < r.values; i++ {
		put(opcode.LOAD_FAST, free+i)
	}
	put(opcode.CALL, len(r.params)+r.values)
	put(opcode.RETURN_VALUE, 0)
	return append(body[:at+1:at+1], append(tail, body[at+1:]...)...)
}

// splitsOwnFrame decides how a frame that inspects its own variables breaks at inst. If inst itself is the call that
// inspects them (u.Frame), the graph breaks before inst. The call then runs in a resume function that has the user's
// variables and no others. If a break is impossible, splitsOwnFrame returns the reason as text.
func (tx *InstructionTranslator) splitsOwnFrame(inst *bytecode.Instruction, u *exc.Unsupported) string {
	for _, l := range tx.d.code.Locals {
		if l.Kind&(opcode.CO_FAST_CELL|opcode.CO_FAST_FREE) != 0 {
			return "the function reads its own frame (locals, eval, ...) and shares variables"
		}
	}
	if !u.Frame {
		return ""
	}
	if o := tx.out.frame.Origin; o != nil && tx.out.numOps == 0 && tx.d.index[inst]-o.Target <= 1 {
		return u.Context // this is the resume function that was made for the call
	}
	u.Before = true
	return ""
}
