// Package translate runs a frame's bytecode symbolically: InstructionTranslator executes instructions on
// VariableTrackers, OutputGraph collects the graph, the guards, the effects and, at the end, the instructions
// of the transformed function.
//
// Translating has no effect outside itself. At a graph break, the translation restarts from the first
// instruction with one more entry in the SpeculationLog, and this time stops at the break: the rest of the
// frame becomes a resume function. The package contains no C; code objects, functions and resume callables are
// made through Installer.
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

// Frame is a call's input: code, globals, and the slots (arguments in localsplus order, then the closure's
// cells).
type Frame struct {
	Function, Code, Globals, Builtins py.Object
	Slots                             []py.Object
	NumArgs                           int
	Inner                             bool // called by optimized code, and served by the hook
	// Origin is set for a resumed frame: it is translated from the user's code, entered at an instruction with
	// a stack.
	Origin *Origin
	// loud holds the slots of a resumed frame whose destruction runs code. It is computed before anything reads
	// the slots; nil if it is not computed yet.
	loud map[int]bool
}

// Origin is the place where a resume function continues. Its parameters are the live locals, then the stack's
// values.
type Origin struct {
	Code   py.Object // the user's
	Target int       // index of the instruction at which it resumes
	// Params are the localsplus slots of the parameters that are locals; ^slot if the local is unbound, see
	// places.
	Params []int
	// Stack is the value stack from the bottom: 'v' a value (the next parameter), 'N' NULL, 'L' an
	// instruction's offset, 'X' the value saved by PUSH_EXC_INFO (the parameter is the exception being
	// handled), 'R' the resume function that continues after this one.
	Stack string
	// Computed are the parameters, by number, that each call recomputes: only their types are guarded.
	Computed []int
}

// unbound clears the slots of parameters whose locals are unbound.
func (o *Origin) unbound(slots []py.Object) {
	for i, local := range o.Params {
		if local < 0 {
			slots[i] = py.Object{}
		}
	}
}

// Options are the settings of one optimize() call that affect translation.
type Options struct {
	variables.Settings
	NoPython    bool
	TakesApart  bool // the backend traces operators with AOTAutograd
	FullGuards  bool // config.tensor_guards == "full", or a backend that takes whole graphs
	ReuseLayers bool // repeat an earlier layer for an equal one, see layers
	CheckTypes  bool // return values are checked where the user annotates them
	MaxSteps    int  // maximum number of instructions between operations, inlined ones included
	InlineDepth int
	Explain     bool   // the result records which instructions were captured
	Clock       *Clock // measures the translation; nil: not measured
	Steps       *Steps // is notified of executed code; may be nil
	// Allowed is a Python function that reports whether a code object may be translated or inlined
	// (godynamo._translator.bisect). Null allows all code.
	Allowed py.Object
	// TranslateEverything also transforms frames without a tensor, for tests of the translator on whole programs.
	TranslateEverything bool
}

// Backend turns the captured graph into runnable code. The eager backend is written inline, as instructions;
// others get the whole graph at once.
type Backend interface {
	// Inline reports whether EmitNode is used instead of Compile.
	Inline() bool
	// EmitNode writes one operation, which leaves its result on the stack.
	EmitNode(e NodeEmitter, n *fxgraph.Node) error
	// Compile compiles the graph and returns a callable from inputs to a sequence of outputs. whole: the graph
	// is correct only if the backend does not take operators apart.
	Compile(s *py.Scope, g *fxgraph.Graph, pool []py.Object, inputs []py.Object, whole bool) (py.Object, error)
	// TakesApart reports whether the backend is known to trace operators (Options.TakesApart). This may become known
	// only in Compile.
	TakesApart(s *py.Scope) (bool, error)
	Name() string
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
	// PoolObject returns a constant of the pool.
	PoolObject(index int) py.Object
}

// Installer makes CPython objects for a translation; pyhook implements it over the C core.
type Installer interface {
	// Decode reads a code object; consts are its constants, kept by the scope.
	Decode(s *py.Scope, code py.Object) (*bytecode.Raw, []py.Object, error)
	// NewCode builds a code object.
	NewCode(s *py.Scope, raw *bytecode.Raw, consts []py.Object) (py.Object, error)
	// NewCheck makes a check from a guard program, without a function. The scope keeps it alive.
	NewCheck(s *py.Scope, p *guards.Program, pool []py.Object) (Check, error)
	// Resume returns the callable for the rest of a frame; make creates its function if there is none yet.
	Resume(s *py.Scope, o *Origin, make func() (py.Object, error)) (py.Object, error)
}

