package variables

import (
	"cmp"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// The gradient of a leaf tensor (t.grad) is a tensor or None. The frame gets it with the leaf, through a source, so it
// is an input of the graph. Stores and backward() are operations of the graph (tensor_backward.go), and later reads
// return what they leave.

// grad returns the gradient of a leaf: an input, or a tensor that the graph has made.
func (t *TensorVariable) grad(tx Translator) (VariableTracker, error) {
	t = t.alone(tx)
	t.gradUsed = t.gradUsed || !inZeroGrad(tx)
	v, err := t.gradBefore(tx)
	all := tx.World().backwards
	for ; err == nil && t.backwards < len(all); t.backwards++ {
		if v, err = all[t.backwards].after(tx, t, v); err == nil {
			t.known["grad"] = v
		}
	}
	return v, err
}

// inZeroGrad reports whether the current frame is zero_grad of an optimizer or a module of torch. It only asks whether
// there is a gradient, and removes it.
func inZeroGrad(tx Translator) bool {
	if tx.FunctionName() != "zero_grad" {
		return false
	}
	name, ok := tx.Scope().DictGetName(tx.Globals(), "__name__")
	return inOptimizer(tx) || ok && name.Kind() == py.Str && py.GoString(name) == "torch.nn.modules.module"
}

// gradBefore returns the gradient before the first call of backward() that t.backwards does not count.
func (t *TensorVariable) gradBefore(tx Translator) (VariableTracker, error) {
	real := t.real()
	if tx.World().Calls > 0 {
		return nil, unsupported(exc.AttrUnsupported, "grad of a tensor")
	}
	if real.IsNull() {
		return t.ownGrad(tx)
	}
	if v := t.known["grad"]; v != nil {
		return v, nil
	}
	v, ok := tx.Scope().TensorGrad(real)
	if !ok {
		return nil, unsupported(exc.AttrUnsupported, "grad of a tensor")
	}
	src := guards.NewGradSource(t.Src)
	tx.Output().Reads(src) // the source can be read only if t is a leaf
	if t.known == nil {
		t.known = map[string]VariableTracker{}
	}
	t.known["grad"] = tx.Build(v, src)
	return t.known["grad"], nil
}

// alone returns the tracker that holds the gradient, since several trackers may stand for a tensor that the graph
// computes.
func (t *TensorVariable) alone(tx Translator) *TensorVariable {
	if t.Src != nil || t.Node == nil {
		return t
	}
	w := tx.World()
	if w.ownLeaves == nil {
		w.ownLeaves = map[*fxgraph.Node]*TensorVariable{}
	}
	if w.ownLeaves[t.Node] == nil {
		w.ownLeaves[t.Node] = t
	}
	return w.ownLeaves[t.Node]
}

// ownGrad returns the gradient, before the first call of backward() that t.backwards does not count, of a tensor that
// an operation of the graph has created. A tensor that is no leaf makes torch warn, unless it keeps its gradient.
func (t *TensorVariable) ownGrad(tx Translator) (VariableTracker, error) {
	refused := unsupported(exc.AttrUnsupported, "grad of a tensor")
	if tx.Output().WholeGraph() || !t.plain(tx) || !t.isNew(tx) || t.Node.Foreign {
		return nil, refused
	}
	leaf, err := tx.Output().IsLeaf(t)
	if err != nil || !leaf && t.retained == nil {
		return nil, cmp.Or(err, refused)
	}
	if v := t.known["grad"]; v != nil {
		return v, nil
	}
	since := t.Node.Index
	if t.retains = !leaf; t.retains {
		since = t.retained.Index
	}
	all := tx.World().backwards
	for t.backwards < len(all) && all[t.backwards].first.Index < since {
		t.backwards++
	}
	if t.known == nil {
		t.known = map[string]VariableTracker{}
	}
	t.known["grad"] = NoneConst()
	return t.known["grad"], nil
}

// gradFn returns None for a leaf. For other tensors it is an object that the graph reads.
func (t *TensorVariable) gradFn(tx Translator) (VariableTracker, error) {
	leaf, err := t.isLeaf(tx)
	if err != nil {
		return nil, err
	}
	if leaf {
		return NoneConst(), nil
	}
	v, ok, err := t.part(tx, "grad_fn")
	if err == nil && !ok {
		err = unsupported(exc.AttrUnsupported, "grad_fn of a tensor")
	}
	return v, err
}

// setGrad handles `t.grad = value` for a leaf. A store of a tensor may raise, since torch compares it with t.
func (t *TensorVariable) setGrad(tx Translator, value VariableTracker) error {
	refused := unsupported(exc.StoreUnsupported, "grad of a tensor")
	t = t.alone(tx)
	value, err := Realize(tx, value)
	if err != nil {
		return err
	}
	switch v := value.(type) {
	case *ConstantVariable:
		if v.Value != pyNone {
			return refused
		}
	case *TensorVariable:
		if v.foreign() || v.class(tx) != tx.World().TensorType {
			return refused
		}
	default:
		return refused
	}
	if mode, err := activeMode(tx); err != nil || mode != nil {
		return refused
	}
	old, err := t.grad(tx)
	if err != nil {
		return refused
	}
	if err := lettingGo(tx, old); err != nil {
		return err
	}
	set, args := tx.World().Builtin("setattr"), []VariableTracker{t, StrConst(tx, "grad"), value}
	if inZeroGrad(tx) && isNone(value) && !t.gradUsed {
		// if the user's code runs again from the start of the piece, zero_grad finds no gradient
		err = tx.Output().CallRepeatable(tx, set, "builtins.setattr", args)
	} else {
		_, err = tx.Output().CallForeign(tx, set, "builtins.setattr", args, nil)
	}
	if err == nil {
		t.known["grad"] = value
	}
	return err
}
