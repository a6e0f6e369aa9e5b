// Package cache turns a finished translation into an entry of a frame's cache. It validates the translation, makes the
// entry, and runs the entry's guards once on the frame from which they were built. Only then can a later call use the
// entry.
//
// The entries themselves are C objects (pyhook/core/cache), since a hit must not enter Go and a forked child must find
// them. Go calls C through Installer, which pyhook implements.
package cache

import (
	"errors"
	"fmt"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
)

// GuardedCode is one translation of one code object. Its guards decide whether it serves a call.
//
// A chain is the stack of user frames at one place of the user's code: the translated function, and the calls inlined
// into it at that place. Everything below names a chain by its index in Chains.
type GuardedCode struct {
	Function py.Object       // the transformed function; zero if nothing was captured: then the user's code runs
	OrigCode py.Object       // the user's code object
	Program  *guards.Program // constants are indices into Pool
	Pool     []py.Object
	Extra    []uint32       // registers, ascending; their values are passed to Function after the slots
	Rows     []TracebackRow // sorted by Start
	Chains   [][]Level
	Shown    [][]ShownLocal // for each chain, the variables that a traceback shows
	Nth      []int          // for each chain, how often its instruction has already run since the last graph break
	// Done is set for a chain whose operation must not run a second time. If a signal or another thread raises an
	// exception at this operation, the user's code raises that exception and does not run the operation.
	Done []bool
	// Operations are the operations of the compiled graph, with their user frames. If an operation raises, the
	// traceback shows its user frames.
	Operations []Operation
	// NeedsHook is set if the code calls Python functions that were not inlined. Rerun is set if the graph leaves no
	// trace when it raises, so that the user's code can run instead. HandsOver is set for a resumed frame, which takes
	// over the references to its arguments. Catches is set if the code passes an exception of its native instruction to
	// a resume function. Watches is set if the user's code runs because it inspects the interpreter.
	NeedsHook, Rerun, HandsOver, Catches, Watches bool
	Info                                          py.Object // dict that explain() shows
}

// TracebackRow maps the code units Start .. End-1 of the transformed code to user frames.
type TracebackRow struct {
	Start, End, Chain int
	// Drop, Graph and Protected are the flags GD_TB_DROP, GD_TB_GRAPH and GD_TB_PROTECTED of core/golib.h.
	Drop, Graph, Protected bool
	// Place is the chain at which the user's code raises the exception of a signal or of another thread
	// (gd_tb_row.place).
	Place int
}

// Level is one user frame of a chain. Lasti is the byte offset of the frame's current instruction.
type Level struct {
	Code, Globals py.Object
	Lasti, Line   int
}

// ShownLocal is a variable that a traceback shows for the outermost frame of a chain. Index is the variable's index in
// localsplus. Place is the index of the transformed function's variable that holds the value. If Place is -1, Value is
// the value.
type ShownLocal struct {
	Index, Place int
	Value        py.Object
}

// Operation is a node of the backend's graph, or of the graph of a function that is passed to an operation. Name is
// the node's name in that graph, and Chain is the index of its chain. Outside is the number of the chain's levels
// outside that function, or 0 for the backend's graph.
type Operation struct {
	Name           string
	Chain, Outside int
}

// Installer makes entries. pyhook implements it with the C core.
type Installer interface {
	// Make returns the entry for g as a new reference.
	Make(s *py.Scope, g *GuardedCode) (py.Object, error)
	// Check runs an entry's guard program on a frame. It returns the index of the guard node that failed, or -1.
	Check(s *py.Scope, entry py.Object, slots []py.Object, globals py.Object) (int, error)
}

// ErrGuardFails is wrapped by the error that Install returns if the guards fail on the frame from which they were
// built. Such a failure is a bug in the translator.
var ErrGuardFails = errors.New("the guards fail on the frame they were built from")

// Validate checks the properties that the C code relies on.
func (g *GuardedCode) Validate() error {
	if err := g.Program.Verify(); err != nil {
		return err
	}
	last := -1
	for i, r := range g.Extra {
		if int(r) <= last || int(r) < g.Program.NumSlots+i || int(r) >= g.Program.NumRegs {
			return fmt.Errorf("cache: register %d cannot be handed over as value %d", r, i)
		}
		last = int(r)
	}
	start := -1
	for _, r := range g.Rows {
		if r.Start < start || r.End < r.Start || r.Chain < 0 || r.Chain >= len(g.Chains) {
			return fmt.Errorf("cache: malformed traceback row %+v", r)
		}
		start = r.Start
	}
	for _, chain := range g.Chains {
		for _, l := range chain {
			if l.Code.IsNull() || l.Code.Kind() != py.Code || l.Globals.IsNull() || l.Globals.Kind() != py.Dict {
				return fmt.Errorf("cache: a user frame of a traceback has no code or no globals")
			}
		}
	}
	for _, op := range g.Operations {
		if op.Chain < 0 || op.Chain >= len(g.Chains) || op.Outside < 0 || op.Outside > len(g.Chains[op.Chain]) {
			return fmt.Errorf("cache: operation %s without chain", op.Name)
		}
	}
	for _, c := range g.Program.Consts {
		if c.Index >= len(g.Pool) {
			return fmt.Errorf("cache: constant %d of %d", c.Index, len(g.Pool))
		}
	}
	return nil
}

// Install makes the entry and runs its guards on the frame from which they were built. It returns a new reference.
func (g *GuardedCode) Install(s *py.Scope, in Installer, slots []py.Object, globals py.Object) (py.Object, error) {
	if err := g.Validate(); err != nil {
		return py.Object{}, err
	}
	entry, err := in.Make(s, g)
	if err != nil {
		return py.Object{}, err
	}
	failed, err := in.Check(s, entry, slots, globals)
	if err == nil && failed < 0 {
		return entry, nil
	}
	s.Adopt(entry)
	if err == nil {
		err = fmt.Errorf("%w: %s", ErrGuardFails, g.part(failed))
	}
	return py.Object{}, err
}

// part returns the text of the guard to which a node of the program belongs, for error messages.
func (g *GuardedCode) part(node int) string {
	if node < 0 || node >= len(g.Program.Nodes) {
		return "?"
	}
	return g.Program.Parts[g.Program.Nodes[node].Part]
}
