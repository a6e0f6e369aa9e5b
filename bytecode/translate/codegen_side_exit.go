package translate

import (
	"slices"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// This file writes the handlers of operations that have side exits (resume_side_exit.go).

// writeSideExits writes, at the end of the code, what runs at side exits.
func (c *Codegen) writeSideExits() error {
	for _, e := range c.out.exits {
		if e.jump == nil && len(e.covered) == 0 {
			continue
		}
		c.catches = true
		var lead func(first *bytecode.Instruction)
		if e.jump != nil {
			lead = func(first *bytecode.Instruction) { e.lead, e.jump.Target = first, first }
		} else {
			region := &bytecode.ExceptionRegion{}
			c.enclose(e.covered, region)
			lead = func(first *bytecode.Instruction) { e.lead, region.Target = first, first }
		}
		err := c.arm(lead, func() error {
			return c.as(quietCalls, func() error { return c.writeSideExit(e) })
		})
		if err != nil {
			return err
		}
		e.end = c.list[len(c.list)-1]
	}
	return nil
}

// writeSideExit writes the call of go_on (core/calls/outer_frames.h). Its last argument is the exception, the result of
// the call after which the first frame goes on, or the value on which it branches.
func (c *Codegen) writeSideExit(e *sideExit) error {
	raised := c.newTemp()
	switch {
	case e.value != nil:
		c.PopTop()
		c.loadNode(e.value)
	case e.outcome != nil:
		c.PopTop()
		if err := c.Load(e.outcome); err != nil {
			return err
		}
	}
	c.emit(opcode.STORE_FAST, spaceTemp|raised)
	at := e.at // has all frames, see gd_fix_caught
	if at == nil {
		at = e.frames[len(e.frames)-1].tx.chainHere()
	}
	c.at(at, false)
	if err := c.adopt(e.shared); err != nil {
		return err
	}
	c.PushNull()
	c.LoadConst(c.core("go_on"))
	c.LoadConst(py.Bool(c.out.opts.NoPython || e.outcome != nil)) // a wrong prediction is not worth translations
	args := 1
	for _, f := range e.frames {
		if f.passes {
			continue
		}
		args += 2
		if f.goesOn {
			stack := append(f.tx.stackItems(), item{result: raised})
			if err := f.rest(c, f.after(), stack); err != nil {
				return err
			}
			if f.child == nil {
				continue
			}
			args += 2
		}
		if f.region == nil {
			c.LoadConst(py.None())
			c.BuildTuple(0)
			continue
		}
		stack := f.tx.stackItems()[:f.region.Depth]
		if f.region.Lasti {
			stack = append(stack, item{lasti: true})
		}
		if err := f.rest(c, f.region.Target, append(stack, item{result: raised})); err != nil {
			return err
		}
	}
	c.emit(opcode.LOAD_FAST, spaceTemp|raised)
	c.emit(opcode.DELETE_FAST, spaceTemp|raised) // the exception's traceback holds this frame
	c.Call(args+1, nil)
	c.emit(opcode.RETURN_VALUE, 0)
	return nil
}

// Shares implements variables.Output.
func (o *OutputGraph) Shares(number func() variables.VariableTracker) {
	o.sharing = append(o.sharing, number)
}

// shared returns the keys of the modes that the captured code has entered and not left, and that objects of the program
// stand for.
func (o *OutputGraph) shared() []variables.VariableTracker {
	var out []variables.VariableTracker
	for _, number := range o.sharing {
		if v := number(); v != nil {
			out = append(out, v)
		}
	}
	return out
}

// enteredIn returns the shared modes that are in a snapshot of torch's modes. If there is no snapshot, it returns all
// shared modes.
// At a side exit, some frames have no handler but leave modes. They have left them when the exit runs, so these modes
// cannot be handed over.
func (o *OutputGraph) enteredIn(snapshot py.Object, shared []variables.VariableTracker) []variables.VariableTracker {
	if snapshot.IsNull() || len(shared) == 0 {
		return shared
	}
	entered := map[int64]bool{}
	for _, key := range o.scope.Items(o.scope.Items(snapshot)[0]) {
		number, _ := py.AsInt(o.scope.Items(key)[0])
		entered[number] = true
	}
	return slices.DeleteFunc(shared, func(v variables.VariableTracker) bool {
		number, known := variables.ConstInt(o.current, v)
		return known && !entered[int64(number)]
	})
}

// adopt writes code that hands these modes over to the objects.
func (c *Codegen) adopt(shared []variables.VariableTracker) error {
	if len(shared) == 0 {
		return nil
	}
	fn, err := c.function("godynamo._called.torch_state", "adopt")
	if err != nil {
		return err
	}
	return c.as(quietCalls, func() error {
		for _, v := range shared {
			c.PushNull()
			c.LoadConst(fn)
			if err := c.Load(v); err != nil {
				return err
			}
			c.Call(1, nil)
			c.PopTop()
		}
		return nil
	})
}

// rest writes code that pushes the resume function of the rest of the frame, and a tuple of its arguments except the
// last one: the result of a call, or an exception.
func (f *exitFrame) rest(c *Codegen, target *bytecode.Instruction, stack []item) error {
	tx := f.tx
	fn, params, err := tx.resumeFunction(tx.inst, target, stack, f.live[target])
	if err != nil {
		return err
	}
	c.LoadConst(fn)
	n, err := tx.loadRest(c, params, stack[:len(stack)-1])
	c.BuildTuple(n)
	return err
}

// exitUses reports, for instructions in handlers of side exits, where what they load must still exist: after the last
// operation that may raise. Instructions elsewhere are not in an exit.
type exitUses struct{ exits []exitRange }

type exitRange struct{ start, end, use int }

func (c *Codegen) exitUses() exitUses {
	var out exitUses
	var at map[*bytecode.Instruction]int
	for _, e := range c.out.exits {
		if e.lead == nil {
			continue
		}
		if at == nil {
			at = c.indexes()
		}
		r := exitRange{start: at[e.lead], end: at[e.end]}
		covered := e.covered
		if e.jump != nil {
			covered = []*bytecode.Instruction{e.jump}
		}
		for _, in := range covered {
			if i, written := at[in]; written {
				r.use = max(r.use, i+1)
			}
		}
		out.exits = append(out.exits, r)
	}
	return out
}

// of returns the place for instruction i, or i itself if it is not in an exit.
func (u exitUses) of(i int) (use int, inExit bool) {
	if len(u.exits) == 0 || i < u.exits[0].start {
		return i, false
	}
	for _, r := range u.exits {
		if r.start <= i && i <= r.end {
			return r.use, true
		}
	}
	return i, false
}
