package translate

import (
	"slices"
	"strconv"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

func itoa(i int) string { return strconv.Itoa(i) }

// Until finish runs, the operand of an instruction that accesses a local variable or a closure cell combines a space
// and a number in that space. finish replaces the operand by the final slot, once it knows how many values the guards
// pass to the function.
const (
	spaceSlot  = iota << 24 // parameters that are slots of the frame
	spaceExtra              // parameters that are values fetched by the guards
	// Temps hold values that the function computes. Each temp has its own number; tidy assigns few slots to them.
	spaceTemp
	spaceClosure // closure cells of the generated function, for constants that marshal refuses
	spaceMask    = 0xff << 24
)

// mark attaches a chain (the user's stack at an instruction) to the instructions from start up to the next mark.
type mark struct {
	start int
	chain *chain
	drop  bool
	graph bool
	// protected is set if CPython runs the user's code again when the instructions raise; see OutputGraph.protect.
	protected bool
}

// calling selects how a call is written: whether CPython checks for signals during and after the call. See
// core/calls/quiet_call.h.
type calling int

const (
	plainCalls calling = iota
	// CPython does not check for signals after the call. This is for calls that must not run twice, at places where an
	// exception right after the call would reach no handler.
	quietCalls
	heldCalls // CPython does not check for signals while the call runs, or after it
)

func (k calling) name() string {
	if k == heldCalls {
		return "held_calls"
	}
	return "quiet_calls"
}

// Codegen (PyCodegen in Dynamo) writes the transformed function. It writes the events in order, and then the code that
// ends the frame.
type Codegen struct {
	out       *OutputGraph
	list      []*bytecode.Instruction
	consts    []py.Object
	constIdx  map[py.Object]int
	names     []string
	nameIdx   map[string]int
	closure   []py.Object
	closIdx   map[py.Object]int
	epilogues map[epilogueKey]py.Object // by what they compute
	extras    []guards.Source
	extraIdx  map[string]int
	nodeTemp  map[*fxgraph.Node]int
	slotTemp  map[int]int
	held      map[int]bool // temps that keep their value until a DELETE_FAST or until the function ends
	numTemps  int
	pos       bytecode.Position
	marks     []mark
	ends      []int                  // indexes after the last instruction of each operation or effect
	spans     []eventCode            // the code of each event, with an inline backend
	unneeded  []written              // code that is dropped if nothing loads its result
	loaded    map[*fxgraph.Node]bool // nodes used outside the graph
	needsHook bool
	catches   bool // an exception of the native instruction is passed to a resume function
	// letGo is the index of the native instruction at a graph break, or -1. Before this instruction, the written code
	// releases values that the user's code has released by then.
	letGo int
	// caught is the temp that holds the native instruction's exception. catch is the call of the resume function that
	// handles that exception. At that call the frame must hold no values, since the exception's traceback keeps the
	// frame alive.
	caught   int
	catch    *bytecode.Instruction
	putsBack putBackRegion
	leadEnd  int // index of the first instruction after the effects that precede the first operation
	calls    calling
	// protecting is set until the last protected operation has been written. No effect may be visible before that
	// operation has finished.
	protecting bool
	// effectsWait is set if effects wait for an operation that itself leaves a visible trace (OutputGraph.effectsWait).
	effectsWait bool
	looked      int  // number of events that making() has examined
	seen        bool // one of the examined events is visible
}

func newCodegen(out *OutputGraph) *Codegen {
	return &Codegen{
		out: out, constIdx: map[py.Object]int{}, nameIdx: map[string]int{}, closIdx: map[py.Object]int{},
		extraIdx: map[string]int{}, nodeTemp: map[*fxgraph.Node]int{}, slotTemp: map[int]int{}, held: map[int]bool{},
		loaded: map[*fxgraph.Node]bool{}, pos: bytecode.NoPosition, letGo: -1,
	}
}

func (c *Codegen) emit(op opcode.Op, arg int) *bytecode.Instruction {
	inst := bytecode.New(op, arg).At(c.pos)
	c.list = append(c.list, inst)
	return inst
}

// at sets the user's position for the instructions that follow.
func (c *Codegen) at(ch *chain, drop bool) {
	if ch == nil {
		return
	}
	root := ch
	for root.parent != nil {
		root = root.parent
	}
	c.pos = root.inst.Pos
	c.mark(mark{start: len(c.list), chain: ch, drop: drop, protected: c.protecting})
}

func (c *Codegen) mark(m mark) {
	if n := len(c.marks); n > 0 {
		if last := c.marks[n-1]; last.chain == m.chain && last.drop == m.drop && last.graph == m.graph &&
			last.protected == m.protected {
			return
		}
	}
	c.marks = append(c.marks, m)
}

func (c *Codegen) name(s string) int {
	i, ok := c.nameIdx[s]
	if !ok {
		i = len(c.names)
		c.names = append(c.names, s)
		c.nameIdx[s] = i
	}
	return i
}

// LoadConst implements variables.Emitter. Objects that marshal accepts go into co_consts. Others go into a closure
// cell, where the garbage collector sees them.
func (c *Codegen) LoadConst(o py.Object) {
	if made := c.out.world.MadeClass(o); made != nil { // o is the template of a class that the function has made
		c.emit(opcode.LOAD_FAST, spaceTemp|c.tempOfSlot(variables.SlotOf(made).Index))
		return
	}
	if marshals(c.out.scope, o) {
		i, ok := c.constIdx[o]
		if !ok {
			i = len(c.consts)
			c.consts = append(c.consts, o)
			c.constIdx[o] = i
		}
		c.emit(opcode.LOAD_CONST, i)
		return
	}
	i, ok := c.closIdx[o]
	if !ok {
		i = len(c.closure)
		c.closure = append(c.closure, o)
		c.closIdx[o] = i
	}
	c.emit(opcode.LOAD_DEREF, spaceClosure|i)
}

// isConstant reports whether a tuple is loaded as a constant.
func isConstant(s *py.Scope, t *variables.TupleVariable) bool {
	return !t.Real().IsNull() && marshals(s, t.Real())
}

func marshals(s *py.Scope, o py.Object) bool {
	switch o.Kind() {
	case py.NoneKind, py.BoolKind, py.Int, py.Float, py.Complex, py.Bytes, py.EllipsisKind, py.Code:
		return true
	case py.Str:
		return !py.CodeInterns(o) // a computed str is not the same object as an equal literal
	case py.Tuple:
		for _, it := range s.Items(o) {
			if !marshals(s, it) {
				return false
			}
		}
		return true
	}
	return false
}

// onlyOne reports whether o is the only object with its value, such as None or a small int. A guard on the value then
// also fixes the object. For any other constant of the frame, the next call may pass an equal object.
func onlyOne(o py.Object) bool {
	switch o.Kind() {
	case py.NoneKind, py.BoolKind, py.EllipsisKind, py.Code:
		return true
	case py.Int:
		n, ok := py.AsInt(o)
		return ok && n >= -5 && n <= 256 // CPython's small ints
	}
	return false
}

// LoadInt implements variables.Emitter.
func (c *Codegen) LoadInt(i int) { c.LoadConst(c.out.scope.Int(int64(i))) }

// LoadStr implements variables.Emitter.
func (c *Codegen) LoadStr(text string) { c.LoadConst(variables.InternedName(c.out.scope, text)) }

// Load implements variables.Emitter.
func (c *Codegen) Load(v variables.VariableTracker) error {
	if l, ok := v.(*variables.LazyVariable); ok {
		if !l.Realized() {
			if o, ok := variables.OurOwn(v); ok {
				c.LoadConst(o)
				return nil
			}
			return c.loadSource(l.Source())
		}
		v = l.Real()
	}
	if m, ok := v.(*handledMark); ok {
		return c.Load(m.exception)
	}
	if x, ok := v.(*variables.SymNodeVariable); ok {
		if k := x.Settled(c.out.world); k != nil {
			v = k
		} else if x.Node != nil {
			c.loadNode(x.Node)
			return nil
		}
	}
	if x, ok := v.(*variables.ComputedVariable); ok && x.Node != nil {
		c.loadNode(x.Node)
		return nil
	}
	if out := variables.Outside(v); out != nil && !variables.Materialized(v) {
		v = out // the graph builds this value
	}
	if s := variables.SlotOf(v); s != nil {
		c.emit(opcode.LOAD_FAST, spaceTemp|c.tempOfSlot(s.Index))
		return nil
	}
	if k, ok := v.(*variables.ConstantVariable); ok && (k.Src == nil || k.Src.GuardSource() == guards.SourcePolyfill ||
		onlyOne(k.Value)) {
		c.LoadConst(k.Value)
		return nil
	}
	if v.Source() != nil {
		if o, ok := variables.OurOwn(v); ok {
			c.LoadConst(o)
			return nil
		}
		return c.loadSource(v.Source())
	}
	switch x := v.(type) {
	case *variables.TensorVariable:
		c.loadNode(x.Node)
		return nil
	case *variables.TensorSequence:
		x.Node.Several = true
		c.loadNode(x.Node)
		return nil
	case *variables.TensorOrInt:
		c.loadNode(x.Node)
		return nil
	case *variables.ArrayVariable:
		c.loadNode(x.Node)
		return nil
	case *variables.GeneratorVariable:
		c.loadNode(x.Node)
		return nil
	case *variables.GraphFunction:
		c.loadNode(x.Node)
		return nil
	case *variables.OpaqueVariable:
		return c.loadOpaque(x.Node)
	}
	if t, ok := v.(*variables.TupleVariable); ok && isConstant(c.out.scope, t) {
		c.LoadConst(t.Real())
		return nil
	}
	if r, ok := v.(variables.Reconstructer); ok {
		return c.as(c.making(), func() error { return r.Reconstruct(c) })
	}
	return exc.Break(exc.Reconstruct, "%s", v.Kind())
}

// loadSource loads a value that the guards have fetched, from a slot or from an extra parameter.
func (c *Codegen) loadSource(src guards.Source) error {
	switch s := src.(type) {
	case *guards.LocalSource:
		c.emit(opcode.LOAD_FAST, spaceSlot|s.Slot)
		return nil
	case *guards.ConstSource:
		c.LoadConst(c.out.pool[s.Const.Index])
		return nil
	}
	i, ok := c.extraIdx[src.Name()]
	if !ok {
		i = len(c.extras)
		c.extras = append(c.extras, src)
		c.extraIdx[src.Name()] = i
	}
	c.emit(opcode.LOAD_FAST, spaceExtra|i)
	return nil
}

func (c *Codegen) loadNode(n *fxgraph.Node) {
	if in, ok := c.out.inputOf[n]; ok {
		_ = c.loadSource(in.Source())
		return
	}
	if c.loadComputed(n) {
		return
	}
	c.loaded[n] = true
	c.emit(opcode.LOAD_FAST, spaceTemp|c.tempOfNode(n))
}

func (c *Codegen) tempOfNode(n *fxgraph.Node) int {
	t, ok := c.nodeTemp[n]
	if !ok {
		t = c.numTemps
		c.numTemps++
		c.nodeTemp[n] = t
	}
	return t
}

func (c *Codegen) tempOfSlot(i int) int {
	t, ok := c.slotTemp[i]
	if !ok {
		t = c.numTemps
		c.numTemps++
		c.slotTemp[i] = t
	}
	return t
}

func (c *Codegen) newTemp() int {
	c.numTemps++
	return c.numTemps - 1
}

// Methods of variables.Emitter and NodeEmitter that write one instruction.
func (c *Codegen) LoadAttr(name string)          { c.emit(opcode.LOAD_ATTR, c.name(name)) }
func (c *Codegen) StoreAttr(name string)         { c.emit(opcode.STORE_ATTR, c.name(name)) }
func (c *Codegen) DeleteAttr(name string)        { c.emit(opcode.DELETE_ATTR, c.name(name)) }
func (c *Codegen) StoreSubscr()                  { c.emit(opcode.STORE_SUBSCR, 0) }
func (c *Codegen) DeleteSubscr()                 { c.emit(opcode.DELETE_SUBSCR, 0) }
func (c *Codegen) Subscript()                    { c.emit(opcode.BINARY_SUBSCR, 0) }
func (c *Codegen) StoreGlobal(name string)       { c.emit(opcode.STORE_GLOBAL, c.name(name)) }
func (c *Codegen) DeleteGlobal(name string)      { c.emit(opcode.DELETE_GLOBAL, c.name(name)) }
func (c *Codegen) BuildTuple(n int)              { c.emit(opcode.BUILD_TUPLE, n) }
func (c *Codegen) BuildList(n int)               { c.emit(opcode.BUILD_LIST, n) }
func (c *Codegen) BuildMap(n int)                { c.emit(opcode.BUILD_MAP, n) }
func (c *Codegen) BuildSet(n int)                { c.emit(opcode.BUILD_SET, n) }
func (c *Codegen) BuildSlice(n int)              { c.emit(opcode.BUILD_SLICE, n) }
func (c *Codegen) ListAppend()                   { c.emit(opcode.LIST_APPEND, 1) }
func (c *Codegen) GetIter()                      { c.emit(opcode.GET_ITER, 0) }
func (c *Codegen) PopTop()                       { c.emit(opcode.POP_TOP, 0) }
func (c *Codegen) Copy(i int)                    { c.emit(opcode.COPY, i) }
func (c *Codegen) Swap(i int)                    { c.emit(opcode.SWAP, i) }
func (c *Codegen) BinaryOp(op opcode.BinaryOp)   { c.emit(opcode.BINARY_OP, int(op)) }
func (c *Codegen) CompareOp(op opcode.CompareOp) { c.emit(opcode.COMPARE_OP, int(op)) }
func (c *Codegen) BinarySubscr()                 { c.emit(opcode.BINARY_SUBSCR, 0) }

// UnaryOp writes + (0), - (1), ~ (2) or, for a bool, not (3).
func (c *Codegen) UnaryOp(op int) {
	c.emit([]opcode.Op{opcode.UNARY_POSITIVE, opcode.UNARY_NEGATIVE, opcode.UNARY_INVERT,
		opcode.UNARY_NOT}[op], 0)
}

// PushNull implements variables.Emitter: it writes the NULL below a callable.
func (c *Codegen) PushNull() {
	if c.calls != plainCalls {
		c.LoadConst(c.core(c.calls.name()))
		return
	}
	c.emit(opcode.PUSH_NULL, 0)
}

// LoadMethod implements variables.Emitter.
func (c *Codegen) LoadMethod(name string) {
	if c.calls != plainCalls {
		c.LoadAttr(name)
		c.PushNull()
		c.Swap(2)
		return
	}
	c.emit(opcode.LOAD_METHOD, c.name(name))
}

// Call writes a call with the nargs arguments on top of the stack, the last len(kwnames) of which are keyword
// arguments. Below the arguments are the callable and, below that, NULL.
func (c *Codegen) Call(nargs int, kwnames []string) {
	var names py.Object
	if len(kwnames) > 0 {
		items := make([]py.Object, len(kwnames))
		for i, n := range kwnames {
			items[i] = c.out.scope.Name(n)
		}
		names = c.out.scope.Tuple(items...)
	}
	if c.calls != plainCalls {
		if !names.IsNull() {
			c.LoadConst(c.keywords(names))
			nargs++
		}
		c.BuildTuple(nargs + 1)
		c.BinarySubscr()
		return
	}
	if !names.IsNull() {
		c.consts = append(c.consts, names)
		c.emit(opcode.KW_NAMES, len(c.consts)-1)
	}
	c.emit(opcode.CALL, nargs)
}

// as runs f, which writes code. Calls in that code are written as `kind` or as c.calls, whichever is stricter.
func (c *Codegen) as(kind calling, f func() error) error {
	before := c.calls
	c.calls = max(kind, before)
	defer func() { c.calls = before }()
	return f()
}

// making returns how to write calls that build a value, such as a cell or an iterator. The user's code has no such
// call. An exception from outside (a signal handler's, or another thread's) must not arrive at such a call after a
// visible event: CPython would never raise it there.
func (c *Codegen) making() calling {
	events := c.out.events
	c.seen = c.seen || slices.ContainsFunc(events[min(c.looked, len(events)):], c.out.visible)
	c.looked = len(events)
	if c.seen && !c.protecting {
		return quietCalls
	}
	return plainCalls
}

// core returns an attribute of the module godynamo._C. If it is missing, that is a bug in godynamo, and core panics.
func (c *Codegen) core(name string) py.Object {
	m, err := c.out.scope.Import("godynamo._C")
	if err == nil {
		var o py.Object
		if o, err = c.out.scope.GetAttr(m, name); err == nil {
			return o
		}
	}
	panic(err)
}

func (c *Codegen) keywords(names py.Object) py.Object {
	k, err := c.out.scope.Call(c.core("Keywords"), names)
	if err != nil {
		panic(err)
	}
	return k
}

// CallMethod writes the call that follows LoadMethod.
func (c *Codegen) CallMethod(nargs int, kwnames []string) { c.Call(nargs, kwnames) }

// MakeFunction implements variables.Emitter.
func (c *Codegen) MakeFunction(code py.Object, _, _ string, flags int) {
	c.LoadConst(code)
	c.emit(opcode.MAKE_FUNCTION, flags)
}

// LoadArg implements NodeEmitter.
func (c *Codegen) LoadArg(a fxgraph.Arg) error {
	all := func(items []fxgraph.Arg) error {
		for _, it := range items {
			if err := c.LoadArg(it); err != nil {
				return err
			}
		}
		return nil
	}
	switch x := a.(type) {
	case *fxgraph.Node:
		if _, ok := c.out.python.objects[x]; ok {
			return c.loadOpaque(x)
		}
		c.loadNode(x)
	case fxgraph.Lit:
		c.LoadConst(c.out.pool[x.Pool])
	case fxgraph.List:
		if err := all(x.Items); err != nil {
			return err
		}
		c.BuildList(len(x.Items))
	case fxgraph.Tuple:
		if err := all(x.Items); err != nil {
			return err
		}
		c.BuildTuple(len(x.Items))
	case fxgraph.Slice:
		if err := all([]fxgraph.Arg{x.Start, x.Stop, x.Step}); err != nil {
			return err
		}
		c.BuildSlice(3)
	case fxgraph.Dict:
		for i := range x.Keys {
			if err := all([]fxgraph.Arg{x.Keys[i], x.Values[i]}); err != nil {
				return err
			}
		}
		c.BuildMap(len(x.Keys))
	default:
		return exc.Break(exc.Reconstruct, "graph operand %T", a)
	}
	return nil
}

// LoadPool implements NodeEmitter.
func (c *Codegen) LoadPool(i int) { c.LoadConst(c.out.pool[i]) }

// PoolObject implements NodeEmitter.
func (c *Codegen) PoolObject(i int) py.Object { return c.out.pool[i] }

// runAll writes all events, and hands over the modes that objects of the program stand for.
func (c *Codegen) runAll() error {
	if err := c.runEvents(); err != nil {
		return err
	}
	return c.adopt(c.out.shared())
}

// runEvents writes all events in order. If the backend compiles the graph as a whole, graphCall inserts the call of the
// graph later.
func (c *Codegen) runEvents() error {
	for _, set := range c.out.late {
		set()
	}
	c.effectsWait = c.out.effectsWait()
	if c.out.backend.Inline() {
		events, last := c.out.inOrder()
		c.protecting = last >= 0 && !c.out.world.PythonOps
		for i, e := range events {
			if i <= last && !c.putsBack.saved && c.out.isPutBack(e) {
				c.at(e.chain, false)
				save := func() error { return c.saveStateOf(events[i : last+1]) }
				if err := c.restoring(e.state, save); err != nil {
					return err
				}
				c.out.state.sealRegion()
			}
			if i <= last && c.putsBack.saved {
				c.out.runsAgain(e) // if the user's code runs again, it starts by restoring the random state
			}
			start := len(c.list)
			if err := c.runEvent(e); err != nil {
				return err
			}
			c.spans = append(c.spans, eventCode{e, start, len(c.list)})
			if i == last {
				c.endState()
				if err := c.handOver(e.chain); err != nil {
					return err
				}
			}
		}
		return nil
	}
	c.leadEnd = -1
	for _, e := range c.out.events {
		if e.node != nil && c.leadEnd < 0 {
			c.leadEnd = len(c.list)
		}
		if c.out.numOps == 0 && e.node != nil && e.node.State { // there is no graph that would switch the mode
			if err := c.switchState(e); err != nil {
				return err
			}
		}
		if e.node == nil && !(e.early && c.out.numOps > 0) {
			if err := c.runEvent(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookForSignals writes a backward jump, with one jump that leads to it and one that leaves it. CPython checks for
// signals at backward jumps and after calls of C functions. Without this check, a signal during the last operation of
// a block would be raised outside the block.
func (c *Codegen) lookForSignals() {
	back, over := bytecode.NewJump(opcode.JUMP, nil).At(c.pos), bytecode.New(opcode.NOP, 0).At(c.pos)
	start := bytecode.NewJump(opcode.JUMP, back).At(c.pos)
	past := bytecode.NewJump(opcode.JUMP, over).At(c.pos)
	back.Target = past
	c.list = append(c.list, start, past, back, over)
}

// switchState writes the call for a node that switches one of torch's modes.
func (c *Codegen) switchState(e *event) error {
	c.at(e.chain, false)
	err := c.as(quietCalls, func() error {
		c.PushNull()
		c.LoadPool(e.node.Target.Pool)
		for _, a := range e.node.Args {
			if err := c.LoadArg(a); err != nil {
				return err
			}
		}
		c.Call(len(e.node.Args), nil)
		return nil
	})
	c.PopTop()
	return err
}

// runEvent writes one event. Values that nothing reads later are released after it (tidy).
func (c *Codegen) runEvent(e *event) error {
	start := len(c.list)
	if err := c.writeEvent(e); err != nil {
		return err
	}
	if e.node != nil && c.out.foreseenBy[e.node] && e.state.IsNull() {
		c.unneeded = append(c.unneeded, written{c.tempOfNode(e.node), start, len(c.list)})
	}
	c.ends = append(c.ends, len(c.list))
	return nil
}

// stateAt returns a snapshot of torch's modes, to be restored if an event other than an operation raises. The snapshot
// is needed because a delayed event may run in other modes than the user's line has in CPython.
func (c *Codegen) stateAt(e *event) py.Object {
	switch {
	case !e.state.IsNull() || e.inBlock:
		return e.state
	case !e.modes.IsNull():
		return e.modes
	}
	return c.out.state.entry
}

func (c *Codegen) drop(d drop) {
	if d.param {
		c.emit(opcode.DELETE_FAST, spaceSlot|d.index)
	} else {
		c.emit(opcode.DELETE_FAST, spaceTemp|c.tempOfSlot(d.index))
	}
}

func (c *Codegen) writeEvent(e *event) error {
	c.at(e.chain, false)
	start := len(c.list)
	for _, d := range e.drops {
		c.drop(d)
	}
	if e.drops != nil {
		return nil
	}
	if e.loop != nil {
		return c.writeLoop(e)
	}
	if e.node == nil {
		kind := plainCalls
		switch {
		case c.protecting:
		case c.effectsWait && e.effect():
			kind = heldCalls // print checks for signals itself
		case c.effectsWait || e.inBlock:
			kind = quietCalls
		case !e.effect():
			kind = c.making()
		}
		err := c.restoring(c.stateAt(e), func() error {
			return c.as(kind, func() error { return e.emit(c) })
		})
		if err != nil {
			return err
		}
		if e.slot != nil {
			t := c.tempOfSlot(e.slot.Index)
			c.held[t] = e.held
			if e.exit != nil {
				e.exit.covered = append(e.exit.covered, c.list[start:]...)
			}
			c.emit(opcode.STORE_FAST, spaceTemp|t)
			if e.onlyIfLoaded && !e.held && e.exit == nil && c.stateAt(e).IsNull() {
				c.unneeded = append(c.unneeded, written{t, start, len(c.list)})
			}
		}
		return nil
	}
	if e.protected && e.chain != nil {
		c.mark(mark{start: len(c.list), chain: e.chain, protected: true})
	}
	stays := c.out.stays(e)
	kind := plainCalls
	if e.node.State || e.protected && stays {
		// A signal right after a switch of modes would be raised outside the handler that restores the mode. An
		// operation whose change cannot be undone must not run twice.
		kind = quietCalls
	}
	err := c.as(kind, func() error {
		return c.restoring(e.state, func() error {
			err := c.out.backend.EmitNode(c, e.node)
			protected := e.protected && !stays || e.exit != nil
			if err == nil && protected && c.list[len(c.list)-1].Op != opcode.CALL {
				c.lookForSignals()
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	if e.exit != nil {
		e.exit.covered = append(e.exit.covered, c.list[start:]...)
	}
	if e.leaves != nil {
		c.Copy(1)
		e.leaves.jump = bytecode.NewJump(opcode.POP_JUMP_IF_NONE, nil).At(c.pos)
		c.list = append(c.list, e.leaves.jump)
	}
	c.emit(opcode.STORE_FAST, spaceTemp|c.tempOfNode(e.node)) // tidy removes this store if nothing loads the value
	return nil
}

// finish builds the code. order[i] is the index in extras of the i-th parameter that follows the slots.
func (c *Codegen) finish(order []int) *bytecode.Code {
	f := c.out
	temps := c.tidy()
	root := f.root
	nslots, nextra := len(f.frame.Slots), len(order)
	place := make([]int, nextra)
	for p, e := range order {
		place[e] = p
	}
	code := &bytecode.Code{
		Name: root.code.Name, QualName: root.code.QualName, Filename: root.code.Filename,
		FirstLine: root.code.FirstLine,
		Flags:     opcode.CO_OPTIMIZED | opcode.CO_NEWLOCALS, ArgCount: nslots + nextra, Names: c.names,
		NumConsts: len(c.consts),
	}
	used := map[string]bool{}
	local := func(name string, kind byte) {
		for base, i := name, 1; used[name]; i++ {
			name = base + "_" + itoa(i)
		}
		used[name] = true
		code.Locals = append(code.Locals, bytecode.Local{Name: name, Kind: kind})
	}
	for i := 0; i < nslots; i++ {
		local(root.names[i], opcode.CO_FAST_LOCAL)
	}
	for i := 0; i < nextra; i++ {
		local("___guarded"+itoa(i), opcode.CO_FAST_LOCAL)
	}
	for i := 0; i < temps; i++ {
		local("___temp"+itoa(i), opcode.CO_FAST_LOCAL)
	}
	for i := range c.closure {
		local("___const"+itoa(i), opcode.CO_FAST_FREE)
	}
	placed := func(space, i int) int {
		switch space {
		case spaceExtra:
			i = nslots + place[i]
		case spaceTemp:
			i += nslots + nextra
		case spaceClosure:
			i += nslots + nextra + temps
		}
		return i
	}
	for _, in := range c.list {
		switch in.Op {
		case opcode.LOAD_FAST, opcode.STORE_FAST, opcode.LOAD_DEREF, opcode.DELETE_FAST:
			in.Arg = placed(in.Arg&spaceMask, in.Arg&^spaceMask)
		}
	}
	c.placeShown(placed)
	var prologue []*bytecode.Instruction
	if len(c.closure) > 0 {
		prologue = append(prologue, bytecode.New(opcode.COPY_FREE_VARS, len(c.closure)))
	}
	resume := bytecode.New(opcode.RESUME, 0)
	if c.out.frame.Origin != nil {
		resume.Arg = resumeInBlock
	}
	code.Instructions = append(append(prologue, resume), c.list...)
	return code
}
