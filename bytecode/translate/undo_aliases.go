package translate

import (
	"slices"
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// Two input tensors that are distinct in this call may be the same object, or views of one another, in a later call. An
// in-place operation that changes the metadata of one may then affect the other. A change of sizes can only be seen
// through the same object, and a guard requires that the two inputs are different objects. A change of requires_grad
// can also be seen through a view, so the graph breaks before requires_grad is read if an input is a view.

// resizes reports whether an operation may give a tensor more memory, which AOTAutograd does not trace.
func resizes(operation string) bool {
	return slices.ContainsFunc(strings.Split(operation, "."), func(part string) bool {
		return part == "resize_" || part == "resize_as_"
	})
}

// changesMetadata reports whether an operation in events[from:] may change a tensor's sizes or flags in place.
func (o *OutputGraph) changesMetadata(from int) bool {
	for _, e := range o.events[from:] {
		n := e.node
		if n != nil && n.Inplace && !n.State && !n.Foreign &&
			(switchesGradFlag(n) || !shapes.KeepsSizes(n.Target.Text)) {
			return true
		}
	}
	return false
}

// GradFlagMayDiffer implements variables.Output.
func (o *OutputGraph) GradFlagMayDiffer(t *variables.TensorVariable, requires bool) (bool, error) {
	off := false // grad mode has been switched off
	for _, e := range o.events {
		n := e.node
		if n != nil && n.State && gradModes[n.Target.Text] {
			off = isLiteralAt(n, 0, "False")
		}
		if n == nil || n.State || n.Foreign || !n.Inplace || n.Target.Text == variables.StoreOfData || o.changesOwn(n) {
			continue
		}
		changed, known := changedBy(n)
		if known && changed == t.Node {
			continue
		}
		if alone, err := o.switchesAlone(n, changed); err != nil {
			return false, err
		} else if known && alone {
			continue // FakeTensor does the same
		}
		if off && !switchesGradFlag(n) {
			continue // autograd does not record it
		}
		after, err := o.gradFlagAfter(n, changed, known)
		if err != nil {
			return false, err
		}
		switch {
		case !after && !switchesGradFlag(n):
		case after != requires, t.Example.IsNull() || t.Changed: // an operation's result may inherit the flag
			return true, nil
		}
	}
	return false, nil
}

// switchesAlone reports whether an operation switches requires_grad of the tensor `changed`, and of no input but that:
// of none that is a view of it. The guards check that no other input is a view, and that no two inputs are the same
// tensor (changesMetadata).
func (o *OutputGraph) switchesAlone(n, changed *fxgraph.Node) (bool, error) {
	if _, switches := switchedTo(n); !switches || changed == nil || o.isNewObject(changed) {
		return switches && changed != nil, nil
	}
	if o.inputOf[changed] == nil {
		return false, nil
	}
	var others []*variables.TensorVariable
	for _, in := range o.graph.Nodes() {
		t := o.inputOf[in]
		if t == nil || in == changed || o.noViews[t] {
			continue
		}
		if t.Example.IsNull() || !o.plainInput(t) {
			return false, nil
		}
		if view, err := o.scope.CallMethod(t.Example, "_is_view"); err != nil || view != py.False() {
			return false, err
		}
		others = append(others, t)
	}
	return true, o.guardNoViews(others)
}

// plainInput reports whether an input is of a class of torch.
func (o *OutputGraph) plainInput(t *variables.TensorVariable) bool {
	return t.Class.IsNull() || t.Class == o.world.ParameterType
}

// guardNoViews adds guards that inputs are no views.
func (o *OutputGraph) guardNoViews(inputs []*variables.TensorVariable) error {
	if len(inputs) == 0 {
		return nil
	}
	m, err := o.scope.Import("godynamo._called.gradients")
	if err != nil {
		return err
	}
	check, err := o.scope.GetAttr(m, "is_no_view")
	if err != nil {
		return err
	}
	if o.noViews == nil {
		o.noViews = map[*variables.TensorVariable]bool{}
	}
	for _, t := range inputs {
		o.AddGuards(guards.PyCheck(t.Src, o.Const(check), "is no view"))
		o.noViews[t] = true
	}
	return nil
}

// switchesGradFlag reports whether an operation can clear requires_grad.
func switchesGradFlag(n *fxgraph.Node) bool {
	name := shortName(n)
	return name == "requires_grad_" || name == "detach_"
}

// gradFlagAfter reports whether the tensor that n changes may require gradients afterwards. If known is true,
// changed is the only tensor that n changes.
func (o *OutputGraph) gradFlagAfter(n, changed *fxgraph.Node, known bool) (bool, error) {
	if !switchesGradFlag(n) {
		plain := true
		n.EachInput(func(in *fxgraph.Node) {
			if o.isNumber(in) {
				return
			}
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

// IsOwn implements variables.Output.
func (o *OutputGraph) IsOwn(t *variables.TensorVariable) bool { return o.ownStorage(t.Node, 0) }

// HidesChange implements variables.Output. AOTAutograd computes gradients from values that it saves at the graph's
// start and end. Its gradients are therefore wrong in two cases:
//   - A graph changes a tensor that requires gradients in no_grad mode, and also has operations that autograd
//     records. The backward pass recomputes some of these operations from the changed tensor. It raises no error if
//     one of them has saved a value that changed (torch 2.15, aot_eager: y = w * x; w.add_(1) in no_grad; (y *
//     w).sum()).
//   - A graph changes Tensor.data. That attribute has its own version counter, but the graph increments the counter
//     of the tensor.
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

// dataOf returns the frame's tensor whose `data` attribute n reads. It returns nil if n is no such read.
func (o *OutputGraph) dataOf(n *fxgraph.Node) *variables.TensorVariable {
	if n.Target.Text != "builtins.getattr" || !isLiteral(n.Args[1], "'data'") {
		return nil
	}
	of, _ := n.Args[0].(*fxgraph.Node)
	return o.inputOf[of]
}

// firstInput follows the first operand of n, the first operand of that operation, and so on, to an input tensor of
// the frame. input is nil if none is reached within a few operations. data reports whether the path reads
// Tensor.data.
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

// recorded reports whether an operation so far may have run in grad mode. It is called while grad mode is off.
func (o *OutputGraph) recorded() bool {
	if o.state.entry.IsNull() { // the frame has switched no mode, so grad mode was off from its start
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
