package variables

import (
	"strconv"
	"strings"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// arrayCall is a call of numpy that becomes one operation of the graph. godynamo._translator.arrays calls the function
// on samples to learn what it returns.
type arrayCall struct {
	fn     py.Object // the function; null for a method of the first argument
	name   string
	args   []VariableTracker
	kwargs []Kw
	// data is the number of leading arguments that may be known only at run time.
	data    int
	method  bool
	inPlace bool // the call changes an argument
	changes int  // the number of the positional argument that it changes, if any
	key     bool // the second argument is a subscript that selects from the first
	// varying is set if ints that vary between calls may be operands: the layout of the result does not depend on them.
	varying bool

	found   []*ArrayVariable // the arrays and scalars among the arguments, each once
	samples []py.Object
}

// run adds the operation to the graph and returns its result.
func (c *arrayCall) run(tx Translator) (VariableTracker, error) {
	s := tx.Scope()
	if !capturesArrays(tx) {
		return nil, unsupported(exc.CallUnsupported, "%s of numpy", c.name)
	}
	// the graph passes a copy of a list
	if c.inPlace && c.changes < len(c.args) && asArray(tx, c.args[c.changes]) == nil {
		return nil, unsupported(exc.CallUnsupported, "%s of %s", c.name, Describe(tx, c.args[c.changes]))
	}
	m, err := arrayModule(tx)
	if err != nil {
		return nil, err
	}
	args, samples, err := c.operands(tx, m)
	if err != nil {
		return nil, err
	}
	kwargs, pairs, err := c.keywords(tx, m)
	if err != nil {
		return nil, err
	}
	if c.key {
		if masks, err := s.CallMethod(m, "tells_values", s.Tuple(c.samples[min(1, len(c.samples)):]...)); err != nil {
			return nil, err
		} else if masks == py.True() {
			return nil, unsupported(exc.SubscriptUnsupported, "an array by a mask")
		}
	}
	kw, err := s.Dict(pairs...)
	if err != nil {
		return nil, err
	}
	fn := c.fn
	if c.method {
		fn = s.Name(c.name)
	}
	r, err := s.CallMethod(m, "call", fn, s.Tuple(samples...), kw, s.Tuple(c.samples...))
	if err != nil {
		return nil, err
	}
	if r == pyNone {
		return nil, unsupported(exc.UnknownResult, "%s of numpy", c.name)
	}
	return arrayOutcome(tx, r, c.found, func() (*fxgraph.Node, error) {
		target, name := c.fn, c.name
		if place, hidden := placeToName(tx); hidden && !c.key { // a subscript does not warn
			if c.method {
				target, _ = s.TypeLookup(c.samples[0].Type(), c.name)
			}
			name = "numpy." + c.name[strings.LastIndexByte(c.name, '.')+1:]
			if target, err = placedFunction(tx, m, target, place); err != nil {
				return nil, err
			}
		}
		node, err := tx.Output().CallNumpy(tx, target, name, args, kwargs)
		if err == nil {
			node.Inplace = c.inPlace
		}
		return node, err
	})
}

// placeToName returns the place in the user's code of the current instruction. hidden is false if a warning names it
// anyway: it belongs to the outermost frame, whose lines the transformed function has. A whole graph has its own.
func placeToName(tx Translator) (place Place, hidden bool) {
	_, inlined := tx.Place(2)
	place, ok := tx.Place(1)
	return place, ok && (inlined || tx.Output().WholeGraph())
}

// placedFunction returns a function that calls fn from this place of the user's code. A warning then names this place,
// and not that of the frame into which the code is inlined.
func placedFunction(tx Translator, m, fn py.Object, place Place) (py.Object, error) {
	return tx.Scope().CallMethod(m, "at_line", fn, place.Code, place.Globals, tx.Scope().Int(int64(place.Line)))
}

// operands returns the operands of the graph and the samples for the positional arguments.
func (c *arrayCall) operands(tx Translator, m py.Object) ([]VariableTracker, []py.Object, error) {
	args, samples := make([]VariableTracker, len(c.args)), make([]py.Object, len(c.args))
	for i, v := range c.args {
		var err error
		if args[i], samples[i], err = c.operand(tx, m, v, i < c.data, 0); err != nil {
			return nil, nil, err
		}
	}
	return args, samples, nil
}

// keywords does the same as operands, for the keyword arguments.
func (c *arrayCall) keywords(tx Translator, m py.Object) (kwargs []Kw, pairs [][2]py.Object, err error) {
	for _, kw := range c.kwargs {
		data := kw.Name == "out" || kw.Name == "where" || kw.Name == "initial" || kw.Name == "weights"
		v, sample, err := c.operand(tx, m, kw.Value, data, 0)
		if err != nil {
			return nil, nil, err
		}
		switch kw.Name {
		case "out":
			c.inPlace = c.inPlace || sample != pyNone
		case "overwrite_input", "copy":
			c.inPlace = c.inPlace || c.name == "numpy.nan_to_num" || kw.Name == "overwrite_input"
		}
		kwargs = append(kwargs, Kw{kw.Name, v})
		pairs = append(pairs, [2]py.Object{tx.Scope().Name(kw.Name), sample})
	}
	return kwargs, pairs, nil
}

// operand returns the operand of the graph and the sample for an argument. data is set if the argument may be known
// only at run time.
func (c *arrayCall) operand(tx Translator, m py.Object, v VariableTracker, data bool,
	depth int) (VariableTracker, py.Object, error) {
	s := tx.Scope()
	refused := func() error { return unsupported(exc.CallUnsupported, "%s of numpy with %s", c.name, Describe(tx, v)) }
	if depth > maxNested {
		return nil, py.Object{}, refused()
	}
	if x := asSymNode(tx, v); x != nil && data {
		hint, known := tx.World().Env().Hint(x.Size)
		switch {
		case known && c.varying:
			return x, s.Int(hint), nil
		case !known && depth == 0:
			return x, s.Int(0), nil
		}
	}
	v, err := Realize(tx, v)
	if err != nil {
		return nil, py.Object{}, err
	}
	switch x := v.(type) {
	case *ArrayVariable:
		if !data {
			return nil, py.Object{}, refused()
		}
		c.note(x)
		return arrayNode(x.Node), x.Sample, nil
	case *ComputedVariable:
		if letter, ok := numberLetter(tx, x); !ok || !data || depth > 0 || letter == 'b' || x.mixed {
			return nil, py.Object{}, refused()
		}
		sample, err := s.Call(x.Type, s.Int(1))
		return x, sample, err
	case *ListVariable:
		return c.sequence(tx, m, v, x.items, data, depth)
	case *RangeVariable: // numpy reads it as a list
		items, err := x.Items(tx)
		if err != nil {
			return nil, py.Object{}, err
		}
		return c.sequence(tx, m, NewList(items, nil), items, data, depth)
	case *TupleVariable:
		if x.class.IsNull() || x.class == tx.World().SizeType {
			return c.sequence(tx, m, v, x.items, data, depth)
		}
	case *SliceVariable:
		return c.sequence(tx, m, v, x.parts[:], false, depth)
	}
	o, ok := AsConstant(tx, v)
	if !ok {
		return nil, py.Object{}, refused()
	}
	plain, err := s.CallMethod(m, "constant", o)
	if err != nil {
		return nil, py.Object{}, err
	}
	if plain != py.True() {
		return nil, py.Object{}, refused()
	}
	k := tx.Output().Const(o)
	return &graphOperand{arg: fxgraph.Lit{Pool: k.Index, Text: k.Text}}, o, nil
}

// sequence returns the operand and the sample for a list, a tuple or a slice.
func (c *arrayCall) sequence(tx Translator, m py.Object, of VariableTracker, items []VariableTracker, data bool,
	depth int) (VariableTracker, py.Object, error) {
	s := tx.Scope()
	args, samples := make([]fxgraph.Arg, len(items)), make([]py.Object, len(items))
	for i, it := range items {
		if it == nil {
			it = NoneConst()
		}
		v, sample, err := c.operand(tx, m, it, data, depth+1)
		if err != nil {
			return nil, py.Object{}, err
		}
		if args[i], err = AsProxy(tx, v); err != nil {
			return nil, py.Object{}, err
		}
		samples[i] = sample
	}
	switch of.(type) {
	case *ListVariable:
		return &graphOperand{arg: fxgraph.List{Items: args}}, s.List(samples...), nil
	case *SliceVariable:
		m, err := s.Import("builtins")
		if err != nil {
			return nil, py.Object{}, err
		}
		sample, err := s.CallMethod(m, "slice", samples...)
		return &graphOperand{arg: fxgraph.Slice{Start: args[0], Stop: args[1], Step: args[2]}}, sample, err
	}
	return &graphOperand{arg: fxgraph.Tuple{Items: args}}, s.Tuple(samples...), nil
}

// note records an array or scalar among the arguments.
func (c *arrayCall) note(a *ArrayVariable) {
	for _, other := range c.found {
		if other == a {
			return
		}
	}
	c.found, c.samples = append(c.found, a), append(c.samples, a.Sample)
}

// graphOperand is an argument of an operation in the form that the graph has it.
type graphOperand struct {
	Base
	arg fxgraph.Arg
}

// arrayNode returns the operand for a node that computes an array.
func arrayNode(n *fxgraph.Node) *graphOperand { return &graphOperand{arg: n} }

// Kind implements VariableTracker.
func (*graphOperand) Kind() string { return "operand" }

// AsProxy implements Proxy.
func (g *graphOperand) AsProxy(Translator) (fxgraph.Arg, error) { return g.arg, nil }

// arrayOutcome returns the tracker of what an operation returns. described is what arrays.call has returned for
// samples, operands are the trackers of the samples. node adds the operation to the graph.
func arrayOutcome(tx Translator, described py.Object, operands []*ArrayVariable,
	node func() (*fxgraph.Node, error)) (VariableTracker, error) {
	s := tx.Scope()
	parts := s.Items(described)
	kind := py.GoString(parts[0])
	if kind == "constant" {
		if k := parts[1].Kind(); k == py.Tuple {
			return attributeResult(tx, parts[1], "")
		}
		return NewConstant(parts[1], nil), nil
	}
	n, err := node()
	if err != nil {
		return nil, err
	}
	switch kind {
	case "none":
		return NoneConst(), nil
	case "operand":
		i, _ := py.AsInt(parts[1])
		return operands[i], nil
	case "value":
		return &ArrayVariable{Node: n, Sample: parts[1]}, nil
	case "bool", "int", "float":
		of := map[string]number{"bool": boolNumber, "int": intNumber, "float": floatNumber}[kind]
		if !captures(tx, of) {
			return nil, unsupported(exc.CallUnsupported, "a call of numpy that returns a number")
		}
		// the call itself may have an effect, as a draw of random numbers has
		n, err = tx.Output().CallNumpy(tx, tx.World().Builtin(kind), "builtins."+kind,
			[]VariableTracker{arrayNode(n)}, nil)
		if err != nil {
			return nil, err
		}
		n.Foreign = false // what is computed from the number has metadata
		return numberFrom(tx, n, of)
	}
	var items []VariableTracker
	for i, it := range s.Items(parts[1]) {
		item, err := tx.Output().CallNumpy(tx, tx.World().Operator("getitem"), "operator.getitem",
			[]VariableTracker{arrayNode(n), IntConst(tx, i)}, nil)
		if err != nil {
			return nil, err
		}
		items = append(items, &ArrayVariable{Node: item, Sample: s.Items(it)[1]})
	}
	if kind == "list" {
		return NewList(items, nil), nil
	}
	return NewTuple(items, nil), nil
}

// callNumpy captures a call of one of numpy's functions. On numbers that are known, CPython computes some of them.
func (t *TorchVariable) callNumpy(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if tx.World().isNumpyFunction(t.Fn) && !anyArray(tx, args...) {
		r, err := foldPure(tx, t.Fn, args, kwargs)
		if _, unknown := err.(*exc.Unsupported); !unknown || !capturesArrays(tx) {
			return r, err
		}
	}
	first, inPlace := strings.CutSuffix(t.detail, " in place")
	data, err := strconv.Atoi(first)
	if err != nil {
		return nil, err
	}
	c := &arrayCall{fn: t.Fn, name: "numpy." + name, args: args, kwargs: kwargs, data: data, inPlace: inPlace}
	if nin, ok := py.Answered(tx.Scope().GetAttr(t.Fn, "nin")); ok { // a ufunc
		n, _ := py.AsInt(nin)
		c.inPlace, c.changes = len(args) > int(n), int(n)
	}
	if r, ok, err := arrayOfTensor(tx, t.Fn, name, args, kwargs); ok || err != nil {
		return r, err
	}
	return c.run(tx)
}

// UfuncMethod is a method of a universal function of numpy: np.add.reduce.
type UfuncMethod struct {
	Base
	ufunc py.Object
	name  string
}

// ufuncMethods are the methods of ufuncs that are captured.
var ufuncMethods = map[string]bool{"reduce": true, "accumulate": true, "outer": true}

// Kind implements VariableTracker.
func (*UfuncMethod) Kind() string { return "UfuncMethod" }

// Reconstruct implements Reconstructer.
func (u *UfuncMethod) Reconstruct(e Emitter) error {
	e.LoadConst(u.ufunc)
	e.LoadAttr(u.name)
	return nil
}

// Call implements Caller.
func (u *UfuncMethod) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	method, ok := tx.Scope().TypeLookup(u.ufunc.Type(), u.name)
	if !ok {
		return nil, unsupported(exc.CallUnsupported, "%s of a ufunc", u.name)
	}
	data := 2 // the ufunc and the array
	if u.name == "outer" {
		data = 3
	}
	c := &arrayCall{fn: method, name: "numpy.ufunc." + u.name, data: data, kwargs: kwargs,
		args: append([]VariableTracker{NewConstant(u.ufunc, nil)}, args...)}
	return c.run(tx)
}

