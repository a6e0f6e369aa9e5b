package translate

import (
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/variables"
)

// SpeculationLog records the steps at which earlier attempts to translate this frame failed, and the reasons. A step is
// the number of instructions executed since the frame's start, inlined ones included. Since translation is
// deterministic, each attempt has the same steps up to the next recorded failure.
type SpeculationLog struct {
	entries map[int]error
	last    error // the newest entry
	// python has the steps whose instruction becomes a Python operation of the graph; see pythonForm.
	python map[int]bool
	// strict is set if effects break the graph; see OutputGraph.effectsLost.
	strict bool
	// unprotected is set if operations inside `try` and `with` are not captured; see OutputGraph.protect.
	unprotected bool
	// stateless is set if calls that switch torch's modes are not captured; see OutputGraph.switchedUnscoped.
	stateless bool
	// noSideExits is set if no operation has a side exit (resume_side_exit.go).
	noSideExits bool
	// fixed has the steps at which sizes are constants, since an earlier attempt broke the graph there at a size.
	fixed map[int]bool
	// predicates has the steps of comparisons of sizes that are not decided, since an operation of an exported graph
	// takes their outcome. They are the same steps in each attempt, as in entries.
	predicates map[int]bool
	// unrolled has the steps of loops that are not captured once for all numbers of turns; see graph_loops.go.
	unrolled map[int]bool
	// unrolls counts the attempts that ended because a loop could not be captured once. noLoops ends such attempts.
	unrolls int
	noLoops bool
	// fixesOpaque is set if floats and texts computed from sizes are constants, not values known only at run time.
	// opaqueTried has the steps of earlier graph breaks for which an attempt did this.
	fixesOpaque bool
	opaqueTried map[int]bool
	// opaqueRoot describes the newest of these breaks.
	opaqueRoot rootBreak
	because    error // the newest break for which sizes are constants, for the log
	floats     floatLog
	// hooked is set if the translation depends on whether saved-tensor hooks are active; see OutputGraph.hooked.
	hooked  bool
	customs customLog  // see graph_custom_backward.go
	history historyUse // see graph_history.go
	// inline is set if the inline backend translates the frame, whatever the backend is; see errHistory.
	inline bool
	impure map[int]bool // steps of calls that cannot be made while translating (graph_pure.go)
	// until has functions to call at the start of each attempt; see variables.Output.
	until []func(tx variables.Translator)
}

func newSpeculationLog() *SpeculationLog { return &SpeculationLog{entries: map[int]error{}} }

// withoutSteps returns a log for another attempt, whose steps may be others. It has the facts about the whole frame.
func (l *SpeculationLog) withoutSteps() *SpeculationLog {
	return &SpeculationLog{entries: map[int]error{}, strict: l.strict, unprotected: l.unprotected,
		stateless: l.stateless, noSideExits: l.noSideExits, customs: l.customs, history: l.history, inline: l.inline}
}

// again returns a log for another attempt from the start, with the facts about the whole frame but no failed steps.
func (l *SpeculationLog) again() *SpeculationLog {
	next := l.withoutSteps()
	next.hooked, next.impure = l.hooked, l.impure
	return next
}

// after returns the log for the attempt that err requests, or nil if err requests none. It changes opts to what the
// last attempt has shown of the backend.
func (l *SpeculationLog) after(err error, opts *Options) *SpeculationLog {
	next := l.again()
	switch err {
	case errEffectsLost:
		next.strict, next.stateless = true, false
	case errNotProtected:
		next.unprotected = true
	case errNoSideExits:
		next.noSideExits = true
	case errStateless:
		next.stateless = true
	case errTakenApart:
		opts.TakesApart = true
	case errFixesSizes:
		takes := opts.TakesApart || opts.TakesSymbols
		opts.SymbolicSizes, opts.FixesSizes = !takes && !opts.FixesSizes, true
		return l.withoutSteps()
	case errNumbersRefused:
		return l.withoutSteps()
	case errHistory:
		next = l.withoutSteps()
		next.inline = true
	default:
		return nil
	}
	return next
}

