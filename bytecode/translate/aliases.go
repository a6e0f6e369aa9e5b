package translate

import (
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/variables"
)

// Two input tensors may be the same object, or views of one another, in a later call even if not in this one. An
// in-place operation that changes the metadata of one may then affect the other. Changed sizes are visible if they
// are one object; a guard excludes this. A changed requires_grad is visible also if they are views; the graph breaks
// before requires_grad is read.

// changesMetadata reports whether an operation among the events from `from` on may change a tensor's sizes or
// flags in place.
func (o *OutputGraph) changesMetadata(from int) bool {
	for _, e := range o.events[from:] {
		if n := e.node; n != nil && n.Inplace && !n.State && !shapes.KeepsSizes(n.Target.Text) {
			return true
		}
	}
	return false
}

// GradFlagMayDiffer implements variables.Output.
func (o *OutputGraph) GradFlagMayDiffer(t *variables.TensorVariable, requires bool) (bool, error) {
	for _, e := range o.events {
		n := e.node
		if n == nil || n.State || !n.Inplace || o.changesOwn(n) {
			continue
		}
		changed, known := changedBy(n)
		if known && changed == t.Node {
			continue
		}
		after, err := o.gradFlagAfter(n, changed, known)
		if err != nil {
			return false, err
		}
		switch {
		case !after && !switchesGradFlag(n):
		case after != requires, t.Example.IsNull() || t.Changed: // results may inherit the flag
			return true, nil
		}
	}
	return false, nil
}

// switchesGradFlag reports whether an operation can clear requires_grad.
func switchesGradFlag(n *fxgraph.Node) bool {
	name := n.Target.Text[strings.LastIndexByte(n.Target.Text, '.')+1:]
	return name == "requires_grad_" || name == "detach_"
}

// gradFlagAfter reports whether the tensor that n changes may require gradients afterwards. If known is true,
// changed is the only tensor that n changes.
func (o *OutputGraph) gradFlagAfter(n, changed *fxgraph.Node, known bool) (bool, error) {
	if !switchesGradFlag(n) {
		plain := true
		n.EachInput(func(in *fxgraph.Node) {
			t := o.inputOf[in]
			if plain = plain && t != nil && !t.Changed && !t.Example.IsNull(); plain {
				if m, err := o.readMeta(t.Example); err != nil || m.RequiresGrad {
					plain = false
				} else {
					o.NeedField(t, fieldGrad)
				}
			}
		})
		if plain {
			return false, nil
		}
	}
	if !known {
		return true, nil
	}
	v, err := o.fake(changed)
	if err != nil {
		return false, err
	}
	m, err := o.readMeta(v)
	if err != nil {
		return false, err
	}
	return m.RequiresGrad, nil
}

// HidesChange implements variables.Output. AOTAutograd computes gradients from values saved at the graph's
// start and end:
//   - A tensor that requires gradients and is changed in no_grad mode, in a graph with operations that autograd
//     records: the backward pass recomputes some of them from the changed tensor, and raises no error if one of them
//     has saved a value that changed (torch 2.15, aot_eager: y = w * x; w.add_(1) in no_grad; (y * w).sum()).
//   - Tensor.data has its own version counter, but the graph's change increments that of the tensor.
func (o *OutputGraph) HidesChange(tx variables.Translator, t *variables.TensorVariable) (bool, error) {
	input, data := o.firstInput(t.Node, 0)
	if input == nil || o.ownStorage(t.Node, 0) {
		return false, nil
	}
	if data {
		return o.TakesApart(), nil
	}
	if on, err := o.world.Recording(o.scope); err != nil || on {
		return false, err
	}
	if m, err := o.Meta(tx, input); err != nil || !m.RequiresGrad {
		return false, err
	}
	if o.recorded() {
		return o.TakesApart(), nil
	}
	o.hidden = true
	return false, nil
}

// seesHidden returns a graph break for an operation that autograd records after a hidden change (HidesChange).
func (o *OutputGraph) seesHidden(operation string) error {
	if !o.hidden {
		return nil
	}
	on, err := o.world.Recording(o.scope)
	if err == nil && on && o.TakesApart() {
		err = exc.Break(exc.CallUnsupported,
			"%s after a change that is hidden from autograd, in a graph that is compiled", operation)
	}
	return err
}

// dataOf returns the frame's tensor whose data attribute a node reads; nil for other nodes.
func (o *OutputGraph) dataOf(n *fxgraph.Node) *variables.TensorVariable {
	if n.Target.Text != "builtins.getattr" || !isLiteral(n.Args[1], "'data'") {
		return nil
	}
	of, _ := n.Args[0].(*fxgraph.Node)
	return o.inputOf[of]
}

// firstInput follows first operands to a tensor of the frame; input is nil if there is none within a few
// operations. data reports whether the path reads Tensor.data.
func (o *OutputGraph) firstInput(n *fxgraph.Node, depth int) (input *variables.TensorVariable, data bool) {
	if t := o.inputOf[n]; t != nil {
		return t, false
	}
	if depth > 8 || len(n.Args) == 0 {
		return nil, false
	}
	first, ok := n.Args[0].(*fxgraph.Node)
	if !ok {
		return nil, false
	}
	input, data = o.firstInput(first, depth+1)
	return input, data || o.dataOf(n) != nil
}

// recorded reports whether an operation so far may have run in grad mode, given that the mode is off now.
func (o *OutputGraph) recorded() bool {
	if o.state.entry.IsNull() { // no mode is switched, and none records now
		return false
	}
	on, ran := true, false
	for _, e := range o.events {
		n := e.node
		switch {
		case n == nil:
		case n.State && gradModes[n.Target.Text]:
			off := len(n.Args) == 1 && isLiteral(n.Args[0], "False")
			on = !off
		case !n.State && on:
			ran = true
		}
	}
	return ran
}

func isLiteral(a fxgraph.Arg, text string) bool {
	l, ok := a.(fxgraph.Lit)
	return ok && l.Text == text
}
