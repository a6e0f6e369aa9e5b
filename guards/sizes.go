package guards

import (
	"fmt"
	"math"
	"slices"
)

// SizeOp is an operation of a condition on sizes: a row of kinds.table. SizeLoad reads a size or stride (a
// TensorPropertySource) from the tensor's memory, or an int from any other Source.
type SizeOp uint8

// SizeRel is the relation of a condition on sizes: a row of kinds.table.
type SizeRel uint8

// SizeInst is one operation of a SizeCond. A float is stored as the int64 of its bits.
type SizeInst struct {
	Op   SizeOp
	N    int64  // SizeConst: the constant, or the bits of a float
	Src  Source // SizeLoad: the place of the size or int
	Hint int64  // SizeLoad: the value in the translated call
	// Float says that a SizeConst is a float.
	Float bool
}

// SizeCond is a condition on sizes, strides and ints. Left and Right are postfix programs over int64. // and %
// are Python's. The condition does not hold if an operation overflows, if a divisor is zero, or if a loaded
// value is not an exact int (a bool is not) of 64 bits.
type SizeCond struct {
	Left, Right []SizeInst
	Rel         SizeRel
}

// maxSizeStack is the largest number of values on the stack of a condition. C has the same limit.
const maxSizeStack = 32

// ShapeEnv holds when cond does. Other guards must check that each int in cond is an int, and compare at least
// TensorNDim of each tensor in cond (see TensorMatch). The guard's place is that of the first value that cond loads
// from outside nn.Modules, or of its first value if all are inside.
func ShapeEnv(cond *SizeCond) Guard {
	var at Source
	for s := range cond.sources {
		if at == nil || isInside(at) && !isInside(s) {
			at = s
		}
	}
	if at == nil {
		return Guard{CreateFn: CreateShapeEnv, Args: Args{Cond: cond}} // malformed: GuardBuilder rejects it
	}
	text, _ := cond.text(nil)
	return on(at, CreateShapeEnv, text, Args{Cond: cond})
}

// isInside reports whether guards on the place may be left out.
func isInside(s Source) bool {
	return s.GuardSource() == SourcePolyfill || s.GuardSource().IsNNModule()
}

// sources calls do for the source of each load, in order, until do returns false. The receiver may be nil.
func (c *SizeCond) sources(do func(Source) bool) {
	if c == nil {
		return
	}
	for _, side := range [2][]SizeInst{c.Left, c.Right} {
		for _, inst := range side {
			if inst.Op == SizeLoad && inst.Src != nil && !do(inst.Src) {
				return
			}
		}
	}
}

// rewritten returns c with each load replaced by the result of f, or false if f returns false.
func (c *SizeCond) rewritten(f func(SizeInst) (SizeInst, bool)) (*SizeCond, bool) {
	out := &SizeCond{slices.Clone(c.Left), slices.Clone(c.Right), c.Rel}
	for _, side := range [2][]SizeInst{out.Left, out.Right} {
		for i, inst := range side {
			if inst.Op != SizeLoad {
				continue
			}
			var ok bool
			if side[i], ok = f(inst); !ok {
				return nil, false
			}
		}
	}
	return out, true
}

// property returns the size or stride that s names, or nil if s is another kind of place.
func property(s Source) *TensorPropertySource {
	for isFamily(s) {
		s = s.Base()
	}
	p, _ := s.(*TensorPropertySource)
	return p
}

// SizeStep is one step of the conditions of a Program. The steps of a condition are those of Left, those of
// Right and the relation, whose Op is numSizeOps plus the SizeRel.
type SizeStep struct {
	Op  SizeOp
	Dim uint8  // of a size or stride: the dimension
	Reg uint32 // of a load: the register that holds the tensor or the int
	N   int64  // the constant, or the value that a load had in the translated call
}

// relation returns the relation of the step, or false if the step is an operation.
func (s SizeStep) relation() (SizeRel, bool) {
	return SizeRel(s.Op - numSizeOps), s.Op >= numSizeOps && s.Op < numSizeOps+numSizeRels
}

// arity returns the number of values that the operation takes from the stack.
func (o SizeOp) arity() int {
	switch {
	case o < SizeAdd:
		return 0
	case o >= SizeFloat:
		return 1
	}
	return 2
}

// apply returns the result of an operation on two values, or false if there is none in 64 bits.
func (o SizeOp) apply(a, b int64) (int64, bool) {
	switch o {
	case SizeAdd:
		return a + b, (a+b > a) == (b > 0)
	case SizeSub:
		return a - b, (a-b < a) == (b > 0)
	case SizeMul:
		if a == 0 || b == 0 {
			return 0, true
		}
		return a * b, (a != -1 || b != math.MinInt64) && (b != -1 || a != math.MinInt64) && a*b/b == a
	case SizeFloorDiv:
		if b == 0 || a == math.MinInt64 && b == -1 {
			return 0, false
		}
		q := a / b
		if a%b != 0 && (a < 0) != (b < 0) {
			q--
		}
		return q, true
	case SizeMod:
		if b == 0 {
			return 0, false
		}
		rest := a % b
		if rest != 0 && (rest < 0) != (b < 0) {
			rest += b
		}
		return rest, true
	case SizeMax:
		return max(a, b), true
	case SizeMin:
		return min(a, b), true
	}
	return o.applyFloat(a, b)
}

// holds reports whether a and b are in the relation.
func (r SizeRel) holds(a, b int64) bool {
	switch r {
	case SizeEQ:
		return a == b
	case SizeNE:
		return a != b
	case SizeGE:
		return a >= b
	case SizeGT:
		return a > b
	case SizeLE:
		return a <= b
	case SizeLT:
		return a < b
	}
	return false
}

// condition writes the steps and the node of a condition. The tensors and ints are in registers already, since only
// nodes that read sizes may follow the tensor check.
func (e *emitter) condition(c *SizeCond) error {
	first := len(e.program.Sizes)
	for _, side := range [2][]SizeInst{c.Left, c.Right} {
		for _, inst := range side {
			step, err := e.sizeStep(inst)
			if err != nil {
				return err
			}
			e.program.Sizes = append(e.program.Sizes, step)
		}
	}
	e.program.Sizes = append(e.program.Sizes, SizeStep{Op: numSizeOps + SizeOp(c.Rel)})
	e.node(Node{Op: OpShapeEnv, A: uint32(first), B: uint32(len(e.program.Sizes) - first)})
	return nil
}

func (e *emitter) sizeStep(inst SizeInst) (SizeStep, error) {
	if inst.Op != SizeLoad {
		return SizeStep{Op: inst.Op, N: inst.N}, nil
	}
	step, place := SizeStep{Op: SizeLoad, N: inst.Hint}, inst.Src
	if p := property(inst.Src); p != nil {
		step.Op = sizeLoadSize
		if p.Property == TensorStride {
			step.Op = sizeLoadStride
		}
		if p.Dim < 0 || p.Dim >= maxTensorDims {
			return step, fmt.Errorf("guards: %s: no such dimension", p.Name())
		}
		step.Dim, place = uint8(p.Dim), p.Base()
	}
	reg, ok := e.regs[place.Name()]
	if !ok {
		return step, fmt.Errorf("guards: a condition reads %s, which no guard checks", inst.Src.Name())
	}
	step.Reg = reg
	return step, nil
}

// maxTensorDims bounds Dim. C checks that the tensor has the dimension.
const maxTensorDims = 64
