package translate

import (
	"math"
	"slices"
	"strings"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/variables"
)

// A `for` statement or list comprehension whose number of turns is a size may be captured once for all sizes: the
// transformed function then has the loop, and its body once. The body is executed symbolically for one turn, with an
// int of unknown value or with rows of tensors. This is possible if each turn starts from the same state: the body
// assigns no variable that is live at the loop's head, changes nothing but tensors, values that it has made and the
// list of the comprehension, and has no other effect. If the body turns out not to qualify, another attempt makes the
// number of turns a constant (SpeculationLog.unrolled), and the turns are captured one by one.

// loop is a loop that is captured once.
type loop struct {
	tx       *InstructionTranslator // the frame that runs it
	head     *bytecode.Instruction  // its FOR_ITER
	step     int                    // step at which it was entered
	iterator *variables.SizesIterator
	list     *variables.LoopList // of a comprehension; may be nil
	before   loopState
	begin    int                     // index of the event that starts the loop
	slots    []*variables.Slot       // the item, or the parts of the tuple that zip yields
	written  []*bytecode.Instruction // the first instruction of the loop and the instruction after the loop
	exit     *bytecode.Instruction   // the written FOR_ITER
	symbols  int                     // number of symbols before the loop
	// assumed is set if the body has made a fact about sizes that exist before the loop. If there are no turns, it does
	// not hold.
	assumed bool
}

// loopState is the state at the start of a turn.
type loopState struct {
	writes, own, casts int
	off                bool
	held               map[variables.VariableTracker]bool // values that can be reached from the running frames
	locals             []variables.VariableTracker        // of the frame that runs the loop
}

// capturedLoops holds the captured loops of a translation.
type capturedLoops struct {
	active   *loop
	finished []*loop
	rows     map[*fxgraph.Node]shapes.Value // placeholders of rows and lists, with what the rules know about them
}

// maxLoops is the largest number of loops in a piece that are captured once.
const maxLoops = 16

// maxUnrolls bounds the attempts to translate a frame that end because a loop cannot be captured once.
const maxUnrolls = 20

// maxLoopState bounds the number of values that are visited at the start of a loop.
const maxLoopState = 20_000

// AtLoop implements variables.Output.
func (o *OutputGraph) AtLoop(name string) bool {
	tx := o.current
	if tx == nil || tx.inst == nil || !o.capturesLoops(tx) {
		return false
	}
	list, step := tx.d.code.Instructions[tx.ip:], o.steps+1
	switch {
	case name != "":
		if !tx.calls(name) || len(list) < 2 || list[0].Op != opcode.GET_ITER {
			return false
		}
		list = list[1:]
		step++
	case tx.inst.Op != opcode.GET_ITER:
		return false
	}
	if n := opensComprehension(list); n > 0 {
		list, step = list[n:], step+n
	}
	if len(list) == 0 {
		return false
	}
	d, head := tx.d, list[0]
	if head.Op == opcode.CALL && head.Arg == 0 {
		if d = tx.comprehension(); d == nil {
			return false
		}
		i := slices.IndexFunc(d.code.Instructions, func(in *bytecode.Instruction) bool {
			return in.Op == opcode.FOR_ITER
		})
		if i < 0 {
			return false
		}
		head, step = d.code.Instructions[i], step+1+i
	}
	if head.Op != opcode.FOR_ITER || o.log.unrolled[step] {
		return false
	}
	_, ok := d.loopBody(head)
	return ok
}

// opensComprehension returns the number of instructions, from the list's first one, that open an inlined list
// comprehension: they save its variables and make its list. It is 0 if they do something else.
func opensComprehension(list []*bytecode.Instruction) int {
	for i, in := range list {
		switch {
		case in.Op == opcode.LOAD_FAST_AND_CLEAR || in.Op == opcode.SWAP || in.Op == opcode.BUILD_LIST && in.Arg == 0:
		case in.Op == opcode.FOR_ITER:
			return i
		default:
			return 0
		}
	}
	return 0
}

// calls reports whether the running instruction itself calls the builtin of this name.
func (tx *InstructionTranslator) calls(name string) bool {
	if tx.inst.Op != opcode.CALL {
		return false
	}
	stack := tx.fullStack()
	at := tx.height - tx.inst.Arg - 2
	if at < 0 || tx.height > len(stack) {
		return false
	}
	fn, _ := callee(stack[at:])
	return fn != nil && variables.CallsBuiltin(tx.World(), fn, name)
}

