package translate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// event is one action of the transformed function: an operation of the graph, an effect, the construction of an
// object, the computation of a value, or the drop of references. The result of an event that is not an operation goes
// into its slot, if it has one.
type event struct {
	node  *fxgraph.Node
	emit  func(e variables.Emitter) error
	slot  *variables.Slot
	chain *chain
	// protected is set if a handler in the user's code would catch the operation's exception. If such an operation
	// raises, the piece (the code since the last graph break) runs again in CPython from its start; see
	// OutputGraph.protect.
	protected bool
	exit      *sideExit // where the frame goes on if the operation raises
	leaves    *sideExit // where the frame goes on if the operation's result is None
	state     py.Object // torch's modes to restore if the event raises; null if nothing must be restored
	modes     py.Object // torch's modes at the event; null if they are those of the frame's start
	fresh     bool      // an effect on an object to which nothing else refers yet
	reads     bool      // an effect that reads a tensor's data
	shared    bool      // an effect that operations may see: it changes memory that a tensor may share
	held      bool      // slot keeps the object until an event drops it, or until the function ends
	early     bool      // computes a value that a whole graph may take as input
	draws     bool      // draws random numbers
	size      bool      // computes an int from sizes of the frame's tensors, so it may run anywhere
	of        sym.Size  // the int
	// onlyIfLoaded is set if the event's code is left out unless something loads its result.
	onlyIfLoaded bool
	// drops lists the references that the event drops. Such an event is neither an operation nor an effect.
	drops []drop
	// inBlock is set if a handler in the user's code would catch the event's exceptions, and the event is not an
	// operation.
	inBlock bool
	putBack bool                        // the operation's effect is undone before the user's code runs again
	values  []variables.VariableTracker // operands of an effect, in a translation for export
	// loop is set if the event starts a loop that is captured once or, with loopEnds, ends it.
	loop     *loop
	loopEnds bool
}

// OutputGraph holds what the translation of one frame produces: the graph, its inputs, the guards, and the events in
// program order. Trackers write to it through the interface variables.Output, as Dynamo's trackers write to its tracer.
type OutputGraph struct {
	scope     *py.Scope
	world     *variables.World
	frame     *Frame
	opts      *Options
	backend   Backend
	installer Installer
	codegen   *Codegen
	log       *SpeculationLog

	graph  *fxgraph.Graph
	guards guards.Collector

	constants
	tensorInputs
	eventLog
	progress
	pieces
	accounting
	subgraphs
	asked
	inlinedBranches

	python   pythonNodes
	foreign  foreignNodes
	places   passedPlaces
	holders  holders
	meta     *metaSession
	sizes    *sizeSession
	symbols  symbols
	state    torchState
	hooks    savedTensors
	computed computedValues
	layers   layers
	loops    capturedLoops
}

// constants holds the objects to which guards and code refer by index.
type constants struct {
	pool      []py.Object
	poolIndex map[py.Object]int
	consts    []guards.Const
}

// tensorInputs holds the frame's tensors, and facts about values of the graph by node.
type tensorInputs struct {
	inputs     []*variables.TensorVariable
	tensorArgs map[*variables.TensorVariable]*guards.TensorArgs
	inputOf    map[*fxgraph.Node]*variables.TensorVariable
	declared   map[*fxgraph.Node]variables.Declared
	customs    customs
	// classOf has the results that leave the graph as tensors of a subclass.
	classOf map[*fxgraph.Node]py.Object
	// reads lists the places that were read, whether or not the value was used. Guards check that these places can be
	// read.
	reads     []guards.Source
	sawTensor bool
	// hidden is set if autograd did not see a change of one of the frame's tensors; see HidesChange.
	hidden bool
	cheap  map[*fxgraph.Node]bool // results of cheapToCopy
	// noViews has the inputs that guards check to be no views.
	noViews map[*variables.TensorVariable]bool
	// operatorTraces has results of drawsInside by the operator's index in the pool.
	operatorTraces map[int]trace
}

