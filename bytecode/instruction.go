// Package bytecode represents CPython code objects as data. It decodes them into one dialect of instructions,
// analyzes and edits them, and lowers them for a given Python version. It holds no Python object and needs no
// CPython.
//
// The dialect is the instruction set of CPython 3.11, with what later versions add, and without the parts that exist
// only for the interpreter's layout:
//
//	EXTENDED_ARG, CACHE   removed; Arg is the whole argument, and lowering writes both again
//	PRECALL               removed; lowering writes one before each CALL of 3.11
//	jumps                 have a Target instead of a distance, and one opcode instead of one per direction:
//	                      JUMP, POP_JUMP_IF_FALSE, POP_JUMP_IF_TRUE, POP_JUMP_IF_NONE, POP_JUMP_IF_NOT_NONE
//	LOAD_ATTR             LOAD_METHOD, where a flag of 3.12's LOAD_ATTR asks for a method
//	COMPARE_OP            has the comparison as its Arg, without the bits for specialized forms and for bools
//	LOAD_FAST_LOAD_FAST   and the like of 3.13 are two instructions; lowering joins them again
//	TO_BOOL               may be missing where a conditional jump or UNARY_NOT needs a bool; lowering adds it
//	KW_NAMES, CALL        also for 3.13's LOAD_CONST, CALL_KW
//	FORMAT_VALUE          also for 3.13's FORMAT_SIMPLE and FORMAT_WITH_SPEC, which CONVERT_VALUE may precede
//	MAKE_FUNCTION         may have flags in code for 3.13, which has a SET_FUNCTION_ATTRIBUTE for each
//	CALL_INTRINSIC_1, _2  replaced by an opcode for each intrinsic
//	BINARY_SUBSCR         also for 3.14's BINARY_OP of NB_SUBSCR
//	BEFORE_WITH 1         for 3.14's COPY, LOAD_SPECIAL __exit__, SWAP 2, SWAP 3, LOAD_SPECIAL __enter__, CALL: leaves
//	                      __exit__ and its self or NULL below the result; WITH_EXCEPT_START 1 expects both
//	CALL_FUNCTION_EX      has no NULL for missing keywords, which 3.14 pushes
//	LOAD_FAST             also for 3.14's LOAD_FAST_BORROW; lowering writes that where its basic block is unchanged
//	FOR_ITER              jumps to the instruction after END_FOR (and 3.13's POP_TOP, 3.14's POP_ITER); lowering adds
//	                      them if they are missing
//	exception table       replaced by a Handler at each instruction
//	line table            replaced by a Pos at each instruction
//
// Lower is the inverse of Decode: Lower(Decode(raw)) equals raw, byte for byte, for all code that CPython's compiler
// writes. (Only the stack size may be smaller, since CPython also counts the handler of an empty `try`.)
//
// Two pairs must stay adjacent when code is edited, because the interpreter looks at the next instruction: KW_NAMES
// and its CALL, and YIELD_VALUE and its RESUME (gen.throw() recognizes `yield from` and `await` by RESUME 2 or 3).
package bytecode

import (
	"errors"
	"fmt"

	"github.com/godynamo/godynamo/bytecode/opcode"
)

// Version is a Python version.
type Version struct{ Major, Minor int }

// String returns the version as "3.11".
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// ErrVersion is wrapped by every error about a Python version that has no opcode table.
var ErrVersion = errors.New("unsupported Python version")

// ErrMalformed is wrapped by every error about an invalid code object or instruction list.
var ErrMalformed = errors.New("malformed code")

// ErrNoSuchOpcode is wrapped, with ErrMalformed, by the error about an opcode that the version does not have. Each
// table is made by its interpreter, so the code object is to blame, and CPython raises SystemError where it runs.
// Some versions' PyCode_GetCode shows such an opcode as CACHE.
var ErrNoSuchOpcode = fmt.Errorf("%w: no such opcode", ErrMalformed)

// malformed returns an error that wraps ErrMalformed.
func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// tableFor returns the opcode table of a version.
func tableFor(v Version) (*opcode.Table, error) {
	if t := opcode.For(v.Major, v.Minor); t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%w: %v", ErrVersion, v)
}

// Position is a place in the source file. Lines count from 1, except that the first instruction of a module has line 0.
// Columns count from 0, in UTF-8 bytes. -1 means unknown. Both NoPosition and the zero Position mean that an
// instruction has no place in the source.
type Position struct{ Line, EndLine, Col, EndCol int32 }

// NoPosition is the Position of an instruction without a place in the source.
var NoPosition = Position{-1, -1, -1, -1}