// comprehension returns the code of the list comprehension whose function is on the stack, or nil.
func (tx *InstructionTranslator) comprehension() *decoded {
	for _, v := range slices.Backward(tx.stack) {
		fn, ok := v.(*variables.FunctionVariable)
		if !ok || !fn.Fn.IsNull() {
			continue
		}
		d, err := tx.out.decode(fn.Code)
		if err != nil || d.code.Name != "<listcomp>" || d.code.Flags&opcode.CO_GENERATOR != 0 {
			return nil
		}
		return d
	}
	return nil
}

// capturesLoops reports whether a loop in this frame could be captured once.
func (o *OutputGraph) capturesLoops(tx *InstructionTranslator) bool {
	if o.log.noLoops || o.log.strict || !o.backend.Inline() || !o.symbolizes() || o.opts.Exporting ||
		o.opts.PythonOps || o.bodies > 0 || o.tentative > 0 || o.loops.active != nil || o.hasProtected ||
		!o.state.now.IsNull() || tx.InsideTry() {
		return false
	}
	if recording, err := o.world.Recording(o.scope); err != nil || recording {
		return false // an in-place change could change requires_grad, and views differ
	}
	for t := tx; t != nil; t = t.parent {
		if t.hidden || usesFrame(t.d.code) || t.d.code.Flags&opcode.CO_GENERATOR != 0 {
			return false
		}
	}
	return true
}

// hasLoops reports whether a loop is captured once, or is being captured. Values of tensors are then not predicted:
// the analysis would count one turn.
func (o *OutputGraph) hasLoops() bool { return o.loops.active != nil || len(o.loops.finished) > 0 }

// enterLoop starts the capture of a loop at its FOR_ITER, and pushes the item. It returns false if the loop cannot be
// captured once.
func (tx *InstructionTranslator) enterLoop(inst *bytecode.Instruction, it *variables.SizesIterator) (bool, error) {
	o := tx.out
	if o.log.unrolled[o.steps] || !o.capturesLoops(tx) || len(o.loops.finished) == maxLoops {
		return false, nil
	}
	appends, ok := tx.d.loopBody(inst)
	if !ok {
		return false, nil
	}
	var err error
	l := &loop{tx: tx, head: inst, step: o.steps, iterator: it}
	if appends {
		at := len(tx.stack) - 2
		list, ok := tx.stack[max(at, 0)].(*variables.ListVariable)
		if at < 0 || !ok || !variables.IsNewEmpty(list) {
			return false, nil
		}
		if l.list, err = o.newLoopList(tx, it.N); err != nil {
			return false, err
		}
		tx.stack[at] = l.list
	}
	for _, v := range it.Args {
		if err := o.Freeze(tx, v); err != nil {
			return false, err
		}
	}
	o.AddGuards(guards.GlobalState()) // grad mode is off
	o.letGoOfTensors()
	o.forgetNumbers() // a turn may change a tensor that the next turn passes as a size
	o.world.Writes++
	o.world.Effects++ // an equal layer repeats operations, but no loop
	if l.before.held, ok = tx.reachable(it); !ok {
		return false, o.unroll(l.step, "too many values, or an iterator in a variable")
	}
	l.before.writes, l.before.own, l.before.casts = o.world.Writes, o.world.Own, o.world.Casts
	l.before.off = o.sizes != nil && o.sizes.off
	l.before.locals = slices.Clone(tx.locals)
	o.world.Watch()
	l.symbols = len(o.symbols.dims)
	o.world.Env().OnAssume = l.assumes(o)
	l.begin = len(o.events)
	item, err := o.loopItem(tx, l)
	if err != nil {
		return false, err
	}
	o.events = append(o.events, o.here(&event{loop: l, fresh: true}))
	o.loops.active = l
	tx.push(item)
	return true, nil
}

