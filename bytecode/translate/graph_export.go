package translate

import (
	"slices"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// torch.export calls the transformed function of a translation for export (python/godynamo/_user/program.py) again,
// with FakeTensors. The record of the translation says how to call the function, and for which sizes its graph is
// valid.

// Exported is the record of a translation for export. Its strings are Python expressions, with the names that the
// guards' text uses.
type Exported struct {
	Extras  []string       // the parameters of the transformed function that follow the slots
	Tensors []StaticTensor // the tensors outside of modules
	Fixed   []FixedValue   // the sizes and ints that are constants
}

// StaticTensor is a tensor of the frame. Dims is the mask of the dimensions whose sizes are constants.
type StaticTensor struct {
	Text string
	Dims uint64
}

// FixedValue is a size or an int that the translation compares with a constant, and the line that needs the constant.
type FixedValue struct {
	Text  string
	Value int64
	Line  guards.UserLine
}

// dropEffects leaves out of the transformed function all effects of a translation for export, since neither an exported
// program nor the export itself has effects. result is the value that the function returns. dropEffects returns a graph
// break if result depends on an effect, or if an effect keeps a tensor that the graph computes.
func (o *OutputGraph) dropEffects(result variables.VariableTracker) error {
	returned := map[any]bool{}
	addReachable([]variables.VariableTracker{result}, returned)
	for _, e := range o.events {
		if !e.effect() {
			continue
		}
		what, changed := "", func(v variables.VariableTracker) bool { return returned[identity(v)] && mayChange(v) }
		if slices.ContainsFunc(e.values, changed) {
			what = "a change of an object that the function returns"
		}
		used := map[any]bool{}
		addReachable(e.values, used)
		for v := range used {
			if t, ok := v.(*variables.TensorVariable); ok && t.Src == nil {
				what = "an effect that keeps a tensor that the graph computes"
			}
		}
		if what != "" {
			return &exc.Unsupported{Code: exc.StoreUnsupported, Stack: e.chain.stack(),
				Context: what + ", which an exported program cannot have"}
		}
		e.emit, e.fresh = func(variables.Emitter) error { return nil }, true
	}
	return nil
}

// mayChange reports whether an effect may change the object.
func mayChange(v variables.VariableTracker) bool {
	switch identity(v).(type) {
	case *variables.TupleVariable, *variables.SymNodeVariable, *variables.ComputedVariable:
		return false
	}
	return true
}

// identity returns a key for the object that a tracker represents, or nil for a constant and for no tracker.
func identity(v variables.VariableTracker) any {
	l, ok := v.(*variables.LazyVariable)
	if ok && l.Realized() {
		return identity(l.Real())
	}
	if ok {
		switch l.Peek().Kind() {
		case py.NoneKind, py.BoolKind, py.Int, py.Float, py.Complex, py.Str, py.Bytes:
			return nil
		}
		return l.Peek()
	}
	if _, known := v.(*variables.ConstantVariable); known || v == nil {
		return nil
	}
	return v
}

// addReachable adds the identities of the values and, recursively, of what they contain to seen.
func addReachable(values []variables.VariableTracker, seen map[any]bool) {
	for _, v := range values {
		key := identity(v)
		if key == nil || seen[key] {
			continue
		}
		seen[key] = true
		if c, ok := key.(variables.Container); ok {
			addReachable(c.Children(), seen)
		}
	}
}

// CheckInGraph implements variables.Output.
func (o *OutputGraph) CheckInGraph(tx variables.Translator, c sym.Cond) error {
	cond, err := o.ConditionNode(tx, c)
	if err != nil {
		return err
	}
	torch, err := o.scope.Import("torch")
	if err != nil {
		return err
	}
	check, err := o.scope.GetAttr(torch, "_check")
	if err != nil {
		return err
	}
	o.innerCall(check, "torch._check", cond)
	o.world.Env().Assume(c)
	return nil
}

// ConditionNode implements variables.Output.
func (o *OutputGraph) ConditionNode(tx variables.Translator, c sym.Cond) (fxgraph.Arg, error) {
	env := o.world.Env()
	left, rel, right, ok := env.Sides(c)
	if !ok {
		return nil, variables.DataDependent(env.CondText(c))
	}
	w := &nodeWriter{out: o, tx: tx}
	env.Write(left, w)
	env.Write(right, w)
	if w.err != nil {
		return nil, w.err
	}
	name := relationNames[rel]
	return o.innerCall(o.world.Operator(name), "operator."+name, w.stack...), nil
}

// innerCall adds a call to the graph whose result is no tensor, but a condition or None.
func (o *OutputGraph) innerCall(target py.Object, text string, args ...fxgraph.Arg) *fxgraph.Node {
	k := o.Const(target)
	n := o.added(o.graph.CallFunction(fxgraph.Target{Pool: k.Index, Text: text}, args, nil))
	o.symbols.inner = append(o.symbols.inner, n)
	return n
}

// Compared implements variables.Output.
func (o *OutputGraph) Compared(tx variables.Translator, c sym.Cond) (variables.VariableTracker, error) {
	if o.log.predicates[o.steps] {
		return variables.NewUndecided(c), nil
	}
	holds, err := o.Decide(tx, c)
	if err != nil {
		return nil, err
	}
	v := variables.BoolConst(holds)
	if o.opts.Exporting {
		if o.symbols.compared == nil {
			o.symbols.compared = map[*variables.ConstantVariable]int{}
		}
		o.symbols.compared[v] = o.steps
	}
	return v, nil
}

// LeaveUndecided implements variables.Output.
func (o *OutputGraph) LeaveUndecided(v *variables.ConstantVariable) error {
	step, ok := o.symbols.compared[v]
	if !ok || o.log.predicates[step] {
		return nil
	}
	if o.log.predicates == nil {
		o.log.predicates = map[int]bool{}
	}
	o.log.predicates[step] = true
	return &exc.RestartAnalysis{Reason: "a comparison of sizes is the predicate of an operation"}
}

// exported returns the record of a translation for export. order is the result of extraOrder.
func (o *OutputGraph) exported(m *guards.CheckFunctionManager, extras []guards.Source, order []int) *Exported {
	if !o.opts.Exporting {
		return nil
	}
	out := &Exported{}
	for _, e := range order {
		out.Extras = append(out.Extras, m.TextOf(extras[e]))
	}
	for _, t := range o.inputs {
		if !t.Source().GuardSource().IsNNModule() {
			out.Tensors = append(out.Tensors, StaticTensor{m.TextOf(t.Source()), o.tensorArgs[t].StaticSizes})
		}
	}
	env := o.world.Env()
	for s, at := range o.symbols.dims {
		if at.src == nil {
			continue
		}
		if r, ok := env.FixedBy(sym.Symbol(s)); ok {
			v := FixedValue{Text: m.TextOf(at.src), Value: env.Info(sym.Symbol(s)).Hint}
			v.Line, _ = r.Why.(guards.UserLine)
			out.Fixed = append(out.Fixed, v)
		}
	}
	return out
}
