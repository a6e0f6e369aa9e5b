// Package variables models the values of a frame that is being translated. Each value has one VariableTracker, whose
// type depends on the kind of value.
//
// A tracker holds the source of its value (a guards.Source, if the value was read from the frame), the guards that the
// value depends on, and the state of the value. The operations that a kind supports are optional interfaces (Caller,
// AttrGetter, Sequence, ...). GetAttr, Call, Binary and the other functions of this package use these interfaces. They
// return Unsupported if the tracker lacks the interface that they need. For wholly known values, CPython computes
// operations on the real objects.
//
// Translating has no side effects. The changes that the user's program makes are recorded as effects in program order,
// among the graph's operations (Output.Effect). Comments call the user's program "the program". A value that leaves the
// frame is materialized once: code of the transformed function builds a real object for it. Later changes to the value
// are then written to that object.
package variables

import (
	"reflect"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// VariableTracker represents a value of the program while translating. Each mutable object has one tracker, so
// trackers of mutable values are compared by identity.
type VariableTracker interface {
	// Source returns the path from which the value was read, or nil if the program made it.
	Source() guards.Source
	// Guards returns the guards that the value depends on.
	Guards() guards.Set
	// Kind returns the name of the kind for messages. It is the name of Dynamo's tracker class, if Dynamo has one.
	Kind() string
	base() *Base
}

// Base holds the fields that every tracker has.
type Base struct {
	Src  guards.Source
	set  guards.Set
	slot *Slot // local that holds the materialized value; nil until then
	// mutated marks a value that was passed to the frame and that the program changed. It must not alias other values.
	mutated bool
	// gathered marks a container whose set has the guards that its items had when it was built.
	gathered bool
	// outside represents the value in a graph with Python calls, after one of these calls may have changed the value.
	outside *OpaqueVariable
	// through is the builtin type that an instance's class extends, if the tracker is that instance's contents. Effects
	// call the methods of this type.
	through py.Object
	holder  *ObjectVariable // the instance that has this tracker as its contents
	above   int             // number of modules in the value whose capture is in progress; see Above
}

// Source implements VariableTracker.
func (b *Base) Source() guards.Source { return b.Src }

// Guards implements VariableTracker.
func (b *Base) Guards() guards.Set { return b.set }
func (b *Base) base() *Base        { return b }

// Slot is a local of the transformed function. It holds a value from its materialization on.
type Slot struct{ Index int }

// Materialized reports whether a real object exists for v: v was passed to the frame, or code that builds the object
// has been recorded.
func Materialized(v VariableTracker) bool {
	b := v.base()
	return b.Src != nil || b.slot != nil
}

// SlotOf returns the slot of a materialized value, or nil.
func SlotOf(v VariableTracker) *Slot { return v.base().slot }

// Holder returns the instance whose contents are v, or nil if there is none.
func Holder(v VariableTracker) *ObjectVariable { return v.base().holder }

// SetSlot records the slot of a materialized value.
func SetSlot(v VariableTracker, s *Slot) { v.base().slot = s }

// Mutated reports whether v was passed to the frame and the program changed it.
func Mutated(v VariableTracker) bool { return v.base().mutated }

// MakeGuard calls build with v's source and returns the guard. It returns false if v has no source.
func MakeGuard(v VariableTracker, build func(guards.Source) guards.Guard) (guards.Guard, bool) {
	if v.Source() == nil {
		return guards.Guard{}, false
	}
	return build(v.Source()), true
}

// ReplaceGuards returns a copy of v that has exactly the guards in set. The copy represents another object. So
// ReplaceGuards is only for trackers of immutable values and for trackers that no other code has seen.
func ReplaceGuards(v VariableTracker, set guards.Set) VariableTracker {
	old := reflect.ValueOf(v).Elem()
	copied := reflect.New(old.Type())
	copied.Elem().Set(old)
	c := copied.Interface().(VariableTracker)
	c.base().set = set
	return c
}

// WithGuardsOf gives v the guards of its items and of their children. No other code has seen v.
func WithGuardsOf(v VariableTracker, items []VariableTracker) VariableTracker {
	b := v.base()
	b.set, b.gathered = Propagate(items...), true
	return v
}

// AddGuards returns a copy of v with the guards in set added (see ReplaceGuards).
func AddGuards(v VariableTracker, set guards.Set) VariableTracker {
	return ReplaceGuards(v, v.Guards().Union(set))
}

// AddGuard returns a copy of v with one more guard (see ReplaceGuards).
func AddGuard(v VariableTracker, g guards.Guard) VariableTracker {
	return ReplaceGuards(v, v.Guards().Add(g))
}

// Propagate returns the union of the guards of all given trackers and of their children. It does not descend into
// containers that WithGuardsOf has seen: otherwise, building nested containers would take quadratic time.
func Propagate(vars ...VariableTracker) guards.Set {
	var seen map[VariableTracker]bool
	return propagate(guards.Set{}, vars, &seen)
}

func propagate(out guards.Set, vars []VariableTracker, seen *map[VariableTracker]bool) guards.Set {
	for _, v := range vars {
		if v == nil {
			continue
		}
		out = out.Union(v.Guards())
		if c, ok := v.(Container); ok && !v.base().gathered && !(*seen)[v] {
			if *seen == nil {
				*seen = map[VariableTracker]bool{}
			}
			(*seen)[v] = true
			out = propagate(out, c.Children(), seen)
		}
	}
	return out
}

// Container is a tracker that holds other trackers.
type Container interface{ Children() []VariableTracker }

// Kw is a keyword argument.
type Kw struct {
	Name  string
	Value VariableTracker
}

// Optional interfaces.
type (
	// A Caller can be called.
	Caller interface {
		Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error)
	}
	// A MethodCaller handles method calls itself, without an attribute lookup.
	MethodCaller interface {
		CallMethod(tx Translator, name string, args []VariableTracker, kwargs []Kw) (VariableTracker, error)
	}
	// An AttrGetter reads attributes.
	AttrGetter interface {
		GetAttr(tx Translator, name string) (VariableTracker, error)
	}
	// An AttrSetter stores attributes, or deletes them if value is nil.
	AttrSetter interface {
		SetAttr(tx Translator, name string, value VariableTracker) error
	}
	// An ItemGetter reads items: obj[key].
	ItemGetter interface {
		GetItem(tx Translator, key VariableTracker) (VariableTracker, error)
	}
	// An ItemSetter stores items, or deletes them if value is nil.
	ItemSetter interface {
		SetItem(tx Translator, key, value VariableTracker) error
	}
	// A Sequence has known items, so it can be unpacked.
	Sequence interface {
		Items(tx Translator) ([]VariableTracker, error)
	}
	// A Lener has a known length.
	Lener interface {
		Len(tx Translator) (int, error)
	}
	// An Iterator is advanced by next().
	Iterator interface {
		Next(tx Translator) (v VariableTracker, ok bool, err error)
	}
	// A Returner is an Iterator whose StopIteration has a value.
	Returner interface {
		StopValue() VariableTracker
	}
	// A Constant may be wholly known. Then CPython can compute with its object.
	Constant interface {
		// AsConstant returns the real object, or false if a part is unknown.
		AsConstant(tx Translator) (py.Object, bool)
	}
	// A Proxy can be an operand of a graph.
	Proxy interface {
		AsProxy(tx Translator) (fxgraph.Arg, error)
	}
	// A Typed tracker has a known Python type.
	Typed interface {
		PythonType(tx Translator) (py.Object, error)
	}
	// A Truther has a known truth value.
	Truther interface {
		Truth(tx Translator) (bool, error)
	}
	// A Reconstructer emits instructions that leave the value on the stack.
	Reconstructer interface {
		Reconstruct(e Emitter) error
	}
	// A Settler must prepare for materialization. Settle is called before the children are materialized.
	Settler interface {
		Settle(tx Translator) error
	}
	// A Snapshotter returns a copy of the state that later changes would modify.
	Snapshotter interface {
		Snapshot() VariableTracker
	}
)

