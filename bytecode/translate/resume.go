package translate

import (
	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
	"slices"
)

// item is one value on the stack of a resumed frame: NULL, a tracked value, or a result of the native instruction
// (the user's instruction that CPython runs at the graph break).
type item struct {
	null   bool
	lasti  bool // offset of an instruction, which a handler finds below the exception
	v      variables.VariableTracker
	result int   // temp that holds a result of the native instruction; used if v is nil
	marked bool  // result is the exception that the resumed frame is handling
	rest   *rest // the resume function that continues after this one
}

// kind returns the item's letter in Origin.Stack.
func (it item) kind() byte {
	switch _, mark := it.v.(*handledMark); {
	case it.rest != nil:
		return 'R'
	case it.null:
		return 'N'
	case it.lasti:
		return 'L'
	case mark || it.marked:
		return 'X'
	}
	return 'v'
}

// stackItem returns the item of a value on the symbolic stack.
func stackItem(v variables.VariableTracker) item {
	_, lasti := v.(*lastiMark)
	return item{null: v == nil, lasti: lasti, v: v}
}

// breakHere breaks the frame at inst. The captured code runs first, then CPython runs inst, then a resume function
// runs the rest of the frame. A branch has one resume function for each target.
func (tx *InstructionTranslator) breakHere(inst *bytecode.Instruction, why error) error {
	o := tx.out
	if u, ok := why.(*exc.Unsupported); ok {
		if u.Earlier {
			u.Stack = tx.chainHere().stack()
		}
		o.breaks = append(o.breaks, u)
	}
	o.breakLine = int(tx.d.positionOf(inst).Line)
	o.endsHere()
	if u, ok := why.(*exc.Unsupported); ok && u.Before {
		return tx.splitBefore(inst, u.Frame)
	}
	pops, _ := bytecode.StackUse(inst, false)
	if inst.Op == opcode.FOR_ITER || inst.Op == opcode.JUMP_IF_FALSE_OR_POP || inst.Op == opcode.JUMP_IF_TRUE_OR_POP {
		pops = 1
	}
	switch inst.Op {
	case opcode.RERAISE:
		pops = 1 // the offset stays on the stack
	case opcode.WITH_EXCEPT_START:
		pops = 0 // WITH_EXCEPT_START only reads its operands, which callExit loads
	}
	if pops > len(tx.stack) {
		return &exc.SkipFrame{Reason: "stack shorter than the instruction needs"}
	}
	operands := tx.popn(pops)
	if inst.Op != opcode.CALL && inst.Op != opcode.CALL_FUNCTION_EX {
		tx.guardTypes(operands)
	}
	tx.unbindMethods()
	if u, ok := why.(*exc.Unsupported); ok && inst.Op == opcode.CALL && inst.Arg == 0 && tx.isSuper(operands) {
		return tx.unbreakable(u, "super() looks at the frame that calls it")
	}
	live := tx.liveAfter(inst)
	if err := tx.freezeLive(operands, live); err != nil {
		return err
	}
	c := newCodegen(o)
	o.codegen = c
	if err := c.runAll(); err != nil {
		return err
	}
	here := tx.chainHere()
	c.at(here, false)
	if err := tx.enterHandled(c); err != nil {
		return err
	}
	native := len(c.list)
	if inst.Handler != nil || inst.Op != opcode.RAISE_VARARGS && inst.Op != opcode.RERAISE {
		// A raise without a handler keeps the frame's variables alive in its traceback, so they are not released.
		c.letGo = native
	}
	if err := tx.keepInTraceback(c, inst, operands, live); err != nil {
		return err
	}
	if calls := inst.Op == opcode.CALL || inst.Op == opcode.CALL_FUNCTION_EX; calls && operands[1] == nil {
		operands[0], operands[1] = nil, operands[0] // written code has the NULL below
	}
	for _, v := range operands {
		if v == nil {
			c.PushNull()
			continue
		}
		if err := c.Load(v); err != nil {
			return err
		}
	}
	tx.dropRaised(c, inst, operands)
	tx.placesOfCallee(inst, operands)
	if tx.runsPython(inst, operands) {
		c.needsHook = true
	}
	if err := tx.writeNative(c, inst, operands, live, native); err != nil {
		return err
	}
	return o.finalize(c)
}

