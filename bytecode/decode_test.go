package bytecode

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godynamo/godynamo/bytecode/opcode"
)

// checkDis compares the results of Disassemble and Decode with the listing that `dis` makes of the code object.
func checkDis(t testing.TB, d *dumped) {
	rows, err := Disassemble(&d.Raw, d.Version)
	require.NoError(t, err, "%v", d)
	require.Len(t, rows, len(d.Dis), "%v", d)
	byOffset := make(map[int]*DisInstruction, len(rows))
	for i := range rows {
		row := rows[i]
		byOffset[row.Offset] = &rows[i]
		row.Target = 0 // dis has the target in argval, which is not in the dump; is_jump_target checks it
		require.Equal(t, d.Dis[i], row, "%v: row %d", d, i)
	}
	code, err := Decode(&d.Raw, d.Version)
	require.NoError(t, err, "%v", d)
	table := opcode.For(d.Version.Major, d.Version.Minor)
	for i, inst := range code.Instructions {
		row := byOffset[2*inst.Offset]
		require.NotNil(t, row, "%v: instruction %d", d, i)
		require.Equal(t, row.Pos, inst.Pos, "%v: position of instruction %d", d, i)
		form := table.Forms[row.Opcode]
		if form.Pair[0] != opcode.INVALID {
			half := 0
			if i > 0 && code.Instructions[i-1].Offset == inst.Offset {
				half = 1
			}
			require.Equal(t, form.Pair[half], plainLoad(inst.Op))
			require.Equal(t, row.Arg>>(4-4*half)&15, inst.Arg, "%v: argument of instruction %d", d, i)
			continue
		}
		if form.LowBits > 0 {
			require.Contains(t, form.Choices, inst.Op)
		} else if inst.Op == opcode.LOAD_CLOSURE {
			require.Equal(t, table.Encodings[inst.Op], table.Encodings[form.Op])
		} else if unified := unified[form.Real]; unified != opcode.INVALID && inst.Op == unified {
			switch form.Real {
			case opcode.FORMAT_SIMPLE, opcode.FORMAT_WITH_SPEC:
				continue // the argument says which
			case opcode.BINARY_OP:
				require.Equal(t, table.Subscript, row.Arg)
				continue
			}
		} else if inst.Op == opcode.BEFORE_WITH && inst.Arg == 1 {
			require.Equal(t, opcode.CALL, form.Op)
			continue // TestDecode314 reads its parts
		} else {
			require.Equal(t, form.Op, inst.Op)
		}
		if inst.Target != nil {
			require.True(t, form.Jump)
			target := row.Target
			if inst.Op == opcode.FOR_ITER {
				target += 2 * len(table.LoopEnd)
			}
			found := targetRow(rows, target)
			if inst.Target.Op == opcode.BEFORE_WITH && inst.Target.Arg == 1 {
				require.Less(t, found.Offset, 2*inst.Target.Offset) // which is that of its last part
			} else if inst.Target.Op == opcode.CALL_FUNCTION_EX && found.OpName == "PUSH_NULL" {
				require.Equal(t, found.Offset+2, 2*inst.Target.Offset)
			} else {
				require.Equal(t, found.Offset, 2*inst.Target.Offset, "%v: target of instruction %d", d, i)
			}
		} else if form.LowBits > 0 {
			require.Equal(t, row.Arg>>form.LowBits, inst.Arg, "%v: argument of instruction %d", d, i)
		} else if inst.Op == opcode.COMPARE_OP {
			require.Equal(t, row.Arg&^table.CompareBool, int(table.CompareArgs[inst.Arg]),
				"%v: argument of instruction %d", d, i)
		} else if inst.From != nil {
			require.Equal(t, row.Offset+2-2*row.Arg, 2*inst.From.Offset)
		} else if version := d.Version; version != py314 || !addsFlag[inst.Op] {
			require.Equal(t, row.Arg, inst.Arg, "%v: argument of instruction %d", d, i)
		}
	}
}

