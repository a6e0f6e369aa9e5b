package translate

import (
	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// nop implements NOP, RESUME, COPY_FREE_VARS, NOT_TAKEN.
//
//	stack: --
func (tx *InstructionTranslator) nop(*bytecode.Instruction) error { return nil }

// popTop implements POP_TOP, POP_ITER.
//
//	stack: value --
func (tx *InstructionTranslator) popTop(*bytecode.Instruction) error {
	tx.out.lets(tx.pop())
	return nil
}

// pushNull implements PUSH_NULL.
//
//	stack: -- NULL
func (tx *InstructionTranslator) pushNull(*bytecode.Instruction) error {
	tx.push(nil)
	return nil
}

// copyTop implements COPY.
//
//	stack: value ... -- value ... value      arg: depth of the value, 1 for the top
func (tx *InstructionTranslator) copyTop(inst *bytecode.Instruction) error {
	tx.push(tx.top(inst.Arg))
	return nil
}

// swap implements SWAP.
//
//	stack: value ... top -- top ... value      arg: depth of the value, 1 for the top
func (tx *InstructionTranslator) swap(inst *bytecode.Instruction) error {
	n := len(tx.stack)
	tx.stack[n-1], tx.stack[n-inst.Arg] = tx.stack[n-inst.Arg], tx.stack[n-1]
	return nil
}

// returnValue implements RETURN_VALUE.
//
//	stack: value --
//	breaks: GD0201
func (tx *InstructionTranslator) returnValue(inst *bytecode.Instruction) error {
	v := tx.pop()
	if tx.parent == nil {
		if step, ok := tx.out.world.EnteredAt(); ok {
			return tx.out.breakAt(step, exc.Break(exc.CallUnsupported, "a torch function mode that is not exited"))
		}
		tx.out.endsHere(v)
		return tx.writeReturn(v)
	}
	tx.result, tx.done = v, true
	return nil
}

// loadConst implements LOAD_CONST. Items of co_consts are known and immutable.
//
//	stack: -- value      arg: index of the constant
func (tx *InstructionTranslator) loadConst(inst *bytecode.Instruction) error {
	v, err := loaded(tx, tx.d.consts[inst.Arg])
	if err != nil {
		return err
	}
	tx.push(v)
	return nil
}

// loaded returns the tracker of a constant of a code object. Tuples have trackers of their items. So have slices, which
// are constants from 3.14 on.
func loaded(tx *InstructionTranslator, o py.Object) (variables.VariableTracker, error) {
	switch o.Kind() {
	case py.Tuple:
		var items []variables.VariableTracker
		for _, it := range tx.Scope().Items(o) {
			v, err := loaded(tx, it)
			if err != nil {
				return nil, err
			}
			items = append(items, v)
		}
		return variables.NewKnownTuple(items, o), nil
	case py.Slice:
		return variables.NewSliceObject(tx, o)
	}
	return variables.NewConstant(o, nil), nil
}

// loadSmallInt implements LOAD_SMALL_INT.
//
//	stack: -- int      arg: the int
func (tx *InstructionTranslator) loadSmallInt(inst *bytecode.Instruction) error {
	tx.push(variables.IntConst(tx, inst.Arg))
	return nil
}

// returnConst implements RETURN_CONST.
//
//	stack: --      arg: index of the constant
//	breaks: GD0201
func (tx *InstructionTranslator) returnConst(inst *bytecode.Instruction) error {
	if err := tx.loadConst(inst); err != nil {
		return err
	}
	return tx.returnValue(inst)
}

// loadFastAndClear implements LOAD_FAST_AND_CLEAR, which saves a variable that an inlined comprehension hides.
//
//	stack: -- value      arg: index of the local; value: NULL if it is unbound
func (tx *InstructionTranslator) loadFastAndClear(inst *bytecode.Instruction) error {
	tx.push(tx.locals[inst.Arg])
	tx.locals[inst.Arg] = nil
	return nil
}

// loadFast implements LOAD_FAST, LOAD_FAST_CHECK.
//
//	stack: -- value      arg: index of the local
func (tx *InstructionTranslator) loadFast(inst *bytecode.Instruction) error {
	v := tx.locals[inst.Arg]
	if v == nil {
		return unboundLocal(tx.d.code.Locals[inst.Arg].Name)
	}
	tx.push(v)
	return nil
}

func unboundLocal(name string) error {
	return &exc.Observed{TypeName: "UnboundLocalError", Text: "cannot access local variable '" + name +
		"' where it is not associated with a value"}
}

// storeFast implements STORE_FAST. After an inlined comprehension the value may be NULL, which unbinds the variable.
//
//	stack: value --      arg: index of the local
func (tx *InstructionTranslator) storeFast(inst *bytecode.Instruction) error {
	tx.out.lets(tx.locals[inst.Arg])
	tx.locals[inst.Arg] = tx.pop()
	return nil
}

// deleteFast implements DELETE_FAST.
//
//	stack: --      arg: index of the local
func (tx *InstructionTranslator) deleteFast(inst *bytecode.Instruction) error {
	if tx.locals[inst.Arg] == nil {
		return unboundLocal(tx.d.code.Locals[inst.Arg].Name)
	}
	tx.out.lets(tx.locals[inst.Arg])
	tx.locals[inst.Arg] = nil
	return nil
}

// loadGlobal implements LOAD_GLOBAL.
//
//	stack: -- [NULL] value      arg: name index shifted left by one; bit 0 pushes NULL; 3.13: value NULL
func (tx *InstructionTranslator) loadGlobal(inst *bytecode.Instruction) error {
	name := tx.d.code.Names[inst.Arg>>1]
	v, err := tx.global(name)
	if err != nil {
		return err
	}
	if inst.Arg&1 != 0 {
		tx.pushCallee(v)
	} else {
		tx.push(v)
	}
	return nil
}

// loadBuildClass implements LOAD_BUILD_CLASS. The graph breaks at the call of `__build_class__`.
//
//	stack: -- __build_class__
//	breaks: GD0201
func (tx *InstructionTranslator) loadBuildClass(*bytecode.Instruction) error {
	fn, ok := tx.Scope().DictGetName(tx.builtins, "__build_class__")
	if !ok || fn != tx.World().Builtin("__build_class__") {
		return exc.Break(exc.CallUnsupported, "a class statement with the program's own __build_class__")
	}
	src := guards.NewDictGetItemSource(guards.NewConstSource(tx.out.Const(tx.builtins), "___builtins"),
		tx.out.Const(tx.Scope().Name("__build_class__")))
	tx.push(tx.Build(fn, src))
	return nil
}

func (tx *InstructionTranslator) global(name string) (variables.VariableTracker, error) {
	if v, ok := tx.out.storedGlobals[name]; ok && tx.globals == tx.out.frame.Globals {
		return v, nil
	}
	// A look-up may call a key's own `__eq__`, even a look-up by a guard.
	if py.OddKeys(tx.globals) || py.OddKeys(tx.builtins) {
		return nil, &exc.SkipFrame{Reason: "globals with keys that are not identifiers"}
	}
	s := tx.Scope()
	if v, ok := s.DictGetName(tx.globals, name); ok {
		if tx.globalsSrc == nil {
			return tx.Build(v, guards.NewGlobalSource(name)), nil
		}
		src := guards.NewDictGetItemSource(tx.globalsSrc, tx.out.Const(s.Name(name)))
		tx.out.Reads(src)
		return tx.Build(v, src), nil
	}
	if tx.hidden { // a polyfill uses the builtins that existed when godynamo was loaded
		return variables.NewBuiltinNamed(tx, name), nil
	}
	if v, ok := s.DictGetName(tx.builtins, name); ok {
		tx.guardsMade()
		if tx.builtins != tx.out.frame.Builtins {
			src := guards.NewDictGetItemSource(guards.NewConstSource(tx.out.Const(tx.builtins), "___builtins"),
				tx.out.Const(s.Name(name)))
			tx.out.Reads(src)
			return tx.Build(v, src), nil
		}
		if tx.globalsSrc != nil {
			tx.out.AddGuards(guards.DictContains(tx.globalsSrc, tx.out.Const(s.Name(name)), false))
			// Guards read the globals of the outermost frame.
			if _, hidden := s.DictGetName(tx.out.frame.Globals, name); hidden {
				src := guards.NewDictGetItemSource(guards.NewConstSource(tx.out.Const(tx.builtins), "___builtins"),
					tx.out.Const(s.Name(name)))
				tx.out.Reads(src)
				return tx.Build(v, src), nil
			}
		}
		return tx.Build(v, guards.NewBuiltinSource(name)), nil
	}
	tx.guardsMade()
	globals, builtins := tx.globalsSrc, guards.NewConstSource(tx.out.Const(tx.builtins), "___builtins")
	if globals == nil {
		globals = guards.NewGlobalsSource()
	}
	for _, dict := range []guards.Source{globals, builtins} {
		tx.out.AddGuards(guards.DictContains(dict, tx.out.Const(s.Name(name)), false))
	}
	return nil, &exc.Observed{TypeName: "NameError", Text: "name '" + name + "' is not defined"}
}

// storeGlobal implements STORE_GLOBAL.
//
//	stack: value --      arg: index of the name
//	breaks: GD0209
func (tx *InstructionTranslator) storeGlobal(inst *bytecode.Instruction) error {
	if tx.globals != tx.out.frame.Globals {
		return exc.Break(exc.StoreUnsupported, "global of another module")
	}
	name := tx.d.code.Names[inst.Arg]
	v := tx.pop()
	if _, stored := tx.out.storedGlobals[name]; !stored {
		if old, ok := tx.Scope().DictGet(tx.globals, tx.Scope().Name(name)); ok {
			if err := tx.out.world.Replaceable(tx.Scope(), old); err != nil {
				return err
			}
		}
		tx.out.AddGuards(guards.QuietName(guards.NewGlobalsSource(), name))
	}
	if tx.out.storedGlobals == nil {
		tx.out.storedGlobals = map[string]variables.VariableTracker{}
	}
	tx.out.storedGlobals[name] = v
	tx.out.world.Stored(v)
	return tx.out.Effect(tx, []variables.VariableTracker{v}, func(e variables.Emitter) error {
		if err := e.Load(v); err != nil {
			return err
		}
		e.StoreGlobal(name)
		return nil
	})
}

// makeCell implements MAKE_CELL. The cell replaces the value of the local.
//
//	stack: --      arg: index of the local
func (tx *InstructionTranslator) makeCell(inst *bytecode.Instruction) error {
	tx.locals[inst.Arg] = variables.NewCell(tx.locals[inst.Arg])
	return nil
}

// loadClosure implements LOAD_CLOSURE.
//
//	stack: -- cell      arg: index of the cell among the locals
func (tx *InstructionTranslator) loadClosure(inst *bytecode.Instruction) error {
	v, err := variables.Realize(tx, tx.locals[inst.Arg])
	tx.push(v)
	return err
}

func (tx *InstructionTranslator) cell(inst *bytecode.Instruction) (*variables.CellVariable, error) {
	v := tx.locals[inst.Arg]
	if v == nil {
		return nil, &exc.SkipFrame{Reason: "a cell that is not there"}
	}
	v, err := variables.Realize(tx, v)
	if err != nil {
		return nil, err
	}
	c, ok := v.(*variables.CellVariable)
	if !ok {
		return nil, &exc.SkipFrame{Reason: "a slot that holds no cell"}
	}
	return c, nil
}

// loadDeref implements LOAD_DEREF.
//
//	stack: -- value      arg: index of the cell among the locals
func (tx *InstructionTranslator) loadDeref(inst *bytecode.Instruction) error {
	c, err := tx.cell(inst)
	if err != nil {
		return err
	}
	v, err := c.Get(tx)
	if err != nil {
		return err
	}
	if v == nil {
		l := tx.d.code.Locals[inst.Arg]
		if l.Kind&opcode.CO_FAST_FREE == 0 {
			return unboundLocal(l.Name)
		}
		return &exc.Observed{TypeName: "NameError", Text: "cannot access free variable '" + l.Name +
			"' where it is not associated with a value in enclosing scope"}
	}
	tx.push(v)
	return nil
}

// storeDeref implements STORE_DEREF.
//
//	stack: value --      arg: index of the cell among the locals
//	breaks: GD0209
func (tx *InstructionTranslator) storeDeref(inst *bytecode.Instruction) error {
	c, err := tx.cell(inst)
	if err != nil {
		return err
	}
	return c.Set(tx, tx.pop())
}

// deleteDeref implements DELETE_DEREF.
//
//	stack: --      arg: index of the cell among the locals
//	breaks: GD0209
func (tx *InstructionTranslator) deleteDeref(inst *bytecode.Instruction) error {
	c, err := tx.cell(inst)
	if err != nil {
		return err
	}
	return c.Set(tx, nil)
}

// loadAssertionError implements LOAD_ASSERTION_ERROR.
//
//	stack: -- AssertionError
func (tx *InstructionTranslator) loadAssertionError(*bytecode.Instruction) error {
	tx.push(variables.NewBuiltinNamed(tx, "AssertionError"))
	return nil
}

// loadCommonConstant implements LOAD_COMMON_CONSTANT.
//
//	stack: -- builtin      arg: index into opcode.CommonConstants
func (tx *InstructionTranslator) loadCommonConstant(inst *bytecode.Instruction) error {
	tx.push(variables.NewBuiltinNamed(tx, opcode.CommonConstants[inst.Arg]))
	return nil
}
