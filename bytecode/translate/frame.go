// Package translate runs a frame's bytecode symbolically. InstructionTranslator executes instructions on
// VariableTrackers. OutputGraph collects the graph, the guards, the effects and, at the end, the instructions of the
// transformed function.
//
// A translation has no effect outside itself. At a graph break it restarts from the first instruction, with one more
// entry in the SpeculationLog. The new attempt ends at the break, and the rest of the frame becomes a resume
// function. The package contains no C: code objects, functions and resume callables are made through Installer.
package translate

import (
	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// Frame holds what a call starts from: code, globals, and the slots. The slots are the arguments in localsplus order,
// then the cells of the closure.
type Frame struct {
	Function, Code, Globals, Builtins py.Object
	Slots                             []py.Object
	NumArgs                           int
	Inner                             bool // called by optimized code, and found by the frame hook
	// Origin is nil unless the frame is resumed. A resumed frame is translated from the user's own code. It starts at
	// an instruction in the middle, with values on the stack.
	Origin *Origin
	// Varied has the places whose values have differed between calls.
	Varied Varied
	// hasVaried is set once a translation has read a place of Varied.
	hasVaried bool
	// FromSizes has the places of ints that earlier code computed from sizes and passed to this frame; see SizePlaces.
	FromSizes map[string]bool
	// hasPassed is set once a translation has read such a place. fixesPassed makes these ints constants.
	hasPassed, fixesPassed bool
	attempts               int64      // number of attempts to translate the frame
	farthest               *Abandoned // the attempt that read the most before it ended with a graph break
	// loud is the set of slots of a resumed frame that hold an object whose destruction runs code. It is nil until it
	// is computed, before anything reads the slots.
	loud map[int]bool
}

// Origin is the place where a resume function continues. The parameters of the function are the live locals, then the
// values of the stack.
type Origin struct {
	Code   py.Object // the user's code object
	Target int       // index of the instruction at which it resumes
	// Params has the localsplus slot of each parameter that is a local, or ^slot if that local is unbound; see places.
	Params []int
	// Stack describes the value stack from the bottom. 'v' is a value, passed as the next parameter. 'N' is NULL. 'L'
	// is the offset of an instruction. 'X' is the value saved by PUSH_EXC_INFO; its parameter is the exception being
	// handled. 'R' is the resume function that continues after this one.
	Stack string
	// Computed has the numbers of the parameters that hold computed values. Only the types of these are guarded.
	Computed []int
	// Sizes has the numbers of the parameters that hold ints computed from sizes. They are symbols.
	Sizes []int
}

// unbound clears the slots of parameters whose locals are unbound.
func (o *Origin) unbound(slots []py.Object) {
	for i, local := range o.Params {
		if local < 0 {
			slots[i] = py.Object{}
		}
	}
}

// Options holds the settings of one optimize() call that affect translation.
type Options struct {
	variables.Settings
	NoPython   bool
	TakesApart bool // the backend traces operators with AOTAutograd
	// InlineBackend translates frames that need eager mode's history of tensors; see graph_history.go.
	InlineBackend Backend
	// TakesSymbols is set if the backend is declared to record in torch's ShapeEnv what it assumes about sizes. A
	// backend that traces with AOTAutograd does so as well.
	TakesSymbols bool
	// SymbolicSizes allows the sizes of tensors to be symbols; see graph_symbols.go.
	SymbolicSizes bool
	// FixInts and FixFloats make ints and floats constants even if they have differed between calls. BreakAtNumbers
	// breaks the graph at operations that return numbers of a tensor's data.
	FixInts, FixFloats, BreakAtNumbers bool
	Listed                             Listed
	// Dynamic is set for optimize(dynamic=True): ints and floats that are arguments of the frame may differ between
	// calls.
	Dynamic     bool
	AnySize     bool // the backend's compiled graphs run at any sizes, so graphs may have ints as inputs
	FixesSizes  bool // the backend has returned something other than a graph
	FullGuards  bool // config.tensor_guards == "full", or a backend that takes whole graphs
	ReuseLayers bool // repeat the operations of an earlier equal module; see layers
	CheckTypes  bool // check return values against the user's annotations
	MaxSteps    int  // maximum number of instructions between two operations, inlined instructions included
	InlineDepth int
	Explain     bool   // record in the result which instructions were captured
	Clock       *Clock // measures the translation; nil if it is not measured
	Steps       *Steps // receives every executed instruction; may be nil
	// Allowed is a Python function that reports whether a code object may be translated or inlined
	// (godynamo._translator.bisect). A null Allowed accepts all code.
	Allowed py.Object
	// TranslateEverything makes the translator also transform frames without a tensor. It is for tests that translate
	// whole programs.
	TranslateEverything bool
}

// Backend turns the captured graph into runnable code. The eager backend writes each operation as instructions of the
// transformed function. Other backends compile the whole graph.
type Backend interface {
	// Inline reports whether the backend writes operations with EmitNode. Otherwise it compiles graphs with Compile.
	Inline() bool
	// EmitNode writes the instructions of one operation. They leave its result on the stack.
	EmitNode(e NodeEmitter, n *fxgraph.Node) error
	// Compile compiles the graph and returns a callable that takes the inputs and returns a sequence of outputs. With
	// Inputs.Sizes, it returns what OutputGraph.afterSymbols reads.
	Compile(s *py.Scope, g *fxgraph.Graph, pool []py.Object, inputs Inputs) (py.Object, error)
	// TakesApart reports whether the backend is known to trace operators with AOTAutograd. This may become known only
	// when Compile runs.
	TakesApart(s *py.Scope) (bool, error)
	// FixesSizes reports whether a graph that the backend has compiled may run at the sizes of its examples only.
	FixesSizes(s *py.Scope) (bool, error)
	Name() string
}

// Inputs describes the inputs of a graph to Backend.Compile.
type Inputs struct {
	Examples  []py.Object // their values in the call that is translated
	Sizes     py.Object   // their symbolic sizes, as in OutputGraph.symbolicExamples; null if all sizes are constants
	Changed   []int       // the numbers of those whose memory the graph may change
	OfModules []int       // the numbers of those that are parameters or buffers of modules
	Whole     bool        // the graph is correct only if AOTAutograd does not trace its operators
}

// NodeEmitter is the part of the code generator that an inline backend uses.
type NodeEmitter interface {
	LoadArg(a fxgraph.Arg) error
	LoadPool(index int)
	LoadConst(o py.Object)
	LoadAttr(name string)
	LoadMethod(name string)
	PushNull()
	BinaryOp(op opcode.BinaryOp)
	CompareOp(op opcode.CompareOp)
	UnaryOp(op int)
	BinarySubscr()
	StoreSubscr()
	DeleteSubscr()
	DeleteAttr(name string)
	StoreAttr(name string)
	IsOp(invert int)
	ContainsOp(invert int)
	UnaryNot()
	GetIter()
	LoadGlobal(name string)
	UnpackSequence(n int)
	BuildTuple(n int)
	BuildSlice(n int)
	BuildList(n int)
	Copy(i int)
	Swap(i int)
	CallFunctionEx(keywords bool)
	ImportName(name string)
	BuildSet(n int)
	BuildMap(n int)
	ListExtend(i int)
	SetUpdate(i int)
	DictUpdate(i int)
	DictMerge(i int)
	PopTop()
	Call(nargs int, kwnames []string)
	CallMethod(nargs int, kwnames []string)
	// PoolObject returns a constant from the pool.
	PoolObject(index int) py.Object
}

// Installer makes CPython objects for a translation; pyhook implements it over the C core.
type Installer interface {
	// Decode reads a code object. It also returns the constants of the code object, which the scope keeps alive.
	Decode(s *py.Scope, code py.Object) (*bytecode.Raw, []py.Object, error)
	// NewCode builds a code object.
	NewCode(s *py.Scope, raw *bytecode.Raw, consts []py.Object) (py.Object, error)
	// NewCheck builds a Check from a guard program. The scope keeps the Check alive.
	NewCheck(s *py.Scope, p *guards.Program, pool []py.Object) (Check, error)
	// ReadsSizes reports whether the guards can read the sizes of a tensor from its memory.
	ReadsSizes(tensor py.Object) bool
	// Resume returns the callable for the rest of a frame with these globals and builtins. If there is none yet, it
	// calls make to create the function.
	Resume(s *py.Scope, o *Origin, globals, builtins py.Object, make func() (py.Object, error)) (py.Object, error)
}

// Check is a guard program. Holds runs it on slots, as in a frame with the given globals.
type Check interface {
	Holds(s *py.Scope, slots []py.Object, globals py.Object) (bool, error)
}

// Version is the Python version of the code that is read and written: that of the headers with which the library is
// compiled.
var Version = bytecode.Version{Major: py.Major, Minor: py.Minor}

// Result is a finished translation.
type Result struct {
	Function   py.Object // null if nothing was captured: the original function runs
	Program    *guards.Program
	Pool       []py.Object // constants, by the indexes that Program uses
	Parts      []string
	ExtraRegs  []uint32
	Rows       []TracebackRow
	Chains     []*chain
	Operations []Operation // operations of a compiled graph and of the functions given to its operations
	NeedsHook  bool
	HandsOver  bool // the frame is resumed and takes over the references to its arguments
	Catches    bool // passes its native instruction's exception to a resume function
	// Watches is set if the frame is left to CPython because it inspects the interpreter. If NeedsHook is set too, the
	// functions that the frame calls are translated later.
	Watches     bool
	Rerun       bool // if the graph raises, the user's code may run instead
	Breaks      []*exc.Unsupported
	BreakLine   int
	NumOps      int
	Graph       *fxgraph.Graph
	GraphText   func() string
	GraphSizes  func() string // known facts about the graph's values, one a line
	Dynamic     func() string // symbols and conditions, one a line
	NumGraphs   int
	Inlined     []string
	Reused      int        // number of module calls replaced by the operations of an equal layer
	PythonOps   []PythonOp // the graph's Python operations, by callee
	ResumeNames []string
	Text        string // text of the guards
	Fixed       []FixedSize
	SizePlaces  []SizePlaces
	Exported    *Exported // set with Options.Exporting
	Nothing     bool      // there is nothing to capture
	Skipped     string    // reason why the whole frame is left to CPython
	Uncompiled  bool      // the graph was not passed to the frame's backend; see graph_history.go
	Account     *Account  // set with Options.Explain, unless nothing was captured
	// OnlyHere says what the translation relies on that may differ in other processes, apart from what guards check.
	OnlyHere variables.OnlyHere
	// Abandoned is set if there are Breaks, unless no earlier attempt is the reason for them.
	Abandoned *Abandoned
}

// TracebackRow maps the code units from Start to End-1 to user frames.
type TracebackRow struct {
	Start, End, Chain int
	// Drop marks the call of a resume function, and Graph the call of a compiled graph. Protected marks an operation
	// whose exceptions are caught by a handler in the user's code.
	Drop, Graph, Protected bool
	// An exception from outside (from a signal handler or another thread) may arrive in these code units. Place is the
	// index of the chain at which the user's code then raises that exception.
	Place int
}

// Operation is a node of the backend's graph, or of the graph of a function given to an operation. Chain is the index
// of the user's stack at the node. Outside is the number of frames of that stack that enclose the given function; it is
// 0 for a node of the backend's graph.
type Operation struct {
	Name           string
	Chain, Outside int
}

// chain is the user's stack at an operation. parent is the chain of the caller.
type chain struct {
	parent  *chain
	d       *decoded
	globals py.Object
	inst    *bytecode.Instruction
	depth   int
	step    int                         // step of the outermost frame
	locals  []variables.VariableTracker // variables of the outermost frame at this point
	shown   []ShownLocal
	// nth is the number of times that the instruction has already run since the last graph break; see
	// Codegen.numberOperations.
	nth int
	// done is set if the operation's effect is permanent. An exception from outside is then raised at once, and the
	// operation does not run a second time.
	done bool
}

// Nth returns how many times the chain's instruction has run before in this piece (the code between two graph breaks).
func (c *chain) Nth() int { return c.nth }

// Done reports whether the chain's operation must not run again. An exception from outside is then raised in its
// place.
func (c *chain) Done() bool { return c.done }

// Shown lists the variables that a traceback shows for the outermost frame.
func (c *chain) Shown() []ShownLocal { return c.outermost().shown }

func (c *chain) outermost() *chain {
	for c.parent != nil {
		c = c.parent
	}
	return c
}

// Levels lists the user frames of the chain, outermost first.
func (c *chain) Levels() []ChainLevel {
	out := make([]ChainLevel, c.depth)
	for k := c; k != nil; k = k.parent {
		out[k.depth-1] = ChainLevel{Code: k.d.object, Globals: k.globals, Lasti: k.inst.Offset * 2,
			Line: int(k.inst.Pos.Line)}
	}
	return out
}

// ChainLevel is one user frame: its code and globals, the byte offset of its instruction, and the line.
type ChainLevel struct {
	Code, Globals py.Object
	Lasti, Line   int
}

// frameAt returns the user's frame that is at inst, with the source position that messages show.
func (d *decoded) frameAt(inst *bytecode.Instruction) exc.Frame {
	pos := d.positionOf(inst)
	return exc.Frame{Name: d.code.Name, File: d.code.Filename, Line: int(pos.Line)}.At(pos.EndLine, pos.Col, pos.EndCol)
}

// positionOf returns the source position of an instruction, or of the nearest one before it that has one: the compiler
// gives none to the code that cleans up after `with`, `except` and `finally`.
func (d *decoded) positionOf(inst *bytecode.Instruction) bytecode.Position {
	if inst.Pos.Known() {
		return inst.Pos
	}
	for i := d.index[inst] - 1; i >= 0; i-- {
		if pos := d.code.Instructions[i].Pos; pos.Known() {
			return pos
		}
	}
	return bytecode.LinePosition(d.code.FirstLine)
}

// stack returns the chain in the form that package exc prints, innermost frame first.
func (c *chain) stack() []exc.Frame {
	var out []exc.Frame
	for k := c; k != nil; k = k.parent {
		out = append(out, k.d.frameAt(k.inst))
	}
	return out
}
