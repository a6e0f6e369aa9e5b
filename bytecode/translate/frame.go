// Package translate runs a frame's bytecode symbolically: InstructionTranslator turns instructions into VariableTrackers,
// OutputGraph collects the graph, the guards, the effects and, in the end, the instructions of the transformed function.
//
// Translating has no effect outside itself. Where the frame must be split, the translation starts again from the first
// instruction with one more entry in the SpeculationLog, and this time stops there: the rest of the frame becomes a resume
// function. The package writes no C; code objects, functions and resume callables are made through Installer.
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

// Frame is what a call brings: code, globals, and the slots (arguments in localsplus order, then the closure's cells).
type Frame struct {
	Function, Code, Globals, Builtins py.Object
	Slots                             []py.Object
	NumArgs                           int
	Inner                             bool // called by what is optimized, and served by the hook
	// Origin is set for the rest of a frame: it is translated from the user's own code, entered at a place with a stack.
	Origin *Origin
	// loud are the slots of such a rest whose end runs code, found before anything has looked into them; nil: not asked yet.
	loud map[int]bool
}

// Origin says what a resume function stands for. Its parameters are the live locals, then the values of the stack.
type Origin struct {
	Code   py.Object // the user's
	Target int       // index of the instruction it goes on with
	// Params are the localsplus slots of the parameters that are locals; ^slot for one that is not bound, see places.
	Params []int
	// Stack is the value stack from the bottom: 'v' a value (the next parameter), 'N' NULL, 'L' an instruction's offset, 'X' what
	// PUSH_EXC_INFO saved (the parameter is the exception that is being handled).
	Stack string
	// Computed are the parameters, by number, that each call computes anew: nothing is guarded but their types.
	Computed []int
}

// unbound empties the slots of parameters whose locals are not bound.
func (o *Origin) unbound(slots []py.Object) {
	for i, local := range o.Params {
		if local < 0 {
			slots[i] = py.Object{}
		}
	}
}

// Options are the settings of one optimize() call that translating depends on.
type Options struct {
	variables.Settings
	NoPython    bool
	TakesApart  bool // the backend traces operators down to what they are made of
	FullGuards  bool // config.tensor_guards == "full", or a backend that takes whole graphs
	ReuseLayers bool // an equal layer is what an earlier one was, see layers
	CheckTypes  bool // what they return is checked where the program annotates it
	MaxSteps    int  // instructions from one operation to the next, inlined ones included
	InlineDepth int
	Explain     bool   // the result says what was captured, instruction by instruction
	Clock       *Clock // measures the translation; nil: nobody asks
	Steps       *Steps // is told what is run through; nil: nobody asks
	// Allowed tells of a code object whether it may be translated or inlined (godynamo._translator.bisect); null: everything may.
	Allowed py.Object
	// TranslateEverything: frames without a tensor are transformed too, for tests of the translator against whole programs.
	TranslateEverything bool
}

// Backend turns the captured graph into something that runs. The eager one is written inline, as instructions; others get the
// whole graph at once.
type Backend interface {
	// Inline tells whether EmitNode is to be used instead of Compile.
	Inline() bool
	// EmitNode writes one operation; the result is left on the stack.
	EmitNode(e NodeEmitter, n *fxgraph.Node) error
	// Compile hands the graph over and returns what runs it: called with the inputs, it returns a sequence of the outputs. whole: the graph
	// is right only where the backend does not take operators apart.
	Compile(s *py.Scope, g *fxgraph.Graph, pool []py.Object, inputs []py.Object, whole bool) (py.Object, error)
	// TakesApart reports whether the backend traces operators (Options.TakesApart), as far as is known now: Compile may find it out.
	TakesApart(s *py.Scope) (bool, error)
	Name() string
}

// NodeEmitter is the part of the code generator an inline backend writes to.
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
	// PoolText is the printed form of a constant.
	PoolObject(index int) py.Object
}