// guardTypes guards the types of the operands at which the graph breaks, since operands of other types may be captured.
// Arguments of calls are not guarded: most of these calls break the graph whatever they are passed.
func (tx *InstructionTranslator) guardTypes(operands []variables.VariableTracker) {
	for _, v := range operands {
		if l, ok := v.(*variables.LazyVariable); ok && !l.Realized() {
			l.GuardType(tx)
		}
	}
}

// splitBefore breaks the graph before inst, where the resume function starts. If alone is true, that function runs only
// inst, and a second resume function runs the rest, if this is possible.
func (tx *InstructionTranslator) splitBefore(inst *bytecode.Instruction, alone bool) error {
	o := tx.out
	target := inst
	if i := tx.d.index[inst]; i > 0 && tx.d.code.Instructions[i-1].Op == opcode.KW_NAMES {
		target = tx.d.code.Instructions[i-1]
	}
	if from := o.frame.Origin; from != nil && o.rootStep <= 2 && tx.d.index[target] == from.Target {
		return &exc.SkipFrame{Reason: "a resume function that would only call itself"}
	}
	tx.unbindMethods()
	live := tx.liveAt(target)
	if err := tx.freezeLive(nil, live); err != nil {
		return err
	}
	c := newCodegen(o)
	o.codegen = c
	if err := c.runAll(); err != nil {
		return err
	}
	var stack []item
	if alone {
		rest, err := tx.restAfter(inst, live)
		if err != nil {
			return err
		}
		if rest != nil {
			stack = append(stack, item{rest: rest})
		}
	}
	for _, v := range tx.stack {
		stack = append(stack, stackItem(v))
	}
	if err := tx.callResume(c, inst, target, stack, live); err != nil {
		return err
	}
	return o.finalize(c)
}

// enterHandled writes code that makes the exceptions of the running handlers current while the native instruction runs.
// If the native instruction raises, the context of its exception is the innermost of them, as in CPython.
// sys.exc_info() also shows that one.
func (tx *InstructionTranslator) enterHandled(c *Codegen) error {
	for _, e := range tx.handled {
		if err := c.Load(e); err != nil {
			return err
		}
		c.emit(opcode.PUSH_EXC_INFO, 0)
		c.PopTop()
	}
	return nil
}

func (tx *InstructionTranslator) leaveHandled(c *Codegen) {
	for range tx.handled {
		c.emit(opcode.POP_EXCEPT, 0)
	}
}

// catchNative catches an exception of the native instruction, which is written at [start, end). The code that catches
// it calls a resume function that starts at the instruction's handler in the user's code.
func (tx *InstructionTranslator) catchNative(c *Codegen, inst *bytecode.Instruction, start, end int) error {
	if inst.Handler == nil {
		if len(tx.handled) > 0 {
			return &exc.SkipFrame{Reason: "a handler that no region covers"}
		}
		return nil
	}
	region := &bytecode.ExceptionRegion{Depth: len(tx.handled)}
	return c.arm(func(first *bytecode.Instruction) {
		region.Target = first
		for _, in := range c.list[start:end] {
			in.Handler = region
		}
	}, func() error {
		t := c.newTemp()
		c.catches = true
		c.emit(opcode.STORE_FAST, spaceTemp|t)
		tx.leaveHandled(c)
		h := inst.Handler
		stack := make([]item, 0, h.HandlerDepth())
		for _, v := range tx.stack[:h.Depth] {
			stack = append(stack, stackItem(v))
		}
		if h.Lasti {
			stack = append(stack, item{lasti: true})
		}
		if err := tx.callResume(c, inst, h.Target, append(stack, item{result: t}), tx.liveAt(h.Target)); err != nil {
			return err
		}
		c.caught, c.catch = spaceTemp|t, c.list[len(c.list)-2]
		return nil
	})
}

