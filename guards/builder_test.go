package guards

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// kindCase tests one kind of guard: its text, a frame on which it passes and a frame on which it fails. The
// frame has one slot, `x`.
type kindCase struct {
	name   string
	guards func(w *world, x Source) []Guard
	parts  []string
	pass   func(w *world) Value
	fail   func(w *world) Value
}

func one(g Guard) []Guard { return []Guard{g} }

func instance(attrs map[string]Value) *pyObject {
	return &pyObject{typ: &pyType{name: "C"}, attrs: attrs, hasDict: true}
}

var (
	someFunction = &pyObject{typ: funcType, attrs: map[string]Value{"__name__": str("g")}}
	someModule   = &pyObject{typ: moduleType, attrs: map[string]Value{"__name__": str("m"), "pi": str("3")}}
	someNN       = &pyObject{typ: &pyType{name: "Linear"}, grows: []string{"weight", "bias"}, hasDict: true}
	two          = integer("2")
)

func value(v Value) func(*world) Value { return func(*world) Value { return v } }

func objects(kind func(Source, Const) Guard, want Value) func(*world, Source) []Guard {
	return func(w *world, x Source) []Guard { return one(kind(x, w.konst(want, "<object>"))) }
}

func keysTuple(names ...string) *pySeq {
	seq := &pySeq{typ: tupleType}
	for _, n := range names {
		seq.items = append(seq.items, str(n))
	}
	return seq
}

func dictOf(typ *pyType, names ...string) *pyDict {
	d := &pyDict{typ: typ}
	for _, n := range names {
		d.set(str(n), two)
	}
	return d
}