// Emitter writes instructions of the transformed function. Call Output.Freeze on a value before Load, since Load needs
// a materialized value.
type Emitter interface {
	Load(v VariableTracker) error
	LoadConst(o py.Object)
	LoadInt(i int)
	LoadStr(text string)
	LoadAttr(name string)
	LoadMethod(name string)
	PushNull()
	Call(nargs int, kwnames []string)
	CallMethod(nargs int, kwnames []string)
	StoreAttr(name string)
	DeleteAttr(name string)
	StoreSubscr()
	DeleteSubscr()
	Subscript()
	StoreGlobal(name string)
	DeleteGlobal(name string)
	BinaryOp(op opcode.BinaryOp)
	CompareOp(op opcode.CompareOp)
	UnaryOp(op int)
	BuildTuple(n int)
	BuildList(n int)
	BuildMap(n int)
	BuildSet(n int)
	BuildSlice(n int)
	ListAppend()
	GetIter()
	PopTop()
	Copy(i int)
	Swap(i int)
	MakeFunction(code py.Object, name, qualname string, flags int)
}

// ResultSizes has what an Output knows about the sizes of a result. It is passed to Output.GiveSizes.
type ResultSizes any

// Output is the part of OutputGraph that trackers use.
type Output interface {
	// AddGuards adds guards to the entry.
	AddGuards(gs ...guards.Guard)
	// MadeHere reports whether the value at src may have been made by this frame before a graph break. It returns
	// false if the frame is not resumed.
	MadeHere(src guards.Source) bool
	// LetGoOf reports whether the program has released an object that was passed to it. Such an object may be freed.
	LetGoOf() bool
	// Until registers f, which adds the guards that a graph break depends on. Every further attempt to translate the
	// frame calls f at its start. again turns a source of this attempt into one of that attempt.
	Until(f func(tx Translator, again func(guards.Source) guards.Source))
	// Reads records that the program read a source. A guard then checks that the source can be read, even if the
	// program does not use the value. Build calls it for attributes, globals and cells.
	Reads(src guards.Source)
	// Const adds an object to the constant pool.
	Const(o py.Object) guards.Const
	// CallFunction adds a call_function node.
	CallFunction(tx Translator, target py.Object, name string, args []VariableTracker,
		kwargs []Kw) (*fxgraph.Node, error)
	// CallMethod adds a call_method node; args[0] is the object.
	CallMethod(tx Translator, name string, args []VariableTracker, kwargs []Kw) (*fxgraph.Node, error)
	// TensorInput returns the graph input for a tensor read from the frame. It adds the input on the first call.
	TensorInput(tx Translator, obj py.Object, src guards.Source) (*TensorVariable, error)
	// Decide reports whether a condition on sizes holds in the translated call. If the known facts do not decide it,
	// the condition, or its opposite, becomes a guard of the entry. It breaks the graph if the condition depends on a
	// value known only at run time.
	Decide(tx Translator, c sym.Cond) (bool, error)
	// CheckInGraph adds torch._check of a condition to the graph. It is for export and for compilers.
	CheckInGraph(tx Translator, c sym.Cond) error
	// ConditionNode adds the operations that compute a condition to the graph, and returns the last of them.
	ConditionNode(tx Translator, c sym.Cond) (fxgraph.Arg, error)
	// Compared returns the outcome of a comparison of sizes: a constant, or a condition that LeaveUndecided has
	// requested.
	Compared(tx Translator, c sym.Cond) (VariableTracker, error)
	// LeaveUndecided requests another attempt in which Compared does not decide the comparison whose outcome is v. It
	// does nothing if v is the outcome of no comparison, or if this is no translation for export.
	LeaveUndecided(v *ConstantVariable) error
	// Unbacked reports whether numbers known only at run time are unbacked symbols of a compiler. Such a compiler
	// accepts torch._check of them.
	Unbacked() bool
	// RunsUnchanged reports whether the graph runs as it is captured, as far as is known. If the backend turns out to
	// compile it, or raises, the frame is translated again for a compiler.
	RunsUnchanged() bool
	// NumberInGraph returns the tracker of a float or a bool that a node of a whole graph computes.
	NumberInGraph(node *fxgraph.Node, class string) *ComputedVariable
	// CapturesNumbers reports whether an operation that returns numbers from a tensor's data may be in the graph: ints
	// or, if `floats` is set, floats and bools. Call it only if the answer matters; see TakesApart.
	CapturesNumbers(floats bool) bool
	// AtLoop reports whether a loop follows that may be captured once for all numbers of turns. The running instruction
	// must be a call of the builtin of this name or, if name is empty, GET_ITER.
	AtLoop(name string) bool
	// AtRunTime returns the tracker of an int that is known only at run time: the result of a node or, if node is nil,
	// the contents of a slot. Its value is between lo and hi.
	AtRunTime(node *fxgraph.Node, slot *Slot, lo, hi int64) *SymNodeVariable
	// StrideAtRunTime adds the operation that reads a stride of a computed tensor. It returns nil where the graph
	// cannot have such an operation.
	StrideAtRunTime(t *TensorVariable, dim int) *SymNodeVariable
	// SizeOperand returns the graph operand for an int whose value may differ between calls.
	SizeOperand(tx Translator, v *SymNodeVariable) (fxgraph.Arg, error)
	// Shares records a mode that the captured code has entered and for which the program now has an object. number
	// returns the mode's key in torch_state, or nil once the captured code has left the mode. When the captured code
	// ends or a handler runs, the object owns the mode.
	Shares(number func() VariableTracker)
	// Adopts records that a real object of the program is about to take over a mode that captured code has entered.
	Adopts()
	// Freeze makes v loadable at this point of the program. It materializes a mutable value that has no real object.
	Freeze(tx Translator, v VariableTracker) error
	// Effect records a change in program order, among the operations. It freezes `values` first.
	Effect(tx Translator, values []VariableTracker, emit func(e Emitter) error) error
	// CallAside records a call in program order. The program does not see the call, and the call may be repeated. Its
	// result is dropped.
	CallAside(tx Translator, values []VariableTracker, emit func(e Emitter) error) error
	// Meta returns a tensor's metadata. It reads the metadata of an input from its example, and computes that of other
	// tensors with FakeTensor.
	Meta(tx Translator, v *TensorVariable) (*TensorMeta, error)
	// RequiresGrad returns the flag of a computed tensor. Unlike Meta it makes no size a constant.
	RequiresGrad(tx Translator, v *TensorVariable) (bool, error)
	// Foresee precomputes a value that torch's own code reads from a tensor ("bool", "int", "float", "item", "index").
	// The value must follow from a tensor passed to the frame: a guard computes it again. Otherwise Foresee returns
	// false, and the graph must break.
	Foresee(tx Translator, t *TensorVariable, ask string) (py.Object, bool, error)
	// ValueBySizes returns the value of a tensor that holds one int, if it follows from the sizes of other tensors.
	ValueBySizes(t *TensorVariable) (sym.Size, bool)
	// SameTensor reports whether the results of two nodes are one tensor object, according to FakeTensor. For example,
	// x.contiguous() may return x. The metadata of all inputs are guarded.
	SameTensor(a, b *fxgraph.Node) (bool, error)
	// InputOf returns the tensor passed to the frame for a placeholder, or nil for other nodes.
	InputOf(n *fxgraph.Node) *TensorVariable
	// Sizes returns metadata that has only a tensor's shape, dtype, device and layout. It returns false if shape rules
	// do not determine them. It adds no guard: the caller requests one with NeedField.
	Sizes(v *TensorVariable) (*TensorMeta, bool)
	// MayBeNegative reports whether a tensor of the graph may be lazily negative, such as x.conj().imag.
	MayBeNegative() (bool, error)
	// OnlyAtRunTime reports whether the sizes of a node's result depend on the number of a sparse tensor's elements.
	OnlyAtRunTime(n *fxgraph.Node) bool
	// Layout returns the sizes and strides of a dense tensor as expressions, and adds guards on which they depend. ok
	// is false if they are unknown, or if the sizes are constants.
	Layout(v *TensorVariable) (sizes, strides []sym.Size, ok bool, err error)
	// Sample returns a tensor with the metadata of t: the real tensor passed to the frame, or a fake one.
	Sample(t *TensorVariable) (py.Object, error)
	// NodeType returns the type of a node's result, computed with FakeTensor.
	NodeType(node *fxgraph.Node) (py.Object, error)
	// NodeValue evaluates a node's non-tensor result (int, bool, list length) with FakeTensor. It returns the real
	// object, or the number of tensors.
	NodeValue(tx Translator, node *fxgraph.Node) (py.Object, error)
	// NodeResult returns what _translator/fake.Session.result returns for a node that calls the user's function.
	// If bodies is set, the node calls functions captured by Body, and sizes do not become constants: what such a node
	// returns, sizes excepted, follows from the operations in the bodies.
	NodeResult(tx Translator, node *fxgraph.Node, bodies bool) (py.Object, error)
	// Compute records code that computes a plain value at run time. For a whole-graph backend, the code runs before
	// the graph, unless an operand is AfterGraph. operands are constants, values passed to the frame and other
	// computed values. If draws is true, the code draws random numbers from the first operand.
	Compute(tx Translator, operands []VariableTracker, draws bool, emit func(e Emitter) error) (*Slot, error)
	// LeavesIfRaised reports whether the frames can go on in CPython, at the handler of an exception, if the value that
	// the current step computes with Compute raises one.
	LeavesIfRaised(tx Translator) bool
	// OnlyIfLoaded leaves the code of the newest Compute out if nothing loads its result.
	OnlyIfLoaded(slot *Slot)
	// AfterGraph reports whether a value is computed from results of a whole graph. Such a value cannot be an input of
	// that graph.
	AfterGraph(v VariableTracker) bool
	// ComputedInput returns the graph input for a tensor that Compute computes. example is a tensor with the same
	// metadata.
	ComputedInput(slot *Slot, example py.Object) *TensorVariable
	// OfClass records that a node's result must leave the graph as a tensor of class, or as a sequence of such
	// tensors. For a whole-graph backend, the node itself returns plain tensors.
	OfClass(node *fxgraph.Node, class py.Object)
	// WholeGraph reports whether the backend compiles the graph as a whole, so that the graph is one call.
	WholeGraph() bool
	// TakesNumbers reports whether operations of the graph take Python numbers that are computed at run time.
	TakesNumbers() bool
	// OptimizerAlone reports whether the translated frame is one of torch.optim's.
	OptimizerAlone() bool
	// TakesApart reports whether the backend decomposes operators. Call it only if the answer matters: if the backend
	// turns out to decompose operators, the frame is translated again.
	TakesApart() bool
	// ReadsHistory records that the program looks at the history of tensors where a whole graph breaks. For a call of
	// backward(), passed is the tensor, or a container of the tensors; otherwise it is nil.
	ReadsHistory(passed VariableTracker)
	// NeedsHistory returns nil if the graph's results have the history that they have in eager mode. Otherwise it
	// requests another attempt.
	NeedsHistory() error
	// Tentative runs a translation only to obtain its guards, and then removes the captured operations from the graph.
	// seen is true if the translation cannot be undone, or if it has added an input to a whole graph. If run returns a
	// new tensor whose sizes follow from those of the frame's tensors, sizes has them; otherwise it is nil.
	// draws is set if its operations draw random numbers, and nothing else prevents that it is undone.
	Tentative(run func() (VariableTracker, error)) (sizes ResultSizes, seen, draws bool, err error)
	// Pure reports whether run, which calls a function of the program, captures no operation and has no effect, and
	// whether the program has changed nothing before that other code can see. What run has done is undone.
	Pure(run func() error) (bool, error)
	// Custom records that a node calls a function with a backward pass of its own. of is that function, or Null for a
	// hook. If the program calls backward() in this frame, run calls this pass, to find out whether it has side
	// effects (Tentative). The program may change its state, but not its code, after the call. steady then reports
	// whether the pass has no side effects in any state. A nil steady counts as false.
	Custom(n *fxgraph.Node, of py.Object, run func() error, steady func() (bool, error)) error
	// GiveSizes records the sizes, dtype and device of a node's result, which is a tensor.
	GiveSizes(n *fxgraph.Node, sizes ResultSizes)
	// Body captures a function passed to an operation as a graph of its own. samples makes the tensors that represent
	// the function's arguments. run calls the function with these tensors and returns the tensors among its results.
	// If accepts.Fresh is set and the results share memory with one another or with an outer tensor, the graph breaks.
	Body(tx Translator, accepts BodyRules, samples, run func() ([]VariableTracker, error)) (*Body, error)
	// InBody reports whether a function given to an operation is being captured.
	InBody() bool
	// InForeignBody reports whether a function that may contain foreign operations is being captured.
	InForeignBody() bool
	// GiveForeign records the known properties of a foreign operation's result, which must be a tensor.
	GiveForeign(n *fxgraph.Node, like ForeignResult)
	// ForeignLike records that a foreign operation's result has the shape, dtype and device of another one.
	ForeignLike(n, like *fxgraph.Node)
	// GradFlagMayDiffer reports whether t's requires_grad may differ from `requires`, its value without in-place
	// operations on other tensors. Such an operation may change the flag if one of the two tensors is a view of the
	// other.
	GradFlagMayDiffer(t *TensorVariable, requires bool) (bool, error)
	// IsOwn reports whether the piece (the code between two graph breaks) has made t's storage. It returns false if
	// this is unknown.
	IsOwn(t *TensorVariable) bool
	// HidesChange reports whether an in-place change of t must not be in this graph, because autograd would see the
	// change differently than in eager mode. Otherwise it records the change.
	HidesChange(tx Translator, t *TensorVariable) (bool, error)
	// CallModule returns the result of `call`, which runs the code of a module passed to the frame. If an equal module
	// was called in the same way before, CallModule does not run `call`. It returns the earlier call's result, with
	// this module's tensors.
	CallModule(tx Translator, module *ObjectVariable, args []VariableTracker, kwargs []Kw,
		call func() (VariableTracker, error)) (VariableTracker, error)
	// OwnMemory reports whether no two of these tensors share memory.
	OwnMemory(vs []VariableTracker) (bool, error)
	// MaySeeEffect records that later operations may see the last effect, because it may change memory that a tensor
	// shares.
	MaySeeEffect()
	// ReadsTensors records that the last effect reads tensor data. Later operations that change a tensor must run after
	// it.
	ReadsTensors()
	// ChangesTensors reports whether an operation captured so far changes a tensor in place.
	ChangesTensors() bool
	// Step returns the current step of the outermost frame.
	Step() int
	// SwitchState calls a torch function that switches a mode of this thread, while translating and in the graph.
	SwitchState(tx Translator, fn py.Object, name string, args []VariableTracker) (VariableTracker, error)
	// EntersState prepares for entering a mode that is kept in an object. The `with` statement that enters the mode
	// must also leave it.
	EntersState() error
	// PythonOp adds a Python operation (see python/godynamo/_backends/python_ops.py) to the graph in program order. It
	// returns an error if the option `python_ops` is off, or if the operation cannot be in a graph.
	PythonOp(tx Translator, op string, args []VariableTracker, kwargs []Kw) (*OpaqueVariable, error)
	// ObjectNode returns the node that represents a real object, or an object that the program made, in a graph with
	// Python operations.
	ObjectNode(tx Translator, v VariableTracker) (*OpaqueVariable, error)
	// ObjectInput returns the graph input for an object that was read from the frame.
	ObjectInput(v VariableTracker) (*fxgraph.Node, error)
	// ObjectOperand returns an operand of a foreign operation: the real object of any value, made before the operation
	// if the program makes it.
	ObjectOperand(tx Translator, v VariableTracker) (*OpaqueVariable, error)
	// CallForeign adds a foreign operation (fxgraph.Node.Foreign): a call of a function, or of a method if fn is zero.
	CallForeign(tx Translator, fn py.Object, name string, args []VariableTracker, kwargs []Kw) (*fxgraph.Node, error)
	// CallNumpy adds a foreign operation that calls numpy. A whole graph that runs as it is captured takes it as well.
	CallNumpy(tx Translator, fn py.Object, name string, args []VariableTracker, kwargs []Kw) (*fxgraph.Node, error)
	// ForeignRule names the rule for what the result of a foreign operation looks like
	// (python/godynamo/_translator/foreign.py).
	ForeignRule(n *fxgraph.Node, rule string)
	// ForeignKind returns the kind of a foreign operation's result: "plain" for a torch.Tensor of no subclass, or a
	// kind of python/godynamo/_translator/foreign.classes_of.
	ForeignKind(n *fxgraph.Node) string
	// ArrayInput returns the graph input for an array that was passed to the frame.
	ArrayInput(a *ArrayVariable) *fxgraph.Node
	// CallRepeatable adds a foreign operation that may run again: the second time, it changes nothing.
	CallRepeatable(tx Translator, fn py.Object, name string, args []VariableTracker) error
	// Differentiates follows the gradients of a backward pass from the roots. If the pass may run code of the program
	// that has side effects, why names the operation that has brought it in.
	Differentiates(roots []*fxgraph.Node) (d Differentiated, why string, err error)
	// IsLeaf returns is_leaf of a computed tensor. It makes no size a constant.
	IsLeaf(t *TensorVariable) (bool, error)
	// IsContiguous reports whether a computed tensor is contiguous in this call. It makes no size a constant.
	IsContiguous(t *TensorVariable) (bool, error)
	// CallLeaving adds a foreign operation. If its result is None, the frames go on in CPython, after the current call
	// or at the current instruction. It returns a graph break if they cannot.
	CallLeaving(tx Translator, fn py.Object, name string, args []VariableTracker, to Leaving) (*fxgraph.Node, error)
	// Later sets the operands of the node when all operations are known.
	Later(n *fxgraph.Node, operands func() []fxgraph.Arg)
	// Declare records what the result of an operation looks like that no rule and no FakeTensor can compute.
	Declare(n *fxgraph.Node, d Declared)
	// NeedField adds a field of gd_tensor_spec to the guard on a graph input. For a computed tensor, it adds the
	// fields on which the tensor depends to the guards on all inputs.
	NeedField(v *TensorVariable, field uint16)
}

