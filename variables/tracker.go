// Package variables holds what is known about a value while a frame is translated: one VariableTracker per value, by
// family.
//
// A tracker has the source of its value (a guards.Source, if it was read from the frame), the guards it depends on, and
// its operations. The operations of a kind are optional interfaces (Caller, AttrGetter, Sequence, ...); GetAttr, Call,
// Binary and the other functions of this package use them and return Unsupported if there is none. CPython itself
// computes on the real objects whatever is wholly known.
//
// Translating has no side effects. The program's changes are recorded as effects at their places among the graph's
// operations (Output.Effect). A value that leaves the frame is materialized once, and later changes to it are written
// through.
package variables

import (
	"reflect"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// VariableTracker is a value of the program while translating. Trackers of mutable values are compared by identity: one
// object, one tracker.
type VariableTracker interface {
	// Source is where the value was read from, nil if the program made it.
	Source() guards.Source
	// Guards are the guards the value rests on.
	Guards() guards.Set
	// Kind names the Go type, as reasons print it.
	Kind() string
	base() *Base
}

// Base carries what every tracker has.
type Base struct {
	Src  guards.Source
	set  guards.Set
	slot *Slot // where the materialized value sits, nil as long as it is not
	// mutated marks a value read from the frame that the program changed: it must not alias others.
	mutated bool
	// outside is what the value is to a graph with Python calls, once one of them may have changed it.
	outside *OpaqueVariable
	// through is the builtin type whose methods effects call, for the contents of an instance of a subclass of it.
	through py.Object
	holder  *ObjectVariable // that instance
	above   int             // modules being captured that it holds, see Above
}

// Source implements VariableTracker.
func (b *Base) Source() guards.Source { return b.Src }

// Guards implements VariableTracker.
func (b *Base) Guards() guards.Set { return b.set }
func (b *Base) base() *Base        { return b }

// Slot names a local of the transformed function that holds a value once its event has run.
type Slot struct{ Index int }

// Materialized reports whether a real object exists for v: it came from the frame, or has been built.
func Materialized(v VariableTracker) bool {
	b := v.base()
	return b.Src != nil || b.slot != nil
}

// SlotOf is the slot of a materialized value, or nil.
func SlotOf(v VariableTracker) *Slot { return v.base().slot }

// Holder is the instance whose contents v is, or nil.
func Holder(v VariableTracker) *ObjectVariable { return v.base().holder }

// SetSlot records where v was materialized.
func SetSlot(v VariableTracker, s *Slot) { v.base().slot = s }

// Mutated reports whether a value of the frame was changed.
func Mutated(v VariableTracker) bool { return v.base().mutated }

// MakeGuard builds a guard on v's source: Guard(source.name(), source.guard_source(), fn). nil source: no guard, false.
func MakeGuard(v VariableTracker, build func(guards.Source) guards.Guard) (guards.Guard, bool) {
	if v.Source() == nil {
		return guards.Guard{}, false
	}
	return build(v.Source()), true
}

// ReplaceGuards returns a copy of v with exactly these guards. The copy is another object to the program's identity:
// only for trackers of immutable values, and for those nothing else has seen yet.
func ReplaceGuards(v VariableTracker, set guards.Set) VariableTracker {
	old := reflect.ValueOf(v).Elem()
	copied := reflect.New(old.Type())
	copied.Elem().Set(old)
	c := copied.Interface().(VariableTracker)
	c.base().set = set
	return c
}

// AddGuards returns a copy of v with the union of its guards and set.
func AddGuards(v VariableTracker, set guards.Set) VariableTracker {
	return ReplaceGuards(v, v.Guards().Union(set))
}

// AddGuard returns a copy of v with one more guard.
func AddGuard(v VariableTracker, g guards.Guard) VariableTracker {
	return ReplaceGuards(v, v.Guards().Add(g))
}

// Propagate unions the guards of all given trackers, recursing into containers.
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

// Container is a tracker with trackers inside.
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
	// MethodCaller handles method calls itself, before the attribute is looked up.
	MethodCaller interface {
		CallMethod(tx Translator, name string, args []VariableTracker, kwargs []Kw) (VariableTracker, error)
	}
	// AttrGetter reads attributes.
	AttrGetter interface {
		GetAttr(tx Translator, name string) (VariableTracker, error)
	}
	// AttrSetter stores (value nil: deletes) attributes.
	AttrSetter interface {
		SetAttr(tx Translator, name string, value VariableTracker) error
	}
	// ItemGetter is subscription.
	ItemGetter interface {
		GetItem(tx Translator, key VariableTracker) (VariableTracker, error)
	}
	// ItemSetter stores (value nil: deletes) items.
	ItemSetter interface {
		SetItem(tx Translator, key, value VariableTracker) error
	}
	// Sequence can be unpacked whole: its items are known.
	Sequence interface {
		Items(tx Translator) ([]VariableTracker, error)
	}
	// Lener knows its length.
	Lener interface {
		Len(tx Translator) (int, error)
	}
	// Iterator is advanced by next().
	Iterator interface {
		Next(tx Translator) (v VariableTracker, ok bool, err error)
	}
	// Returner is an Iterator that ends with a value: StopIteration's.
	Returner interface {
		StopValue() VariableTracker
	}
	// Constant is known wholly: CPython may compute with it.
	Constant interface {
		// AsConstant returns the real object, false when some part is not known.
		AsConstant(tx Translator) (py.Object, bool)
	}
	// Proxy can stand in a graph.
	Proxy interface {
		AsProxy(tx Translator) (fxgraph.Arg, error)
	}
	// Typed knows its Python type.
	Typed interface {
		PythonType(tx Translator) (py.Object, error)
	}
	// Truther knows its truth value.
	Truther interface {
		Truth(tx Translator) (bool, error)
	}
	// Reconstructer emits instructions that leave the value on the stack.
	Reconstructer interface {
		Reconstruct(e Emitter) error
	}
	// Settler gets ready to be made real: called before its children are.
	Settler interface {
		Settle(tx Translator) error
	}
	// Snapshotter copies the state that later changes would alter.
	Snapshotter interface {
		Snapshot() VariableTracker
	}
)