// Row: S002-89
var kindCases = []kindCase{
	{"TYPE_MATCH", objects(TypeMatch, intType), []string{"___check_type_id(x, 1000)"},
		value(integer("7")), value(str("7"))},
	{"ID_MATCH", func(w *world, x Source) []Guard { return one(IDMatch(x, w.konst(two, "2"), KeepStrong)) },
		[]string{"___check_obj_id(x, 1000)"}, value(two), value(integer("2"))},
	{"NAME_MATCH", func(w *world, x Source) []Guard { return one(NameMatch(x, "g")) },
		[]string{"x.__name__ == 'g'"}, value(someFunction), value(someModule)},
	{"HASATTR", func(w *world, x Source) []Guard { return one(HasAttr(x, "a", true)) },
		[]string{"___hasattr(x, 'a')"}, value(instance(map[string]Value{"a": two})), value(instance(nil))},
	{"HASATTR absent", func(w *world, x Source) []Guard { return one(HasAttr(x, "a", false)) },
		[]string{"not ___hasattr(x, 'a')"}, value(instance(nil)), value(instance(map[string]Value{"a": two}))},
	{"EQUALS_MATCH", func(w *world, x Source) []Guard {
		return EqualsMatch(x, w.konst(intType, ""), w.konst(two, "2"))
	},
		[]string{"___check_type_id(x, 1000)", "x == 2"}, value(integer("2")), value(integer("3"))},
	{"FLOAT_COMPARE", func(w *world, x Source) []Guard {
		return one(FloatCompare(x, FloatGT, w.konst(&pyLit{floatType, "0.5"}, "0.5"), true))
	},
		[]string{"x > 0.5"}, value(&pyLit{floatType, "0.75"}), value(&pyLit{floatType, "0.5"})},
	{"FLOAT_COMPARE that does not hold", func(w *world, x Source) []Guard {
		return one(FloatCompare(x, FloatGT, w.konst(&pyLit{floatType, "0.5"}, "0.5"), false))
	},
		[]string{"not x > 0.5"}, value(&pyLit{floatType, "nan"}), value(&pyLit{floatType, "0.75"})},
	{"EQUALS_MATCH of another type",
		func(w *world, x Source) []Guard { return EqualsMatch(x, w.konst(intType, ""), w.konst(two, "2")) },
		[]string{"___check_type_id(x, 1000)", "x == 2"}, value(two), value(&pyLit{floatType, "2"})},
	// Row: S002-83
	{"EQUALS_MATCH range",
		func(w *world, x Source) []Guard {
			return EqualsMatch(x, w.konst(rangeType, ""), w.konst(&pyLit{rangeType, "range(0, 3)"}, "range(0, 3)"))
		},
		[]string{"___check_type_id(x, 1000)", "x == range(0, 3) and (x.start, x.stop, x.step) == (0, 3, 1)"},
		value(&pyLit{rangeType, "range(0, 3)"}), value(&pyLit{rangeType, "range(0, 4)"})},
	{"CONSTANT_MATCH", func(w *world, x Source) []Guard {
		return ConstantMatch(x, w.konst(intType, ""), w.konst(two, "2"))
	},
		[]string{"___check_type_id(x, 1000)", "x == 2"}, value(two), value(integer("3"))},
	{"CONSTANT_MATCH None",
		func(w *world, x Source) []Guard {
			return ConstantMatch(x, w.konst(noneType, ""), w.konst(none, "None"))
		},
		[]string{"___check_obj_id(x, 1001)"}, value(none), value(two)},
	{"NN_MODULE", objects(NNModule, someNN), []string{"___check_obj_id(x, 1000)"}, value(someNN), value(instance(nil))},
	{"FUNCTION_MATCH", objects(FunctionMatch, someFunction), []string{"___check_obj_id(x, 1000)"},
		value(someFunction), value(two)},
	{"BUILTIN_MATCH", objects(BuiltinMatch, someFunction), []string{"___check_obj_id(x, 1000)"},
		value(someFunction), value(two)},
	{"PYMODULE_MATCH", objects(PyModuleMatch, someModule), []string{"___check_obj_id(x, 1000)"},
		value(someModule), value(two)},
	{"LIST_LENGTH", func(w *world, x Source) []Guard { return one(ListLength(x, w.konst(listType, ""), 2)) },
		[]string{"___check_type_id(x, 1000)", "len(x) == 2"},
		value(&pySeq{listType, []Value{two, two}}), value(&pySeq{listType, []Value{two}})},
	{"TUPLE_ITERATOR_LEN", func(w *world, x Source) []Guard { return one(TupleIteratorLen(x, 1)) },
		[]string{"___tuple_iterator_len(x) == 1"},
		value(&pySeq{iterType, []Value{two}}), value(&pySeq{iterType, nil})},
	{"ITERATOR_LEFT", func(w *world, x Source) []Guard { return one(IteratorLeft(x, 1, false)) },
		[]string{"___iterator_left(x) == 1"},
		value(&pySeq{iterType, []Value{two}}), value(&pySeq{iterType, []Value{two, two}})},
	{"ITERATOR_LEFT or more", func(w *world, x Source) []Guard { return one(IteratorLeft(x, 1, true)) },
		[]string{"___iterator_left(x) >= 1"},
		value(&pySeq{iterType, []Value{two, two}}), value(&pySeq{iterType, nil})},
	{"DICT_KEYS", func(w *world, x Source) []Guard {
		return one(DictKeys(x, w.konst(dictType, ""), w.konst(keysTuple("a", "b"), "('a', 'b')"), 2))
	}, []string{"___check_type_id(x, 1000)", "___dict_keys(x) == ('a', 'b')"},
		value(dictOf(dictType, "a", "b")), value(dictOf(dictType, "b", "a"))},
	{"ODICT_KEYS", func(w *world, x Source) []Guard {
		return one(ODictKeys(x, w.konst(odictType, ""), w.konst(keysTuple("a", "b"), "('a', 'b')"), 2))
	}, []string{"___check_type_id(x, 1000)", "___dict_keys(x) == ('a', 'b')"},
		value(dictOf(odictType, "a", "b")), value(dictOf(dictType, "a", "b"))},
	{"WEAKREF_ALIVE", func(w *world, x Source) []Guard { return one(WeakrefAlive(NewGlobalWeakRefSource("r"))) },
		[]string{"r() is not None"},
		func(w *world) Value { w.globals.set(w.name("r"), &pyRef{two}); return none },
		func(w *world) Value { w.globals.set(w.name("r"), &pyRef{nil}); return none }},
	{"NN_MODULE_PARAM_NAMES", func(w *world, x Source) []Guard {
		return one(NNModuleParamNames(x, w.konst(keysTuple("weight", "bias"), "('weight', 'bias')")))
	}, []string{"___param_names(x) == ('weight', 'bias')"},
		value(someNN), value(&pyObject{typ: someNN.typ, grows: []string{"weight"}})},
	{"OBJECT_MUTATION", objects(ObjectMutation, someNN), []string{"___check_mutation(x, 1000)"},
		value(someNN), value(&pyObject{typ: someNN.typ, changed: true})},
	{"GRAD_MODE", func(w *world, x Source) []Guard { return one(GradMode(true)) }, []string{"___is_grad_enabled()"},
		value(none), func(w *world) Value { w.noGrad = true; return none }},
	{"GRAD_MODE off", func(w *world, x Source) []Guard { return one(GradMode(false)) },
		[]string{"not ___is_grad_enabled()"}, func(w *world) Value { w.noGrad = true; return none }, value(none)},
	{"TENSOR_MATCH", func(w *world, x Source) []Guard {
		return one(TensorMatch(x, &TensorArgs{Example: w.konst(&pyTensor{"Tensor", "10"}, ""), Fields: TensorAll}))
	}, []string{"___check_tensors(x)"}, value(&pyTensor{"Tensor", "10"}), value(&pyTensor{"Tensor", "11"})},
	{"TENSOR_MATCH looks at the state", func(w *world, x Source) []Guard {
		return one(TensorMatch(x, &TensorArgs{Example: w.konst(&pyTensor{"Tensor", "10"}, ""), Fields: TensorAll}))
	}, []string{"___check_tensors(x)"}, value(&pyTensor{"Tensor", "10"}),
		func(w *world) Value { w.newState = true; return &pyTensor{"Tensor", "10"} }},
	{"TYPE_HASATTR", func(w *world, x Source) []Guard { return one(TypeHasAttr(NewTypeSource(x), "f", true)) },
		[]string{"___type_hasattr(type(x), 'f')"},
		value(&pyObject{typ: &pyType{name: "A", attrs: map[string]Value{"f": two}}}), value(instance(nil))},
	{"DICT_CONTAINS", func(w *world, x Source) []Guard { return one(DictContains(x, w.konst(str("k"), "'k'"), true)) },
		[]string{"___dict_contains('k', x)"}, value(dictOf(dictType, "k")), value(dictOf(dictType))},
	{"DICT_CONTAINS absent",
		func(w *world, x Source) []Guard { return one(DictContains(x, w.konst(str("k"), "'k'"), false)) },
		[]string{"not ___dict_contains('k', x)"}, value(dictOf(dictType)), value(dictOf(dictType, "k"))},
	{"HOLDS_OBJECT", func(w *world, x Source) []Guard { return one(HoldsObject(x, NewGlobalSource("g"), true)) },
		[]string{"___holds(x, g)"},
		func(w *world) Value { w.globals.set(w.name("g"), str("k")); return dictOf(dictType, "k") },
		func(w *world) Value { w.globals.set(w.name("g"), str("k")); return dictOf(dictType) }},
	{"HOLDS_OBJECT absent",
		func(w *world, x Source) []Guard { return one(HoldsObject(x, NewGlobalSource("g"), false)) },
		[]string{"not ___holds(x, g)"},
		func(w *world) Value { w.globals.set(w.name("g"), str("k")); return dictOf(dictType) },
		func(w *world) Value { w.globals.set(w.name("g"), str("k")); return dictOf(dictType, "k") }},
	{"DICT_LENGTH", func(w *world, x Source) []Guard { return one(DictLength(x, 1)) },
		[]string{"len(x) == 1"}, value(dictOf(dictType, "k")), value(dictOf(dictType))},
	{"QUIET", func(w *world, x Source) []Guard { return one(Quiet(NewLocalSource("x", 0))) },
		[]string{"not ___ends(x, 1)"}, value(instance(nil)), value(&pyObject{typ: instance(nil).typ, watched: true})},
	{"QUIET_NAME", func(w *world, x Source) []Guard { return one(QuietName(x, "a")) },
		[]string{"not ___ends_in_code(x, 'a', 1)"}, value(instance(nil)),
		value(instance(map[string]Value{"a": &pyObject{typ: instance(nil).typ, watched: true}}))},
	{"QUIET_KEY", func(w *world, x Source) []Guard { return one(QuietKey(x, w.konst(str("k"), "'k'"))) },
		[]string{"not ___ends_in_code(x, 'k', 1)"}, value(dictOf(dictType, "k")), func(*world) Value {
			d := &pyDict{typ: dictType}
			d.set(str("k"), &pyObject{typ: instance(nil).typ, watched: true})
			return d
		}},
	{"QUIET_SLOT", func(w *world, x Source) []Guard { return one(QuietSlot(x, "a", 16)) },
		[]string{"not ___ends_in_code(x, 'a', 1, True)"}, value(instance(nil)),
		value(instance(map[string]Value{"a": &pyObject{typ: instance(nil).typ, watched: true}}))},
	{"QUIET_INDEX", func(w *world, x Source) []Guard { return one(QuietIndex(x, 0)) },
		[]string{"not ___ends_in_code(x, 0, 1)"}, value(&pySeq{listType, []Value{two}}),
		value(&pySeq{listType, []Value{&pyObject{typ: instance(nil).typ, watched: true}}})},
	{"CELL_EMPTY", func(w *world, x Source) []Guard { return one(CellEmpty(x)) },
		[]string{"___cell_empty(___cells['x'])"}, value(&pyCell{}), value(&pyCell{two})},
	{"DUPLICATE_INPUT", func(w *world, x Source) []Guard {
		return one(DuplicateInput(x, NewGlobalSource("g")))
	}, []string{"x is g"},
		func(w *world) Value { w.globals.set(w.name("g"), two); return two },
		func(w *world) Value { w.globals.set(w.name("g"), two); return integer("2") }},
	{"NO_ALIAS", func(w *world, x Source) []Guard { return one(NoAlias(x, NewGlobalSource("g"))) },
		[]string{"x is not g"},
		func(w *world) Value { w.globals.set(w.name("g"), two); return integer("2") },
		func(w *world) Value { w.globals.set(w.name("g"), two); return two }},
	{"PY_CHECK", objects(func(x Source, c Const) Guard { return PyCheck(x, c, "is_even") }, someFunction),
		[]string{"___object(1000, 'is_even')(x)"},
		func(w *world) Value { w.calls = func(v Value) bool { return v == two }; return two },
		func(w *world) Value { w.calls = func(v Value) bool { return v == two }; return none }},
	{"SHAPE_ENV", func(w *world, x Source) []Guard {
		return []Guard{TypeMatch(x, w.konst(intType, "")), ShapeEnv(compare(load(x, 2), SizeGE, constant(2)))}
	},
		[]string{"___check_type_id(x, 1000)", "x >= 2"}, value(two), value(integer("1"))},
	{"GLOBAL_STATE", func(w *world, x Source) []Guard { return one(GlobalState()) },
		[]string{"___check_global_state()"}, value(none), func(w *world) Value { w.newState = true; return none }},
	{"NUM_THREADS", func(w *world, x Source) []Guard { return one(NumThreads()) },
		[]string{"___check_global_state()"}, value(none), func(w *world) Value { w.newState = true; return none }},
}

