package pyhook

// #include "bridge.h"
import "C"

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/translate"
	"github.com/godynamo/godynamo/pyhook/py"
)

// The artifacts that GODYNAMO_LOGS can enable, as bits of the result of watched(). The order is that of
// godynamo._observe.logging.ARTIFACTS.
const (
	showGraph = 1 << (iota + 8)
	showGraphCode
	showGraphSizes
	showGuards
	showVerboseGuards
	showGraphBreaks
	showRecompiles
	showRecompilesVerbose
	showBytecode
	showTraceSource
	showTraceCall
	showTraceBytecode
	showDynamic

	showAny = -1 << 8
)

// artifact logs the text of one artifact to the artifact's own logger.
func (t *translation) artifact(name, text string) {
	logger(t.scope).Named(name).Debug(strings.TrimRight(text, "\n"))
}

// ask calls a function of godynamo._observe.artifacts that returns a text. It returns "" if the call fails.
func (t *translation) ask(name string, args ...py.Object) string {
	m, ok := py.Answered(t.scope.Import("godynamo._observe.artifacts"))
	if !ok {
		return ""
	}
	v, ok := py.Answered(t.scope.CallMethod(m, name, args...))
	if !ok || v.Kind() != py.Str {
		return ""
	}
	return py.GoString(v)
}

// showSteps makes the translation log its steps if trace_source, trace_call or trace_bytecode is enabled. If dynamic is
// enabled, the translation also notes what makes sizes constants.
func (t *translation) showSteps() {
	wanted, s := t.settings.watched, t.scope
	if wanted&(showTraceSource|showTraceCall|showTraceBytecode|showDynamic) == 0 {
		return
	}
	steps := &translate.Steps{}
	if wanted&showTraceSource != 0 {
		steps.Line = func(depth int, function, file string, line int) {
			source := t.ask("line", s.Str(file), s.Int(int64(line)))
			t.artifact("trace_source", fmt.Sprintf("TRACE starts_line %s:%d in %s%s\n    %s", file, line, function,
				depthText(depth), source))
		}
	}
	if wanted&showTraceBytecode != 0 {
		steps.Instruction = func(depth int, text, stack string) {
			t.artifact("trace_bytecode", fmt.Sprintf("TRACE %s %s%s", text, stack, depthText(depth)))
		}
	}
	if wanted&showTraceCall != 0 {
		steps.Node = func(node, function, file string, at bytecode.Position) {
			marked := t.ask("marked", s.Str(file), s.Int(int64(at.Line)), s.Int(int64(at.Col)),
				s.Int(int64(at.EndLine)), s.Int(int64(at.EndCol)))
			t.artifact("trace_call", fmt.Sprintf("TRACE FX call %s from %s:%d in %s\n%s", node, file, at.Line,
				function, marked))
		}
	}
	if wanted&showDynamic != 0 {
		steps.Expression = func(file string, at bytecode.Position) string {
			return t.ask("expression", s.Str(file), s.Int(int64(at.Line)), s.Int(int64(at.Col)),
				s.Int(int64(at.EndLine)), s.Int(int64(at.EndCol)))
		}
	}
	t.settings.Steps = steps
}

func depthText(depth int) string {
	if depth == 0 {
		return ""
	}
	return fmt.Sprintf(" (inline depth: %d)", depth)
}

// show logs the enabled artifacts of a finished translation.
func (t *translation) show(why error) {
	wanted := t.settings.watched
	if wanted&showAny == 0 {
		return
	}
	s, r := t.scope, t.result
	where := t.ask("where", t.frame.Function, t.firstType())
	say := func(bit int64, name, text string) {
		if wanted&bit != 0 && text != "" {
			t.artifact(name, where+"\n"+text)
		}
	}
	if failures := t.request.failures; failures != nil && wanted&(showRecompiles|showRecompilesVerbose) != 0 {
		text := t.ask("recompiles", t.frame.Function, object(failures), t.firstType())
		for _, place := range t.fixed() {
			text += "\n    the last entry still compares " + place
		}
		say(showRecompiles, "recompiles", text)
		if wanted&showRecompilesVerbose != 0 {
			say(showRecompilesVerbose, "recompiles_verbose", t.allFailures())
		}
	}
	if wanted&showGraphBreaks != 0 {
		for _, b := range t.brokenBy(why) {
			say(showGraphBreaks, "graph_breaks", t.ask("break_text", breakTuple(s, b)))
		}
	}
	if r == nil {
		return
	}
	if r.NumOps > 0 && r.Graph != nil {
		forms := []struct {
			bit  int64
			name string
			text func() string
		}{{showGraph, "graph", r.Graph.Table}, {showGraphCode, "graph_code", r.Graph.Code},
			{showGraphSizes, "graph_sizes", r.GraphSizes}}
		for _, f := range forms {
			if wanted&f.bit != 0 {
				say(f.bit, f.name, f.text())
			}
		}
	}
	if wanted&showDynamic != 0 && r.Dynamic != nil {
		say(showDynamic, "dynamic", r.Dynamic())
	}
	say(showGuards, "guards", r.Text)
	if p := r.Program; p != nil && wanted&showVerboseGuards != 0 {
		var lines []string
		for i, part := range p.Parts {
			if i < len(p.PartLines) && p.PartLines[i].File != "" {
				at := p.PartLines[i]
				part += fmt.Sprintf("  # %s:%d  %s", at.File, at.Line,
					t.ask("line", s.Str(at.File), s.Int(int64(at.Line))))
			}
			lines = append(lines, "    "+part)
		}
		say(showVerboseGuards, "verbose_guards", strings.Join(lines, "\n"))
	}
	if wanted&showBytecode != 0 {
		transformed := py.None()
		if !r.Function.IsNull() {
			transformed = r.Function
		}
		say(showBytecode, "bytecode", t.ask("bytecode", t.frame.Function, transformed))
	}
}

func listed(head string, texts []py.Object) string {
	for _, text := range texts {
		head += "\n    " + py.GoString(text)
	}
	return head
}

// allFailures evaluates every guard of every entry and lists the failures.
func (t *translation) allFailures() string {
	s := t.scope
	slots := make([]py.Object, len(t.frame.Slots))
	for i, v := range t.frame.Slots {
		if slots[i] = v; v.IsNull() {
			slots[i] = py.None()
		}
	}
	m, ok := py.Answered(s.Import("godynamo._observe.artifacts"))
	if !ok {
		return ""
	}
	cache := object((*C.PyObject)(unsafe.Pointer(t.request.cache)))
	texts, ok := py.Answered(s.CallMethod(m, "failures", cache, t.frame.Function, s.Tuple(slots...)))
	if !ok {
		return ""
	}
	return listed("translated again:", s.Items(texts))
}
