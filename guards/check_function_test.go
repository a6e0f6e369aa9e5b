package guards

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const idOfInt = 94367738391392

// seedGuards returns the guards of the seed's example: y = 2, a tensor x.
func seedGuards() []Guard {
	y, x := NewLocalSource("y", 0), NewLocalSource("x", 1)
	gs := EqualsMatch(y, Const{Index: 0, Text: "<class 'int'>", ID: idOfInt}, Const{Index: 1, Text: "2"})
	return append(gs, TensorMatch(x, &TensorArgs{Example: Const{Index: 2}, Fields: TensorAll}))
}

func textOf(t *testing.T, slots int, gs []Guard, opts Options, values ...Source) string {
	t.Helper()
	m, err := NewCheckFunctionManager(slots, NewSet(gs...), values, opts)
	require.NoError(t, err)
	return m.Text()
}

// Row: S002-92
// Row: S002-95
// Row: S002-96
func TestTheSeedsExampleReadsAsInTheSeedInAnyOrder(t *testing.T) {
	want := "___guarded_code.valid and ___check_type_id(y, 94367738391392) and y == 2 and ___check_tensors(x)"
	for range 20 {
		gs := append(seedGuards(), seedGuards()...)
		rand.Shuffle(len(gs), func(i, j int) { gs[i], gs[j] = gs[j], gs[i] })
		assert.Equal(t, want, textOf(t, 2, gs, Options{}))
	}
}

// Row: S002-93
func TestTensorsAreCheckedByOneCallAtTheEnd(t *testing.T) {
	var gs []Guard
	for i, name := range []string{"a", "b", "c"} {
		gs = append(gs, TensorMatch(NewLocalSource(name, i), &TensorArgs{Example: Const{Index: i}, Fields: TensorAll}))
	}
	gs = append(gs, GlobalState())
	assert.Equal(t, "___guarded_code.valid and ___check_tensors(a, b, c)", textOf(t, 3, gs, Options{}))
}

// Row: S002-96
func TestPermutedSetsGiveOneTextAndProgram(t *testing.T) {
	w := newWorld()
	m := NewAttrSource(localX, "m")
	gs := []Guard{
		TypeMatch(localX, w.konst(intType, "")), HasAttr(localX, "q", false), IDMatch(m, w.konst(two, "2"), KeepWeak),
		NameMatch(NewAttrSource(m, "f"), "g"), DictKeys(NewDictGetItemSource(m, keyK), w.konst(dictType, ""),
			w.konst(none, "()"), 0),
		GradMode(true), TypeMatch(NewGlobalSource("g"), w.konst(strType, "")), NoAlias(m, NewGlobalSource("g")),
		TensorMatch(m, &TensorArgs{Example: Const{Index: 9}, Fields: TensorAll}),
	}
	first, err := NewCheckFunctionManager(1, NewSet(gs...), nil, Options{})
	require.NoError(t, err)
	assert.Equal(t, "___guarded_code.valid and ___check_type_id(x, 1000) and ___is_grad_enabled() and "+
		"___check_type_id(g, 1004) and not ___hasattr(x, 'q') and ___check_obj_id(x.m, 1001) and x.m is not g and "+
		"x.m.f.__name__ == 'g' and ___check_type_id(x.m['k'], 1002) and ___dict_keys(x.m['k']) == () and "+
		"___check_tensors(x.m)", first.Text())
	for range 30 {
		rand.Shuffle(len(gs), func(i, j int) { gs[i], gs[j] = gs[j], gs[i] })
		again, err := NewCheckFunctionManager(1, NewSet(gs...), nil, Options{})
		require.NoError(t, err)
		assert.Equal(t, first.Program(), again.Program())
	}
}

