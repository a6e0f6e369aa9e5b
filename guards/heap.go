package guards

// Value is an object of a Heap: a comparable handle; equal handles are one object.
type Value any

// Heap is the reference evaluator's view of Python objects. Its methods never run code; ok is false if the
// value is missing or the object is of another kind than the method is for.
type Heap interface {
	Globals() Value
	Builtins() Value
	Valid() bool               // the entry's own flag
	Const(i int) (Value, bool) // constant of the program; false once it has died
	None() Value
	Type(v Value) Value // exact type
	InstanceAttr(v Value, name Value) (Value, bool)
	InstanceDict(v Value) (Value, bool) // if it exists
	ModuleDict(v Value) (Value, bool)
	Slot(v Value, name Value, offset int) (Value, bool)
	TypeLookup(t Value, name Value) (found Value, ok, isType bool)
	MroDict(t Value, i int) (Value, bool)  // dict of the i-th class of a type's MRO
	MroClass(t Value, i int) (Value, bool) // the i-th class itself
	DictGet(d, key Value) (found Value, ok, isDict bool)
	DictKeys(d Value) ([]Value, bool)  // in order
	Items(v Value) ([]Value, bool)     // of a list or tuple
	Length(v Value) (int, bool)        // of a builtin container
	TupleIter(v Value) ([]Value, bool) // items a tuple iterator has left
	FuncField(v Value, field FuncField) (Value, bool)
	Cell(v Value) (contents Value, empty, isCell bool)
	Referent(v Value) (Value, bool) // of a weak reference; None once it has died
	Watched(v Value) bool           // whether destroying it may run code
	EndsInCode(v, at Value) bool    // the same for an object that only v holds, at a name, key or (int) index
	IsName(v, name Value) bool      // whether __name__ of a function, class or module is name
	Equal(a, b Value) bool          // part by part, types included
	ParamNames(v Value) ([]Value, bool)
	Unchanged(v Value) bool // since the entry was made
	GradEnabled() bool
	StateEqual() bool              // torch's global state equals the entry's
	Tensor(v Value, spec int) bool // v matches the program's tensor row spec
	Call(predicate, v Value) bool
}
