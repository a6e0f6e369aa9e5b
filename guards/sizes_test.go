package guards

import (
	"encoding/json"
	"flag"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func load(s Source, hint int64) []SizeInst { return []SizeInst{{Op: SizeLoad, Src: s, Hint: hint}} }

func constant(n int64) []SizeInst { return []SizeInst{{Op: SizeConst, N: n}} }

func size(s Source, dim int) []SizeInst { return load(NewTensorPropertySource(s, TensorSize, dim), 4) }

func operate(op SizeOp, a, b []SizeInst) []SizeInst {
	return append(append(append([]SizeInst(nil), a...), b...), SizeInst{Op: op})
}

func compare(left []SizeInst, rel SizeRel, right []SizeInst) *SizeCond {
	return &SizeCond{left, right, rel}
}

// whole compares the metadata of a tensor but not its sizes.
func whole(w *world, s Source) Guard {
	return TensorMatch(s, &TensorArgs{Example: w.konst(&pyTensor{"Tensor", "1"}, ""), Fields: TensorNDim})
}

func TestConditionsReadAsPython(t *testing.T) {
	x, y, n := size(localX, 0), size(localX, 1), load(NewLocalSource("n", 1), 3)
	one, eight := constant(1), constant(8)
	stride := load(NewTensorPropertySource(localX, TensorStride, 2), 1)
	most := operate(SizeMax, operate(SizeAdd, x, one), operate(SizeMin, n, constant(3)))
	for want, c := range map[string]*SizeCond{
		"x.size()[0] >= 2":           compare(x, SizeGE, constant(2)),
		"x.size()[0] == x.size()[1]": compare(x, SizeEQ, y),
		"x.stride()[2] != n":         compare(stride, SizeNE, n),
		"x.size()[0] * x.size()[1] % 8 == 0": compare(operate(SizeMod, operate(SizeMul, x, y), eight), SizeEQ,
			constant(0)),
		"x.size()[0] * (x.size()[1] % 8) < n": compare(operate(SizeMul, x, operate(SizeMod, y, eight)), SizeLT, n),
		"(x.size()[0] + n) // -2 <= 1": compare(operate(SizeFloorDiv, operate(SizeAdd, x, n), constant(-2)), SizeLE,
			one),
		"x.size()[0] - (n + 1) > -1": compare(operate(SizeSub, x, operate(SizeAdd, n, one)), SizeGT, constant(-1)),
		"x.size()[0] - n + 1 > 1":    compare(operate(SizeAdd, operate(SizeSub, x, n), one), SizeGT, one),
		"max(x.size()[0] + 1, min(n, 3)) * 2 == 10": compare(operate(SizeMul, most, constant(2)), SizeEQ,
			constant(10)),
	} {
		text, err := c.text(nil)
		require.NoError(t, err)
		assert.Equal(t, want, text)
		assert.Equal(t, want, ShapeEnv(c).Key)
	}
}

func TestConditionsFollowTheTensorsAndTheirIntsAreCheckedBefore(t *testing.T) {
	w := newWorld()
	n, m := NewLocalSource("n", 1), NewAttrSource(NewGlobalSource("h"), "max")
	gs := []Guard{
		ShapeEnv(compare(size(localX, 0), SizeEQ, load(m, 5))).At(UserLine{"f.py", 3}),
		ShapeEnv(compare(load(n, 3), SizeLT, size(localX, 1))), whole(w, localX), TypeMatch(n, w.konst(intType, "")),
	}
	stride := NewTensorPropertySource(localX, TensorStride, 1)
	p := managerFor(t, w, 2, gs, stride, n, stride).Program()
	assert.Equal(t, []string{validText, "___check_type_id(n, 1001)", "___loads(h.max)", "___check_tensors(x)",
		"n < x.size()[1]", "x.size()[0] == h.max", "___loads(x.stride()[1])", "___loads(x.stride()[1])"}, p.Parts)
	assert.Equal(t, UserLine{"f.py", 3}, p.PartLines[5])
	assert.Contains(t, p.Kinds, "4\tSHAPE_ENV\tLOCAL\tn\n5\tSHAPE_ENV\tLOCAL\tx.size()[0]\n")
	assert.Equal(t, []uint32{4, 5, 6}, p.Extra)

	x := &pyTensor{"Tensor", "1"}
	w.dims = map[*pyTensor][2][]int64{x: {{5, 4}, {4, 1}}}
	w.globals.set(w.name("h"), instance(map[string]Value{"max": integer("5")}))
	_, ok := p.Eval(w, []Value{x, integer("3")})
	assert.True(t, ok)
	failed, _ := p.Eval(w, []Value{x, integer("4")})
	assert.Equal(t, "n < x.size()[1]", p.FailedPart(failed))
	w.dims[x] = [2][]int64{{6, 4}, {4, 1}}
	failed, _ = p.Eval(w, []Value{x, integer("3")})
	assert.Equal(t, "x.size()[0] == h.max", p.FailedPart(failed))
	delete(w.dims, x)
	failed, _ = p.Eval(w, []Value{x, integer("3")})
	assert.Equal(t, "n < x.size()[1]", p.FailedPart(failed))
}

func TestAConditionOnIntsNeedsNoTensor(t *testing.T) {
	assert.Equal(t, "___guarded_code.valid and ___check_type_id(x, 7) and x >= 2",
		textOf(t, 1, []Guard{ShapeEnv(compare(load(localX, 2), SizeGE, constant(2))), TypeMatch(localX, Const{ID: 7})},
			Options{}))
}

func TestAReadOfASizeIsCoveredByTheCheckOfTheTensor(t *testing.T) {
	w := newWorld()
	read := NewTensorPropertySource(localX, TensorSize, 0)
	assert.Equal(t, "___guarded_code.valid and ___check_tensors(x)",
		textOf(t, 1, []Guard{whole(w, localX)}, Options{Reads: []Source{read}}))
}

func TestASizeInsideAnUnguardedModuleCountsAsAConstant(t *testing.T) {
	w := newWorld()
	weight := NewAttrSource(NewNNModuleSource(NewLocalSource("m", 1)), "weight")
	both := ShapeEnv(compare(size(weight, 0), SizeEQ, size(localX, 0)))
	assert.Equal(t, "x.size()[0]", both.Name)
	gs := []Guard{both, ShapeEnv(compare(size(weight, 0), SizeEQ, constant(4))), whole(w, localX), whole(w, weight)}
	assert.Equal(t, "___guarded_code.valid and ___check_tensors(x) and 4 == x.size()[0]",
		textOf(t, 2, gs, Options{}))
	assert.Equal(t, "___guarded_code.valid and ___check_tensors(x, m.weight) and "+
		"m.weight.size()[0] == x.size()[0] and m.weight.size()[0] == 4",
		textOf(t, 2, gs, Options{GuardNNModules: true}))
}

func TestMalformedConditionsAreErrors(t *testing.T) {
	x := size(localX, 0)
	deep := x
	for range maxSizeStack {
		deep = operate(SizeAdd, x, deep)
	}
	for name, c := range map[string]*SizeCond{
		"none":          nil,
		"no load":       compare(constant(1), SizeEQ, constant(1)),
		"no relation":   compare(x, numSizeRels, x),
		"empty side":    compare(x, SizeEQ, nil),
		"two values":    compare(append(x, x...), SizeEQ, x),
		"sum of one":    compare([]SizeInst{x[0], {Op: SizeAdd}}, SizeEQ, x),
		"no operation":  compare([]SizeInst{x[0], x[0], {Op: numSizeOps}}, SizeEQ, x),
		"step of C":     compare([]SizeInst{x[0], {Op: sizeLoadSize}}, SizeEQ, x),
		"no source":     compare([]SizeInst{{Op: SizeLoad}}, SizeEQ, x),
		"too deep":      compare(deep, SizeEQ, x),
		"no dimension":  compare(size(localX, -1), SizeEQ, x),
		"random value":  compare(load(NewRandomValueSource(0), 1), SizeEQ, x),
		"other tensor":  compare(size(NewLocalSource("y", 1), 0), SizeEQ, x),
		"below a size":  compare(load(NewAttrSource(x[0].Src, "real"), 1), SizeEQ, x),
		"many of a dim": compare(size(localX, 64), SizeEQ, x),
	} {
		_, err := NewCheckFunctionManager(2, NewSet(ShapeEnv(c), whole(newWorld(), localX)), nil, Options{})
		assert.Error(t, err, name)
	}
	_, err := NewCheckFunctionManager(1, NewSet(), []Source{x[0].Src}, Options{})
	assert.Error(t, err, "a size is passed on, but the tensor is not compared")
	_, err = NewCheckFunctionManager(1, NewSet(TypeMatch(x[0].Src, Const{})), nil, Options{})
	assert.Error(t, err, "another kind of guard on a size")
}

func TestConditionsAreOneGuardByTheirTexts(t *testing.T) {
	a, b := compare(size(localX, 0), SizeGE, constant(2)), compare(size(localX, 0), SizeGE, constant(3))
	again := compare(load(NewTensorPropertySource(NewLocalSource("x", 0), TensorSize, 0), 99), SizeGE, constant(2))
	assert.Len(t, NewSet(ShapeEnv(a), ShapeEnv(b), ShapeEnv(again)).Guards(), 2)
}

func TestConditionsAreRewrittenAndFoundByAnyOfTheirPlaces(t *testing.T) {
	one, two, other := NewLocalSource("a", 0), NewLocalSource("b", 1), NewLocalSource("c", 2)
	at := func(s Source) Guard {
		return ShapeEnv(compare(operate(SizeMul, size(other, 0), size(s, 0)), SizeEQ, load(NewAttrSource(s, "n"), 3))).
			At(UserLine{"f.py", 7})
	}
	g, ok := NewRebase(one, two).Guard(at(one))
	require.True(t, ok)
	assert.Equal(t, at(two), g)
	fixed := ShapeEnv(compare(load(NewGlobalWeakRefSource("w"), 1), SizeEQ, constant(1)))
	_, ok = NewRebase(NewGlobalSource("w"), two).Guard(fixed)
	assert.False(t, ok)

	var p Places
	said := NewSet(at(one), at(two)).Guards()
	found, _ := p.Below(one, said, nil)
	assert.Equal(t, said[:1], found)
	found, _ = p.Below(other, said, nil)
	assert.Equal(t, said, found)
}

// reference computes one side with ints of any length; nil if a result does not fit 64 bits or a divisor is zero.
func reference(side []SizeInst, value func(Source) *big.Int) *big.Int {
	var stack []*big.Int
	for _, inst := range side {
		var v *big.Int
		switch inst.Op {
		case SizeConst:
			v = big.NewInt(inst.N)
		case SizeLoad:
			v = value(inst.Src)
		case SizeFloat, SizeSqrt, SizeFloor, SizeCeil, SizeTrunc, SizeRound, SizeFloatAdd, SizeFloatSub, SizeFloatMul,
			SizeFloatDiv, SizeFloatMax, SizeFloatMin, SizeFloatPow, SizeFloatLT, SizeFloatLE, SizeFloatEQ:
			n := len(stack) - inst.Op.arity() // CPython evaluates the text, which computes floats
			r, ok := inst.Op.applyFloat(stack[n].Int64(), stack[len(stack)-1].Int64())
			if !ok {
				return nil
			}
			stack, v = stack[:n], big.NewInt(r)
		default:
			a, b, r := stack[len(stack)-2], stack[len(stack)-1], new(big.Int)
			stack = stack[:len(stack)-2]
			switch inst.Op {
			case SizeAdd:
				v = r.Add(a, b)
			case SizeSub:
				v = r.Sub(a, b)
			case SizeMul:
				v = r.Mul(a, b)
			case SizeMax, SizeMin:
				if v = a; (a.Cmp(b) < 0) == (inst.Op == SizeMax) {
					v = b
				}
			default:
				if b.Sign() == 0 {
					return nil
				}
				q, m := new(big.Int).DivMod(a, b, r) // Euclidean division: 0 <= m
				if b.Sign() < 0 && m.Sign() != 0 {
					q.Sub(q, big.NewInt(1))
					m.Add(m, b)
				}
				if v = q; inst.Op == SizeMod {
					v = m
				}
			}
		}
		if v == nil || !v.IsInt64() {
			return nil
		}
		stack = append(stack, v)
	}
	return stack[0]
}

// sizesFrame is a call of the golden file: the sizes and strides of x and y, and the ints a and b.
type sizesFrame struct {
	X, Y [2][]int64
	A, B string
}

// sizesCase is a condition of the golden file, with a digit for each frame: 1 if it holds.
type sizesCase struct {
	Text  string
	Steps []any
	Holds string
}

var sizesFrames = []sizesFrame{
	{[2][]int64{{16, 3, 1, 2, 4}, {24, 8, 8, 4, 1}}, [2][]int64{{3, 4}, {4, 1}}, "2", "-7"},
	{[2][]int64{{1, 3, 0, 2, 4}, {24, 8, 8, 4, 1}}, [2][]int64{{4, 3}, {1, 4}}, "0", "7"},
	{[2][]int64{{2, 2, 2, 2, 2}, {1, 2, 4, 8, 16}}, [2][]int64{{0, 1}, {1, 1}}, "-1", "-9223372036854775808"},
	{[2][]int64{{5, 1, 1, 7, 3}, {0, 0, 0, 3, 1}}, [2][]int64{{8, 8}, {8, 1}}, "9223372036854775807", "3"},
	{[2][]int64{{4, 4, 4, 4, 4}, {256, 64, 16, 4, 1}}, [2][]int64{{1, 1}, {0, 0}}, "4294967296", "4294967296"},
	{[2][]int64{{4, 4, 4, 4, 4}, {256, 64, 16, 4, 1}}, [2][]int64{{1, 1}, {0, 0}}, "9223372036854775808", "1"},
}

// randomCondition returns a condition on x (5 dimensions), y (2 dimensions), a and b.
func randomCondition(rng *rand.Rand) *SizeCond {
	pick := func(of []int64) int64 { return of[rng.IntN(len(of))] }
	var side func(depth int) []SizeInst
	side = func(depth int) []SizeInst {
		if depth > 0 && rng.IntN(3) > 0 {
			return operate(SizeAdd+SizeOp(rng.IntN(7)), side(depth-1), side(depth-1))
		}
		switch rng.IntN(6) {
		case 0:
			return constant(pick([]int64{0, 1, -1, 2, 3, -3, 7, 8, 1 << 40, math.MaxInt64, math.MinInt64}))
		case 1:
			return load(NewLocalSource("a", 2), 2)
		case 2:
			return load(NewLocalSource("b", 3), -7)
		case 3:
			return load(NewTensorPropertySource(NewLocalSource("y", 1), TensorProperty(rng.IntN(2)), rng.IntN(2)), 3)
		}
		return load(NewTensorPropertySource(localX, TensorProperty(rng.IntN(2)), rng.IntN(5)), 2)
	}
	for {
		c := compare(side(rng.IntN(4)), SizeRel(rng.IntN(int(numSizeRels))), side(rng.IntN(3)))
		if text, _ := c.text(nil); strings.ContainsAny(text, "xyab") {
			return c
		}
	}
}

var stepNames = [...]string{"CONST", "INT", "SIZE", "STRIDE", "ADD", "SUB", "MUL", "FLOORDIV", "MOD", "MAX", "MIN",
	"FADD", "FSUB", "FMUL", "FDIV", "FMAX", "FMIN", "FPOW", "FLT", "FLE", "FEQ", "FLOAT", "SQRT", "FLOOR", "CEIL",
	"TRUNC", "ROUND", "EQ", "NE", "GE", "GT", "LE", "LT"}

// randomFloat returns a float computed from the sizes.
func randomFloat(rng *rand.Rand, depth int) []SizeInst {
	if depth == 0 && rng.IntN(3) == 0 {
		f := []float64{0, 0.5, 3, 96, 1e300, -1.5, 1.0 / 3, 1e17}[rng.IntN(8)]
		return []SizeInst{{Op: SizeConst, N: int64(math.Float64bits(f)), Float: true}}
	}
	if depth == 0 {
		k := rng.IntN(2)
		s := load(NewLocalSource([]string{"a", "b"}[k], 2+k), 2)
		if rng.IntN(3) > 0 {
			s = load(NewTensorPropertySource(localX, TensorProperty(rng.IntN(2)), rng.IntN(5)), 2)
		}
		return append(s, SizeInst{Op: SizeFloat})
	}
	if rng.IntN(5) == 0 {
		return append(randomFloat(rng, depth-1), SizeInst{Op: SizeSqrt})
	}
	if rng.IntN(9) == 0 {
		exponent := []float64{0.5, -0.5, 2, 1.5, 0}[rng.IntN(5)]
		return operate(SizeFloatPow, randomFloat(rng, depth-1),
			[]SizeInst{{Op: SizeConst, N: int64(math.Float64bits(exponent)), Float: true}})
	}
	return operate(SizeFloatAdd+SizeOp(rng.IntN(6)), randomFloat(rng, depth-1), randomFloat(rng, depth-1))
}

// randomFloatCondition returns a condition on a float that is computed from sizes: on a comparison, or on its rounding.
func randomFloatCondition(rng *rand.Rand) *SizeCond {
	for {
		left := randomFloat(rng, rng.IntN(4))
		if rng.IntN(2) == 0 {
			left = operate(SizeFloatLT+SizeOp(rng.IntN(3)), left, randomFloat(rng, rng.IntN(3)))
		} else {
			left = append(left, SizeInst{Op: SizeFloor + SizeOp(rng.IntN(4))})
		}
		c := compare(left, SizeRel(rng.IntN(int(numSizeRels))), constant([]int64{0, 1, 2, 5, 96}[rng.IntN(5)]))
		if text, _ := c.text(nil); strings.Contains(text, "x.") || strings.ContainsAny(text, "(a)(b)") {
			return c
		}
	}
}

// TestConditionsHaveTheVerdictOfLongInts evaluates random conditions. The golden file has their texts, steps and
// verdicts; python/tests/guards/test_sizes.py evaluates the texts and runs the steps in C.
func TestConditionsHaveTheVerdictOfLongInts(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 18))
	var out strings.Builder
	lines := json.NewEncoder(&out)
	lines.SetEscapeHTML(false)
	require.NoError(t, lines.Encode(sizesFrames))
	verdicts := map[bool]int{}
	for i := range 700 {
		cond := randomCondition(rng)
		if i >= 400 {
			cond = randomFloatCondition(rng)
		}
		guard := ShapeEnv(cond)
		if guard.Origin == nil {
			continue
		}
		w := newWorld()
		y := NewLocalSource("y", 1)
		gs := []Guard{guard, TypeMatch(NewLocalSource("a", 2), w.konst(intType, "")),
			TypeMatch(NewLocalSource("b", 3), w.konst(intType, "")), whole(w, localX), whole(w, y)}
		p := managerFor(t, w, 4, gs).Program()
		c := sizesCase{Text: guard.Key}
		for _, s := range p.Sizes {
			c.Steps = append(c.Steps, []any{stepNames[s.Op], s.Dim, s.Reg, s.N})
		}
		for _, f := range sizesFrames {
			tx, ty := &pyTensor{"Tensor", "1"}, &pyTensor{"Tensor", "1"}
			w.dims = map[*pyTensor][2][]int64{tx: f.X, ty: f.Y}
			_, got := p.Eval(w, []Value{tx, ty, integer(f.A), integer(f.B)})
			value := func(s Source) *big.Int {
				if p := property(s); p != nil {
					dims := f.X
					if p.Base().Name() == "y" {
						dims = f.Y
					}
					return big.NewInt(dims[p.Property][p.Dim])
				}
				text := map[string]string{"a": f.A, "b": f.B}[s.Name()]
				v, _ := new(big.Int).SetString(text, 10)
				return v
			}
			left, right := reference(cond.Left, value), reference(cond.Right, value)
			want := left != nil && right != nil && map[SizeRel]bool{SizeEQ: left.Cmp(right) == 0,
				SizeNE: left.Cmp(right) != 0, SizeGE: left.Cmp(right) >= 0, SizeGT: left.Cmp(right) > 0,
				SizeLE: left.Cmp(right) <= 0, SizeLT: left.Cmp(right) < 0}[cond.Rel]
			require.Equal(t, want, got, "%s with %+v", c.Text, f)
			c.Holds += map[bool]string{true: "1", false: "0"}[got]
			verdicts[got]++
		}
		require.NoError(t, lines.Encode(c))
	}
	assert.Greater(t, verdicts[true], 300)
	assert.Greater(t, verdicts[false], 300)
	const path = "testdata/sizes.jsonl"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(out.String()), 0o644))
	}
	golden, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(golden), out.String(), "make golden")
}