// unbindMethods converts bound methods of builtin types on the stack, which have not been called yet, to the form
// that LOAD_METHOD leaves: a known function and an object that the rest of the frame can read.
func (tx *InstructionTranslator) unbindMethods() {
	null, method := 0, 1
	if tx.d.code.NullAbove {
		null, method = 1, 0
	}
	for i := 0; i+1 < len(tx.stack); i++ {
		if b, ok := tx.stack[i+method].(*variables.BoundBuiltin); ok && tx.stack[i+null] == nil {
			if fn, self, ok := b.Unbind(tx); ok {
				tx.stack[i], tx.stack[i+1] = fn, self
			}
		}
	}
}

// liveAfter returns the localsplus slots that any continuation after inst reads.
func (tx *InstructionTranslator) liveAfter(inst *bytecode.Instruction) map[int]bool {
	all := bytecode.Liveness(tx.d.code)
	live := map[int]bool{}
	add := func(in *bytecode.Instruction) {
		for _, s := range all[in].Slots() {
			if tx.locals[s] != nil {
				live[s] = true
			}
		}
	}
	next := tx.d.index[inst] + 1
	if next < len(tx.d.code.Instructions) {
		add(tx.d.code.Instructions[next])
	}
	if inst.Target != nil {
		add(inst.Target)
	}
	if inst.Handler != nil {
		add(inst.Handler.Target)
	}
	tx.alwaysLive(live)
	return live
}

// liveAt returns the localsplus slots that the rest of the frame, from target on, reads. It also returns those that the
// rest of the frame never reads but that keep an object alive (keepAlive).
func (tx *InstructionTranslator) liveAt(target *bytecode.Instruction) map[int]bool {
	live := map[int]bool{}
	for _, s := range bytecode.Liveness(tx.d.code)[target].Slots() {
		if tx.locals[s] != nil {
			live[s] = true
		}
	}
	tx.alwaysLive(live)
	tx.keepAlive(live)
	return live
}

// alwaysLive adds variables that the rest of the frame reads without naming them.
func (tx *InstructionTranslator) alwaysLive(live map[int]bool) {
	if usesFrame(tx.d.code) {
		for i, v := range tx.locals {
			if v != nil {
				live[i] = true
			}
		}
	}
	if hasZeroArgSuper(tx.d.code) {
		if len(tx.locals) > 0 && tx.locals[0] != nil {
			live[0] = true
		}
		for i, l := range tx.d.code.Locals {
			if l.Name == "__class__" && tx.locals[i] != nil {
				live[i] = true
			}
		}
	}
}

func hasZeroArgSuper(c *bytecode.Code) bool {
	for i, in := range c.Instructions {
		if isSuperCall(c, i, in) {
			return true
		}
	}
	return false
}

func isSuperCall(c *bytecode.Code, i int, in *bytecode.Instruction) bool {
	if in.Op != opcode.LOAD_GLOBAL || c.Names[in.Arg>>1] != "super" || i+1 >= len(c.Instructions) {
		return false
	}
	next := c.Instructions[i+1]
	return next.Op == opcode.CALL && next.Arg == 0
}

// freezeLive materializes everything that the rest of the frame will see. Once these objects are real, freezeLive adds
// to `live` the variables that only keep an object alive (keepAlive).
func (tx *InstructionTranslator) freezeLive(operands []variables.VariableTracker, live map[int]bool) error {
	freeze := func(v variables.VariableTracker) error {
		if v == nil {
			return nil
		}
		err := tx.out.Freeze(tx, v)
		if u, ok := err.(*exc.Unsupported); ok {
			return exc.Skip(u)
		}
		return err
	}
	for _, vs := range [][]variables.VariableTracker{tx.stack, operands, tx.handled} {
		for _, v := range vs {
			if err := freeze(v); err != nil {
				return err
			}
		}
	}
	tx.keepGiven(operands, live)
	return tx.freezeLocals(live, freeze)
}

