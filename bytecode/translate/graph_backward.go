package translate

import (
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// This file predicts to which leaves backward() gives a gradient. It does not know all of torch's derivatives, so the
// graph compares the gradients after the call (variables/tensor_backward.go).

// CallLeaving implements variables.Output.
func (o *OutputGraph) CallLeaving(tx variables.Translator, fn py.Object, name string, args []variables.VariableTracker,
	to variables.Leaving) (*fxgraph.Node, error) {
	exit, err := o.leaveAfter(to)
	if err != nil {
		return nil, err
	}
	n, err := o.CallForeign(tx, fn, name, args, nil)
	if err != nil {
		return nil, err
	}
	o.events[len(o.events)-1].leaves = exit
	return n, nil
}

// Later implements variables.Output.
func (o *OutputGraph) Later(n *fxgraph.Node, operands func() []fxgraph.Arg) {
	o.late = append(o.late, func() { o.graph.SetArgs(n, operands(), n.Kwargs) })
}

// Differentiates implements variables.Output.
func (o *OutputGraph) Differentiates(roots []*fxgraph.Node) (inputs []*variables.TensorVariable,
	reached map[*fxgraph.Node]bool, ordinary bool) {
	f := flow{changes: map[*fxgraph.Node][]*fxgraph.Node{}, off: map[*fxgraph.Node]bool{},
		reached: map[*fxgraph.Node]bool{}}
	on := true
	for _, n := range o.graph.Nodes() {
		switch {
		case n.Op == fxgraph.Placeholder:
			if in := o.inputOf[n]; in != nil {
				inputs = append(inputs, in)
			}
		case n.State:
			if shortName(n) == "_set_grad_enabled" {
				on = !isLiteralAt(n, 0, "False")
			}
		case !differentiatesPlainly(n):
			return nil, nil, false
		}
		f.off[n] = !on
		if input, _ := o.firstInput(n, 0); input != nil && leafChanges[shortName(n)] && !o.staysFrozen(n, input) {
			return nil, nil, false
		}
		if changed, ok := changedBy(n); n.Inplace && ok {
			f.changes[changed] = append(f.changes[changed], n)
		}
	}
	for _, n := range roots {
		f.visit(n)
	}
	return inputs, f.reached, true
}

// differentiatesPlainly reports whether the backward pass of an operation runs no code of the program.
func differentiatesPlainly(n *fxgraph.Node) bool {
	text := n.Target.Text
	switch {
	case n.Opaque || isPythonNode(n):
		return false
	case n.Foreign:
		return ofGradients[text]
	case n.Op == fxgraph.CallMethod:
		return true
	case n.Op != fxgraph.CallFunction:
		return false
	case variables.Stores[text] != "":
		return true
	}
	for _, space := range plainSpaces {
		if strings.HasPrefix(text, space) {
			return true
		}
	}
	rest, in := strings.CutPrefix(text, "torch.")
	return in && !strings.Contains(rest, ".") || text == "builtins.getattr" || text == "godynamo.item"
}

// ofGradients lists the foreign operations of variables/tensor_grad.go, tensor_backward.go and tensor_autograd.go.
var ofGradients = map[string]bool{"builtins.setattr": true, "backward": true, "torch.autograd.backward": true,
	gradCall: true, "godynamo.before_backward": true, "godynamo.after_backward": true, "godynamo.after_grad": true}

const gradCall = "torch.autograd.grad"

// createsGraph reports whether the results of a call of torch.autograd.grad may require gradients.
func createsGraph(n *fxgraph.Node) bool {
	for _, kw := range n.Kwargs {
		if kw.Name == "create_graph" {
			return isLiteral(kw.Value, "True")
		}
	}
	return false
}

// plainSpaces has the namespaces of operations whose derivatives torch has in C++.
var plainSpaces = []string{"operator.", "torch._C.", "torch.nn.functional.", "torch.ops.aten.", "torch.special.",
	"torch.linalg.", "torch.fft."}

// leafChanges lists operations that change whether an input is a leaf or requires gradients.
var leafChanges = map[string]bool{"requires_grad_": true, "detach_": true, "set_": true, "swap_tensors_": true}

// staysFrozen reports whether an operation switches gradients off for a tensor that has none.
func (o *OutputGraph) staysFrozen(n *fxgraph.Node, input *variables.TensorVariable) bool {
	m, err := o.readMeta(input.Example)
	if err != nil || m.RequiresGrad || !isLiteralAt(n, 1, "False") || shortName(n) != "requires_grad_" {
		return false
	}
	o.NeedField(input, fieldGrad)
	return true
}

func isLiteralAt(n *fxgraph.Node, i int, text string) bool {
	return len(n.Args) > i && isLiteral(n.Args[i], text)
}

// flow follows gradients from a node to the operations that have computed it.
type flow struct {
	changes map[*fxgraph.Node][]*fxgraph.Node // a tensor → the operations that have changed it in place
	off     map[*fxgraph.Node]bool            // the operations that ran while torch recorded none
	reached map[*fxgraph.Node]bool
}

func (f *flow) visit(n *fxgraph.Node) {
	if f.reached[n] {
		return
	}
	f.reached[n] = true
	for _, c := range f.changes[n] {
		f.visit(c)
	}
	name := shortName(n)
	switch {
	case f.off[n] && n.Target.Text != gradCall && n.Target.Text != "godynamo.item":
	case name == "detach" || name == "detach_" || n.Target.Text == gradCall && !createsGraph(n):
	case strings.HasSuffix(name, "_like") || strings.HasPrefix(name, "new_"):
	case strings.HasSuffix(name, "_as") && len(n.Args) > 0: // of `x.expand_as(y)` only x has a gradient
		fxgraph.EachNode(n.Args[0], f.visit)
	default:
		n.EachInput(f.visit)
	}
}
