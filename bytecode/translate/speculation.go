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
	// until has functions to call at the start of each attempt; see variables.Output.
	until []func(tx variables.Translator)
}

func newSpeculationLog() *SpeculationLog { return &SpeculationLog{entries: map[int]error{}} }

func (l *SpeculationLog) failedAt(step int) (error, bool) {
	err, ok := l.entries[step]
	return err, ok
}

// breakAt requests another attempt in which the graph breaks at an earlier step of the outermost frame.
func (o *OutputGraph) breakAt(step int, err error) error {
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

func (l *SpeculationLog) add(step int, err error) error {
	l.entries[step], l.last = err, err
	return &exc.RestartAnalysis{Reason: err.Error()}
}
