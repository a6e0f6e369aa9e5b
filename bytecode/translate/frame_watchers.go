package translate

import (
	"slices"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/pyhook/py"
)

// frameWatchers lists functions and attributes that show a frame, install a trace or profile function, or report what
// objects the interpreter holds. Code that uses them can distinguish a resume function's frame from the user's frame.
var frameWatchers = map[string]bool{"settrace": true, "setprofile": true, "_getframe": true, "currentframe": true,
	"set_events": true, "set_local_events": true, // of sys.monitoring
	"tb_frame":   true,
	"walk_stack": true, "getrefcount": true, "getallocatedblocks": true, "_co_code_adaptive": true}

// memoryWatchers lists functions that count or list the objects of the process. Their results differ if a frame is
// broken into pieces.
var memoryWatchers = map[string]bool{"gc.collect": true, "gc.get_count": true, "gc.get_objects": true,
	"gc.get_referrers": true,
	"gc.get_stats":     true}

// watched reports whether the code names a watcher. If the graph breaks in such a frame, the whole frame is left to
// CPython.
func (tx *InstructionTranslator) watched() bool {
	return tx.watchesInterpreter() || namesAttr(tx.d.code, frameWatchers) || measures(tx.d.code)
}

// watchesInterpreter reports whether the code inspects the interpreter's activity.
func (tx *InstructionTranslator) watchesInterpreter() bool {
	return tx.watchesBlocks() || tx.watchesSpecializing()
}

// watchesBlocks reports whether the code uses the garbage collector's counts, or reads the number of allocated blocks.
// If the callees were translated, these numbers would count the memory that the translation allocates. So the callees
// are left to CPython at first.
func (tx *InstructionTranslator) watchesBlocks() bool {
	return watchesMemory(tx.d.code) || namesAttr(tx.d.code, map[string]bool{"getallocatedblocks": true})
}

// watchesSpecializing reports whether the code reads specialized instructions. Transformed code is not specialized.
// Calls are not specialized either while a frame hook is installed. So the frame and its callees run without the hook.
func (tx *InstructionTranslator) watchesSpecializing() bool {
	return namesAttr(tx.d.code, map[string]bool{"_co_code_adaptive": true}) || tx.disassembles()
}

// leaveAlone sets the fields of r that say how CPython runs a frame that is not translated.
func (tx *InstructionTranslator) leaveAlone(r *Result) {
	r.Watches = tx.watchesInterpreter()
	r.NeedsHook = r.NeedsHook && !tx.watchesSpecializing()
}

// callerWatchers lists what code may do whose result depends on its callers' frames, or on how these made an object. If
// the graph breaks in such code, its callers are left to CPython. asked says that this holds only if the code, or code
// that it calls, asks for a frame.
var callerWatchers = []struct {
	does  func(*bytecode.Code) bool
	asked bool
	why   string
}{
	{setsEvents, false, "the function installs a trace or profile function"},
	{readsFrames, true, "the function reads the variables of a frame"},
	{keepsFrames, false, "the function keeps a frame object"},
	{measures, false, "the function measures the memory of an object"},
}

// watchesCallers returns which of callerWatchers the code is, or "".
func watchesCallers(c *bytecode.Code, asksFrame bool) string {
	for _, w := range callerWatchers {
		if (asksFrame || !w.asked) && w.does(c) {
			return w.why
		}
	}
	return ""
}

// setsEvents reports whether the code sets a trace or profile function, or the events of a tool of sys.monitoring.
// These must see the events of the callers as in CPython.
func setsEvents(c *bytecode.Code) bool {
	return namesAttr(c, map[string]bool{"settrace": true, "setprofile": true, "set_events": true,
		"set_local_events": true})
}

// frameGetters lists functions and attributes that return the frame object of a caller.
var frameGetters = map[string]bool{"_getframe": true, "currentframe": true, "f_back": true}