func TestAValueIsCheckedBeforeWhatIsReadFromIt(t *testing.T) {
	w := newWorld()
	base := NewDictGetItemSource(localX, keyK)
	gs := []Guard{
		// a cheap check, but on a place below that of an expensive check
		IDMatch(NewAttrSource(base, "a"), w.konst(two, "2"), KeepWeak),
		DictKeys(base, w.konst(dictType, ""), w.konst(none, "('a',)"), 1),
	}
	assert.Equal(t, "___guarded_code.valid and ___check_type_id(x['k'], 1001) and ___dict_keys(x['k']) == ('a',) and "+
		"___check_obj_id(x['k'].a, 1000)", textOf(t, 1, gs, Options{}))
}

func TestAPrefixIsFetchedOnce(t *testing.T) {
	w := newWorld()
	a := NewAttrSource(localX, "a")
	m := managerFor(t, w, 1, []Guard{
		IDMatch(NewAttrSource(a, "b"), w.konst(two, "2"), KeepWeak),
		IDMatch(NewAttrSource(a, "c"), w.konst(none, "None"), KeepStrong),
	})
	fetched := 0
	for _, n := range m.Program().Nodes {
		if n.Op == OpAttr {
			fetched++
		}
	}
	assert.Equal(t, 3, fetched)
	assert.Equal(t, 3, m.Program().NumCaches)
}

// Row: S002-100
func TestModuleGuardsAreSkippedUnlessAskedFor(t *testing.T) {
	inside := NewAttrSource(NewNNModuleSource(localX), "scale")
	gs := []Guard{TypeMatch(inside, Const{Index: 0, ID: 7}), TypeMatch(localX, Const{Index: 1, ID: 8})}
	assert.Equal(t, "___guarded_code.valid and ___check_type_id(x, 8)", textOf(t, 1, gs, Options{}))
	assert.Equal(t, "___guarded_code.valid and ___check_type_id(x, 8) and ___check_type_id(x.scale, 7)",
		textOf(t, 1, gs, Options{GuardNNModules: true}))
}

// Row: S002-100
func TestAPlaceMarkedAsInsideAModuleIsThePlaceItself(t *testing.T) {
	marked := NewNNModuleSource(localX)
	gs := []Guard{HasAttr(marked, "forward", false), TypeMatch(localX, Const{Index: 1, ID: 8}),
		TypeMatch(NewAttrSource(marked, "scale"), Const{Index: 0, ID: 7})}
	assert.Equal(t, "___guarded_code.valid and ___check_type_id(x, 8) and not ___hasattr(x, 'forward') and "+
		"___check_type_id(x.scale, 7)", textOf(t, 1, gs, Options{GuardNNModules: true}))
}

func TestAPlaceIsToldFromOneBelowIt(t *testing.T) {
	inner := NewIndexSource(localX, 0)
	typ := Const{ID: 7}
	gs := []Guard{ListLength(localX, typ, 1), ListLength(inner, typ, 0), NoAlias(localX, inner)}
	assert.Equal(t, "___guarded_code.valid and ___check_type_id(x, 7) and len(x) == 1 and x is not x[0] and "+
		"___check_type_id(x[0], 7) and len(x[0]) == 0", textOf(t, 1, gs, Options{}))
}

func TestAPlaceThatWasReadCanBeRead(t *testing.T) {
	looked, passed := NewAttrSource(localX, "looked"), NewAttrSource(localX, "passed")
	gs := []Guard{TypeMatch(localX, Const{Index: 1, ID: 8}), TypeMatch(looked, Const{Index: 0, ID: 7})}
	assert.Equal(t,
		"___guarded_code.valid and ___check_type_id(x, 8) and ___check_type_id(x.looked, 7) and ___loads(x.passed)",
		textOf(t, 1, gs, Options{Reads: []Source{looked, passed, passed}}))
	inside := NewAttrSource(NewNNModuleSource(localX), "inside")
	assert.Equal(t, "___guarded_code.valid and ___check_type_id(x, 8)",
		textOf(t, 1, gs[:1], Options{Reads: []Source{inside}}))
}

