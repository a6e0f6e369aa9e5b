package translate

import (
	"slices"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// emitNative writes inst itself, whose operands are on the stack. If inst jumps, it returns the written jump, so that
// the caller can set its target.
func (tx *InstructionTranslator) emitNative(c *Codegen, inst *bytecode.Instruction,
	operands []variables.VariableTracker) (*bytecode.Instruction, error) {
	switch inst.Op {
	// The written code pushes a bound method. LOAD_METHOD may push a NULL below the method, and a NULL could not be
	// passed to the resume function.
	case opcode.LOAD_METHOD:
		return nil, c.as(quietCalls, func() error {
			c.LoadConst(c.core("load_method"))
			c.PushNull()
			c.Swap(3) // moves both below the object
			c.LoadConst(tx.Scope().Name(tx.d.code.Names[inst.Arg]))
			c.Call(2, nil)
			return nil
		})
	case opcode.LOAD_SUPER_ATTR:
		tx.emitSuperAttr(c, inst, operands)
	case opcode.LOAD_GLOBAL:
		c.emit(opcode.LOAD_GLOBAL, c.name(tx.d.code.Names[inst.Arg>>1])<<1)
	case opcode.CALL:
		c.Call(inst.Arg, tx.kwargs)
	case opcode.LOAD_ATTR, opcode.STORE_ATTR, opcode.DELETE_ATTR, opcode.STORE_GLOBAL, opcode.DELETE_GLOBAL,
		opcode.IMPORT_NAME,
		opcode.IMPORT_FROM:
		c.emit(inst.Op, c.name(tx.d.code.Names[inst.Arg]))
	case opcode.RERAISE: // this stack does not hold the offset to restore
		c.emit(opcode.RERAISE, 0)
	case opcode.WITH_EXCEPT_START:
		return nil, tx.callExit(c, inst)
	case opcode.BEFORE_WITH:
		if inst.Arg == 0 {
			return c.emit(inst.Op, 0), nil
		}
		return nil, tx.enterNative(c)
	case opcode.DICT_MERGE:
		return nil, tx.mergeNative(c, inst)
	default:
		return c.emit(inst.Op, inst.Arg), nil
	}
	return nil, nil
}

// mergeNative writes DICT_MERGE for the dict and the mapping on the stack. If it raises, CPython's error names the
// called function, which it reads from the stack: below the dict are the positional arguments and then the function, in
// newer versions with a NULL above it. Here None stands for what is between function and dict.
func (tx *InstructionTranslator) mergeNative(c *Codegen, inst *bytecode.Instruction) error {
	between := 1
	if tx.d.code.NullAbove {
		between = 2
	}
	for i := 0; i <= between; i++ {
		if i > 0 {
			c.LoadConst(py.None())
		} else if err := c.Load(tx.top(between + 1)); err != nil {
			return err
		}
		c.Swap(3) // moves the new item below the dict, and the next line the dict below the mapping
		c.Swap(2)
	}
	c.emit(inst.Op, 1)
	c.Swap(between + 2)
	for range between + 1 {
		c.PopTop()
	}
	return nil
}

// runsPython reports whether CPython may call Python code while it runs inst, the frames of which are then served. A
// class is assumed to have no metaclass that does.
func (tx *InstructionTranslator) runsPython(inst *bytecode.Instruction, operands []variables.VariableTracker) bool {
	switch inst.Op {
	case opcode.CALL, opcode.CALL_FUNCTION_EX:
		if !slices.ContainsFunc(operands[:2], tx.isBuiltinCallee) {
			return true
		}
	case opcode.STORE_GLOBAL, opcode.RAISE_VARARGS, opcode.RERAISE:
		return false
	}
	return slices.ContainsFunc(operands, tx.mayRunPython)
}

// isBuiltinCallee reports whether v is a function of C.
func (tx *InstructionTranslator) isBuiltinCallee(v variables.VariableTracker) bool {
	switch x := v.(type) {
	case *variables.BuiltinVariable, *variables.BoundBuiltin, *variables.TorchVariable:
		return true
	case *variables.LazyVariable:
		kind := x.Peek().Kind()
		return kind == py.Builtin || kind == py.MethodDescr
	}
	return false
}

// mayRunPython reports whether CPython may call Python code for an operation on v: a method of its class, the function
// that it is, or the body of a generator.
func (tx *InstructionTranslator) mayRunPython(v variables.VariableTracker) bool {
	switch x := v.(type) {
	case *variables.LazyVariable:
		if x.Realized() {
			return tx.mayRunPython(x.Real())
		}
		switch obj := x.Peek(); obj.Kind() {
		case py.Function, py.Method:
			return true
		case py.Other:
			return !tx.World().IsTensor(obj)
		}
	case *GeneratorVariable, *variables.ObjectVariable, *variables.FunctionVariable, *variables.MethodVariable,
		*variables.PartialVariable, *variables.CallIterator, *variables.ObjectIterator, *variables.SubscriptIterator,
		*variables.RealIterator:
		return true
	}
	return false
}

// enterNative writes what BEFORE_WITH 1 does to the manager on the stack, and leaves a bound `__exit__` and the result.
// In CPython, `__exit__` may have its self beside it or a NULL, which could not be passed to the resume function.
func (tx *InstructionTranslator) enterNative(c *Codegen) error {
	err := c.as(quietCalls, func() error {
		c.Copy(1)
		c.LoadConst(c.core("load_exit"))
		c.PushNull()
		c.Swap(3) // moves both below the copy
		c.Call(1, nil)
		return nil
	})
	c.Swap(2)
	c.emit(opcode.LOAD_SPECIAL, opcode.SPECIAL_ENTER)
	c.emit(opcode.CALL, 0)
	return err
}

// callExit writes what WITH_EXCEPT_START does: it calls exit(type(e), e, e.__traceback__) and leaves the result on
// the stack. CPython does not check for signals here. A signal before the call would skip the exit, and a signal
// after the call would replace the exception.
func (tx *InstructionTranslator) callExit(c *Codegen, inst *bytecode.Instruction) error {
	return c.as(quietCalls, func() error {
		exit, self := tx.exitBelow(inst, 4)
		c.PushNull()
		if err := c.Load(exit); err != nil {
			return err
		}
		n := 3
		if self != nil {
			n = 4
			if err := c.Load(self); err != nil {
				return err
			}
		}
		e := tx.top(1)
		c.PushNull()
		c.LoadConst(tx.World().TypeType)
		if err := c.Load(e); err != nil {
			return err
		}
		c.Call(1, nil)
		for range 2 {
			if err := c.Load(e); err != nil {
				return err
			}
		}
		c.LoadAttr("__traceback__")
		c.Call(n, nil)
		return nil
	})
}

// resultItems returns what the written code leaves for an instruction that pushes this many values, from below to the
// top. The NULL of a BEFORE_WITH is not written.
func resultItems(inst *bytecode.Instruction, pushes int, result func() item) []item {
	items := make([]item, pushes)
	for i := pushes - 1; i >= 0; i-- {
		if inst.Op == opcode.BEFORE_WITH && pushes == 3 && i == 1 {
			items[i] = item{null: true}
		} else {
			items[i] = result()
		}
	}
	return items
}