func (l *SpeculationLog) failedAt(step int) (error, bool) {
	err, ok := l.entries[step]
	return err, ok
}

// breakAt requests another attempt in which the graph breaks at an earlier step of the outermost frame.
func (o *OutputGraph) breakAt(step int, err error) error {
	if l := o.loops.active; l != nil {
		return o.unroll(l.step, err.Error())
	}
	u, isBreak := err.(*exc.Unsupported)
	if isBreak && u.Stack == nil && o.current != nil {
		u.Stack, u.Earlier = o.position().stack(), true
	}
	for t := o.current; isBreak && t != nil; t = t.parent {
		t.askRegion(u)
	}
	if isBreak && u.Forbidden {
		return u
	}
	if _, ok := o.log.failedAt(step); ok {
		if isBreak {
			return exc.Skip(u)
		}
		return &exc.SkipFrame{Reason: err.Error()}
	}
	return o.log.add(step, err)
}

// breakAtFlag returns err, the graph break at a branch on v. If an inlined function branches on a bool that the
// outermost frame has computed before, it requests an attempt in which the graph breaks where the bool is made. From
// there on its value is guarded, and one graph holds the calls that branch on it. With a break at the branch, each of
// these calls would be a frame with pieces of its own.
func (tx *InstructionTranslator) breakAtFlag(v variables.VariableTracker, err error) error {
	u, ok := err.(*exc.Unsupported)
	if !ok || !u.DataDependent || tx.parent == nil {
		return err
	}
	if step := variables.FlagMadeAt(tx, v); step != 0 && step != tx.out.rootStep {
		return tx.out.breakAt(step, err)
	}
	return err
}

func (l *SpeculationLog) add(step int, err error) error {
	l.entries[step], l.last = err, err
	return &exc.RestartAnalysis{Reason: err.Error()}
}

// withConstants reports whether another attempt with constants in place of sizes may get past err, the graph break at
// this step. If so, the log has the settings of that attempt. looks is the value of World.SizeLooks before the step,
// and floatLooks the length of World.FloatLooks.
//
// With constants, other instructions may run before a break. What matters is the instruction of the outermost frame,
// since the graph breaks there.
func (tx *InstructionTranslator) withConstants(step, looks, floatLooks int, err error) bool {
	o := tx.out
	l, w := o.log, o.world
	switch {
	case o.steps == step && w.SizeLooks != looks && !l.fixed[step]:
		if l.fixed == nil {
			l.fixed = map[int]bool{}
		}
		l.fixed[step], l.because = true, err
		return true
	case l.fixesOpaque && l.opaqueTried[step]: // the attempt did not help
		l.fixesOpaque = false
	case l.fixesOpaque && tx.parent == nil && !l.opaqueRoot.before(tx.rootBreak()): // nor did this attempt
		l.fixesOpaque = false
		return true // the next attempt breaks the graph at the step in opaqueTried
	case w.Opaque > 0 && !l.opaqueTried[step] && len(l.opaqueTried) < maxOpaqueTried:
		if l.opaqueTried == nil {
			l.opaqueTried = map[int]bool{}
		}
		l.fixesOpaque, l.opaqueTried[step], l.because = true, true, err
		l.opaqueRoot = tx.rootBreak()
		return true
	}
	return o.withConstantFloats(step, floatLooks)
}

// rootBreak is a graph break, seen from the outermost frame: its instruction, and the number of operations before it.
type rootBreak struct{ offset, ops int }

// before reports whether another break may be further on.
func (b rootBreak) before(other rootBreak) bool { return other.offset != b.offset || other.ops > b.ops }

func (tx *InstructionTranslator) rootBreak() rootBreak {
	root := tx
	for root.parent != nil {
		root = root.parent
	}
	return rootBreak{root.inst.Offset, tx.out.rootOps}
}

// maxOpaqueTried bounds the attempts with fixesOpaque.
const maxOpaqueTried = 2
