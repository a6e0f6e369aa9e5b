package bytecode

import (
	"fmt"
	"slices"

	"github.com/godynamo/godynamo/bytecode/opcode"
)

// AddLocal adds a local variable and returns its slot. If the name is taken, the new variable gets a suffix, so it
// never collides with a variable of the user's. The slot precedes the free variables, which CPython requires to be
// last. The slots of the free variables move up by one, and AddLocal adjusts all instructions. The caller must adjust
// slot numbers that it keeps elsewhere.
func (c *Code) AddLocal(name string) int {
	taken := func(name string) bool {
		return slices.ContainsFunc(c.Locals, func(l Local) bool { return l.Name == name })
	}
	free := name
	for n := 1; taken(free); n++ {
		free = fmt.Sprintf("%s_%d", name, n)
	}
	slot := slices.IndexFunc(c.Locals, func(l Local) bool { return l.Kind&opcode.CO_FAST_FREE != 0 })
	if slot < 0 {
		slot = len(c.Locals)
	}
	for _, inst := range c.Instructions {
		switch inst.Op.ArgKind() {
		case opcode.ArgLocal, opcode.ArgFree:
			if inst.Arg >= slot {
				inst.Arg++
			}
		}
	}
	c.Locals = slices.Insert(c.Locals, slot, Local{free, opcode.CO_FAST_LOCAL})
	return slot
}

// AddName returns the index of a name in co_names. It adds the name if it is missing. Names is copied before it
// grows, since a Raw may share it.
func (c *Code) AddName(name string) int {
	if i := slices.Index(c.Names, name); i >= 0 {
		return i
	}
	c.Names = append(slices.Clip(c.Names), name)
	return len(c.Names) - 1
}