// freezeLocals freezes the variables in live, and adds to it those that only keep an object alive (keepAlive).
func (tx *InstructionTranslator) freezeLocals(live map[int]bool, freeze func(variables.VariableTracker) error) error {
	for n := -1; n != len(live); {
		n = len(live)
		for i := range tx.locals {
			if live[i] {
				if err := freeze(tx.locals[i]); err != nil {
					return err
				}
			}
		}
		tx.keepAlive(live)
	}
	return nil
}

func (tx *InstructionTranslator) stackItems() []item {
	items := make([]item, len(tx.stack))
	for i, v := range tx.stack {
		items[i] = stackItem(v)
	}
	return items
}

// pastJump returns the target of an unconditional jump that follows a branch, and other instructions as they are. 3.12
// writes a branch back to a loop's head as a branch over a jump. If the frame resumes at the head itself, the loop has
// one resume function. Such a jump has no handler, as the compiler adds it last.
func (tx *InstructionTranslator) pastJump(after *bytecode.Instruction) *bytecode.Instruction {
	if after.Op != opcode.JUMP || (after.Handler != nil && after.Handler != after.Target.Handler) {
		return after
	}
	tx.out.account.translated(tx, after)
	return after.Target
}

// writeNative writes inst, which CPython runs, and then the calls of the resume functions. start is the index of the
// first instruction that was written for inst.
func (tx *InstructionTranslator) writeNative(c *Codegen, inst *bytecode.Instruction,
	operands []variables.VariableTracker, live map[int]bool, start int) error {
	below := tx.stackItems()
	next := tx.d.index[inst] + 1
	var after *bytecode.Instruction
	if next < len(tx.d.code.Instructions) {
		after = tx.d.code.Instructions[next]
	}
	resume := func(target *bytecode.Instruction, stack []item) error {
		tx.leaveHandled(c)
		return tx.callResume(c, inst, target, stack, live)
	}
	branch := func(j *bytecode.Instruction, write func() error) error {
		return c.arm(func(first *bytecode.Instruction) { j.Target = first }, write)
	}
	result := func() item {
		t := c.newTemp()
		c.emit(opcode.STORE_FAST, spaceTemp|t)
		return item{result: t}
	}
	j, err := tx.emitNative(c, inst, operands)
	if err != nil {
		return err
	}
	end := len(c.list)
	tx.out.account.nativeIs(tx, inst, c.list[start:end])
	switch inst.Op {
	case opcode.POP_JUMP_IF_FALSE, opcode.POP_JUMP_IF_TRUE, opcode.POP_JUMP_IF_NONE, opcode.POP_JUMP_IF_NOT_NONE:
		if err = resume(tx.pastJump(after), below); err == nil {
			err = branch(j, func() error { return resume(inst.Target, below) })
		}
	case opcode.JUMP_IF_FALSE_OR_POP, opcode.JUMP_IF_TRUE_OR_POP:
		if err = resume(after, below); err == nil {
			err = branch(j, func() error {
				return resume(inst.Target, append(below[:len(below):len(below)], result()))
			})
		}
	case opcode.FOR_ITER:
		v := result()
		it := result()
		if err = resume(after, append(below[:len(below):len(below)], it, v)); err == nil {
			err = branch(j, func() error { return resume(inst.Target, below) })
		}
	case opcode.LOAD_METHOD, opcode.LOAD_SUPER_ATTR, opcode.LOAD_GLOBAL:
		err = resume(after, tx.loaded(inst, below, result()))
	case opcode.RAISE_VARARGS, opcode.RERAISE:
	default:
		_, pushes := bytecode.StackUse(inst, false)
		if inst.Op == opcode.WITH_EXCEPT_START {
			pushes = 1
		}
		if pushes == 1 && after.Op == opcode.POP_TOP && next+1 < len(tx.d.code.Instructions) {
			tx.out.account.translated(tx, after)
			// Popping the value here keeps a dead value from the resume function, which would have to guard its
			// destruction.
			c.PopTop()
			err = resume(tx.d.code.Instructions[next+1], below)
			break
		}
		results := resultItems(inst, pushes, result)
		if inst.Op == opcode.CHECK_EG_MATCH {
			if err := tx.handledSince(c, below); err != nil {
				return err
			}
		}
		err = resume(after, append(below, results...))
	}
	if err != nil {
		return err
	}
	return tx.catchNative(c, inst, start, end)
}

