// Package exc defines the ways in which translating a frame can fail. Each is named by its consequence. Unsupported
// requests a graph break. SkipFrame leaves the frame to CPython. RestartAnalysis starts another attempt with more
// knowledge. Observed is an exception of the user's code. Raised is an exception that must be raised to the user. Any
// other error that reaches the entry point is a bug in godynamo.
//
// Break codes, reasons and hints are fixed texts from the catalog in catalog.go, so that they can be counted.
// docs/graph_breaks.md is generated from the catalog.
package exc

import (
	"fmt"
	"strings"
)

// Frame is one level of the user's stack: the code's name, the file and line, and the part of the line if it is known.
type Frame struct {
	Name, File string
	Line       int
	// EndLine is the line where the instruction's text ends. Col and EndCol are the text's bounds in bytes, counted
	// from 0. EndCol is 0 if they are unknown.
	EndLine, Col, EndCol int
}

// At returns the frame with the bounds of an instruction's text from the code's line table. Negative values mean
// unknown.
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
	Stack   []Frame // innermost first; the error collects the frames through which it passes
	// DataDependent marks a branch whose condition is not known while translating, such as the value of a tensor.
	// CPython runs the branch, and each of its two arms is resumed.
	DataDependent bool
	// Before requests a break before the instruction. The resumed frame then starts with the instruction and can
	// capture it.
	Before bool
	// Earlier reports that the break is at an earlier instruction than the one that made it necessary.
	Earlier bool
	// Frame marks a call that inspects its caller's frame. The call runs in the user's own frame, not in a transformed
	// one.
	Frame bool
	// AsksFrame reports that an inlined function that the error has left asks for frame objects.
	AsksFrame bool
	// Asked reports that the innermost enclosing region (godynamo.error_on_graph_break) has already decided
	// whether a break is an error.
	Asked bool
	// Forbidden reports that the region has decided that the break is an error. The break is then raised to the user.
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

// Reason returns the break's fixed text, followed by its context.
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

// SkipFrame leaves a code object to CPython. If Always is set, this holds for every later call as well. If Later is
// set, it holds only for this call: the next call may behave differently. With Later, it is no error under the option
// `nopython`.
type SkipFrame struct {
	Code          Code
	Reason        string
	Always, Later bool
}

// Skip returns the error that leaves the frame to CPython because a graph break is impossible.
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

// Observed means that the user's code raises an exception here: in an operation on known values, which CPython
// evaluated, or in a `raise` statement. If an active frame has a handler, the handler receives the exception. Otherwise
// the graph breaks before the instruction, and CPython raises the exception. Text is for reports. Value is the
// exception that the user's code can read.
type Observed struct {
	TypeName, Text string
	Value          any  // the exception's tracker (variables.ObjectVariable); nil until it is needed
	Real           any  // the exception CPython raised (py.Object), or nil if CPython raised none
	Vague          bool // Text has less detail than CPython's text
	Again          bool // the exception is raised again, so its context does not change
}

func (e *Observed) Error() string { return "the program raises " + e.TypeName + ": " + e.Text }

// Raised means that a Python exception is set and must reach the user, for example from a backend that failed, or a
// KeyboardInterrupt.
type Raised struct{ What string }

func (e *Raised) Error() string { return "raise to the user: " + e.What }
