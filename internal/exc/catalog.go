//go:generate go run ./gen ../../docs/graph_breaks.md ../../python/godynamo/_explain/break_codes_gen.py

package exc

// Code is the index of a row in the catalog of break codes.
type Code int

// The break codes. A published GD number never changes, and the number of a removed code is not reused. Codes from GD07
// on are reasons why CPython runs a whole frame.
const (
	FrameLeft Code = iota // default code of a SkipFrame
	DataDependentBranch
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
	UntrackedObject
	TensorMetadata
	InsideBlock
	TooLarge
	Finalizer
	NothingToCapture
	CacheLimit
	LeftByRule
	Traced
	NotFunction
	TorchMode
	RunOnly
	InVain
	NoHeadroom
	Watched
	Uninitialized
	LeftOut
	ReplacedBuiltin
	numCodes
)

// Entry is a code's row of the catalog.
type Entry struct{ ID, Reason, Hint string }

var catalog = [numCodes]Entry{
	DataDependentBranch: {
		"GD0101", "branch on a tensor's value",
		"use torch.where, or accept the graph break: both branches are captured",
	},
	CallUnsupported: {
		"GD0201", "call that cannot be captured",
		"move the call out of the function, or register it with godynamo.allow_in_graph",
	},
	AttrUnsupported: {
		"GD0202", "attribute that cannot be read while translating",
		"read it before the function and pass the value in",
	},
	OperatorUnsupported: {
		"GD0207", "operator whose operands cannot be captured",
		"convert the operands first",
	},
	OpcodeUnsupported: {
		"GD0301", "missing",
		"nothing to do: the code around it is captured",
	},
	SubscriptUnsupported: {
		"GD0208", "subscript that cannot be evaluated while translating",
		"index with Python integers, slices or tensors",
	},
	StoreUnsupported: {
		"GD0209", "store that cannot be replayed",
		"store plain values into plain objects",
	},
	IterUnsupported: {
		"GD0210", "iteration of unknown length",
		"iterate over lists, tuples, dicts or ranges",
	},
	ExplicitBreak: {
		"GD0001", "godynamo.graph_break() called",
		"remove the call",
	},
	TensorToPython: {
		"GD0102", "a tensor's value is needed as a Python number",
		"keep the value a tensor",
	},
	TensorSubclass: {
		"GD0103", "tensor subclass or tensor with Python dispatch",
		"pass x.as_subclass(torch.Tensor)",
	},
	UnknownResult: {
		"GD0104", "torch function whose result kind is unknown",
		"register it with godynamo.allow_in_graph",
	},
	ProgramRaises: {
		"GD0401", "the program raises here",
		"fix the error if it is not intended; CPython raises it at the same place",
	},
	InlineTooDeep: {
		"GD0501", "calls nested too deep to inline",
		"raise config.inline_depth_limit, or accept the graph break",
	},
	Generator: {
		"GD0302", "generator or coroutine",
		"build a list of what it yields, or iterate over it inside the function",
	},
	Reconstruct: {
		"GD0601", "value that cannot be rebuilt for CPython",
		"keep it inside the function",
	},
	Disabled: {
		"GD0002", "call of a function marked with godynamo.disable",
		"remove the mark",
	},
	LeftOut: {
		"GD0003", "code excluded by GODYNAMO_BISECT",
		"nothing to do: godynamo bisect is searching for the code that changes the result",
	},
	UntrackedObject: {
		"GD0203", "object of an unsupported type",
		"pass plain Python data, tensors or modules",
	},
	TensorMetadata: {
		"GD0105", "tensor metadata that cannot be computed while translating",
		"if a size depends on the data (nonzero, a mask), read it outside the function",
	},
	InsideBlock: {
		"GD0304", "graph break inside a with or try block",
		"move the call out of the block",
	},
	TooLarge: {
		"GD0502", "translation exceeds its limit",
		"raise config.max_translated_instructions if the reason says so; keep large values in tensors",
	},
	Finalizer: {
		"GD0602", "object whose finalizer runs here",
		"drop the last reference to it outside the function",
	},
	FrameLeft: {
		"GD0701", "frame that is not translated",
		"see the reason; the functions that the frame calls are still captured",
	},
	NothingToCapture: {
		"GD0702", "no tensor and no torch call",
		"nothing to do: there is nothing to capture here",
	},
	CacheLimit: {
		"GD0703", "more cases than config.cache_size_limit",
		"raise the limit, or pass what varies as a tensor; godynamo.guards(fn) shows the cases",
	},
	LeftByRule: {
		"GD0704", "code of a library, or marked with godynamo.skip",
		"remove the mark, or move the calls of torch into a function of your own",
	},
	Traced: {
		"GD0706", "a trace or profile function sees this frame",
		"run without the debugger, profiler or coverage",
	},
	NotFunction: {
		"GD0707", "module or class body, code for exec, or globals that are not a plain dict",
		"put the work into a function",
	},
	TorchMode: {
		"GD0708", "called inside a TorchFunctionMode, a TorchDispatchMode or a torch.func transform",
		"enter the mode inside the optimized function, or remove it",
	},
	RunOnly: {
		"GD0709", "no translation fits, and godynamo.run makes none",
		"call it once outside of godynamo.run",
	},
	InVain: {
		"GD0710", "too many translations that captured nothing",
		"see the reasons of the first calls",
	},
	NoHeadroom: {
		"GD0711", "call stack too deep to translate",
		"call the function once before the recursion",
	},
	Watched: {
		"GD0712", "called below code that inspects the interpreter",
		"nothing to do: CPython runs the first 32 calls, so that measurements see CPython; later calls are captured",
	},
	Uninitialized: {
		"GD0713", "parameters or a state that this call creates",
		"nothing to do: the next call is captured",
	},
	ReplacedBuiltin: {
		"GD0714", "called while the program has replaced a builtin",
		"call the function once before, or leave the builtin alone: the translator uses it as well",
	},
}

// Entry returns the catalog's row.
func (c Code) Entry() Entry { return catalog[c] }

// Catalog returns all rows in order, for the generated documentation.
func Catalog() []Entry { return catalog[:] }
