package record

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/guards"
)

// sample returns a record that has something of everything.
func sample() *Record {
	code := Code{Name: "f", QualName: "A.f", Code: []byte{1, 2}, Names: []string{"x"}, Consts: []uint32{0},
		LocalsPlusNames: []string{"c"}, LocalsPlusKinds: []byte{opcode.CO_FAST_FREE}}
	rest := Code{Name: "r", Code: []byte{1, 2}, ArgCount: 3}
	return &Record{
		Objects: []Object{
			{Kind: KindPython, Text: "int", Data: []byte("3")},
			{Kind: KindRegister, Number: 1, Print: []byte("print"), Own: true},
			{Kind: KindPython, Text: "tuple", Items: []uint32{0, 1}},
			{Kind: KindResume, Number: 0},
			{Kind: KindPython, Text: "dict"},
			{Kind: KindGraph, Number: 0},
		},
		Graphs: []Graph{{Rows: 2, Several: 2, Changed: 2, OfModules: 2, Sizes: 2, Assumed: 2, Inputs: []int{0, -1}}},
		Resumes: []Resume{{Of: 1, Target: 3, Params: []int{0, ^1}, Stack: "vN",
			Function: Function{Name: "r", Code: rest}}},
		Program: Program{NumSlots: 1, NumRegs: 4, Nodes: []Node{{Op: 0}, {Op: 1, Dst: 3, A: 1}},
			Consts:  []Const{{Object: 2}, {Object: -1, Name: "name"}},
			Tensors: []Tensor{{Reg: 0, Fields: 3, Type: 1, Meta: Meta{Sizes: []int64{2}, Strides: []int64{1}}}},
			Sizes:   []Step{{Op: 1, N: -5}}, Parts: []string{"p"}, Files: []string{"f.py"}, Lines: []Line{{Line: 7}}},
		Function: &Function{Name: "f", Code: code, Closure: []uint32{3}},
		Extra:    []uint32{3}, Rows: []Row{{Start: 0, End: 2}}, Levels: []Level{{Code: 1, Globals: 4, Line: 7}},
		Chains:     []Chain{{Levels: []uint32{0}, Shown: []Shown{{Index: 1, Place: -1, Value: 2}}, Done: true}},
		Operations: []Operation{{Name: "add"}}, Flags: Flags{Rerun: true}, Info: 4, State: "state", Seed: []byte("s"),
		Devices: "cpu", Registered: [][2]uint32{{1, 2}}, Folded: [][3]uint32{{1, 2, 0}},
		Sizes: []SizePlace{{Of: 1, Names: []string{"x"}}},
		Files: []File{{Of: 1, Name: "f.py"}},
		Break: &Record{Objects: []Object{{Kind: KindPython, Text: "int"}},
			Program: Program{NumRegs: 1, Tensors: []Tensor{{Reg: 0}}}},
	}
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	data, err := sample().Encode()
	require.NoError(t, err)
	got, err := Decode(data)
	require.NoError(t, err)
	again, err := got.Encode()
	require.NoError(t, err)
	assert.Equal(t, data, again)
	assert.Equal(t, sample().Program, got.Program)
	assert.Equal(t, []int{0, ^1}, got.Resumes[0].Params)
}

func TestNumbersOutOfRangeAreErrors(t *testing.T) {
	for name, damage := range map[string]func(r *Record){
		"an object refers to a later one": func(r *Record) { r.Objects[2].Items[0] = 2 },
		"an unknown kind":                 func(r *Record) { r.Objects[0].Kind = 9 },
		"a register":                      func(r *Record) { r.Objects[1].Number = 4 },
		"a resume function":               func(r *Record) { r.Objects[3].Number = 1 },
		"the code of a resume function":   func(r *Record) { r.Resumes[0].Of = 6 },
		"a parameter that is missing":     func(r *Record) { r.Resumes[0].Params = []int{0} },
		"a value that is missing":         func(r *Record) { r.Resumes[0].Stack = "NN" },
		"an unknown kind of a value":      func(r *Record) { r.Resumes[0].Stack = "vx" },
		"a computed parameter":            func(r *Record) { r.Resumes[0].Computed = []int{3} },
		"the size of a parameter":         func(r *Record) { r.Resumes[0].Sizes = []int{-1} },
		"a cell that is missing":          func(r *Record) { r.Function.Closure = nil },
		"a free variable that is missing": func(r *Record) { r.Function.Code.LocalsPlusKinds = nil },
		"a constant of code":              func(r *Record) { r.Function.Code.Consts[0] = 6 },
		"a cell":                          func(r *Record) { r.Function.Closure[0] = 1 << 31 },
		"a constant of the guards":        func(r *Record) { r.Program.Consts[0].Object = 6 },
		"a negative constant":             func(r *Record) { r.Program.Consts[0].Object = -2 },
		"the type of a tensor":            func(r *Record) { r.Program.Tensors[0].Type = 6 },
		"a level":                         func(r *Record) { r.Chains[0].Levels[0] = 1 },
		"a shown variable":                func(r *Record) { r.Chains[0].Shown[0].Value = 6 },
		"a place of a row":                func(r *Record) { r.Rows[0].Place = 1 },
		"a class":                         func(r *Record) { r.Registered[0][1] = 6 },
		"a folded call":                   func(r *Record) { r.Folded[0][2] = 6 },
		"info":                            func(r *Record) { r.Info = 6 },
		"the code of a place":             func(r *Record) { r.Sizes[0].From = 6 },
		"a graph":                         func(r *Record) { r.Objects[5].Number = 1 },
		"the sizes of a graph":            func(r *Record) { r.Graphs[0].Sizes = 6 },
		"an input of a graph":             func(r *Record) { r.Graphs[0].Inputs[0] = 4 },
		"a negative input of a graph":     func(r *Record) { r.Graphs[0].Inputs[0] = -2 },
		"a file":                          func(r *Record) { r.Files[0].Of = 6 },
		"an object of a break":            func(r *Record) { r.Break.Objects[0].Kind = KindResume },
		"a register of a break":           func(r *Record) { r.Break.Program.Tensors[0].Reg = 1 },
	} {
		r := sample()
		damage(r)
		data, err := r.Encode()
		require.NoError(t, err)
		_, err = Decode(data)
		assert.Error(t, err, name)
	}
}