// loaded returns the stack after a load whose written code left one value, without the NULL that the instruction may
// push below or above it.
func (tx *InstructionTranslator) loaded(inst *bytecode.Instruction, stack []item, v item) []item {
	switch {
	case inst.Op != opcode.LOAD_METHOD && inst.Arg&1 == 0:
		return append(stack, v)
	case tx.d.code.NullAbove:
		return append(stack, v, item{null: true})
	}
	return append(stack, item{null: true}, v)
}

// arm appends a continuation to the code. `write` writes the continuation. arm passes its first instruction to `lead`.
func (c *Codegen) arm(lead func(first *bytecode.Instruction), write func() error) error {
	start, marks := len(c.list), len(c.marks)
	nop := c.emit(opcode.NOP, 0)
	if err := write(); err != nil {
		return err
	}
	nop.Pos = c.pos
	for i := range c.marks[marks:] { // the NOP gets the mark of the instruction after it
		if m := &c.marks[marks+i]; m.start == start+1 {
			m.start = start
		}
	}
	lead(nop)
	return nil
}

// resumeInBlock is the operand of RESUME in a resume function. CPython checks for signals at a RESUME that starts a
// function, but not at a RESUME that follows a yield; this operand denotes the latter. The user's code may resume
// inside a block, but the RESUME itself is outside of it.
const resumeInBlock = 2

// callResume writes `return resume(live locals, stack values)`. CPython does not check for signals between a visible
// event and the next call. So after a visible event, the call of the resume function is written as a quiet call. Before
// the core runs a resume function, it looks for pending signals and for asynchronous exceptions
// (core/calls/callable_call.c). If there is one, the resume function runs untranslated, and CPython's first check
// raises it. In all other cases an additional check does no harm, and a plain call is faster: five breaks take 1.9 µs
// instead of 2.1 (bench/alternate.py).
func (tx *InstructionTranslator) callResume(c *Codegen, inst, target *bytecode.Instruction, stack []item,
	live map[int]bool) error {
	kind := plainCalls
	if inst.Block() != nil || tx.goesOnInBlock(target) || len(tx.handled) > 0 || tx.out.unchecked() ||
		!harmless[inst.Op] {
		kind = quietCalls
	}
	return c.as(kind, func() error { return tx.writeResume(c, inst, target, stack, live) })
}

// harmless lists instructions that have no visible effect, or after which CPython may check for signals.
var harmless = map[opcode.Op]bool{
	opcode.CALL: true, opcode.CALL_FUNCTION_EX: true, opcode.POP_JUMP_IF_FALSE: true, opcode.POP_JUMP_IF_TRUE: true,
	opcode.POP_JUMP_IF_NONE:     true,
	opcode.POP_JUMP_IF_NOT_NONE: true,
	opcode.JUMP_IF_FALSE_OR_POP: true,
	opcode.JUMP_IF_TRUE_OR_POP:  true,
}

// unchecked reports whether there was a visible event after the last place where CPython checks for signals.
func (o *OutputGraph) unchecked() bool {
	return slices.ContainsFunc(o.events[min(o.checked, len(o.events)):], o.visible)
}

// visible reports whether an event is an effect, or an operation that leaves a trace.
func (o *OutputGraph) visible(e *event) bool { return e.effect() || o.eventTrace(e) != noTrace }

