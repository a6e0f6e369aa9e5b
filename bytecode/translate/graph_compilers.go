package translate

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// A compiler is a backend that returns something other than the graph. It compiles for constant sizes, except for
// symbols:
//   - sizes that the user has marked, or all sizes with optimize(dynamic=True);
//   - sizes that have differed between calls, if the compiler traces with AOTAutograd or is declared to take symbols.
//
// These are symbols of a torch ShapeEnv, and the compiler's examples are FakeTensors with such sizes
// (python/godynamo/_backends/symbolic.py). While the compiler runs, torch records in the ShapeEnv the conditions on
// sizes that the compiled code assumes. afterSymbols adds these conditions to the facts, and thus to the guards.
//
// Other compilers may trace only at their first call, with the tensors of that call, and then record no conditions. So
// they get symbols only for sizes that the user has marked, or with dynamic=True.

// forCompiler reports whether the graph goes to a compiler.
func (o *OutputGraph) forCompiler() bool {
	return o.takesSymbols() || !o.backend.Inline() && o.opts.FixesSizes
}

// compilerDims returns the mask of the dimensions that are symbols for a compiler.
func (o *OutputGraph) compilerDims(t *variables.TensorVariable, marks []dimMark) uint64 {
	mask := uint64(0)
	switch {
	case o.opts.Listed.Only:
	case o.opts.Dynamic:
		mask = ^uint64(0)
	case o.takesSymbols():
		mask = o.frame.Varied.Dims[t.Source().Name()]
	}
	for d, m := range marks {
		if m.dynamic || m.weak || m.unbacked && o.takesSymbols() {
			mask |= 1 << d
		}
		if m.static {
			mask &^= 1 << d
		}
	}
	return mask
}

// isSymbolForCompiler reports whether a size is a symbol for a compiler. Sizes 0 and 1 are symbols only if the size is
// known at run time only, since compilers treat them specially. Such a size is an error if mark_dynamic has marked it,
// as with torch.compile.
func (o *OutputGraph) isSymbolForCompiler(t *variables.TensorVariable, marks []dimMark, dim int,
	size int64) (bool, error) {
	if o.compilerDims(t, marks)>>dim&1 == 0 {
		return false, nil
	}
	if size > 1 || o.isUnbacked(marks[dim]) {
		o.frame.hasVaried = true
		return true, nil
	}
	if !marks[dim].dynamic {
		return false, nil
	}
	dims, err := o.scope.Import("godynamo._user.dims")
	if err == nil {
		src := guards.NewTensorPropertySource(t.Source(), guards.TensorSize, dim)
		_, err = o.scope.CallMethod(dims, "too_small", o.scope.Str(src.Name()), o.scope.Int(size))
	}
	return false, err
}

// isUnbacked reports whether the value of a marked size or int is known at run time only. A compiler that needs such a
// value gets an ordinary symbol in the next attempt (numbersRefused).
func (o *OutputGraph) isUnbacked(m dimMark) bool {
	return m.unbacked && (!o.forCompiler() || o.takesUnbacked())
}

