package guards

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// valid is a small program that uses most operand classes.
func valid() *Program {
	return &Program{
		NumSlots: 1, NumRegs: 8, NumCaches: 2,
		Consts: []ConstUse{{Index: 0, Keep: KeepWeak}, {Index: -1, Name: "a"}, {Index: 1, Keep: KeepOwner}},
		Nodes: []Node{
			{Op: OpValid},
			{Op: OpTypeMatch, Src: 0, A: 0, Part: 1},
			{Op: OpAttr, Dst: 3, Src: 0, A: 1, B: 0, Part: 1},
			{Op: OpIDMatch, Src: 3, A: 2, Part: 1},
			{Op: OpDictGet, Dst: 4, Src: 1, A: 1, B: 1, Part: 1},
			{Op: OpConst, Dst: 5, A: 0, Part: 1},
			{Op: OpSame, Src: 3, A: 4, Part: 1},
			{Op: OpTensors, Flags: FlagState, A: 0, B: 1, Part: 2},
			{Op: OpShapeEnv, A: 0, B: 3, Part: 2},
			{Op: OpTensorSize, Dst: 6, Src: 3, A: 1, B: 0, Part: 2},
		},
		Tensors:   []TensorSpec{{Reg: 3, Fields: TensorAll}},
		Sizes:     []SizeStep{{Op: sizeLoadSize, Reg: 3}, {Op: SizeConst, N: 2}, {Op: numSizeOps + SizeOp(SizeGE)}},
		NumKept:   1,
		Parts:     []string{validText, "p", "t"},
		PartLines: make([]UserLine, 3),
		Extra:     []uint32{3, 5},
	}
}

// Row: S002-106
func TestVerifyRefusesEverythingCCouldNotTrust(t *testing.T) {
	require.NoError(t, valid().Verify())
	for name, spoil := range map[string]func(p *Program){
		"no nodes":                   func(p *Program) { p.Nodes = nil },
		"first is not VALID":         func(p *Program) { p.Nodes = p.Nodes[1:] },
		"VALID twice":                func(p *Program) { p.Nodes[1].Op = OpValid },
		"unknown operation":          func(p *Program) { p.Nodes[1].Op = numOps },
		"operation far out":          func(p *Program) { p.Nodes[1].Op = 255 },
		"no such constant":           func(p *Program) { p.Nodes[1].A = 3 },
		"constant may be gone":       func(p *Program) { p.Nodes[5].A = 2 },
		"name is weak":               func(p *Program) { p.Nodes[2].A = 0 },
		"read before written":        func(p *Program) { p.Nodes[1].Src = 3 },
		"register out of range":      func(p *Program) { p.Nodes[1].Src = 8 },
		"slot is written":            func(p *Program) { p.Nodes[2].Dst = 0 },
		"globals are written":        func(p *Program) { p.Nodes[2].Dst = 1 },
		"written twice":              func(p *Program) { p.Nodes[4].Dst = 3 },
		"written out of range":       func(p *Program) { p.Nodes[4].Dst = 8 },
		"cache of another node":      func(p *Program) { p.Nodes[4].B = 0 },
		"no such cache":              func(p *Program) { p.Nodes[4].B = 2 },
		"other register not written": func(p *Program) { p.Nodes[3] = Node{Op: OpSame, A: 4, Part: 1} },
		"TENSORS not last":           func(p *Program) { p.Nodes[6], p.Nodes[7] = p.Nodes[7], p.Nodes[6] },
		"tensors out of range":       func(p *Program) { p.Nodes[7].B = 2 },
		"tensors wrap around":        func(p *Program) { p.Nodes[7].A = 1<<32 - 1 },
		"tensor of no register":      func(p *Program) { p.Tensors[0].Reg = 60 },
		"parts go back":              func(p *Program) { p.Nodes[3].Part = 0 },
		"no such part":               func(p *Program) { p.Nodes[7].Part = 3 },
		"lines do not match":         func(p *Program) { p.PartLines = nil },
		"too few registers":          func(p *Program) { p.NumRegs = 2 },
		"too many registers":         func(p *Program) { p.NumRegs = maxRegs + 1 },
		"negative slots":             func(p *Program) { p.NumSlots = -3 },
		"negative caches":            func(p *Program) { p.NumCaches = -1 },
		"bad keep":                   func(p *Program) { p.Consts[0].Keep = 7 },
		"pool index below":           func(p *Program) { p.Consts[0].Index = -2 },
		"weak name":                  func(p *Program) { p.Consts[1].Keep = KeepWeak },
		"extra descends":             func(p *Program) { p.Extra = []uint32{5, 3} },
		"extra twice":                func(p *Program) { p.Extra = []uint32{3, 3} },
		"extra would be overwritten": func(p *Program) { p.Extra = []uint32{0} },
		"extra register not written": func(p *Program) { p.Extra = []uint32{7} },
		"unaligned slot offset":      func(p *Program) { p.Nodes[2] = Node{Op: OpSlot, Dst: 3, A: 1, B: 3, Part: 1} },
		"sizes ahead of TENSORS": func(p *Program) {
			p.Nodes = append(p.Nodes, p.Nodes[7])
			p.Nodes[7] = Node{Op: OpShapeEnv, B: 3, Part: 2}
		},
		"a node after sizes": func(p *Program) { p.Nodes = append(p.Nodes, Node{Op: OpNotNone, Part: 2}) },
		"steps out of range": func(p *Program) { p.Nodes[8].B = 4 },
		"steps wrap around":  func(p *Program) { p.Nodes[8].A = 1<<32 - 1 },
		"no steps":           func(p *Program) { p.Nodes[8].B = 0 },
		"no relation":        func(p *Program) { p.Nodes[8].B = 2 },
		"relation of one":    func(p *Program) { p.Nodes[8].A, p.Nodes[8].B = 1, 2 },
		"two relations":      func(p *Program) { p.Sizes[1].Op = numSizeOps },
		"no such step":       func(p *Program) { p.Sizes[2].Op = numSizeOps + numSizeRels },
		"sum of one":         func(p *Program) { p.Sizes[1].Op = SizeAdd },
		"size of no tensor":  func(p *Program) { p.Sizes[0].Reg = 5 },
		"size of any number of dimensions": func(p *Program) {
			p.Tensors = []TensorSpec{{Reg: 3, Fields: TensorAll &^ TensorNDim}}
		},
		"size without TENSORS":  func(p *Program) { p.Nodes = slices.Delete(p.Nodes, 7, 8) },
		"int of no register":    func(p *Program) { p.Sizes[0] = SizeStep{Op: SizeLoad, Reg: 9} },
		"dimension far out":     func(p *Program) { p.Sizes[0].Dim = maxTensorDims },
		"kept int of no tensor": func(p *Program) { p.Nodes[9].Src = 5 },
		"kept int twice": func(p *Program) {
			p.Nodes = append(p.Nodes, Node{Op: OpTensorStride, Dst: 7, Src: 3, Part: 2})
		},
		"no such kept int":   func(p *Program) { p.Nodes[9].B = 1 },
		"negative kept ints": func(p *Program) { p.NumKept = -1 },
		"unknown field of a function": func(p *Program) {
			p.Nodes[2] = Node{Op: OpFuncField, Dst: 3, A: uint32(numFuncFields), Part: 1}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := valid()
			spoil(p)
			assert.Error(t, p.Verify())
		})
	}
}

