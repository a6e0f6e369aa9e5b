// Package opcode holds the bytecode metadata of each supported CPython version: opcodes, their numbers, inline
// caches, jumps and operators. The tables are generated from dumps of CPython's modules `opcode` and `dis`
// (gen/dump.py, gen/main.go).
//
// Op is one enumeration for all versions. It has the real opcodes under CPython's names. It also has opcodes of the
// dialect to which package bytecode decodes: JUMP and POP_JUMP_IF_*, each for both directions; the intrinsics of
// CALL_INTRINSIC_*, each under its own name; and SEND_KEEP, the SEND that leaves the receiver to END_SEND. Code outside
// package bytecode sees only the dialect. A Table is for decoding and lowering.
package opcode

import "fmt"

//go:generate go run ./gen .

// Op is an opcode of any version or of the dialect. Its number is not CPython's, and may change from build to build.
// Files must store names, never numbers.
type Op uint16

// String returns CPython's name of the opcode.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("Op(%d)", uint16(o))
}

// ArgKind returns the kind of the opcode's argument.
func (o Op) ArgKind() ArgKind {
	if int(o) < len(argKinds) {
		return argKinds[o]
	}
	return ArgNone
}

// ArgKind is the kind of an opcode's argument.
type ArgKind uint8

const (
	ArgNone    ArgKind = iota // the opcode takes no argument
	ArgNumber                 // a count, a set of flags, or an operator
	ArgConst                  // index into co_consts
	ArgName                   // index into co_names; for LOAD_GLOBAL, shifted left by one
	ArgLocal                  // index into the localsplus slots
	ArgFree                   // index into the localsplus slots, of a cell or a free variable
	ArgCompare                // a CompareOp
	ArgJump                   // distance of a jump
)

// BinaryOp is the argument of BINARY_OP.
type BinaryOp int

// Symbol returns the operator as it is written in source code: "+", "+=".
func (b BinaryOp) Symbol() string {
	if b.Valid() {
		return binarySymbols[b]
	}
	return "?"
}

// String returns CPython's name of the operator, such as NB_ADD.
func (b BinaryOp) String() string {
	if b.Valid() {
		return binaryNames[b]
	}
	return fmt.Sprintf("BinaryOp(%d)", int(b))
}

// Valid reports whether CPython has the operator.
func (b BinaryOp) Valid() bool { return b >= 0 && int(b) < len(binarySymbols) }

// Inplace reports whether the operator belongs to an augmented assignment.
func (b BinaryOp) Inplace() bool { return b >= NB_INPLACE_ADD && b.Valid() }

// Plain returns the operator without the assignment: NB_ADD for NB_INPLACE_ADD.
func (b BinaryOp) Plain() BinaryOp {
	if b.Inplace() {
		return b - NB_INPLACE_ADD + NB_ADD
	}
	return b
}

// CompareOp is the argument of COMPARE_OP.
type CompareOp int

// Valid reports whether CPython has the comparison.
func (c CompareOp) Valid() bool { return c >= 0 && int(c) < len(compareSymbols) }

// Symbol returns the comparison as it is written in source code.
func (c CompareOp) Symbol() string {
	if c.Valid() {
		return compareSymbols[c]
	}
	return "?"
}

// String returns the comparison's symbol.
func (c CompareOp) String() string { return c.Symbol() }

// Form is one opcode of one version, for decoding. A number without an opcode has the zero Form.
type Form struct {
	Real        Op    // opcode with CPython's name
	Op          Op    // opcode of the dialect to which it is decoded
	Caches      uint8 // number of inline cache entries after the instruction, in code units
	Jump        bool  // the argument is a distance from the end of the instruction
	Backward    bool  // the distance is counted backward
	NoInterrupt bool  // the jump goes backward and does not check the eval breaker
	PointsBack  bool  // the argument is a distance backward, but nothing jumps
	Borrowed    bool  // loads a variable without a reference of its own
	// If LowBits is not 0, that many lowest bits of the argument choose the opcode of the dialect among Choices. The
	// bits above are its argument.
	LowBits uint8
	Choices []Op
	// Pair has the two instructions of the dialect to which an opcode that does both is decoded. The argument of the
	// first is in the bits above the lowest four, the argument of the second in these.
	Pair [2]Op
}

// Encoding is one opcode of the dialect, for lowering. It has CPython's number for each form, or -1 if the form does
// not exist.
type Encoding struct {
	Known bool
	// Forward is also the number of an opcode that does not jump.
	Forward, Backward, NoInterrupt int16
	// The argument is shifted left by LowBits, and has the value Low below.
	LowBits, Low uint8
	// Borrowed is the number of the form that takes no reference of its own, 0 if there is none.
	Borrowed uint8
}

// Table describes the bytecode of one Python version.
type Table struct {
	Major, Minor   int
	Magic          string   // magic number of the version's .pyc files, hexadecimal
	HaveArgument   int      // opcodes with lower numbers take no argument
	CompareArgs    [6]uint8 // argument of COMPARE_OP for each CompareOp
	CompareBool    int      // bit of COMPARE_OP's argument that makes the result a bool; 0 if there is none
	NullAbove      bool     // the NULL of a call without self is above the callable, and not below it
	LoopEnd        []Op     // instructions at which FOR_ITER points, and which it skips; none in 3.11
	LeastStack     int      // smallest stack size that the compiler writes
	ClearsBackward bool     // a frame that ends releases its last variable first
	MergesLines    bool     // neighbours with the same position share entries of the line table
	LineGaps       bool     // dis begins a line again after instructions without a line
	Subscript      int      // argument of BINARY_OP that makes it a BINARY_SUBSCR, -1 if that is an opcode
	// HandlerBefore is set if an exception of a Python function that an instruction calls without a C call in between
	// goes to the handler for the code unit before the instruction. CPython's compiler never begins a region there.
	HandlerBefore bool
	Forms         [256]Form
	Encodings     [NumOps]Encoding
}

// For returns the table of a Python version, or nil if the version is not supported. Tables are constant.
func For(major, minor int) *Table {
	for _, t := range tables {
		if t.Major == major && t.Minor == minor {
			return t
		}
	}
	return nil
}

// Truth reports whether conditional jumps and UNARY_NOT need a bool on the stack, which TO_BOOL makes.
func (t *Table) Truth() bool { return t.Encodings[TO_BOOL].Known }

// FlagsKeywords reports whether CALL_FUNCTION_EX has an argument. Since 3.14 it always takes keywords, or NULL.
func (t *Table) FlagsKeywords() bool {
	return int(t.Encodings[CALL_FUNCTION_EX].Forward) >= t.HaveArgument
}

// Joined returns the number of the opcode that is two instructions in one, or -1 if the version has none. If borrowed
// is set, neither takes a reference.
func (t *Table) Joined(first, second Op, borrowed bool) int {
	for number := range t.Forms {
		if form := &t.Forms[number]; form.Pair == [2]Op{first, second} && form.Borrowed == borrowed {
			return number
		}
	}
	return -1
}
