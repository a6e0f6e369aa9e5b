package translate

import (
	"errors"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
	_ "github.com/godynamo/godynamo/variables/higher" // registers the calls of operations that take functions
)

// decoded is a code object that is ready for symbolic execution. It is kept for one translation, since one callee is
// often inlined many times.
type decoded struct {
	object py.Object
	code   *bytecode.Code
	consts []py.Object
	index  map[*bytecode.Instruction]int
}

// decode returns a code object's instructions. It fails with Unsupported if one has an opcode that the interpreter does
// not have.
func (o *OutputGraph) decode(code py.Object) (*decoded, error) {
	if d, ok := o.codes[code]; ok {
		return d, nil
	}
	o.opts.Clock.Begin(Decoding)
	defer o.opts.Clock.End()
	raw, consts, err := o.installer.Decode(o.scope, code)
	if err != nil {
		return nil, err
	}
	c, err := bytecode.Decode(raw, Version)
	if errors.Is(err, bytecode.ErrNoSuchOpcode) {
		return nil, exc.Break(exc.FrameLeft, "%v", err)
	}
	if err != nil {
		return nil, err
	}
	withoutStopHandlers(c)
	d := &decoded{object: code, code: c, consts: consts,
		index: make(map[*bytecode.Instruction]int, len(c.Instructions))}
	for i, in := range c.Instructions {
		d.index[in] = i
	}
	o.codes[code] = d
	return d, nil
}

// rootInfo describes the outermost frame: its code and the names of its slots.
type rootInfo struct {
	code  *bytecode.Code
	frame *Frame
	names []string
}

// InstructionTranslator runs the instructions of one frame on trackers. An inlined call has a translator of its own.
// Its parent is the translator of the caller, and both share the OutputGraph.
type InstructionTranslator struct {
	out    *OutputGraph
	parent *InstructionTranslator
	depth  int
	d      *decoded

	globals    py.Object
	builtins   py.Object
	made       bool          // captured code made the function, so its builtins are those of its globals
	globalsSrc guards.Source // nil if the globals are those of the outermost frame

	locals []variables.VariableTracker // localsplus; nil if unbound
	stack  []variables.VariableTracker // nil represents NULL
	height int                         // height of the stack before the running instruction
	ip     int
	inst   *bytecode.Instruction
	kwargs []string // set by KW_NAMES, for the next CALL

	// regions has one entry for each enclosing error_on_graph_break block. The entry is true if a graph break in that
	// block is an error.
	regions []bool

	result    variables.VariableTracker
	done      bool
	suspended bool                        // the frame of a generator that has yielded
	handled   []variables.VariableTracker // exceptions whose handlers are running, innermost last
	here      *chain
	// hidden is set for code of godynamo._polyfills. Such code replaces C code of CPython, so no traceback shows it.
	hidden bool

	began    int          // the step of the running instruction
	awaiting []*exitFrame // states of this frame during the running call; see pushResult

	log *SpeculationLog // set in the outermost frame only
}

// errDone ends the translation of the outermost frame early, because the result is already complete.
var errDone = errors.New("frame written")

// Scope implements variables.Translator.
func (tx *InstructionTranslator) Scope() *py.Scope { return tx.out.scope }

// Output implements variables.Translator.
func (tx *InstructionTranslator) Output() variables.Output { return tx.out }

// World implements variables.Translator.
func (tx *InstructionTranslator) World() *variables.World { return tx.out.world }

// Globals implements variables.Translator.
func (tx *InstructionTranslator) Globals() py.Object { return tx.globals }

// FunctionName implements variables.Translator.
func (tx *InstructionTranslator) FunctionName() string { return tx.d.code.Name }

// StoredInto implements variables.Translator.
func (tx *InstructionTranslator) StoredInto(globals py.Object) bool {
	return len(tx.out.storedGlobals) > 0 && globals == tx.out.frame.Globals
}

// Build implements variables.Translator. The returned tracker is lazy: the value is read at its first use.
func (tx *InstructionTranslator) Build(obj py.Object, src guards.Source) variables.VariableTracker {
	switch src.(type) {
	case *guards.AttrSource, *guards.SlotSource, *guards.ModuleAttrSource, *guards.TypeAttrSource, *guards.GlobalSource,
		*guards.CellSource, *guards.GradSource:
		tx.out.Reads(src)
	}
	if v := tx.out.varied(obj, src); v != nil {
		return v
	}
	if len(tx.out.frame.Varied.Numbers) > 0 {
		if v := tx.variedScalar(obj, src); v != nil {
			return v
		}
	}
	return variables.NewLazy(obj, src)
}