// eventLog holds the events in program order, and counts of them.
type eventLog struct {
	events        []*event
	numSlots      int
	numOps        int
	freezing      map[variables.VariableTracker]bool
	storedGlobals map[string]variables.VariableTracker // values stored into the outermost frame's globals
	generators    []*GeneratorVariable
	strict        bool // break the graph at effects; see effectsLost
	materializing int  // if positive, effects change objects that are being materialized
	sharing       []func() variables.VariableTracker
	exits         []*sideExit
	late          []func()  // set operands that depend on later operations; see Later
	nextExit      *sideExit // the side exit of operations at step exitStep
	exitStep      int
	nextState     py.Object // torch's modes to restore if such an operation leaves through it; null if they stay
	lead          int       // number of events that run before a whole graph; see effectsLead
	checked       int       // number of events up to the last place where CPython checks for signals
	hasProtected  bool
	left, counted int // number of events that left a trace; number of events examined for this
	leftBefore    int // value of left at the start of the current step of the outermost frame
	leftStep      int // first step that began with this value of left
}

// progress is the state of the symbolic execution.
type progress struct {
	current   *InstructionTranslator // translator of the innermost running frame
	codes     map[py.Object]*decoded
	root      *rootInfo
	rootStep  int // current step of the outermost frame
	rootOps   int // number of operations before it
	steps     int
	stepsAtOp int // value of steps when the last operation was added
}

// pieces describes the frame's graph breaks and the resume functions after them.
type pieces struct {
	breaks    []*exc.Unsupported
	breakLine int
	resumes   []string
	shown     int // number of variables kept for tracebacks so far
}

// accounting holds information for `explain` and for the caller.
type accounting struct {
	account *Account // nil without Options.Explain
	inlined []string
	result  *Result
}

// subgraphs holds the functions that were captured because they are given to an operation.
type subgraphs struct {
	bodies    int     // number of functions that are being captured now; see Body
	inside    []*body // captured functions
	numBodies int     // number of functions captured so far
	tentative int     // number of running translations that may be undone; see Tentative
}

func newOutputGraph(s *py.Scope, w *variables.World, f *Frame, o *Options, b Backend, i Installer) *OutputGraph {
	return &OutputGraph{
		scope: s, world: w, frame: f, opts: o, backend: b, installer: i,
		graph:     fxgraph.NewGraph(),
		constants: constants{poolIndex: map[py.Object]int{}},
		tensorInputs: tensorInputs{
			tensorArgs: map[*variables.TensorVariable]*guards.TensorArgs{},
			inputOf:    map[*fxgraph.Node]*variables.TensorVariable{},
		},
		eventLog:   eventLog{freezing: map[variables.VariableTracker]bool{}},
		progress:   progress{codes: map[py.Object]*decoded{}},
		accounting: accounting{account: newAccount(o)},
	}
}

// Const implements variables.Output.
func (o *OutputGraph) Const(obj py.Object) guards.Const {
	if i, ok := o.poolIndex[obj]; ok {
		return o.consts[i]
	}
	i := len(o.pool)
	o.scope.Hold(obj)
	c := guards.Const{Index: i, Text: o.constText(obj), ID: obj.ID()}
	o.pool = append(o.pool, obj)
	o.consts = append(o.consts, c)
	o.poolIndex[obj] = i
	return c
}

// constText returns the text of a constant. It calls `repr` only for types whose `repr` is part of CPython or torch.
func (o *OutputGraph) constText(obj py.Object) string {
	switch obj.Kind() {
	case py.NoneKind, py.BoolKind, py.Int, py.Float, py.Complex, py.Str, py.Bytes, py.EllipsisKind, py.Range, py.Slice,
		py.FrozenSet, py.Tuple:
		return o.scope.Repr(obj)
	case py.Function, py.Builtin, py.MethodDescr:
		return o.world.CallableName(o.scope, obj)
	case py.TypeKind, py.TypeSub:
		return py.TypeName(obj)
	}
	if o.world.IsTorchConstant(obj.Type()) {
		return o.scope.Repr(obj)
	}
	return py.TypeName(obj.Type())
}

