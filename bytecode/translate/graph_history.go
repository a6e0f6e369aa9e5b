package translate

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// To autograd, a graph that AOTAutograd has compiled is one function: all its results have the same node as their
// history, and that node cannot be differentiated twice. In eager mode, each operation has a node. A program sees the
// difference if it
//   - asks for gradients with respect to a result, or keeps or changes them (torch.autograd.grad(z, y), retain_grad(),
//     hooks): no other result depends on it;
//   - differentiates gradients (create_graph=True), which raises;
//   - calls backward() on two results: the first call frees what the second one needs.
//
// A frame that does this to results of its own graph is translated with the inline backend. What callers do to the
// results that a frame returns is not known, so there the difference remains, as with torch.compile.

// errHistory requests another attempt with the inline backend.
var errHistory = errors.New("a graph whose results need eager mode's history")

// historyUse is what the frame, or a function that it calls, does with the history of results.
type historyUse uint8

const (
	historyUnused historyUse = iota
	historyPassed            // backward() is called at the graph break
	historyRead              // it matters as soon as several results require gradients
)

// NeedsHistory implements variables.Output.
func (o *OutputGraph) NeedsHistory() error {
	if o.opts.NoPython || o.numOps == 0 || !o.TakesApart() {
		return nil
	}
	return errHistory
}

// ReadsHistory implements variables.Output.
func (o *OutputGraph) ReadsHistory(passed variables.VariableTracker) {
	use := historyRead
	if passed != nil && !o.iterates(passed) {
		use = historyPassed
	}
	o.log.history = max(o.log.history, use)
}

// iterates reports whether a running frame has other computed tensors than v on its stack, such as the list in `for
// loss in losses: loss.backward()`.
func (o *OutputGraph) iterates(v variables.VariableTracker) bool {
	r := reach{o: o, params: map[int]bool{}, slots: map[int]bool{}, seen: map[variables.VariableTracker]bool{v: true}}
	for tx := o.current; tx != nil; tx = tx.parent {
		r.all(tx.stack)
	}
	for held := range r.seen {
		if t, ok := held.(*variables.TensorVariable); ok && t.Src == nil && held != v {
			return true
		}
	}
	return false
}

// losesHistory reports whether the rest of the frame would see that the results of a whole graph have one history.
func (o *OutputGraph) losesHistory(results []*fxgraph.Node) (bool, error) {
	if o.opts.NoPython || len(o.breaks) == 0 || len(results) == 0 {
		return false, nil
	}
	tx := o.current
	for tx.parent != nil {
		tx = tx.parent
	}
	allowed := o.allowedResults(tx.d, tx.inst)
	if o.log.history == historyRead || tx.passesTwice(results) {
		allowed = min(allowed, 1)
	}
	if len(results) <= allowed || !o.TakesApart() {
		return false, nil
	}
	differentiable := 0
	for _, n := range results {
		if o.isNumber(n) || o.isForeign(n) || n.Op == fxgraph.Placeholder {
			continue
		}
		requires, err := o.gradFact(variables.NewTensor(n), "requires_grad")
		var unknown *exc.Unsupported
		if err != nil && !AsUnsupported(err, &unknown) {
			return false, err
		}
		if requires || err != nil {
			differentiable++
		}
	}
	return differentiable > allowed, nil
}

// allowedResults returns how many differentiable results a graph may have before the code that first leads to, with the
// functions and comprehensions made there: none before create_graph=True, one before torch.autograd.grad, retain_grad()
// or register_hook(), any number before other code.
func (o *OutputGraph) allowedResults(d *decoded, first *bytecode.Instruction) int {
	allowed := math.MaxInt
	for in := range bytecode.ReachableFrom(d.code, first) {
		switch nameOf(d.code, in) {
		case "retain_grad", "register_hook":
			allowed = min(allowed, 1)
		case "grad":
			if in.Op == opcode.LOAD_GLOBAL || nameOf(d.code, d.code.Instructions[d.index[in]-1]) == "autograd" {
				allowed = min(allowed, 1)
			}
		}
		if in.Op != opcode.LOAD_CONST && in.Op != opcode.KW_NAMES {
			continue
		}
		switch c := d.consts[in.Arg]; {
		case c.Kind() == py.Tuple && slices.ContainsFunc(o.scope.Items(c), isCreateGraph) && d.loadsTrue(d.index[in]):
			return 0
		case c.Kind() == py.Code:
			if inner, err := o.decode(c); err == nil {
				allowed = min(allowed, o.allowedResults(inner, inner.code.Instructions[0]))
			}
		}
	}
	return allowed
}

func isCreateGraph(keyword py.Object) bool {
	return keyword.Kind() == py.Str && py.GoString(keyword) == "create_graph"
}

// loadsTrue reports whether the statement that contains an instruction loads True.
func (d *decoded) loadsTrue(at int) bool {
	first, last := statement(d.code, at)
	return slices.ContainsFunc(d.code.Instructions[first:last+1], func(in *bytecode.Instruction) bool {
		return in.Op == opcode.LOAD_CONST && d.consts[in.Arg] == py.True()
	})
}

// passesTwice reports whether the rest of the frame may call backward() on more than one of the results. At a graph
// break at backward() one more call is enough.
func (tx *InstructionTranslator) passesTwice(results []*fxgraph.Node) bool {
	passes := map[int]bool{} // the positions of the names
	if tx.out.log.history == historyPassed {
		passes[-1] = true
	}
	for slot, v := range tx.locals {
		if !holdsResult(v, results) {
			continue
		}
		for _, use := range bytecode.UsesOf(tx.d.code, tx.inst, slot) {
			first, last := statement(tx.d.code, tx.d.index[use])
			if at := namesPass(tx.d.code, first, last); at >= 0 {
				passes[at] = true
			}
			if loop := tx.d.code.Instructions[last]; loop.Op == opcode.FOR_ITER &&
				namesPass(tx.d.code, last, tx.d.index[loop.Target]) >= 0 {
				return true
			}
		}
	}
	return len(passes) > 1
}

// holdsResult reports whether v is one of the results, or a container of some.
func holdsResult(v variables.VariableTracker, results []*fxgraph.Node) bool {
	items := []variables.VariableTracker{v}
	if c, ok := v.(variables.Container); ok {
		items = c.Children()
	}
	return slices.ContainsFunc(items, func(v variables.VariableTracker) bool {
		t, ok := v.(*variables.TensorVariable)
		return ok && slices.Contains(results, t.Node)
	})
}

// namesPass returns the position of the first name of backward(), or of a method like manual_backward(), among the
// instructions from first to last, or -1.
func namesPass(code *bytecode.Code, first, last int) int {
	for at := first; at <= last; at++ {
		if strings.HasSuffix(nameOf(code, code.Instructions[at]), "backward") {
			return at
		}
	}
	return -1
}

// statement returns the positions of the first and the last instruction of the statement that contains an instruction.
// The head of a `for` loop ends with FOR_ITER.
func statement(code *bytecode.Code, at int) (first, last int) {
	for first = at; first > 0 && !endsStatement(code.Instructions[first-1]); first-- {
	}
	for last = at; last < len(code.Instructions)-1 && !endsStatement(code.Instructions[last]); last++ {
	}
	return first, last
}

func endsStatement(in *bytecode.Instruction) bool {
	switch in.Op {
	case opcode.POP_TOP, opcode.STORE_FAST, opcode.STORE_ATTR, opcode.STORE_SUBSCR, opcode.STORE_GLOBAL,
		opcode.STORE_DEREF, opcode.STORE_NAME:
		return true
	}
	return in.Target != nil || bytecode.EndsFlow(in.Op)
}