// Differentiated is what is known about a backward pass.
type Differentiated struct {
	Inputs   []*TensorVariable        // the tensors among the graph's inputs
	Reached  map[*fxgraph.Node]bool   // the nodes that the gradient probably reaches
	Sparse   map[*fxgraph.Node]bool   // the reached nodes whose gradient is probably a sparse tensor
	Switched map[*TensorVariable]bool // requires_grad of the inputs whose flag the program has switched
}

// Leaving is how the frames go on in CPython after a call: with the result of Node, or with None if Node is nil. Result
// is a new tracker of the call's result, which the call must return. Why names the call in reports. If Place is
// AtInstruction, the first frame goes on at its instruction, and Result is the value on top of the stack there.
type Leaving struct {
	Result VariableTracker
	Node   *fxgraph.Node
	Why    string
	Place  LeavingPlace
}

// LeavingPlace is where the first frame goes on.
type LeavingPlace byte

// The places: after the call, and at the instruction.
const (
	AfterCall LeavingPlace = iota
	AtInstruction
)

// Declared is what the result of an operation looks like: a copy of Like's tensor with this Dtype, or a view of it if
// Dtype is None, or its gradient. If Like is nil, it is a tensor like Sample or one with these Looks
// (python/godynamo/_called/fsdp.py): a tensor that operations have computed, or a parameter. Of is the call of
// torch.autograd.grad that has returned the gradient. With Batch, the gradient has one more dimension, the first one of
// this tensor. History has the roots of a pass that has recorded the gradient's own history. A gradient that is Sparse
// has one sparse dimension, the first one.
type Declared struct {
	Like, Of, Batch      *fxgraph.Node
	Dtype, Looks, Sample py.Object
	Gradient, Computed   bool
	Sparse               bool
	History              []*fxgraph.Node
}