func TestVariablesOfOneNameAndOfTheTextsOwnNamesStayApart(t *testing.T) {
	typ := Const{ID: 7}
	gs := []Guard{TypeMatch(localX, typ), TypeMatch(NewGlobalSource("x"), typ), TypeMatch(NewGlobalSource("g"), typ),
		TypeMatch(NewLocalSource("type", 1), typ), TypeMatch(NewGlobalSource("len"), typ)}
	assert.Equal(t, "___guarded_code.valid and ___check_type_id(x, 7) and ___check_type_id(L['type'], 7) and "+
		"___check_type_id(g, 7) and ___check_type_id(G['x'], 7) and ___check_type_id(G['len'], 7)",
		textOf(t, 2, gs, Options{}))
	assert.Equal(t, "___guarded_code.valid and ___check_type_id(G['g'], 7)",
		textOf(t, 2, gs[2:3], Options{SlotNames: []string{"g", "x"}}))
}

func TestAFreeVariableIsPrintedByItsName(t *testing.T) {
	cell := NewLocalSource("v", 0)
	gs := []Guard{TypeMatch(NewCellSource(cell), Const{ID: 7}), TypeMatch(cell, Const{Index: 1, ID: 9})}
	assert.Equal(t, "___guarded_code.valid and ___check_type_id(___cells['v'], 9) and ___check_type_id(v, 7)",
		textOf(t, 1, gs, Options{}))
}

func TestValuesAreHandedOverInAscendingRegisters(t *testing.T) {
	w := newWorld()
	a, b := NewAttrSource(localX, "a"), NewAttrSource(localX, "b")
	m := managerFor(t, w, 1, []Guard{TypeMatch(b, w.konst(intType, ""))}, b, localX, a, b,
		NewConstSource(w.konst(two, "2"), "two"))
	p := m.Program()
	assert.Equal(t, []uint32{3, 4, 5, 6, 7}, p.Extra)
	assert.Equal(t, []string{validText, "___check_type_id(x.b, 1000)", "___loads(x.a)",
		"___loads(___object(1001, 'two'))"}, p.Parts)
	_, ok := p.Eval(w, []Value{instance(map[string]Value{"a": none, "b": two})})
	assert.True(t, ok)
	failed, ok := p.Eval(w, []Value{instance(map[string]Value{"b": two})})
	assert.False(t, ok)
	assert.Equal(t, "___loads(x.a)", p.FailedPart(failed))
}

func TestABuiltinIsReadOnlyWhileNoGlobalHidesIt(t *testing.T) {
	w := newWorld()
	m := managerFor(t, w, 0, []Guard{BuiltinMatch(NewBuiltinSource("len"), w.konst(someFunction, ""))})
	_, ok := m.Program().Eval(w, nil)
	assert.False(t, ok, "there is no such builtin")
	w.builtins.set(w.name("len"), someFunction)
	_, ok = m.Program().Eval(w, nil)
	assert.True(t, ok)
	w.globals.set(w.name("len"), someFunction)
	_, ok = m.Program().Eval(w, nil)
	assert.False(t, ok)
}

func TestADeadConstantOrAnInvalidEntryFails(t *testing.T) {
	w := newWorld()
	m := managerFor(t, w, 1, []Guard{TypeMatch(NewConstSource(w.konst(two, "2"), "two"), w.konst(intType, ""))})
	_, ok := m.Program().Eval(w, []Value{none})
	assert.True(t, ok)
	w.dead[two] = true
	_, ok = m.Program().Eval(w, []Value{none})
	assert.False(t, ok)
	delete(w.dead, two)
	w.invalid = true
	failed, ok := m.Program().Eval(w, []Value{none})
	assert.False(t, ok)
	assert.Equal(t, 0, failed)
}

