package variables

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// t.register_hook(fn) and t.retain_grad() are operations of the graph, which run as in eager mode and never twice. fn
// is a real function, made before the operation. backward() runs it. If fn has no side effects, backward() can be in
// the graph, as with an autograd.Function: see translate/graph_custom_backward.go. Otherwise the graph breaks at
// backward().

// leafHooks are the hooks that the program has registered on an input of the graph.
type leafHooks struct {
	others *fxgraph.Node // reports whether the tensor had hooks before
	live   int           // the hooks that the program has not removed
}

// hookMethods are the methods that register hooks, with the function of _polyfills.autograd that calls such a hook.
// Nothing is known about hooks without one: they read and set gradients.
var hookMethods = map[string]string{"register_hook": "with_gradient", "register_post_accumulate_grad_hook": ""}

// hookMethod calls a method that registers a hook or keeps a gradient. ok is false for other methods.
func (t *TensorVariable) hookMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (v VariableTracker, ok bool, err error) {
	caller, registers := hookMethods[name]
	if !registers && name != "retain_grad" || tx.World().Calls > 0 || !t.plain(tx) {
		return nil, false, nil
	}
	if tx.Output().WholeGraph() {
		if t.Src == nil {
			tx.Output().ReadsHistory(nil)
		}
		return nil, false, nil
	}
	if !registers {
		if len(args)+len(kwargs) > 0 {
			return nil, false, nil
		}
		return NoneConst(), true, t.retainGrad(tx)
	}
	hook := arg(args, 0)
	if len(args) == 0 && len(kwargs) == 1 && kwargs[0].Name == "hook" {
		hook = kwargs[0].Value
	} else if len(args) != 1 || len(kwargs) > 0 {
		return nil, false, nil
	}
	v, err = t.registerHook(tx, name, caller, hook)
	return v, true, err
}

// retainGrad adds a call of retain_grad().
func (t *TensorVariable) retainGrad(tx Translator) error {
	node, err := tx.Output().CallForeign(tx, py.Object{}, "retain_grad", []VariableTracker{t}, nil)
	if err != nil {
		return err
	}
	node.Inplace = true
	if t = t.alone(tx); t.retained == nil {
		t.retained = node
	}
	return nil
}

// registerHook adds a call that registers a hook. The result is torch's handle.
func (t *TensorVariable) registerHook(tx Translator, name, caller string,
	hook VariableTracker) (VariableTracker, error) {
	hook, err := Realize(tx, hook)
	if err != nil {
		return nil, err
	}
	object, err := tx.Output().ObjectOperand(tx, hook)
	if err != nil {
		return nil, err
	}
	on, err := t.hooks(tx)
	if err != nil {
		return nil, err
	}
	node, err := tx.Output().CallForeign(tx, py.Object{}, name, []VariableTracker{t, object}, nil)
	if err != nil {
		return nil, err
	}
	node.Inplace, tx.World().registered = true, true
	if on != nil {
		on.live++
	}
	handle := &OpaqueVariable{Node: node, name: name + "()", part: "hook", hooks: on}
	return handle, tx.Output().Custom(node, py.Object{}, func() error { return t.runHook(tx, caller, hook) }, nil)
}

// hooks returns the hooks of the program on an input, or nil for a tensor that the graph computes: nobody else can have
// registered hooks on it.
func (t *TensorVariable) hooks(tx Translator) (*leafHooks, error) {
	if t.Src == nil {
		return nil, nil
	}
	w := tx.World()
	if w.hooked == nil {
		w.hooked = map[*fxgraph.Node]*leafHooks{}
	}
	if w.hooked[t.Node] == nil {
		fn, err := checkOf(tx, "has_hooks")
		if err != nil {
			return nil, err
		}
		others, err := tx.Output().CallForeign(tx, fn, "godynamo.has_hooks", []VariableTracker{t}, nil)
		if err != nil {
			return nil, err
		}
		w.hooked[t.Node] = &leafHooks{others: others}
	}
	return w.hooked[t.Node], nil
}

// runHook calls a hook with a gradient like t, as backward() does.
func (t *TensorVariable) runHook(tx Translator, caller string, hook VariableTracker) error {
	if caller == "" {
		return unsupported(exc.CallUnsupported, "a hook that reads gradients")
	}
	return callAutograd(tx, caller, hook, t)
}

// removeHook adds a call of the handle's remove().
func (o *OpaqueVariable) removeHook(tx Translator) (VariableTracker, error) {
	node, err := tx.Output().CallForeign(tx, py.Object{}, "remove", []VariableTracker{o}, nil)
	if err != nil {
		return nil, err
	}
	node.Inplace = true
	if o.hooks != nil && !o.removed {
		o.hooks.live--
	}
	o.removed = true
	return NoneConst(), nil
}