// AddGuards implements variables.Output.
func (o *OutputGraph) AddGuards(gs ...guards.Guard) {
	line := guards.UserLine{}
	if o.current != nil {
		line = o.current.userLine()
	}
	for i := range gs {
		if gs[i].Line == (guards.UserLine{}) {
			gs[i].Line = line
		}
		if gs[i].CreateFn == guards.CreateNoAlias {
			o.layers.apart++
		}
	}
	o.guards.Add(gs...)
}

// Until implements variables.Output.
func (o *OutputGraph) Until(f func(tx variables.Translator, again func(guards.Source) guards.Source)) {
	o.log.until = append(o.log.until, func(tx variables.Translator) {
		f(tx, func(src guards.Source) guards.Source {
			return guards.Renewed(src, func(c guards.Const) guards.Const { return tx.Output().Const(o.pool[c.Index]) })
		})
	})
}

// Reads implements variables.Output.
func (o *OutputGraph) Reads(src guards.Source) { o.reads = append(o.reads, src) }

// TensorInput implements variables.Output.
func (o *OutputGraph) TensorInput(tx variables.Translator, obj py.Object,
	src guards.Source) (*variables.TensorVariable, error) {
	o.sawTensor = true
	example := obj
	if t := obj.Type(); t != o.world.TensorType && t != o.world.ParameterType {
		if example = o.world.PlainTensor(o.scope, obj); !example.IsNull() {
			o.AddGuards(guards.GlobalState())
		}
	}
	if t := obj.Type(); py.IsSubtype(t, o.world.Uninitialized) {
		return nil, exc.Postpone(exc.Uninitialized, "%s is a %s", src.Name(), py.TypeName(t))
	}
	example, foreign, dispatched := o.foreignExample(obj, example)
	if t := obj.Type(); example.IsNull() {
		return nil, exc.Break(exc.TensorSubclass, "%s is a %s", src.Name(), py.TypeName(t))
	}
	if !foreign && !o.backend.Inline() && o.world.ViewOfDispatched(o.scope, example) {
		return nil, exc.Break(exc.TensorSubclass, "%s is a view of one that dispatches operators", src.Name())
	}
	node := o.graph.Placeholder(sanitize(src.Name()))
	t := variables.NewTensorInput(node, example, src)
	if obj.Type() != o.world.TensorType {
		t.Class = obj.Type()
	}
	if foreign {
		t.Real, node.Foreign = obj, true
	}
	if example != obj {
		t.Real = obj
		o.world.Becomes(node, obj.Type())
	}
	if dispatched {
		o.world.Dispatches(node, obj.Type())
	}
	args := &guards.TensorArgs{Example: o.Const(obj), Fields: fieldType}
	if o.opts.FullGuards {
		args.Fields = fieldAll
	}
	if dispatched {
		args.Fields |= fieldGrad // its class's code runs below autograd
	}
	args.StaticSizes, args.StaticStrides = ^uint64(0), ^uint64(0)
	if o.maySymbolize(t) {
		args.StaticSizes = 0
		if o.opts.FullGuards {
			args.StaticStrides = 0 // a graph that runs at any size runs at any strides
		}
	}
	o.tensorArgs[t] = args
	o.inputOf[node] = t
	o.inputs = append(o.inputs, t)
	o.AddGuards(guards.TensorMatch(src, args))
	return t, nil
}

// These are the bits for fields of gd_tensor_spec (core/golib.h).
const (
	fieldType   = 1
	fieldKeyset = 2
	fieldGrad   = 16
	fieldRank   = 32
	fieldSizes  = 64
	fieldStride = 128
	fieldAll    = 255

	// fieldsOfSizes has the fields on which the rules for sizes depend.
	fieldsOfSizes = fieldAll &^ (fieldStride | fieldGrad)
	// fieldsOfGrad has the fields on which requires_grad of a computed tensor depends. Strides are not among them, and
	// neither are sizes that are symbols: which operations run is fixed, and autograd asks for no size.
	fieldsOfGrad = fieldsOfSizes | fieldGrad
)

