// Package exc names what can go wrong while a frame is translated, by consequence: a graph break (Unsupported), a frame
// left to CPython (SkipFrame), a second try knowing more (RestartAnalysis), an exception of the user's own program
// (Observed), a failure to be raised to the user (Raise). Anything else that reaches the entry point is a bug of ours.
//
// Break codes, reasons and hints are fixed text from the catalog in catalog.go, so that counts of them add up;
// docs/graph_breaks.md is printed from it.
package exc

import (
	"fmt"
	"strings"
)

// Frame is one level of the user's stack: code name, file and line; and which part of the line, where it is known.
type Frame struct {
	Name, File string
	Line       int
	// EndLine is where the instruction's text ends, Col and EndCol its bounds in bytes from 0; EndCol is 0 where they are not known.
	EndLine, Col, EndCol int
}

// At returns the frame with the bounds of an instruction's text: what its line table says, negative where that says nothing.
func (f Frame) At(endLine, col, endCol int32) Frame {
	if endLine > 0 && col >= 0 && endCol > 0 {
		f.EndLine, f.Col, f.EndCol = int(endLine), int(col), int(endCol)
	}
	return f
}

// Unsupported asks for a graph break.
type Unsupported struct {
	Code    Code
	Context string  // what was at hand; free text
	Stack   []Frame // innermost first; every frame passed adds itself
	// DataDependent marks a branch on a tensor's value: the step loop splits the frame into two arms.
	DataDependent bool
	// Before asks for a split in front of the instruction, which starts the rest of the frame: it can be captured there.
	Before bool
	// Earlier: it was found out later in the frame than where the split is, which says where it stands.
	Earlier bool
	// Frame marks a call that looks at its caller's frame: it runs in the user's own, not in a transformed one.
	Frame bool
	// Asked says that the innermost region around it (godynamo.error_on_graph_break) has been asked whether a break is an error there.
	Asked bool
	// Forbidden says that it is: the break is raised to the user.
	Forbidden bool
}

func (e *Unsupported) Error() string {
	row := e.Code.Entry()
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", row.ID, row.Reason)
	if e.Context != "" {
		fmt.Fprintf(&b, " (%s)", e.Context)
	}
	return b.String()
}

// Reason is the fixed text of the break with its context.
func (e *Unsupported) Reason() string {
	row := e.Code.Entry()
	if e.Context == "" {
		return row.Reason
	}
	return row.Reason + ": " + e.Context
}

// Break returns the error that asks for a graph break.
func Break(code Code, format string, args ...any) error {
	return &Unsupported{Code: code, Context: fmt.Sprintf(format, args...)}
}

// SkipFrame leaves a code object to CPython. With Always the verdict holds for every later call of it; with Later it is this call's
// alone, which is not captured because it does what the next one need not: no error under nopython either.
type SkipFrame struct {
	Code          Code
	Reason        string
	Always, Later bool
}

// Skip returns the error that leaves the frame to CPython where a graph break cannot be.
func Skip(u *Unsupported) error { return &SkipFrame{Code: u.Code, Reason: u.Reason()} }

// Postpone returns the error that leaves this call alone to CPython.
func Postpone(code Code, format string, args ...any) error {
	u := &Unsupported{Code: code, Context: fmt.Sprintf(format, args...)}
	return &SkipFrame{Code: code, Reason: u.Reason(), Later: true}
}

func (e *SkipFrame) Error() string { return "skip frame: " + e.Reason }

// RestartAnalysis asks the driver to translate the same frame again; the SpeculationLog has one more entry.
type RestartAnalysis struct{ Reason string }

func (e *RestartAnalysis) Error() string { return "restart: " + e.Reason }

// Observed says that the user's program raises here: CPython, asked to evaluate an operation on known values, raised it, or a
// raise statement did. A handler of an active frame gets it; where there is none, the frame is split before the
// instruction, and CPython raises it for real. Text is for people; what the program may read is in Value.
type Observed struct {
	TypeName, Text string
	Value          any  // the tracker of the exception (variables.ObjectVariable), nil until somebody asks for it
	Real           any  // the exception CPython raised (py.Object), nil when it was none of CPython's
	Vague          bool // Text says less than CPython's
	Again          bool // raised again: its context stays as it is
}

func (e *Observed) Error() string { return "the program raises " + e.TypeName + ": " + e.Text }

// Raised says that a Python exception is set and must reach the user (a backend that failed, KeyboardInterrupt).
type Raised struct{ What string }

func (e *Raised) Error() string { return "raise to the user: " + e.What }