// managerFor builds the program for a frame with this number of slots, and makes it the program of w.
func managerFor(t *testing.T, w *world, slots int, gs []Guard, values ...Source) *CheckFunctionManager {
	t.Helper()
	m, err := NewCheckFunctionManager(slots, NewSet(gs...), values, Options{GuardNNModules: true})
	require.NoError(t, err)
	w.program = m.Program()
	return m
}

func TestEveryKindHasItsTextAndAPassingAndAFailingFrame(t *testing.T) {
	for _, c := range kindCases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			m := managerFor(t, w, 1, c.guards(w, NewLocalSource("x", 0)))
			assert.Equal(t, append([]string{validText}, c.parts...), m.CodeParts())
			failed, ok := m.Program().Eval(w, []Value{c.pass(w)})
			assert.True(t, ok, "failed at %q", m.Program().FailedPart(failed))

			w = newWorld()
			m = managerFor(t, w, 1, c.guards(w, NewLocalSource("x", 0)))
			failed, ok = m.Program().Eval(w, []Value{c.fail(w)})
			assert.False(t, ok)
			assert.Contains(t, c.parts, m.Program().FailedPart(failed))
		})
	}
}

// Row: S002-89
func TestEveryKindOfTheTableIsTested(t *testing.T) {
	tested := map[CreateFn]bool{}
	for _, c := range kindCases {
		for _, g := range c.guards(newWorld(), NewLocalSource("x", 0)) {
			tested[g.CreateFn] = true
		}
	}
	for kind := CreateFn(1); kind < numCreateFns; kind++ {
		assert.True(t, tested[kind], "%v has no case", kind)
		assert.NotEqual(t, "UNKNOWN", kind.String())
	}
}