// Row: S002-99
func TestTheFirstFailingPartIsReported(t *testing.T) {
	w := newWorld()
	m := managerFor(t, w, 2, append(EqualsMatch(NewLocalSource("y", 0), w.konst(intType, ""), w.konst(two, "2")),
		TypeMatch(NewLocalSource("z", 1), w.konst(strType, ""))))
	p := m.Program()
	failed, _ := p.Eval(w, []Value{integer("3"), str("s")})
	assert.Equal(t, "y == 2", p.FailedPart(failed))
	failed, _ = p.Eval(w, []Value{integer("3"), two})
	assert.Equal(t, "___check_type_id(z, 1002)", p.FailedPart(failed))
	assert.Equal(t, "", p.FailedPart(-1))
	_, ok := p.Eval(w, []Value{two})
	assert.False(t, ok, "a frame of another size")
}

func TestLinesFollowTheirParts(t *testing.T) {
	line := UserLine{"f.py", 12}
	m, err := NewCheckFunctionManager(2, NewSet(seedGuards()[0].At(line), seedGuards()[2].At(UserLine{"f.py", 13})),
		nil, Options{})
	require.NoError(t, err)
	assert.Equal(t, []UserLine{{}, line, {"f.py", 13}}, m.Program().PartLines)
}

func TestMalformedGuardsAreErrorsAtOnce(t *testing.T) {
	for name, g := range map[string]Guard{
		"no kind":                {Name: "x", Origin: localX},
		"no source":              {CreateFn: CreateTypeMatch},
		"no other source":        {CreateFn: CreateNoAlias, Origin: localX, Name: "x"},
		"slot out of range":      TypeMatch(NewLocalSource("z", 7), Const{}),
		"negative slot":          TypeMatch(NewLocalSource("z", -1), Const{}),
		"random value":           TypeMatch(NewRandomValueSource(0), Const{}),
		"tensor without args":    TensorMatch(localX, nil),
		"constant out of pool":   TypeMatch(localX, Const{Index: -5}),
		"unaligned slot":         TypeMatch(NewSlotSource(localX, "s", 3), Const{}),
		"unknown function field": TypeMatch(NewFunctionFieldSource(localX, 99), Const{}),
	} {
		_, err := NewCheckFunctionManager(1, NewSet(g), nil, Options{})
		assert.Error(t, err, name)
	}
}

// Row: S002-107
func TestAGuardThatFailsOnItsOwnFrameIsFoundAtOnce(t *testing.T) {
	w := newWorld()
	m := managerFor(t, w, 1, EqualsMatch(localX, w.konst(intType, ""), w.konst(two, "2")))
	assert.NoError(t, m.CheckFresh(w, []Value{integer("2")}))
	assert.ErrorContains(t, m.CheckFresh(w, []Value{integer("3")}), `"x == 2" fails`)
}

func TestAProgramSaysWhatEachOfItsPartsIsAbout(t *testing.T) {
	gs := seedGuards()
	gs[len(gs)-1] = gs[len(gs)-1].At(UserLine{File: "f.py", Line: 7})
	gs = append(gs, IDMatch(NewGlobalSource("g"), Const{Index: 3, ID: 9}, KeepWeak))
	m, err := NewCheckFunctionManager(2, NewSet(gs...), nil, Options{})
	require.NoError(t, err)
	assert.Equal(t,
		"1\tTYPE_MATCH\tLOCAL\ty\n2\tID_MATCH\tGLOBAL\tG['g']\n3\tEQUALS_MATCH\tLOCAL\ty\n"+
			"4\tTENSOR_MATCH\tLOCAL\tx\t7\tf.py\n", m.Program().Kinds)

	anonymous, err := NewCheckFunctionManager(2, NewSet(gs...), nil, Options{Anonymous: true})
	require.NoError(t, err)
	assert.Empty(t, anonymous.Program().Kinds)
	assert.Equal(t, m.Program().Nodes, anonymous.Program().Nodes)
}