// loopBody examines the instructions of a loop. ok is false if they assign a variable that is live at the loop's head,
// or leave the loop. appends is set if they append to the list of a comprehension.
func (d *decoded) loopBody(head *bytecode.Instruction) (appends, ok bool) {
	live := bytecode.Liveness(d.code)[head]
	from, to := d.index[head]+1, d.index[head.Target]
	if to <= from {
		return false, false
	}
	for i, in := range d.code.Instructions[from:to] {
		switch in.Op {
		case opcode.STORE_FAST, opcode.DELETE_FAST:
			// y += z may store the tensor that y is; see changed.
			before := d.code.Instructions[from+i-1]
			if live.Has(in.Arg) && (before.Op != opcode.BINARY_OP || !opcode.BinaryOp(before.Arg).Inplace()) {
				return false, false
			}
		case opcode.LIST_APPEND:
			if appends || in.Arg != 2 {
				return false, false
			}
			appends = true
		case opcode.RETURN_VALUE, opcode.YIELD_VALUE, opcode.SEND, opcode.STORE_DEREF, opcode.DELETE_DEREF,
			opcode.STORE_GLOBAL, opcode.STORE_NAME, opcode.DELETE_GLOBAL, opcode.SET_ADD, opcode.MAP_ADD,
			opcode.MAKE_CELL:
			return false, false
		}
		if in.Block() != nil {
			return false, false
		}
		if in.Target != nil {
			if i := d.index[in.Target]; i < from-1 || i > to || i == to && in.Op != opcode.FOR_ITER {
				return false, false
			}
		}
	}
	return appends, true
}

// reachable returns the values that the running frames can reach. ok is false if there are too many, or if a variable
// holds an iterator, which the body could advance. Only the frame's own FOR_ITER advances an iterator on a stack.
func (tx *InstructionTranslator) reachable(own variables.VariableTracker) (map[variables.VariableTracker]bool, bool) {
	found, ok := map[variables.VariableTracker]bool{}, true
	var visit func(v variables.VariableTracker, stepped bool)
	visit = func(v variables.VariableTracker, stepped bool) {
		if l, lazy := v.(*variables.LazyVariable); lazy {
			if !l.Realized() {
				return
			}
			v = l.Real()
		}
		if v == nil || found[v] || len(found) > maxLoopState {
			return
		}
		found[v] = true
		if _, steps := v.(variables.Iterator); steps && !stepped && v != own {
			ok = false
		}
		if c, container := v.(variables.Container); container {
			for _, child := range c.Children() {
				visit(child, stepped)
			}
		}
	}
	for t := tx; t != nil; t = t.parent {
		for i, v := range t.locals {
			if t.d.code.Locals[i].Name != ".0" {
				visit(v, false)
			}
		}
	}
	for t := tx; t != nil; t = t.parent {
		for _, v := range t.fullStack() {
			_, steps := v.(variables.Iterator)
			visit(v, steps)
		}
		for _, v := range t.locals {
			visit(v, true)
		}
	}
	return found, ok && len(found) <= maxLoopState
}

// loopItem returns the tracker of the loop's item.
func (o *OutputGraph) loopItem(tx *InstructionTranslator, l *loop) (variables.VariableTracker, error) {
	it := l.iterator
	if it.Range() {
		l.slots = []*variables.Slot{o.newSlot()}
		i := o.AtRunTime(nil, l.slots[0], 0, math.MaxInt64)
		return i, nil
	}
	var items []variables.VariableTracker
	for _, v := range it.Args {
		t := v.(*variables.TensorVariable)
		row, ok := o.byRule(t.Node).(*shapes.Tensor)
		if !ok || len(row.Shape) == 0 {
			return nil, o.unroll(l.step, "rows of unknown metadata")
		}
		slot := o.newSlot()
		l.slots = append(l.slots, slot)
		n := o.loopInput("row", slot, &shapes.Tensor{Shape: row.Shape[1:], Dtype: row.Dtype, Device: row.Device})
		items = append(items, variables.NewTensor(n))
	}
	if it.Zip {
		return variables.NewTuple(items, nil), nil
	}
	return items[0], nil
}

// loopInput returns a placeholder for the contents of a slot.
func (o *OutputGraph) loopInput(name string, slot *variables.Slot, known shapes.Value) *fxgraph.Node {
	n := o.graph.Placeholder(name + "_" + itoa(len(o.loops.rows)))
	if o.loops.rows == nil {
		o.loops.rows = map[*fxgraph.Node]shapes.Value{}
	}
	if o.computed.tensors == nil {
		o.computed.tensors = map[*fxgraph.Node]*variables.Slot{}
	}
	o.loops.rows[n], o.computed.tensors[n] = known, slot
	return n
}

// newLoopList makes the list of a comprehension.
func (o *OutputGraph) newLoopList(tx *InstructionTranslator, n sym.Size) (*variables.LoopList, error) {
	slot, err := o.Compute(tx, nil, false, func(e variables.Emitter) error {
		e.BuildList(0)
		return nil
	})
	if err != nil {
		return nil, err
	}
	list := &variables.LoopList{Node: o.loopInput("list", slot, shapes.Unknown{}), N: n}
	variables.SetSlot(list, slot)
	return list, nil
}

