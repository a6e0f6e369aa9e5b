package variables

import (
	"slices"
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

//go:generate go run ./gen

// facts are objects of CPython and torch: types, and functions of imported modules. The translator distinguishes kinds
// of values by them. They are read once per process from python/godynamo/_translator/facts.py and live as long as the
// process.
type facts struct {
	factObjects
	found       map[namedIn]py.Object // cached results of named
	methodKinds map[methodCall]result // cached results of methodResult
	fresh       map[resultOf]bool     // cached results of makes
	// foreignConstants has the classes that foreignConstantType has found.
	foreignConstants map[uint64]bool
}

var known *facts // one per process; guarded by the GIL

// World holds the state that a translation has about the objects around it.
type World struct {
	*facts
	Settings
	identity
	dispatching
	classQuestions
	modesAndStates
	writes
	symbolic
	scope         *py.Scope // scope of the translation
	told          map[question]string
	functionKinds map[functionCall]result // results of functionResult, nil until the first
	depth         int                     // nested calls of this package's operations; see Enter
	// standIns caches the results of callables.stand_in.
	standIns map[py.Object]replacement
	sorted   py.Object                // the class of the items being sorted, see sortedClass
	printing map[VariableTracker]bool // objects whose __repr__ is running, see TorchVariable.recursive
	kinds    py.Object                // _translator/alike.Kinds, set at first use
	OnlyHere
	// Kept counts the functions being translated that an operation keeps and calls again later.
	Kept int
	// Transforms names torch.func's transforms that will call the functions being translated.
	Transforms []string
	// Attempts counts the attempts to translate the frame, this one included.
	Attempts int64
}

// OnlyHere says what a translation relies on that may differ in other processes, apart from what guards check.
type OnlyHere struct {
	// Local is the reason why the translation is valid in this process only, or "".
	Local string
	// Seeded is set if the translation is valid only in processes with this one's hash seed.
	Seeded bool
	// Devices is set if the translation depends on which devices the machine has.
	Devices bool
	// Registered has pairs of a class and what it is a subclass of, perhaps because it was registered with an abstract
	// class (abc.ABCMeta.register).
	Registered [][2]py.Object
	// Folded has the functions that were called while translating (assume_constant_result): the function, a tuple of
	// its arguments, and the result.
	Folded [][3]py.Object
}

// folded notes the call of a function marked with assume_constant_result. Another process calls it again.
func (h *OnlyHere) folded(tx Translator, fn py.Object, args []VariableTracker, kwargs []Kw, result VariableTracker) {
	k, known := AsConstant(tx, result)
	given, constant := constants(tx, args)
	if !known || !constant || len(kwargs) > 0 {
		h.Local = "assume_constant_result: the function is called while translating"
		return
	}
	h.Folded = append(h.Folded, [3]py.Object{fn, tx.Scope().Tuple(given...), k})
}

// ordered notes that a translation may depend on the order of a set's items. That order follows from their hashes.
func (h *OnlyHere) ordered(items []py.Object) {
	for _, it := range items[:min(len(items), 1000)] {
		switch it.Kind() {
		case py.Int, py.BoolKind, py.Float, py.Complex:
		case py.Str, py.Bytes, py.Tuple:
			h.Seeded = true
		default:
			h.Local = "the order of a set depends on addresses"
		}
	}
	if len(items) > 1000 {
		h.Local = "a long set"
	}
}

// Settings are the user's options.
type Settings struct {
	// QueueEffects allows print and similar calls to be replayed in program order instead of breaking the graph.
	QueueEffects bool
	// GuardNNModules is config.guard_nn_modules.
	GuardNNModules bool
	// Transparent is set if the program requested no compilation, except for the optimized callables that it calls.
	Transparent bool
	// PythonOps allows Python calls in the graph.
	PythonOps bool
	// Exporting leaves effects out of the transformed function. The result of the translation then has the field
	// Exported.
	Exporting bool
}

// identity maps objects to their trackers.
type identity struct {
	objects map[py.Object]VariableTracker
	// identities has the values that are hashed by identity, with their stand-ins, the objects used as keys.
	identities []*identified
	userHash   map[py.Object]userKey // maps a key object to the instance whose class defines the hash
	nodeClass  map[*fxgraph.Node]py.Object
}

// classQuestions holds the look-ups on classes, and the program's changes to classes.
type classQuestions struct {
	classAttrs map[py.Object]map[string]VariableTracker // stored by the program on classes
	overlooked error                                    // see Overlooked
	looked     map[classLookup]bool                     // see class_guards.go
	enums      []py.Object                              // enum classes whose members were reached
	fixed      map[py.Object]bool                       // whether a class cannot change, see mayChange
	odd        map[py.Object]bool                       // whether a class has a key that is not a str, see opaqueClass
}

// modesAndStates holds torch's modes at the current point of the program.
type modesAndStates struct {
	modes       []enteredMode
	handling    int  // the modes whose handlers are running
	underDevice bool // the default device is a mode entered before the frame ran; see UnderDefaultDevice
	// handlersAside counts the running operations that call only torch.Tensor's __torch_function__.
	handlersAside int
	backwards     []*backwardCall // in the order of the program
	// ownLeaves has the tensors that the graph computes whose gradients the program has read or set, see alone.
	ownLeaves map[*fxgraph.Node]*TensorVariable
	// hooked has the inputs on which the program has registered hooks; registered is set once it has registered one.
	hooked     map[*fxgraph.Node]*leafHooks
	registered bool
	// gathered has the parameters that the program makes, and those that hooks of FSDP2 have returned. fsdpTold has
	// what is known of the hooks by module (torch_fsdp.go).
	gathered []*TensorVariable
	fsdpTold map[py.Object]py.Object
	// Replaced counts the running calls of modules whose tensors are replaced by others (higher/functional_call.go).
	Replaced int
	// optimized counts the running calls of optimized callables.
	optimized int
	drew      bool // the program has drawn random numbers
	// functionDicts are the dicts of existing functions that the program has read or stored into.
	functionDicts []*DictVariable
}

// writes counts and records the program's changes so far.
type writes struct {
	// Writes counts changes of values and effects. Four more counters each count a part of them: Effects counts the
	// effects, Fills counts stores into empty cells that the program made (they free no object), Own counts changes
	// of values that the program made and that no other code has seen, and Constants counts stores of None, bools,
	// numbers and texts in attributes of instances: they change no code that the instance holds.
	Writes, Effects, Fills, Own, Constants int
	// Calls counts Python calls in the graph.
	Calls int
	// Asked counts queries about tensors that the graph computes.
	Asked Asked
	// Casts counts the tensors that Python calls returned. Such a tensor, and any tensor computed from it, may be of a
	// subclass.
	Casts        int
	watched      [][]VariableTracker          // one list per Watch: the values changed since then
	stored       []VariableTracker            // values that the program stored in objects passed to the frame
	tensorStores map[string][]*TensorVariable // maps an attribute's name to the tensors on which the program stored it
	unseen       map[py.Object]*unseen        // lists and deques that the program only appends to
	lookedUp     map[py.Object]*lookedUp      // dicts in which the program only looks up keys
	iterated     []*RealIterator              // those that have read items of a list or dict
	made         []*ClassVariable             // the classes that the frame makes
}

// NewWorld returns the World of a new translation. The first call in a process reads the facts from Python.
func NewWorld(s *py.Scope) (*World, error) {
	if known == nil {
		f, err := loadFacts(s)
		if err != nil {
			return nil, err
		}
		known = f
	}
	return &World{
		facts: known, scope: s, told: map[question]string{}, standIns: map[py.Object]replacement{},
		printing: map[VariableTracker]bool{},
		identity: identity{
			objects: map[py.Object]VariableTracker{}, userHash: map[py.Object]userKey{},
		},
		classQuestions: classQuestions{
			classAttrs: map[py.Object]map[string]VariableTracker{}, looked: map[classLookup]bool{},
			fixed: map[py.Object]bool{}, odd: map[py.Object]bool{},
		},
		writes: writes{unseen: map[py.Object]*unseen{}, lookedUp: map[py.Object]*lookedUp{}},
	}, nil
}

func loadFacts(s *py.Scope) (*facts, error) {
	m, err := s.Import("godynamo._translator.facts")
	if err != nil {
		return nil, err
	}
	d, err := s.CallMethod(m, "facts")
	if err != nil {
		return nil, err
	}
	f := &facts{found: map[namedIn]py.Object{}, methodKinds: map[methodCall]result{}, fresh: map[resultOf]bool{}}
	for name, at := range f.table() {
		v, ok := s.DictGetName(d, name)
		if !ok {
			return nil, &missingFact{name}
		}
		*at = s.Keep(v).Object // never released
	}
	dequeType, setCloneFunction, frozenSetType, advancedFunction = f.DequeType, f.setClone, f.FrozenSetType, f.advanced
	spentFunction, reversedType = f.spent, (&World{facts: f}).Builtin("reversed")
	functionMade, plainGetAttribute = f.functionMade, f.ObjectGetAttribute
	methodType, partialType, objectType, tupleType = f.MethodType, f.PartialType, f.ObjectType, f.TupleType
	return f, nil
}

type missingFact struct{ name string }

func (e *missingFact) Error() string { return "variables: facts.facts() lacks " + e.name }

// maxDepth limits recursion on the program's values: a list may contain itself, and a comparison may call itself. A Go
// stack overflow is fatal, and 2,000 levels use only a small part of the stack.
const maxDepth = 2_000

// Enter begins one more level of recursion on values. At maxDepth it returns an error that breaks the graph. If it
// returns nil, the caller must call Leave at the end of the level.
func (w *World) Enter() error {
	if w.depth >= maxDepth {
		return unsupported(exc.TooLarge, "values nested more than %d deep", maxDepth)
	}
	w.depth++
	return nil
}

// Leave ends a level that Enter began.
func (w *World) Leave() { w.depth-- }

// seen returns the tracker of an object that was already read from another source. It adds a guard that both sources
// still yield the same object. It returns false if the object has no such tracker.
func (w *World) seen(tx Translator, obj py.Object, src guards.Source) (VariableTracker, bool) {
	switch obj.Kind() {
	case py.NoneKind, py.BoolKind, py.Int, py.Float, py.Complex, py.Str, py.Bytes, py.EllipsisKind, py.NotImplemented:
		return nil, false
	}
	v, ok := w.objects[obj]
	if !ok {
		return nil, false
	}
	switch v.(type) {
	case *TorchVariable, *BuiltinVariable, *ClassVariable, *ModuleVariable, *FunctionVariable, *ConstantVariable,
		*RangeVariable,
		*OptimizedVariable:
		return nil, false // guarded by kind and contents, not by identity
	}
	if v.Source() != nil && v.Source().Name() != src.Name() {
		tx.Output().AddGuards(guards.DuplicateInput(src, v.Source()))
	}
	return v, true
}

// Tracker returns the tracker of an object that was read from the frame, or nil.
func (w *World) Tracker(obj py.Object) VariableTracker { return w.objects[obj] }

func (w *World) remember(obj py.Object, v VariableTracker) { w.objects[obj] = v }

// Tracked calls f for every object that was read from the frame.
func (w *World) Tracked(f func(obj py.Object, v VariableTracker)) {
	for o, v := range w.objects {
		f(o, v)
	}
}

// IsTorchConstant reports whether typ is a type of torch's immutable values: dtype, device, layout, memory_format,
// Size.
func (w *World) IsTorchConstant(typ py.Object) bool {
	return dictHasType(w.torchConstants, typ) || typ.Type() != w.TypeType && w.foreignConstantType(typ)
}

// IsStateContext reports whether class is one of torch's context managers that only switch modes.
func (w *World) IsStateContext(class py.Object) bool { return dictHasType(w.stateContexts, class) }

// IsGradContext reports whether class is one of torch's context managers that only switch grad mode. Such a context
// manager keeps the previous mode in its attribute "prev".
func (w *World) IsGradContext(class py.Object) bool { return w.restoredGrad(class) == "prev" }

// RestoresGrad reports whether the `__exit__` of one of torch's context managers restores grad mode.
func (w *World) RestoresGrad(class py.Object) bool { return w.restoredGrad(class) != "" }

// restoredGrad returns the value of a class in CONTEXTS (_called/torch_state.py).
func (w *World) restoredGrad(class py.Object) string {
	if !py.Is(class.Type(), py.IdentityHash) {
		return ""
	}
	s := py.OpenScope()
	defer s.Close()
	how, ok := s.DictGet(w.stateContexts, class)
	if !ok {
		return ""
	}
	return py.GoString(how)
}

// IsSingletonType reports whether values of typ are compared by identity.
func (w *World) IsSingletonType(typ py.Object) bool { return dictHasType(w.singletons, typ) }

// dictHasType reports whether the class is a key of d, a dict whose keys are classes that hash by identity. It never
// calls a metaclass's __hash__.
func dictHasType(d, typ py.Object) bool {
	if !py.Is(typ.Type(), py.IdentityHash) {
		return false
	}
	s := py.Scope{}
	_, ok := s.DictGet(d, typ)
	s.Close()
	return ok
}

// IsEnum reports whether o is a member of an enum class.
func (w *World) IsEnum(_ *py.Scope, o py.Object) bool {
	return w.IsEnumClass(nil, o.Type())
}

// IsEnumClass reports whether class is an enum class.
func (w *World) IsEnumClass(_ *py.Scope, class py.Object) bool {
	if !py.IsSubtype(class, w.EnumType) {
		return false
	}
	if !slices.Contains(w.enums, class) {
		w.enums = append(w.enums, class)
	}
	return true
}

// ThrowWarns reports whether throw(type, value) of a generator warns.
func (w *World) ThrowWarns() bool { return w.throwWarns == py.Bool(true) }

// CloseReturns reports whether close() of a generator returns what the generator returns.
func (w *World) CloseReturns() bool { return w.closeReturns == py.Bool(true) }

// Operator returns a function of the operator module.
func (w *World) Operator(name string) py.Object { return w.must(w.operators, name) }

// operatorIfAny does the same as Operator, but returns the zero Object if the operator module has no such function.
func (w *World) operatorIfAny(name string) py.Object { return w.named(w.operators, name) }

// Builtin returns a function or type of the builtins module.
func (w *World) Builtin(name string) py.Object { return w.must(w.builtins, name) }

// named returns an item of a dict whose values live as long as the process, or the zero Object if the key is missing.
func (f *facts) named(d py.Object, name string) py.Object {
	at := namedIn{d, name}
	if v, ok := f.found[at]; ok {
		return v
	}
	s := py.OpenScope()
	defer s.Close()
	v, _ := s.DictGetName(d, name)
	f.found[at] = v
	return v
}

type namedIn struct {
	dict py.Object
	name string
}

func (f *facts) must(d py.Object, name string) py.Object {
	v := f.named(d, name)
	if v.IsNull() {
		panic("variables: unknown name " + name)
	}
	return v
}

// question is a call of a function of _translator/facts.py. Its result depends only on the object `about`.
type question struct{ ask, about py.Object }

// ask returns the result of a question. It computes each result once per translation, since equal layers of a model
// call the same functions.
func (w *World) ask(s *py.Scope, ask, about py.Object) (string, error) {
	if word, ok := w.told[question{ask, about}]; ok {
		return word, nil
	}
	word, err := w.text(s, ask, about)
	if err == nil {
		w.told[question{ask, w.scope.Hold(about)}] = word
	}
	return word, err
}

func (w *World) text(s *py.Scope, fn py.Object, args ...py.Object) (string, error) {
	r, err := s.Call(fn, args...)
	if err != nil {
		return "", err
	}
	return py.GoString(r), nil
}

func (w *World) names(s *py.Scope, names []string) py.Object {
	out := make([]py.Object, len(names))
	for i, n := range names {
		out[i] = s.Name(n)
	}
	return s.Tuple(out...)
}

// methodResult returns the kind of result of a Tensor method for arguments of these kinds (callables.method_kind).
func (w *World) methodResult(s *py.Scope, name string, nargs int, kwnames []string, kinds string) (result, error) {
	call := methodCall{name, nargs, strings.Join(kwnames, ","), kinds}
	if r, ok := w.methodKinds[call]; ok {
		return r, nil
	}
	text, err := w.text(s, w.methodKind, s.Name(name), s.Int(int64(nargs)), w.names(s, kwnames), s.Str(kinds))
	if err != nil {
		return result{}, err
	}
	r, err := parseResult(text)
	// an unknown result is not cached, since the program may still add the name to the class
	if err == nil && r.kind != givesUnknown && r.kind != givesInline {
		w.methodKinds[call] = r
	}
	return r, err
}

// MakesNew reports whether an operation always returns a new tensor, which is neither an operand nor a view of one
// (_translator/kinds.makes_new). target is the operation's name in graphs.
func (w *World) MakesNew(s *py.Scope, target string) bool { return w.makes(s, target, false) }

// MakesAnother does the same as MakesNew, but also accepts an operation that returns a view of an operand.
func (w *World) MakesAnother(s *py.Scope, target string) bool { return w.makes(s, target, true) }

func (w *World) makes(s *py.Scope, target string, views bool) bool {
	at := resultOf{target, views}
	fresh, ok := w.fresh[at]
	if !ok {
		fresh = w.truth(s, w.makesNew, s.Str(target), py.Bool(views))
		w.fresh[at] = fresh
	}
	return fresh
}

type resultOf struct {
	target string
	views  bool
}

type methodCall struct {
	name     string
	nargs    int
	keywords string
	kinds    string // kinds of the positional arguments, see argKind
}

// Recording reports whether torch's grad mode is on.
func (w *World) Recording(s *py.Scope) (bool, error) {
	on, err := s.Call(w.gradEnabled)
	return err == nil && on == py.True(), err
}

// Inference reports whether inference mode is on.
func (w *World) Inference(s *py.Scope) (bool, error) {
	on, err := s.Call(w.inference)
	return err == nil && on == py.True(), err
}

// functionResult returns the kind of result of a torch function for arguments of these kinds (callables.result_kind).
func (w *World) functionResult(s *py.Scope, fn py.Object, nargs int, kwnames []string, kinds string) (result, error) {
	call := functionCall{fn, methodCall{nargs: nargs, keywords: strings.Join(kwnames, ","), kinds: kinds}}
	if r, ok := w.functionKinds[call]; ok {
		return r, nil
	}
	text, err := w.text(s, w.resultKind, fn, s.Int(int64(nargs)), w.names(s, kwnames), s.Str(kinds))
	if err != nil {
		return result{}, err
	}
	r, err := parseResult(text)
	if err == nil {
		if w.functionKinds == nil {
			w.functionKinds = map[functionCall]result{}
		}
		w.scope.Hold(fn)
		w.functionKinds[call] = r
	}
	return r, err
}

// functionCall is a call of a torch function, whose result's kind is read once per translation: a later one may find
// another schema, since operators can be registered again.
type functionCall struct {
	fn   py.Object
	call methodCall
}

// CallableName returns the name that graph nodes print for a callable.
func (w *World) CallableName(s *py.Scope, fn py.Object) string {
	name, err := w.ask(s, w.callableName, fn)
	if err != nil || name == "" {
		return "call"
	}
	return name
}

// TorchFunctionModeActive reports whether a TorchFunctionMode is entered.
func (w *World) TorchFunctionModeActive(s *py.Scope) (bool, error) {
	r, err := s.Call(w.modeActive)
	if err != nil {
		return false, err
	}
	return r == py.True(), nil
}

// IsPure reports whether a callable may be called while translating (_translator/kinds.py).
func (w *World) IsPure(s *py.Scope, fn py.Object) (bool, error) {
	r, err := s.Call(w.isPure, fn)
	if err != nil {
		return false, err
	}
	return r == py.True(), nil
}

// classified returns the kind of a callable, as callables.classify determines it.
func (w *World) classified(s *py.Scope, obj py.Object) (classified, error) {
	word, err := w.ask(s, w.classify, obj)
	kind, detail, _ := strings.Cut(word, ":")
	return classified{callableKind(kind), detail}, err
}

// BuiltinName returns the name of a function or type of builtins ("len") or operator ("operator.add").
func (w *World) BuiltinName(s *py.Scope, obj py.Object) (string, bool) {
	name, err := w.ask(s, w.builtinName, obj)
	return name, err == nil && name != ""
}

// IsObjectMethod reports whether d is object's own definition of a special method.
func (w *World) IsObjectMethod(s *py.Scope, name string, d py.Object) bool {
	own, ok := s.TypeLookup(w.ObjectType, name)
	return ok && own == d
}

// CallableFunction returns the function that a callable of godynamo or torch.jit.script wraps. It returns the zero
// Object for other objects.
func (w *World) CallableFunction(obj py.Object) py.Object {
	attr := "function"
	switch {
	case !w.CallableType.IsNull() && py.IsSubtype(obj.Type(), w.CallableType):
	case obj.Type() == w.ScriptFunction:
		attr = "_torchdynamo_inline" // the Python function that was scripted
	default:
		return py.Object{}
	}
	s := py.OpenScope()
	defer s.Close()
	f, ok := py.Answered(s.GetAttr(obj, attr))
	if !ok || f.Kind() != py.Function {
		return py.Object{}
	}
	return f // kept alive by obj
}

// CallableSelf returns the object to which a godynamo callable is bound. It returns false if there is none.
func (w *World) CallableSelf(obj py.Object) (py.Object, bool) {
	s := py.OpenScope()
	defer s.Close()
	o, ok := py.Answered(s.GetAttr(obj, "self_object"))
	if !ok || o == py.None() {
		return py.Object{}, false
	}
	return o, true // kept alive by obj
}

// NamedTupleFields returns the fields of a namedtuple class.
func (w *World) NamedTupleFields(s *py.Scope, cls py.Object) ([]string, bool) {
	if !py.IsSubtype(cls, w.TupleType) {
		return nil, false
	}
	r, err := w.text(s, w.namedTupleFields, cls)
	if err != nil || r == "" {
		return nil, false
	}
	for _, name := range tupleSpecials { // a class that defines one of these is an ordinary subclass of tuple
		own, _ := s.TypeLookup(cls, name)
		if theirs, _ := s.TypeLookup(w.TupleType, name); own != theirs {
			return nil, false
		}
	}
	return strings.Split(r, ","), true
}

// tupleSpecials are the special methods of a tuple that operators and builtins call.
var tupleSpecials = []string{
	"__bool__", "__len__", "__iter__", "__getitem__", "__contains__", "__hash__", "__eq__", "__ne__", "__lt__",
	"__le__", "__gt__", "__ge__",
	"__add__", "__radd__", "__mul__", "__rmul__", "__getattribute__", "__getattr__", "__setattr__", "__call__",
	"__index__", "__reversed__",
	"__str__", "__format__", "__int__", "__float__",
}

// AutogradParts returns two objects for torch.autograd.Function: the class whose instance represents ctx while
// `forward` is translated, and the function that returns an `apply` for whole graphs.
func (w *World) AutogradParts(s *py.Scope) ([]py.Object, error) {
	r, err := s.Call(w.autogradParts)
	if err != nil {
		return nil, err
	}
	return s.Items(r), nil
}

func (w *World) truth(s *py.Scope, fn py.Object, args ...py.Object) bool {
	r, ok := py.Answered(s.Call(fn, args...))
	return ok && r == py.True()
}

// VariableEndsInCode reports whether user code may run when a variable's value is freed.
func (w *World) VariableEndsInCode(s *py.Scope, obj py.Object) bool {
	return w.truth(s, w.endMayRunCode, obj, s.Int(0))
}

// EndsAlone reports whether freeing an object frees no other object. It looks only at the object's type.
func EndsAlone(o py.Object) bool {
	switch o.Kind() {
	case py.NoneKind, py.BoolKind, py.Int, py.Float, py.Str, py.Bytes, py.TypeKind:
		return true
	}
	return false
}

// Replaceable breaks the graph at a store that replaces a value, if freeing that value may run user code. The store
// may drop the last reference, and CPython then runs that code at once.
func (w *World) Replaceable(s *py.Scope, old py.Object) error {
	if EndsAlone(old) || !w.truth(s, w.endMayRunCode, old, s.Int(w.Attempts)) {
		return nil
	}
	return unsupported(exc.StoreUnsupported, "replacing a %s, whose end may run code", py.TypeName(old.Type()))
}

// PlainLayout reports whether instances of the class consist only of a dict or slots, without C fields.
func (w *World) PlainLayout(s *py.Scope, cls py.Object) bool { return w.truth(s, w.plainLayout, cls) }

// TensorTypeIs returns isinstance(x, cls) for a computed tensor x of type t.
func (w *World) TensorTypeIs(s *py.Scope, t, cls py.Object) bool {
	return w.truth(s, w.tensorTypeIs, t, cls)
}

// EqualTo returns a predicate that compares its argument with o.
func (w *World) EqualTo(s *py.Scope, o py.Object) py.Object {
	r, err := s.Call(w.equalTo, o)
	if err != nil {
		panic(err)
	}
	return r
}

// BoundSelf returns the object to which a C method is bound. It returns false if that object is a module.
func (w *World) BoundSelf(s *py.Scope, fn py.Object) (py.Object, bool) {
	r, ok := py.Answered(s.Call(w.boundSelf, fn))
	if !ok || r == w.Missing {
		return py.Object{}, false
	}
	return r, true
}

// PlainTensor converts a tensor of a subclass that can be captured to a torch.Tensor. It returns the zero Object for
// other objects.
func (w *World) PlainTensor(s *py.Scope, obj py.Object) py.Object {
	if !w.truth(s, w.traceable, obj.Type()) {
		return py.Object{}
	}
	o, ok := py.Answered(s.Call(w.plainExample, obj))
	if !ok {
		return py.Object{}
	}
	return o
}

// PlainTensorFunction returns the function that converts a tensor of a subclass to a torch.Tensor.
func (w *World) PlainTensorFunction() py.Object { return w.plainTensor }

// WrapResults returns the function _translator/torch_function.wrapped.
func (w *World) WrapResults() py.Object { return w.wrapResult }

// isTensorClass reports whether class is torch.Tensor or a subclass.
func (w *World) isTensorClass(class py.Object) bool { return py.IsSubtype(class, w.TensorType) }

// IsTensor reports whether obj is an instance of torch.Tensor or a subclass.
func (w *World) IsTensor(obj py.Object) bool { return py.IsSubtype(obj.Type(), w.TensorType) }

// Watch starts recording the values that are written to, until Watched returns them.
func (w *World) Watch() { w.watched = append(w.watched, nil) }

// Watched ends the last Watch and returns the values written to since then.
func (w *World) Watched() []VariableTracker {
	last := len(w.watched) - 1
	written := w.watched[last]
	w.watched = w.watched[:last]
	if last > 0 {
		w.watched[last-1] = append(w.watched[last-1], written...)
	}
	return written
}

// Wrote records that the program has changed a value, or advanced an iterator.
func (w *World) Wrote(v VariableTracker) {
	if last := len(w.watched) - 1; last >= 0 {
		w.watched[last] = append(w.watched[last], v)
		if c, ok := v.(Container); ok {
			for _, child := range c.Children() {
				if _, steps := child.(Iterator); steps {
					w.Wrote(child)
				}
			}
		}
	}
}