// Known reports whether the position has at least a line.
func (p Position) Known() bool { return p.Line >= 0 && p != Position{} }

// LinePosition returns a position with a line and no columns.
func LinePosition(line int) Position { return Position{int32(line), int32(line), -1, -1} }

// Raw is a code object in CPython's form. The caller keeps its constants, which are identified by an index below
// NumConsts. The package does not write to the slices. Decode returns a Code that shares the strings and the Names
// slice with its Raw; Lower returns a Raw that shares them with its Code. The package keeps no other reference to
// either of them.
type Raw struct {
	Name, QualName, Filename        string
	Code, LineTable, ExceptionTable []byte
	Flags, FirstLine                int
	ArgCount                        int // number of positional parameters, including positional-only ones
	PosOnlyArgCount                 int
	KwOnlyArgCount                  int
	StackSize                       int
	NumConsts                       int
	Names, LocalsPlusNames          []string
	LocalsPlusKinds                 []byte // opcode.CO_FAST_*
}

// NumFree returns the number of free variables. A function of the code needs a cell for each.
func (r *Raw) NumFree() int {
	n := 0
	for _, kind := range r.LocalsPlusKinds {
		if kind&opcode.CO_FAST_FREE != 0 {
			n++
		}
	}
	return n
}

// Instruction is one instruction of the dialect. Instructions refer to each other by pointer. An instruction belongs
// to one Code and occurs once in its list.
type Instruction struct {
	Op opcode.Op
	// Arg depends on the opcode. It is the index of a constant, the index of a name, a slot, or a count. For
	// LOAD_GLOBAL the index is shifted left by one, and bit 0 pushes NULL. For
	// LOAD_SUPER_ATTR it is shifted by two; bit 0 pushes a method, bit 1 says that the call had arguments. For jumps
	// Arg is 0.
	Arg int

	Target *Instruction // target of a jump; nil for other instructions
	// From is where the loop that an END_ASYNC_FOR of 3.14 ends takes its next value; nil elsewhere. It is what
	// sys.monitoring reports; nothing jumps.
	From *Instruction
	// Offset is the place of the instruction itself, not of the EXTENDED_ARGs before it. It counts code units of two
	// bytes in the code that was decoded or, after Lower, in the written code. It is -1 if the instruction was never
	// in such code.
	Offset int
	Pos    Position
	// NoInterrupt is set for a JUMP in `await` or `yield from`: its backward form does not check the eval breaker.
	NoInterrupt bool
	Handler     *ExceptionRegion // innermost exception-table region that covers the instruction, or nil

	// extended is the number of EXTENDED_ARGs that a jump had in the decoded code. Lower writes at least that many: two
	// jumps over each other may each be long only because the other is, and CPython's compiler leaves them so.
	extended  uint8
	joined    bool  // one instruction of the decoded code does this one and the next
	borrowed  bool  // a LOAD_FAST that took no reference of its own in the decoded code
	bare      bool  // the decoded code has no handler here (coverTests)
	makesBool bool  // a COMPARE_OP whose decoded form has Table.CompareBool
	order     int32 // 1 + the place in the decoded code; 0 for an instruction that was not decoded
	index     int32 // for temporary use: each analysis sets it to the position in Code.Instructions
}

// New returns an instruction that is in no Code yet and has no place in the source.
func New(op opcode.Op, arg int) *Instruction {
	return &Instruction{Op: op, Arg: arg, Offset: -1, Pos: NoPosition}
}

// NewJump returns a jump to target. The jump is in no Code yet and has no place in the source.
func NewJump(op opcode.Op, target *Instruction) *Instruction {
	return &Instruction{Op: op, Target: target, Offset: -1, Pos: NoPosition}
}

// At sets the instruction's place in the source and returns the instruction.
func (inst *Instruction) At(pos Position) *Instruction {
	inst.Pos = pos
	return inst
}

// String returns the opcode and the argument: "LOAD_FAST 1". For a jump it shows the target's offset.
func (inst *Instruction) String() string {
	switch {
	case inst.Target != nil:
		return fmt.Sprintf("%v to %d", inst.Op, inst.Target.Offset)
	case !inst.showsArg():
		return inst.Op.String()
	}
	return fmt.Sprintf("%v %d", inst.Op, inst.Arg)
}

// IsJump reports whether the instruction has a target.
func (inst *Instruction) IsJump() bool { return inst.Op.ArgKind() == opcode.ArgJump }

