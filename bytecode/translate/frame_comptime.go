package translate

import (
	"fmt"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// Snapshot implements variables.Translator. It returns (frames, rows, examples, guards). frames lists the frames,
// innermost first. Each is (code, line, offset in bytes or -1, ((variable, view), ...), views of its stack). rows has
// one row for each node of the graph so far (see NodeRow). examples has, for each row, an example of the input tensor,
// or None if there is none.
func (tx *InstructionTranslator) Snapshot() (py.Object, error) {
	s, o := tx.Scope(), tx.out
	var frames []py.Object
	for t := tx; t != nil; t = t.parent {
		if t.hidden {
			continue
		}
		frame, err := t.snapshotOfFrame()
		if err != nil {
			return py.Object{}, err
		}
		frames = append(frames, frame)
	}
	var rows, examples []py.Object
	ref := o.refClass()
	for _, n := range o.graph.Nodes() {
		row, err := NodeRow(s, n, o.pool, ref)
		if err != nil {
			return py.Object{}, err
		}
		example := py.None()
		if in := o.inputOf[n]; n.Op == fxgraph.Placeholder && in != nil && !in.Example.IsNull() {
			example = in.Example
		}
		rows, examples = append(rows, row), append(examples, example)
	}
	var said []py.Object
	for _, g := range o.guards.Said() {
		said = append(said, s.Str(fmt.Sprintf("%v %s", g.CreateFn, g.Name)))
	}
	return s.Tuple(s.Tuple(frames...), s.List(rows...), s.List(examples...), s.Tuple(said...)), nil
}

func (tx *InstructionTranslator) snapshotOfFrame() (py.Object, error) {
	s := tx.Scope()
	var locals, stack []py.Object
	for i, l := range tx.d.code.Locals {
		v := tx.locals[i]
		if v == nil {
			continue
		}
		view, err := variables.View(tx, v)
		if err != nil {
			return py.Object{}, err
		}
		locals = append(locals, s.Tuple(s.Name(l.Name), view))
	}
	for _, v := range tx.stack {
		view, err := variables.View(tx, v)
		if err != nil {
			return py.Object{}, err
		}
		stack = append(stack, view)
	}
	offset := int64(-1)
	if tx.inst != nil && tx.inst.Offset >= 0 {
		offset = int64(2 * tx.inst.Offset)
	}
	return s.Tuple(tx.d.object, s.Int(int64(tx.userLine().Line)), s.Int(offset), s.Tuple(locals...), s.Tuple(stack...)),
		nil
}