// Check runs guards on slots, in a frame with these globals.
type Check interface {
	Holds(s *py.Scope, slots []py.Object, globals py.Object) (bool, error)
}

// Version is the Python version whose code is read and written.
var Version = bytecode.Version{Major: 3, Minor: 11}

// Result is a finished translation.
type Result struct {
	Function    py.Object // zero: nothing to capture, run the original
	Program     *guards.Program
	Pool        []py.Object // indexed by Program's constants
	Parts       []string
	ExtraRegs   []uint32
	Rows        []TracebackRow
	Chains      []*chain
	Operations  []Operation // of a whole graph, and of functions that operations take
	NeedsHook   bool
	HandsOver   bool // a resumed frame: it takes over the references to its arguments
	Catches     bool // it passes its native instruction's exception to a resume function
	Watches     bool // left to CPython: it inspects the interpreter; with NeedsHook its callees are translated later
	Rerun       bool // if the graph raises, the user's code may run instead
	Breaks      []*exc.Unsupported
	BreakLine   int
	NumOps      int
	Graph       *fxgraph.Graph
	GraphText   func() string
	GraphSizes  func() string // known facts about the graph's values, one line each
	NumGraphs   int
	Inlined     []string
	Reused      int        // module calls replaced by an equal layer's operations
	PythonOps   []PythonOp // Python operations of the graph, by callee
	ResumeNames []string
	Text        string   // of the guards
	Nothing     bool     // nothing to capture
	Skipped     string   // why the whole frame is left to CPython
	Account     *Account // with Options.Explain; nil if nothing was captured
}

// TracebackRow maps the code units start .. end-1 to user frames.
type TracebackRow struct {
	Start, End, Chain int
	// Drop: the call of a resume function. Graph: the call of a compiled graph. Protected: an operation whose
	// exceptions a handler in the user's code catches.
	Drop, Graph, Protected bool
	// Place is the chain at which the user's code raises an exception from outside that arrives in these units.
	Place int
}

// Operation is a node of the backend's graph, or of a graph that an operation takes as a function, with the index of
// its chain. Outside is the number of levels of the chain that are outside the function; 0 for the backend's graph.
type Operation struct {
	Name           string
	Chain, Outside int
}

// chain is the user's stack at an operation. Each chain points to its caller's.
type chain struct {
	parent  *chain
	code    py.Object
	globals py.Object
	name    string
	file    string
	inst    *bytecode.Instruction
	depth   int
	step    int                         // of the outermost frame
	locals  []variables.VariableTracker // the outermost frame's at this point
	shown   []ShownLocal
	nth     int  // how often the instruction has run before this operation; see Codegen.numberOperations
	done    bool // the operation's effect is permanent: an exception from outside is raised instead of a second run
}

// Nth returns how often the chain's instruction runs earlier in the piece.
func (c *chain) Nth() int { return c.nth }

// Done reports whether an exception from outside is raised instead of the chain's operation, which must not run
// again.
func (c *chain) Done() bool { return c.done }

// Shown lists the variables of the outermost frame that a traceback shows.
func (c *chain) Shown() []ShownLocal { return c.outermost().shown }

func (c *chain) outermost() *chain {
	for c.parent != nil {
		c = c.parent
	}
	return c
}

// Levels lists the chain outermost first.
func (c *chain) Levels() []ChainLevel {
	out := make([]ChainLevel, c.depth)
	for k := c; k != nil; k = k.parent {
		out[k.depth-1] = ChainLevel{Code: k.code, Globals: k.globals, Lasti: k.inst.Offset * 2,
			Line: int(k.inst.Pos.Line)}
	}
	return out
}

// ChainLevel is one user frame: its code, the byte offset of the instruction, the line.
type ChainLevel struct {
	Code, Globals py.Object
	Lasti, Line   int
}

// frameOf returns one level of the user's stack, at an instruction.
func frameOf(name, file string, inst *bytecode.Instruction) exc.Frame {
	pos := inst.Pos
	return exc.Frame{Name: name, File: file, Line: int(pos.Line)}.At(pos.EndLine, pos.Col, pos.EndCol)
}

// stack returns the chain as exc prints it, innermost first.
func (c *chain) stack() []exc.Frame {
	var out []exc.Frame
	for k := c; k != nil; k = k.parent {
		out = append(out, frameOf(k.name, k.file, k.inst))
	}
	return out
}
