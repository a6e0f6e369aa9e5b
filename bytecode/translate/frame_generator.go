package translate

import (
	"slices"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// GeneratorVariable is a generator made by the captured code. Its frame is an inlined frame that stops at each yield
// and resumes there. Code that requests the next value resumes the frame, and the operations of the generator then join
// the graph.
//
// A generator that has not started is reconstructed by a call of its function. One that has started cannot be
// reconstructed. If the user's code needs it as an object, the translation restarts, and CPython makes the generator.
type GeneratorVariable struct {
	variables.Base
	frame     *InstructionTranslator // nil if the generator has finished
	fn        *variables.FunctionVariable
	args      []variables.VariableTracker
	kwargs    []variables.Kw
	createdAt int // step of the outermost frame at which it was made
	started   bool
	running   bool
	returned  variables.VariableTracker
	dropped   bool // closeSuspended has closed it, since no frame seemed to hold it
}

// Kind implements variables.VariableTracker.
func (*GeneratorVariable) Kind() string { return "GeneratorVariable" }

// Children implements variables.Container.
func (g *GeneratorVariable) Children() []variables.VariableTracker {
	out := append([]variables.VariableTracker{g.fn}, g.args...)
	for _, kw := range g.kwargs {
		out = append(out, kw.Value)
	}
	return out
}

// PythonType implements variables.Typed.
func (*GeneratorVariable) PythonType(tx variables.Translator) (py.Object, error) {
	return tx.World().GeneratorType, nil
}

// Truth implements variables.Truther.
func (*GeneratorVariable) Truth(variables.Translator) (bool, error) { return true, nil }

// Reconstruct implements variables.Reconstructer. The generator must not have started.
func (g *GeneratorVariable) Reconstruct(e variables.Emitter) error {
	e.PushNull()
	if err := e.Load(g.fn); err != nil {
		return err
	}
	for _, a := range g.args {
		if err := e.Load(a); err != nil {
			return err
		}
	}
	var names []string
	for _, kw := range g.kwargs {
		if err := e.Load(kw.Value); err != nil {
			return err
		}
		names = append(names, kw.Name)
	}
	e.Call(len(g.args)+len(names), names)
	return nil
}

// returnGenerator implements RETURN_GENERATOR. The call ends, and its result is the generator with the suspended
// frame.
//
//	stack: -- sent      sent: pushed when the frame resumes
func (tx *InstructionTranslator) returnGenerator(*bytecode.Instruction) error {
	if tx.parent == nil {
		return &exc.SkipFrame{Code: exc.Generator, Reason: "generator", Always: true}
	}
	g := &GeneratorVariable{frame: tx, createdAt: tx.out.rootStep}
	tx.out.generators = append(tx.out.generators, g)
	tx.result, tx.done = g, true
	return nil
}

// yieldValue implements YIELD_VALUE. The frame stops, and run returns.
//
//	stack: value -- sent      sent: pushed when the frame resumes
func (tx *InstructionTranslator) yieldValue(*bytecode.Instruction) error {
	tx.result, tx.suspended = tx.pop(), true
	return nil
}

// getYieldFromIter implements GET_YIELD_FROM_ITER.
//
//	stack: iterable -- iterator
//	breaks: GD0210
func (tx *InstructionTranslator) getYieldFromIter(*bytecode.Instruction) error {
	it, err := variables.Iter(tx, tx.pop())
	if err != nil {
		return err
	}
	tx.push(it)
	return nil
}

// send implements SEND.
//
//	stack: receiver value -- receiver result
//	jumps: receiver value -- returned      the receiver has ended
//	breaks: GD0302
func (tx *InstructionTranslator) send(inst *bytecode.Instruction) error {
	ended, err := tx.sendValue()
	if err != nil || !ended {
		return err
	}
	r := tx.pop()
	tx.pop()
	tx.push(r)
	tx.jump(inst.Target)
	return nil
}

// sendKeep implements SEND_KEEP.
//
//	stack: receiver value -- receiver result
//	stack: receiver value -- receiver returned      the receiver has ended; the instruction jumps
//	breaks: GD0302
func (tx *InstructionTranslator) sendKeep(inst *bytecode.Instruction) error {
	ended, err := tx.sendValue()
	if ended && err == nil {
		tx.jump(inst.Target)
	}
	return err
}

// endSend implements END_SEND.
//
//	stack: receiver value -- value
func (tx *InstructionTranslator) endSend(*bytecode.Instruction) error {
	v := tx.pop()
	tx.pop()
	tx.push(v)
	return nil
}

// cleanupThrow implements CLEANUP_THROW, the handler of exceptions that are thrown into a `yield from`. The value of
// a StopIteration is that of the expression.
//
//	stack: receiver sent exc -- None value
//	breaks: GD0302
func (tx *InstructionTranslator) cleanupThrow(*bytecode.Instruction) error {
	e, err := variables.Realize(tx, tx.top(1))
	if err != nil {
		return err
	}
	o, ok := e.(*variables.ObjectVariable)
	if !ok {
		return exc.Break(exc.Generator, "%s thrown into a generator", variables.Describe(tx, e))
	}
	raised := variables.Raise(o)
	raised.Again = true
	if stop, err := variables.RaisesA(tx, raised, "StopIteration"); err != nil || !stop {
		if err == nil {
			err = raised
		}
		return err
	}
	v, err := variables.GetAttr(tx, e, "value")
	if err != nil {
		return err
	}
	tx.popn(3)
	tx.push(variables.NoneConst())
	tx.push(v)
	return nil
}

// sendValue sends the value on the stack to the receiver below it, and puts the result in its place: what the receiver
// yields or, if it has ended, what it returns.
func (tx *InstructionTranslator) sendValue() (ended bool, err error) {
	v := tx.pop()
	to, err := variables.Realize(tx, tx.top(1))
	if err != nil {
		return false, err
	}
	var r variables.VariableTracker
	var more bool
	switch x := to.(type) {
	case *GeneratorVariable:
		r, more, err = x.resume(tx, v, nil)
	case variables.Iterator:
		if c, ok := variables.AsConstant(tx, v); !ok || c != py.None() {
			return false, exc.Break(exc.Generator, "a value sent into %s", variables.Describe(tx, to))
		}
		r, more, err = x.Next(tx)
		if !more {
			r = variables.NoneConst()
			if ends, ok := x.(variables.Returner); ok && err == nil {
				r = ends.StopValue()
			}
		}
	default:
		return false, exc.Break(exc.Generator, "yield from %s", variables.Describe(tx, to))
	}
	if err != nil {
		return false, notBranch(err)
	}
	tx.push(r)
	return !more, nil
}

// Next implements variables.Iterator.
func (g *GeneratorVariable) Next(tx variables.Translator) (variables.VariableTracker, bool, error) {
	return g.resume(tx, variables.NoneConst(), nil)
}

// StopValue implements variables.Returner.
func (g *GeneratorVariable) StopValue() variables.VariableTracker { return g.returned }

// resume resumes the frame with a sent value or a thrown exception. If more is true, the generator has yielded r.
// Otherwise r is its return value, or None if it had finished before the call.
func (g *GeneratorVariable) resume(t variables.Translator, value variables.VariableTracker,
	thrown *exc.Observed) (r variables.VariableTracker, more bool, err error) {
	tx := t.(*InstructionTranslator)
	if variables.Materialized(g) {
		return nil, false, exc.Break(exc.IterUnsupported, "a generator that other code holds")
	}
	f := g.frame
	switch {
	case g.dropped:
		return nil, false, errNoSideExits
	case g.running:
		return nil, false, variables.RaiseText(tx, "ValueError", "generator already executing")
	case f == nil && thrown != nil:
		return nil, false, thrown
	case f == nil:
		return variables.NoneConst(), false, nil
	case tx.depth+1 > tx.out.opts.InlineDepth:
		return nil, false, exc.Break(exc.InlineTooDeep, "%d levels", tx.depth+1)
	}
	g.running = true
	defer func() { g.running = false }()
	f.parent, f.depth, f.here = tx, tx.depth+1, nil
	if thrown == nil {
		f.push(value)
	} else if more, err := g.throwIn(thrown); more || err != nil {
		return f.result, more, g.ended(tx, err)
	}
	g.started, f.done = true, false
	if err := f.run(); err != nil {
		return nil, false, g.ended(tx, err)
	}
	if f.suspended {
		f.suspended = false
		return f.result, true, nil
	}
	g.frame, g.returned = nil, f.result
	return f.result, false, nil
}

// throwIn raises an exception where the frame stopped. In `yield from`, it first throws the exception into the inner
// generator. If more is true, that generator has yielded a value. If more is false and err is nil, the caller must
// resume the frame.
func (g *GeneratorVariable) throwIn(thrown *exc.Observed) (more bool, err error) {
	f := g.frame
	if !g.started {
		return false, thrown
	}
	at := f.d.code.Instructions[f.ip-1] // this is YIELD_VALUE; a RESUME follows it
	f.inst = at
	if next := f.d.code.Instructions[f.ip]; next.Op == opcode.RESUME && next.Arg&3 == 2 { // inside `yield from`
		sub, ok := f.top(1).(*GeneratorVariable)
		if !ok {
			return false, exc.Break(exc.Generator, "an exception thrown into %s", variables.Describe(f, f.top(1)))
		}
		exit, err := variables.RaisesA(f, thrown, "GeneratorExit")
		if err != nil {
			return false, err
		}
		if exit {
			_, err = sub.close(f)
		} else {
			var r variables.VariableTracker
			if r, more, err = sub.resume(f, nil, thrown); more {
				f.result = r
				return true, nil
			}
			if err == nil { // the inner generator returned the value of the "yield from" expression
				send := f.delegation(at)
				if send.Op == opcode.SEND {
					f.pop()
				}
				f.push(r)
				f.jump(send.Target)
				return false, nil
			}
		}
		if o, ok := err.(*exc.Observed); ok {
			thrown = o
		} else if err != nil {
			return false, err
		}
	}
	if at.Handler == nil {
		return false, thrown
	}
	f.push(variables.NoneConst()) // in place of a sent value, which the handler may expect
	return false, f.unwind(thrown, at.Handler)
}

// delegation returns the SEND of the `yield from` expression to which a YIELD_VALUE belongs.
func (tx *InstructionTranslator) delegation(yield *bytecode.Instruction) *bytecode.Instruction {
	for i := tx.d.index[yield]; i > 0; i-- {
		if in := tx.d.code.Instructions[i]; in.Op == opcode.SEND || in.Op == opcode.SEND_KEEP {
			return in
		}
	}
	return yield
}

// withoutStopHandlers removes the handler that turns a StopIteration of a generator's own into RuntimeError, since
// ended does that.
func withoutStopHandlers(c *bytecode.Code) {
	for _, inst := range c.Instructions {
		if inst.Handler != nil && inst.Handler.Target.Op == opcode.INTRINSIC_STOPITERATION_ERROR {
			inst.Handler = nil
		}
	}
}

// ended converts the error that ended the frame to the error that the caller gets.
func (g *GeneratorVariable) ended(tx *InstructionTranslator, err error) error {
	o, ok := err.(*exc.Observed)
	if !ok {
		return err
	}
	g.frame = nil
	stop, err := variables.RaisesA(tx, o, "StopIteration")
	if err != nil {
		return err
	}
	if !stop {
		return o
	}
	cause, err := variables.ExceptionOf(tx, o)
	if err != nil {
		return err
	}
	return variables.RaiseFrom(tx, "RuntimeError", "generator raised StopIteration", cause)
}

// GetAttr implements variables.AttrGetter.
func (g *GeneratorVariable) GetAttr(t variables.Translator, name string) (variables.VariableTracker, error) {
	if g.dropped {
		return nil, errNoSideExits
	}
	switch name {
	case "gi_running", "gi_suspended", "gi_yieldfrom", "gi_frame", "gi_code", "__name__", "__qualname__":
	default:
		return variables.MethodAttr(t, g, name)
	}
	if !variables.Materialized(g) {
		switch name {
		case "gi_running":
			return variables.BoolConst(g.running), nil
		case "gi_suspended":
			return variables.BoolConst(g.started && g.frame != nil && !g.running), nil
		}
	}
	return nil, exc.Break(exc.AttrUnsupported, "%s of a generator", name)
}

// CallMethod implements variables.MethodCaller.
func (g *GeneratorVariable) CallMethod(t variables.Translator, name string, args []variables.VariableTracker,
	kwargs []variables.Kw) (variables.VariableTracker, error) {
	tx := t.(*InstructionTranslator)
	finish := func(r variables.VariableTracker, more bool, err error) (variables.VariableTracker, error) {
		if err != nil || more {
			return r, err
		}
		return nil, variables.StopIteration(tx, r)
	}
	switch {
	case len(kwargs) > 0:
	case name == "__iter__" && len(args) == 0:
		return g, nil
	case name == "__next__" && len(args) == 0:
		return finish(g.resume(tx, variables.NoneConst(), nil))
	case name == "send" && len(args) == 1:
		if c, ok := variables.AsConstant(tx, args[0]); !g.started && g.frame != nil && (!ok || c != py.None()) {
			return nil, variables.RaiseText(tx, "TypeError", "can't send non-None value to a just-started generator")
		}
		return finish(g.resume(tx, args[0], nil))
	case name == "throw" && len(args) >= 1 && len(args) <= 3:
		o, err := tx.thrown(args)
		if err != nil {
			return nil, err
		}
		return finish(g.resume(tx, nil, o))
	case name == "close" && len(args) == 0:
		return g.close(tx)
	}
	return nil, exc.Break(exc.Generator, "%s of a generator", name)
}

// thrown returns the exception that throw(type, value, traceback) raises for these arguments.
func (tx *InstructionTranslator) thrown(args []variables.VariableTracker) (*exc.Observed, error) {
	v := args[0]
	if len(args) > 1 {
		if tx.World().ThrowWarns() {
			return nil, exc.Break(exc.Generator, "throw with more than one argument, which warns")
		}
		value, err := variables.Realize(tx, args[1])
		if err != nil {
			return nil, err
		}
		if c, ok := variables.AsConstant(tx, value); !ok || c != py.None() {
			if v = value; !variables.IsException(tx, v) {
				return nil, exc.Break(exc.Generator, "throw with arguments of an exception")
			}
		}
	}
	v, err := tx.exceptionInstance(v, "exceptions must be classes or instances deriving from BaseException, not str")
	if err != nil {
		return nil, err
	}
	e, ok := v.(*variables.ObjectVariable)
	if !ok {
		return nil, exc.Break(exc.Generator, "throw of %s", variables.Describe(tx, v))
	}
	o := variables.Raise(e)
	o.Again = variables.RaisedAt(e) != 0
	return o, nil
}

// close ends the generator as CPython does: it raises GeneratorExit where the frame stopped.
func (g *GeneratorVariable) close(tx *InstructionTranslator) (variables.VariableTracker, error) {
	if g.frame == nil || !g.started {
		g.frame = nil
		return variables.NoneConst(), nil
	}
	o := &exc.Observed{TypeName: "GeneratorExit"}
	result, more, err := g.resume(tx, nil, o)
	if more {
		return nil, variables.RaiseText(tx, "RuntimeError", "generator ignored GeneratorExit")
	}
	if raised, ok := err.(*exc.Observed); ok {
		exit, err := variables.RaisesA(tx, raised, "GeneratorExit")
		if err != nil || !exit {
			return nil, raised
		}
	} else if err != nil {
		return nil, err
	} else if tx.World().CloseReturns() {
		return result, nil
	}
	return variables.NoneConst(), nil
}

// freezeGenerator checks that a generator can be reconstructed for code that was not captured.
func (o *OutputGraph) freezeGenerator(g *GeneratorVariable) error {
	if g.started || g.frame == nil {
		return o.breakAt(g.createdAt, exc.Break(exc.Generator,
			"a generator that has started and that the program keeps"))
	}
	return nil
}

// stoppedInBlock reports whether the generator has stopped inside a `try` or `with` block. In CPython, the cleanup of
// such a block runs when the generator is destroyed.
func (g *GeneratorVariable) stoppedInBlock() bool {
	f := g.frame
	return f != nil && g.started && f.d.code.Instructions[f.ip-1].Block() != nil
}

// abandoned handles generators that have stopped inside `try` or `with`. CPython closes such a generator when the
// frame releases it, and closing it runs code. If this code has no visible effect, it does not matter when it runs;
// an example is an iterator of a Sequence that zip has not exhausted. Otherwise the translation restarts, and CPython
// makes and closes the generator.
func (o *OutputGraph) abandoned() error {
	return o.closeSuspended(func(*GeneratorVariable) bool { return false })
}

// closeDropped does this for the generators that the running frames hold no more. If one of them is used after all, the
// translation restarts without side exits.
func (o *OutputGraph) closeDropped() error {
	if !o.stoppedInBlock() {
		return nil
	}
	held := o.reached(nil).seen
	return o.closeSuspended(func(g *GeneratorVariable) bool { return held[g] })
}

func (o *OutputGraph) closeSuspended(held func(*GeneratorVariable) bool) error {
	for _, g := range slices.Clone(o.generators) { // the loop reads a copy, since closing one may remove others
		if !g.stoppedInBlock() || variables.Materialized(g) || held(g) {
			continue
		}
		f := g.frame
		writes, events := o.world.Writes, len(o.events)
		if o.current != nil && !g.running {
			if _, err := g.close(o.current); err != nil {
				if _, again := err.(*exc.RestartAnalysis); again {
					return err
				}
			} else if o.world.Writes == writes && len(o.events) == events {
				g.dropped = true
				continue
			}
		}
		return o.breakAt(g.createdAt, exc.Break(exc.Generator,
			"%s, left inside try or with, where closing it runs code", f.d.code.Name))
	}
	return nil
}
