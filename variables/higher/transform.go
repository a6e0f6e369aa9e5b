package higher

import (
	"slices"
	"strings"

	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// TransformVariable is a function that torch.vmap, torch.func.grad or another transform returned. A call of it is one
// operation of the graph. In it, torch's transform runs the graph of the inner function (see higher.go).
type TransformVariable struct {
	variables.Base
	maker  py.Object
	name   string // vmap, grad, ...
	args   []variables.VariableTracker
	kwargs []variables.Kw
}

// makeTransform implements torch.vmap and the other transforms.
func makeTransform(tx variables.Translator, t *variables.TorchVariable, name string, args []variables.VariableTracker,
	kwargs []variables.Kw) (variables.VariableTracker, error) {
	if len(args) == 0 {
		return nil, exc.Break(exc.CallUnsupported, "%s without a function", name)
	}
	for _, a := range append(variables.KwValues(kwargs), args[1:]...) {
		if _, known := plainOption(tx, a); !known {
			return nil, exc.Break(exc.CallUnsupported, "%s with %s", name, variables.Describe(tx, a))
		}
	}
	f, err := variables.Realize(tx, args[0])
	if err != nil {
		return nil, err
	}
	made := append([]variables.VariableTracker{f}, args[1:]...)
	return &TransformVariable{maker: t.Fn, name: name[strings.LastIndexByte(name, '.')+1:], args: made, kwargs: kwargs},
		nil
}

// plainOption returns the real object of an option of a transform (an argument other than the function). It returns
// false if the option is not plain data.
func plainOption(tx variables.Translator, v variables.VariableTracker) (py.Object, bool) {
	if c, known := variables.AsConstant(tx, variables.MustRealize(tx, v)); known {
		return c, true
	}
	x, ok := variables.MustRealize(tx, v).(*variables.TupleVariable)
	if !ok {
		return variables.PlainCopy(tx, v)
	}
	given := itemsOf(tx, x)
	items := make([]py.Object, len(given))
	for i, it := range given {
		if items[i], ok = plainOption(tx, it); !ok {
			return items[i], false
		}
	}
	made := tx.Scope().Tuple(items...)
	if x.Subclass().IsNull() {
		return made, true
	}
	if _, named := tx.World().NamedTupleFields(tx.Scope(), x.Subclass()); !named {
		return made, false
	}
	return py.Answered(tx.Scope().CallMethod(x.Subclass(), "_make", made))
}

// transformed calls a function that a transform returned before the frame ran. The inner function and the transform's
// options are in the closure of t.
func transformed(tx variables.Translator, t *variables.TorchVariable, args []variables.VariableTracker,
	kwargs []variables.Kw) (variables.VariableTracker, error) {
	s := tx.Scope()
	if t.Src == nil {
		return nil, exc.Break(exc.CallUnsupported, "a transformed function")
	}
	m, err := s.Import("godynamo._translator.higher")
	if err != nil {
		return nil, err
	}
	r, err := s.CallMethod(m, "made_by", t.Fn)
	if err != nil {
		return nil, err
	}
	parts := s.Items(r)
	v := &TransformVariable{maker: parts[0], name: py.GoString(parts[1])}
	fields, err := variables.Realize(tx, tx.Build(parts[2], guards.NewFunctionFieldSource(t.Src, guards.FuncClosure)))
	if err != nil {
		return nil, err
	}
	cells, err := variables.Unpack(tx, fields)
	if err != nil {
		return nil, err
	}
	for i, name := range s.Items(parts[3]) {
		if name == py.None() {
			continue
		}
		c, err := variables.Realize(tx, cells[i])
		if err != nil {
			return nil, err
		}
		cell, ok := c.(*variables.CellVariable)
		if !ok {
			return nil, exc.Break(exc.CallUnsupported, "a transformed function")
		}
		content, err := cell.Get(tx)
		if err != nil || content == nil {
			return nil, exc.Break(exc.CallUnsupported, "a transformed function with an empty cell")
		}
		if content, err = variables.Realize(tx, content); err != nil {
			return nil, err
		}
		if text := py.GoString(name); text == "func" {
			v.args = []variables.VariableTracker{content}
		} else if _, known := plainOption(tx, content); known {
			v.kwargs = append(v.kwargs, variables.Kw{Name: text, Value: content})
		} else {
			return nil, exc.Break(exc.CallUnsupported, "a transformed function with %s",
				variables.Describe(tx, content))
		}
	}
	return v.Call(tx, args, kwargs)
}

// Kind implements VariableTracker.
func (*TransformVariable) Kind() string { return "FunctorchHigherOrderVariable" }

// Children implements Container.
func (v *TransformVariable) Children() []variables.VariableTracker {
	return append(variables.KwValues(v.kwargs), v.args...)
}

// PythonType implements Typed.
func (*TransformVariable) PythonType(tx variables.Translator) (py.Object, error) {
	return tx.World().FunctionType, nil
}

// Truth implements Truther.
func (*TransformVariable) Truth(variables.Translator) (bool, error) { return true, nil }

// Reconstruct implements Reconstructer.
func (v *TransformVariable) Reconstruct(e variables.Emitter) error {
	e.PushNull()
	e.LoadConst(v.maker)
	if err := variables.LoadAll(e, v.args); err != nil {
		return err
	}
	names := variables.KwNames(v.kwargs)
	for _, kw := range v.kwargs {
		if err := e.Load(kw.Value); err != nil {
			return err
		}
	}
	e.Call(len(v.args)+len(names), names)
	return nil
}

// Call implements Caller.
func (v *TransformVariable) Call(tx variables.Translator, args []variables.VariableTracker,
	kwargs []variables.Kw) (variables.VariableTracker, error) {
	h, err := newHigher(tx, "torch.func."+v.name)
	if err != nil {
		return nil, err
	}
	h.transform = v.name
	s := tx.Scope()
	var dims []py.Object
	if v.name == "vmap" {
		if dims, err = v.dimensions(h, args); err != nil {
			return nil, err
		}
	}
	differentiated, err := v.differentiated(h, args)
	if err != nil {
		return nil, err
	}
	f, err := h.function(v.args[0], args, kwargs,
		func(i int, t *variables.TensorVariable) (*variables.TensorVariable, error) {
			if i < len(dims) && dims[i] != py.None() {
				dim, _ := py.AsInt(dims[i])
				if m, err := t.Sizes(tx); err == nil && len(m.Shape) > int(max(dim, 0)) && dim >= 0 &&
					variables.IsEmpty(tx, m.Shape[dim]) {
					return h.like(t, "one_of_none", variables.IntConst(tx, int(dim)))
				}
				node, err := tx.Output().CallMethod(tx, "select",
					[]variables.VariableTracker{t, variables.IntConst(tx, int(dim)), variables.IntConst(tx, 0)}, nil)
				if err != nil {
					return nil, err
				}
				return variables.NewTensor(node), nil
			}
			if slices.Contains(differentiated, i) {
				return h.like(t, "differentiated")
			}
			return h.like(t, "stand_in")
		})
	if err != nil {
		return nil, err
	}
	if v.name == "vmap" && f.body.Elementwise && f.plain {
		if r, ok, err := v.unbatched(h, f, dims); ok || err != nil {
			return r, err
		}
	}
	options, names := make([]py.Object, 0, len(v.args)+len(v.kwargs)), variables.KwNames(v.kwargs)
	for _, a := range append(slices.Clone(v.args[1:]), variables.KwValues(v.kwargs)...) {
		o, _ := plainOption(tx, a)
		options = append(options, o)
	}
	named, err := s.Dict()
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		s.DictSet(named, name, options[len(v.args)-1+i])
	}
	var r variables.VariableTracker
	err = tx.World().OutOfSight(tx, h.name, func() (err error) {
		parts := []py.Object{v.maker, s.Tuple(options[:len(v.args)-1]...), named}
		r, err = h.call(f, "transformation", parts, args, kwargs)
		return err
	})
	return r, err
}