// addsFlag has the opcodes without an argument in 3.14 that have a flag in the dialect.
var addsFlag = map[opcode.Op]bool{opcode.CALL_FUNCTION_EX: true, opcode.WITH_EXCEPT_START: true}

// unified maps opcodes of 3.13 and 3.14 to those to which unify decodes them, LOAD_CONST only before CALL_KW.
var unified = map[opcode.Op]opcode.Op{
	opcode.CALL_KW: opcode.CALL, opcode.LOAD_CONST: opcode.KW_NAMES,
	opcode.FORMAT_SIMPLE: opcode.FORMAT_VALUE, opcode.FORMAT_WITH_SPEC: opcode.FORMAT_VALUE,
	opcode.BINARY_OP: opcode.BINARY_SUBSCR,
}

// targetRow returns the row of the instruction that begins at a byte offset: the first row at or after the offset that
// is neither EXTENDED_ARG nor PRECALL, since Decode drops those.
func targetRow(rows []DisInstruction, offset int) *DisInstruction {
	for i := range rows {
		if rows[i].Offset >= offset && rows[i].OpName != "EXTENDED_ARG" && rows[i].OpName != "PRECALL" {
			return &rows[i]
		}
	}
	return nil
}

// Row: S002-37
func TestDisassembleEqualsDis(t *testing.T) {
	for _, d := range samples(t) {
		checkDis(t, d)
	}
}

// Row: S002-37
func TestDisassembleEqualsDisDump(t *testing.T) {
	path := os.Getenv(dumpEnv)
	if path == "" {
		t.Skip(dumpEnv + " names no dump; testdata/dump_code.py --dis writes one")
	}
	r := openDump(t, path)
	checked := 0
	for d := r.next(); d != nil; d = r.next() {
		if len(d.Dis) > 0 {
			checkDis(t, d)
			checked++
		}
	}
	if checked == 0 {
		t.Skip("the dump was made without --dis")
	}
	t.Logf("%d code objects", checked)
}

// Row: S002-38
func TestDecodeSeedInstructions(t *testing.T) {
	code := sampleCode(t, "seed_multiply")
	var text strings.Builder
	// co_consts of the function: docstring, 0, -1.
	Print(&text, code, func(i int) string { return []string{"None", "0", "-1"}[i] })
	const want = `seed_multiply (sample_constructs.py:6) args 2 stack 2
    6       0 RESUME                     0
    7       1 LOAD_FAST                  1 (b)
            2 LOAD_METHOD                0 (sum)
            3 CALL                       0
            4 LOAD_CONST                 1 (0)
            5 COMPARE_OP                 0 (<)
            6 POP_JUMP_IF_FALSE            to 11
    8       7 LOAD_FAST                  1 (b)
            8 LOAD_CONST                 2 (-1)
            9 BINARY_OP                  5 (*)
           10 STORE_FAST                 1 (b)
    9 >>   11 LOAD_FAST                  0 (a)
           12 LOAD_FAST                  1 (b)
           13 BINARY_OP                  5 (*)
           14 RETURN_VALUE
`
	assert.Equal(t, want, text.String())

	table := opcode.For(3, 11)
	seed := code.Instructions[7:10]
	assert.Equal(t, int16(124), table.Encodings[seed[0].Op].Forward)
	assert.Equal(t, int16(100), table.Encodings[seed[1].Op].Forward)
	assert.Equal(t, int16(122), table.Encodings[seed[2].Op].Forward)
	assert.Equal(t, opcode.NB_MULTIPLY, opcode.BinaryOp(seed[2].Arg))
}

// op311 returns code units for a hand-written code object.
func op311(units ...any) []byte {
	var out []byte
	for i := 0; i < len(units); i += 2 {
		name, arg := units[i].(string), units[i+1].(int)
		for number, form := range opcode.For(3, 11).Forms {
			if form.Real != opcode.INVALID && form.Real.String() == name {
				out = append(out, byte(number), byte(arg))
				break
			}
		}
	}
	return out
}