// InsideTry implements variables.Translator. It reports whether the program could observe an exception that is raised
// at the current instruction. This is so if a handler of an active frame, or of a generator that the exception
// destroys, would catch it. It is also so if a frame is handling an exception, which would become its context.
func (tx *InstructionTranslator) InsideTry() bool {
	for t := tx; t != nil; t = t.parent {
		if t.inst != nil && t.inst.Block() != nil || len(t.handled) > 0 {
			return true
		}
	}
	return tx.out.stoppedInBlock()
}

// Catches implements variables.Translator.
func (tx *InstructionTranslator) Catches() bool {
	handled, _ := tx.protection()
	return handled
}

// InUse implements variables.Translator.
func (tx *InstructionTranslator) InUse(obj py.Object) bool {
	tracker := tx.out.world.Tracker(obj)
	is := func(vs []variables.VariableTracker) bool {
		for _, v := range vs {
			if l, ok := v.(*variables.LazyVariable); ok {
				if l.Peek() == obj {
					return true
				}
				v = l.Real()
			}
			if v != nil && v == tracker {
				return true
			}
		}
		return false
	}
	for t := tx; t != nil; t = t.parent {
		if is(t.locals) || is(t.stack) {
			return true
		}
	}
	return tracker != nil && tx.out.inPlace(tracker)
}

func (tx *InstructionTranslator) chainHere() *chain {
	if tx.hidden && tx.parent != nil {
		return tx.parent.chainHere()
	}
	if tx.here != nil && tx.here.inst == tx.inst && tx.here.step == tx.out.rootStep {
		return tx.here
	}
	var up *chain
	if tx.parent != nil {
		up = tx.parent.chainHere()
	}
	tx.here = tx.chainBelow(up)
	return tx.here
}

// chainBelow returns the chain of the running instruction below that of the callers.
func (tx *InstructionTranslator) chainBelow(up *chain) *chain {
	depth := 1
	if up != nil {
		depth = up.depth + 1
	}
	return &chain{parent: up, d: tx.d, globals: tx.globals, inst: tx.inst, depth: depth, step: tx.out.rootStep,
		locals: tx.snapshot()}
}

func (tx *InstructionTranslator) userLine() guards.UserLine {
	if tx.hidden && tx.parent != nil {
		return tx.parent.userLine()
	}
	if tx.inst == nil {
		return guards.UserLine{File: tx.d.code.Filename, Line: tx.d.code.FirstLine}
	}
	return guards.UserLine{File: tx.d.code.Filename, Line: int(tx.d.positionOf(tx.inst).Line)}
}

// Handled implements variables.Translator.
func (tx *InstructionTranslator) Handled() variables.VariableTracker { return tx.handledNow() }

// Place implements variables.Translator.
func (tx *InstructionTranslator) Place(depth int) (variables.Place, bool) {
	for ; tx != nil; tx = tx.parent {
		if tx.hidden {
			continue
		}
		if depth--; depth == 0 {
			at := tx.userLine()
			return variables.Place{File: at.File, Line: at.Line, Name: tx.d.code.Name, Globals: tx.globals,
				Code: tx.d.object}, true
		}
	}
	return variables.Place{}, false
}

func (tx *InstructionTranslator) push(v variables.VariableTracker) { tx.stack = append(tx.stack, v) }

func (tx *InstructionTranslator) pop() variables.VariableTracker {
	v := tx.stack[len(tx.stack)-1]
	tx.stack = tx.stack[:len(tx.stack)-1]
	return v
}

// popn removes the n topmost values, and returns them in the order in which they were pushed.
func (tx *InstructionTranslator) popn(n int) []variables.VariableTracker {
	vs := append([]variables.VariableTracker(nil), tx.stack[len(tx.stack)-n:]...)
	tx.stack = tx.stack[:len(tx.stack)-n]
	return vs
}

func (tx *InstructionTranslator) top(i int) variables.VariableTracker {
	return tx.stack[len(tx.stack)-i]
}

func (tx *InstructionTranslator) jump(target *bytecode.Instruction) { tx.ip = tx.d.index[target] }

