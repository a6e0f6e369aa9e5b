package higher

import (
	"cmp"
	"slices"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// applyFunction implements MyFunction.apply of a torch.autograd.Function. The call becomes one operation of the graph.
// That operation calls the real apply, so that autograd uses the function's backward. The forward is translated once,
// with a stand-in for ctx, only to find its guards. The graph breaks if the forward has visible side effects or uses
// ctx for more than saving tensors. Arguments other than tensors and constants are operands of a foreign operation.
func applyFunction(tx variables.Translator, class *variables.ClassVariable,
	args []variables.VariableTracker) (variables.VariableTracker, error) {
	w, s := tx.World(), tx.Scope()
	refused := exc.Break(exc.CallUnsupported, "%s.apply", py.TypeName(class.Class))
	objects := false
	for i, a := range args {
		v, err := variables.Realize(tx, a)
		if err != nil {
			return nil, err
		}
		args[i], objects = v, objects || isObject(tx, v)
	}
	parts, err := w.AutogradParts(s)
	if err != nil {
		return nil, err
	}
	context := variables.NewClass(parts[0], guards.NewConstSource(tx.Output().Const(parts[0]), "___ctx"))
	f := &autogradFunction{class: class, context: context, args: args}
	sizes, seen, draws, err := tx.Output().Tentative(func() (variables.VariableTracker, error) {
		ctx, r, err := f.forward(tx)
		if err == nil {
			err = f.noteDirty(tx, ctx, r)
		}
		if err == nil && objects {
			err = f.look(tx, ctx, r)
		}
		return r, err
	})
	if variables.IsObserved(err) || err == nil && (seen || draws && tx.Output().WholeGraph()) {
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	if runs, err := f.runsUnseen(tx, parts[2]); err != nil || runs {
		return nil, cmp.Or(err, refused)
	}
	apply, err := s.GetAttr(class.Class, "apply")
	if tx.Output().WholeGraph() || tx.Output().InBody() {
		apply, err = s.Call(parts[1], class.Class)
	}
	if err != nil {
		return nil, variables.Observe(err)
	}
	name := py.TypeName(class.Class) + ".apply"
	var node *fxgraph.Node
	r := variables.VariableTracker(nil)
	if objects {
		node, r, err = f.callWithObjects(tx, apply, name)
	} else if sizes == nil {
		r, err = variables.CallMarked(tx, apply, name, args, func(n *fxgraph.Node) { node = n })
	} else if node, err = tx.Output().CallFunction(tx, apply, name, args, nil); err == nil {
		tx.Output().GiveSizes(node, sizes)
		r = variables.NewTensor(node)
	}
	if err != nil {
		return nil, err
	}
	node.Opaque = node.Opaque || draws
	if r, err = f.withDirty(tx, r, node); err != nil {
		return nil, err
	}
	look := func() error { return f.differentiate(tx, parts[2]) }
	return r, tx.Output().Custom(node, class.Class, look, f.steady(tx, objects))
}

// autogradFunction is a call of an autograd.Function.
type autogradFunction struct {
	class, context *variables.ClassVariable
	args           []variables.VariableTracker
	// results has what look has found: for each result its looks, or Null and the constant. single is set if there is
	// one result that is not in a tuple.
	results []appliedResult
	single  bool
	// dirty has, for the index of each result that is an argument which forward has changed and marked, that argument.
	dirty map[int]variables.VariableTracker
}

// steady returns a function that reports whether the backward pass has no side effects in any state of the program.
// It returns nil if the pass may call objects that it gets as arguments.
func (f *autogradFunction) steady(tx variables.Translator, objects bool) func() (bool, error) {
	if objects {
		return nil
	}
	return func() (bool, error) {
		m, err := tx.Scope().Import("godynamo._translator.operators")
		if err != nil {
			return false, err
		}
		may, err := tx.Scope().CallMethod(m, "function_may_change", f.class.Class)
		return may == py.False(), err
	}
}

// noteDirty looks for results that are arguments which forward has marked as changed. torch returns these objects.
func (f *autogradFunction) noteDirty(tx variables.Translator, ctx, r variables.VariableTracker) error {
	v, err := variables.GetAttr(tx, ctx, "dirty")
	if err != nil {
		return err
	}
	marked, err := variables.Unpack(tx, v)
	if err != nil || len(marked) == 0 {
		return err
	}
	refused := exc.Break(exc.CallUnsupported, "%s.apply, which marks tensors as changed", py.TypeName(f.class.Class))
	if tx.Output().WholeGraph() || tx.Output().InBody() || slices.ContainsFunc(f.args,
		func(a variables.VariableTracker) bool { return isObject(tx, a) }) {
		return refused
	}
	all := []variables.VariableTracker{variables.MustRealize(tx, r)}
	if t, ok := all[0].(*variables.TupleVariable); ok && t.Subclass().IsNull() {
		all = itemsOf(tx, t)
	}
	f.dirty = map[int]variables.VariableTracker{}
	for _, m := range marked {
		m = variables.MustRealize(tx, m)
		at := slices.IndexFunc(all, func(v variables.VariableTracker) bool { return variables.MustRealize(tx, v) == m })
		if at < 0 || !slices.Contains(f.args, m) {
			return refused
		}
		f.dirty[at] = m
	}
	return nil
}

// withDirty returns the operation's result with the arguments that noteDirty has found.
func (f *autogradFunction) withDirty(tx variables.Translator, r variables.VariableTracker,
	node *fxgraph.Node) (variables.VariableTracker, error) {
	if len(f.dirty) == 0 {
		return r, nil
	}
	node.Inplace = true
	t, ok := r.(*variables.TupleVariable)
	if !ok {
		return f.dirty[0], nil
	}
	items := slices.Clone(itemsOf(tx, t))
	for i, v := range f.dirty {
		items[i] = v
	}
	return variables.NewTuple(items, nil), nil
}

// methodsRun names the methods of an autograd.Function, other than forward, that torch.func's transforms call.
var methodsRun = map[string][]string{"vmap": {"vmap"}, "grad": {"backward"}, "grad_and_value": {"backward"},
	"vjp": {"backward"}, "jacrev": {"backward", "vmap"}, "jvp": {"jvp"}, "linearize": {"jvp"},
	"jacfwd": {"jvp", "vmap"}, "hessian": {"backward", "jvp", "vmap"}}

// runsUnseen reports whether code of the function with side effects may run while translating, or only then: a
// transform runs backward, jvp and vmap on fake tensors, and a backend that decomposes operators traces backward.
func (f *autogradFunction) runsUnseen(tx variables.Translator, differentiate py.Object) (bool, error) {
	run := map[string]bool{}
	for _, name := range tx.World().Transforms {
		for _, method := range methodsRun[name] {
			run[method] = true
		}
	}
	s := tx.Scope()
	for _, name := range []string{"vmap", "jvp"} {
		if !run[name] {
			continue
		}
		own, _ := s.TypeLookup(f.class.Class, name)
		if theirs, _ := s.TypeLookup(tx.World().AutogradFunction, name); own != theirs {
			return true, nil
		}
	}
	if !run["backward"] && !(tx.Output().WholeGraph() && tx.Output().TakesApart()) {
		return false, nil
	}
	_, seen, _, err := tx.Output().Tentative(func() (variables.VariableTracker, error) {
		return variables.NoneConst(), f.differentiate(tx, differentiate)
	})
	switch err.(type) {
	case nil:
		return seen, nil
	case *exc.Unsupported, *exc.Observed:
		return run["backward"], nil
	}
	return true, err
}

// isObject reports whether an argument is neither a tensor nor a constant that torch.fx can print.
func isObject(tx variables.Translator, v variables.VariableTracker) bool {
	if variables.IsTensor(v) {
		return false
	}
	if _, known := variables.AsConstant(tx, v); !known {
		return true
	}
	_, err := variables.AsProxy(tx, v)
	return err != nil
}

// appliedResult is a tensor with these looks (_translator/fake.looks), or a constant if they are Null.
type appliedResult struct {
	looks    py.Object
	constant variables.VariableTracker
}

// look finds out what the results of a forward look like, for a function whose arguments FakeTensor cannot take.
func (f *autogradFunction) look(tx variables.Translator, ctx, r variables.VariableTracker) error {
	r, err := variables.Realize(tx, r)
	if err != nil {
		return err
	}
	all := []variables.VariableTracker{r}
	f.results, f.single = nil, true
	if t, ok := r.(*variables.TupleVariable); ok && t.Subclass().IsNull() {
		all, f.single = itemsOf(tx, t), false
	}
	tx.Output().AddGuards(guards.GlobalState())
	recording, err := tx.World().Recording(tx.Scope())
	if err != nil {
		return err
	}
	requires := false
	for _, a := range f.args {
		if variables.IsTensor(a) && recording && !requires {
			flag, err := variables.GetAttr(tx, a, "requires_grad")
			if err != nil {
				return err
			}
			if requires, err = variables.Truth(tx, flag); err != nil {
				return err
			}
		}
	}
	excluded, err := f.excluded(tx, ctx)
	if err != nil {
		return err
	}
	m, err := tx.Scope().Import("godynamo._translator.fake")
	if err != nil {
		return err
	}
	for _, v := range all {
		if v, err = variables.Realize(tx, v); err != nil {
			return err
		}
		t, isT := v.(*variables.TensorVariable)
		if _, known := variables.AsConstant(tx, v); !isT && !known || isT && !t.Class.IsNull() &&
			t.Class != tx.World().ParameterType {
			return exc.Break(exc.CallUnsupported, "%s.apply, which returns %s", py.TypeName(f.class.Class),
				variables.Describe(tx, v))
		}
		if !isT {
			f.results = append(f.results, appliedResult{constant: v})
			continue
		}
		sample, err := tx.Output().Sample(t)
		if err != nil {
			return err
		}
		looks, err := tx.Scope().CallMethod(m, "looks", sample, py.Bool(requires && !slices.Contains(excluded, v)))
		if err != nil {
			return exc.Break(exc.TensorMetadata, "%v", err)
		}
		f.results = append(f.results, appliedResult{looks: looks})
	}
	return nil
}

// excluded returns the results that forward has marked as not differentiable.
func (f *autogradFunction) excluded(tx variables.Translator,
	ctx variables.VariableTracker) ([]variables.VariableTracker, error) {
	v, err := variables.GetAttr(tx, ctx, "non_differentiable")
	if err != nil {
		return nil, err
	}
	items, err := variables.Unpack(tx, v)
	for i := range items {
		items[i] = variables.MustRealize(tx, items[i])
	}
	return items, err
}

// callWithObjects adds the operation for arguments some of which are objects. Nothing computes its results again.
func (f *autogradFunction) callWithObjects(tx variables.Translator, apply py.Object,
	name string) (*fxgraph.Node, variables.VariableTracker, error) {
	out := tx.Output()
	operands := slices.Clone(f.args)
	for i, a := range operands {
		if !isObject(tx, a) {
			continue
		}
		o, err := out.ObjectOperand(tx, a)
		if err != nil {
			return nil, nil, err
		}
		operands[i] = o
	}
	node, err := out.CallForeign(tx, apply, name, operands, nil)
	if err != nil {
		return nil, nil, err
	}
	if f.single && !f.results[0].looks.IsNull() {
		out.Declare(node, variables.Declared{Looks: f.results[0].looks, Computed: true})
		return node, variables.NewTensor(node), nil
	}
	node.Inplace = true // the call must stay in the graph if none of its results is used
	results := make([]variables.VariableTracker, len(f.results))
	for i, r := range f.results {
		if results[i] = r.constant; r.constant != nil {
			continue
		}
		item, err := out.CallForeign(tx, tx.World().Operator("getitem"), "operator.getitem",
			[]variables.VariableTracker{&variables.TensorSequence{Node: node}, variables.IntConst(tx, i)}, nil)
		if err != nil {
			return nil, nil, err
		}
		out.Declare(item, variables.Declared{Looks: r.looks, Computed: true})
		results[i] = variables.NewTensor(item)
	}
	if f.single {
		return node, results[0], nil
	}
	return node, variables.NewTuple(results, nil), nil
}

// forward calls the function's forward, with a stand-in for ctx.
func (f *autogradFunction) forward(tx variables.Translator) (ctx, r variables.VariableTracker, err error) {
	if ctx, err = variables.Call(tx, f.context, nil, nil); err != nil {
		return nil, nil, err
	}
	if err := variables.SetAttr(tx, ctx, "inputs_of_forward", variables.NewTuple(f.args, nil)); err != nil {
		return nil, nil, err
	}
	forward, err := f.class.GetAttr(tx, "forward")
	if err != nil {
		return nil, nil, err
	}
	setup, _ := tx.Scope().TypeLookup(f.class.Class, "setup_context")
	if theirs, _ := tx.Scope().TypeLookup(tx.World().AutogradFunction, "setup_context"); setup == theirs {
		r, err = variables.Call(tx, forward, append([]variables.VariableTracker{ctx}, f.args...), nil)
		return ctx, r, err
	}
	if r, err = variables.Call(tx, forward, f.args, nil); err != nil {
		return nil, nil, err
	}
	m, err := f.class.GetAttr(tx, "setup_context")
	if err != nil {
		return nil, nil, err
	}
	_, err = variables.Call(tx, m, []variables.VariableTracker{ctx, variables.NewTuple(f.args, nil), r}, nil)
	return ctx, r, err
}

// differentiate calls forward and backward. fn is _polyfills.autograd.differentiate.
func (f *autogradFunction) differentiate(tx variables.Translator, fn py.Object) error {
	ctx, r, err := f.forward(tx)
	if err != nil {
		return err
	}
	call := variables.NewFunction(fn, guards.NewConstSource(tx.Output().Const(fn), "___differentiate"))
	_, err = variables.Call(tx, call, []variables.VariableTracker{f.class, ctx, r}, nil)
	return err
}