func TestDecodeRefusesMalformedCode(t *testing.T) {
	base := func(code []byte) *Raw {
		return &Raw{
			Code: code, FirstLine: 1, NumConsts: 1, Names: []string{"n"}, ArgCount: 1,
			LocalsPlusNames: []string{"a"}, LocalsPlusKinds: []byte{opcode.CO_FAST_LOCAL},
		}
	}
	ret := op311("LOAD_CONST", 0, "RETURN_VALUE", 0)
	with := func(units ...any) *Raw { return base(append(op311(units...), ret...)) }
	table := func(entries ...ExceptionEntry) *Raw {
		raw := base(ret)
		raw.ExceptionTable = EncodeExceptionTable(entries)
		return raw
	}
	cases := map[string]*Raw{
		"no code":                 base(nil),
		"odd length":              base(ret[:3]),
		"unknown opcode":          base(append([]byte{255, 0}, ret...)),
		"CACHE as an instruction": with("CACHE", 0),
		"runs off its end":        base(op311("LOAD_CONST", 0)),
		"ends in EXTENDED_ARG":    base(append(ret[:4:4], op311("EXTENDED_ARG", 1)...)),
		"ends in PRECALL":         base(append(ret[:4:4], op311("PRECALL", 0, "CACHE", 0)...)),
		"four EXTENDED_ARG": with("EXTENDED_ARG", 0, "EXTENDED_ARG", 0, "EXTENDED_ARG", 0,
			"EXTENDED_ARG", 0, "LOAD_CONST", 0),
		"argument above 31 bits": with("EXTENDED_ARG", 128, "EXTENDED_ARG", 0, "EXTENDED_ARG", 0,
			"BUILD_LIST", 0),
		"constant out of range": with("LOAD_CONST", 1),
		"name out of range":     with("LOAD_NAME", 1),
		"global out of range": with("LOAD_GLOBAL", 2, "CACHE", 0, "CACHE", 0, "CACHE", 0, "CACHE", 0,
			"CACHE", 0),
		"local out of range":      with("LOAD_FAST", 1),
		"operator out of range":   with("BINARY_OP", 26, "CACHE", 0),
		"comparison out of range": with("COMPARE_OP", 6, "CACHE", 0, "CACHE", 0),
		"COPY 0":                  with("COPY", 0),
		"cache cut off":           base(op311("LOAD_GLOBAL", 0, "CACHE", 0)),
		"cache not empty":         with("BINARY_OP", 0, "CACHE", 1),
		"PRECALL without CALL":    with("PRECALL", 0, "CACHE", 0),
		"PRECALL and CALL of different counts": with("PRECALL", 1, "CACHE", 0, "CALL", 0, "CACHE", 0, "CACHE", 0,
			"CACHE", 0, "CACHE", 0),
		"jump beyond the end":         with("JUMP_FORWARD", 2),
		"jump before the beginning":   with("JUMP_BACKWARD", 2),
		"jump into a cache":           with("JUMP_FORWARD", 1, "BINARY_OP", 0, "CACHE", 0),
		"jump behind an EXTENDED_ARG": with("JUMP_FORWARD", 1, "EXTENDED_ARG", 0, "LOAD_CONST", 0),
		"handler beyond the end":      table(ExceptionEntry{0, 1, 2, 0, false}),
		"region beyond the end":       table(ExceptionEntry{0, 3, 0, 0, false}),
		"overlapping regions": table(ExceptionEntry{0, 2, 0, 0, false},
			ExceptionEntry{1, 2, 0, 0, false}),
		"more parameters than locals":            {Code: ret, NumConsts: 1, ArgCount: 1},
		"names and kinds of different numbers":   {Code: ret, NumConsts: 1, LocalsPlusNames: []string{"a"}},
		"line table that begins inside an entry": {Code: ret, NumConsts: 1, LineTable: []byte{1}},
		"line below zero": {Code: ret, NumConsts: 1,
			LineTable: []byte{0x80 | formNoColumn<<3, 3}},
	}
	for name, raw := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Decode(raw, py311)
			assert.ErrorIs(t, err, ErrMalformed)
		})
	}
	_, err := Decode(cases["unknown opcode"], py311)
	assert.ErrorIs(t, err, ErrNoSuchOpcode)
	_, err = Decode(cases["constant out of range"], py311)
	assert.NotErrorIs(t, err, ErrNoSuchOpcode)
	_, err = Decode(with("LOAD_CONST", 0), py311)
	assert.NoError(t, err, "the frame around the cases is right")
}