// ExceptionRegion is one row of the exception table. All instructions in a row share one pointer. If regions nest, an
// instruction refers only to the innermost region, since CPython uses only one row. The outer handler gets its
// exceptions from the inner handler's code, which the outer region covers.
type ExceptionRegion struct {
	Target *Instruction // the handler's first instruction
	// Depth is the height to which CPython pops the value stack before the handler runs. With DepthAtEntry, Lower
	// uses the height before the region's first instruction. This is correct if control enters the region there.
	Depth int
	// Lasti is set if the raising instruction's offset is pushed below the exception. RERAISE restores that offset.
	Lasti bool
	// Hidden is set by Decode for handlers that only 3.12 has and that do nothing that a program sees: the one that
	// restores the variables which an inlined comprehension has saved, and CLEANUP_THROW.
	Hidden bool
}

// Block returns the innermost region around the instruction whose handler is not hidden, or nil.
func (inst *Instruction) Block() *ExceptionRegion {
	r := inst.Handler
	for r != nil && r.Hidden {
		r = r.Target.Handler
	}
	return r
}

// DepthAtEntry is a value of ExceptionRegion.Depth. It means the stack's height at the region's first instruction.
const DepthAtEntry = -1

// HandlerDepth returns the stack height at the handler's first instruction. CPython pops the stack down to Depth,
// then pushes the offset (with Lasti) and the exception.
func (r *ExceptionRegion) HandlerDepth() int {
	if r.Lasti {
		return r.Depth + 2
	}
	return r.Depth + 1
}

// Local is one slot of the frame: a local variable, a cell or a free variable.
type Local struct {
	Name string
	// Kind is opcode.CO_FAST_LOCAL, CO_FAST_CELL or CO_FAST_FREE. A parameter that is a cell has both LOCAL and CELL.
	Kind byte
}

// Code is a decoded code object. Locals begins with the parameters: positional ones, keyword-only ones, *args,
// **kwargs.
type Code struct {
	Name, QualName, Filename string
	FirstLine, Flags         int
	ArgCount                 int // number of positional parameters, including positional-only ones
	PosOnlyArgCount          int
	KwOnlyArgCount           int
	StackSize                int // size in the decoded code; Lower computes a new one
	NumConsts                int
	Names                    []string
	Locals                   []Local // localsplus
	Instructions             []*Instruction
	// NullAbove is set if the NULL of a call without self is above the callable, and not below it (3.13).
	NullAbove bool
	// ClearsBackward is set if a frame that ends releases its last variable first (3.14).
	ClearsBackward bool
	// HandlerBefore has the meaning of opcode.Table.HandlerBefore.
	HandlerBefore bool
}

// NumArgSlots returns the number of parameters, including *args and **kwargs. A call fills their slots, which are the
// first Locals.
func (c *Code) NumArgSlots() int {
	n := c.ArgCount + c.KwOnlyArgCount
	if c.Flags&opcode.CO_VARARGS != 0 {
		n++
	}
	if c.Flags&opcode.CO_VARKEYWORDS != 0 {
		n++
	}
	return n
}

// Clone returns a deep copy with new instructions and regions. An instruction has the same index in both lists.
// Targets and handlers of the copy are inside the copy, but targets outside the list stay as they are.
func (c *Code) Clone() *Code {
	clone := *c
	clone.Names = append([]string(nil), c.Names...)
	clone.Locals = append([]Local(nil), c.Locals...)
	clone.Instructions = make([]*Instruction, len(c.Instructions))
	block := make([]Instruction, len(c.Instructions))
	number(c.Instructions)
	for i, inst := range c.Instructions {
		block[i] = *inst
		clone.Instructions[i] = &block[i]
	}
	move := func(target *Instruction) *Instruction {
		if target == nil || !isNumbered(c.Instructions, target) {
			return target
		}
		return &block[target.index]
	}
	regions := map[*ExceptionRegion]*ExceptionRegion{}
	for i := range block {
		inst := &block[i]
		inst.Target, inst.From = move(inst.Target), move(inst.From)
		if inst.Handler == nil {
			continue
		}
		region := regions[inst.Handler]
		if region == nil {
			region = &ExceptionRegion{}
			*region = *inst.Handler
			region.Target = move(region.Target)
			regions[inst.Handler] = region
		}
		inst.Handler = region
	}
	return &clone
}

// number sets each instruction's index to its position in list.
func number(list []*Instruction) {
	for i, inst := range list {
		inst.index = int32(i)
	}
}

// isNumbered reports whether list[inst.index] is inst.
func isNumbered(list []*Instruction, inst *Instruction) bool {
	return int(inst.index) < len(list) && list[inst.index] == inst
}
