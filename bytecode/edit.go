package bytecode

import (
	"fmt"
	"slices"

	"github.com/godynamo/godynamo/bytecode/opcode"
)

// AddLocal adds a local variable and returns its slot. The name gets a suffix when the code has such a variable already,
// so that the user's own is never met. The slot comes before the free variables, which CPython wants last: slots from
// there on move up by one, in all instructions as well. Slots the caller holds apart from the instructions move too.
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

// AddName returns the index of a name in co_names, which it adds where it is missing. Names is copied first when it
// must grow: it may be shared with a Raw.
func (c *Code) AddName(name string) int {
	if i := slices.Index(c.Names, name); i >= 0 {
		return i
	}
	c.Names = append(slices.Clip(c.Names), name)
	return len(c.Names) - 1
}
