package translate

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/variables"
)

// maxGone bounds the values in holders.gone. If there are more, objects that end together end in the order in which
// they were made.
const maxGone = 1000

// endings computes in which order objects end if references to them are dropped one after the other. It counts the
// references among the values that nothing else reaches, as CPython does.
type endings struct {
	kept   map[variables.VariableTracker]bool // values that are still reached
	counts map[variables.VariableTracker]int
	order  map[drop]int // when the holder is dropped
	steps  int          // drops so far; a lazy tracker and its real one drop the same holder
}

// endOrder returns when each holder is dropped if the references to roots are dropped in this order. kept has the
// values that live on; they end later, and so does what they contain.
func endOrder(roots []variables.VariableTracker, kept map[variables.VariableTracker]bool) map[drop]int {
	e := &endings{kept: kept, counts: map[variables.VariableTracker]int{}, order: map[drop]int{}}
	for _, v := range roots {
		e.count(v)
	}
	for _, v := range roots {
		e.release(v)
	}
	return e.order
}

func (e *endings) count(v variables.VariableTracker) {
	if v == nil || e.kept[v] {
		return
	}
	e.counts[v]++
	if e.counts[v] > 1 {
		return
	}
	for _, child := range heldBy(v) {
		e.count(child)
	}
}

// release drops one reference to v. If it was the last one, v ends, and then drops what it holds.
func (e *endings) release(v variables.VariableTracker) {
	if v == nil || e.kept[v] {
		return
	}
	if e.counts[v]--; e.counts[v] > 0 {
		return
	}
	e.steps++
	if s, ok := v.Source().(*guards.LocalSource); ok {
		e.order[drop{param: true, index: s.Slot}] = e.steps
	}
	if s := variables.SlotOf(v); s != nil {
		e.order[drop{index: s.Index}] = e.steps
	}
	held := heldBy(v)
	switch v.(type) {
	case *variables.ListVariable, *variables.TupleVariable: // begin with their last item (Objects/listobject.c)
		for _, child := range slices.Backward(held) {
			e.release(child)
		}
	default:
		for _, child := range held {
			e.release(child)
		}
	}
}

// heldBy returns what v holds itself. A real object holds its contents, not its tracker.
func heldBy(v variables.VariableTracker) []variables.VariableTracker {
	switch x := v.(type) {
	case *variables.LazyVariable:
		if x.Realized() {
			return []variables.VariableTracker{x.Real()}
		}
		return nil
	case *handledMark:
		return []variables.VariableTracker{x.exception}
	}
	if variables.Materialized(v) {
		return nil
	}
	if g, ok := v.(*GeneratorVariable); ok && g.frame != nil {
		return slices.Concat(g.frame.locals, g.frame.fullStack(), g.frame.handled, g.Children())
	}
	if c, ok := v.(variables.Container); ok {
		return c.Children()
	}
	return nil
}

// lets records that the user's code drops a reference to v. If several objects end before the next effect, letGo drops
// them in the order that follows from this.
func (o *OutputGraph) lets(v variables.VariableTracker) {
	if h := &o.holders; h.several() && len(h.gone) < maxGone {
		h.gone = append(h.gone, v)
	}
}

// several reports whether more than one object is held whose end may be seen. Otherwise there is no order to see.
func (h *holders) several() bool { return len(h.finalizers)+len(h.slots) > 1 }

// letsFrame records that an inlined frame has ended.
func (o *OutputGraph) letsFrame(tx *InstructionTranslator) {
	if o.holders.several() {
		for _, v := range tx.clearOrder() {
			o.lets(v)
		}
	}
}

// sortDrops sorts the drops of one event by when the objects end. Those of unknown order come last, as they were made.
func (o *OutputGraph) sortDrops(drops []drop, kept map[variables.VariableTracker]bool) {
	gone := o.holders.gone
	o.holders.gone = nil
	if len(drops) < 2 || len(gone) == 0 {
		return
	}
	order := endOrder(gone, kept)
	when := func(d drop) int {
		if at, known := order[d]; known {
			return at
		}
		return math.MaxInt
	}
	slices.SortStableFunc(drops, func(a, b drop) int { return cmp.Compare(when(a), when(b)) })
}

// clearOrder returns the frame's variables in the order in which CPython clears them.
func (tx *InstructionTranslator) clearOrder() []variables.VariableTracker {
	list := slices.Clone(tx.locals)
	if tx.d.code.ClearsBackward {
		slices.Reverse(list)
	}
	return list
}

// clearLocals drops the frame's variables in the order in which CPython clears them. Otherwise the transformed function
// would clear its parameters first, and then its own locals. The order is invisible if fewer than two values have a
// destruction that may run code.
func (tx *InstructionTranslator) clearLocals(c *Codegen) {
	h := &tx.out.holders
	if !h.several() {
		return
	}
	order := endOrder(tx.clearOrder(), nil)
	maps.DeleteFunc(order, func(d drop, _ int) bool {
		return d.param && !(h.params[d.index] && h.finalizers[d.index]) || !d.param && !h.slots[d.index]
	})
	if len(order) < 2 {
		return
	}
	drops := slices.SortedFunc(maps.Keys(order), func(a, b drop) int { return cmp.Compare(order[a], order[b]) })
	for _, d := range drops {
		c.drop(d)
	}
}
