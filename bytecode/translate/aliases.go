package translate

import (
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/variables"
)

// Tensors from outside may be one object, or views of one another, in the next call if not in this one. What an operation in place does to
// more than the values of the one is then seen on the other: its sizes where they are one object (a guard says that they are not), and whether
// it requires gradients also where they are views (the frame is split in front of the question).

// changesMetadata tells whether an operation, of the events from one on, may change sizes or flags of a tensor in place.
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
		case after != requires, t.Example.IsNull() || t.Changed: // what is computed may require gradients because this does
			return true, nil
		}
	}
	return false, nil
}

// switchesGradFlag tells operations that can take the flag away.
func switchesGradFlag(n *fxgraph.Node) bool {
	name := n.Target.Text[strings.LastIndexByte(n.Target.Text, '.')+1:]
	return name == "requires_grad_" || name == "detach_"
}

// gradFlagAfter tells whether the tensor that n changes may require gradients afterwards. known: that is the one tensor it changes.
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

// HidesChange implements variables.Output. AOTAutograd computes gradients from what is saved when the graph begins and ends:
//   - A tensor that requires gradients and is changed in no_grad mode, in a graph of which autograd records operations: the backward pass
//     computes some of these again from the changed tensor, and raises nothing where one of them has saved what is changed (torch 2.15,
//     aot_eager: y = w * x; w.add_(1) in no_grad; (y * w).sum()).
//   - Tensor.data has a version counter of its own; the graph's change counts on the tensor's.
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

// seesHidden refuses an operation that autograd records after such a change.
func (o *OutputGraph) seesHidden(operation string) error {
	if !o.hidden {
		return nil
	}
	on, err := o.world.Recording(o.scope)
	if err == nil && on && o.TakesApart() {
		err = exc.Break(exc.CallUnsupported, "%s after a change that is hidden from autograd, in a graph that is compiled", operation)
	}
	return err
}

// dataOf returns the tensor of the frame that a node reads as Tensor.data; nil for other nodes.
func (o *OutputGraph) dataOf(n *fxgraph.Node) *variables.TensorVariable {
	if n.Target.Text != "builtins.getattr" || !isLiteral(n.Args[1], "'data'") {
		return nil
	}
	of, _ := n.Args[0].(*fxgraph.Node)
	return o.inputOf[of]
}

// firstInput follows first operands to a tensor of the frame. data: on the way is Tensor.data. nil where there is none within a few
// operations.
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

// recorded reports whether an operation so far may have run in grad mode, where the mode is off now.
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