// call adds to the graph an operation that takes f, and returns the results of the operation. `maker` is the name of
// the function of _translator/higher that makes the operation.
func (h *higher) call(f *function, maker string, parts []py.Object, args []variables.VariableTracker,
	kwargs []variables.Kw) (variables.VariableTracker, error) {
	made, tensors, err := h.made(f, maker, parts, args, kwargs)
	if err != nil {
		return nil, err
	}
	return h.add(f, made, tensors)
}

// made calls maker and returns its result, and the tensors among the arguments.
func (h *higher) made(f *function, maker string, parts []py.Object, args []variables.VariableTracker,
	kwargs []variables.Kw) (py.Object, []variables.VariableTracker, error) {
	s := h.tx.Scope()
	arguments, tensors, err := h.arguments(args, kwargs)
	if err != nil {
		return py.Object{}, nil, err
	}
	made, err := s.CallMethod(h.module, maker,
		append([]py.Object{s.Str("torch_func_" + h.operation(f)), f.template, arguments[0], arguments[1]}, parts...)...)
	return made, tensors, err
}

// operation returns the name of an operation that takes f.
func (h *higher) operation(f *function) string {
	name := h.name[strings.LastIndexByte(h.name, '.')+1:]
	if f.body.Draws {
		name += "_random" // the suffix marks operations that draw random numbers
	}
	return name
}