func TestMalformedListsAreErrors(t *testing.T) {
	nodes, lines, texts := Nodes{}, Lines{}, Texts{}
	text := func(text string, lengths ...byte) error {
		data, err := encoding.Marshal(joined{Lengths: lengths, Text: text})
		require.NoError(t, err)
		return texts.UnmarshalCBOR(data)
	}
	list := func(n int) []byte {
		data, err := encoding.Marshal(make([]byte, n))
		require.NoError(t, err)
		return data
	}
	for name, read := range map[string]func() error{
		"part of a node":        func() error { return nodes.UnmarshalCBOR(list(nodeSize + 1)) },
		"too many nodes":        func() error { return nodes.UnmarshalCBOR(list((maxItems + 1) * nodeSize)) },
		"part of a line":        func() error { return lines.UnmarshalCBOR(list(lineSize - 1)) },
		"no bytes":              func() error { return lines.UnmarshalCBOR([]byte{0xf5}) },
		"a text too long":       func() error { return text("a", 2, 0, 0, 0) },
		"a text without length": func() error { return text("a") },
		"part of a length":      func() error { return text("a", 1) },
		"half a character":      func() error { return text("ä", 1, 0, 0, 0, 1, 0, 0, 0) },
	} {
		assert.Error(t, read(), name)
	}
}

func TestAddressesBecomeNumbersAndBack(t *testing.T) {
	names := Names{Numbers: map[uint64]uint32{140547015606816: 1, 9988776655: 0}, IDs: []uint64{12345678, 87654321}}
	text := "___check_type_id(args, 140547015606816) and x == 140547015606817 and ___object(9988776655)"
	marked := names.Mark(text)
	assert.NotContains(t, marked, "140547015606816")
	got, err := names.Text(marked)
	require.NoError(t, err)
	assert.Equal(t, "___check_type_id(args, 87654321) and x == 140547015606817 and ___object(12345678)", got)
	for _, bad := range []string{"\x00", "\x001", "\x002\x01", "\x00-1\x01", "\x00x\x01"} {
		_, err := names.Text(bad)
		assert.Error(t, err, "%q", bad)
	}
}

func TestATensorFitsByTheFieldsThatAreCompared(t *testing.T) {
	was := Meta{KeySet: 1, ScalarType: 6, Sizes: []int64{2, 3}, Strides: []int64{3, 1}}
	all := guards.TensorFields(guards.TensorKeySet | guards.TensorDType | guards.TensorDevice |
		guards.TensorRequiresGrad | guards.TensorNDim | guards.TensorSizes | guards.TensorStrides)
	full := Tensor{Fields: all, StaticSizes: ^uint64(0), StaticStrides: ^uint64(0), Meta: was}
	assert.True(t, full.Fits(&was))
	for name, other := range map[string]Meta{
		"key set": {KeySet: 2, ScalarType: 6, Sizes: was.Sizes, Strides: was.Strides},
		"dtype":   {KeySet: 1, ScalarType: 7, Sizes: was.Sizes, Strides: was.Strides},
		"device":  {KeySet: 1, ScalarType: 6, DeviceType: 1, Sizes: was.Sizes, Strides: was.Strides},
		"grad":    {KeySet: 1, ScalarType: 6, RequiresGrad: true, Sizes: was.Sizes, Strides: was.Strides},
		"size":    {KeySet: 1, ScalarType: 6, Sizes: []int64{2, 4}, Strides: was.Strides},
		"stride":  {KeySet: 1, ScalarType: 6, Sizes: was.Sizes, Strides: []int64{1, 2}},
		"rank":    {KeySet: 1, ScalarType: 6, Sizes: []int64{2}, Strides: []int64{3}},
	} {
		assert.False(t, full.Fits(&other), name)
		none := Tensor{Meta: was}
		assert.True(t, none.Fits(&other), name)
	}
	free := Tensor{Fields: guards.TensorSizes, StaticSizes: 1, Meta: was}
	assert.True(t, free.Fits(&Meta{Sizes: []int64{2, 9}}), "a size that is a symbol")
}

func FuzzDecode(f *testing.F) {
	data, err := sample().Encode()
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Decode(data)
		if err != nil {
			return
		}
		names := Names{IDs: make([]uint64, len(r.Objects))}
		p, err := r.Program.Program(&names, func(int) int { return 0 })
		if err == nil {
			_ = p.Verify()
		}
		assert.NotContains(t, strings.Join(r.Program.Files, ""), "\xff")
	})
}