// symbolInputs adds an input to the graph for each size of other inputs that is a symbol, and for each rounded float in
// such sizes. torch's caches on disk keep conditions on such inputs only.
func (o *OutputGraph) symbolInputs() error {
	if !o.forCompiler() || !o.symbolizes() {
		return nil
	}
	for _, n := range o.graph.Nodes() {
		in := o.inputOf[n]
		if n.Op != fxgraph.Placeholder || in == nil || !o.symbolic(in) {
			continue
		}
		m, err := o.readMeta(in.Example)
		if err != nil {
			return err
		}
		shape, err := o.shapeOf(in, m.Shape)
		if err != nil {
			return err
		}
		for _, size := range shape {
			if err := o.symbolInput(size); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *OutputGraph) symbolInput(size sym.Size) error {
	size = o.world.Env().Simplify(size)
	inputs := o.roundedIn(size)
	if _, symbol := size.Symbol(); symbol {
		inputs = append(inputs, size)
	}
	for _, s := range inputs {
		if v, varies := variables.NewSize(o.current, s).(*variables.SymNodeVariable); varies {
			if _, err := o.SizeOperand(o.current, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// symbolicExamples describes the sizes of the graph's inputs for compile_fx(sizes=...):
//
//	(symbols, rounded, inputs, conditions, data, repeats)
//	symbols     a tuple of (place or None, value in this call or None if known at run time only, whether it is a size)
//	rounded     a tuple of the values in this call of ints that are rounded from floats
//	inputs      for each input None, or the expression of an int, or (sizes, strides) of a tensor, or the type of a
//	            number known only at run time, "int" or "float"
//	conditions  a tuple of (relation, left, right)
//	data        whether the graph has numbers known only at run time
//	repeats     whether the graph leaves no trace if it raises
//
// An expression is an int, ("s", number of a symbol), ("r", number of a rounded float) or (operator, left, right). The
// result is null if the graph has no symbols.
func (o *OutputGraph) symbolicExamples() (py.Object, error) {
	if !o.forCompiler() || !o.symbolizes() {
		return py.Object{}, nil
	}
	s, data := o.scope, o.readsData()
	any := data
	var inputs []py.Object
	for _, n := range o.graph.Nodes() {
		if n.Op != fxgraph.Placeholder {
			continue
		}
		row := py.None()
		if number, ok := o.numberInput(n); ok {
			any, data, row = true, true, number
		} else if v := o.symbols.values[n]; v != nil {
			any, row = true, o.expression(v.Size)
		} else if in := o.inputOf[n]; in != nil && o.symbolic(in) {
			sizes, strides, err := o.layoutOf(in)
			if err != nil {
				return py.Object{}, err
			}
			any, row = true, s.Tuple(s.Tuple(sizes...), s.Tuple(strides...))
		}
		inputs = append(inputs, row)
	}
	if !any {
		return py.Object{}, nil
	}
	if o.apartMatters && !o.opts.TakesApart {
		return py.Object{}, errFixesSizes // aot.FirstRun watches the first run of such a graph
	}
	for _, n := range o.graph.Nodes() {
		if !n.Several {
			continue
		}
		if _, known := o.byRule(n).(shapes.List); !known {
			return py.Object{}, errFixesSizes // the number of results may depend on sizes
		}
	}
	symbols, rounded, conditions := o.describeSymbols()
	return s.Tuple(symbols, rounded, s.Tuple(inputs...), conditions, py.Bool(data), py.Bool(data && o.repeats())), nil
}

// describeSymbols returns the symbols, the rounded floats and the conditions of symbolicExamples.
func (o *OutputGraph) describeSymbols() (symbols, rounded, conditions py.Object) {
	env, s := o.world.Env(), o.scope
	var names, values, known []py.Object
	for _, r := range o.symbols.rounded {
		n, _ := env.Hint(r)
		values = append(values, s.Int(n))
	}
	for i, at := range o.symbols.dims {
		place := py.None()
		if at.src != nil {
			place = s.Str(at.src.Name())
		}
		value := py.None()
		if info := env.Info(sym.Symbol(i)); info.Hinted {
			value = s.Int(info.Hint)
		}
		names = append(names, s.Tuple(place, value, py.Bool(at.tensor != nil)))
	}
	for _, r := range env.Records() {
		left, rel, right, ok := env.Sides(r.Cond)
		if !ok || !o.isInputs(left, right) {
			continue
		}
		a, ok1 := o.describe(env.Simplify(left))
		b, ok2 := o.describe(env.Simplify(right))
		if ok1 && ok2 {
			known = append(known, s.Tuple(s.Str(relationNames[rel]), a, b))
		}
	}
	return s.Tuple(names...), s.Tuple(values...), s.Tuple(known...)
}

var relationNames = map[sym.Relation]string{sym.EQ: "eq", sym.NE: "ne", sym.GE: "ge", sym.LE: "le"}

// layoutOf describes the sizes and strides of an input for symbolicExamples. All strides become guards.
func (o *OutputGraph) layoutOf(in *variables.TensorVariable) (sizes, strides []py.Object, err error) {
	shape, steps, err := o.inputLayout(in)
	for i := range shape {
		sizes, strides = append(sizes, o.expression(shape[i])), append(strides, o.expression(steps[i]))
	}
	return sizes, strides, err
}

// expression returns the size of an input in the form that symbolicExamples describes.
func (o *OutputGraph) expression(size sym.Size) py.Object {
	e, ok := o.describeInput(size)
	if !ok {
		panic("translate: the size of an input is a float")
	}
	return e
}

// describe returns a size in the form that symbolicExamples describes. ok is false if the size is computed from floats,
// other than rounded floats in the inputs. That form has no such expressions: compilers are not told of conditions on
// math.sqrt(x.shape[0]), say. Such conditions are guards all the same.
func (o *OutputGraph) describe(size sym.Size) (e py.Object, ok bool) {
	return o.written(size, &expressionWriter{out: o, s: o.scope})
}

// describeInput does the same for the size of an input.
func (o *OutputGraph) describeInput(size sym.Size) (e py.Object, ok bool) {
	return o.written(size, &expressionWriter{out: o, s: o.scope, input: true})
}

func (o *OutputGraph) written(size sym.Size, w *expressionWriter) (e py.Object, ok bool) {
	o.world.Env().Write(size, w)
	return w.stack[0], !w.floats
}

// expressionWriter implements sym.RoundingWriter.
type expressionWriter struct {
	out    *OutputGraph
	s      *py.Scope
	input  bool // the expression is the size of an input
	stack  []py.Object
	floats bool // an operation on floats was written
}

func (*expressionWriter) Begin(sym.Op) {}

func (w *expressionWriter) Const(n int64) { w.stack = append(w.stack, w.s.Int(n)) }

func (w *expressionWriter) FloatConst(f float64) {
	w.floats = true
	w.stack = append(w.stack, w.s.Float(f))
}

func (w *expressionWriter) Symbol(x sym.Symbol) {
	w.stack = append(w.stack, w.s.Tuple(w.s.Str("s"), w.s.Int(int64(x))))
}

func (w *expressionWriter) Apply(op sym.Op) {
	n := len(w.stack) - 2
	if op.Unary() {
		n++
	}
	w.floats = w.floats || op >= sym.ToFloat
	e := w.s.Tuple(append([]py.Object{w.s.Str(nodeOps[op])}, w.stack[n:]...)...)
	w.stack = append(w.stack[:n], e)
}

// afterSymbols reads a compiler's answer (compiled, conditions, constants) to symbolicExamples. The conditions are
// those that the compiled code assumes. The constants are symbols on which the code depends in another way.
// afterSymbols returns errFixesSizes if the graph could not be compiled with symbols, or errNumbersRefused if numbers
// known only at run time may be the reason.
func (o *OutputGraph) afterSymbols(answer py.Object) (py.Object, error) {
	if answer.Kind() != py.Tuple && o.takesUnbacked() && len(o.computed.numbers) > 0 {
		return py.Object{}, o.numbersRefused()
	}
	if answer.Kind() != py.Tuple {
		return py.Object{}, o.refused()
	}
	env, parts := o.world.Env(), o.scope.Items(answer)
	constants := map[sym.Size]bool{}
	for _, row := range o.scope.Items(parts[1]) {
		items := o.scope.Items(row)
		if c, ok := o.conditionOf(items); !ok {
			o.symbolsOf(items[1], constants)
			o.symbolsOf(items[2], constants)
		} else if !o.holds(c) {
			return py.Object{}, o.refused()
		}
	}
	for _, it := range o.scope.Items(parts[2]) {
		o.symbolsOf(it, constants)
	}
	for x := range constants {
		n, ok := env.Hint(x)
		if !ok || !o.holds(env.Eq(x, sym.Const(n))) {
			return py.Object{}, o.refused()
		}
	}
	return parts[0], nil
}

// holds reports whether a condition that compiled code assumes holds in this call, and makes it a guard. Guards can be
// conditions on inputs' sizes that are known at run time only, since nothing was captured that depends on their values.
func (o *OutputGraph) holds(c sym.Cond) bool {
	env := o.world.Env()
	if holds, ok := env.Decide(c, o.userLine()); ok {
		return holds
	}
	inputs := true
	holds, ok := env.EvalCond(c, func(x sym.Symbol) (int64, bool) {
		inputs = inputs && (env.Info(x).Hinted || o.symbols.dims[x].tensor != nil)
		return env.Info(x).Hint, true
	})
	if !holds || !ok || !inputs {
		return false
	}
	env.Require(c, o.userLine())
	return true
}

// refused returns the error for a compiler whose code does not hold for the symbols. Sizes that were known at run time
// only become ordinary symbols in the next attempt, and other symbols constants.
func (o *OutputGraph) refused() error {
	if o.readsData() {
		return o.numbersRefused()
	}
	return errFixesSizes
}

// symbolsOf adds the symbols and the rounded floats of an expression to a set.
func (o *OutputGraph) symbolsOf(e py.Object, found map[sym.Size]bool) {
	if e.Kind() != py.Tuple {
		return
	}
	items := o.scope.Items(e)
	if len(items) == 2 {
		if s, ok := o.sizeOf(e); ok {
			found[s] = true
		}
		return
	}
	o.symbolsOf(items[1], found)
	o.symbolsOf(items[2], found)
}

func (o *OutputGraph) conditionOf(row []py.Object) (c sym.Cond, ok bool) {
	env := o.world.Env()
	left, ok1 := o.sizeOf(row[1])
	right, ok2 := o.sizeOf(row[2])
	make, known := map[string]func(a, b sym.Size) sym.Cond{"eq": env.Eq, "ne": env.Ne, "lt": env.Lt, "le": env.Le,
		"gt": env.Gt, "ge": env.Ge}[py.GoString(row[0])]
	if !ok1 || !ok2 || !known {
		return c, false
	}
	return make(left, right), true
}

// sizeOf reads an expression in the form that symbolicExamples describes.
func (o *OutputGraph) sizeOf(e py.Object) (sym.Size, bool) {
	if e.Kind() == py.Int {
		n, ok := py.AsInt(e)
		return sym.Const(n), ok
	}
	env, items := o.world.Env(), o.scope.Items(e)
	op := py.GoString(items[0])
	if len(items) == 2 {
		k, ok := py.AsInt(items[1])
		if op == "r" {
			return o.symbols.rounded[k], ok
		}
		return env.Symbol(sym.Symbol(k)), ok
	}
	a, ok1 := o.sizeOf(items[1])
	b, ok2 := o.sizeOf(items[2])
	apply, known := map[string]func(a, b sym.Size) sym.Size{"add": env.Add, "sub": env.Sub, "mul": env.Mul,
		"floordiv": env.FloorDiv, "mod": env.Mod, "max": env.Max, "min": env.Min}[op]
	if !ok1 || !ok2 || !known {
		return sym.Size{}, false
	}
	out := apply(a, b)
	return out, !out.IsUnknown()
}