// goesOnInBlock reports whether the code from target on is inside a `try` or `with` block. Exception tables do not
// cover NOPs, such as the NOP that an inner `try` compiles to. So NOPs are skipped.
func (tx *InstructionTranslator) goesOnInBlock(target *bytecode.Instruction) bool {
	all := tx.d.code.Instructions
	for i := tx.d.index[target]; target.Op == opcode.NOP && target.Handler == nil && i+1 < len(all); i++ {
		target = all[i+1]
	}
	return target.Block() != nil
}

func (tx *InstructionTranslator) writeResume(c *Codegen, inst, target *bytecode.Instruction, stack []item,
	live map[int]bool) error {
	c.at(tx.chainHere(), true)
	fn, params, err := tx.resumeFunction(inst, target, stack, live)
	if err != nil {
		return err
	}
	c.PushNull()
	c.LoadConst(fn)
	tx.placesOfResume(fn, params, stack)
	n, err := tx.loadRest(c, params, stack)
	if err != nil {
		return err
	}
	c.Call(n, nil)
	c.emit(opcode.RETURN_VALUE, 0)
	return nil
}

// loadRest loads the arguments of a resume function: the variables in the slots params, and the stack. It returns their
// number.
func (tx *InstructionTranslator) loadRest(c *Codegen, params []int, stack []item) (n int, err error) {
	for _, slot := range params {
		if slot < 0 {
			c.LoadConst(py.None())
		} else if err := c.Load(tx.locals[slot]); err != nil {
			return 0, err
		}
		n++
	}
	for _, it := range stack {
		switch {
		case it.null || it.lasti:
			continue
		case it.rest != nil:
			c.LoadConst(it.rest.fn)
		case it.v != nil:
			if err := c.Load(it.v); err != nil {
				return 0, err
			}
		default:
			c.emit(opcode.LOAD_FAST, spaceTemp|it.result)
		}
		n++
	}
	return n, nil
}

// resumeFunction makes the callable for the rest of the frame from target on. Its code is a prologue, which pushes
// the stack and jumps to target, and a copy of the user's whole code. Live locals keep their names. Cells are passed
// as parameters, since LOAD_DEREF and STORE_DEREF work on any slot that holds a cell. So the resume function and inner
// functions made before the break share the cells. Those of free variables are moved to slots of free variables:
// CPython raises NameError for an empty cell there, and UnboundLocalError elsewhere.
func (tx *InstructionTranslator) resumeFunction(inst, target *bytecode.Instruction, stack []item,
	live map[int]bool) (py.Object, []int, error) {
	src := tx.d.code
	code := src.Clone()
	if err := leaveOffsets(code, stack); err != nil {
		return py.Object{}, nil, err
	}
	own := usesFrame(src)
	params := tx.places(target, live)
	locals, place, moves := resumeLocals(src, params, stack)
	first := len(params)
	prologue, consts := tx.resumePrologue(code.Instructions[tx.d.index[target]], params, moves, stack)
	code.NumConsts = len(consts)
	body := resumeBody(code, code.Instructions, place)
	if len(stack) > 0 && stack[0].rest != nil {
		body = stack[0].rest.callAfter(body, tx.d.index[inst], place, first)
	}
	body, consts = tx.keepingReraises(code, body, consts)
	shape := ""
	code.ArgCount, code.PosOnlyArgCount, code.KwOnlyArgCount = first, 0, 0
	for _, it := range stack {
		shape += string(it.kind())
		if it.isParam() {
			code.ArgCount++
		}
	}
	code.Locals = locals
	code.Flags = opcode.CO_OPTIMIZED | opcode.CO_NEWLOCALS
	code.Instructions = append(prologue, body...)
	origin := &Origin{Code: tx.d.object, Target: tx.d.index[target], Params: params, Stack: shape,
		Computed: tx.paramsWhere(params, stack, func(v variables.VariableTracker) bool {
			return variables.IsComputedPlain(tx, v) && !variables.IsPassed(v)
		}),
		Sizes: tx.paramsWhere(params, stack, func(v variables.VariableTracker) bool {
			x, ok := v.(*variables.SymNodeVariable)
			return ok && x.Settled(tx.World()) == nil
		})}
	name := "resume_in_" + src.Name + "_at_" + itoa(int(tx.d.positionOf(inst).Line))
	tx.out.resumes = append(tx.out.resumes, name)
	if own {
		name = src.Name // code that inspects the frame must see the user's name
	}
	fn, err := tx.out.installer.Resume(tx.Scope(), origin, tx.globals, tx.builtins, func() (py.Object, error) {
		copied := tx.out.account.copying(code)
		raw, err := bytecode.Lower(code, Version)
		if err != nil {
			return py.Object{}, err
		}
		obj, err := tx.out.installer.NewCode(tx.Scope(), raw, consts)
		if err != nil {
			return py.Object{}, err
		}
		copied(tx.Scope(), obj, tx.d.object)
		return tx.Scope().NewFunction(obj, tx.globals, tx.builtins, py.Object{}, name, name, py.Object{})
	})
	return fn, params, err
}

