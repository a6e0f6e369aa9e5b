//go:generate go run ./gen ../../docs/graph_breaks.md

package exc

// Code is a row of the break catalog.
type Code int

// The codes. Order is the catalog's; GD numbers never change once published.
const (
	DataDependentBranch Code = iota
	CallUnsupported
	AttrUnsupported
	OperatorUnsupported
	OpcodeUnsupported
	SubscriptUnsupported
	StoreUnsupported
	IterUnsupported
	ExplicitBreak
	TensorToPython
	TensorSubclass
	UnknownResult
	ProgramRaises
	InlineTooDeep
	Generator
	Reconstruct
	Disabled
	DynamicClosure
	UntrackedObject
	TensorMetadata
	InsideBlock
	TooLarge
	NestedBreak
	Finalizer
	numCodes
)

// Entry is what the catalog says of a code.
type Entry struct{ ID, Reason, Hint string }

var catalog = [numCodes]Entry{
	DataDependentBranch:  {"GD0101", "branch on a tensor's value", "use torch.where, or accept the split: both arms are captured"},
	CallUnsupported:      {"GD0201", "call of something that cannot be captured", "move the call out of the function, or register it with godynamo.allow_in_graph"},
	AttrUnsupported:      {"GD0202", "attribute that cannot be read while translating", "read it before the function and pass the value in"},
	OperatorUnsupported:  {"GD0207", "operator on operands that cannot be captured", "convert the operands first"},
	OpcodeUnsupported:    {"GD0301", "missing", "this instruction runs in CPython; the code around it is captured"},
	SubscriptUnsupported: {"GD0208", "subscript that cannot be evaluated while translating", "index with Python integers, slices or tensors"},
	StoreUnsupported:     {"GD0209", "store that cannot be replayed", "store plain values into plain objects"},
	IterUnsupported:      {"GD0210", "iteration over something whose length is not known", "iterate over lists, tuples, dicts or ranges"},
	ExplicitBreak:        {"GD0001", "godynamo.graph_break() called", "remove the call"},
	TensorToPython:       {"GD0102", "a tensor's value is needed as a Python number", "keep the value a tensor"},
	TensorSubclass:       {"GD0103", "tensor subclass or tensor with Python dispatch", "runs in CPython"},
	UnknownResult:        {"GD0104", "torch function whose result kind is not known", "register it with godynamo.allow_in_graph"},
	ProgramRaises:        {"GD0401", "the program raises here", "CPython raises it at the same place"},
	InlineTooDeep:        {"GD0501", "calls nested too deep to inline", "raise config.inline_depth_limit, or leave it"},
	Generator:            {"GD0302", "generator or coroutine", "runs in CPython"},
	Reconstruct:          {"GD0601", "value that cannot be rebuilt for CPython", "keep it inside the function"},
	Disabled:             {"GD0002", "call of a function marked with godynamo.disable", "remove the mark"},
	DynamicClosure:       {"GD0303", "cell without a value", "assign the variable before it is read"},
	UntrackedObject:      {"GD0203", "object of a kind that is not modelled", "pass plain Python data, tensors or modules"},
	TensorMetadata:       {"GD0105", "tensor metadata could not be computed while translating", "report the operation"},
	InsideBlock:          {"GD0304", "split inside a with or try block", "move the call out of the block"},
	TooLarge:             {"GD0502", "translation grew over its limit", "raise config.max_translated_instructions"},
	NestedBreak:          {"GD0204", "inlined function that cannot be captured whole", "see the reason at the inner frame"},
	Finalizer:            {"GD0602", "object whose finalizer runs here", "let go of it outside the function"},
}

// Entry returns the catalog's row.
func (c Code) Entry() Entry { return catalog[c] }

// Catalog returns all rows, in order, for the generated documentation.
func Catalog() []Entry { return catalog[:] }