// Emitter writes instructions of the transformed function. Values are loaded only once they are materialized (freeze
// first).
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

// Output is the OutputGraph as trackers see it.
type Output interface {
	// AddGuards installs guards of the frame.
	AddGuards(gs ...guards.Guard)
	// MadeHere recognizes values that the frame itself made before the graph break, in a resumed frame.
	MadeHere(src guards.Source) bool
	// LetGoOf reports whether the program has released something that was passed to it, which may have ended.
	LetGoOf() bool
	// Until has f called at the start of each further attempt at the frame, for guards that a graph break depends on.
	Until(f func(tx Translator))
	// Reads notes that the program read a place, whatever becomes of the value: that it can be read is guarded. Build
	// does so for attributes, globals and cells.
	Reads(src guards.Source)
	// Const puts an object into the constant pool.
	Const(o py.Object) guards.Const
	// CallFunction adds a call_function node.
	CallFunction(tx Translator, target py.Object, name string, args []VariableTracker,
		kwargs []Kw) (*fxgraph.Node, error)
	// CallMethod adds a call_method node; args[0] is the object.
	CallMethod(tx Translator, name string, args []VariableTracker, kwargs []Kw) (*fxgraph.Node, error)
	// TensorInput makes (or finds) the graph input for a tensor read from the frame.
	TensorInput(tx Translator, obj py.Object, src guards.Source) (*TensorVariable, error)
	// Freeze makes v loadable at this point of the program: mutable values without a real object are materialized.
	Freeze(tx Translator, v VariableTracker) error
	// Effect records a change at its place among the operations; values are frozen first.
	Effect(tx Translator, values []VariableTracker, emit func(e Emitter) error) error
	// CallAside records a call, at its place among the operations, that the program does not see and that may run
	// again; its result is dropped.
	CallAside(tx Translator, values []VariableTracker, emit func(e Emitter) error) error
	// Meta computes a tensor's metadata: from the example for inputs, by FakeTensor else.
	Meta(tx Translator, v *TensorVariable) (*TensorMeta, error)
	// Foresee predicts a value that torch's own code reads from a tensor ("bool", "int", "float", "item", "index"), if
	// it follows from a tensor of the frame and a guard can compute it again; false if the graph must break.
	Foresee(tx Translator, t *TensorVariable, ask string) (py.Object, bool, error)
	// InputOf is the frame's tensor of a placeholder; nil for other nodes.
	InputOf(n *fxgraph.Node) *TensorVariable
	// Sizes are a tensor's shape, dtype, device and layout, and nothing else, if shape rules determine them; else
	// false. What they depend on is guarded.
	Sizes(v *TensorVariable) (*TensorMeta, bool)
	// Sample is a tensor with this one's metadata: the frame's own, or a fake one.
	Sample(t *TensorVariable) (py.Object, error)
	// NodeType is the type of a node's result, by FakeTensor.
	NodeType(node *fxgraph.Node) (py.Object, error)
	// NodeValue evaluates a node's non-tensor result (int, bool, list length) by FakeTensor: a real object or the
	// number of tensors.
	NodeValue(tx Translator, node *fxgraph.Node) (py.Object, error)
	// NodeResult is _translator/fake.Session.result of a node that calls a function of the user.
	NodeResult(tx Translator, node *fxgraph.Node) (py.Object, error)
	// Compute records code that computes a plain value at run time, before the graph if that is one call. operands:
	// constants, values of the frame, and other computed values. draws: it draws from the random numbers of the first
	// operand.
	Compute(tx Translator, operands []VariableTracker, draws bool, emit func(e Emitter) error) (*Slot, error)
	// ComputedInput is the graph input for a tensor that Compute computes; example: one like it.
	ComputedInput(slot *Slot, example py.Object) *TensorVariable
	// OfClass says that a node's result, a plain tensor or a sequence of some in a graph that is one call, leaves it as
	// a tensor of class.
	OfClass(node *fxgraph.Node, class py.Object)
	// WholeGraph reports whether the graph is one call, of a backend's.
	WholeGraph() bool
	// TakesApart reports whether the backend decomposes operators. Call it only where the answer matters: the frame is
	// translated again if the backend turns out to do so.
	TakesApart() bool
	// Tentative runs a translation for its result and removes what it captured from the graph; seen: not everything
	// could be removed.
	Tentative(run func() error) (seen bool, err error)
	// Body captures a function that an operation takes as its own graph: samples makes the tensors that represent its
	// arguments, run calls it on them and returns the tensors among its results. fresh: these share no memory with
	// others.
	Body(tx Translator, fresh bool, samples, run func() ([]VariableTracker, error)) (*Body, error)
	// GradFlagMayDiffer reports whether an operation in place on another tensor may have changed whether t requires
	// gradients: t may be a view of that, or that a view of t. requires: what it is known to be without.
	GradFlagMayDiffer(t *TensorVariable, requires bool) (bool, error)
	// HidesChange reports whether a change in place of t must not be in this graph, since autograd would see it in
	// another way than in eager mode. It notes the change otherwise.
	HidesChange(tx Translator, t *TensorVariable) (bool, error)
	// CallModule is the result of call, which runs the code of a module of the frame; or, if an equal module was called
	// in the same way before, that call's result with this module's tensors.
	CallModule(tx Translator, module *ObjectVariable, args []VariableTracker, kwargs []Kw,
		call func() (VariableTracker, error)) (VariableTracker, error)
	// OwnMemory reports whether no two of these tensors share memory.
	OwnMemory(vs []VariableTracker) (bool, error)
	// MaySeeEffect notes that operations may see the effect just recorded: a tensor may share the memory it changes.
	MaySeeEffect()
	// ReadsTensors marks the effect just recorded as one that reads tensor data: no later operation that changes a
	// tensor runs before it.
	ReadsTensors()
	// ChangesTensors reports whether an operation so far changes a tensor in place.
	ChangesTensors() bool
	// Step is the step of the outermost frame that is running.
	Step() int
	// SwitchState calls a function of torch that switches a mode of this thread, now and in the graph.
	SwitchState(tx Translator, fn py.Object, name string, args []VariableTracker) (VariableTracker, error)
	// EntersState prepares for entering a mode that an object keeps, which must be left by the with statement that
	// enters it.
	EntersState() error
	// PythonOp adds a Python operation (see python/godynamo/_backends/python_ops.py) to the graph, at its place in
	// program order. An error where Options.PythonOps is off, or where it cannot stand in a graph.
	PythonOp(tx Translator, op string, args []VariableTracker, kwargs []Kw) (*OpaqueVariable, error)
	// ObjectNode is the node that represents a real object: of the frame, or made by the program.
	ObjectNode(tx Translator, v VariableTracker) (*OpaqueVariable, error)
	// NeedField widens the guard on a graph input to a field of gd_tensor_spec.
	NeedField(v *TensorVariable, field uint16)
}

