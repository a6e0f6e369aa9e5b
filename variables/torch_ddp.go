package variables

import "github.com/godynamo/godynamo/pyhook/py"

// DistributedDataParallel prepares its reducer and its buffers before forward, and its reducer again after it. If it
// looks for unused parameters, the results are passed through an autograd function.

// ddpBefore calls DistributedDataParallel._pre_forward(self, *args, **kwargs). It returns the pair of args and kwargs,
// or nil if it is unknown what the method does.
func ddpBefore(tx Translator, name string, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	h, told, err := newDDPHook(tx, name, args)
	if err != nil || h == nil {
		return nil, err
	}
	device := told[0]
	h.copies = device != pyNone
	h.replaces = func(t *TensorVariable) (bool, py.Object, error) {
		if device == pyNone {
			return false, pyNone, nil
		}
		m, err := t.Meta(tx)
		t.Need(tx, "device")
		if err == nil && m.Device != device {
			if same, ok := py.Answered(tx.Scope().CallMethod(device, "__eq__", m.Device)); !ok || same != py.True() {
				err = h.refused // the method would move the tensor
			}
		}
		return false, pyNone, err
	}
	for _, v := range append(capped(args[1:]), KwValues(kwargs)...) {
		if err := h.collect(v); err != nil {
			return nil, err
		}
	}
	for _, t := range h.tensors {
		if replaced, _, err := h.replaced(t.(*TensorVariable)); err != nil || replaced {
			return nil, h.refused
		}
	}
	if err := h.call("before", args[0]); err != nil {
		return nil, err
	}
	h.node.Inplace = true // it may copy the first rank's buffers into these
	keys, values := make([]VariableTracker, len(kwargs)), KwValues(kwargs)
	for i, kw := range kwargs {
		keys[i] = StrConst(tx, kw.Name)
	}
	d, err := NewDictOf(tx, keys, values)
	return NewTuple([]VariableTracker{NewTuple(capped(args[1:]), nil), d}, nil), err
}

// ddpAfter calls DistributedDataParallel._post_forward(self, result). It returns the result, or nil if it is unknown
// what the method does.
func ddpAfter(tx Translator, name string, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	h, told, err := newDDPHook(tx, name, args)
	if err != nil || h == nil || len(args) != 2 || len(kwargs) > 0 {
		return nil, err
	}
	h.copies = told[1] == py.True()
	h.replaces = func(t *TensorVariable) (bool, py.Object, error) {
		if !h.copies {
			return false, pyNone, nil
		}
		v, err := tx.Output().Sample(t)
		if err != nil {
			return false, pyNone, err
		}
		fn, err := tx.Scope().GetAttr(v, "grad_fn")
		if err != nil || fn == pyNone || told[2] != py.True() {
			return err == nil && fn != pyNone, pyNone, err
		}
		dtype, err := tx.Scope().GetAttr(v, "dtype")
		return true, dtype, err
	}
	if err := h.collect(args[1]); err != nil {
		return nil, err
	}
	for _, t := range h.tensors {
		if h.copies && t.(*TensorVariable).Src != nil { // whether it has a grad_fn is not guarded
			return nil, h.refused
		}
	}
	if err := h.call("after", args[0]); err != nil {
		return nil, err
	}
	h.node.Inplace = true
	if !h.copies {
		return args[1], nil
	}
	return h.pass(args[1])
}

// newDDPHook asks what a DistributedDataParallel passes on, and guards it. It returns nil if that is unknown.
func newDDPHook(tx Translator, name string, args []VariableTracker) (*moduleHook, []py.Object, error) {
	if len(args) == 0 {
		return nil, nil, nil
	}
	module, ok := MustRealize(tx, args[0]).(*ObjectVariable)
	if !ok || module.Obj.IsNull() || module.Src == nil {
		return nil, nil, nil
	}
	h, err := newModuleHook(tx, name, "ddp")
	if err != nil {
		return nil, nil, err
	}
	told, err := h.described(module, "DistributedDataParallel does what it did")
	if err != nil || told == pyNone {
		return nil, nil, err
	}
	return h, tx.Scope().Items(told), nil
}