// arrayOperator captures an operator if one of the operands is an ArrayVariable. ok is false for other operands.
func arrayOperator(tx Translator, name string, inPlace bool, operands ...VariableTracker) (VariableTracker, bool,
	error) {
	if !anyArray(tx, operands...) && !sequenceBesideScalar(tx, name, operands) {
		return nil, false, nil
	}
	for _, v := range operands {
		if asSymNode(tx, v) != nil {
			continue
		}
		if c, ok := AsConstant(tx, MustRealize(tx, v)); ok && (c.Kind() == py.Str || c.Kind() == py.Bytes) {
			return nil, true, unsupported(exc.OperatorUnsupported, "%s of an array and a text", name)
		}
	}
	if inPlace {
		name = "i" + strings.TrimSuffix(name, "_")
		a := asArray(tx, operands[0])
		inPlace = a != nil && a.Sample.Type() == tx.World().arrayType
	}
	c := &arrayCall{fn: tx.World().Operator(name), name: "operator." + name, args: operands, data: len(operands),
		inPlace: inPlace, varying: true}
	r, err := c.run(tx)
	return r, true, err
}

// sequenceBesideScalar reports whether the operands are a list or tuple and a known scalar of numpy. numpy then
// computes with an array of the sequence's items. But a sequence times an int is the sequence, repeated.
func sequenceBesideScalar(tx Translator, name string, operands []VariableTracker) bool {
	if len(operands) != 2 {
		return false
	}
	for i, v := range operands {
		if l, lazy := v.(*LazyVariable); lazy && tx.World().isNumpy(l.obj) {
			v = MustRealize(tx, v)
		}
		c, ok := Chosen(v).(*ConstantVariable)
		if !ok || !tx.World().isNumpy(c.Value) {
			continue
		}
		if _, whole := py.Answered(tx.Scope().Index(c.Value)); whole && name == "mul" {
			return false
		}
		other := operands[1-i]
		if l, lazy := other.(*LazyVariable); lazy && (l.obj.Kind() == py.List || l.obj.Kind() == py.Tuple) {
			other = MustRealize(tx, other)
		}
		switch x := Chosen(other).(type) {
		case *ListVariable:
			return true
		case *TupleVariable:
			return x.class.IsNull()
		}
	}
	return false
}

