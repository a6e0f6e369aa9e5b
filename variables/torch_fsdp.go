package variables

import (
	"strings"

	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// FSDP2 (torch.distributed.fsdp.fully_shard) gathers a module's parameters in a hook before forward, and may drop them
// in a hook after it. The gathered parameters are results of the operation and take the places of the sharded ones.
// What they look like is known from the module's state, and guarded (python/godynamo/_called/fsdp.py).

// fsdpHook is a call of one of the two hooks.
type fsdpHook struct {
	*moduleHook
	before bool
	module *ObjectVariable
	cast   py.Object // the dtype to which the hook converts floating point tensors, or None
	rows   []py.Object
}

// staleParameter is a parameter of a module after the hook that may have dropped it. Reading it breaks the graph.
type staleParameter struct {
	Base
	name string
}

// Kind implements VariableTracker.
func (*staleParameter) Kind() string { return "TensorVariable" }

func (s *staleParameter) unknown() error {
	return unsupported(exc.AttrUnsupported, "%s, which FSDP2 may have resharded", s.name)
}

// fsdpHook calls a hook of FSDP2: hook(state, module, args, kwargs) or hook(state, module, args, result). It returns
// nil if it is unknown what the hook does.
func (t *TorchVariable) fsdpHook(tx Translator, name string, args []VariableTracker) (VariableTracker, error) {
	if len(args) != 4 {
		return nil, nil
	}
	module, ok := MustRealize(tx, args[1]).(*ObjectVariable)
	state, lazy := args[0].(*LazyVariable)
	if !ok || !lazy || module.Obj.IsNull() || module.Src == nil {
		return nil, nil
	}
	common, err := newModuleHook(tx, name, "fsdp")
	if err != nil {
		return nil, err
	}
	h := &fsdpHook{moduleHook: common, before: t.detail == "fsdp_before", module: module}
	h.replaces = h.replacesTensor
	if known, err := h.ask(state.obj); err != nil || !known {
		return nil, err
	}
	if h.before {
		return h.callBefore(args)
	}
	return h.callAfter(args)
}

// ask finds out what the hook does, once for both hooks. It returns false if that is unknown.
func (h *fsdpHook) ask(state py.Object) (bool, error) {
	s, w := h.tx.Scope(), h.tx.World()
	told, known := w.fsdpTold[h.module.Obj]
	if !known {
		var err error
		if told, err = h.described(h.module, "FSDP2 does what it did", state); err != nil || told == pyNone {
			return false, err
		}
		if w.fsdpTold == nil {
			w.fsdpTold = map[py.Object]py.Object{}
		}
		w.fsdpTold[h.module.Obj] = told
	}
	parts := s.Items(told)
	h.cast, h.rows = parts[0], s.Items(parts[2])
	if !h.before {
		h.cast = parts[1]
	}
	h.copies = h.cast != pyNone
	return true, nil
}

// callBefore calls the hook before forward. It returns the pair of args and kwargs.
func (h *fsdpHook) callBefore(args []VariableTracker) (VariableTracker, error) {
	positional, ok1 := MustRealize(h.tx, args[2]).(*TupleVariable)
	named, ok2 := MustRealize(h.tx, args[3]).(*DictVariable)
	if !ok1 || !ok2 || !named.Plain() {
		return nil, h.refused
	}
	for _, v := range append(capped(positional.items), named.values...) {
		if err := h.collect(v); err != nil {
			return nil, err
		}
	}
	if err := h.call("before", args[0], h.module); err != nil {
		return nil, err
	}
	items, err := h.passAll(positional.items)
	if err != nil {
		return nil, err
	}
	values, err := h.passAll(named.values)
	if err != nil {
		return nil, err
	}
	kwargs, err := NewDictOf(h.tx, named.keys, values)
	if err != nil {
		return nil, err
	}
	return NewTuple([]VariableTracker{NewTuple(items, nil), kwargs}, nil), h.replaceParameters()
}

// callAfter calls the hook after forward. It returns the module's result.
func (h *fsdpHook) callAfter(args []VariableTracker) (VariableTracker, error) {
	if err := h.collect(args[3]); err != nil {
		return nil, err
	}
	if err := h.call("after", args[0], h.module); err != nil {
		return nil, err
	}
	result := args[3] // the hook returns the same objects unless it converts
	if h.cast != pyNone {
		var err error
		if result, err = h.pass(result); err != nil {
			return nil, err
		}
	}
	return result, h.replaceParameters()
}

// replacesTensor implements moduleHook.replaces. Before forward, a tensor that requires gradients is replaced.
func (h *fsdpHook) replacesTensor(t *TensorVariable) (bool, py.Object, error) {
	if h.cast != pyNone {
		m, err := t.Meta(h.tx)
		if err != nil {
			return false, pyNone, err
		}
		t.Need(h.tx, "dtype")
		floats, err := h.tx.Scope().GetAttr(m.Dtype, "is_floating_point")
		if err != nil {
			return false, pyNone, err
		}
		if floats == py.True() && m.Dtype != h.cast {
			return true, h.cast, nil
		}
	}
	if !h.before {
		return false, pyNone, nil
	}
	recording, err := h.tx.World().Recording(h.tx.Scope())
	if err != nil || !recording {
		return false, pyNone, err
	}
	needs, err := h.tx.Output().RequiresGrad(h.tx, t)
	return needs, pyNone, err
}

// replaceParameters puts the parameters that the hook has gathered into the dicts of the modules. After forward, they
// are unknown.
func (h *fsdpHook) replaceParameters() error {
	s, w := h.tx.Scope(), h.tx.World()
	w.Replaced++ // for the rest of the translation
	h.taken = len(h.tensors)
	for _, row := range h.rows {
		parts := s.Items(row)
		var p VariableTracker
		if h.before {
			n, err := h.item()
			if err != nil {
				return err
			}
			t := NewTensor(n)
			if parts[1] != pyNone {
				t.Class = w.ParameterType
				h.tx.Output().Declare(n, Declared{Looks: parts[1]})
				w.gathered = append(w.gathered, t)
			}
			p = t
		}
		for _, place := range s.Items(parts[0]) {
			at := s.Items(place)
			path, name := texts(s.Items(at[0])), py.GoString(at[1])
			dict, i, err := h.place(path, name)
			if err != nil {
				return err
			}
			if p != nil {
				dict.Swap(i, p)
			} else {
				dict.Swap(i, &staleParameter{name: strings.Join(append(path, name), ".")})
			}
		}
	}
	return nil
}

func texts(objects []py.Object) []string {
	out := make([]string, len(objects))
	for i, o := range objects {
		out[i] = py.GoString(o)
	}
	return out
}

// place returns the entry of a module's dict that holds the parameter. path leads there from the hook's module.
func (h *fsdpHook) place(path []string, name string) (*DictVariable, int, error) {
	o := h.module
	for _, part := range path {
		dict, i, err := entry(h.tx, o, "_modules", part)
		if err != nil {
			return nil, 0, err
		}
		v, err := Realize(h.tx, dict.values[i])
		if err != nil {
			return nil, 0, err
		}
		sub, ok := v.(*ObjectVariable)
		if !ok {
			return nil, 0, h.refused
		}
		o = sub
	}
	return entry(h.tx, o, "_parameters", name)
}

// entry returns the place of a key in one of a module's dicts. Unlike TensorPlace, it does not read the value.
func entry(tx Translator, o *ObjectVariable, part, name string) (*DictVariable, int, error) {
	v, err := o.lookup(tx, part)
	if err == nil && v != nil {
		v, err = Realize(tx, v)
	}
	if err != nil {
		return nil, 0, err
	}
	if d, ok := v.(*DictVariable); ok {
		for i, k := range d.keys {
			if text, ok := ConstStr(tx, MustRealize(tx, k)); ok && text == name {
				return d, i, nil
			}
		}
	}
	return nil, 0, unsupported(exc.AttrUnsupported, "%s in %s of a module", name, part)
}