// Row: S002-90
func TestEqualsMatchReadsAsTheSeedHasIt(t *testing.T) {
	assert.Equal(t, "y == 2", equalsText("y", Const{Text: "2"}))
	assert.Equal(t, "y == 'a b'", equalsText("y", Const{Text: "'a b'"}))
	assert.Equal(t, "y == -1.5", equalsText("y", Const{Text: "-1.5"}))
}

// Row: S002-91
func TestEqualsMatchUsesTheHelperWhereEqualityIsNotEnough(t *testing.T) {
	for _, text := range []string{"nan", "0.0", "-0.0", "(1+2j)", "1j", "(1, 2)", "()", "(1,)", "frozenset({1})",
		"slice(1, 2, None)"} {
		assert.Equal(t, "___equals(y, "+text+")", equalsText("y", Const{Text: text}))
	}
	assert.Equal(t, "___equals(y, ___object(77))", equalsText("y", Const{Text: "device(type='cpu')", ID: 77}))
	assert.Equal(t, "y == inf", equalsText("y", Const{Text: "inf"}))
	assert.Equal(t, "y == 0", equalsText("y", Const{Text: "0"}))
}

// Row: S002-88
func TestCreatePicksTheBuilderByFamilyAndTakesNothingButTheTablesMethods(t *testing.T) {
	m := &CheckFunctionManager{printer: newPrinter(nil, nil, nil)}
	local, global := &GuardBuilder{m}, &GuardBuilder{nil}
	g := TypeMatch(NewLocalSource("x", 0), Const{})
	require.NoError(t, g.Create(local, global))
	require.Len(t, m.parts, 1)
	assert.Panics(t, func() { g := TypeMatch(NewGlobalSource("x"), Const{}); _ = g.Create(local, global) },
		"the global builder is used")

	g.CreateFn = numCreateFns
	assert.ErrorContains(t, g.Create(local, global), "no GuardBuilder method")
	g.CreateFn = 0
	assert.Error(t, g.Create(local, global))
}

func TestLiterals(t *testing.T) {
	for _, text := range []string{"1", "-12", "1.5", "1e-07", "inf", "-inf", "nan", "1j", "(-0-2j)", "'it\\'s'",
		`"a'b"`, `b'\x00'`,
		"()", "(1,)", "(1, 'a', (None, True))", "frozenset()", "frozenset({1, 2})", "range(0, 3)",
		"slice(None, 2, None)",
		"Ellipsis"} {
		assert.True(t, isLiteral(text), text)
	}
	for _, text := range []string{"", "<object at 0x1>", "(1)", "(1, 2", "'abc", "'a' 'b'", "1 + 2", "f(1)", "os",
		"01", "[1]",
		"(<class 'int'>,)", "--1", "e", "'x'...", "'a\nb'", "Nonesuch"} {
		assert.False(t, isLiteral(text), text)
	}
}