func (h *higher) add(f *function, target py.Object,
	tensors []variables.VariableTracker) (variables.VariableTracker, error) {
	name := "torch.func." + h.operation(f)
	args := append([]variables.VariableTracker{variables.NewTuple(f.body.Free, nil)}, tensors...)
	if f.body.Foreign {
		return h.addForeign(f, target, name, args)
	}
	return variables.CallBodies(h.tx, target, name, args, nil)
}

// addForeign adds an operation whose function runs foreign operations. No FakeTensor computes its results, which are
// those of the function.
func (h *higher) addForeign(f *function, target py.Object, name string,
	args []variables.VariableTracker) (variables.VariableTracker, error) {
	out := h.tx.Output()
	node, err := out.CallForeign(h.tx, target, name, args, nil)
	if err != nil {
		return nil, err
	}
	results, ok := f.results.(*variables.TupleVariable)
	if !ok || !results.Subclass().IsNull() {
		if !f.plain || len(f.body.Ends) != 1 || !variables.IsTensor(f.results) {
			return nil, h.refused("of a function of torch.distributed that returns more than tensors")
		}
		out.GiveForeign(node, f.body.Ends[0])
		return variables.NewTensor(node), nil
	}
	items := itemsOf(h.tx, results)
	if !f.plain || len(items) != len(f.body.Ends) {
		return nil, h.refused("of a function of torch.distributed that returns more than tensors")
	}
	for i := range items {
		item, err := out.CallForeign(h.tx, h.tx.World().Operator("getitem"), "operator.getitem",
			[]variables.VariableTracker{&variables.TensorSequence{Node: node}, variables.IntConst(h.tx, i)}, nil)
		if err != nil {
			return nil, err
		}
		out.GiveForeign(item, f.body.Ends[i])
		items[i] = variables.NewTensor(item)
	}
	return variables.NewTuple(items, nil), nil
}

// option returns the transform's i-th argument, or its keyword argument `name`. It returns `absent` if neither was
// passed.
func (v *TransformVariable) option(i int, name string, absent variables.VariableTracker) variables.VariableTracker {
	if len(v.args) > i {
		return v.args[i]
	}
	for _, kw := range v.kwargs {
		if kw.Name == name {
			return kw.Value
		}
	}
	return absent
}

// dimensions returns, for each leaf of the arguments, the dimension over which torch.vmap maps it.
func (v *TransformVariable) dimensions(h *higher, args []variables.VariableTracker) ([]py.Object, error) {
	along, _ := plainOption(h.tx, v.option(1, "in_dims", variables.IntConst(h.tx, 0)))
	skeleton, err := h.skeleton(args)
	if err != nil {
		return nil, err
	}
	dims, ok := py.Answered(h.tx.Scope().CallMethod(h.module, "dimensions", along, skeleton))
	if !ok || dims == py.None() {
		return nil, h.refused("along these dimensions")
	}
	return h.tx.Scope().Items(dims), nil
}