// run executes instructions until the frame returns or yields.
func (tx *InstructionTranslator) run() error {
	before := tx.out.current
	tx.out.current = tx
	defer func() { tx.out.current = before }()
	if c := tx.out.opts.Clock; c != nil && !tx.hidden {
		c.enter(tx)
		defer c.leave()
	}
	list := tx.d.code.Instructions
	for !tx.done && !tx.suspended {
		if tx.ip >= len(list) {
			return &exc.SkipFrame{Reason: "ran off the end of the code"}
		}
		if err := tx.step(list[tx.ip]); err != nil {
			return err
		}
	}
	return nil
}

// longest bounds the steps of a whole translation, as a multiple of Options.MaxSteps.
const longest = 20

// step executes exactly one instruction.
func (tx *InstructionTranslator) step(inst *bytecode.Instruction) error {
	o := tx.out
	o.steps++
	// A large model adds operations all the time, and an endless loop usually does not. So the number of steps since
	// the last operation is bounded. The bound on all steps ends a loop that captures operations forever.
	if o.steps-o.stepsAtOp > o.opts.MaxSteps || o.steps/longest > o.opts.MaxSteps {
		return &exc.SkipFrame{Code: exc.TooLarge, Reason: "translation of more than " + itoa(o.opts.MaxSteps) +
			" instructions", Always: true}
	}
	if o.steps&0xfff == 0 {
		if err := o.scope.CheckSignals(); err != nil {
			return err
		}
	}
	before := tx.inst
	tx.inst, tx.height, tx.began = inst, len(tx.stack), o.steps
	if o.opts.Steps != nil {
		o.opts.Steps.step(tx, inst)
	}
	h := &handlers[inst.Op]
	step := o.steps
	if tx.leavesLoop(inst) {
		return o.unroll(o.loops.active.step, "the loop is left early")
	}
	if tx.parent == nil {
		o.rootStep, o.rootOps = step, o.numOps
		if left := o.countLeft(); left != o.leftBefore {
			o.leftBefore, o.leftStep = left, step
		}
		if why, ok := tx.log.failedAt(step); ok {
			if l := o.loops.active; l != nil {
				return o.unroll(l.step, "the graph breaks in its body")
			}
			if entered, ok := o.world.EnteredAt(); ok {
				return o.breakAt(entered, natively(why))
			}
			if u, ok := why.(*exc.Unsupported); h.breaks || ok && u.Before {
				return tx.breakHere(inst, why)
			}
			return tx.unbreakable(tx.log.entries[step].(*exc.Unsupported),
				"no graph break is possible at "+inst.Op.String())
		}
	}
	if err := tx.abandon(o.finalizerDue()); err != nil {
		return tx.endsObject(step, inst, before, err)
	}
	tx.ip++
	looks, floatLooks := o.world.SizeLooks, len(o.world.FloatLooks)
	err := tx.execute(step, inst, h)
	if _, raises := err.(*exc.Observed); err == nil || raises { // any other error ends the translation anyway
		if overlooked := o.world.Overlooked(); overlooked != nil {
			err = overlooked
		}
	}
	err = tx.abandon(err)
	if _, breaks := err.(*exc.Unsupported); breaks && tx.withConstants(step, looks, floatLooks, err) {
		return &exc.RestartAnalysis{Reason: err.Error()}
	}
	if err != nil {
		err = tx.failed(step, inst, h, err)
	} else if checks := inst.Op == opcode.CALL || inst.Op == opcode.CALL_FUNCTION_EX; checks && o.steps == step ||
		inst.Op == opcode.RESUME {
		// An inlined call does not count: CPython checks for signals at the RESUME of the called function instead.
		o.checked = len(o.events)
	}
	if _, raises := err.(*exc.Observed); err == nil || raises { // a handler of a caller may catch the exception
		o.account.translated(tx, inst)
	}
	return err
}

// natively returns the same graph break at an instruction that CPython runs, instead of one before an instruction.
func natively(why error) error {
	u, ok := why.(*exc.Unsupported)
	if !ok || !u.Before {
		return why
	}
	at := *u
	at.Before = false
	return &at
}

// endsObject breaks the graph before an instruction because the instruction before it has released an object with a
// finalizer.
func (tx *InstructionTranslator) endsObject(step int, inst, before *bytecode.Instruction, err error) error {
	h := &handlers[inst.Op]
	if _, again := err.(*exc.RestartAnalysis); again {
		return err
	}
	if tx.parent == nil && !usesFrame(tx.d.code) {
		u := err.(*exc.Unsupported)
		u.Stack = tx.chainHere().stack()
		if before != nil { // before is the instruction that released the object
			u.Stack[0] = tx.d.frameAt(before)
		}
		return tx.log.add(step, err)
	}
	return tx.failed(step, inst, h, err)
}

