package translate

import (
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// SuperArgs implements variables.Translator. It follows super_init_without_args in Objects/typeobject.c of CPython
// 3.11. Where CPython raises, an inlined frame raises the same exception. The outermost frame is left to CPython
// there, since super() in transformed code would look at another frame.
func (tx *InstructionTranslator) SuperArgs() (cls, self variables.VariableTracker, err error) {
	fail := func(text string) (cls, self variables.VariableTracker, err error) {
		if tx.parent == nil {
			return nil, nil, &exc.SkipFrame{Reason: text}
		}
		return nil, nil, variables.RaiseText(tx, "RuntimeError", text)
	}
	if tx.d.code.ArgCount == 0 {
		return fail("super(): no arguments")
	}
	self, err = tx.firstArgument()
	if err != nil {
		return nil, nil, err
	}
	if self == nil {
		return fail("super(): arg[0] deleted")
	}
	for i, l := range tx.d.code.Locals {
		if l.Name != "__class__" || l.Kind&opcode.CO_FAST_FREE == 0 {
			continue
		}
		if tx.locals[i] == nil {
			return fail("super(): bad __class__ cell")
		}
		c, err := variables.Realize(tx, tx.locals[i])
		if err != nil {
			return nil, nil, err
		}
		cell, ok := c.(*variables.CellVariable)
		if !ok {
			return fail("super(): bad __class__ cell")
		}
		if cls, err = cell.Get(tx); err != nil {
			return nil, nil, err
		}
		if cls == nil {
			return fail("super(): empty __class__ cell")
		}
		if cls, err = variables.Realize(tx, cls); err != nil {
			return nil, nil, err
		}
		if c, known := variables.AsConstant(tx, cls); known && py.IsSubtype(c.Type(), tx.World().TypeType) {
			return cls, self, nil // a class, and a class stays one, so its type needs no guard
		}
		t, err := variables.PythonType(tx, cls)
		if err != nil {
			return nil, nil, err
		}
		if !py.IsSubtype(t, tx.World().TypeType) {
			return fail("super(): __class__ is not a type (" + py.TypeName(t) + ")")
		}
		return cls, self, nil
	}
	return fail("super(): __class__ cell not found")
}

// isSuper reports whether the operands belong to a call of super.
func (tx *InstructionTranslator) isSuper(operands []variables.VariableTracker) bool {
	super := tx.World().Builtin("super")
	for _, v := range operands {
		switch x := v.(type) {
		case *variables.LazyVariable:
			if x.Peek() == super {
				return true
			}
		case *variables.BuiltinVariable:
			if x.Fn == super {
				return true
			}
		}
	}
	return false
}

// firstArgument returns the current value of the first parameter, or nil if that variable is unbound.
func (tx *InstructionTranslator) firstArgument() (variables.VariableTracker, error) {
	first := tx.locals[0]
	if first == nil || tx.d.code.Locals[0].Kind&opcode.CO_FAST_CELL == 0 {
		return first, nil
	}
	v, err := variables.Realize(tx, first)
	if err != nil {
		return nil, err
	}
	if cell, ok := v.(*variables.CellVariable); ok {
		return cell.Get(tx)
	}
	return v, nil
}
