// Package higher translates calls that take functions: torch.vmap and torch.func's transforms, torch's higher-order
// operators, torch.utils.checkpoint, torch.func.functional_call, and torch.autograd.Function.apply.
//
// Such a call is one operation of the graph. Each function is translated once into a graph of its own (Output.Body). To
// do so, the translator runs the function on sample tensors. They have the metadata of the tensors that the operation
// passes at run time. The operation's target (python/godynamo/_translator/higher.py) passes torch a function that runs
// that graph. Tensors that the function reads from outside are operands of the operation, so autograd and every backend
// see them.
//
// Package variables cannot import this package, so it calls this package through variables.HigherCalls.
package higher

import (
	"cmp"
	"slices"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// itemsOf returns the items of a list or tuple. They are always known, so Items returns no error.
func itemsOf(tx variables.Translator, v variables.Sequence) []variables.VariableTracker {
	items, _ := v.Items(tx)
	return items
}

// mapLeaves copies nested lists, tuples and dicts. It replaces each leaf by f's result, in the order of
// torch.utils._pytree. It returns false if it finds another container, or if f returns false.
func mapLeaves(tx variables.Translator, v variables.VariableTracker,
	f func(leaf variables.VariableTracker) (variables.VariableTracker, bool, error)) (variables.VariableTracker,
	bool, error) {
	v, err := variables.Realize(tx, v)
	if err != nil {
		return nil, false, err
	}
	if err := tx.World().Enter(); err != nil {
		return nil, false, err
	}
	defer tx.World().Leave()
	all := func(vs []variables.VariableTracker) ([]variables.VariableTracker, bool, error) {
		out := make([]variables.VariableTracker, len(vs))
		for i, it := range vs {
			r, ok, err := mapLeaves(tx, it, f)
			if !ok || err != nil {
				return nil, false, err
			}
			out[i] = r
		}
		return out, true, nil
	}
	if variables.Holder(v) != nil {
		return nil, false, nil
	}
	switch x := v.(type) {
	case *variables.ListVariable:
		items, ok, err := all(itemsOf(tx, x))
		return variables.NewList(items, nil), ok, err
	case *variables.TupleVariable:
		if !x.Subclass().IsNull() {
			if _, named := tx.World().NamedTupleFields(tx.Scope(), x.Subclass()); !named {
				return nil, false, nil
			}
		}
		items, ok, err := all(itemsOf(tx, x))
		return variables.NewTupleOf(items, x.Subclass(), nil), ok, err
	case *variables.DictVariable:
		if !x.Plain() {
			return nil, false, nil
		}
		values, ok, err := all(x.Values())
		if !ok || err != nil {
			return nil, false, err
		}
		d, err := variables.NewDictOf(tx, x.Keys(), values)
		if err != nil {
			return nil, false, err
		}
		return d, true, nil
	}
	return f(v)
}

// function is a function operand of an operation, captured as a graph.
type function struct {
	body     *variables.Body
	template py.Object // the result of _translator/higher.function
	results  variables.VariableTracker
	// tensors holds the tensors among the arguments, in the order of the body's placeholders.
	tensors []variables.VariableTracker
	plain   bool // whether all leaves of results are tensors
}

// higher is the state of a call that takes functions.
type higher struct {
	tx     variables.Translator
	module py.Object // godynamo._translator.higher
	name   string
	// fresh requires that functions return new tensors: no argument, no view of an argument, and no tensor twice.
	fresh bool
	// foreign is set if functions may contain foreign operations.
	foreign bool
	// sizes is set if the operation takes the sizes that functions read as operands.
	sizes bool
	// grad is set if the operation switches grad mode on, and it is off here.
	grad bool
	// transform is the name of one of torch.func's transforms, or empty.
	transform string
}

func newHigher(tx variables.Translator, name string) (*higher, error) {
	m, err := tx.Scope().Import("godynamo._translator.higher")
	return &higher{tx: tx, module: m, name: name}, err
}

func (h *higher) refused(what string) error {
	return exc.Break(exc.CallUnsupported, "%s %s", h.name, what)
}

// function captures f as a graph, for a call with these arguments. If the i-th leaf of the arguments is a tensor t, f
// receives sample(i, t) in its place.
func (h *higher) function(f variables.VariableTracker, args []variables.VariableTracker, kwargs []variables.Kw,
	sample func(i int, t *variables.TensorVariable) (*variables.TensorVariable, error)) (*function, error) {
	tx, s := h.tx, h.tx.Scope()
	out := &function{}
	var positions []py.Object
	var sampled []variables.VariableTracker
	var sampledKw []variables.Kw
	samples := func() ([]variables.VariableTracker, error) {
		var places []variables.VariableTracker
		leaves := 0
		replaced := func(v variables.VariableTracker) (variables.VariableTracker, error) {
			r, ok, err := mapLeaves(tx, v, func(leaf variables.VariableTracker) (variables.VariableTracker,
				bool, error) {
				leaves++
				t, isT := leaf.(*variables.TensorVariable)
				if !isT {
					_, known := variables.AsConstant(tx, leaf)
					return leaf, known, nil
				}
				if !t.Class.IsNull() && t.Class != tx.World().ParameterType {
					return nil, false, nil
				}
				p, err := sample(leaves-1, t)
				if err != nil {
					return nil, false, err
				}
				out.tensors = append(out.tensors, t)
				positions = append(positions, s.Int(int64(leaves-1)))
				places = append(places, p)
				return p, true, nil
			})
			if err == nil && !ok {
				err = h.refused("with " + variables.Describe(tx, v))
			}
			return r, err
		}
		for _, a := range args {
			r, err := replaced(a)
			if err != nil {
				return nil, err
			}
			sampled = append(sampled, r)
		}
		for _, kw := range kwargs {
			r, err := replaced(kw.Value)
			if err != nil {
				return nil, err
			}
			sampledKw = append(sampledKw, variables.Kw{Name: kw.Name, Value: r})
		}
		return places, nil
	}
	var result py.Object
	run := func() ([]variables.VariableTracker, error) {
		r, err := variables.Call(tx, f, sampled, sampledKw)
		if variables.IsObserved(err) {
			return nil, h.refused("of a function that raises")
		}
		if err != nil {
			return nil, err
		}
		out.results, out.plain = r, true
		var ends []variables.VariableTracker
		result, err = h.result(r, &ends, &out.plain)
		return ends, err
	}
	var err error
	defer h.begin()()
	accepts := variables.BodyRules{Fresh: h.fresh, Foreign: h.foreign, Grad: h.grad, Sizes: h.sizes}
	if out.body, err = tx.Output().Body(tx, accepts, unseen(tx, samples), run); err != nil {
		if u, ok := err.(*exc.Unsupported); ok && u.DataDependent {
			return nil, h.refused("of a function whose control flow depends on data")
		}
		return nil, err
	}
	out.template, err = s.CallMethod(h.module, "function", out.body.Rows, s.Tuple(positions...), result,
		boolObject(len(kwargs) == 0 && plainTensors(tx, args)))
	return out, err
}

// unseen returns a function that makes samples which the program's modes do not see.
func unseen(tx variables.Translator,
	samples func() ([]variables.VariableTracker, error)) func() ([]variables.VariableTracker, error) {
	return func() (places []variables.VariableTracker, err error) {
		err = tx.World().HandlersAside(func() error {
			places, err = samples()
			return err
		})
		return places, err
	}
}

// begin records that a transform will call the function that is captured. The function that it returns ends this.
func (h *higher) begin() func() {
	w := h.tx.World()
	before := w.Transforms
	if h.transform != "" {
		w.Transforms = append(slices.Clip(before), h.transform)
	}
	return func() { w.Transforms = before }
}

// switchesGradOn notes that the operation computes gradients in any grad mode. It breaks the graph in inference mode.
func (h *higher) switchesGradOn() error {
	s := h.tx.Scope()
	h.tx.Output().AddGuards(guards.GlobalState())
	on, err := h.tx.World().Recording(s)
	if err != nil {
		return err
	}
	if inference, err := h.tx.World().Inference(s); err != nil || inference {
		return cmp.Or(err, h.refused("in inference mode"))
	}
	h.grad = !on
	return nil
}

// keptFunction does the same as function, for an operation that keeps f and calls it again later. It breaks the graph
// if f calls a checkpoint: torch would decide whether f or the checkpoint's function runs again first.
func (h *higher) keptFunction(f variables.VariableTracker, args []variables.VariableTracker, kwargs []variables.Kw,
	sample func(i int, t *variables.TensorVariable) (*variables.TensorVariable, error)) (*function, error) {
	h.tx.World().Kept++
	defer func() { h.tx.World().Kept-- }()
	return h.function(f, args, kwargs, sample)
}

func boolObject(b bool) py.Object {
	if b {
		return py.True()
	}
	return py.False()
}

func plainTensors(tx variables.Translator, vs []variables.VariableTracker) bool {
	for _, v := range vs {
		if !variables.IsTensor(variables.MustRealize(tx, v)) {
			return false
		}
	}
	return true
}

// result returns the template of v, a nested value such as a function's result. At run time, a template builds a value
// of the same structure from tensors. result appends v's tensors to ends, and sets plain to false if v has other
// leaves.
func (h *higher) result(v variables.VariableTracker, ends *[]variables.VariableTracker,
	plain *bool) (py.Object, error) {
	tx, s := h.tx, h.tx.Scope()
	v, err := variables.Realize(tx, v)
	if err != nil {
		return py.Object{}, err
	}
	if err := tx.World().Enter(); err != nil {
		return py.Object{}, err
	}
	defer tx.World().Leave()
	all := func(vs []variables.VariableTracker) (py.Object, error) {
		out := make([]py.Object, len(vs))
		for i, it := range vs {
			var err error
			if out[i], err = h.result(it, ends, plain); err != nil {
				return py.Object{}, err
			}
		}
		return s.Tuple(out...), nil
	}
	switch x := v.(type) {
	case *variables.TensorVariable:
		if !x.Class.IsNull() && x.Class != tx.World().ParameterType {
			return py.Object{}, h.refused("with a " + py.TypeName(x.Class))
		}
		*ends = append(*ends, x)
		return s.CallMethod(h.module, "operand", s.Int(int64(len(*ends)-1)))
	case *variables.ListVariable, *variables.TensorSequence:
		items, err := variables.Unpack(tx, v)
		if err != nil {
			return py.Object{}, err
		}
		class, err := variables.PythonType(tx, v)
		if err != nil {
			return py.Object{}, err
		}
		parts, err := all(items)
		if err != nil {
			return py.Object{}, err
		}
		return s.CallMethod(h.module, "together", class, parts)
	case *variables.TupleVariable:
		class := tx.World().TupleType
		if !x.Subclass().IsNull() {
			class = x.Subclass()
			if _, named := tx.World().NamedTupleFields(s, class); !named {
				break
			}
		}
		parts, err := all(itemsOf(tx, x))
		if err != nil {
			return py.Object{}, err
		}
		return s.CallMethod(h.module, "together", class, parts)
	case *variables.DictVariable:
		if !x.Plain() {
			break
		}
		parts, err := all(x.Values())
		if err != nil {
			return py.Object{}, err
		}
		keys := make([]py.Object, len(x.Keys()))
		for i, k := range x.Keys() {
			c, known := variables.AsConstant(tx, variables.MustRealize(tx, k))
			if !known {
				return py.Object{}, h.refused("with a dict whose keys are not known")
			}
			keys[i] = c
		}
		return s.CallMethod(h.module, "mapping", s.Tuple(keys...), parts)
	}
	if c, known := variables.AsConstant(tx, v); known {
		*plain = false
		return s.CallMethod(h.module, "constant", c)
	}
	return py.Object{}, h.refused("with " + variables.Describe(tx, v))
}

// arguments returns the templates of the positional and of the keyword arguments, and the tensors in all of them.
func (h *higher) arguments(args []variables.VariableTracker,
	kwargs []variables.Kw) (templates [2]py.Object, tensors []variables.VariableTracker, err error) {
	plain := true
	if templates[0], err = h.result(variables.NewTuple(args, nil), &tensors, &plain); err != nil {
		return templates, nil, err
	}
	names := make([]variables.VariableTracker, len(kwargs))
	for i, kw := range kwargs {
		names[i] = variables.StrConst(h.tx, kw.Name)
	}
	named, err := variables.NewDictOf(h.tx, names, variables.KwValues(kwargs))
	if err != nil {
		return templates, nil, err
	}
	templates[1], err = h.result(named, &tensors, &plain)
	return templates, tensors, err
}

// skeleton returns vs as a real tuple in which each leaf is replaced by 0.
func (h *higher) skeleton(vs []variables.VariableTracker) (py.Object, error) {
	r, ok, err := mapLeaves(h.tx, variables.NewTuple(vs, nil),
		func(variables.VariableTracker) (variables.VariableTracker, bool, error) {
			return variables.IntConst(h.tx, 0), true, nil
		})
	if err == nil && ok {
		if o, known := plainOption(h.tx, r); known {
			return o, nil
		}
	}
	if err == nil {
		err = h.refused("with these arguments")
	}
	return py.Object{}, err
}

// like adds a call to the graph that makes a sample tensor from t, and returns that tensor. `how` is the name of the
// called function of _translator/higher.
func (h *higher) like(t *variables.TensorVariable, how string,
	args ...variables.VariableTracker) (*variables.TensorVariable, error) {
	fn, err := h.tx.Scope().GetAttr(h.module, how)
	if err != nil {
		return nil, err
	}
	node, err := h.tx.Output().CallFunction(h.tx, fn, "torch.func."+how,
		append([]variables.VariableTracker{t}, args...), nil)
	if err != nil {
		return nil, err
	}
	return variables.NewTensor(node), nil
}

// callGraphFunction calls a function that an operation of the graph returns at run time.
func callGraphFunction(tx variables.Translator, v *variables.GraphFunction, args []variables.VariableTracker,
	kwargs []variables.Kw) (variables.VariableTracker, error) {
	m, err := tx.Scope().Import("godynamo._translator.higher")
	if err != nil {
		return nil, err
	}
	called, err := tx.Scope().GetAttr(m, "called_function")
	if err != nil {
		return nil, err
	}
	h := &higher{tx: tx, module: m, name: "a function that the graph makes"}
	arguments, tensors, err := h.arguments(args, kwargs)
	if err != nil {
		return nil, err
	}
	target, err := tx.Scope().Call(called, arguments[0], arguments[1])
	if err != nil {
		return nil, err
	}
	return variables.CallAllowed(tx, target, "torch.func.called_function",
		append([]variables.VariableTracker{v}, tensors...), nil)
}
