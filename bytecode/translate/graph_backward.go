package translate

import (
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
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
func (o *OutputGraph) Differentiates(roots []*fxgraph.Node) (d variables.Differentiated, why string,
	err error) {
	f := flow{declared: o.declared, changes: map[*fxgraph.Node][]*fxgraph.Node{}, off: map[*fxgraph.Node]bool{},
		reached: map[*fxgraph.Node]bool{}, dense: map[*fxgraph.Node]bool{}, sparse: map[*fxgraph.Node]bool{},
		switches: map[*fxgraph.Node][]gradSwitch{}}
	d.Switched = map[*variables.TensorVariable]bool{}
	on := true
	for _, n := range o.graph.Nodes() {
		switch {
		case n.Op == fxgraph.Placeholder:
			if in := o.inputOf[n]; in != nil {
				d.Inputs = append(d.Inputs, in)
			}
		case n.State:
			if shortName(n) == "_set_grad_enabled" {
				on = !isLiteralAt(n, 0, "False")
			}
		case o.customs.calls[n] != nil && !o.withoutHistory(n, &f):
			if ok, err := o.withoutEffects(n); err != nil || !ok {
				return d, "after " + n.Target.Text + ", whose backward pass may have side effects", err
			}
		case o.customs.calls[n] == nil && !differentiatesPlainly(n) && !o.makesParameter(n) && !o.withoutHistory(n, &f):
			return d, "after " + n.Target.Text + ", whose backward pass is not known", nil
		}
		f.off[n] = !on
		if leafChanges[shortName(n)] && !o.followSwitch(n, &f, d.Switched) {
			return d, "after " + shortName(n) + " of a computed tensor", nil
		}
		if changed, ok := changedBy(n); n.Inplace && ok {
			f.changes[changed] = append(f.changes[changed], n)
		}
	}
	for _, n := range roots {
		f.visit(n)
	}
	d.Reached, d.Sparse = f.reached, f.sparse
	for n := range f.dense {
		delete(d.Sparse, n)
	}
	return d, "", nil
}

// withoutHistory reports whether the backward pass does not reach n, a call of a custom operator, since none of the
// tensors from which its operands are computed requires gradients. f has the operations before n.
func (o *OutputGraph) withoutHistory(n *fxgraph.Node, f *flow) bool {
	if n.Op != fxgraph.CallFunction || n.RunsOnce() || n.Opaque || !o.isCustomOperator(n) {
		return false
	}
	for _, before := range o.graph.Nodes()[:n.Index] {
		// The operation may give a history to a tensor that shares memory with an operand.
		if before.Inplace && !before.State && !before.Foreign && !f.off[before] || leafChanges[shortName(before)] {
			return false
		}
	}
	seen := map[*fxgraph.Node]bool{}
	var plain func(n *fxgraph.Node) bool
	plain = func(n *fxgraph.Node) bool {
		if seen[n] || o.isNumber(n) {
			return true
		}
		seen[n] = true
		if n.Op == fxgraph.Placeholder {
			t := o.inputOf[n]
			if t == nil || t.Changed || t.Example.IsNull() || !t.Class.IsNull() && t.Class != o.world.ParameterType {
				return false
			}
			flag, ok := py.Answered(o.scope.GetAttr(t.Example, "requires_grad"))
			o.NeedField(t, fieldGrad)
			return ok && flag == py.False()
		}
		for _, kw := range n.Kwargs {
			if kw.Name == "requires_grad" {
				return false
			}
		}
		ok := (differentiatesPlainly(n) || o.isCustomOperator(n)) && !n.Foreign && !o.makesParameter(n)
		n.EachInput(func(in *fxgraph.Node) { ok = ok && plain(in) })
		return ok
	}
	return plain(n)
}

// isCustomOperator reports whether n calls an operator of torch.library.custom_op. Its result has a history only if a
// tensor among the operands has one: the program's kernel runs where autograd records nothing.
func (o *OutputGraph) isCustomOperator(n *fxgraph.Node) bool {
	text, ok := strings.CutPrefix(n.Target.Text, operators)
	space, rest, _ := strings.Cut(text, ".")
	name, _, _ := strings.Cut(rest, ".")
	if !ok {
		return false
	}
	m, ok := py.Answered(o.scope.Import("torch._library.custom_ops"))
	if !ok {
		return false
	}
	made, ok := py.Answered(o.scope.GetAttr(m, "OPDEFS"))
	if !ok {
		return false
	}
	found, ok := py.Answered(o.scope.CallMethod(made, "__contains__", o.scope.Str(space+"::"+name)))
	return ok && found == py.True()
}

// followSwitch records an operation that may change whether a tensor is a leaf or requires gradients. It returns false
// if the effect of the operation is not known.
func (o *OutputGraph) followSwitch(n *fxgraph.Node, f *flow, switched map[*variables.TensorVariable]bool) bool {
	changed, ok := changedBy(n)
	on, known := switchedTo(n)
	if !ok || !known {
		input, _ := o.firstInput(n, 0)
		return input == nil
	}
	if input := o.inputOf[changed]; input != nil {
		if m, err := o.readMeta(input.Example); err != nil {
			return false
		} else if len(f.switches[changed]) == 0 {
			f.switches[changed] = []gradSwitch{{-1, m.RequiresGrad}}
			o.NeedField(input, fieldGrad)
		}
		f.switches[changed] = append(f.switches[changed], gradSwitch{n.Index, on})
		switched[input] = on
		return true
	}
	return o.isNewObject(changed)
}

// switchedTo returns the value to which an operation sets requires_grad of its first operand.
func switchedTo(n *fxgraph.Node) (on, known bool) {
	if shortName(n) != "requires_grad_" || len(n.Args) > 2 || len(n.Kwargs) > 1 {
		return false, false
	}
	var flag fxgraph.Arg
	if len(n.Args) == 2 {
		flag = n.Args[1]
	}
	for _, kw := range n.Kwargs {
		flag = kw.Value
	}
	if flag == nil || isLiteral(flag, "True") {
		return true, true
	}
	return false, isLiteral(flag, "False")
}

// isNewObject reports whether an operation has created the tensor object that is a node's result.
func (o *OutputGraph) isNewObject(n *fxgraph.Node) bool {
	return n.Op != fxgraph.Placeholder && !n.Inplace && !n.RunsOnce() && o.world.GivesNew(o.scope, n.Target.Text)
}

// IsLeaf implements variables.Output.
func (o *OutputGraph) IsLeaf(t *variables.TensorVariable) (bool, error) {
	for _, n := range o.graph.Nodes() {
		if _, switches := switchedTo(n); leafChanges[shortName(n)] && !switches {
			return false, exc.Break(exc.TensorMetadata, "is_leaf after %s", shortName(n))
		}
	}
	return o.gradFact(t, "is_leaf")
}

// differentiatesPlainly reports whether the backward pass of an operation runs no code of the program.
func differentiatesPlainly(n *fxgraph.Node) bool {
	text := n.Target.Text
	switch {
	case n.Opaque || isPythonNode(n):
		return false
	case n.Foreign:
		return ofGradients[text] || seeds(n)
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
	return in && !strings.Contains(rest, ".") || withoutCode[text]
}

// withoutCode has operations outside of torch that run no code of the program. max and min are those of
// variables/tensor_or_int.go.
var withoutCode = map[string]bool{"builtins.getattr": true, "builtins.max": true, "builtins.min": true,
	"godynamo.item": true}

// makesParameter reports whether an operation makes an nn.Parameter that shares a tensor's memory.
func (o *OutputGraph) makesParameter(n *fxgraph.Node) bool {
	if n.Target.Text != "torch.Tensor._make_subclass" || len(n.Args) == 0 {
		return false
	}
	class, ok := n.Args[0].(fxgraph.Lit)
	return ok && class.Pool >= 0 && o.pool[class.Pool] == o.world.ParameterType
}

// storesGradient is the operation `t.grad = value` (variables/tensor_grad.go).
const storesGradient = "builtins.setattr"

// ofGradients lists the foreign operations of variables/tensor_grad.go, tensor_hooks.go, tensor_backward.go and
// tensor_autograd.go. Those that register hooks are among the customs.
var ofGradients = map[string]bool{storesGradient: true, "backward": true, "torch.autograd.backward": true,
	gradCall: true, "godynamo.before_backward": true, "godynamo.after_backward": true, "godynamo.after_grad": true,
	"godynamo.as_expected": true, "godynamo.found_infinite": true, "godynamo.has_hooks": true, "remove": true,
	"retain_grad": true, variables.AsDispatched: true, variables.AsPredicted: true, variables.AsFloat: true}

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

func isLiteralAt(n *fxgraph.Node, i int, text string) bool {
	return len(n.Args) > i && isLiteral(n.Args[i], text)
}

// flow follows gradients from a node to the operations that have computed it.
type flow struct {
	changes map[*fxgraph.Node][]*fxgraph.Node // a tensor → the operations that have changed it in place
	off     map[*fxgraph.Node]bool            // the operations that ran while torch recorded none
	reached map[*fxgraph.Node]bool
	// dense and sparse have the operands that an operation gives a gradient of this layout. The sum of both is dense.
	dense, sparse map[*fxgraph.Node]bool
	// switches has, for inputs whose requires_grad the program switches, the initial value and what follows.
	switches map[*fxgraph.Node][]gradSwitch
	declared map[*fxgraph.Node]variables.Declared
}

// gradSwitch is a value of requires_grad from an operation on.
type gradSwitch struct {
	from int // the operation's index
	on   bool
}

// frozen reports whether a tensor did not require gradients when an operation ran.
func (f *flow) frozen(t, at *fxgraph.Node) bool {
	on := true
	for _, s := range f.switches[t] {
		if s.from < at.Index {
			on = s.on
		}
	}
	return !on
}

func (f *flow) visit(n *fxgraph.Node) {
	if f.reached[n] {
		return
	}
	f.reached[n] = true
	for _, c := range f.changes[n] {
		f.visit(c)
	}
	for _, root := range f.declared[n].History {
		f.visit(root)
	}
	name := shortName(n)
	follow := func(in *fxgraph.Node) {
		if !f.frozen(in, n) {
			if givesSparse(n, in) {
				f.sparse[in] = true
			} else {
				f.dense[in] = true
			}
			f.visit(in)
		}
	}
	switch {
	case f.off[n] && n.Target.Text != gradCall && n.Target.Text != "godynamo.item":
	case name == "detach" || name == "detach_" || name == "_make_subclass":
	case n.Target.Text == gradCall && !createsGraph(n):
	case strings.HasSuffix(name, "_like") || strings.HasPrefix(name, "new_"):
	case strings.HasSuffix(name, "_as") && len(n.Args) > 0: // of `x.expand_as(y)` only x has a gradient
		fxgraph.EachNode(n.Args[0], follow)
	default:
		n.EachInput(follow)
	}
}

// sparseFlags maps the operations that may give their first operand a sparse gradient to the position of the argument
// `sparse`.
var sparseFlags = map[string]int{"torch.embedding": 4, "torch.embedding_bag": 5}

// givesSparse reports whether an operation gives this operand a sparse gradient.
func givesSparse(n, operand *fxgraph.Node) bool {
	at, ok := sparseFlags[n.Target.Text]
	if !ok || len(n.Args) == 0 || n.Args[0] != fxgraph.Arg(operand) {
		return false
	}
	for _, kw := range n.Kwargs {
		if kw.Name == "sparse" {
			return isLiteral(kw.Value, "True")
		}
	}
	return isLiteralAt(n, at, "True")
}