func TestOperationsAreNamedAsInTheTable(t *testing.T) {
	assert.Equal(t, "TYPE_MATCH", OpTypeMatch.String())
	assert.Equal(t, "OP_200", Op(200).String())
	assert.True(t, OpAttr.IsAccess())
	assert.False(t, OpTypeMatch.IsAccess())
	for op := Op(0); op < numOps; op++ {
		assert.NotEmpty(t, opTable[op].name)
	}
}

// FuzzGuardProgram checks that Verify and Eval take any bytes as a program without a panic, and that a
// program that Verify accepts runs on any frame.
func FuzzGuardProgram(f *testing.F) {
	encode := func(p *Program) []byte {
		var out []byte
		for _, n := range p.Nodes {
			out = append(out, byte(n.Op), n.Flags, byte(n.Dst), byte(n.Src), byte(n.Part))
			out = binary.LittleEndian.AppendUint16(out, uint16(n.A))
			out = binary.LittleEndian.AppendUint16(out, uint16(n.B))
		}
		return out
	}
	f.Add(uint8(1), uint8(8), uint8(2), []byte{0, 3}, encode(valid()))
	for op := Op(0); op < numOps; op++ {
		f.Add(uint8(2), uint8(8), uint8(1), []byte{4},
			encode(&Program{Nodes: []Node{{Op: OpValid}, {Op: op, Dst: 4, Src: uint32(op) % 4, A: 1}}}))
	}
	f.Fuzz(func(t *testing.T, slots, regs, caches uint8, extra, code []byte) {
		p := &Program{NumSlots: int(slots), NumRegs: int(regs), NumCaches: int(caches), Parts: []string{"a", "b", "c"},
			PartLines: make([]UserLine, 3), Tensors: []TensorSpec{{Reg: 0, Fields: TensorNDim}, {Reg: 3}}, NumKept: 2,
			Sizes: []SizeStep{{Op: sizeLoadSize}, {Op: SizeLoad, Reg: 3}, {Op: SizeMod},
				{Op: SizeConst, N: 2}, {Op: numSizeOps}, {Op: SizeConst}, {Op: SizeConst}, {Op: numSizeOps}}}
		p.Consts = []ConstUse{{Index: 0, Keep: KeepWeak}, {Index: -1, Name: "a"}, {Index: 1, Keep: KeepOwner},
			{Index: 2}, {Index: 3}, {Index: 99}}
		for i := 0; i+9 <= len(code) && i < 9*200; i += 9 {
			p.Nodes = append(p.Nodes, Node{Op: Op(code[i]), Flags: code[i+1], Dst: uint32(code[i+2]),
				Src:  uint32(code[i+3]),
				Part: uint32(code[i+4]), A: uint32(binary.LittleEndian.Uint16(code[i+5:])),
				B: uint32(binary.LittleEndian.Uint16(code[i+7:]))})
		}
		for _, reg := range extra {
			p.Extra = append(p.Extra, uint32(reg))
		}
		if p.Verify() != nil {
			return
		}
		w := newWorld()
		w.program = p
		w.pool = []Value{intType, two, keysTuple("a"), str("k")}
		w.globals.set(w.name("a"), two)
		objects := []Value{two, none, intType, someNN, someFunction, someModule, keysTuple("a"), dictOf(dictType, "a"),
			&pyCell{two},
			&pyRef{two}, &pyTensor{"Tensor", "1"}, &pySeq{iterType, []Value{two}}, nil}
		values := make([]Value, slots)
		for i := range values {
			values[i] = objects[(i+len(code))%len(objects)]
		}
		failed, ok := p.Eval(w, values)
		if ok != (failed == -1) || failed >= len(p.Nodes) {
			t.Fatalf("Eval: node %d, %v", failed, ok)
		}
	})
}
