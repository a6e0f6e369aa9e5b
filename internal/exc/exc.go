// Package exc names the failures of translating a frame by their consequence: a graph break (Unsupported), a frame
// left to CPython (SkipFrame), another attempt with more knowledge (RestartAnalysis), an exception of the user's code
// (Observed), a failure to be raised to the user (Raised). Any other error that reaches the entry point is a bug in
// godynamo.
//
// Break codes, reasons and hints are fixed text from the catalog in catalog.go, so that they can be counted;
// docs/graph_breaks.md is generated from it.
package exc

import (
	"fmt"
	"strings"
)

// Frame is one level of the user's stack: code name, file and line, and the part of the line if known.
type Frame struct {
	Name, File string
	Line       int
	// EndLine is the line where the instruction's text ends; Col and EndCol are its bounds in bytes from 0.
	// EndCol is 0 if they are unknown.
	EndLine, Col, EndCol int
}

// At returns the frame with the bounds of an instruction's text, from its line table; negative values are unknown.
func (f Frame) At(endLine, col, endCol int32) Frame {
	if endLine > 0 && col >= 0 && endCol > 0 {
		f.EndLine, f.Col, f.EndCol = int(endLine), int(col), int(endCol)
	}
	return f
}

// Unsupported requests a graph break.
type Unsupported struct {
	Code    Code
	Context string  // details; free text
	Stack   []Frame // innermost first; every frame that the error passes adds itself
	// DataDependent marks a branch on a tensor's value: the step loop resumes the frame in two arms.
	DataDependent bool
	// Before requests a break before the instruction, so that the resumed frame starts with it and can capture it.
	Before bool
	// Earlier reports that the break is at an earlier place than the one where it was found necessary.
	Earlier bool
	// Frame marks a call that inspects its caller's frame: it runs in the user's own frame, not in a transformed one.
	Frame bool
	// Asked reports that the innermost enclosing region (godynamo.error_on_graph_break) has already decided
	// whether a break is an error.
	Asked bool
	// Forbidden reports that the region has decided that it is an error: the break is raised to the user.
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

// Reason returns the break's fixed text with its context.
func (e *Unsupported) Reason() string {
	row := e.Code.Entry()
	if e.Context == "" {
		return row.Reason
	}
	return row.Reason + ": " + e.Context
}

// Break returns the error that requests a graph break.
func Break(code Code, format string, args ...any) error {
	return &Unsupported{Code: code, Context: fmt.Sprintf(format, args...)}
}

// SkipFrame leaves a code object to CPython. With Always, the verdict holds for every later call. With
// Later, it holds only for this call, since the next call need not do the same; nopython does not make it
// an error.
type SkipFrame struct {
	Code          Code
	Reason        string
	Always, Later bool
}

// Skip returns the error that leaves the frame to CPython if a graph break is impossible.
func Skip(u *Unsupported) error { return &SkipFrame{Code: u.Code, Reason: u.Reason()} }

// Postpone returns the error that leaves only this call to CPython.
func Postpone(code Code, format string, args ...any) error {
	u := &Unsupported{Code: code, Context: fmt.Sprintf(format, args...)}
	return &SkipFrame{Code: code, Reason: u.Reason(), Later: true}
}

func (e *SkipFrame) Error() string { return "skip frame: " + e.Reason }

// RestartAnalysis makes the driver translate the frame again, with one more entry in the SpeculationLog.
type RestartAnalysis struct{ Reason string }

func (e *RestartAnalysis) Error() string { return "restart: " + e.Reason }

// Observed means that the user's code raises here: CPython raised the exception while evaluating an
// operation on known values, or a raise statement did. A handler of an active frame receives it. Without a
// handler, the graph breaks before the instruction, and CPython raises the exception. Text is for reports;
// the exception that the user's code can read is in Value.
type Observed struct {
	TypeName, Text string
	Value          any  // tracker of the exception (variables.ObjectVariable), nil until needed
	Real           any  // the exception CPython raised (py.Object), or nil if CPython raised none
	Vague          bool // Text has less detail than CPython's text
	Again          bool // reraised: its context stays as it is
}

func (e *Observed) Error() string { return "the program raises " + e.TypeName + ": " + e.Text }

// Raised means that a Python exception is set and must reach the user (a backend that failed, KeyboardInterrupt).
type Raised struct{ What string }

func (e *Raised) Error() string { return "raise to the user: " + e.What }
