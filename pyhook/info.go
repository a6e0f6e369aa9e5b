package pyhook

// #include "bridge.h"
import "C"

import (
	"time"

	"github.com/godynamo/godynamo/bytecode/translate"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// translation holds one cache miss (a call for which no entry's guards held) and its outcome, which is reported
// to Python.
type translation struct {
	scope    *py.Scope
	settings *settings
	frame    *translate.Frame
	request  *C.gd_request
	result   *translate.Result
	entry    py.Object // the installed entry; null if there is none
	trace    py.Object // the translation's number in the trace; null if no trace is written
	started  time.Time
}

// infoDict returns the record of a translation that explain() shows: counts, breaks, inlined callees, graph
// text.
func infoDict(s *py.Scope, r *translate.Result) (py.Object, error) {
	names := func(list []string) py.Object { return strTuple(s, list) }
	graph := ""
	if r.GraphText != nil && r.NumOps > 0 && r.NumOps <= 200 {
		graph = r.GraphText()
	}
	breaks := make([]py.Object, len(r.Breaks))
	for i, b := range r.Breaks {
		breaks[i] = breakTuple(s, b)
	}
	python := make([]py.Object, len(r.PythonOps))
	for i, p := range r.PythonOps {
		python[i] = s.Tuple(s.Str(p.Callee), s.Int(int64(p.Count)))
	}
	account, err := accountDict(s, r.Account)
	if err != nil {
		return py.Object{}, err
	}
	return s.Dict(
		[2]py.Object{s.Name("account"), account},
		[2]py.Object{s.Name("ops"), s.Int(int64(r.NumOps))},
		[2]py.Object{s.Name("graphs"), s.Int(int64(r.NumGraphs))},
		[2]py.Object{s.Name("graph"), s.Str(graph)},
		[2]py.Object{s.Name("guards"), s.Str(r.Text)},
		[2]py.Object{s.Name("breaks"), s.Tuple(breaks...)},
		[2]py.Object{s.Name("positions"), positionsTuple(s, r.Breaks)},
		[2]py.Object{s.Name("guard_kinds"), s.Str(guardKinds(r))},
		[2]py.Object{s.Name("python_ops"), s.Tuple(python...)},
		[2]py.Object{s.Name("inlined"), names(r.Inlined)},
		[2]py.Object{s.Name("reused_layers"), s.Int(int64(r.Reused))},
		[2]py.Object{s.Name("resumes"), names(r.ResumeNames)},
		[2]py.Object{s.Name("nothing_to_capture"), py.Bool(r.Nothing)},
		[2]py.Object{s.Name("skipped"), s.Str(r.Skipped)},
		[2]py.Object{s.Name("uncompiled"), py.Bool(r.Uncompiled)},
		[2]py.Object{s.Name("exported"), exportedTuple(s, r.Exported)},
	)
}

// exportedTuple returns translate.Exported as a tuple of its fields, for godynamo._user.program, or None.
func exportedTuple(s *py.Scope, e *translate.Exported) py.Object {
	if e == nil {
		return py.None()
	}
	var tensors, fixed []py.Object
	for _, t := range e.Tensors {
		tensors = append(tensors, s.Tuple(s.Str(t.Text), s.Int(int64(t.Dims))))
	}
	for _, v := range e.Fixed {
		fixed = append(fixed, s.Tuple(s.Str(v.Text), s.Int(v.Value), s.Str(v.Line.File), s.Int(int64(v.Line.Line))))
	}
	return s.Tuple(strTuple(s, e.Extras), s.Tuple(tensors...), s.Tuple(fixed...))
}

// strTuple returns a tuple of str.
func strTuple(s *py.Scope, list []string) py.Object {
	out := make([]py.Object, len(list))
	for i, n := range list {
		out[i] = s.Str(n)
	}
	return s.Tuple(out...)
}

// guardKinds returns the guards of the program's parts, in the form that godynamo._explain.guard_objects reads.
func guardKinds(r *translate.Result) string {
	if r.Program == nil {
		return ""
	}
	return r.Program.Kinds
}

// breakTuple returns (code, reason, hint, ((name, file, line), ...)), innermost frame first.
func breakTuple(s *py.Scope, u *exc.Unsupported) py.Object {
	row := u.Code.Entry()
	return s.Tuple(s.Name(row.ID), s.Str(u.Reason()), s.Name(row.Hint), framesTuple(s, u.Stack))
}

// framesTuple returns ((name, file, line), ...), innermost frame first.
func framesTuple(s *py.Scope, stack []exc.Frame) py.Object {
	out := make([]py.Object, len(stack))
	for i, f := range stack {
		out[i] = s.Tuple(s.Name(f.Name), s.Name(f.File), s.Int(int64(f.Line)))
	}
	return s.Tuple(out...)
}

// positionsTuple returns the columns of each frame of each break, so that a message can mark the expression
// in its line: (((end line, column, end column) or None, ...), ...).
func positionsTuple(s *py.Scope, breaks []*exc.Unsupported) py.Object {
	out := make([]py.Object, len(breaks))
	for i, u := range breaks {
		frames := make([]py.Object, len(u.Stack))
		for k, f := range u.Stack {
			frames[k] = py.None()
			if f.EndCol > 0 {
				frames[k] = s.Tuple(s.Int(int64(f.EndLine)), s.Int(int64(f.Col)), s.Int(int64(f.EndCol)))
			}
		}
		out[i] = s.Tuple(frames...)
	}
	return s.Tuple(out...)
}

// statusLoaded is the status of a translation that was read from a file.
const statusLoaded = "loaded"

// tell reports a finished translation to godynamo._called.runtime.translated (counters, logs, explain) and to the
// trace.
func (t *translation) tell(status string, why error) {
	s := t.scope
	m, ok := py.Answered(s.Import("godynamo._called.runtime"))
	if !ok {
		return
	}
	d, err := t.ended(status, why)
	if err == nil {
		_, err = s.CallMethod(m, "translated", d)
		untold(s, err)
	}
	t.show(why)
	t.endTrace(status, why)
}

// brokenBy returns the graph breaks of a translation. The break that ended the translation comes last.
func (t *translation) brokenBy(why error) []*exc.Unsupported {
	var all []*exc.Unsupported
	if t.result != nil {
		all = append(all, t.result.Breaks...)
	}
	if u, ok := why.(*exc.Unsupported); ok {
		all = append(all, u)
	}
	return all
}

// ended returns the report of a finished translation; see godynamo._called.runtime.translated.
func (t *translation) ended(status string, why error) (py.Object, error) {
	s := t.scope
	reason := ""
	if why != nil {
		reason = why.Error()
		if u, ok := why.(*exc.Unsupported); ok {
			reason = u.Reason()
		}
	}
	info := py.None()
	if t.result != nil {
		if d, err := infoDict(s, t.result); err == nil {
			info = d
		}
	}
	failures := py.None()
	if t.request.failures != nil {
		failures = object(t.request.failures)
	}
	breaks := []py.Object{}
	var broken []*exc.Unsupported
	left := exc.FrameLeft
	switch u := why.(type) {
	case *exc.Unsupported:
		breaks, broken = append(breaks, breakTuple(s, u)), append(broken, u)
		left = u.Code
	case *exc.SkipFrame:
		left, reason = u.Code, u.Reason
	}
	fn := py.None()
	if t.result != nil && !t.result.Function.IsNull() {
		fn = t.result.Function
	}
	loaded := status == statusLoaded
	if loaded { // programs that read counters see no difference from a translation
		status = "ok"
		if info, _ = py.Answered(s.GetAttr(t.entry, "info")); info.IsNull() {
			info = py.None()
		}
		if fn, _ = py.Answered(s.GetAttr(t.entry, "function")); fn.IsNull() {
			fn = py.None()
		}
	}
	return s.Dict(
		[2]py.Object{s.Name("status"), s.Name(status)},
		[2]py.Object{s.Name("reason"), s.Str(reason)},
		[2]py.Object{s.Name("loaded"), py.Bool(loaded)},
		[2]py.Object{s.Name("left"), s.Name(left.Entry().ID)},
		[2]py.Object{s.Name("code"), t.frame.Code},
		[2]py.Object{s.Name("function"), fn},
		[2]py.Object{s.Name("owner"), object(t.request.owner)},
		[2]py.Object{s.Name("kind"), s.Int(int64(t.request.kind))},
		[2]py.Object{s.Name("entries"), s.Int(int64(t.request.nentries))},
		[2]py.Object{s.Name("failures"), failures},
		[2]py.Object{s.Name("seconds"), s.Float(time.Since(t.started).Seconds())},
		[2]py.Object{s.Name("breaks"), s.Tuple(breaks...)},
		[2]py.Object{s.Name("positions"), positionsTuple(s, broken)},
		[2]py.Object{s.Name("info"), info},
		[2]py.Object{s.Name("fixed"), strTuple(s, t.fixed())},
		[2]py.Object{s.Name("first_type"), t.firstType()},
	)
}

// firstType returns the type of the frame's first variable, or None. For a method this is the class of
// `self`; Python uses it to name frames of torch's wrapper around a module's forward.
func (t *translation) firstType() py.Object {
	if len(t.frame.Slots) == 0 || t.frame.Slots[0].IsNull() {
		return py.None()
	}
	return t.frame.Slots[0].Type()
}

// raiseUnsupported sets the Python exception for exc.Unsupported, as nopython=True requires. The exception
// carries the report that explain prints.
func (t *translation) raiseUnsupported(reason string, u *exc.Unsupported) int {
	s := t.scope
	m, ok := py.Answered(s.Import("godynamo._called.runtime"))
	if !ok {
		return C.GD_PASS
	}
	breaks, broken := []py.Object{}, []*exc.Unsupported{}
	if u != nil {
		breaks, broken = append(breaks, breakTuple(s, u)), append(broken, u)
	}
	d, ok := py.Answered(s.Dict(
		[2]py.Object{s.Name("reason"), s.Str(reason)},
		[2]py.Object{s.Name("code"), t.frame.Code},
		[2]py.Object{s.Name("breaks"), s.Tuple(breaks...)},
		[2]py.Object{s.Name("positions"), positionsTuple(s, broken)},
		[2]py.Object{s.Name("first_type"), t.firstType()},
	))
	if !ok {
		return C.GD_PASS
	}
	_, err := s.CallMethod(m, "raise_unsupported", d)
	if e, ok := err.(*py.Error); ok {
		s.Restore(e)
		return C.GD_RAISE
	}
	return C.GD_PASS
}

// userError reports whether a Python exception must reach the user: a backend failed, or the user pressed
// Ctrl-C.
func (t *translation) userError(e *py.Error) bool {
	m, ok := py.Answered(t.scope.Import("godynamo._called.runtime"))
	if !ok {
		return false
	}
	r, ok := py.Answered(t.scope.CallMethod(m, "is_user_error", e.Value))
	return ok && r == py.True()
}