// NeedField implements variables.Output. The field of a computed tensor depends on the metadata of the inputs from
// which it is computed.
func (o *OutputGraph) NeedField(t *variables.TensorVariable, field uint16) {
	if a, ok := o.tensorArgs[t]; ok {
		o.need(t, a, field)
		return
	}
	if o.sizes != nil && field&(fieldStride|fieldGrad) == 0 {
		_, known := o.sizes.values[t.Node].(*shapes.Tensor)
		if !known {
			_, _, known = o.sparseSizes(t.Node)
		}
		if known {
			o.needOfAll(fieldsOfSizes)
			return
		}
	}
	if field == fieldGrad {
		o.needOf(o.needed(t.Node), fieldsOfGrad)
		return
	}
	o.needOf(o.needed(t.Node), fieldAll)
}

func (o *OutputGraph) needOfAll(fields uint16) { o.needOf(o.graph.Nodes(), fields) }

// needOf guards fields of the inputs among the nodes. With the strides, sizes that are operands become constants.
func (o *OutputGraph) needOf(nodes []*fxgraph.Node, fields uint16) {
	for _, n := range nodes {
		if t, ok := o.inputOf[n]; ok {
			o.need(t, o.tensorArgs[t], fields)
		}
		if fields&fieldStride != 0 {
			o.fixSizeNode(n)
		}
	}
}

func sanitize(name string) string {
	out := []byte("l_")
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' {
			out = append(out, c)
		} else if n := len(out); n > 0 && out[n-1] != '_' {
			out = append(out, '_')
		}
	}
	for len(out) > 1 && out[len(out)-1] == '_' {
		out = out[:len(out)-1]
	}
	if name == string(out[2:]) && name != "" && name != "self" { // "self" is the GraphModule
		return name
	}
	return string(out)
}

// CallFunction implements variables.Output.
func (o *OutputGraph) CallFunction(tx variables.Translator, target py.Object, name string,
	args []variables.VariableTracker, kwargs []variables.Kw) (*fxgraph.Node, error) {
	if err := o.world.ModesSee(tx, name, args); err != nil {
		return nil, err
	}
	if target.Kind() == py.Other && slices.ContainsFunc(args,
		func(v variables.VariableTracker) bool { return variables.HoldsNumpy(tx, v) }) {
		return nil, exc.Break(exc.CallUnsupported, "%s of a numpy scalar", name)
	}
	named := name
	// This is a user's function; the added dot distinguishes its name from a tensor method's name.
	if !strings.Contains(name, ".") {
		named = "." + name
	}
	a, k, err := o.operands(tx, named, args, kwargs)
	if err != nil {
		return nil, err
	}
	c := o.Const(target)
	node := o.graph.CallFunction(fxgraph.Target{Pool: c.Index, Text: name}, a, k)
	if len(args) > 0 && (name == "operator.getitem" || name == "builtins.getattr") {
		_, node.Item = args[0].(*variables.TensorSequence)
	}
	return o.added(node), nil
}

// CallMethod implements variables.Output.
func (o *OutputGraph) CallMethod(tx variables.Translator, name string, args []variables.VariableTracker,
	kwargs []variables.Kw) (*fxgraph.Node, error) {
	if err := o.world.ModesSee(tx, name, args); err != nil {
		return nil, err
	}
	a, k, err := o.operands(tx, name, args, kwargs)
	if err != nil {
		return nil, err
	}
	return o.added(o.graph.CallMethod(name, a, k)), nil
}

func (o *OutputGraph) operands(tx variables.Translator, operation string, args []variables.VariableTracker,
	kwargs []variables.Kw) ([]fxgraph.Arg, []fxgraph.Kwarg, error) {
	if err := o.seesHidden(operation); err != nil {
		return nil, nil, err
	}
	if err := o.protect(tx); err != nil {
		return nil, nil, err
	}
	if resizes(operation) && o.TakesApart() {
		return nil, nil, exc.Break(exc.CallUnsupported, "%s, for a backend that traces operators", operation)
	}
	a, k, err := o.proxies(tx, operation, args, kwargs)
	if err == nil {
		err = o.foreignOperands(tx, operation, a, k)
	}
	if err == nil {
		err = o.raisesAfterWriting(operation, a, k)
	}
	return a, k, err
}