// cellMove moves the cell of a free variable from a parameter to the variable's slot.
type cellMove struct{ from, to int }

// resumeLocals returns the variables of a resume function. These are its parameters, one parameter for each value of
// the stack, the user's other variables, and the free variables that are passed. place maps the user's slots to the new
// slots.
func resumeLocals(src *bytecode.Code, params []int, stack []item) (locals []bytecode.Local, place []int,
	moves []cellMove) {
	place = make([]int, len(src.Locals))
	used := map[string]bool{}
	for i, l := range src.Locals {
		place[i] = -1
		used[l.Name] = true
	}
	add := func(name string) { locals = append(locals, bytecode.Local{Name: name, Kind: opcode.CO_FAST_LOCAL}) }
	hidden := func(name string) {
		unique := name
		for k := 1; used[unique]; k++ {
			unique = name + "_" + itoa(k)
		}
		used[unique] = true
		add(unique)
	}
	for p, i := range params {
		i = max(i, ^i)
		place[i] = p
		if l := src.Locals[i]; l.Kind&opcode.CO_FAST_FREE != 0 {
			moves = append(moves, cellMove{from: p, to: i})
			hidden("___cell_" + l.Name)
		} else {
			add(l.Name)
		}
	}
	for i, it := range stack {
		if it.isParam() {
			hidden("___stack" + itoa(i))
		}
	}
	for i, l := range src.Locals {
		if place[i] < 0 {
			place[i] = len(locals)
			add(l.Name)
		}
	}
	for k, m := range moves {
		l := src.Locals[m.to]
		place[m.to] = len(locals)
		moves[k].to = len(locals)
		locals = append(locals, bytecode.Local{Name: l.Name, Kind: opcode.CO_FAST_FREE})
	}
	return locals, place, moves
}

// isParam reports whether a stack value is passed as a parameter. The prologue recreates all other values.
func (it item) isParam() bool { return it.kind() != 'N' && it.kind() != 'L' }

