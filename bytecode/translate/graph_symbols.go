package translate

import (
	"math"
	"slices"
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// The sizes of a tensor passed to the frame are symbols, unless the tensor is part of an nn.Module. The guard program
// checks the tensor's number of dimensions, and the conditions on its sizes that the translation recorded. It hands
// over, as ints, the sizes that the transformed function needs. A size becomes a constant if the program needs its
// value, or if a part of the translator that supports no symbols does. Its bit in TensorArgs.StaticSizes is then set.

// symbols is an OutputGraph's state for sizes that may differ between calls.
type symbols struct {
	shapes map[*variables.TensorVariable][]sym.Size
	dims   []dimension // the place of each symbol, by number
	nodeOf map[sym.Size]*fxgraph.Node
	values map[*fxgraph.Node]*variables.SymNodeVariable // placeholders that represent sizes
	read   map[*fxgraph.Node]*variables.SymNodeVariable // operations of the graph whose results are ints
	inner  []*fxgraph.Node                              // operations on ints that compute operands of such operations
	passed map[string]variables.VariableTracker         // ints and floats that have differed between calls, by place
	fixed  []FixedSize                                  // constant sizes of tensors that have differed between calls
	// rounded lists the ints rounded from floats that have a symbol in torch's ShapeEnv, by number.
	rounded []sym.Size
	marks   map[*variables.TensorVariable][]dimMark // what the user has said about the sizes of inputs
	same    map[string]sameSize                     // sizes that the user says are equal, by name
	fixers  map[sym.Symbol]string                   // what has made a symbol a constant, for the log
	// compared has the outcomes of comparisons of sizes in a translation for export, with their steps.
	compared map[*variables.ConstantVariable]int
	failed   error // an exception raised for what the user says about sizes
}

// dimension is the place of a symbol: a dimension of an input, an int passed to the frame, or a dimension of a tensor
// that the graph computes.
type dimension struct {
	tensor *variables.TensorVariable // an input
	dim    int
	src    guards.Source // of a dimension of an input, or of an int
	marked bool          // by mark_dynamic: a constant is an error
	node   *fxgraph.Node // computes the tensor, or a sequence that contains it
	item   int           // index of the tensor in the sequence; -1: node computes the tensor itself
}

// maySymbolize reports whether the sizes of an input may be symbols.
func (o *OutputGraph) maySymbolize(t *variables.TensorVariable) bool {
	if !o.symbolizes() || !t.Real.IsNull() || t.Source() == nil ||
		t.Source().GuardSource() == guards.SourceConstant || !o.installer.ReadsSizes(t.Example) || !o.mayVary(t) {
		return false
	}
	return !o.forCompiler() || o.compilerDims(t, o.marksOfInput(t)) != 0
}

// symbolic reports whether an input's sizes have not all been made constants, so that some may be symbols.
func (o *OutputGraph) symbolic(t *variables.TensorVariable) bool {
	a, ok := o.tensorArgs[t]
	return ok && a.StaticSizes != ^uint64(0)
}

// shapeOf returns the sizes of an input. Sizes that may differ between calls are symbols. The argument sizes has the
// values.
func (o *OutputGraph) shapeOf(t *variables.TensorVariable, sizes []sym.Size) ([]sym.Size, error) {
	if known, ok := o.symbols.shapes[t]; ok {
		return known, nil
	}
	if !o.symbolic(t) {
		return sizes, nil
	}
	out, marks := make([]sym.Size, len(sizes)), o.marksOf(t, sizes)
	if o.symbols.failed != nil {
		return nil, o.symbols.failed
	}
	for i, s := range sizes {
		if o.isConstant(marks[i]) {
			o.tensorArgs[t].StaticSizes |= 1 << i
			o.tensorArgs[t].Fields |= fieldSizes | fieldRank
			out[i] = s
			continue
		}
		hint, _ := s.Const()
		if o.forCompiler() {
			symbol, err := o.isSymbolForCompiler(t, marks, i, hint)
			if err != nil {
				return nil, err
			} else if !symbol {
				o.tensorArgs[t].StaticSizes |= 1 << i
				out[i] = s
				continue
			}
		}
		src := guards.NewTensorPropertySource(t.Source(), guards.TensorSize, i)
		info := variables.SizeInfo("s"+itoa(len(o.symbols.dims)), hint)
		info.Hinted, info.Marked = !o.isUnbacked(marks[i]), marks[i].dynamic
		out[i] = o.newSymbol(dimension{tensor: t, dim: i, src: src, marked: marks[i].dynamic}, info).Size
		o.apply(marks[i], out[i], hint)
	}
	if o.symbols.shapes == nil {
		o.symbols.shapes = map[*variables.TensorVariable][]sym.Size{}
	}
	o.symbols.shapes[t] = out
	return out, nil
}

func (o *OutputGraph) newSymbol(at dimension, info sym.Info) *variables.SymNodeVariable {
	o.symbols.dims = append(o.symbols.dims, at)
	return o.world.NewSymbol(at.src, info)
}

// need adds fields to the guard on an input. Symbolic sizes are guarded by conditions instead. If strides are among the
// fields, all sizes become constants, since strides were read from the example.
func (o *OutputGraph) need(t *variables.TensorVariable, a *guards.TensorArgs, fields uint16) {
	if fields&fieldSizes != 0 && o.symbolic(t) {
		if fields&fieldStride != 0 {
			o.pin(t, a)
		} else {
			fields = fields&^fieldSizes | fieldRank
		}
	}
	a.Fields |= fields
}

// pin makes a constant of each size of an input.
func (o *OutputGraph) pin(t *variables.TensorVariable, a *guards.TensorArgs) {
	a.StaticSizes, a.StaticStrides = ^uint64(0), ^uint64(0)
	env := o.world.Env()
	for _, s := range o.symbols.shapes[t] {
		if n, ok := env.Hint(s); ok {
			env.Decide(env.Eq(s, sym.Const(n)), o.userLine())
		}
	}
}

// fixSizeNode makes a constant of the size that a node passes to the graph, for FakeTensor.
func (o *OutputGraph) fixSizeNode(n *fxgraph.Node) {
	v, ok := o.symbols.values[n]
	if !ok {
		return
	}
	env := o.world.Env()
	if hint, ok := env.Hint(v.Size); ok {
		env.Decide(env.Eq(v.Size, sym.Const(hint)), o.userLine())
	}
}

func (o *OutputGraph) userLine() guards.UserLine {
	if o.current == nil {
		return guards.UserLine{}
	}
	return o.current.userLine()
}

// Decide implements variables.Output.
func (o *OutputGraph) Decide(_ variables.Translator, c sym.Cond) (bool, error) {
	env := o.world.Env()
	holds, ok := env.Decide(c, o.userLine())
	if !ok {
		return false, variables.DataDependent(env.CondText(c))
	}
	return holds, nil
}

// freezeSize makes a size loadable: it computes an expression from its symbols.
func (o *OutputGraph) freezeSize(tx variables.Translator, v *variables.SymNodeVariable) error {
	if v.Settled(o.world) != nil || variables.Materialized(v) || v.Node != nil {
		return nil
	}
	if s, ok := v.Size.Symbol(); ok {
		return o.readAtRunTime(tx, v, o.symbols.dims[s])
	}
	if err := o.freezeSymbols(tx, v.Size); err != nil {
		return err
	}
	if !o.backend.Inline() && o.computedInGraph(v.Size) {
		n, err := o.sizeNode(tx, v)
		v.Node, _ = n.(*fxgraph.Node)
		return err
	}
	slot, err := o.Compute(tx, nil, false, func(e variables.Emitter) error {
		return variables.EmitSize(o.world, e, v.Size)
	})
	if err == nil {
		variables.SetSlot(v, slot)
		e := o.events[len(o.events)-1]
		e.size, e.of = true, v.Size
	}
	return err
}

// isNumber reports whether a node is a number, not a tensor.
func (o *OutputGraph) isNumber(n *fxgraph.Node) bool {
	return o.sizeOfNode(n) != nil || o.computed.numbers[n] != nil || slices.Contains(o.symbols.inner, n)
}

// sizeOfNode returns the int that a node represents, or nil if the node is no size.
func (o *OutputGraph) sizeOfNode(n *fxgraph.Node) *variables.SymNodeVariable {
	if v, ok := o.symbols.values[n]; ok {
		return v
	}
	return o.symbols.read[n]
}

// SizeOperand implements variables.Output. A size is a graph input. In a graph that is written inline it may be an
// expression.
func (o *OutputGraph) SizeOperand(tx variables.Translator, v *variables.SymNodeVariable) (fxgraph.Arg, error) {
	constant := o.bodies > 0 && o.world.FixesSizes > 0 || v.Settled(o.world) != nil
	if !constant && v.Node != nil {
		return v.Node, nil
	}
	if !o.backend.Inline() && !o.opts.AnySize && !o.forCompiler() && (o.bodies == 0 || !o.opts.Exporting) {
		if err := o.fixHinted(v.Size); err != nil {
			return nil, err
		}
	}
	if constant || v.Settled(o.world) != nil { // fixHinted may have settled it
		k, err := v.Fixed(tx)
		if err != nil {
			return nil, err
		}
		return k.AsProxy(tx)
	}
	if n := o.symbols.nodeOf[v.Size]; n != nil {
		return n, nil
	}
	if _, base := v.Size.Symbol(); !base && !o.backend.Inline() {
		return o.sizeNode(tx, v)
	}
	return o.sizeInput(tx, v)
}

// sizeInput returns the graph input that represents a size, or the node that computes it.
func (o *OutputGraph) sizeInput(tx variables.Translator, v *variables.SymNodeVariable) (fxgraph.Arg, error) {
	if err := o.freezeSize(tx, v); err != nil {
		return nil, err
	}
	if v.Node != nil {
		return v.Node, nil
	}
	name := "int_" + itoa(len(o.symbols.values))
	if s, ok := v.Size.Symbol(); ok {
		name = o.world.Env().Info(s).Name
	}
	n := o.graph.Placeholder(name)
	n.Target.Text, n.Expression = o.world.Env().Text(v.Size), true
	if o.symbols.values == nil {
		o.symbols.nodeOf = map[sym.Size]*fxgraph.Node{}
		o.symbols.values = map[*fxgraph.Node]*variables.SymNodeVariable{}
	}
	o.symbols.nodeOf[v.Size], o.symbols.values[n] = n, v
	return n, nil
}

// guardSizes adds the guards for all conditions on sizes.
func (o *OutputGraph) guardSizes() error {
	if o.symbols.failed != nil || len(o.symbols.dims) == 0 {
		return o.symbols.failed
	}
	env := o.world.Env()
	lines := o.fixingLines()
	fixed, records := env.Essential()
	for s, at := range o.symbols.dims {
		n, ok := fixed[sym.Symbol(s)]
		if ok && at.marked {
			return o.markViolated(sym.Symbol(s), at, n)
		}
		switch {
		case !ok || at.tensor == nil && at.src == nil:
		case at.tensor != nil:
			a := o.tensorArgs[at.tensor]
			a.StaticSizes |= 1 << at.dim
			a.Fields |= fieldSizes | fieldRank
			if o.frame.Varied.Dims[at.tensor.Source().Name()]&(1<<at.dim) != 0 {
				o.symbols.fixed = append(o.symbols.fixed, FixedSize{at.src.Name(), lines[sym.Symbol(s)]})
			}
		default:
			for _, g := range guards.EqualsMatch(at.src, o.Const(o.scope.Int(n).Type()), o.Const(o.scope.Int(n))) {
				o.AddGuards(g.At(lines[sym.Symbol(s)]))
			}
		}
	}
	for _, r := range records {
		left, rel, right, ok := env.Sides(r.Cond)
		if !ok {
			continue
		}
		c := &guards.SizeCond{Rel: sizeRels[rel]}
		c.Left, c.Right = o.sizeProgram(left), o.sizeProgram(right)
		for _, inst := range append(c.Left, c.Right...) {
			if p, ok := inst.Src.(*guards.TensorPropertySource); ok {
				o.rankGuard(p)
			}
		}
		g := guards.ShapeEnv(c)
		if line, ok := r.Why.(guards.UserLine); ok {
			g = g.At(line)
		}
		o.AddGuards(g)
	}
	return nil
}

// FixedSize is a size that a translation compares with a constant, and the user's line that needs the constant.
type FixedSize struct {
	Place string
	Line  guards.UserLine
}

// fixingLines returns, for each symbol, the user's line of the first recorded equality that contains the symbol.
func (o *OutputGraph) fixingLines() map[sym.Symbol]guards.UserLine {
	env, out := o.world.Env(), map[sym.Symbol]guards.UserLine{}
	for _, r := range env.Records() {
		left, rel, right, ok := env.Sides(r.Cond)
		line, known := r.Why.(guards.UserLine)
		if !ok || rel != sym.EQ || !known {
			continue
		}
		w := &symbolLister{}
		env.Write(left, w)
		env.Write(right, w)
		for _, s := range w.found {
			if _, earlier := out[s]; !earlier {
				out[s] = line
			}
		}
	}
	return out
}

// rankGuard guards the number of dimensions of the tensor whose size p reads. A size can be read only if this number is
// guarded.
func (o *OutputGraph) rankGuard(p *guards.TensorPropertySource) {
	for _, at := range o.symbols.dims {
		if at.src == guards.Source(p) {
			o.tensorArgs[at.tensor].Fields |= fieldRank
		}
	}
}

var sizeRels = map[sym.Relation]guards.SizeRel{sym.EQ: guards.SizeEQ, sym.NE: guards.SizeNE, sym.GE: guards.SizeGE,
	sym.LE: guards.SizeLE}

var sizeOps = map[sym.Op]guards.SizeOp{sym.Add: guards.SizeAdd, sym.Sub: guards.SizeSub, sym.Mul: guards.SizeMul,
	sym.FloorDiv: guards.SizeFloorDiv, sym.Mod: guards.SizeMod, sym.Max: guards.SizeMax, sym.Min: guards.SizeMin,
	sym.ToFloat: guards.SizeFloat, sym.Sqrt: guards.SizeSqrt, sym.Floor: guards.SizeFloor, sym.Ceil: guards.SizeCeil,
	sym.Trunc: guards.SizeTrunc, sym.Round: guards.SizeRound, sym.FloatAdd: guards.SizeFloatAdd,
	sym.FloatSub: guards.SizeFloatSub, sym.FloatMul: guards.SizeFloatMul, sym.FloatDiv: guards.SizeFloatDiv,
	sym.FloatMax: guards.SizeFloatMax, sym.FloatMin: guards.SizeFloatMin, sym.FloatPow: guards.SizeFloatPow,
	sym.FloatLt: guards.SizeFloatLT,
	sym.FloatLe: guards.SizeFloatLE, sym.FloatEq: guards.SizeFloatEQ}

// sizeProgram returns the instructions that compute a size in the guard program.
func (o *OutputGraph) sizeProgram(s sym.Size) []guards.SizeInst {
	w := &sizeProgram{out: o}
	o.world.Env().Write(s, w)
	return w.list
}

// sizeProgram implements sym.Writer.
type sizeProgram struct {
	out  *OutputGraph
	list []guards.SizeInst
}

func (*sizeProgram) Begin(sym.Op) {}

func (w *sizeProgram) Const(n int64) {
	w.list = append(w.list, guards.SizeInst{Op: guards.SizeConst, N: n})
}

func (w *sizeProgram) FloatConst(f float64) {
	w.list = append(w.list, guards.SizeInst{Op: guards.SizeConst, N: int64(math.Float64bits(f)), Float: true})
}

func (w *sizeProgram) Symbol(s sym.Symbol) {
	w.list = append(w.list, guards.SizeInst{Op: guards.SizeLoad, Src: w.out.symbols.dims[s].src,
		Hint: w.out.world.Env().Info(s).Hint})
}

func (w *sizeProgram) Apply(op sym.Op) { w.list = append(w.list, guards.SizeInst{Op: sizeOps[op]}) }

// sizesNeeded adds the guards on the number of dimensions for sizes that the guards hand over.
func (o *OutputGraph) sizesNeeded(extras []guards.Source) {
	for _, src := range extras {
		if p, ok := src.(*guards.TensorPropertySource); ok {
			o.rankGuard(p)
		}
	}
}

// intSymbol returns a symbol for an int passed to the frame, or nil if it must be a constant.
func (o *OutputGraph) intSymbol(obj py.Object, src guards.Source) variables.VariableTracker {
	n, ok := py.AsInt(obj)
	if !ok || obj.Kind() != py.Int || !o.symbolizes() {
		return nil
	}
	o.AddGuards(guards.TypeMatch(src, o.Const(obj.Type())))
	info, at := variables.IntInfo("s"+itoa(len(o.symbols.dims)), n), dimension{src: src}
	rules := o.rules(src, []int64{n}, false)
	info.Hinted = rules == nil || !rules[0].unbacked
	v := o.newSymbol(at, info)
	if rules != nil {
		o.apply(rules[0], v.Size, n)
	}
	return v
}

// symbolizes reports whether this translation supports symbols.
func (o *OutputGraph) symbolizes() bool {
	return o.opts.SymbolicSizes && !o.opts.PythonOps
}

// afterCompile makes constants of the sizes of all inputs if the backend has compiled the graph for these sizes.
func (o *OutputGraph) afterCompile() error {
	fixes, err := o.backend.FixesSizes(o.scope)
	switch {
	case err != nil || !fixes || o.forCompiler():
		return err
	case o.unchanged || len(o.symbols.values) > 0 || len(o.symbols.read) > 0 || len(o.computed.numbers) > 0:
		return errFixesSizes
	}
	for _, t := range o.inputs {
		if !o.symbolic(t) {
			continue
		}
		if o.compilerDims(t, o.marksOfInput(t)) != 0 {
			return errFixesSizes
		}
		o.pin(t, o.tensorArgs[t])
	}
	return nil
}

// adoptSymbols records where the new symbols in a node's result are: sizes that depend on data.
func (o *OutputGraph) adoptSymbols(n *fxgraph.Node, v shapes.Value) {
	env := o.world.Env()
	for len(o.symbols.dims) < env.Len() {
		s := env.Symbol(sym.Symbol(len(o.symbols.dims)))
		at := dimension{node: n, item: -1}
		if list, ok := v.(shapes.List); ok {
			for i, it := range list {
				if found, ok := dimensionOf(it, s); ok && at.item < 0 {
					at.item, at.dim = i, found
				}
			}
		} else if found, ok := dimensionOf(v, s); ok {
			at.dim = found
		} else {
			at.node = nil // a rule introduced the symbol, but then had no result
		}
		o.symbols.dims = append(o.symbols.dims, at)
		o.world.Adopt(s)
	}
}

// dimensionOf returns the dimension of a tensor whose size is s.
func dimensionOf(v shapes.Value, s sym.Size) (int, bool) {
	t, ok := v.(*shapes.Tensor)
	if !ok {
		return 0, false
	}
	i := slices.Index(t.Shape, s)
	return i, i >= 0
}

// freezeSymbols makes the symbols of an expression loadable.
func (o *OutputGraph) freezeSymbols(tx variables.Translator, s sym.Size) error {
	w := &symbolLister{}
	o.world.Env().Write(s, w)
	for _, x := range w.found {
		if err := o.freezeSize(tx, o.world.SymbolOf(x)); err != nil {
			return err
		}
	}
	return nil
}

// symbolLister implements sym.Writer. It collects the symbols of an expression.
type symbolLister struct{ found []sym.Symbol }

func (*symbolLister) Begin(sym.Op)          {}
func (*symbolLister) Const(int64)           {}
func (*symbolLister) FloatConst(float64)    {}
func (*symbolLister) Apply(sym.Op)          {}
func (w *symbolLister) Symbol(s sym.Symbol) { w.found = append(w.found, s) }

// readAtRunTime adds the operation that reads a size from a computed tensor.
func (o *OutputGraph) readAtRunTime(tx variables.Translator, v *variables.SymNodeVariable, at dimension) error {
	if at.node == nil || o.sizes.off || o.bodies > 0 || o.isErased(at.node) || !o.runsOperators() {
		return variables.DataDependent(o.world.Env().Text(v.Size))
	}
	n := at.node
	index := func(i int) fxgraph.Arg {
		c := o.Const(o.scope.Int(int64(i)))
		return fxgraph.Lit{Pool: c.Index, Text: c.Text}
	}
	if at.item >= 0 {
		c := o.Const(o.world.Operator("getitem"))
		n = o.added(o.graph.CallFunction(fxgraph.Target{Pool: c.Index, Text: "operator.getitem"},
			[]fxgraph.Arg{n, index(at.item)}, nil))
		n.Item = true
	}
	v.Node = o.added(o.graph.CallMethod("size", []fxgraph.Arg{n, index(at.dim)}, nil))
	if o.symbols.read == nil {
		o.symbols.read = map[*fxgraph.Node]*variables.SymNodeVariable{}
	}
	o.symbols.read[v.Node] = v
	return nil
}

func (o *OutputGraph) isErased(n *fxgraph.Node) bool { return n.Index < 0 }

// AtRunTime implements variables.Output.
func (o *OutputGraph) AtRunTime(n *fxgraph.Node, slot *variables.Slot, lo, hi int64) *variables.SymNodeVariable {
	info := sym.Info{Name: "u" + itoa(len(o.symbols.dims)), Lo: lo, Hi: hi}
	v := o.newSymbol(dimension{node: n, item: -1}, info)
	if n == nil {
		variables.SetSlot(v, slot)
		return v
	}
	v.Node = n
	if o.symbols.read == nil {
		o.symbols.read = map[*fxgraph.Node]*variables.SymNodeVariable{}
	}
	o.symbols.read[n] = v
	return v
}

// computedInGraph reports whether a symbol of an expression is the result of a node.
func (o *OutputGraph) computedInGraph(s sym.Size) bool {
	w := &symbolLister{}
	o.world.Env().Write(s, w)
	return slices.ContainsFunc(w.found, func(x sym.Symbol) bool { return o.world.SymbolOf(x).Node != nil })
}

// fixHinted makes constants of the symbols in an expression, except of those known only at run time.
func (o *OutputGraph) fixHinted(s sym.Size) error {
	env, w := o.world.Env(), &symbolLister{}
	env.Write(env.Simplify(s), w)
	for _, x := range w.found {
		if n, ok := env.Hint(env.Symbol(x)); ok {
			env.Decide(env.Eq(env.Symbol(x), sym.Const(n)), o.userLine())
		}
	}
	return nil
}

// sizeNode returns the node that computes an expression in a whole graph, as operators on ints.
func (o *OutputGraph) sizeNode(tx variables.Translator, v *variables.SymNodeVariable) (fxgraph.Arg, error) {
	s := o.world.Env().Simplify(v.Size)
	if n := o.symbols.nodeOf[s]; n != nil {
		return n, nil
	}
	w := &nodeWriter{out: o, tx: tx}
	o.world.Env().Write(s, w)
	if w.err != nil {
		return nil, w.err
	}
	n, ok := w.stack[0].(*fxgraph.Node)
	if ok && n.Op != fxgraph.Placeholder {
		o.addSizeNode(s, n, v)
	}
	return w.stack[0], nil
}

// addSizeNode records that a node computes an int.
func (o *OutputGraph) addSizeNode(s sym.Size, n *fxgraph.Node, v *variables.SymNodeVariable) {
	if o.symbols.nodeOf == nil {
		o.symbols.nodeOf = map[sym.Size]*fxgraph.Node{}
	}
	if o.symbols.read == nil {
		o.symbols.read = map[*fxgraph.Node]*variables.SymNodeVariable{}
	}
	o.symbols.nodeOf[s], o.symbols.read[n] = n, v
}

// nodeWriter implements sym.Writer. It adds a node for each operator.
type nodeWriter struct {
	out   *OutputGraph
	tx    variables.Translator
	stack []fxgraph.Arg
	err   error
}

func (*nodeWriter) Begin(sym.Op) {}

func (w *nodeWriter) Const(n int64) {
	c := w.out.Const(w.out.scope.Int(n))
	w.stack = append(w.stack, fxgraph.Lit{Pool: c.Index, Text: c.Text})
}

func (w *nodeWriter) FloatConst(f float64) {
	c := w.out.Const(w.out.scope.Float(f))
	w.stack = append(w.stack, fxgraph.Lit{Pool: c.Index, Text: c.Text})
}

func (w *nodeWriter) Symbol(s sym.Symbol) {
	a, err := w.out.SizeOperand(w.tx, w.out.world.SymbolOf(s))
	if err != nil && w.err == nil {
		w.err = err
	}
	w.stack = append(w.stack, a)
}

var nodeOps = map[sym.Op]string{sym.Add: "add", sym.Sub: "sub", sym.Mul: "mul", sym.FloorDiv: "floordiv",
	sym.Mod: "mod", sym.Max: "max", sym.Min: "min", sym.FloatAdd: "add", sym.FloatSub: "sub", sym.FloatMul: "mul",
	sym.FloatDiv: "truediv", sym.FloatPow: "pow", sym.FloatLt: "lt", sym.FloatLe: "le", sym.FloatEq: "eq"}

func (w *nodeWriter) Apply(op sym.Op) {
	o, n, name := w.out, len(w.stack)-2, nodeOps[op]
	if op.Unary() {
		n++
	}
	fn, text := py.Object{}, "operator."+name
	switch {
	case (op == sym.Max || op == sym.Min) && o.forCompiler(): // max() would add a condition on which is greater
		text = "torch.sym_" + name
		torch, err := o.scope.Import("torch")
		if err == nil {
			fn, err = o.scope.GetAttr(torch, "sym_"+name)
		}
		if err != nil {
			w.err = err
			return
		}
	case variables.SizeFunctions[op] != "":
		var err error
		if fn, err = variables.SizeFunction(o.world, op); err != nil {
			w.err = err
			return
		}
		if text = variables.SizeFunctions[op]; !strings.Contains(text, ".") {
			text = "builtins." + text
		}
	default:
		fn = o.world.Operator(name)
	}
	c := o.Const(fn)
	node := o.added(o.graph.CallFunction(fxgraph.Target{Pool: c.Index, Text: text},
		append([]fxgraph.Arg(nil), w.stack[n:]...), nil))
	o.symbols.inner = append(o.symbols.inner, node)
	w.stack = append(w.stack[:n], node)
}

// CapturesNumbers implements variables.Output.
func (o *OutputGraph) CapturesNumbers(floats bool) bool {
	if o.bodies > 0 || !o.symbolizes() || o.opts.BreakAtNumbers {
		return false
	}
	return o.runsOperators() && (!floats || !o.takesSymbols() || o.TakesNumbers())
}
