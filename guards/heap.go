package guards

// Value is a handle on an object of a Heap. Handles are comparable, and equal handles are one object.
type Value any

// Heap is the reference evaluator's view of Python objects. Its methods never run code. Their result ok is
// false if the value is missing, or if the object is not of the kind that the method reads.
type Heap interface {
	Globals() Value
	Builtins() Value
	Valid() bool               // the flag `valid` of the entry
	Const(i int) (Value, bool) // constant of the program; false once it has died
	None() Value
	Type(v Value) Value // exact type
	InstanceAttr(v Value, name Value) (Value, bool)
	InstanceDict(v Value) (Value, bool) // __dict__, if it exists
	ModuleDict(v Value) (Value, bool)
	Slot(v Value, name Value, offset int) (Value, bool)
	TypeLookup(t Value, name Value) (found Value, ok, isType bool)
	MroDict(t Value, i int) (Value, bool)  // dict of the i-th class of a type's MRO
	MroClass(t Value, i int) (Value, bool) // the i-th class itself
	DictGet(d, key Value) (found Value, ok, isDict bool)
	DictKeys(d Value) ([]Value, bool)  // the keys in order
	Items(v Value) ([]Value, bool)     // the items of a list or tuple
	Length(v Value) (int, bool)        // the number of items of a builtin container
	TupleIter(v Value) ([]Value, bool) // the items that a tuple iterator has left
	// IterPart, IterItem, IterValue, IterNumber and IterLeft read iterators of builtin types, as the functions of
	// pyhook/core/guards/iterators.h do.
	IterPart(v Value, i int) (Value, bool)
	IterItem(v Value, i int) (Value, bool)
	IterValue(v Value, i int) (Value, bool)
	IterNumber(v Value, i int) (int64, bool)
	IterLeft(v Value) (int, bool)
	FuncField(v Value, field FuncField) (Value, bool)
	Cell(v Value) (contents Value, empty, isCell bool)
	Referent(v Value) (Value, bool) // the referent of a weak reference; None once it has died
	Grad(v Value) (Value, bool)     // the gradient of a leaf tensor, or None
	Watched(v Value) bool           // whether destroying v may run code
	// EndsInCode reports whether dropping the object that v holds at a name, key or (int) index may run code: only v
	// holds the object, and its destruction may run code.
	EndsInCode(v, at Value) bool
	IsName(v, name Value) bool // whether __name__ of a function, class or module is name
	Equal(a, b Value) bool     // equality part by part, types included
	ParamNames(v Value) ([]Value, bool)
	Unchanged(v Value) bool // whether no attribute of v was set or deleted since the entry was made
	GradEnabled() bool
	StateEqual() bool              // whether torch's global state equals the entry's
	Tensor(v Value, spec int) bool // whether v matches Program.Tensors[spec]
	Dim(v Value, property TensorProperty, dim int) (int64, bool)
	Int(v Value) (int64, bool) // the value of an exact int that fits 64 bits
	NewInt(n int64) Value
	Float(v Value) (float64, bool) // the value of an exact float
	Call(predicate, v Value) bool
}