// appendInLoop appends to the list of a comprehension. It returns false for other lists.
func (tx *InstructionTranslator) appendInLoop(list, v variables.VariableTracker) (bool, error) {
	o := tx.out
	l := o.loops.active
	if x, ok := list.(*variables.LoopList); !ok || l == nil || l.list != x {
		return false, nil
	}
	t, ok := v.(*variables.TensorVariable)
	if !ok {
		return true, o.unroll(l.step, "an item that is no tensor")
	}
	o.events = append(o.events, o.here(&event{fresh: true, emit: func(e variables.Emitter) error {
		if err := e.Load(list); err != nil {
			return err
		}
		if err := e.Load(t); err != nil {
			return err
		}
		e.ListAppend()
		e.PopTop()
		return nil
	}}))
	return true, nil
}

// turnEnds ends the capture of a loop when its FOR_ITER is reached again.
func (tx *InstructionTranslator) turnEnds(inst *bytecode.Instruction) error {
	o := tx.out
	l := o.loops.active
	if tx.top(1) != variables.VariableTracker(l.iterator) {
		return o.unroll(l.step, "another iterator")
	}
	written := o.world.Watched()
	if why := l.changed(o, written); why != "" {
		return o.unroll(l.step, why)
	}
	body := slices.Clone(o.events[l.begin+1:])
	var first, rest []*event
	for _, e := range body {
		if !o.fits(e, body) {
			return o.unroll(l.step, "an effect")
		}
		if e.size && o.knownAtStart(e.of) || e.drops != nil {
			first = append(first, e)
		} else {
			rest = append(rest, e)
		}
	}
	start := o.events[l.begin]
	o.events = append(append(o.events[:l.begin:l.begin], first...), start)
	o.events = append(o.events, rest...)
	o.events = append(o.events, o.here(&event{loop: l, loopEnds: true, fresh: true}))
	o.loops.active, o.world.Env().OnAssume = nil, nil
	o.loops.finished = append(o.loops.finished, l)
	o.world.Writes++
	o.world.Effects++
	o.letGoInLoop(l)
	tx.pop()
	tx.jump(inst.Target)
	return nil
}

// knownAtStart reports whether an int is computed only from sizes that the guards read.
func (o *OutputGraph) knownAtStart(s sym.Size) bool {
	w := &symbolLister{}
	o.world.Env().Write(s, w)
	return !slices.ContainsFunc(w.found, func(x sym.Symbol) bool {
		v := o.world.SymbolOf(x)
		return v.Node != nil || v.Source() == nil
	})
}

// assumes returns a function that records facts that hold only because the body has run.
func (l *loop) assumes(o *OutputGraph) func(e sym.Size) {
	return func(e sym.Size) {
		w := &symbolLister{}
		o.world.Env().Write(e, w)
		l.assumed = l.assumed || slices.ContainsFunc(w.found, func(s sym.Symbol) bool { return int(s) < l.symbols })
	}
}

// letGoInLoop unbinds the variables that the loop has assigned. They are dead at the loop's head, so also after the
// loop.
func (o *OutputGraph) letGoInLoop(l *loop) {
	tx := l.tx
	from, to := tx.d.index[l.head]+1, tx.d.index[l.head.Target]
	live := bytecode.Liveness(tx.d.code)[l.head]
	for _, in := range tx.d.code.Instructions[from:to] {
		if in.Op == opcode.STORE_FAST && !live.Has(in.Arg) {
			tx.locals[in.Arg] = nil
		}
	}
}

// changed returns why the state at the end of a turn is not that at its start, or "".
func (l *loop) changed(o *OutputGraph, written []variables.VariableTracker) string {
	w := o.world
	switch {
	case w.Writes-l.before.writes != w.Own-l.before.own:
		return "a change of a value that other code can see"
	case l.assumed:
		return "a fact about sizes that exist before the loop"
	case w.Casts != l.before.casts:
		return "a tensor of a subclass"
	case o.sizes != nil && o.sizes.off != l.before.off:
		return "an operation that changes sizes in place"
	case !o.state.now.IsNull() || o.hasProtected:
		return "a switch of a mode, or an operation in a block"
	}
	live := bytecode.Liveness(l.tx.d.code)[l.head]
	for i, v := range l.tx.locals {
		if live.Has(i) && realOf(v) != realOf(l.before.locals[i]) {
			return "a variable that the next turn reads"
		}
	}
	for _, v := range written {
		v = realOf(v)
		if l.before.held[v] && v != variables.VariableTracker(l.iterator) && !isTensor(v) {
			return "a change of a value made before the loop: " + v.Kind()
		}
	}
	return ""
}