// arrayBinary captures a BINARY_OP of arrays.
func arrayBinary(tx Translator, n opcode.BinaryOp, inPlace bool, a, b VariableTracker) (VariableTracker, bool, error) {
	return arrayOperator(tx, n.Function(), inPlace, a, b)
}

// scalarsBesideTensor returns the operands of an operator, with Python numbers in place of numpy's scalars beside a
// tensor. torch runs such an operator, also if the scalar is on the left, and reads the number from the scalar.
func scalarsBesideTensor(tx Translator, name string, a, b VariableTracker) (x, y VariableTracker, err error) {
	operands := [2]VariableTracker{a, b}
	for i, v := range operands {
		s := asArray(tx, v)
		if s == nil || s.Sample.Type() == tx.World().arrayType || name == "matmul" {
			continue
		}
		t, ok := MustRealize(tx, operands[1-i]).(*TensorVariable)
		if !ok || !isPlainTensor(tx, t) || tx.World().isNumpyBool(s.Sample) {
			continue
		}
		if operands[i], err = s.number(tx, "item", py.Object{}); err != nil {
			return a, b, err
		}
	}
	return operands[0], operands[1], nil
}

// arrayBuiltin captures a builtin function of an array. It returns nil for other calls.
func arrayBuiltin(tx Translator, b *BuiltinVariable, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if len(args) == 0 || len(kwargs) > 0 || !anyArray(tx, args...) {
		return nil, nil
	}
	a := asArray(tx, args[0])
	if a == nil && b.name != "divmod" {
		return nil, nil
	}
	switch b.name {
	case "int", "float":
		if len(args) == 1 {
			return a.number(tx, b.name, b.Fn)
		}
	case "abs", "divmod":
		c := &arrayCall{fn: b.Fn, name: "builtins." + b.name, args: args, data: len(args)}
		return c.run(tx)
	}
	return nil, nil
}
