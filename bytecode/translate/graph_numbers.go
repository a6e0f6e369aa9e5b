package translate

import (
	"errors"
	"slices"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// Numbers known only at run time are the results of item() and tolist(), sizes that depend on data, and floats passed
// to the frame. A backend that runs the graph's operators at the sizes of each call gets such numbers unchanged. For a
// compiler with symbolic sizes they are unbacked symbols of torch's ShapeEnv (_backends/unbacked.py). If the compiler
// needs the value of such a symbol, the frame is translated again: first with constant floats, then with graph breaks
// at these numbers.

// errNumbersRefused requests another attempt, because the compiler needs the value of a number known only at run time.
var errNumbersRefused = errors.New("a compiler that needs the value of a number")

// numbersRefused returns errNumbersRefused, with the options of the next attempt.
func (o *OutputGraph) numbersRefused() error {
	if len(o.computed.numbers) > 0 && !o.opts.FixFloats {
		o.opts.FixFloats = true
	} else {
		o.opts.BreakAtNumbers = true
	}
	return errNumbersRefused
}

// refusesNumbers reports whether a backend that is not known as a compiler has failed on a graph with numbers of the
// data: it may support tensors only.
func (o *OutputGraph) refusesNumbers(err error) bool {
	e, ok := err.(*py.Error)
	return ok && !o.takesSymbols() && (o.unchanged || len(o.symbols.read)+len(o.computed.numbers) > 0) &&
		py.TypeName(e.Type) == "BackendCompilerFailed"
}

// RunsUnchanged implements variables.Output.
func (o *OutputGraph) RunsUnchanged() bool {
	if o.takesSymbols() || !o.CapturesNumbers(true) {
		return false
	}
	o.unchanged = true
	return true
}

// takesSymbols reports whether the backend is a compiler that records in torch's ShapeEnv what it assumes about sizes.
func (o *OutputGraph) takesSymbols() bool {
	return !o.backend.Inline() && (o.opts.TakesApart || o.opts.TakesSymbols)
}

// takesUnbacked reports whether the graph goes to a compiler that takes numbers known only at run time.
func (o *OutputGraph) takesUnbacked() bool {
	return o.takesSymbols() && o.symbolizes() && !o.opts.BreakAtNumbers
}

// runsOperators reports whether the compiled graph runs at the sizes of each call, so that numbers known only at run
// time may be in the graph.
func (o *OutputGraph) runsOperators() bool {
	if o.takesSymbols() {
		return o.takesUnbacked()
	}
	return o.backend.Inline() || !o.opts.FixesSizes && !o.TakesApart()
}

// readsData reports whether a graph for such a compiler has numbers or sizes that are known only at run time, among its
// inputs (mark_unbacked) or computed.
func (o *OutputGraph) readsData() bool {
	if !o.takesUnbacked() {
		return false
	}
	if nodes := o.graph.Nodes(); len(nodes) > 0 {
		o.byRule(nodes[len(nodes)-1]) // a size that nothing has read is not a symbol yet
	}
	for n := range o.computed.numbers {
		if n.Op != fxgraph.Placeholder && !o.isErased(n) {
			return true
		}
	}
	env := o.world.Env()
	for i, at := range o.symbols.dims {
		computed := at.src == nil && at.node != nil && !o.isErased(at.node)
		if computed || at.tensor != nil && !env.Info(sym.Symbol(i)).Hinted {
			return true
		}
	}
	return false
}

// repeats reports whether the captured graph leaves no trace, so that it can run after the compiled graph has raised.
// Compiled graphs check at run time what torch assumes about unbacked sizes, such as that two sizes are equal. Such a
// check may fail in a valid call.
func (o *OutputGraph) repeats() bool {
	return !slices.ContainsFunc(o.events, func(e *event) bool { return o.eventTrace(e) != noTrace })
}

// numberInput describes the input of the graph that is a number known only at run time, for symbolicExamples.
func (o *OutputGraph) numberInput(n *fxgraph.Node) (row py.Object, ok bool) {
	if v := o.symbols.values[n]; v != nil {
		_, hinted := o.world.Env().Hint(v.Size)
		return o.scope.Str("int"), !hinted && !o.isInputs(v.Size)
	}
	if x := o.computed.numbers[n]; x != nil {
		return o.scope.Str(py.TypeName(x.Type)), true
	}
	return row, false
}

// isInputs reports whether all symbols of sizes have a value in this call, or are sizes of inputs.
func (o *OutputGraph) isInputs(sizes ...sym.Size) bool {
	env := o.world.Env()
	return !slices.ContainsFunc(sizes, func(s sym.Size) bool {
		w := &symbolLister{}
		env.Write(s, w)
		return slices.ContainsFunc(w.found, func(x sym.Symbol) bool {
			return !env.Info(x).Hinted && o.symbols.dims[x].tensor == nil
		})
	})
}

// NumberInGraph implements variables.Output.
func (o *OutputGraph) NumberInGraph(node *fxgraph.Node, class string) *variables.ComputedVariable {
	v := &variables.ComputedVariable{Type: o.world.Builtin(class), Node: node}
	o.addNumber(node, v)
	return v
}

// isNumberInGraph reports whether v is a float or a bool that a node of a whole graph computes.
func isNumberInGraph(v variables.VariableTracker) bool {
	x, ok := v.(*variables.ComputedVariable)
	return ok && x.Node != nil
}

// addNumber records that a node is a number.
func (o *OutputGraph) addNumber(n *fxgraph.Node, v *variables.ComputedVariable) {
	if o.computed.numbers == nil {
		o.computed.numbers, o.computed.nodeOf = map[*fxgraph.Node]*variables.ComputedVariable{},
			map[*variables.ComputedVariable]*fxgraph.Node{}
	}
	o.computed.numbers[n], o.computed.nodeOf[v] = v, n
}

// Unbacked implements variables.Output.
func (o *OutputGraph) Unbacked() bool { return o.takesUnbacked() && o.bodies == 0 }