// realOf returns the tracker that a LazyVariable has become, or v.
func realOf(v variables.VariableTracker) variables.VariableTracker {
	if l, ok := v.(*variables.LazyVariable); ok && l.Realized() {
		return l.Real()
	}
	return v
}

func isTensor(v variables.VariableTracker) bool {
	_, ok := v.(*variables.TensorVariable)
	return ok
}

// fits reports whether an event may be in a loop that is captured once, or may precede it.
func (o *OutputGraph) fits(e *event, body []*event) bool {
	switch {
	case e.loop != nil || e.protected || e.inBlock || e.draws || e.held || e.reads || e.shared:
		return false
	case e.node != nil:
		n := e.node
		named := slices.ContainsFunc(n.Kwargs, func(kw fxgraph.Kwarg) bool { return kw.Name == "out" })
		return !n.State && !n.RunsOnce() && !named && (!n.Inplace || changesOnlyData(n))
	case e.drops != nil:
		return !slices.ContainsFunc(e.drops, func(d drop) bool {
			return !d.param || !o.world.IsTensor(o.frame.Slots[d.index])
		})
	case e.slot == nil:
		return e.fresh && e.emit != nil // an append to the comprehension's list
	}
	return e.early
}

// changesOnlyData reports whether an in-place operation changes only the data of its first operand.
func changesOnlyData(n *fxgraph.Node) bool {
	name, ok := strings.CutPrefix(n.Target.Text, "operator.")
	return ok && (name == "setitem" || len(name) > 1 && name[0] == 'i' && name != "invert" && name != "inv")
}

// unroll requests another attempt in which a loop has a constant number of turns.
func (o *OutputGraph) unroll(step int, why string) error {
	if o.loops.active != nil {
		o.loops.active, o.world.Env().OnAssume = nil, nil
	}
	return o.log.unroll(step, "a loop is captured turn by turn: "+why)
}

// leavesLoop reports whether the running instruction is outside of the loop that is being captured in this frame.
func (tx *InstructionTranslator) leavesLoop(inst *bytecode.Instruction) bool {
	l := tx.out.loops.active
	if l == nil || l.tx != tx {
		return false
	}
	i := tx.d.index[inst]
	return i < tx.d.index[l.head] || i >= tx.d.index[l.head.Target]
}

// abandon ends the capture of a loop because of an error in its body. An exception that the program raises and catches
// in a function that the body calls is no error.
func (tx *InstructionTranslator) abandon(err error) error {
	if err == nil {
		return nil
	}
	l := tx.out.loops.active
	if l == nil {
		if l = tx.readsList(); l == nil {
			return err
		}
		if _, breaks := err.(*exc.Unsupported); !breaks {
			return err
		}
		return tx.out.unroll(l.step, err.Error())
	}
	switch err.(type) {
	case *exc.RestartAnalysis:
		return err
	case *exc.Observed:
		if tx != l.tx {
			return err
		}
	}
	return tx.out.unroll(l.step, err.Error())
}

// readsList returns the captured loop whose list is an operand of the running instruction, or nil.
func (tx *InstructionTranslator) readsList() *loop {
	for _, l := range tx.out.loops.finished {
		if l.list == nil {
			continue
		}
		for _, v := range tx.fullStack()[min(len(tx.stack), tx.height):] {
			if v == variables.VariableTracker(l.list) {
				return l
			}
		}
	}
	return nil
}

// unroll records that the loop entered at a step is captured turn by turn. Failures at later steps are forgotten, since
// the steps differ.
func (l *SpeculationLog) unroll(step int, why string) error {
	if l.unrolled == nil {
		l.unrolled = map[int]bool{}
	}
	l.unrolled[step] = true
	if l.unrolls++; l.unrolls == maxUnrolls {
		step, l.noLoops = -1, true
	}
	later := func(s int) bool { return s > step }
	for s := range l.entries {
		if later(s) {
			delete(l.entries, s)
		}
	}
	for _, m := range []map[int]bool{l.python, l.fixed, l.opaqueTried, l.unrolled} {
		for s := range m {
			if later(s) {
				delete(m, s)
			}
		}
	}
	return &exc.RestartAnalysis{Reason: why}
}