// execute runs the handler of an instruction. If an earlier attempt broke the graph at this step, sizes are constants
// in the handler.
func (tx *InstructionTranslator) execute(step int, inst *bytecode.Instruction, h *handler) error {
	o := tx.out
	if o.log.fixed[step] {
		o.world.FixesSizes++
		defer func() { o.world.FixesSizes-- }()
	}
	if run := tx.pythonForm(step, inst); run != nil {
		o.account.pythonForm(tx, inst)
		return run(tx, inst)
	}
	if h.run == nil {
		return exc.Break(exc.OpcodeUnsupported, "%s", missing(inst.Op))
	}
	return h.run(tx, inst)
}

// missing returns the text of the graph break for an opcode without a handler.
func missing(op opcode.Op) string {
	if reason, ok := noHandler[op]; ok {
		return op.String() + ", " + reason
	}
	return op.String()
}

// failed handles the error of an instruction. In an inlined frame it returns the error, for the caller. In the
// outermost frame it records a graph break in the log, and the translation restarts.
func (tx *InstructionTranslator) failed(step int, inst *bytecode.Instruction, h *handler, err error) error {
	if o, ok := err.(*exc.Observed); ok {
		if inst.Handler != nil {
			err = tx.unwind(o, inst.Handler)
			if err == nil {
				return nil
			}
		} else if tx.parent != nil {
			return err
		} else {
			err = exc.Break(exc.ProgramRaises, "%s: %s", o.TypeName, o.Text)
			if tx.out.numOps == 0 && !tx.out.opts.NoPython {
				return tx.raisesFirst(err.(*exc.Unsupported))
			}
		}
	}
	u, ok := err.(*exc.Unsupported)
	if !ok {
		return err
	}
	tx.askRegion(u)
	if tx.leftToPython(step, inst, u) {
		return &exc.RestartAnalysis{Reason: u.Reason()}
	}
	if u.DataDependent && (tx.parent != nil || !isBranch(inst.Op)) {
		u.DataDependent = false
	}
	if tx.hidden && tx.parent != nil {
		return err
	}
	u.Stack = append(u.Stack, tx.d.frameAt(inst))
	if tx.parent != nil {
		u.AsksFrame = u.AsksFrame || asksFrames(tx.d.code)
		if why := watchesCallers(tx.d.code, u.AsksFrame); why != "" {
			return tx.unbreakable(u, why)
		}
		// The inlined function inspects its own frame, not its caller's. So the caller leaves the call to CPython.
		u.Frame = false
		if u.Code == exc.Finalizer {
			// otherwise the resume function would begin with the call and break at the same instruction again
			u.Before = false
		}
		return err
	}
	if u.Forbidden {
		return u
	}
	if usesFrame(tx.d.code) {
		if why := tx.splitsOwnFrame(inst, u); why != "" {
			return tx.unbreakable(u, why)
		}
	}
	if u.Frame && !usesFrame(tx.d.code) {
		return tx.unbreakable(u, "the function reads its own frame")
	}
	if tx.watched() {
		return tx.unbreakable(u,
			"the function reads its own frame, examines the interpreter, or installs a trace function")
	}
	if !h.breaks {
		return tx.unbreakable(u, "no graph break is possible at "+inst.Op.String())
	}
	return tx.log.add(step, u)
}

// unbreakable is a graph break in a frame that cannot resume. The frame is left to CPython.
type unbreakable struct {
	*exc.Unsupported
	why string
	by  *InstructionTranslator // translator of the frame that cannot resume
}

func (tx *InstructionTranslator) unbreakable(u *exc.Unsupported, why string) error {
	return &unbreakable{u, why, tx}
}

func (u *unbreakable) Error() string { return u.Unsupported.Error() + "; " + u.why }

func isBranch(op opcode.Op) bool {
	switch op {
	case opcode.POP_JUMP_IF_FALSE, opcode.POP_JUMP_IF_TRUE, opcode.JUMP_IF_FALSE_OR_POP, opcode.JUMP_IF_TRUE_OR_POP:
		return true
	}
	return false
}