func (o *OutputGraph) proxies(tx variables.Translator, operation string, args []variables.VariableTracker,
	kwargs []variables.Kw) ([]fxgraph.Arg, []fxgraph.Kwarg, error) {
	a := make([]fxgraph.Arg, len(args))
	sizes, numpy := tellsSizes(operation), tellsNumpy(operation)
	proxy := func(v variables.VariableTracker) (fxgraph.Arg, error) {
		if p, err := o.number(tx, operation, v); p != nil || err != nil {
			return p, err
		}
		if numpy && variables.HoldsNumpy(tx, v) {
			return nil, exc.Break(exc.CallUnsupported, "%s of a numpy scalar", operation)
		}
		if p, err := o.numbers(tx, operation, v); p != nil || err != nil {
			return p, err
		}
		p, err := variables.AsProxy(tx, v)
		if err == nil && sizes {
			p, err = o.keepSizes(p)
		}
		return p, err
	}
	var err error
	for i, v := range args {
		if a[i], err = proxy(v); err != nil {
			return nil, nil, err
		}
	}
	var k []fxgraph.Kwarg
	for _, kw := range kwargs {
		p, err := proxy(kw.Value)
		if err != nil {
			return nil, nil, err
		}
		k = append(k, fxgraph.Kwarg{Name: kw.Name, Value: p})
	}
	return a, k, nil
}

// tellsSizes reports whether an operation distinguishes a torch.Size from a tuple. x.new(x.shape) makes a tensor of
// that shape, but x.new((2, 3)) makes a tensor with that data. A Python function may check the type. All other
// operations of torch treat a torch.Size as a tuple, and graphs print it as one.
func tellsSizes(operation string) bool {
	return operation == "new" || operation == "torch.Tensor.new" || inPython(operation)
}

// inPython reports whether an operation calls a Python function that is neither from torch nor a builtin.
func inPython(operation string) bool {
	module, _, dotted := strings.Cut(operation, ".")
	return dotted && module != "torch" && module != "operator" && module != "builtins" && module != "math"
}

// tellsNumpy reports whether an operation distinguishes a numpy scalar from a Python number. torch.tensor keeps the
// type of the scalar. x.split rejects a numpy scalar, and so do the schemas of torch.ops (CallFunction). Other
// operations use the number that the scalar holds.
func tellsNumpy(operation string) bool {
	switch operation[strings.LastIndexByte(operation, '.')+1:] {
	case "tensor", "as_tensor", "asarray", "scalar_tensor", "from_numpy", "new_tensor", "new", "result_type",
		"Tensor", "split":
		return true
	}
	return inPython(operation)
}

