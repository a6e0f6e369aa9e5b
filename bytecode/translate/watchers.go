package translate

import (
	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/pyhook/py"
)

// frameWatchers are functions of sys, inspect and traceback that show a frame as it is, set who sees its events, or tell what the interpreter
// holds: a split frame is another.
var frameWatchers = map[string]bool{"settrace": true, "setprofile": true, "_getframe": true, "currentframe": true, "tb_frame": true,
	"walk_stack": true, "getrefcount": true, "getallocatedblocks": true, "_co_code_adaptive": true}

// memoryWatchers count or list objects of the process, of which a split frame has others.
var memoryWatchers = map[string]bool{"gc.collect": true, "gc.get_count": true, "gc.get_objects": true, "gc.get_referrers": true,
	"gc.get_stats": true}

// watched tells code that names one of them: it is left whole from its first break on.
func (tx *InstructionTranslator) watched() bool {
	return tx.watchesInterpreter() || namesAttr(tx.d.code, frameWatchers)
}

// watchesInterpreter tells code that shows what the interpreter is doing.
func (tx *InstructionTranslator) watchesInterpreter() bool {
	return tx.watchesBlocks() || tx.watchesSpecializing()
}

// watchesBlocks tells code that uses what the collector counts, or asks for allocated blocks. What translating its callees allocates would
// show: at first they are left to CPython.
func (tx *InstructionTranslator) watchesBlocks() bool {
	return watchesMemory(tx.d.code) || namesAttr(tx.d.code, map[string]bool{"getallocatedblocks": true})
}

// watchesSpecializing tells code that asks for the instructions as CPython has specialized them. What runs transformed is not
// specialized, and no call is while a hook is installed: it runs without, and all that it calls.
func (tx *InstructionTranslator) watchesSpecializing() bool {
	return namesAttr(tx.d.code, map[string]bool{"_co_code_adaptive": true}) || tx.disassembles()
}

// leaveAlone says how the frame runs when it runs as it is.
func (tx *InstructionTranslator) leaveAlone(r *Result) {
	r.Watches = tx.watchesInterpreter()
	r.NeedsHook = r.NeedsHook && !tx.watchesSpecializing()
}

// setsEvents tells code that sets a trace function. Its callers' events are CPython's too, from then on.
func setsEvents(c *bytecode.Code) bool {
	return namesAttr(c, map[string]bool{"settrace": true, "setprofile": true})
}

func namesAttr(c *bytecode.Code, names map[string]bool) bool {
	for _, in := range c.Instructions {
		if (in.Op == opcode.LOAD_ATTR || in.Op == opcode.LOAD_METHOD) && names[c.Names[in.Arg]] {
			return true
		}
	}
	return false
}

// watchesMemory tells code that calls a memory watcher by its module's name and uses the result, or reads what the collector has found.
func watchesMemory(c *bytecode.Code) bool {
	list := c.Instructions
	for i := 0; i+1 < len(list); i++ {
		module, attr := list[i], list[i+1]
		if module.Op != opcode.LOAD_GLOBAL || attr.Op != opcode.LOAD_ATTR && attr.Op != opcode.LOAD_METHOD {
			continue
		}
		name := c.Names[module.Arg>>1] + "." + c.Names[attr.Arg]
		if name == "gc.garbage" || memoryWatchers[name] && usesCall(list[i+2:]) {
			return true
		}
	}
	return false
}

// usesCall tells whether the result of the first call is used.
func usesCall(list []*bytecode.Instruction) bool {
	for k := 0; k+1 < len(list); k++ {
		if list[k].Op == opcode.CALL {
			return list[k+1].Op != opcode.POP_TOP
		}
	}
	return false
}

// disassembles tells code of a module that has imported dis and makes a call with the keyword by which dis is asked for
// specialized code.
func (tx *InstructionTranslator) disassembles() bool {
	s := tx.Scope()
	if m, ok := s.DictGetName(tx.globals, "dis"); !ok || m.Kind() != py.Module {
		return false
	}
	for _, in := range tx.d.code.Instructions {
		if in.Op != opcode.KW_NAMES {
			continue
		}
		for _, name := range s.Items(tx.d.consts[in.Arg]) {
			if py.GoString(name) == "adaptive" {
				return true
			}
		}
	}
	return false
}