// asksFrames reports whether the code asks for the frame object of a caller.
func asksFrames(c *bytecode.Code) bool {
	return slices.ContainsFunc(c.Instructions, func(in *bytecode.Instruction) bool { return getsFrame(c, in) })
}

// readsFrames reports whether the code reads the variables of a frame object, as pandas' query does with those of its
// caller. A frame in pieces has other variables than the user's.
func readsFrames(c *bytecode.Code) bool {
	return namesAttr(c, map[string]bool{"f_locals": true})
}

// keepsFrames reports whether the code stores a caller's frame object where it outlives the call, as in
// `self.frame = sys._getframe(1)`. When the function has ended, such a frame tells the line on which it ended, which for
// a frame in pieces is the line of its first graph break.
func keepsFrames(c *bytecode.Code) bool {
	for i, in := range c.Instructions {
		if !getsFrame(c, in) {
			continue
		}
		for _, next := range c.Instructions[i+1:] {
			if frameStores[next.Op] {
				return true
			}
			if !frameLoads[next.Op] && !getsFrame(c, next) {
				break
			}
		}
	}
	return false
}

// getsFrame reports whether the instruction loads one of frameGetters.
func getsFrame(c *bytecode.Code, in *bytecode.Instruction) bool { return loadsOne(c, in, frameGetters) }

// loadsOne reports whether the instruction loads an attribute or a global variable with one of the names.
func loadsOne(c *bytecode.Code, in *bytecode.Instruction, names map[string]bool) bool {
	return names[nameOf(c, in)]
}

// nameOf returns the name of the global or attribute that an instruction loads, or "".
func nameOf(code *bytecode.Code, in *bytecode.Instruction) string {
	switch in.Op {
	case opcode.LOAD_GLOBAL:
		return code.Names[in.Arg>>1]
	case opcode.LOAD_ATTR, opcode.LOAD_METHOD:
		return code.Names[in.Arg]
	}
	return ""
}

// frameStores lists the instructions that store a value where it outlives the call. frameLoads lists those that may be
// between the name of a frame getter and such a store: they call it, and load what the value is stored into.
var (
	frameStores = map[opcode.Op]bool{opcode.STORE_DEREF: true, opcode.STORE_GLOBAL: true, opcode.STORE_ATTR: true,
		opcode.STORE_SUBSCR: true}
	frameLoads = map[opcode.Op]bool{opcode.PUSH_NULL: true, opcode.PRECALL: true, opcode.CALL: true,
		opcode.LOAD_CONST: true, opcode.LOAD_SMALL_INT: true, opcode.LOAD_FAST: true, opcode.LOAD_DEREF: true,
		opcode.LOAD_GLOBAL: true}
)

// measures reports whether the code asks for the memory of an object. A container that captured code makes in one step
// has other room to spare than one that grew.
func measures(c *bytecode.Code) bool {
	names := map[string]bool{"getsizeof": true, "__sizeof__": true}
	return slices.ContainsFunc(c.Instructions, func(in *bytecode.Instruction) bool { return loadsOne(c, in, names) })
}

func namesAttr(c *bytecode.Code, names map[string]bool) bool {
	for _, in := range c.Instructions {
		if (in.Op == opcode.LOAD_ATTR || in.Op == opcode.LOAD_METHOD) && names[c.Names[in.Arg]] {
			return true
		}
	}
	return false
}

// watchesMemory reports whether the code calls one of memoryWatchers, named as module.function, and uses the result.
// Reading gc.garbage counts, too.
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

// usesCall reports whether the result of the first call in list is used.
func usesCall(list []*bytecode.Instruction) bool {
	for k := 0; k+1 < len(list); k++ {
		if list[k].Op == opcode.CALL {
			return list[k+1].Op != opcode.POP_TOP
		}
	}
	return false
}

// disassembles reports whether the code's module has imported `dis`, and the code contains a call with the keyword
// `adaptive`.
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