// Translator is the part of InstructionTranslator that trackers use.
type Translator interface {
	Scope() *py.Scope
	Output() Output
	World() *World
	// Build returns the tracker of an object that is read through src. The tracker is lazy if the object's kind
	// permits.
	Build(obj py.Object, src guards.Source) VariableTracker
	// Inline translates a Python function in a child translator that shares the output graph.
	Inline(fn *FunctionVariable, args []VariableTracker, kwargs []Kw) (VariableTracker, error)
	// FunctionName returns the name of the current frame's function.
	FunctionName() string
	// Globals returns the current frame's globals dict.
	Globals() py.Object
	// GlobalSource returns the source of a name in the dict that Globals returns.
	GlobalSource(name string) guards.Source
	// FrameLocals returns the current frame's bound variables in the order of the frame's f_locals. It returns false
	// if the contents of that dict are unknown.
	FrameLocals() ([]Kw, bool, error)
	// StoredInto reports whether the program has stored a global variable into this dict.
	StoredInto(globals py.Object) bool
	// SuperArgs returns the value of the frame's __class__ cell and its first argument, for super().
	SuperArgs() (cls, self VariableTracker, err error)
	// Handled returns the exception that the program is handling, or nil if no frame of this translation handles one.
	Handled() VariableTracker
	// Place returns the place in the user's code at which a frame is: the current frame for depth 1, its caller for
	// depth 2, and so on. It returns false if that frame is not part of the translation.
	Place(depth int) (Place, bool)
	// InUse reports whether a running frame holds the object in a variable or on its stack.
	InUse(obj py.Object) bool
	// InsideTry reports whether an exception raised here would be visible to an active frame: the frame has a handler
	// for it, or is handling an exception that would become its context.
	InsideTry() bool
	// Catches reports whether a handler of the program would catch an exception raised here. Unlike InsideTry, it does
	// not count managers that only restore torch's modes.
	Catches() bool
	// BeginRegion begins an error_on_graph_break region. up is 0 for the current frame, 1 for its caller, and so on.
	// If errors is true, a graph break in the region is an error.
	BeginRegion(up int, errors bool)
	// EndRegion ends the innermost region of the frame given by `up`. It does nothing if the region began before a
	// graph break, since this translation has no record of that region.
	EndRegion(up int)
	// Snapshot returns a description of the frames, the graph and the guards. It reads no values.
	// _translator/comptime.call takes the description as its argument `picture`.
	Snapshot() (py.Object, error)
}

func unsupported(code exc.Code, format string, args ...any) error {
	return exc.Break(code, format, args...)
}

// Describe returns the text that messages print for a tracker.
func Describe(tx Translator, v VariableTracker) string {
	if v == nil {
		return "NULL"
	}
	if c, ok := enumMember(tx, v); ok { // the member's __repr__ may be user code
		return "a member of " + py.TypeName(c.Value.Type())
	}
	if c, ok := AsConstant(tx, v); ok {
		text := tx.Scope().Repr(c)
		if len(text) > 60 {
			text = text[:57] + "..."
		}
		return text
	}
	if v.Source() != nil {
		return v.Kind() + " " + v.Source().Name()
	}
	return v.Kind()
}
