package higher

import (
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// torch.utils.checkpoint.checkpoint calls its function twice: in forward, and again in backward. Between the two calls,
// the program may change values that the function reads. So only the first run is the captured graph; the second calls
// the user's own function.

// checkpoint implements torch.utils.checkpoint.checkpoint.
func checkpoint(tx variables.Translator, t *variables.TorchVariable, args []variables.VariableTracker,
	kwargs []variables.Kw) (variables.VariableTracker, error) {
	h, err := newHigher(tx, "torch.checkpoint")
	if err != nil {
		return nil, err
	}
	if len(args) < 2 {
		return nil, h.refused("with these arguments")
	}
	h.foreign = !tx.Output().WholeGraph() && !tx.World().Exporting
	if tx.World().Kept > 0 {
		return nil, h.refused("in a function that is kept as well")
	}
	named, err := h.checkpointed(kwargs)
	if err != nil {
		return nil, err
	}
	f, err := h.keptFunction(args[0], args[1:], named,
		func(_ int, x *variables.TensorVariable) (*variables.TensorVariable, error) {
			return h.like(x, "stand_in")
		})
	if err != nil {
		return nil, err
	}
	// If the backend decomposes operators, its trace of the graph contains the second run as well.
	if tx.Output().WholeGraph() && tx.Output().TakesApart() {
		return h.call(f, "direct", []py.Object{t.Fn}, args[1:], kwargs)
	}
	places, values, err := h.changeable(args[1:], named)
	if err != nil {
		return nil, err
	}
	made, tensors, err := h.made(f, "checkpointed", []py.Object{t.Fn, places}, args[1:], kwargs)
	if err != nil {
		return nil, err
	}
	parts := tx.Scope().Items(made)
	result, err := h.add(f, parts[0], tensors)
	if err != nil {
		return nil, err
	}
	supplied := append([]variables.VariableTracker{variables.MustRealize(tx, args[0])}, values...)
	supply := parts[1]
	tx.Output().Const(supply)
	return result, tx.Output().CallAside(tx, supplied, func(e variables.Emitter) error {
		e.PushNull()
		e.LoadConst(supply)
		if err := variables.LoadAll(e, supplied); err != nil {
			return err
		}
		e.Call(len(supplied), nil)
		return nil
	})
}

// checkpointed returns the keyword arguments that are passed to the function. It refuses options of checkpoint that are
// not supported.
func (h *higher) checkpointed(kwargs []variables.Kw) (named []variables.Kw, err error) {
	reentrant := py.None() // torch takes None for True, with a warning
	for _, kw := range kwargs {
		switch kw.Name {
		case "use_reentrant":
			var known bool
			if reentrant, known = variables.AsConstant(h.tx, variables.MustRealize(h.tx, kw.Value)); !known {
				return nil, h.refused("with use_reentrant")
			}
		case "preserve_rng_state", "determinism_check", "debug", "early_stop":
		case "context_fn":
			return nil, h.refused("with context_fn")
		default:
			named = append(named, kw)
		}
	}
	if reentrant != py.False() && h.tx.Output().WholeGraph() {
		return nil, h.refused("with use_reentrant") // backends cannot trace it
	}
	return named, nil
}

// changeable returns the arguments that the program may change before the second run. For each of them, `places` holds
// its position or its keyword.
func (h *higher) changeable(args []variables.VariableTracker,
	named []variables.Kw) (places py.Object, values []variables.VariableTracker, err error) {
	var at []py.Object
	add := func(v variables.VariableTracker, place py.Object) error {
		v, err := variables.Realize(h.tx, v)
		if err != nil {
			return err
		}
		if _, known := variables.AsConstant(h.tx, v); !known && !variables.IsTensor(v) {
			at, values = append(at, place), append(values, v)
		}
		return nil
	}
	for i, v := range args {
		if err := add(v, h.tx.Scope().Int(int64(i))); err != nil {
			return places, nil, err
		}
	}
	for _, kw := range named {
		if err := add(kw.Value, h.tx.Scope().Str(kw.Name)); err != nil {
			return places, nil, err
		}
	}
	return h.tx.Scope().Tuple(at...), values, nil
}
