// Package variables models the values of a frame that is being translated. Each value has one VariableTracker,
// whose type depends on the kind of value.
//
// A tracker has the source of its value (a guards.Source, if it was read from the frame), the guards it depends on,
// and its operations. The operations of a kind are optional interfaces (Caller, AttrGetter, Sequence, ...).
// GetAttr, Call, Binary and the other functions of this package use them, and return Unsupported if an interface is
// missing. Operations on wholly known values are computed by CPython on the real objects.
//
// Translating has no side effects. The program's changes are recorded as effects in program order, among the
// graph's operations (Output.Effect). A value that leaves the frame is materialized once, and later changes to it
// are written through.
package variables

import (
	"reflect"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// VariableTracker represents a value of the program while translating. Trackers of mutable values are compared by
// identity: each object has one tracker.
type VariableTracker interface {
	// Source returns the path from which the value was read, or nil if the program made it.
	Source() guards.Source
	// Guards returns the guards that the value depends on.
	Guards() guards.Set
	// Kind returns the name of the kind, as messages print it: that of Dynamo's tracker class, if there is one.
	Kind() string
	base() *Base
}

// Base holds the fields that every tracker has.
type Base struct {
	Src  guards.Source
	set  guards.Set
	slot *Slot // of the materialized value; nil until then
	// mutated marks a value of the frame that the program changed. It must not alias other values.
	mutated bool
	// outside represents the value in a graph with Python calls, once one of them may have changed it.
	outside *OpaqueVariable
	// For the contents of a builtin subclass's instance, through is the builtin type whose methods the effects
	// call.
	through py.Object
	holder  *ObjectVariable // that instance
	above   int             // number of modules being captured that it holds, see Above
}

// Source implements VariableTracker.
func (b *Base) Source() guards.Source { return b.Src }

// Guards implements VariableTracker.
func (b *Base) Guards() guards.Set { return b.set }
func (b *Base) base() *Base        { return b }

// Slot is a local of the transformed function that holds a value from its materialization on.
type Slot struct{ Index int }

// Materialized reports whether a real object exists for v: it came from the frame, or has been built.
func Materialized(v VariableTracker) bool {
	b := v.base()
	return b.Src != nil || b.slot != nil
}

// SlotOf returns the slot of a materialized value, or nil.
func SlotOf(v VariableTracker) *Slot { return v.base().slot }

// Holder returns the instance whose contents v is, or nil.
func Holder(v VariableTracker) *ObjectVariable { return v.base().holder }

// SetSlot records the slot of a materialized value.
func SetSlot(v VariableTracker, s *Slot) { v.base().slot = s }

// Mutated reports whether the program changed a value of the frame.
func Mutated(v VariableTracker) bool { return v.base().mutated }

// MakeGuard builds a guard on v's source. It returns false if v has no source.
func MakeGuard(v VariableTracker, build func(guards.Source) guards.Guard) (guards.Guard, bool) {
	if v.Source() == nil {
		return guards.Guard{}, false
	}
	return build(v.Source()), true
}

// ReplaceGuards returns a copy of v with exactly these guards. The copy has another identity in the program, so
// ReplaceGuards is only for trackers of immutable values and for trackers that no other code has seen.
func ReplaceGuards(v VariableTracker, set guards.Set) VariableTracker {
	old := reflect.ValueOf(v).Elem()
	copied := reflect.New(old.Type())
	copied.Elem().Set(old)
	c := copied.Interface().(VariableTracker)
	c.base().set = set
	return c
}

// AddGuards returns a copy of v with the guards in set added.
func AddGuards(v VariableTracker, set guards.Set) VariableTracker {
	return ReplaceGuards(v, v.Guards().Union(set))
}

// AddGuard returns a copy of v with one more guard.
func AddGuard(v VariableTracker, g guards.Guard) VariableTracker {
	return ReplaceGuards(v, v.Guards().Add(g))
}

// Propagate returns the union of the guards of all given trackers and of their children.
func Propagate(vars ...VariableTracker) guards.Set {
	return propagate(guards.Set{}, vars, map[VariableTracker]bool{})
}

func propagate(out guards.Set, vars []VariableTracker, seen map[VariableTracker]bool) guards.Set {
	for _, v := range vars {
		if v == nil {
			continue
		}
		out = out.Union(v.Guards())
		if c, ok := v.(Container); ok && !seen[v] {
			seen[v] = true
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
	// Caller can be called.
	Caller interface {
		Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error)
	}
	// MethodCaller handles method calls itself, without an attribute lookup.
	MethodCaller interface {
		CallMethod(tx Translator, name string, args []VariableTracker, kwargs []Kw) (VariableTracker, error)
	}
	// AttrGetter reads attributes.
	AttrGetter interface {
		GetAttr(tx Translator, name string) (VariableTracker, error)
	}
	// AttrSetter stores attributes, or deletes them if value is nil.
	AttrSetter interface {
		SetAttr(tx Translator, name string, value VariableTracker) error
	}
	// ItemGetter reads items: obj[key].
	ItemGetter interface {
		GetItem(tx Translator, key VariableTracker) (VariableTracker, error)
	}
	// ItemSetter stores items, or deletes them if value is nil.
	ItemSetter interface {
		SetItem(tx Translator, key, value VariableTracker) error
	}
	// Sequence has known items, so it can be unpacked.
	Sequence interface {
		Items(tx Translator) ([]VariableTracker, error)
	}
	// Lener has a known length.
	Lener interface {
		Len(tx Translator) (int, error)
	}
	// Iterator is advanced by next().
	Iterator interface {
		Next(tx Translator) (v VariableTracker, ok bool, err error)
	}
	// Returner is an Iterator whose StopIteration has a value.
	Returner interface {
		StopValue() VariableTracker
	}
	// Constant may be wholly known. CPython can then compute with it.
	Constant interface {
		// AsConstant returns the real object, or false if a part is unknown.
		AsConstant(tx Translator) (py.Object, bool)
	}
	// Proxy can be an operand of a graph.
	Proxy interface {
		AsProxy(tx Translator) (fxgraph.Arg, error)
	}
	// Typed has a known Python type.
	Typed interface {
		PythonType(tx Translator) (py.Object, error)
	}
	// Truther has a known truth value.
	Truther interface {
		Truth(tx Translator) (bool, error)
	}
	// Reconstructer emits instructions that leave the value on the stack.
	Reconstructer interface {
		Reconstruct(e Emitter) error
	}
	// Settler prepares for being made real. Settle is called before the children are made real.
	Settler interface {
		Settle(tx Translator) error
	}
	// Snapshotter copies the state that later changes would modify.
	Snapshotter interface {
		Snapshot() VariableTracker
	}
)

// Emitter writes instructions of the transformed function. A value must be materialized before it is loaded: freeze
// it first.
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

// Output is the interface of OutputGraph to trackers.
type Output interface {
	// AddGuards adds guards to the entry.
	AddGuards(gs ...guards.Guard)
	// MadeHere reports whether the frame, if it is a resumed one, may itself have made the value at src before the
	// graph break.
	MadeHere(src guards.Source) bool
	// LetGoOf reports whether the program has released an object that was passed to it. The object may be gone.
	LetGoOf() bool
	// Until registers f to be called at the start of each further attempt to translate the frame, to add guards
	// that a graph break depends on.
	Until(f func(tx Translator))
	// Reads records that the program read a source, whether or not it uses the value, so that a guard checks that
	// it can be read. Build does so for attributes, globals and cells.
	Reads(src guards.Source)
	// Const adds an object to the constant pool.
	Const(o py.Object) guards.Const
	// CallFunction adds a call_function node.
	CallFunction(tx Translator, target py.Object, name string, args []VariableTracker,
		kwargs []Kw) (*fxgraph.Node, error)
	// CallMethod adds a call_method node; args[0] is the object.
	CallMethod(tx Translator, name string, args []VariableTracker, kwargs []Kw) (*fxgraph.Node, error)
	// TensorInput returns the graph input for a tensor read from the frame. It adds the input if there is none yet.
	TensorInput(tx Translator, obj py.Object, src guards.Source) (*TensorVariable, error)
	// Freeze makes v loadable at this point of the program. Mutable values without a real object are materialized.
	Freeze(tx Translator, v VariableTracker) error
	// Effect records a change in program order, among the operations. The values are frozen first.
	Effect(tx Translator, values []VariableTracker, emit func(e Emitter) error) error
	// CallAside records a call in program order that the program does not see and that may be repeated. Its result
	// is dropped.
	CallAside(tx Translator, values []VariableTracker, emit func(e Emitter) error) error
	// Meta computes a tensor's metadata: from the example for inputs, otherwise with FakeTensor.
	Meta(tx Translator, v *TensorVariable) (*TensorMeta, error)
	// Foresee precomputes a value that torch's own code reads from a tensor ("bool", "int", "float", "item",
	// "index"), if it follows from a tensor of the frame and a guard can compute it again. It returns false if the
	// graph must break.
	Foresee(tx Translator, t *TensorVariable, ask string) (py.Object, bool, error)
	// SameTensor reports whether two nodes have one tensor object as their result, by FakeTensor: x.contiguous() may
	// return x. The metadata of all inputs are guarded.
	SameTensor(a, b *fxgraph.Node) (bool, error)
	// InputOf returns the frame's tensor for a placeholder, or nil for other nodes.
	InputOf(n *fxgraph.Node) *TensorVariable
	// Sizes returns metadata with a tensor's shape, dtype, device and layout alone, if shape rules determine them,
	// else false. It adds no guard: the caller requests one with NeedField.
	Sizes(v *TensorVariable) (*TensorMeta, bool)
	// Sample returns a tensor with this one's metadata: the frame's own, or a fake one.
	Sample(t *TensorVariable) (py.Object, error)
	// NodeType returns the type of a node's result, computed with FakeTensor.
	NodeType(node *fxgraph.Node) (py.Object, error)
	// NodeValue evaluates a node's non-tensor result (int, bool, list length) with FakeTensor. It returns the real
	// object, or the number of tensors.
	NodeValue(tx Translator, node *fxgraph.Node) (py.Object, error)
	// NodeResult returns _translator/fake.Session.result of a node that calls a function of the user.
	NodeResult(tx Translator, node *fxgraph.Node) (py.Object, error)
	// Compute records code that computes a plain value at run time. If the graph is one call, the code runs before
	// it. operands are constants, values of the frame and other computed values. If draws is true, the code draws
	// random numbers from the first operand.
	Compute(tx Translator, operands []VariableTracker, draws bool, emit func(e Emitter) error) (*Slot, error)
	// ComputedInput returns the graph input for a tensor that Compute computes. example is a tensor like it.
	ComputedInput(slot *Slot, example py.Object) *TensorVariable
	// OfClass records that a node's result must leave the graph as a tensor of class, or as a sequence of such
	// tensors. In a graph that is one call, the node itself yields plain tensors.
	OfClass(node *fxgraph.Node, class py.Object)
	// WholeGraph reports whether the graph is one call of a backend's function.
	WholeGraph() bool
	// TakesApart reports whether the backend decomposes operators. Call it only if the answer matters: the frame is
	// translated again if the backend turns out to do so.
	TakesApart() bool
	// Tentative runs a translation for its guards and removes the operations that it captured from the graph. seen
	// is true if the translation cannot be undone, or has added an input to a whole graph.
	Tentative(run func() error) (seen bool, err error)
	// Body captures a function given to an operation as a graph of its own. samples makes the tensors that
	// represent its arguments. run calls the function on them and returns the tensors among its results. If fresh
	// is true, it is a graph break if these share memory with one another or with an outer tensor.
	Body(tx Translator, fresh bool, samples, run func() ([]VariableTracker, error)) (*Body, error)
	// GradFlagMayDiffer reports whether an in-place operation on another tensor may have changed whether t requires
	// gradients, since one of the two may be a view of the other. requires is the flag without such a change.
	GradFlagMayDiffer(t *TensorVariable, requires bool) (bool, error)
	// HidesChange reports whether an in-place change of t must not be in this graph, since autograd would see it
	// differently than in eager mode. Otherwise it records the change.
	HidesChange(tx Translator, t *TensorVariable) (bool, error)
	// CallModule returns the result of call, which runs the code of a module of the frame. If an equal module was
	// called in the same way before, it returns that call's result with this module's tensors instead.
	CallModule(tx Translator, module *ObjectVariable, args []VariableTracker, kwargs []Kw,
		call func() (VariableTracker, error)) (VariableTracker, error)
	// OwnMemory reports whether no two of these tensors share memory.
	OwnMemory(vs []VariableTracker) (bool, error)
	// MaySeeEffect records that operations may see the last effect: a tensor may share the memory that it changes.
	MaySeeEffect()
	// ReadsTensors marks the last effect as one that reads tensor data. Later operations that change a tensor do
	// not run before it.
	ReadsTensors()
	// ChangesTensors reports whether an operation captured so far changes a tensor in place.
	ChangesTensors() bool
	// Step returns the current step of the outermost frame.
	Step() int
	// SwitchState calls a torch function that switches a mode of this thread, now and in the graph.
	SwitchState(tx Translator, fn py.Object, name string, args []VariableTracker) (VariableTracker, error)
	// EntersState prepares for entering a mode that is kept in an object. The with statement that enters the mode
	// must also leave it.
	EntersState() error
	// PythonOp adds a Python operation (see python/godynamo/_backends/python_ops.py) to the graph in program order.
	// It returns an error if Options.PythonOps is off, or if the operation cannot be in a graph.
	PythonOp(tx Translator, op string, args []VariableTracker, kwargs []Kw) (*OpaqueVariable, error)
	// ObjectNode returns the node that represents a real object of the frame, or one that the program made.
	ObjectNode(tx Translator, v VariableTracker) (*OpaqueVariable, error)
	// NeedField adds a field of gd_tensor_spec to the guard on a graph input. For a computed tensor it adds the fields
	// that the result depends on to the guards on all inputs.
	NeedField(v *TensorVariable, field uint16)
}

// Translator is the interface of InstructionTranslator to trackers.
type Translator interface {
	Scope() *py.Scope
	Output() Output
	World() *World
	// Build returns the tracker of an object read through src. It is lazy if its kind permits.
	Build(obj py.Object, src guards.Source) VariableTracker
	// Inline translates a Python function in a child translator that shares the output graph.
	Inline(fn *FunctionVariable, args []VariableTracker, kwargs []Kw) (VariableTracker, error)
	// Globals returns the current frame's globals dict.
	Globals() py.Object
	// GlobalSource returns the source of a name in these globals.
	GlobalSource(name string) guards.Source
	// FrameLocals returns the current frame's bound variables in the order of its f_locals, or false if the
	// contents of that dict are unknown.
	FrameLocals() ([]Kw, bool, error)
	// StoredInto reports whether the program has stored globals into this dict.
	StoredInto(globals py.Object) bool
	// SuperArgs returns the value of the frame's __class__ cell and its first argument, for super().
	SuperArgs() (cls, self VariableTracker, err error)
	// Handled returns the exception being handled, or nil if no frame of this translation handles one.
	Handled() VariableTracker
	// Place returns the current frame for depth 1, its caller for depth 2, and so on. It returns false if the
	// translation does not have that frame.
	Place(depth int) (Place, bool)
	// InUse reports whether a running frame has this object in a variable or on its stack.
	InUse(obj py.Object) bool
	// InsideTry reports whether an active frame has a handler for an exception raised here, or the exception would
	// get a handled one as its context.
	InsideTry() bool
	// BeginRegion begins a region of the frame that is up levels further out. errors selects whether a graph break
	// in the region is an error.
	BeginRegion(up int, errors bool)
	// EndRegion ends the innermost region of that frame. A region that began before a graph break is unknown here.
	EndRegion(up int)
	// Snapshot returns a picture of the frames, the graph and the guards, in the form of _translator/comptime.call.
	// It reads no values.
	Snapshot() (py.Object, error)
}

func unsupported(code exc.Code, format string, args ...any) error {
	return exc.Break(code, format, args...)
}

// Describe returns the text for a tracker in messages.
func Describe(tx Translator, v VariableTracker) string {
	if v == nil {
		return "NULL"
	}
	if c, ok := enumMember(tx, v); ok { // its __repr__ may be user code
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
