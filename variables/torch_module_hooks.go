package variables

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Modules of torch.distributed run code before and after forward that communicates, or registers hooks on tensors. Each
// is one foreign operation. It gets the tensors that are somewhere in the arguments or results, as a tuple, and some of
// them are replaced by the items of its result.

// moduleHook is a call of such a function.
type moduleHook struct {
	tx      Translator
	name    string
	helpers py.Object // the module of python/godynamo/_called that runs it
	refused error
	// copies says that lists, dicts and other objects with tensors are passed on as copies. Such calls are refused.
	copies bool
	// replaces reports whether a tensor that is not foreign is replaced, and the dtype of the copy that replaces it, or
	// None if it is a view.
	replaces func(t *TensorVariable) (replaced bool, dtype py.Object, err error)
	tensors  []VariableTracker
	node     *fxgraph.Node // the call
	taken    int           // how many items of the result have been passed or skipped
}

// newModuleHook prepares a call. file is the name of the helpers' module.
func newModuleHook(tx Translator, name, file string) (*moduleHook, error) {
	m, err := tx.Scope().Import("godynamo._called." + file)
	return &moduleHook{tx: tx, name: name, helpers: m,
		refused: exc.Break(exc.CallUnsupported, "%s with these arguments", name)}, err
}

// described asks the helpers what they do for the module, and guards it. It returns pyNone if that is unknown. args
// come before the module; text says in the guard what holds.
func (h *moduleHook) described(module *ObjectVariable, text string, args ...py.Object) (py.Object, error) {
	s, out := h.tx.Scope(), h.tx.Output()
	told, err := s.CallMethod(h.helpers, "described", append(args, module.Obj)...)
	if err != nil || told == pyNone {
		return pyNone, err
	}
	same, err := s.CallMethod(h.helpers, "AsDescribed", told)
	if err != nil {
		return pyNone, err
	}
	out.AddGuards(guards.GlobalState(), guards.PyCheck(module.Src, out.Const(same), text))
	return told, nil
}

// collect appends the tensors found in v to h.tensors, in the order in which torch's _collect_grad_tensors visits them.
func (h *moduleHook) collect(v VariableTracker) error {
	v, err := Realize(h.tx, v)
	if err != nil {
		return err
	}
	if err := h.tx.World().Enter(); err != nil {
		return err
	}
	defer h.tx.World().Leave()
	if isOpaque(v) {
		return h.refused
	}
	if t, ok := v.(*TensorVariable); ok {
		if !t.foreign() && !t.Class.IsNull() && t.Class != h.tx.World().ParameterType {
			return h.refused
		}
		h.tensors = append(h.tensors, t)
		return nil
	}
	inside, err := h.inside(v)
	if err != nil || inside == nil {
		return err
	}
	first := len(h.tensors)
	for _, it := range inside {
		if err := h.collect(it); err != nil {
			return err
		}
	}
	if t, ok := v.(*TupleVariable); ok && t.Exact() {
		return nil
	}
	if h.copies {
		return h.refused
	}
	for _, t := range h.tensors[first:] {
		if replaced, _, err := h.replaced(t.(*TensorVariable)); err != nil || replaced {
			return h.refused
		}
	}
	return nil
}

// inside returns what torch looks at in an object, or nil if it passes the object on as it is.
func (h *moduleHook) inside(v VariableTracker) ([]VariableTracker, error) {
	switch x := v.(type) {
	case *TupleVariable:
		return x.items, nil
	case *ListVariable:
		return x.items, nil
	case *DictVariable:
		return x.values, nil
	case *ObjectVariable:
		if _, ok := h.tx.Scope().TypeLookup(x.Class, "__dataclass_fields__"); ok {
			return h.fields(x)
		}
		if x.value != nil {
			return nil, h.refused // an instance of a subclass of list, dict or tuple
		}
	}
	return nil, nil
}

// fields returns the values of a dataclass's fields.
func (h *moduleHook) fields(o *ObjectVariable) ([]VariableTracker, error) {
	s := h.tx.Scope()
	m, err := s.Import("dataclasses")
	if err != nil {
		return nil, err
	}
	fields, err := s.CallMethod(m, "fields", o.Class)
	if err != nil {
		return nil, err
	}
	items := []VariableTracker{}
	for _, f := range s.Items(fields) {
		name, err := s.GetAttr(f, "name")
		if err != nil {
			return nil, err
		}
		v, err := GetAttr(h.tx, o, py.GoString(name))
		if err != nil {
			return nil, err
		}
		items = append(items, v)
	}
	return items, nil
}

// call adds the call of a helper to the graph. The collected tensors are its last argument.
func (h *moduleHook) call(helper string, args ...VariableTracker) error {
	fn, err := h.tx.Scope().GetAttr(h.helpers, helper)
	if err != nil {
		return err
	}
	h.node, err = h.tx.Output().CallForeign(h.tx, fn, h.name, append(args, NewTuple(h.tensors, nil)), nil)
	return err
}

// item returns the next item of the result.
func (h *moduleHook) item() (*fxgraph.Node, error) {
	n, err := h.tx.Output().CallFunction(h.tx, h.tx.World().Operator("getitem"), "godynamo.item",
		[]VariableTracker{NewForeign(h.node, ""), IntConst(h.tx, h.taken)}, nil)
	h.taken++
	if err == nil {
		n.Item = true
	}
	return n, err
}

// replaced reports whether t is replaced, see moduleHook.replaces. It is unknown for a foreign tensor, for which the
// result is taken.
func (h *moduleHook) replaced(t *TensorVariable) (bool, py.Object, error) {
	if t.foreign() {
		return true, pyNone, nil
	}
	return h.replaces(t)
}

func (h *moduleHook) passAll(vs []VariableTracker) ([]VariableTracker, error) {
	out := make([]VariableTracker, len(vs))
	for i, v := range vs {
		var err error
		if out[i], err = h.pass(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// pass returns what is passed on for v. It visits the tensors in the order in which collect found them.
func (h *moduleHook) pass(v VariableTracker) (VariableTracker, error) {
	real, err := Realize(h.tx, v)
	if err != nil {
		return nil, err
	}
	switch x := real.(type) {
	case *TensorVariable:
		return h.passTensor(x)
	case *TupleVariable:
		if !x.Exact() {
			break
		}
		items, err := h.passAll(x.items)
		if err != nil {
			return nil, err
		}
		for i := range items {
			if items[i] != x.items[i] {
				return NewTuple(items, nil), nil
			}
		}
		return v, nil
	}
	found := len(h.tensors)
	err = h.collect(v) // none of these tensors is replaced
	h.taken += len(h.tensors) - found
	h.tensors = h.tensors[:found]
	return v, err
}

func (h *moduleHook) passTensor(t *TensorVariable) (VariableTracker, error) {
	replaced, dtype, err := h.replaced(t)
	if err != nil {
		return nil, err
	}
	if !replaced {
		h.taken++
		return t, nil
	}
	n, err := h.item()
	if err != nil {
		return nil, err
	}
	if !t.foreign() {
		h.tx.Output().Declare(n, Declared{Like: t.Node, Dtype: dtype})
	} else if !h.copies { // else it may have another dtype
		h.tx.Output().ForeignLike(n, t.Node)
	}
	return NewTensor(n), nil
}
