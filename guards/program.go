package guards

import "fmt"

// Op is an operation of a guard program: a row of kinds.table.
type Op uint8

type operandClass uint8

const (
	operandNone operandClass = iota
	operandObject
	operandHeld
	operandName
	operandLiteral
	operandInt
	operandReg
	operandField
	operandOffset
	operandCache
	operandTensor
	operandCount
	operandStep
	operandKept
)

type opInfo struct {
	name    string
	access  bool
	a, b    operandClass
	failure string
}

// String returns the operation's name in kinds.table.
func (o Op) String() string {
	if o >= numOps {
		return fmt.Sprintf("OP_%d", uint8(o))
	}
	return opTable[o].name
}

// IsAccess reports whether the operation writes a register.
func (o Op) IsAccess() bool { return o < numOps && opTable[o].access }

// Node is one step of a program. C packs a node into 16 bytes and stores Part separately, since C reads it
// only after a failure.
type Node struct {
	Op    Op
	Flags uint8
	Dst   uint32 // register that an access node writes
	Src   uint32 // register read
	Part  uint32 // the condition of the guard text that the node belongs to, an index in Program.Parts
	A, B  uint32
}

// ConstUse is a constant of a program. Index is its index in the translation's pool. If Index is -1, the
// constant is the str Name, which is created and interned when the program is installed.
type ConstUse struct {
	Index int
	Keep  Keep
	Name  string
}

// TensorSpec is the check of one tensor, made by the TENSORS node at the end of a program.
type TensorSpec struct {
	Reg           uint32
	Fields        TensorFields
	StaticSizes   uint64
	StaticStrides uint64
	Example       Const
}

// Program is the code that C runs before a translation serves a call.
//
// Registers 0 .. NumSlots-1 are the frame's slots, NumSlots is the globals dict, NumSlots+1 the builtins dict. Access
// nodes write the other registers, each once and before it is read. An access node that fails (a missing attribute)
// fails like a check. The first node is VALID. A TENSORS node follows the checks. The nodes that read sizes or ints
// (TENSOR_SIZE, TENSOR_STRIDE, SHAPE_ENV) come after it and end the program.
type Program struct {
	Nodes     []Node
	NumSlots  int
	NumRegs   int
	NumCaches int
	Consts    []ConstUse
	Tensors   []TensorSpec
	Sizes     []SizeStep // the steps of the SHAPE_ENV nodes
	NumKept   int        // ints that the entry keeps, one for each TENSOR_SIZE, TENSOR_STRIDE or ITER_NUMBER node
	Parts     []string
	PartLines []UserLine
	// Kinds has one line per guard: the number of its part, its kind, and the family and name of its place;
	// for a tensor also the user's line and file.
	Kinds string
	// Extra lists the registers passed to the transformed function after the slots. It ascends, and Extra[i]
	// >= NumSlots+i.
	Extra []uint32
}

// The limits keep each operand far below the largest value of its field. A translation that exceeds them is
// left to CPython. An nn.Module takes some 8 to 20 registers and twice as many parts.
const (
	maxRegs  = 1 << 22 // C has 24 bits for a register
	maxParts = 1 << 24
	maxTail  = 1<<16 - 1 // nodes after the TENSORS node; C counts them in 16 bits
)

