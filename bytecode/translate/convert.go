package translate

import (
	"slices"

	"errors"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// errEffectsLost requests another attempt in which the graph breaks at effects.
var errEffectsLost = errors.New("effects would be lost")

// errTakenApart requests another attempt: compiling the graph has shown that the backend traces operators.
var errTakenApart = errors.New("a backend that traces operators")

// errFixesSizes requests another attempt: the backend has turned out to compile this graph only for the sizes of its
// examples.
var errFixesSizes = errors.New("a backend that fixes sizes")

// errStateless requests another attempt in which the graph does not switch torch's modes.
var errStateless = errors.New("a graph that switches modes and cannot run again")

// errNotProtected requests another attempt in which operations inside try and with are not captured.
var errNotProtected = errors.New("a graph that cannot run again")

// maxRestarts bounds the number of restarts of the translation of one frame. Each restart adds an entry to the
// speculation log.
const maxRestarts = 100

// Converter translates one frame. cacheSize is the number of translations that the frame already has.
type Converter func(s *py.Scope, f *Frame, cacheSize int) (*Result, error)

// ConvertFrameAssert returns the converter for a backend. If oneGraph is true, the converter returns the first graph
// break as an error. Otherwise the converter breaks the graph there. Errors that are for the user are *exc.Unsupported
// (a graph break), *exc.SkipFrame, *exc.Raised and *py.Error. Any other error is a bug.
func ConvertFrameAssert(compilerFn Backend, oneGraph bool, opts *Options, inst Installer) Converter {
	return func(s *py.Scope, f *Frame, cacheSize int) (*Result, error) {
		if err := unsupportedKind(s, f); err != nil {
			return nil, err
		}
		code := f.Code
		if f.Origin != nil {
			code = f.Origin.Code
		}
		if ok, err := opts.allowed(s, code); err != nil {
			return nil, err
		} else if !ok {
			return nil, &exc.SkipFrame{Code: exc.LeftOut}
		}
		log := newSpeculationLog()
		var first *broken
		restarts := maxRestarts
		if opts.PythonOps {
			restarts = maxPythonRestarts
		}
		for i := 0; i < restarts; i++ {
			r, err := attempt(s, f, opts, compilerFn, inst, log)
			if next := log.after(err, opts); next != nil {
				log = next
				continue
			}
			_, again := err.(*exc.RestartAnalysis)
			if again && oneGraph && log.last != nil {
				again, err = false, log.last
			}
			if again {
				continue
			}
			if first != nil {
				return first.orBetter(r, err, log), nil
			}
			if !f.mayBeBetter(r, err, compilerFn) {
				return r, err
			}
			if err == nil {
				first = &broken{r, log.earliest()}
			}
			f.Varied, f.hasVaried, opts.Dynamic = Varied{}, false, false
			f.hasPassed, f.fixesPassed = false, true
			log = log.withoutSteps()
		}
		return nil, &exc.SkipFrame{Reason: "too many restarts"}
	}
}

// ConvertFrame wraps ConvertFrameAssert. If the frame cannot resume after a break, CPython runs the whole frame.
func ConvertFrame(compilerFn Backend, opts *Options, inst Installer) Converter {
	convert := ConvertFrameAssert(compilerFn, false, opts, inst)
	return func(s *py.Scope, f *Frame, cacheSize int) (*Result, error) {
		r, err := convert(s, f, cacheSize)
		if u, ok := err.(*unbreakable); ok && !u.Forbidden {
			r = &Result{NeedsHook: true, Breaks: []*exc.Unsupported{u.Unsupported}, Skipped: u.why,
				Abandoned: f.farthest}
			u.by.leaveAlone(r)
			return r, nil
		}
		return r, err
	}
}

// unsupportedKind returns a SkipFrame error for code that is never translated.
func unsupportedKind(s *py.Scope, f *Frame) error {
	flags := codeFlags(s, f.Code)
	switch {
	case flags&(opcode.CO_COROUTINE|opcode.CO_ASYNC_GENERATOR|opcode.CO_ITERABLE_COROUTINE) != 0:
		return &exc.SkipFrame{Code: exc.Generator, Reason: "async def", Always: true}
	case flags&opcode.CO_GENERATOR != 0:
		return &exc.SkipFrame{Code: exc.Generator, Reason: "generator", Always: true}
	case flags&opcode.CO_NEWLOCALS == 0:
		return &exc.SkipFrame{Code: exc.NotFunction, Reason: "module or class body", Always: true}
	}
	return nil
}

// allowed reports whether Options.Allowed accepts code.
func (o *Options) allowed(s *py.Scope, code py.Object) (bool, error) {
	if o.Allowed.IsNull() {
		return true, nil
	}
	r, err := s.Call(o.Allowed, code)
	return err != nil || r == py.True(), err
}

func codeFlags(s *py.Scope, code py.Object) int {
	v, ok := py.Answered(s.GetAttr(code, "co_flags"))
	if !ok {
		return 0
	}
	n, _ := py.AsInt(v)
	return int(n)
}

func attempt(s *py.Scope, f *Frame, opts *Options, b Backend, inst Installer, log *SpeculationLog) (*Result, error) {
	if opts.Clock != nil {
		opts.Clock.Attempts++
	}
	w, err := variables.NewWorld(s)
	if err != nil {
		return nil, err
	}
	f.attempts++
	w.Settings, w.FixesOpaque, w.Attempts = opts.Settings, log.fixesOpaque, f.attempts
	if log.inline {
		b = opts.InlineBackend
	}
	o := newOutputGraph(s, w, f, opts, b, inst)
	o.sawTensor = opts.TranslateEverything
	code := f.Code
	if f.Origin != nil {
		code = f.Origin.Code
	}
	o.strict, o.log = log.strict, log
	o.noteFixers()
	d, err := o.decode(code)
	if u, ok := err.(*exc.Unsupported); ok {
		return nil, exc.Skip(u)
	}
	if err != nil {
		return nil, err
	}
	o.root = &rootInfo{d.code, f, slotNames(s, f, d.code)}
	tx := &InstructionTranslator{out: o, d: d, globals: f.Globals, builtins: f.Builtins, log: log,
		locals: make([]variables.VariableTracker, len(d.code.Locals))}
	s.OnTypeLookup = func(class py.Object, name string, found py.Object) { w.Looked(tx, class, name, found) }
	defer func() { s.OnTypeLookup = nil }()
	if err := w.UnderDefaultDevice(tx); err != nil {
		return nil, err
	}
	if log.hooked {
		if _, err := o.hooked(); err != nil {
			return nil, err
		}
	}
	tx.symbolicLocals()
	if opts.Clock != nil && f.Origin != nil {
		opts.Clock.ResumedAt = int(d.code.Instructions[tx.ip].Pos.Line)
	}
	for _, f := range log.until {
		f(tx)
	}
	defer o.restoreState()
	if err := tx.run(); err != nil && err != errDone {
		o.abandon(err)
		return nil, err
	}
	if len(o.result.Breaks) > 0 {
		o.result.Abandoned = f.farthest
	}
	o.result.SizePlaces = o.places.list
	o.result.OnlyHere = w.OnlyHere
	if o.result.NeedsHook && o.result.Function.IsNull() {
		tx.leaveAlone(o.result)
	}
	return o.result, nil
}

// symbolicLocals calls VariableBuilder once for each bound variable of the frame, in order.
func (tx *InstructionTranslator) symbolicLocals() {
	f, root := tx.out.frame, tx.out.root
	place := func(i int, obj py.Object, read bool) variables.VariableTracker {
		tx.out.sawTensor = tx.out.sawTensor || read && tx.out.holdsTensor(obj)
		if f.Origin != nil && slices.Contains(f.Origin.Computed, i) {
			if v := variables.ComputedBefore(tx, obj, guards.NewLocalSource(root.names[i], i)); v != nil {
				return v
			}
		}
		if f.Origin != nil && slices.Contains(f.Origin.Sizes, i) && !tx.out.forCompiler() {
			if v := tx.out.intSymbol(obj, guards.NewLocalSource(root.names[i], i)); v != nil {
				return v
			}
		}
		return tx.Build(obj, guards.NewLocalSource(root.names[i], i))
	}
	if o := f.Origin; o != nil {
		o.unbound(f.Slots)
		tx.out.holders.params, tx.out.holders.finalizers = map[int]bool{}, map[int]bool{}
		tx.out.frame.FindLoud(tx.out.world, tx.out.scope)
		read := bytecode.Liveness(tx.d.code)[tx.d.code.Instructions[o.Target]]
		for i, local := range o.Params {
			if local < 0 {
				continue
			}
			tx.locals[local] = place(i, f.Slots[i], read.Has(local))
			tx.out.addHolder(i)
		}
		next := len(o.Params)
		for _, c := range o.Stack {
			switch c {
			case 'N':
				tx.push(nil)
				continue
			case 'L':
				tx.push(&lastiMark{})
				continue
			case 'R':
				next++
				continue
			}
			v := place(next, f.Slots[next], true)
			tx.out.addHolder(next)
			next++
			if c == 'X' {
				tx.handled = append(tx.handled, v)
				v = &handledMark{exception: v}
			}
			tx.push(v)
		}
		tx.ip = o.Target
		return
	}
	free := len(tx.d.code.Locals) - (len(f.Slots) - f.NumArgs)
	for i, obj := range f.Slots {
		local := i
		if i >= f.NumArgs {
			local = free + i - f.NumArgs
		}
		if !obj.IsNull() {
			tx.locals[local] = place(i, obj, true)
		}
	}
}

// maxSearched is the length up to which the items of an argument are searched for tensors.
const maxSearched = 1000

// holdsTensor reports whether obj is, or directly contains, a tensor or a module. Generators count, since they
// may yield one.
func (o *OutputGraph) holdsTensor(obj py.Object) bool {
	switch obj.Kind() {
	case py.Tuple, py.List:
		if n, ok := py.Answered(o.scope.Len(obj)); !ok || n > maxSearched {
			return false
		}
		for _, it := range o.scope.Items(obj) {
			if o.isTensorOrModule(it) {
				return true
			}
		}
		return false
	case py.Dict:
		_, values := o.scope.DictItems(obj)
		for _, it := range values {
			if o.isTensorOrModule(it) {
				return true
			}
		}
		return false
	}
	return o.isTensorOrModule(obj)
}

func (o *OutputGraph) isTensorOrModule(obj py.Object) bool {
	t := obj.Type()
	return o.world.IsTensor(obj) || t == o.world.GeneratorType || !o.world.NNModule.IsNull() &&
		py.IsSubtype(t, o.world.NNModule)
}

// slotNames returns the names of the slots: first the arguments, then the free variables. In a resume function, these
// are the names of its parameters.
func slotNames(s *py.Scope, f *Frame, code *bytecode.Code) []string {
	if f.Origin != nil {
		v, ok := py.Answered(s.GetAttr(f.Code, "co_varnames"))
		if ok {
			var out []string
			for _, n := range s.Items(v) {
				out = append(out, py.GoString(n))
			}
			return out
		}
	}
	out := make([]string, len(f.Slots))
	n := len(f.Slots) - f.NumArgs
	for i := range out {
		if i < f.NumArgs {
			out[i] = code.Locals[i].Name
		} else {
			out[i] = code.Locals[len(code.Locals)-n+i-f.NumArgs].Name
		}
	}
	return out
}

// writeReturn ends the outermost frame, which returns v.
func (tx *InstructionTranslator) writeReturn(v variables.VariableTracker) error {
	o := tx.out
	o.account.translated(tx, tx.inst)
	tx.placesOfResult(v)
	if o.idle() {
		return o.nothingToCapture(false)
	}
	if err := o.Freeze(tx, v); err != nil {
		if u, ok := err.(*exc.Unsupported); ok {
			return exc.Skip(u)
		}
		return err // the next attempt breaks the graph where the returned exception was raised
	}
	if o.opts.Exporting {
		if err := o.dropEffects(v); err != nil {
			return err
		}
	}
	c := newCodegen(o)
	o.codegen = c
	if err := c.runAll(); err != nil {
		return err
	}
	c.at(tx.chainHere(), false)
	if err := c.Load(v); err != nil {
		return err
	}
	tx.clearLocals(c)
	c.emit(opcode.RETURN_VALUE, 0)
	return o.finalize(c)
}

// nothingToCapture ends a frame that has no tensor among its arguments and runs no torch operation. This result is
// valid only for arguments of these types, not for all calls of the code object. If the graph has broken at a state
// that the first call makes, only this call is left to CPython.
func (o *OutputGraph) nothingToCapture(hook bool) error {
	if len(o.log.until) > 0 {
		return exc.Postpone(exc.Uninitialized, "what the first call makes")
	}
	var set guards.Set
	root := o.root
	for i, obj := range o.frame.Slots[:o.frame.NumArgs] {
		if !obj.IsNull() {
			set = set.Add(guards.TypeMatch(guards.NewLocalSource(root.names[i], i), o.Const(obj.Type())))
		}
	}
	m, err := guards.NewCheckFunctionManager(len(o.frame.Slots), set, nil,
		guards.Options{GuardNNModules: o.opts.GuardNNModules})
	if err != nil {
		return err
	}
	o.result = &Result{Program: m.Program(), Pool: o.pool, NeedsHook: hook, Breaks: o.breaks, BreakLine: o.breakLine,
		Nothing: true}
	return errDone
}

// raisesFirst ends a frame that is known to raise before anything is captured. If the guards of that result hold,
// CPython runs the user's code, so that the traceback, its frames and their variables are real.
func (tx *InstructionTranslator) raisesFirst(u *exc.Unsupported) error {
	o := tx.out
	if o.idle() {
		return o.nothingToCapture(true)
	}
	u.Stack = tx.chainHere().stack()
	if err := o.guardSizes(); err != nil {
		return err
	}
	m, err := guards.NewCheckFunctionManager(len(o.frame.Slots), o.guards.Set(), nil,
		guards.Options{GuardNNModules: o.opts.GuardNNModules, Reads: o.reads})
	if err != nil {
		return err
	}
	o.result = &Result{Program: m.Program(), Pool: o.pool, NeedsHook: true, Breaks: append(o.breaks, u),
		BreakLine: int(tx.d.positionOf(tx.inst).Line), Nothing: true, Text: m.Text()}
	return errDone
}

// finalize turns the written instructions, the graph and the guards into the frame's result.
func (o *OutputGraph) finalize(c *Codegen) error {
	if err := o.mayFinish(); err != nil {
		return err
	}
	o.restoreState()
	if err := c.writeFinish(); err != nil {
		return err
	}
	if err := c.checkLoops(); err != nil {
		return err
	}
	o.aliasGuards()
	switch {
	case o.numOps > 0 && !o.backend.Inline(): // compiled code depends on torch's modes, and is made for some threads
		o.AddGuards(guards.NumThreads())
	case o.numOps > 0 && (o.meta != nil || o.sizes != nil): // results depend on torch's modes
		o.AddGuards(guards.GlobalState())
	}
	clock := o.opts.Clock
	clock.Begin(Guarding)
	err := o.guardSizes()
	if err != nil {
		return err
	}
	o.sizesNeeded(c.extras)
	m, err := guards.NewCheckFunctionManager(len(o.frame.Slots), o.guards.Set(), c.extras,
		guards.Options{GuardNNModules: o.opts.GuardNNModules, Reads: o.reads})
	clock.End()
	if err != nil {
		return err
	}
	p := m.Program()
	order := extraOrder(p.Extra)
	clock.Begin(Lowering)
	defer clock.End()
	fn, table, err := c.transformed(order)
	if err != nil {
		return err
	}
	regs := make([]uint32, len(order))
	for i, e := range order {
		regs[i] = p.Extra[e]
	}
	numGraphs := 0
	if o.numOps > 0 {
		numGraphs = 1
	}
	rerun := o.rerunnable() || o.hasProtected
	o.result = &Result{
		Function: fn, Program: p, Pool: o.pool, ExtraRegs: regs, Rows: table.rows, Chains: table.chains,
		Operations: table.operations,
		NeedsHook:  c.needsHook || o.python.used(), PythonOps: o.python.counts, Rerun: rerun, Catches: c.catches,
		HandsOver: o.frame.Origin != nil && !rerun,
		Breaks:    o.breaks, BreakLine: o.breakLine, NumOps: o.numOps, NumGraphs: numGraphs, Graph: o.graph,
		Fixed: o.symbols.fixed, Exported: o.exported(m, c.extras, order), GraphText: o.GraphText,
		GraphSizes: o.graphSizes, Dynamic: o.dynamicText, Inlined: o.inlined, Reused: o.layers.reused,
		ResumeNames: o.resumes, Text: m.Text(), Uncompiled: o.log.inline,
		Account: o.account.done(o),
	}
	return errDone
}

// mayFinish returns nil if the translation may be finished. Otherwise it returns the error that ends or restarts it.
func (o *OutputGraph) mayFinish() error {
	if o.idle() {
		return o.nothingToCapture(true)
	}
	if err := o.abandoned(); err != nil {
		return err
	}
	o.savesState()
	switch {
	case o.effectsLost():
		return errEffectsLost
	case o.unknownExits():
		return errNoSideExits
	case o.hasProtected && !o.backend.Inline() && !o.rerunnable():
		return errNotProtected
	case o.switchedUnscoped():
		return errStateless
	}
	return nil
}

// writeFinish writes the code around the user's operations: the call of the graph before them, and after them the
// exception handlers that restore state.
func (c *Codegen) writeFinish() error {
	if err := c.graphCall(); err != nil {
		return err
	}
	if err := c.writeRestores(); err != nil {
		return err
	}
	if handler := c.out.computed.handler; handler != nil {
		if err := handler(); err != nil {
			return err
		}
	}
	if err := c.writeSideExits(); err != nil {
		return err
	}
	return c.writeStateRestore()
}

// transformed returns the transformed function and its traceback table. Its last parameters are the values that the
// guards fetched, in the given order.
func (c *Codegen) transformed(order []int) (py.Object, *tracebackTable, error) {
	o := c.out
	code := c.finish(order)
	if c.out.root.code.NullAbove {
		list, err := bytecode.NullsAbove(code.Instructions)
		if err != nil {
			return py.Object{}, nil, err
		}
		code.Instructions = list
	}
	if c.out.root.code.HandlerBefore {
		code.Instructions = bytecode.HandlersBefore(code.Instructions)
	}
	raw, err := bytecode.Lower(code, Version)
	if err != nil {
		return py.Object{}, nil, err
	}
	table := c.tracebackTable()
	obj, err := o.installer.NewCode(o.scope, raw, c.consts)
	if err != nil {
		return py.Object{}, nil, err
	}
	var closure py.Object
	if len(c.closure) > 0 {
		cells := make([]py.Object, len(c.closure))
		for i, v := range c.closure {
			cells[i] = o.scope.NewCell(v)
		}
		closure = o.scope.Tuple(cells...)
	}
	fn, err := o.scope.NewFunction(obj, o.frame.Globals, o.frame.Builtins, closure, code.Name, code.QualName,
		py.Object{})
	return fn, table, err
}

// extraOrder returns the indexes of the extra values, sorted by register. The C core expects this order.
func extraOrder(regs []uint32) []int {
	order := make([]int, len(regs))
	for i := range order {
		order[i] = i
	}
	for i := 1; i < len(order); i++ {
		for j := i; j > 0 && regs[order[j]] < regs[order[j-1]]; j-- {
			order[j], order[j-1] = order[j-1], order[j]
		}
	}
	return order
}

// AsUnsupported stores err's graph break in out. It returns false if err is not a graph break.
func AsUnsupported(err error, out **exc.Unsupported) bool {
	switch e := err.(type) {
	case *exc.Unsupported:
		*out = e
		return true
	case *unbreakable:
		*out = e.Unsupported
		return true
	}
	return false
}