// Installer makes CPython objects of what a translation yields; pyhook implements it over the C core.
type Installer interface {
	// Decode reads a code object; consts are its constants, kept by the scope.
	Decode(s *py.Scope, code py.Object) (*bytecode.Raw, []py.Object, error)
	// NewCode builds a code object.
	NewCode(s *py.Scope, raw *bytecode.Raw, consts []py.Object) (py.Object, error)
	// NewCheck makes a check of a program, without a function behind it; the scope keeps it.
	NewCheck(s *py.Scope, p *guards.Program, pool []py.Object) (Check, error)
	// Resume returns the callable for the rest of a frame; make yields its function when there is none yet.
	Resume(s *py.Scope, o *Origin, make func() (py.Object, error)) (py.Object, error)
}

// Check runs guards on slots, in a frame with these globals.
type Check interface {
	Holds(s *py.Scope, slots []py.Object, globals py.Object) (bool, error)
}

// Version of the Python whose code is read and written.
var Version = bytecode.Version{Major: 3, Minor: 11}

// Result is a finished translation.
type Result struct {
	Function    py.Object // zero: nothing to capture, run the original
	Program     *guards.Program
	Pool        []py.Object // what Program's constants index
	Parts       []string
	ExtraRegs   []uint32
	Rows        []TracebackRow
	Chains      []*chain
	Operations  []Operation // of a graph handed over whole, and of functions that operations are given
	NeedsHook   bool
	HandsOver   bool // the rest of a frame: it takes over the references to its arguments
	Catches     bool // it hands what its native instruction raises to a resume function
	Watches     bool // left to CPython, and looks at the interpreter: with NeedsHook its callees are translated later
	Rerun       bool // when the graph raises, the user's own code may run instead
	Breaks      []*exc.Unsupported
	BreakLine   int
	NumOps      int
	Graph       *fxgraph.Graph
	GraphText   func() string
	GraphSizes  func() string // what is known of the graph's values, a line each
	NumGraphs   int
	Inlined     []string
	Reused      int        // calls of modules that an equal one's operations stand for
	PythonOps   []PythonOp // Python operations of the graph, by callee
	ResumeNames []string
	Text        string   // of the guards
	Nothing     bool     // nothing to capture
	Skipped     string   // why the whole frame is left to CPython
	Account     *Account // with Options.Explain; nil where nothing was captured
}

// TracebackRow says which user frames the code units start .. end-1 stand for.
type TracebackRow struct {
	Start, End, Chain int
	// Drop: the call of a resume function. Graph: of a compiled graph. Protected: an operation whose exception has a handler in
	// the user's code.
	Drop, Graph, Protected bool
	// Place is the chain where the user's own code raises what came from outside while this ran.
	Place int
}

// Operation is a node of the graph that the backend was given, or of a graph that an operation was given as a function, and the index of its
// chain. Outside: how many levels of the chain are not the function's; 0 for the backend's graph.
type Operation struct {
	Name           string
	Chain, Outside int
}

// chain is the user's stack at an operation: outermost first.
type chain struct {
	parent  *chain
	code    py.Object
	globals py.Object
	name    string
	file    string
	inst    *bytecode.Instruction
	depth   int
	step    int                         // of the outermost frame
	locals  []variables.VariableTracker // the outermost frame's there
	shown   []ShownLocal
	nth     int  // how often the instruction runs before it is this operation's; see Codegen.numberOperations
	done    bool // what it leaves behind stays, so it does not run again before an exception from outside is raised
}

// Nth is how often the chain's instruction runs before, in the piece.
func (c *chain) Nth() int { return c.nth }

// Done reports whether an exception from outside is raised in place of the chain's operation, which must not run again.
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
		out[k.depth-1] = ChainLevel{Code: k.code, Globals: k.globals, Lasti: k.inst.Offset * 2, Line: int(k.inst.Pos.Line)}
	}
	return out
}

// ChainLevel is one user frame: its code, the byte offset of the instruction, the line.
type ChainLevel struct {
	Code, Globals py.Object
	Lasti, Line   int
}

// frameOf is a level of the user's stack, at an instruction.
func frameOf(name, file string, inst *bytecode.Instruction) exc.Frame {
	pos := inst.Pos
	return exc.Frame{Name: name, File: file, Line: int(pos.Line)}.At(pos.EndLine, pos.Col, pos.EndCol)
}

// stack is the chain as exc prints it, innermost first.
func (c *chain) stack() []exc.Frame {
	var out []exc.Frame
	for k := c; k != nil; k = k.parent {
		out = append(out, frameOf(k.name, k.file, k.inst))
	}
	return out
}
