package translate

import (
	"slices"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// An operation is foreign (fxgraph.Node.Foreign) if it communicates with other ranks, if it calls numpy, or if one of
// its tensors may be of a class that dispatches operators in Python (DTensor, AsyncCollectiveTensor). The inline
// backend runs it as eager mode does. It never runs a second time, since the other ranks would not take part: inside
// `try` and `with` it has a side exit (resume_side_exit.go), and no guard and no FakeTensor computes it. Whole-graph
// backends get no foreign operation.

// foreignExample returns the example of an input for which there is none yet, if its class dispatches operators in
// Python. foreign reports whether it is such an input; dispatched, whether the class is the user's.
func (o *OutputGraph) foreignExample(obj, known py.Object) (example py.Object, foreign, dispatched bool) {
	if !known.IsNull() || !o.backend.Inline() {
		return known, false, false
	}
	switch outer := o.bodies == 0; {
	case (outer || o.InForeignBody()) && o.world.ForeignClass(o.scope, obj.Type()):
		example, foreign = obj, true
	case outer:
		example = o.world.DispatchedExample(o.scope, obj)
		dispatched = !example.IsNull()
		foreign = dispatched
	}
	if foreign {
		o.foreign.found()
		o.AddGuards(guards.GlobalState())
	}
	return example, foreign, dispatched
}

// CallForeign implements variables.Output.
func (o *OutputGraph) CallForeign(tx variables.Translator, fn py.Object, name string, args []variables.VariableTracker,
	kwargs []variables.Kw) (*fxgraph.Node, error) {
	if err := o.mayBeForeign(tx, name, false); err != nil {
		return nil, err
	}
	return o.callForeign(tx, fn, name, args, kwargs)
}

func (o *OutputGraph) callForeign(tx variables.Translator, fn py.Object, name string, args []variables.VariableTracker,
	kwargs []variables.Kw) (*fxgraph.Node, error) {
	o.foreign.found()
	args, kwargs = slices.Clone(args), slices.Clone(kwargs)
	var err error
	for i := range args {
		if args[i], err = o.foreignOperand(tx, args[i]); err != nil {
			return nil, err
		}
	}
	for i := range kwargs {
		if kwargs[i].Value, err = o.foreignOperand(tx, kwargs[i].Value); err != nil {
			return nil, err
		}
	}
	var node *fxgraph.Node
	if fn.IsNull() {
		node, err = o.CallMethod(tx, name, args, kwargs)
	} else {
		node, err = o.CallFunction(tx, fn, name, args, kwargs)
	}
	if err == nil {
		o.foreign.ran, node.Foreign = true, true
		o.foreign.rules[node] = ""
	}
	return node, err
}

// CallRepeatable implements variables.Output.
func (o *OutputGraph) CallRepeatable(tx variables.Translator, fn py.Object, name string,
	args []variables.VariableTracker) error {
	ran := o.foreign.ran
	n, err := o.CallForeign(tx, fn, name, args, nil)
	if err == nil {
		o.foreign.ran, o.foreign.repeatable[n] = ran, true
	}
	return err
}

// foreignOperand returns a tracker that can be an operand. A process group, a mesh or a module becomes an input of the
// graph without a guard on its contents, since only the operation reads it.
func (o *OutputGraph) foreignOperand(tx variables.Translator,
	v variables.VariableTracker) (variables.VariableTracker, error) {
	if obj := o.realObject(v); v.Source() != nil && !obj.IsNull() && o.world.ForeignOperand(o.scope, obj) {
		n, err := o.ObjectNode(tx, v)
		if err != nil {
			return nil, err
		}
		n.Node.Foreign = true
		return variables.NewForeign(n.Node, ""), nil
	}
	return v, nil
}

// mayBeForeign gives an operation that is foreign a side exit if a handler would catch its exception. It returns a
// graph break if the operation cannot be part of the graph here. numpy is set if the operation calls numpy, or has
// operands of numpy's.
func (o *OutputGraph) mayBeForeign(tx variables.Translator, name string, numpy bool) error {
	if o.foreign.sampling {
		return nil
	}
	if o.InForeignBody() && o.tentative == 0 {
		if tx.(*InstructionTranslator).protectedWithin(o.foreign.outside) {
			return exc.Break(exc.InsideBlock, "%s, inside try or with, in a function given to an operation", name)
		}
		return nil
	}
	whole := !o.backend.Inline()
	if whole && !(numpy && o.RunsUnchanged()) || o.bodies > 0 || o.tentative > 0 {
		return exc.Break(exc.CallUnsupported, "%s, in a graph that is given to a backend or to an operation", name)
	}
	handled, _ := tx.(*InstructionTranslator).protection()
	switch {
	case handled && whole:
		return exc.Break(exc.InsideBlock, "%s, inside try or with, in a graph that is given to a backend", name)
	case handled:
		return o.sideExit(name + ", which must not run twice, inside try or with")
	}
	return nil
}

// InBody implements variables.Output.
func (o *OutputGraph) InBody() bool { return o.bodies > 0 }

// InForeignBody implements variables.Output.
func (o *OutputGraph) InForeignBody() bool { return o.foreign.outside != nil && o.bodies == 1 }

// foreignEnds returns what is known about the results of a function that runs foreign operations.
func (o *OutputGraph) foreignEnds(results []variables.VariableTracker) []variables.ForeignResult {
	out := make([]variables.ForeignResult, len(results))
	for i, r := range results {
		out[i] = o.foreignEnd(r.(*variables.TensorVariable).Node)
	}
	return out
}

// foreignEnd returns what the rules yield for a node.
func (o *OutputGraph) foreignEnd(n *fxgraph.Node) foreignResult {
	sizes, _ := o.byRule(n).(*shapes.Tensor)
	return foreignResult{sizes, o.foreign.dtensors[n], !n.Foreign || o.foreign.locals[n]}
}

// foreignOperands returns a graph break if one of the operands is foreign, but the operation cannot be part of the
// graph here.
func (o *OutputGraph) foreignOperands(tx variables.Translator, name string, args []fxgraph.Arg,
	kwargs []fxgraph.Kwarg) error {
	if !o.foreign.any {
		return nil
	}
	found, numpy, dispatched := false, true, false
	look := func(n *fxgraph.Node) {
		if n.Foreign {
			found, numpy = true, numpy && o.foreign.arrays[n]
		}
		dispatched = dispatched || o.world.IsDispatched(n)
	}
	for _, a := range args {
		fxgraph.EachNode(a, look)
	}
	for _, kw := range kwargs {
		fxgraph.EachNode(kw.Value, look)
	}
	if !found {
		return nil
	}
	if dispatched && !o.world.Predicts() {
		return exc.Break(exc.TensorSubclass, "%s of a tensor that dispatches operators in Python", name)
	}
	return o.mayBeForeign(tx, name, numpy)
}

// spreadForeign marks an operation that has a foreign operand.
func (o *OutputGraph) spreadForeign(n *fxgraph.Node) {
	if o.foreign.any && !n.Foreign {
		n.EachInput(func(in *fxgraph.Node) {
			if o.world.IsDispatched(in) {
				n.Dispatched = true
			} else {
				n.Foreign = n.Foreign || in.Foreign
			}
		})
		o.foreign.ran = o.foreign.ran || n.RunsOnce()
	}
}

// isForeign reports whether a node is foreign and its metadata are unknown. Those of a tensor that dispatches operators
// in Python are known.
func (o *OutputGraph) isForeign(n *fxgraph.Node) bool { return n.Foreign && !o.world.IsDispatched(n) }

// foreignMetadata returns the graph break for metadata of a foreign operation's result.
func foreignMetadata(n *fxgraph.Node) error {
	return exc.Break(exc.TensorMetadata, "%s, a result whose class computes it", n.Name)
}

// runForeign tells the session of fake tensors that a foreign operation runs. No metadata that is needed depends on its
// result. An operation in place keeps its operands' metadata, but changes their data.
func (o *OutputGraph) runForeign(n *fxgraph.Node) error {
	s := o.scope
	var changed []py.Object
	if n.Inplace {
		n.EachInput(func(in *fxgraph.Node) { changed = append(changed, s.Int(int64(in.Index))) })
	}
	if _, err := s.CallMethod(o.meta.object, "foreign", s.Int(int64(n.Index)), s.Tuple(changed...)); err != nil {
		return exc.Break(exc.TensorMetadata, "%v", err)
	}
	return nil
}