// keepSizes returns an operand in which each torch.Size is a constant. It fails if a torch.Size contains a computed
// number.
func (o *OutputGraph) keepSizes(a fxgraph.Arg) (fxgraph.Arg, error) {
	each := func(items []fxgraph.Arg) (out []fxgraph.Arg, err error) {
		out = make([]fxgraph.Arg, len(items))
		for i, it := range items {
			if out[i], err = o.keepSizes(it); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	var err error
	switch x := a.(type) {
	case fxgraph.List:
		x.Items, err = each(x.Items)
		return x, err
	case fxgraph.Dict:
		x.Values, err = each(x.Values)
		return x, err
	case fxgraph.Tuple:
		if !x.Size {
			x.Items, err = each(x.Items)
			return x, err
		}
		if !o.backend.Inline() { // torch.fx converts constants of tuple subclasses to plain tuples
			c := o.Const(o.world.SizeType)
			return o.added(o.graph.CallFunction(fxgraph.Target{Pool: c.Index, Text: "torch.Size"},
				[]fxgraph.Arg{fxgraph.Tuple{Items: x.Items}}, nil)), nil
		}
		items := make([]py.Object, len(x.Items))
		for i, it := range x.Items {
			lit, ok := it.(fxgraph.Lit)
			if !ok {
				return nil, exc.Break(exc.CallUnsupported, "a torch.Size of unknown numbers")
			}
			items[i] = o.pool[lit.Pool]
		}
		size, err := o.scope.Call(o.world.SizeType, o.scope.Tuple(items...))
		if err != nil {
			return nil, err
		}
		c := o.Const(size)
		return fxgraph.Lit{Pool: c.Index, Text: c.Text}, nil
	}
	return a, nil
}

func (o *OutputGraph) added(n *fxgraph.Node) *fxgraph.Node {
	return o.addedAt(n, o.position())
}

// addedAt records a node whose operation is at the user's position ch. It returns the node.
func (o *OutputGraph) addedAt(n *fxgraph.Node, ch *chain) *fxgraph.Node {
	o.sawTensor = o.sawTensor || !isPythonNode(n) && !seeds(n)
	o.numOps++
	o.spreadForeign(n)
	o.stepsAtOp = o.steps
	o.letGoOfTensors()
	if (!o.backend.Inline() || o.bodies > 0) && ch != nil {
		for _, f := range ch.stack() {
			n.Stack = append(n.Stack, fxgraph.Frame{Name: f.Name, File: f.File, Line: f.Line})
		}
		n.Stack[0].Col = int(ch.inst.Pos.Col)
	}
	if s := o.opts.Steps; s != nil && s.Node != nil && ch != nil {
		s.Node(n.Format(), ch.d.code.Name, ch.d.code.Filename, ch.inst.Pos)
	}
	e := &event{node: n, chain: ch, modes: o.state.now}
	if o.current != nil {
		e.protected, e.state = o.current.protection()
	}
	if exit := o.exitHere(); e.protected && (o.foreign.ran || exit != nil) {
		if e.protected, e.exit = false, exit; exit != nil {
			e.state = o.nextState
		}
	}
	o.events = append(o.events, e)
	return n
}

// here sets the position of an event that is not an operation, and the torch modes to restore if the event raises. It
// returns the event.
func (o *OutputGraph) here(e *event) *event {
	e.modes = o.state.now
	if o.current != nil {
		e.chain = o.current.chainHere()
		var handled bool
		handled, e.state = o.current.protection()
		e.inBlock = handled || !e.state.IsNull()
		if handled {
			e.state = py.Object{}
		}
	}
	return e
}

func (o *OutputGraph) position() *chain {
	if o.current == nil {
		return nil
	}
	return o.current.chainHere()
}

// Effect implements variables.Output.
func (o *OutputGraph) Effect(tx variables.Translator, values []variables.VariableTracker,
	emit func(e variables.Emitter) error) error {
	tx.World().Writes++
	tx.World().Effects++
	if o.strict && o.materializing == 0 {
		return exc.Break(exc.StoreUnsupported, "a side effect before an operation that changes tensors in place")
	}
	for _, v := range values {
		if err := o.Freeze(tx, v); err != nil {
			return err
		}
	}
	o.letGo(values)
	e := &event{emit: emit, fresh: o.materializing > 0}
	if o.opts.Exporting {
		e.values = slices.Clone(values)
	}
	o.events = append(o.events, o.here(e))
	return nil
}

// CallAside implements variables.Output.
func (o *OutputGraph) CallAside(tx variables.Translator, values []variables.VariableTracker,
	emit func(e variables.Emitter) error) error {
	for _, v := range values {
		if err := o.Freeze(tx, v); err != nil {
			return err
		}
	}
	o.events = append(o.events, o.here(&event{emit: emit, slot: o.newSlot()}))
	return nil
}

// MaySeeEffect implements variables.Output.
func (o *OutputGraph) MaySeeEffect() {
	o.events[len(o.events)-1].shared = true
	o.forgetNumbers() // the memory may be a mask's
}

// ReadsTensors implements variables.Output.
func (o *OutputGraph) ReadsTensors() { o.events[len(o.events)-1].reads = true }

// Step implements variables.Output.
func (o *OutputGraph) Step() int { return o.rootStep }

func (o *OutputGraph) newSlot() *variables.Slot {
	o.numSlots++
	return &variables.Slot{Index: o.numSlots - 1}
}

// Freeze implements variables.Output. Afterwards v can be loaded, and every load yields the same object.
func (o *OutputGraph) Freeze(tx variables.Translator, v variables.VariableTracker) error {
	if done, err := o.freezeMade(tx, v); done || err != nil {
		return err
	}
	if l, ok := v.(*variables.LazyVariable); ok {
		if !l.Realized() {
			return nil // its source loads v
		}
		v = l.Real()
	}
	if variables.Materialized(v) || variables.Outside(v) != nil || isNumberInGraph(v) {
		return nil
	}
	if h := variables.Holder(v); h != nil { // v is the contents of the instance h
		return o.Freeze(tx, h)
	}
	switch x := v.(type) {
	case *variables.TensorVariable, *variables.TensorSequence, *variables.OpaqueVariable, *variables.TensorOrInt,
		*variables.ArrayVariable, *variables.GeneratorVariable:
		return nil
	case *variables.SymNodeVariable:
		return o.freezeSize(tx, x)
	case *variables.GraphFunction:
		if !o.backend.Inline() {
			return exc.Break(exc.Reconstruct, "a function that the graph makes")
		}
		return nil
	case *variables.ConstantVariable, *variables.RangeVariable, *variables.ClassVariable, *variables.BuiltinVariable,
		*variables.TorchVariable, *variables.ModuleVariable, *variables.UnboundMethod, *variables.OptimizedVariable,
		*lastiMark:
		return nil
	case *variables.TupleVariable:
		if isConstant(o.scope, x) {
			return nil
		}
	case *variables.CellVariable:
		return o.freezeCell(tx, x)
	case *variables.ObjectVariable:
		return o.freezeObject(tx, x)
	case *handledMark:
		return o.Freeze(tx, x.exception)
	case *variables.TracebackVariable:
		return o.breakAt(variables.RaisedAt(v), exc.Break(exc.ProgramRaises, "a traceback that the program keeps"))
	}
	if g, ok := v.(*GeneratorVariable); ok {
		if err := o.freezeGenerator(g); err != nil {
			return err
		}
	}
	if o.freezing[v] {
		return exc.Break(exc.Reconstruct, "%s refers to itself", v.Kind())
	}
	o.freezing[v] = true
	defer delete(o.freezing, v)
	if it, ok := v.(variables.Settler); ok {
		if err := it.Settle(tx); err != nil {
			if step := variables.MadeAt(v); step != 0 {
				return o.breakAt(step, err)
			}
			return err
		}
	}
	snapshot := v
	if s, ok := v.(variables.Snapshotter); ok {
		snapshot = s.Snapshot()
	}
	if c, ok := v.(variables.Container); ok {
		for _, child := range c.Children() {
			if err := o.Freeze(tx, child); err != nil {
				return err
			}
		}
	}
	r, ok := snapshot.(variables.Reconstructer)
	if !ok {
		return exc.Break(exc.Reconstruct, "%s", v.Kind())
	}
	o.hold(o.here(&event{emit: r.Reconstruct}), v)
	return nil
}

// freezeCell materializes a cell. It makes the empty cell first, since the contents may refer to the cell. An example
// is a recursive inner function.
func (o *OutputGraph) freezeCell(tx variables.Translator, c *variables.CellVariable) error {
	contents, err := c.Get(tx)
	if err != nil {
		return err
	}
	o.hold(o.here(&event{emit: variables.NewCell(nil).Reconstruct}), c)
	if contents == nil {
		return nil
	}
	o.materializing++
	defer func() { o.materializing-- }()
	return c.Set(tx, contents)
}

// freezeObject materializes an instance. It makes the bare object first, then sets its attributes in the user's
// order.
func (o *OutputGraph) freezeObject(tx variables.Translator, v *variables.ObjectVariable) error {
	if step := variables.RaisedAt(v); step != 0 {
		return o.breakAt(step, exc.Break(exc.ProgramRaises, "%s, which the program keeps", py.TypeName(v.Class)))
	}
	if variables.IsException(tx, v) {
		for _, child := range v.Children() {
			if err := o.Freeze(tx, child); err != nil {
				return err
			}
		}
	}
	if err := v.Before(tx); err != nil {
		return err
	}
	o.hold(o.here(&event{emit: v.ReconstructEmpty}), v)
	o.materializing++
	defer func() { o.materializing-- }()
	return v.Fill(tx)
}

// aliasGuards guards that each object that the user's code has changed is distinct from all other objects of its type
// that were read. If two of them were the same object, the translation would differ.
func (o *OutputGraph) aliasGuards() {
	type place struct {
		obj py.Object
		v   variables.VariableTracker
	}
	var all []place
	o.world.Tracked(func(obj py.Object, v variables.VariableTracker) {
		if v.Source() != nil {
			switch v.(type) {
			case *variables.ListVariable, *variables.DictVariable, *variables.SetVariable, *variables.ObjectVariable,
				*variables.CellVariable,
				*variables.DequeVariable, *variables.ShadowVariable, *variables.RealIterator:
				all = append(all, place{obj, v})
			}
		}
	})
	for _, m := range all {
		if !variables.Mutated(m.v) {
			continue
		}
		for _, other := range all {
			if other.v != m.v && other.v.Kind() == m.v.Kind() && other.obj.Type() == m.obj.Type() {
				if a, b := m.v.Source(), other.v.Source(); a.Name() < b.Name() || !variables.Mutated(other.v) {
					o.AddGuards(guards.NoAlias(a, b))
				}
			}
		}
	}
	o.world.Unseen(func(obj py.Object, src guards.Source) {
		for _, other := range all {
			if other.obj.Type() == obj.Type() {
				o.AddGuards(guards.NoAlias(src, other.v.Source()))
			}
		}
	})
	all = slices.DeleteFunc(all, func(p place) bool { return !variables.Mutated(p.v) })
	o.world.LookedUp(func(obj py.Object, src guards.Source) {
		for _, other := range all {
			if other.obj != obj && other.obj.Type() == obj.Type() {
				o.AddGuards(guards.NoAlias(src, other.v.Source()))
			}
		}
	})
	o.world.Iterated(func(obj py.Object, src guards.Source) {
		for _, other := range all {
			if other.obj != obj && other.obj.Type() == obj.Type() {
				o.AddGuards(guards.NoAlias(src, other.v.Source()))
			}
		}
		o.world.Unseen(func(other py.Object, at guards.Source) {
			if other != obj && other.Type() == obj.Type() {
				o.AddGuards(guards.NoAlias(src, at))
			}
		})
	})
	if o.opts.FullGuards && o.ChangesTensors() || o.changesMetadata(0) {
		for _, a := range o.inputs {
			o.tensorArgs[a].Fields |= guards.TensorDistinct
		}
	}
}

// ChangesTensors implements variables.Output.
func (o *OutputGraph) ChangesTensors() bool {
	for _, e := range o.events {
		if e.node != nil && e.node.Inplace {
			return true
		}
	}
	return false
}

// effectsLost reports whether an effect would come too late or be lost because a whole graph runs before all effects.
// This is so if an effect precedes an operation, and either the operation may see the effect, or the graph may raise
// and the user's code cannot run again. The frame is then translated again, and the graph breaks at its effects.
func (o *OutputGraph) effectsLost() bool {
	if o.strict || o.numOps == 0 {
		return false
	}
	if o.backend.Inline() {
		return o.readsTooLate()
	}
	return o.lostFrom(o.lead, o.opts.NoPython && !o.python.used() || o.rerunnable())
}

// lostFrom reports whether an effect among the events from an index on would come too late or be lost. keep is true if
// the user's code runs again when the whole graph raises, or if the frame must not break.
func (o *OutputGraph) lostFrom(first int, keep bool) bool {
	effect, shared, captured, reads := false, false, false, false
	for _, e := range o.events[first:] {
		if e.draws && captured && !keep {
			return true
		}
		captured = captured || e.node != nil
		if e.node != nil && (shared || effect && !keep || reads && o.changesTensors(e.node)) {
			return true
		}
		reads = reads || e.reads
		effect = effect || (e.emit != nil && e.slot == nil)
		shared = shared || e.shared
	}
	return false
}

// GraphText returns the graph as fx prints it.
func (o *OutputGraph) GraphText() string { return fmt.Sprint(o.graph) }