// Translator is the InstructionTranslator as trackers see it.
type Translator interface {
	Scope() *py.Scope
	Output() Output
	World() *World
	// Build wraps an object read through src, lazily where its kind allows it.
	Build(obj py.Object, src guards.Source) VariableTracker
	// Inline runs a Python function in a child translator that shares the output graph.
	Inline(fn *FunctionVariable, args []VariableTracker, kwargs []Kw) (VariableTracker, error)
	// Globals is the current frame's globals dict.
	Globals() py.Object
	// GlobalSource is where a name of these globals is read from.
	GlobalSource(name string) guards.Source
	// FrameLocals lists the current frame's bound variables in the order of its f_locals; false where its dict is not
	// one that can be known.
	FrameLocals() ([]Kw, bool, error)
	// StoredInto reports whether the program has stored globals into this dict.
	StoredInto(globals py.Object) bool
	// ClassCell returns the frame's __class__ cell value and first argument, for super().
	SuperArgs() (cls, self VariableTracker, err error)
	// Handled is the exception that is being handled; nil where none is by the frames of this translation.
	Handled() VariableTracker
	// Place is the program's frame, depth 1, or its caller's, 2, ...; false if the translation does not have that
	// frame.
	Place(depth int) (Place, bool)
	// InUse reports whether a running frame has this object as a variable or on its stack.
	InUse(obj py.Object) bool
	// InsideTry reports whether an exception raised here would meet a handler of an active frame.
	InsideTry() bool
	// BeginRegion begins a region of the frame that is up levels further out, where a graph break is an error, or is
	// none.
	BeginRegion(up int, errors bool)
	// EndRegion ends the region of that frame that began last; one that began before a graph break is not known.
	EndRegion(up int)
	// Snapshot is what is known here about the frames, the graph and the guards, in the form of
	// _translator/comptime.call; it reads no values.
	Snapshot() (py.Object, error)
}

func unsupported(code exc.Code, format string, args ...any) error {
	return exc.Break(code, format, args...)
}

// Describe is how reasons print a tracker.
func Describe(tx Translator, v VariableTracker) string {
	if v == nil {
		return "NULL"
	}
	if c, ok := enumMember(tx, v); ok { // its __repr__ may be the user's
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
