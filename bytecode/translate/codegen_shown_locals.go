package translate

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// A traceback shows frames of the user's code. In the outermost frame, f_locals contains each variable whose value is
// still available: in a parameter, in a temp in use at that point, or as a constant. Code that reads
// the frames of a traceback, such as a debugger or NameError's suggestions, finds the values there. The frames also
// keep these values alive, as in CPython.

// ShownLocal is a variable of the user's code that a traceback shows. Index is its index in localsplus. Place is the
// index of the transformed function's variable that holds its value. If Place is -1, Value is the value itself.
type ShownLocal struct {
	Index, Place int
	Value        py.Object
}

// maxShown bounds how many variables one translation keeps for tracebacks. Each position in the outermost frame keeps
// all its variables.
const maxShown = 100_000

// snapshot copies the outermost frame's variables for a chain. It returns nil in an inlined frame, and once maxShown
// is reached.
func (tx *InstructionTranslator) snapshot() []variables.VariableTracker {
	if tx.parent != nil || tx.out.shown+len(tx.locals) > maxShown {
		return nil
	}
	tx.out.shown += len(tx.locals)
	return append([]variables.VariableTracker(nil), tx.locals...)
}

// span has the range of indexes of Codegen.list in which a temp is in use, and the slot of the temp.
type span struct{ first, last, slot int }

// showLocals finds the values of the user's variables for each position of the outermost frame. spans has the span of
// each temp. A temp is used only if it holds the value at all instructions of the position. Until placeShown runs, each
// Place combines a space and a number in that space, as operands do until finish runs.
func (c *Codegen) showLocals(spans map[int]span) {
	type stretch struct{ from, to int }
	all := map[*chain]stretch{}
	for _, m := range c.marks {
		ch := m.chain.outermost()
		s, ok := all[ch]
		if !ok {
			s.from = m.start
		}
		s.to = m.start
		all[ch] = s
	}
	for _, e := range c.out.events { // positions of a whole graph's operations
		if e.chain != nil {
			if ch := e.chain.outermost(); all[ch] == (stretch{}) {
				all[ch] = stretch{-1, -1}
			}
		}
	}
	for ch, at := range all {
		for i, v := range ch.locals {
			if s, ok := c.shownLocal(v, at.from, at.to, spans); ok {
				s.Index = i
				ch.shown = append(ch.shown, s)
			}
		}
	}
}

// shownLocal returns where the transformed frame has the value v of a variable between the instructions `from` and
// `to`. It returns false if the frame does not have v there.
func (c *Codegen) shownLocal(v variables.VariableTracker, from, to int, spans map[int]span) (ShownLocal, bool) {
	none := ShownLocal{}
	if v == nil {
		return none, false
	}
	if l, ok := v.(*variables.LazyVariable); ok {
		if !l.Realized() {
			return c.shownSource(l.Source())
		}
		v = l.Real()
	}
	temp := func(t int, ok bool) (ShownLocal, bool) {
		s, used := spans[t]
		if !ok || !used || s.first >= from || s.last < to {
			return none, false
		}
		return ShownLocal{Place: spaceTemp | s.slot}, true
	}
	if s := variables.SlotOf(v); s != nil {
		t, ok := c.slotTemp[s.Index]
		return temp(t, ok)
	}
	if v.Source() != nil {
		return c.shownSource(v.Source())
	}
	switch x := v.(type) {
	case *variables.ConstantVariable:
		return ShownLocal{Place: -1, Value: x.Value}, true
	case *variables.ClassVariable:
		return ShownLocal{Place: -1, Value: x.Class}, true
	case *variables.TensorVariable:
		t, ok := c.nodeTemp[x.Node]
		return temp(t, ok)
	case *variables.TensorOrInt:
		t, ok := c.nodeTemp[x.Node]
		return temp(t, ok)
	case *variables.ArrayVariable:
		t, ok := c.nodeTemp[x.Node]
		return temp(t, ok)
	case *variables.GeneratorVariable:
		t, ok := c.nodeTemp[x.Node]
		return temp(t, ok)
	}
	return none, false
}

func (c *Codegen) shownSource(src guards.Source) (ShownLocal, bool) {
	switch s := src.(type) {
	case *guards.LocalSource:
		return ShownLocal{Place: spaceSlot | s.Slot}, true
	case *guards.ConstSource:
		return ShownLocal{Place: -1, Value: c.out.pool[s.Const.Index]}, true
	}
	i, ok := c.extraIdx[src.Name()]
	return ShownLocal{Place: spaceExtra | i}, ok
}

// placeShown converts each Place to an index of the finished function's variables.
func (c *Codegen) placeShown(place func(space, i int) int) {
	done := map[*chain]bool{}
	put := func(ch *chain) {
		if ch == nil {
			return
		}
		if ch = ch.outermost(); done[ch] {
			return
		}
		done[ch] = true
		for k := range ch.shown {
			if p := &ch.shown[k].Place; *p >= 0 {
				*p = place(*p&spaceMask, *p&^spaceMask)
			}
		}
	}
	for _, m := range c.marks {
		put(m.chain)
	}
	for _, e := range c.out.events {
		put(e.chain)
	}
}
