package pyhook

import (
	"time"

	"github.com/godynamo/godynamo/bytecode/translate"
	"github.com/godynamo/godynamo/pyhook/py"
	"go.uber.org/zap"
)

// madeByAttr is the attribute in which a resume function stores the number of the translation that made it.
const madeByAttr = "__godynamo_made_by__"

// beginTrace gets the translation's number from godynamo._observe.trace and starts measuring times. It does
// nothing if no trace is written.
func (t *translation) beginTrace() {
	if t.settings.watched&watchedTrace == 0 {
		return
	}
	s := t.scope
	m, ok := py.Answered(s.Import("godynamo._observe.trace"))
	if !ok {
		return
	}
	id, err := s.CallMethod(m, "begin", t.frame.Function, t.frame.Code)
	if err != nil || id.Kind() != py.Int {
		untold(s, err)
		return
	}
	t.trace = id
	t.settings.Clock = translate.NewClock()
}

// endTrace writes the translation's event to the trace (godynamo._observe.trace.finished): the report for
// _called/runtime.translated, the graph's whole text, the guards by part, and the times.
func (t *translation) endTrace(status string, why error) {
	if t.trace.IsNull() {
		return
	}
	s := t.scope
	m, ok := py.Answered(s.Import("godynamo._observe.trace"))
	if !ok {
		return
	}
	told, err := t.ended(status, why)
	if err != nil {
		return
	}
	graph, sizes, parts, nodes := "", "", []py.Object{}, 0
	if r := t.result; r != nil {
		if r.GraphText != nil && r.NumOps > 0 {
			graph = r.GraphText()
			if r.GraphSizes != nil {
				sizes = r.GraphSizes()
			}
		}
		if p := r.Program; p != nil {
			nodes = len(p.Nodes)
			for i, text := range p.Parts {
				row := []py.Object{s.Str(text), s.Name(""), s.Int(0)}
				if i < len(p.PartLines) {
					row[1], row[2] = s.Name(p.PartLines[i].File), s.Int(int64(p.PartLines[i].Line))
				}
				parts = append(parts, s.Tuple(row...))
			}
		}
	}
	entry := py.None()
	if !t.entry.IsNull() {
		entry = t.entry
	}
	more, err := s.Dict(
		[2]py.Object{s.Name("backend"), s.Str(t.settings.backend.Name())},
		[2]py.Object{s.Name("graph"), s.Str(graph)},
		[2]py.Object{s.Name("sizes"), s.Str(sizes)},
		[2]py.Object{s.Name("entry"), entry},
		[2]py.Object{s.Name("parts"), s.Tuple(parts...)},
		[2]py.Object{s.Name("nodes"), s.Int(int64(nodes))},
		[2]py.Object{s.Name("resumes_at"), s.Int(int64(t.settings.Clock.ResumedAt))},
		[2]py.Object{s.Name("attempts"), s.Int(int64(t.settings.Clock.Attempts))},
		[2]py.Object{s.Name("times"), phaseTimes(s, t.settings.Clock)},
		[2]py.Object{s.Name("calls"), callTimes(s, t.settings.Clock)},
	)
	if err == nil {
		_, err = s.CallMethod(m, "finished", t.trace, told, more)
	}
	untold(s, err)
}

// untold logs why an event could not be written. Such a failure does not fail the translation.
func untold(s *py.Scope, err error) {
	if err != nil {
		logger(s).Debug("an event could not be told", zap.Error(err))
	}
}

// microseconds converts a duration to the unit of reported times.
func microseconds(s *py.Scope, d time.Duration) py.Object {
	return s.Float(float64(d.Nanoseconds()) / 1e3)
}

// phaseTimes returns ((phase, µs), ...).
func phaseTimes(s *py.Scope, c *translate.Clock) py.Object {
	var rows []py.Object
	for p, d := range c.Phases() {
		rows = append(rows, s.Tuple(s.Name(translate.Phase(p).String()), microseconds(s, d)))
	}
	return s.Tuple(rows...)
}

// callTimes returns ((parent, name, file, line, count, µs), ...) of the calls, each caller before its callees.
func callTimes(s *py.Scope, c *translate.Clock) py.Object {
	var rows []py.Object
	for _, call := range c.Calls {
		rows = append(rows, s.Tuple(s.Int(int64(call.Parent)), s.Str(call.Name), s.Str(call.File),
			s.Int(int64(call.Line)),
			s.Int(int64(call.Count)), microseconds(s, *call.Self)))
	}
	return s.Tuple(rows...)
}