// resumePrologue returns the instructions that move cells, delete unbound variables, fill the stack, and jump to goal.
// It may add a constant.
func (tx *InstructionTranslator) resumePrologue(goal *bytecode.Instruction, params []int, moves []cellMove,
	stack []item) (prologue []*bytecode.Instruction, consts []py.Object) {
	consts = tx.d.consts
	push := func(op opcode.Op, arg int) { prologue = append(prologue, bytecode.New(op, arg).At(goal.Pos)) }
	for _, m := range moves { // before RESUME, where nobody can look at the frame: CPython reads each free slot's cell
		push(opcode.LOAD_FAST, m.from)
		push(opcode.DELETE_FAST, m.from)
		push(opcode.STORE_FAST, m.to)
	}
	push(opcode.RESUME, resumeInBlock)
	for p, slot := range params {
		if slot < 0 {
			push(opcode.DELETE_FAST, p)
		}
	}
	k := len(params)
	for _, it := range stack {
		switch kind := it.kind(); kind {
		case 'N':
			push(opcode.PUSH_NULL, 0)
		case 'L': // nothing reads it: see leaveOffsets
			push(opcode.LOAD_CONST, len(tx.d.consts))
			consts = append(tx.d.consts[:len(tx.d.consts):len(tx.d.consts)], py.None())
		default:
			if it.rest != nil && !tx.d.code.NullAbove {
				push(opcode.PUSH_NULL, 0)
			}
			push(opcode.LOAD_FAST, k)
			if it.rest != nil && tx.d.code.NullAbove {
				push(opcode.PUSH_NULL, 0)
			}
			push(opcode.DELETE_FAST, k) // an extra variable would be visible and would hold a reference
			k++
			if kind == 'X' {
				push(opcode.PUSH_EXC_INFO, 0)
				push(opcode.POP_TOP, 0)
			}
		}
	}
	return append(prologue, bytecode.NewJump(opcode.JUMP, goal).At(goal.Pos)), consts
}

// places returns the slots of the locals that are parameters of a resume function, in the order of the user's code.
// CPython frees a frame's variables in slot order, so this order must be kept. A local that is not bound yet is also
// included if the rest of the frame binds it and it precedes a live one. It is returned as ^slot. The caller passes
// None for it, and the resume function first deletes it.
func (tx *InstructionTranslator) places(target *bytecode.Instruction, live map[int]bool) []int {
	code, last, gaps := tx.d.code, -1, false
	for i := range code.Locals {
		if live[i] {
			gaps = gaps || last != i-1
			last = i
		}
	}
	bound := map[int]bool{}
	if gaps {
		for in := range bytecode.ReachableFrom(code, target) {
			if in.Op == opcode.STORE_FAST {
				bound[in.Arg] = true
			}
		}
	}
	var params []int
	for i, l := range code.Locals[:last+1] {
		if live[i] {
			params = append(params, i)
		} else if bound[i] && l.Kind&(opcode.CO_FAST_CELL|opcode.CO_FAST_FREE) == 0 {
			params = append(params, ^i)
		}
	}
	return params
}

// resumeBody renumbers the locals of a copied body, and replaces instructions that only a frame's start needs by
// NOPs. A call of super() without arguments gets both arguments. Otherwise super() would look for `__class__` among
// the free variables, which are parameters here.
func resumeBody(code *bytecode.Code, body []*bytecode.Instruction, place []int) []*bytecode.Instruction {
	classSlot := -1
	for i, l := range code.Locals {
		if l.Name == "__class__" {
			classSlot = i
		}
	}
	var out []*bytecode.Instruction
	for i, in := range body {
		superCall := classSlot >= 0 && isSuperCall(code, i, in)
		switch in.Op {
		case opcode.MAKE_CELL, opcode.COPY_FREE_VARS:
			in.Op, in.Arg = opcode.NOP, 0
		case opcode.LOAD_SUPER_ATTR: // both arguments are on the stack
			in.Arg |= superCalled
		}
		switch in.Op.ArgKind() {
		case opcode.ArgLocal, opcode.ArgFree:
			in.Arg = place[in.Arg]
		}
		out = append(out, in)
		if superCall {
			load := opcode.LOAD_FAST
			if code.Locals[0].Kind&opcode.CO_FAST_CELL != 0 {
				load = opcode.LOAD_DEREF
			}
			a, b := bytecode.New(opcode.LOAD_DEREF, place[classSlot]).At(in.Pos),
				bytecode.New(load, place[0]).At(in.Pos)
			a.Handler, b.Handler = in.Handler, in.Handler
			out = append(out, a, b)
			body[i+1].Arg = 2
		}
	}
	return out
}