func TestBlockPassesOverHiddenHandlers(t *testing.T) {
	caught := New(opcode.PUSH_EXC_INFO, 0)
	block := &ExceptionRegion{Target: caught, Depth: 0}
	for last, restores := range map[opcode.Op]bool{opcode.STORE_FAST: true, opcode.STORE_GLOBAL: false} {
		handler := []*Instruction{New(opcode.SWAP, 2), New(opcode.POP_TOP, 0), New(opcode.SWAP, 2), New(last, 0),
			New(opcode.RERAISE, 0)}
		for _, inst := range handler {
			inst.Handler = block
		}
		body := New(opcode.BUILD_LIST, 0)
		body.Handler = &ExceptionRegion{Target: handler[0], Depth: 2}
		code := assemble(append([]*Instruction{New(opcode.LOAD_FAST, 0), New(opcode.LOAD_FAST, 0), New(opcode.COPY, 1),
			body, New(opcode.RETURN_VALUE, 0)}, append(handler, caught, New(opcode.RERAISE, 0))...)...)
		raw, err := Lower(code, py312)
		require.NoError(t, err)
		again, err := Decode(raw, py312)
		require.NoError(t, err)
		inside := again.Instructions[3]
		assert.Equal(t, opcode.SWAP, inside.Handler.Target.Op)
		want := inside.Handler
		if restores {
			want = again.Instructions[5].Handler
			assert.Equal(t, opcode.PUSH_EXC_INFO, want.Target.Op)
		}
		assert.Same(t, want, inside.Block(), last)
		assert.Equal(t, restores, again.Clone().Instructions[3].Handler.Hidden, last)
	}
}

func TestDecodeUnknownVersion(t *testing.T) {
	_, err := Decode(&Raw{}, Version{3, 10})
	assert.ErrorIs(t, err, ErrVersion)
	_, err = Lower(&Code{}, Version{3, 10})
	assert.ErrorIs(t, err, ErrVersion)
	_, err = Disassemble(&Raw{}, Version{3, 10})
	assert.ErrorIs(t, err, ErrVersion)
}

func TestDecodeWithoutLineTable(t *testing.T) {
	code, err := Decode(&Raw{Code: op311("LOAD_CONST", 0, "RETURN_VALUE", 0), NumConsts: 1}, py311)
	require.NoError(t, err)
	assert.Equal(t, NoPosition, code.Instructions[0].Pos)
}

// bigCode returns the code object of the sample whose number of instructions is nearest to n.
func bigCode(b *testing.B, n int) *dumped {
	var best *dumped
	distance := 1 << 30
	for _, d := range sample(b) {
		code, err := Decode(&d.Raw, py311)
		require.NoError(b, err)
		if away := max(len(code.Instructions)-n, n-len(code.Instructions)); away < distance {
			best, distance = d, away
		}
	}
	return best
}

func BenchmarkDecode300(b *testing.B) {
	d := bigCode(b, 300)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(&d.Raw, py311); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLower300(b *testing.B) {
	d := bigCode(b, 300)
	code, err := Decode(&d.Raw, py311)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Lower(code, py311); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLiveness300(b *testing.B) {
	d := bigCode(b, 300)
	code, err := Decode(&d.Raw, py311)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		Liveness(code)
	}
}