// differentiated returns the indices of the leaves of the arguments that require gradients inside torch.func.grad and
// similar transforms. These transforms differentiate in any grad mode.
func (v *TransformVariable) differentiated(h *higher, args []variables.VariableTracker) ([]int, error) {
	if v.name == "vmap" || v.name == "jacfwd" || v.name == "jvp" {
		return nil, nil
	}
	s := h.tx.Scope()
	if err := h.switchesGradOn(); err != nil {
		return nil, err
	}
	argnums, _ := plainOption(h.tx, v.option(1, "argnums", variables.IntConst(h.tx, 0)))
	skeleton, err := h.skeleton(args)
	if err != nil {
		return nil, err
	}
	leaves, ok := py.Answered(s.CallMethod(h.module, "differentiated_leaves", argnums, skeleton))
	if !ok || leaves == py.None() {
		return nil, h.refused("by these arguments")
	}
	var out []int
	for _, l := range s.Items(leaves) {
		n, _ := py.AsInt(l)
		out = append(out, int(n))
	}
	return out, nil
}

// unbatched implements torch.vmap over the first dimension of an elementwise f: it runs f's operations on the whole
// tensors. It returns false for other calls.
func (v *TransformVariable) unbatched(h *higher, f *function,
	dims []py.Object) (variables.VariableTracker, bool, error) {
	tx := h.tx
	zero := variables.IntConst(tx, 0)
	for _, kw := range v.kwargs {
		if kw.Name == "chunk_size" && kw.Value != nil {
			if c, known := variables.AsConstant(tx, variables.MustRealize(tx, kw.Value)); !known || c != py.None() {
				return nil, false, nil
			}
		}
	}
	if out, known := variables.AsConstant(tx, variables.MustRealize(tx, v.option(2, "out_dims", zero))); !known ||
		out != zero.Value || len(v.args) > 3 {
		return nil, false, nil
	}
	var sizes []sym.Size
	for _, t := range f.tensors {
		m, err := t.(*variables.TensorVariable).Sizes(tx)
		if err != nil || len(m.Shape) == 0 {
			return nil, false, nil
		}
		t.(*variables.TensorVariable).Need(tx, "shape")
		sizes = append(sizes, m.Shape[0])
		if same, err := tx.Output().Decide(tx, tx.World().Env().Eq(m.Shape[0], sizes[0])); err != nil || !same {
			return nil, false, nil
		}
	}
	tensors := 0
	for _, d := range dims {
		if n, ok := py.AsInt(d); ok && n == 0 {
			tensors++
		}
	}
	if tensors != len(f.tensors) || tensors != len(dims) {
		return nil, false, nil
	}
	ends, err := f.body.Replay(f.tensors)
	if err != nil {
		return nil, false, err
	}
	at := 0
	r, ok, err := mapLeaves(tx, f.results, func(variables.VariableTracker) (variables.VariableTracker, bool, error) {
		at++
		return ends[at-1], true, nil
	})
	if err == nil && !ok {
		err = h.refused("of a function that returns " + variables.Describe(tx, f.results))
	}
	return r, true, err
}

// take implements torch functions that take a function and call it: torch.func.vjp, jvp and linearize, functional_call,
// and checkpoint.
func take(tx variables.Translator, t *variables.TorchVariable, what string, args []variables.VariableTracker,
	kwargs []variables.Kw) (variables.VariableTracker, error) {
	switch what {
	case "functional_call":
		return functionalCall(tx, args, kwargs)
	case "checkpoint":
		return checkpoint(tx, t, args, kwargs)
	}
	h, err := newHigher(tx, "torch."+what)
	if err != nil {
		return nil, err
	}
	if len(args) < 2 {
		return nil, h.refused("with these arguments")
	}
	h.transform = what
	given, how := args[1:], "stand_in"
	switch what {
	case "jvp":
		v, err := variables.Realize(tx, args[1])
		if err != nil {
			return nil, err
		}
		primals, ok := v.(*variables.TupleVariable)
		if !ok {
			return nil, h.refused("with " + variables.Describe(tx, v))
		}
		given = itemsOf(tx, primals)
	case "vjp":
		how = "differentiated"
		if err := h.switchesGradOn(); err != nil {
			return nil, err
		}
	}
	f, err := h.keptFunction(args[0], given, nil, func(_ int, x *variables.TensorVariable) (*variables.TensorVariable,
		error) {
		return h.like(x, how)
	})
	if err != nil {
		return nil, err
	}
	return h.call(f, "direct", []py.Object{t.Fn}, args[1:], kwargs)
}
