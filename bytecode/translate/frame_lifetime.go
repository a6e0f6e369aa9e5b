package translate

import (
	"slices"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// CPython frees an object when its last reference is dropped. A finalizer, a weak reference or a file makes that
// moment visible. The transformed function frees objects at the same time as CPython, by two mechanisms:
//
//   - Objects that the rest of a frame holds but never reads are passed to the resume function (keepAlive). The
//     references of a TailCall (a call of a resume function on its way to the caller) move to the frame that it runs
//     (core/calls/tail_call.c).
//   - Objects that the user's code has released are released before the next effect (letGo), and before the native
//     instruction at a graph break (Codegen.tidy).
//
// A tensor that the piece (the code between two graph breaks) computes is freed after the last operation that reads it
// (Codegen.tidy), never later than in CPython. A tensor from the previous piece is freed before the next operation,
// once the user's code has released it.

// maxLifetimeSteps bounds the trackers visited for one frame. Beyond this bound, objects live until the function
// returns, and a guard checks that their destruction runs no code (quietAll). If the destruction of an object does run
// code, the graph breaks (finalizerDue).
const maxLifetimeSteps = 100_000

// keepAlive adds to `live` the variables whose objects CPython would still hold, although the rest of the frame never
// reads them.
func (tx *InstructionTranslator) keepAlive(live map[int]bool) {
	for i, v := range tx.locals {
		if v != nil && !live[i] && tx.out.heldHere(v) {
			live[i] = true
		}
	}
}

// givesTensors lists the instructions that may give a tensor to a function of the program. Reading an attribute of a
// tensor, or branching on it, runs torch's code only.
var givesTensors = map[opcode.Op]bool{opcode.CALL: true, opcode.CALL_FUNCTION_EX: true, opcode.STORE_ATTR: true,
	opcode.STORE_SUBSCR: true, opcode.BINARY_OP: true, opcode.BINARY_SUBSCR: true, opcode.COMPARE_OP: true,
	opcode.CONTAINS_OP: true}

// keepGiven adds to `live` the variables that hold tensors which the native instruction of a graph break is given:
// code that is not translated may make a weak reference to one. Other tensors of the piece are not passed on, since a
// compiler would have to compute them as results.
func (tx *InstructionTranslator) keepGiven(operands []variables.VariableTracker, live map[int]bool) {
	if !givesTensors[tx.inst.Op] {
		return
	}
	if (tx.inst.Op == opcode.CALL || tx.inst.Op == opcode.CALL_FUNCTION_EX) && len(operands) > 1 {
		for _, v := range operands[:2] {
			switch variables.Chosen(v).(type) {
			case *variables.BuiltinVariable, *variables.TorchVariable, *variables.UnboundMethod:
				return // the call runs none of the program's code
			}
		}
		operands = operands[2:] // the arguments
	}
	given := map[variables.VariableTracker]bool{}
	for _, v := range operands {
		switch x := variables.Chosen(v).(type) {
		case *variables.TensorVariable:
			given[x] = true
		case variables.Container: // the arguments of f(*args)
			for _, item := range x.Children() {
				given[variables.Chosen(item)] = true
			}
		}
	}
	for i, v := range tx.locals {
		if t, ok := variables.Chosen(v).(*variables.TensorVariable); ok && given[t] {
			live[i] = true
		}
	}
}

// heldHere reports whether v is, or contains, a real object that perhaps only this frame holds.
func (o *OutputGraph) heldHere(v variables.VariableTracker) bool {
	return o.heldWithin(v, map[variables.VariableTracker]bool{})
}

// heldWithin implements heldHere. seen holds the containers already visited, since a container may contain itself.
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
	case *variables.SymNodeVariable:
		if _, size := x.Source().(*guards.TensorPropertySource); x.Source() != nil && !size {
			return false // an int that was passed to the frame
		}
	case *variables.ConstantVariable, *variables.RangeVariable, *variables.BuiltinVariable,
		*variables.TorchVariable, *variables.ModuleVariable, *variables.UnboundMethod, *variables.TensorVariable,
		*variables.TensorSequence, *variables.OpaqueVariable, *variables.ComputedVariable, *variables.TensorOrInt:
		return false
	case *variables.ArrayVariable, *variables.GeneratorVariable:
		if v.Source() == nil {
			return false
		}
	}
	if variables.Materialized(v) {
		return !o.heldByCaller(v.Source())
	}
	switch v.(type) {
	case *variables.TupleVariable, *variables.ListVariable, *variables.DictVariable, *variables.ObjectVariable,
		*variables.CellVariable:
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

// heldByCaller reports whether a value is an argument of a frame that is not resumed. The caller holds such an
// argument until the call ends.
func (o *OutputGraph) heldByCaller(src guards.Source) bool {
	_, local := src.(*guards.LocalSource)
	return local && o.frame.Origin == nil
}

// holders are the locals of the transformed function that hold an object until the user's code drops it.
type holders struct {
	params map[int]bool // parameters of a resume function, by slot
	slots  map[int]bool // slots of materialized values
	// finalizers is the set of params that hold an object whose destruction runs code.
	finalizers map[int]bool
	at         map[int]variablePlace // for a parameter in finalizers, where it was at an earlier step
	tensors    int                   // number of params that are tensors
	steps      int                   // number of trackers visited so far
	allQuiet   bool                  // quietAll has already run
	// gone has the values to which the user's code has dropped references since the last letGo, in order.
	gone []variables.VariableTracker
}

// variablePlace is a variable of a running frame, or an entry of its value stack.
type variablePlace struct {
	tx      *InstructionTranslator
	onStack bool
	index   int
}

// holds reports whether the object that was passed as a parameter is in this place.
func (p variablePlace) holds(param int) bool {
	values := p.tx.locals
	if p.onStack {
		values = p.tx.fullStack()
	}
	if p.index >= len(values) || values[p.index] == nil {
		return false
	}
	src, ok := values[p.index].Source().(*guards.LocalSource)
	return ok && src.Slot == param
}

// fullStack returns the value stack with the operands of the running instruction.
func (tx *InstructionTranslator) fullStack() []variables.VariableTracker {
	if tx.height > len(tx.stack) && tx.height <= cap(tx.stack) {
		return tx.stack[:tx.height]
	}
	return tx.stack
}

// addHolder records a parameter of a resume function.
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

// FindLoud finds the slots of a resumed frame that hold objects whose destruction runs code. Such an object has a
// __del__ or a weak reference with a callback, or it is the only holder of an object that does. FindLoud must be called
// before anything reads the objects in the slots: a translation attempt, and the guards of a stored translation, keep
// references to what they read. A second call does nothing.
func (f *Frame) FindLoud(w *variables.World, s *py.Scope) {
	if f.loud != nil || f.Origin == nil {
		return
	}
	f.loud = map[int]bool{}
	for i, obj := range f.Slots {
		if !obj.IsNull() && !variables.EndsAlone(obj) && w.VariableEndsInCode(s, obj) {
			f.loud[i] = true
		}
	}
}

// finalizerDue returns a graph break if, before this step, the user's code has released an object with a finalizer.
// The finalizer may change anything that is read later, so translation does not continue past it. The graph also
// breaks if too many trackers would have to be visited to find out.
func (o *OutputGraph) finalizerDue() error {
	h := &o.holders
	if len(h.finalizers) == 0 || o.current == nil {
		return nil
	}
	var r *reach
	for i := range h.finalizers {
		if o.inFrame(i) {
			continue
		}
		if r == nil && h.steps <= maxLifetimeSteps {
			r = o.reached(nil)
		}
		if r == nil || !r.params[i] {
			u := exc.Break(exc.Finalizer, "%s", py.TypeName(o.frame.Slots[i].Type()))
			u.(*exc.Unsupported).Before = true
			return u
		}
	}
	return nil
}

// inFrame reports whether a variable or the value stack of a running frame holds the object that was passed as a
// parameter. It first looks where the object was at an earlier step. Without this shortcut, a loop of 500 steps over a
// model's modules visited 100,000 trackers.
func (o *OutputGraph) inFrame(param int) bool {
	h := &o.holders
	if at, ok := h.at[param]; ok {
		for tx := o.current; tx != nil; tx = tx.parent {
			if tx == at.tx && at.holds(param) {
				return true
			}
		}
	}
	for tx := o.current; tx != nil; tx = tx.parent {
		for _, onStack := range []bool{false, true} {
			values := tx.locals
			if onStack {
				values = tx.fullStack()
			}
			for i := range values {
				if at := (variablePlace{tx, onStack, i}); at.holds(param) {
					if h.at == nil {
						h.at = map[int]variablePlace{}
					}
					h.at[param] = at
					return true
				}
			}
		}
	}
	delete(h.at, param)
	return false
}

// reached collects the holders that can be reached from the running frames and from values.
func (o *OutputGraph) reached(values []variables.VariableTracker) *reach {
	r := &reach{o: o, params: map[int]bool{}, slots: map[int]bool{}, seen: map[variables.VariableTracker]bool{}}
	r.all(values)
	for tx := o.current; tx != nil; tx = tx.parent {
		r.frame(tx)
	}
	o.holders.steps += len(r.seen)
	return r
}

// hold records the event that materializes v in a slot of its own. Like the user's variable, the slot keeps the
// object until the user's code releases it.
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

// letGo drops references to objects that the user's code can no longer reach. It keeps values, the operands of the
// next effect.
func (o *OutputGraph) letGo(values []variables.VariableTracker) {
	h := &o.holders
	if o.materializing > 0 || len(h.params)+len(h.slots) == 0 || o.current == nil {
		return
	}
	if h.steps > maxLifetimeSteps {
		o.quietAll()
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
		o.sortDrops(e.drops, r.seen)
		o.events = append(o.events, e)
	}
}

// letGoOfTensors drops references to tensors that the user's code can no longer reach. It runs before an operation,
// which may need the memory.
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

// holdAgain undoes the drops in events[i:], because the caller removes these events. The next operation or effect
// drops the same objects again.
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

// quiet adds a guard for the object of a parameter, which the user's code has dropped. The guard checks that freeing
// the object runs no code. If freeing it runs code in this call, finalizerDue has already broken the graph.
func (o *OutputGraph) quiet(param int) {
	typed := slices.Contains(o.frame.Origin.Computed, param) // a guard requires the same type in the next call
	if !o.holders.finalizers[param] && !(typed && variables.EndsAlone(o.frame.Slots[param])) {
		o.AddGuards(guards.Quiet(guards.NewLocalSource(o.root.names[param], param)))
	}
}

// quietAll adds a QUIET guard for every parameter. It is called if the user's code has dropped some of them, and it is
// unknown which.
func (o *OutputGraph) quietAll() {
	h := &o.holders
	if h.allQuiet {
		return
	}
	h.allQuiet = true
	for i := range o.frame.Slots {
		if h.params[i] {
			o.quiet(i)
		}
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

// inPlace reports whether a place that the program has read, and has not stored to since, holds v's object: an argument
// that the caller holds, a global, a cell or an attribute of an object in such a place. Stores run no code that could
// change another place (World.Replaceable).
func (o *OutputGraph) inPlace(v variables.VariableTracker) bool {
	switch src := v.Source().(type) {
	case *guards.LocalSource:
		if o.heldByCaller(src) {
			return true
		}
	case *guards.GlobalSource:
		_, stored := o.storedGlobals[src.Global]
		return !stored
	case *guards.AttrSource:
		holder, ok := o.trackerAt(src.Base()).(*variables.ObjectVariable)
		return ok && holder.StillReads(src.Attr, v) && o.inPlace(holder)
	case *guards.CellSource:
		for tx := o.current; tx != nil; tx = tx.parent {
			for _, local := range tx.locals {
				if c, ok := variables.Chosen(local).(*variables.CellVariable); ok && c.StillHolds(v) {
					return true
				}
			}
		}
	}
	return o.reached(nil).seen[v]
}

// trackerAt returns the tracker of the object that was read from src, nil if there is none.
func (o *OutputGraph) trackerAt(src guards.Source) variables.VariableTracker {
	var found variables.VariableTracker
	o.world.Tracked(func(_ py.Object, v variables.VariableTracker) {
		if at := v.Source(); at != nil && at.Name() == src.Name() {
			found = v
		}
	})
	return found
}

// endsHere runs at the end of a piece. It guards that freeing the objects released so far runs no code: CPython would
// have freed them earlier, before the piece's last reads. Objects in values are still needed and are left out.
func (o *OutputGraph) endsHere(values ...variables.VariableTracker) {
	h := &o.holders
	if len(h.params) == 0 || o.current == nil {
		return
	}
	if h.steps > maxLifetimeSteps {
		o.quietAll()
		return
	}
	r := o.reached(values)
	for i := range o.frame.Slots {
		if h.params[i] && !r.params[i] {
			o.quiet(i)
		}
	}
}

// handOver writes the code that follows the last protected operation (the last one whose failure makes the piece run
// again from its start). In a resumed frame, this code drops the references of the frame's TailCall, so that only the
// frame holds its variables from then on. ch is the user's position; nil means the position of the last mark.
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

// drop is the release of one reference, held by a parameter or by the slot of a materialized value.
type drop struct {
	param bool
	index int
}

// reach collects the holders that the user's frames reach. It does not follow the contents of real objects, since a
// real object holds its contents itself.
type reach struct {
	o             *OutputGraph
	params, slots map[int]bool
	seen          map[variables.VariableTracker]bool
}

// frame visits a frame's variables, its stack, the operands of its running instruction, and the exceptions that it is
// handling.
func (r *reach) frame(tx *InstructionTranslator) {
	r.all(tx.locals)
	r.all(tx.fullStack())
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
	if s := variables.SlotOf(v); s != nil {
		r.slots[s.Index] = true
	}
	r.all(heldBy(v))
}
