package pyhook

import (
	"github.com/godynamo/godynamo/bytecode/translate"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/pyhook/py"
)

// accountDict returns a translation's account (the record of what it covers) as a dict in the form that
// explain reads (godynamo._explain.census.Piece):
//
//	translated  ((code, units), ...)
//	calls       for each place of a torch operation, its frames ((code, unit), ...), outermost first
//	python      ((code, unit, line, callee), ...)
//	native      (code, unit, start, end) or None
//	copies      ((code, original, ((unit, original's unit), ...)), ...)
//	nodes       the graph's nodes: ((op, name, target, text, operands' names, user frames), ...)
func accountDict(s *py.Scope, a *translate.Account) (py.Object, error) {
	if a == nil {
		return py.None(), nil
	}
	num := func(n int) py.Object { return s.Int(int64(n)) }
	var translated, calls, python, copies []py.Object
	for _, c := range a.Translated {
		units := make([]py.Object, len(c.Units))
		for i, u := range c.Units {
			units[i] = num(u)
		}
		translated = append(translated, s.Tuple(c.Code, s.Tuple(units...)))
	}
	for _, levels := range a.Calls {
		frames := make([]py.Object, len(levels))
		for i, l := range levels {
			frames[i] = s.Tuple(l.Code, num(l.Lasti/2))
		}
		calls = append(calls, s.Tuple(frames...))
	}
	for _, p := range a.Python {
		python = append(python, s.Tuple(p.Code, num(p.Unit), num(p.Line), s.Str(p.Callee)))
	}
	for _, c := range a.Copies {
		pairs := make([]py.Object, len(c.Units))
		for i, p := range c.Units {
			pairs[i] = s.Tuple(num(p[0]), num(p[1]))
		}
		copies = append(copies, s.Tuple(c.Code, c.Original, s.Tuple(pairs...)))
	}
	nodes := make([]py.Object, len(a.Nodes))
	for i, n := range a.Nodes {
		var inputs []py.Object
		n.Node.EachInput(func(in *fxgraph.Node) { inputs = append(inputs, s.Name(in.Name)) })
		nodes[i] = s.Tuple(s.Name(n.Node.Op.String()), s.Str(n.Node.Name), s.Str(n.Node.Target.Text),
			s.Str(n.Node.Format()),
			s.Tuple(inputs...), framesTuple(s, n.Stack))
	}
	native := py.None()
	if !a.Native.Code.IsNull() {
		native = s.Tuple(a.Native.Code, num(a.Native.Unit), num(a.Start), num(a.End))
	}
	return s.Dict(
		[2]py.Object{s.Name("translated"), s.Tuple(translated...)},
		[2]py.Object{s.Name("calls"), s.Tuple(calls...)},
		[2]py.Object{s.Name("python"), s.Tuple(python...)},
		[2]py.Object{s.Name("native"), native},
		[2]py.Object{s.Name("copies"), s.Tuple(copies...)},
		[2]py.Object{s.Name("nodes"), s.Tuple(nodes...)},
	)
}