// Verify checks everything C relies on. A program that fails is never installed.
func (p *Program) Verify() error {
	if p.NumSlots < 0 || p.NumRegs < p.NumSlots+2 || p.NumRegs > maxRegs {
		return fmt.Errorf("guards: %d registers for %d slots", p.NumRegs, p.NumSlots)
	}
	if len(p.Parts) == 0 || len(p.Parts) > maxParts || len(p.PartLines) != len(p.Parts) {
		return fmt.Errorf("guards: %d parts with %d lines", len(p.Parts), len(p.PartLines))
	}
	if p.NumCaches < 0 || p.NumCaches > len(p.Nodes) {
		return fmt.Errorf("guards: %d caches for %d nodes", p.NumCaches, len(p.Nodes))
	}
	for i, c := range p.Consts {
		if c.Keep < KeepStrong || c.Keep > KeepOwner || c.Index < -1 || (c.Index == -1 && c.Keep != KeepStrong) {
			return fmt.Errorf("guards: constant %d: bad index %d or keep %d", i, c.Index, c.Keep)
		}
	}
	if len(p.Nodes) == 0 || p.Nodes[0].Op != OpValid {
		return fmt.Errorf("guards: a program starts with VALID")
	}
	if p.NumKept < 0 || p.NumKept > len(p.Nodes) {
		return fmt.Errorf("guards: %d ints kept for %d nodes", p.NumKept, len(p.Nodes))
	}
	v := verifier{p: p, written: make([]bool, p.NumRegs), caches: make([]bool, p.NumCaches),
		kept: make([]bool, p.NumKept), end: p.end()}
	if len(p.Nodes)-v.end > maxTail {
		return fmt.Errorf("guards: %d nodes after TENSORS", len(p.Nodes)-v.end)
	}
	for i := 0; i < p.NumSlots+2; i++ {
		v.written[i] = true
	}
	for i := range p.Nodes {
		if err := v.node(i, &p.Nodes[i]); err != nil {
			return fmt.Errorf("guards: node %d, %v: %w", i, p.Nodes[i].Op, err)
		}
	}
	return v.extra()
}

type verifier struct {
	p       *Program
	written []bool
	caches  []bool // whether a node uses the cache already; a cache belongs to one node
	kept    []bool // the same for kept ints
	end     int    // index of the first node after TENSORS; see Program.end
	part    uint32
}

// isLate reports whether the operation follows TENSORS.
func (o Op) isLate() bool { return o == OpTensorSize || o == OpTensorStride || o == OpShapeEnv }

// end returns the index of the first node after TENSORS, or the number of nodes if none follows it.
func (p *Program) end() int {
	end := len(p.Nodes)
	for end > 0 && p.Nodes[end-1].Op.isLate() {
		end--
	}
	return end
}

func (v *verifier) node(i int, n *Node) error {
	if n.Op >= numOps {
		return fmt.Errorf("unknown operation")
	}
	if int(n.Part) >= len(v.p.Parts) || n.Part < v.part {
		return fmt.Errorf("part %d after %d of %d", n.Part, v.part, len(v.p.Parts))
	}
	v.part = n.Part
	if (n.Op == OpValid) != (i == 0) {
		return fmt.Errorf("VALID stands first and only there")
	}
	if n.Op == OpTensors && i != v.end-1 {
		return fmt.Errorf("TENSORS stands last, ahead of sizes")
	}
	if n.Op.isLate() && i < v.end {
		return fmt.Errorf("sizes are read last")
	}
	if err := v.read(n.Src); err != nil {
		return err
	}
	if err := v.operand(n, opTable[n.Op].a, n.A); err != nil {
		return err
	}
	if err := v.operand(n, opTable[n.Op].b, n.B); err != nil {
		return err
	}
	if !n.Op.IsAccess() {
		return nil
	}
	if int(n.Dst) < v.p.NumSlots+2 || int(n.Dst) >= v.p.NumRegs || v.written[n.Dst] {
		return fmt.Errorf("register %d cannot be written here", n.Dst)
	}
	v.written[n.Dst] = true
	return nil
}

// read returns an error unless the register has been written. A frame without slots still has register 0,
// which then holds the globals.
func (v *verifier) read(reg uint32) error {
	if uint64(reg) >= uint64(v.p.NumRegs) || !v.written[reg] {
		return fmt.Errorf("register %d is read before it is written", reg)
	}
	return nil
}

