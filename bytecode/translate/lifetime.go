package translate

import (
	"cmp"
	"maps"
	"slices"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// Lifetimes: CPython frees an object when its last reference goes, and a finalizer, a weak reference or a file shows when that
// was. Two sides keep the transformed function at that:
//
//   - what the rest of a frame never reads but still holds is handed to the resume function (keepAlive);
//   - what the program has let go of is let go of in front of the next effect (letGo) and in front of the native instruction of
//     a split (Codegen.tidy). The references of a TailCall pass over to the frame it runs (core/calls/tail_call.c).
//
// A tensor that the piece computes goes with the last operation that reads it (Codegen.tidy), which is never later than in CPython; one
// that came from the piece before goes in front of the next operation once the program has let go of it.

// maxLifetimeSteps bounds the trackers looked at for one frame; beyond, objects live until the function returns.
const maxLifetimeSteps = 100_000

// keepAlive adds the variables that the rest of the frame never reads but whose objects CPython would still hold.
func (tx *InstructionTranslator) keepAlive(live map[int]bool) {
	for i, v := range tx.locals {
		if v != nil && !live[i] && tx.out.heldHere(v) {
			live[i] = true
		}
	}
}

// heldHere tells whether v is a real object that this frame may be the only one to hold, or holds one.
func (o *OutputGraph) heldHere(v variables.VariableTracker) bool {
	return o.heldWithin(v, map[variables.VariableTracker]bool{})
}

// heldWithin is heldHere; seen: containers looked at already, which may hold themselves.
func (o *OutputGraph) heldWithin(v variables.VariableTracker, seen map[variables.VariableTracker]bool) bool {
	if l, ok := v.(*variables.LazyVariable); ok {
		if _, ours := variables.OurOwn(v); ours {
			return false
		}
		if !l.Realized() {
			return !o.heldByCaller(l.Source())
		}
		v = l.Real()
	}
	switch x := v.(type) {
	case *variables.ClassVariable:
		_, local := x.Source().(*guards.LocalSource)
		return local && o.frame.Origin != nil
	case *variables.ConstantVariable, *variables.RangeVariable, *variables.BuiltinVariable,
		*variables.TorchVariable, *variables.ModuleVariable, *variables.UnboundMethod, *variables.TensorVariable,
		*variables.TensorSequence, *variables.OpaqueVariable, *variables.ComputedVariable:
		return false
	}
	if variables.Materialized(v) {
		return !o.heldByCaller(v.Source())
	}
	switch v.(type) {
	case *variables.TupleVariable, *variables.ListVariable, *variables.DictVariable, *variables.ObjectVariable, *variables.CellVariable:
		if seen[v] {
			return false
		}
		seen[v] = true
		for _, child := range v.(variables.Container).Children() {
			if child != nil && o.heldWithin(child, seen) {
				return true
			}
		}
	}
	return false
}

// heldByCaller tells the arguments of a call from outside: whoever calls holds them until it is over.
func (o *OutputGraph) heldByCaller(src guards.Source) bool {
	_, local := src.(*guards.LocalSource)
	return local && o.frame.Origin == nil
}

// holders are the locals of the transformed function whose references the program may have dropped.
type holders struct {
	params map[int]bool // parameters of a resume function
	slots  map[int]bool // materialized values
	// finalizers are the params whose end runs Python code.
	finalizers map[int]bool
	tensors    int // params that are tensors
	steps      int
}

// addHolder notes a parameter of a resume function.
func (o *OutputGraph) addHolder(param int) {
	h := &o.holders
	h.params[param] = true
	if o.frame.loud[param] {
		h.finalizers[param] = true
	}
	if o.world.IsTensor(o.frame.Slots[param]) {
		h.tensors++
	}
}

// findLoud finds the slots whose end runs code, by a __del__ or the callback of a weak reference of the value's or of what it alone holds.
// An attempt at the frame holds what it has looked at, so it is found by the first alone.
func (o *OutputGraph) findLoud() {
	f := o.frame
	if f.loud != nil {
		return
	}
	f.loud = map[int]bool{}
	for i, obj := range f.Slots {
		if !obj.IsNull() && !variables.EndsAlone(obj) && o.world.VariableEndsInCode(o.scope, obj) {
			f.loud[i] = true
		}
	}
}

// finalizerDue is the error of a step in front of which the program has let go of an object with a finalizer. That may change anything
// that is read later, so nothing is translated past it.
func (o *OutputGraph) finalizerDue() error {
	h := &o.holders
	if len(h.finalizers) == 0 || h.steps > maxLifetimeSteps || o.current == nil {
		return nil
	}
	r := o.reached(nil)
	for i := range h.finalizers {
		if !r.params[i] {
			u := exc.Break(exc.Finalizer, "%s", py.TypeName(o.frame.Slots[i].Type()))
			u.(*exc.Unsupported).Before = true
			return u
		}
	}
	return nil
}

// reached collects what the frames that run reach, and values.
func (o *OutputGraph) reached(values []variables.VariableTracker) *reach {
	r := &reach{o: o, params: map[int]bool{}, slots: map[int]bool{}, seen: map[variables.VariableTracker]bool{}}
	r.all(values)
	for tx := o.current; tx != nil; tx = tx.parent {
		r.frame(tx)
	}
	o.holders.steps += len(r.seen)
	return r
}

// hold records the event that makes v real, in a slot of its own. The slot keeps the object until the program lets go of it, as the
// program's variable would.
func (o *OutputGraph) hold(e *event, v variables.VariableTracker) {
	e.slot = o.newSlot()
	switch x := v.(type) {
	case *variables.ObjectVariable, *variables.CellVariable, *variables.FunctionVariable, *GeneratorVariable:
		e.held = true
	case variables.Container:
		for _, child := range x.Children() {
			e.held = e.held || child != nil && o.heldHere(child)
		}
	}
	if e.held {
		if o.holders.slots == nil {
			o.holders.slots = map[int]bool{}
		}
		o.holders.slots[e.slot.Index] = true
	}
	o.events = append(o.events, e)
	variables.SetSlot(v, e.slot)
}

// letGo ends the hold on what the program cannot reach any more. values: what the effect that comes next works on.
func (o *OutputGraph) letGo(values []variables.VariableTracker) {
	h := &o.holders
	if o.materializing > 0 || len(h.params)+len(h.slots) == 0 || h.steps > maxLifetimeSteps || o.current == nil {
		return
	}
	r := o.reached(values)
	e := &event{chain: o.position()}
	for i, obj := range o.frame.Slots {
		if h.params[i] && !r.params[i] {
			delete(h.params, i)
			e.drops = append(e.drops, drop{param: true, index: i})
			o.quiet(i)
			if o.world.IsTensor(obj) {
				h.tensors--
			}
		}
	}
	for i := 0; i < o.numSlots; i++ {
		if h.slots[i] && !r.slots[i] {
			delete(h.slots, i)
			e.drops = append(e.drops, drop{index: i})
		}
	}
	if len(e.drops) > 0 {
		o.events = append(o.events, e)
	}
}

// letGoOfTensors ends the hold on tensors in front of an operation: it may want memory.
func (o *OutputGraph) letGoOfTensors() {
	h := &o.holders
	if h.tensors == 0 || !o.backend.Inline() || o.materializing > 0 || h.steps > maxLifetimeSteps || o.current == nil {
		return
	}
	r := o.reached(nil)
	e := &event{chain: o.position()}
	for i, obj := range o.frame.Slots {
		if h.params[i] && !r.params[i] && o.world.IsTensor(obj) {
			delete(h.params, i)
			h.tensors--
			e.drops = append(e.drops, drop{param: true, index: i})
		}
	}
	if len(e.drops) > 0 {
		o.events = append(o.events, e)
	}
}

// holdAgain takes back what events from the i-th on let go of, which leave the graph: the next operation or effect lets go of it.
func (o *OutputGraph) holdAgain(i int) {
	h := &o.holders
	for _, e := range o.events[i:] {
		for _, d := range e.drops {
			if !d.param {
				h.slots[d.index] = true
				continue
			}
			h.params[d.index] = true
			if o.world.IsTensor(o.frame.Slots[d.index]) {
				h.tensors++
			}
		}
	}
}

// quiet guards that freeing a parameter that the program has dropped runs no code. If it did in this call, finalizerDue has split the frame.
func (o *OutputGraph) quiet(param int) {
	typed := slices.Contains(o.frame.Origin.Computed, param) // so the next call's ends like this one
	if !o.holders.finalizers[param] && !(typed && variables.EndsAlone(o.frame.Slots[param])) {
		o.AddGuards(guards.Quiet(guards.NewLocalSource(o.root.names[param], param)))
	}
}

// LetGoOf implements variables.Output.
func (o *OutputGraph) LetGoOf() bool {
	h := &o.holders
	if o.frame.Origin == nil {
		return false // the caller holds the arguments
	}
	if h.steps > maxLifetimeSteps || o.current == nil {
		return true
	}
	r := o.reached(nil)
	for i, obj := range o.frame.Slots {
		if !obj.IsNull() && !(h.params[i] && r.params[i]) {
			return true
		}
	}
	return false
}

// endsHere is called where a piece ends: what the program has let go of by now, but for values, died before it read the rest.
func (o *OutputGraph) endsHere(values ...variables.VariableTracker) {
	h := &o.holders
	if len(h.params) == 0 || h.steps > maxLifetimeSteps || o.current == nil {
		return
	}
	r := o.reached(values)
	for i := range o.frame.Slots {
		if h.params[i] && !r.params[i] {
			o.quiet(i)
		}
	}
}

// handOver writes what follows the last operation that may make a piece run again from its start. From here on it does not, and the frame
// of a resumed piece alone holds its variables. ch: a place of the user, nil for that of the last mark.
func (c *Codegen) handOver(ch *chain) error {
	c.protecting = false
	if ch == nil && len(c.marks) > 0 {
		ch = c.marks[len(c.marks)-1].chain
	}
	if c.out.frame.Origin != nil {
		err := c.as(quietCalls, func() error {
			c.PushNull()
			c.LoadConst(c.core("hand_over"))
			c.Call(0, nil)
			return nil
		})
		if err != nil {
			return err
		}
		c.PopTop()
	}
	c.at(ch, false)
	return nil
}

// clearLocals drops the frame's variables in the order in which CPython clears them. The transformed function would clear its parameters
// first and then what it made. With fewer than two values whose end may run code, the order cannot be seen.
func (tx *InstructionTranslator) clearLocals(c *Codegen) {
	o := tx.out
	h := &o.holders
	if len(h.finalizers)+len(h.slots) < 2 || h.steps > maxLifetimeSteps {
		return
	}
	last := map[drop]int{} // of the variables that hold it
	for i, v := range tx.locals {
		if v == nil {
			continue
		}
		r := &reach{o: o, params: map[int]bool{}, slots: map[int]bool{}, seen: map[variables.VariableTracker]bool{}}
		r.all([]variables.VariableTracker{v})
		for p := range r.params {
			if h.params[p] && h.finalizers[p] {
				last[drop{param: true, index: p}] = i
			}
		}
		for s := range r.slots {
			if h.slots[s] {
				last[drop{index: s}] = i
			}
		}
	}
	if len(last) < 2 {
		return
	}
	drops := slices.SortedFunc(maps.Keys(last), func(a, b drop) int {
		return cmp.Or(cmp.Compare(last[a], last[b]), cmp.Compare(a.index, b.index))
	})
	for _, d := range drops {
		c.drop(d)
	}
}

// drop names a parameter, or the slot of a materialized value.
type drop struct {
	param bool
	index int
}

// reach collects the holders that the program's frames reach without passing a real object: what is inside one of those is
// held by it.
type reach struct {
	o             *OutputGraph
	params, slots map[int]bool
	seen          map[variables.VariableTracker]bool
}

// frame visits variables, stack, and the operands of the instruction that is running.
func (r *reach) frame(tx *InstructionTranslator) {
	r.all(tx.locals)
	stack := tx.stack
	if tx.height > len(stack) && tx.height <= cap(stack) {
		stack = stack[:tx.height]
	}
	r.all(stack)
	r.all(tx.handled)
}

func (r *reach) all(vs []variables.VariableTracker) {
	for _, v := range vs {
		if v != nil && !r.seen[v] {
			r.visit(v)
		}
	}
}

func (r *reach) visit(v variables.VariableTracker) {
	r.seen[v] = true
	if s, ok := v.Source().(*guards.LocalSource); ok {
		r.params[s.Slot] = true
	}
	if l, ok := v.(*variables.LazyVariable); ok {
		if l.Realized() {
			r.all([]variables.VariableTracker{l.Real()})
		}
		return
	}
	if s := variables.SlotOf(v); s != nil {
		r.slots[s.Index] = true
	}
	switch x := v.(type) {
	case *handledMark:
		r.all([]variables.VariableTracker{x.exception})
	case *GeneratorVariable:
		if x.frame != nil && !variables.Materialized(x) {
			r.frame(x.frame)
		}
	}
	if c, ok := v.(variables.Container); ok && !variables.Materialized(v) {
		r.all(c.Children())
	}
}