func (v *verifier) operand(n *Node, class operandClass, x uint32) error {
	switch class {
	case operandObject, operandHeld, operandName, operandLiteral:
		if uint64(x) >= uint64(len(v.p.Consts)) {
			return fmt.Errorf("constant %d of %d", x, len(v.p.Consts))
		}
		keep := v.p.Consts[x].Keep
		if class == operandHeld && keep == KeepOwner || class >= operandName && keep != KeepStrong {
			return fmt.Errorf("constant %d is read but kept as %d", x, keep)
		}
	case operandReg:
		return v.read(x)
	case operandField:
		if x >= uint32(numFuncFields) {
			return fmt.Errorf("field %d", x)
		}
	case operandOffset:
		if x%8 != 0 || x > 1<<20 {
			return fmt.Errorf("offset %d", x)
		}
	case operandCache:
		if uint64(x) >= uint64(len(v.caches)) || v.caches[x] {
			return fmt.Errorf("cache %d is absent or another node's", x)
		}
		v.caches[x] = true
	case operandKept:
		if uint64(x) >= uint64(len(v.kept)) || v.kept[x] {
			return fmt.Errorf("kept int %d is absent or another node's", x)
		}
		v.kept[x] = true
		if n.Op == OpIterNumber {
			return nil
		}
		return v.dim(n.Src, n.A)
	case operandStep:
		if uint64(n.A)+uint64(n.B) > uint64(len(v.p.Sizes)) {
			return fmt.Errorf("steps %d+%d of %d", n.A, n.B, len(v.p.Sizes))
		}
		return v.steps(v.p.Sizes[n.A : n.A+n.B])
	case operandTensor:
		if uint64(n.A)+uint64(n.B) > uint64(len(v.p.Tensors)) {
			return fmt.Errorf("tensors %d+%d of %d", n.A, n.B, len(v.p.Tensors))
		}
		for _, t := range v.p.Tensors[n.A : n.A+n.B] {
			if err := v.read(uint32(t.Reg)); err != nil {
				return err
			}
		}
	}
	return nil
}

// dim returns an error unless the TENSORS node compares the number of dimensions of the tensor in the register. C
// checks that this number exceeds dim.
func (v *verifier) dim(reg, dim uint32) error {
	if dim >= maxTensorDims {
		return fmt.Errorf("dimension %d", dim)
	}
	if v.end > 0 {
		if n := v.p.Nodes[v.end-1]; n.Op == OpTensors {
			for _, t := range v.p.Tensors[n.A : n.A+n.B] {
				if t.Reg == reg && t.Fields&TensorNDim != 0 {
					return nil
				}
			}
		}
	}
	return fmt.Errorf("register %d is no tensor whose number of dimensions TENSORS compares", reg)
}

// steps checks the steps of one condition.
func (v *verifier) steps(steps []SizeStep) error {
	depth := 0
	for i, s := range steps {
		_, last := s.relation()
		if last != (i == len(steps)-1) || s.Op >= numSizeOps && !last {
			return fmt.Errorf("step %d: a condition ends with its only relation", i)
		}
		if last {
			if depth != 2 {
				return fmt.Errorf("a relation of %d values", depth)
			}
			return nil
		}
		if depth < s.Op.arity() {
			return fmt.Errorf("step %d: %d values are too few", i, depth)
		}
		if depth += 1 - s.Op.arity(); depth > maxSizeStack {
			return fmt.Errorf("step %d: %d values are too many", i, depth)
		}
		switch s.Op {
		case SizeLoad:
			if err := v.read(s.Reg); err != nil {
				return err
			}
		case sizeLoadSize, sizeLoadStride:
			if err := v.dim(s.Reg, uint32(s.Dim)); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("a condition has steps")
}

func (v *verifier) extra() error {
	for i, reg := range v.p.Extra {
		if err := v.read(uint32(reg)); err != nil {
			return fmt.Errorf("guards: extra value %d: %w", i, err)
		}
		if int(reg) < v.p.NumSlots+i || i > 0 && reg <= v.p.Extra[i-1] {
			return fmt.Errorf("guards: extra registers %v do not ascend from %d", v.p.Extra, v.p.NumSlots)
		}
	}
	return nil
}
