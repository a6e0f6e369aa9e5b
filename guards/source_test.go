package guards

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// script is a Reconstructor that records the loads it is asked to emit.
type script struct{ lines []string }

func (s *script) add(format string, args ...any) error {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
	return nil
}

func (s *script) LoadSlot(slot int, name string) error { return s.add("slot %d %s", slot, name) }
func (s *script) LoadGlobal(name string) error         { return s.add("global %s", name) }
func (s *script) LoadBuiltin(name string) error        { return s.add("builtin %s", name) }
func (s *script) LoadGlobals() error                   { return s.add("globals") }
func (s *script) LoadConst(c Const) error              { return s.add("const %d", c.Index) }
func (s *script) LoadInt(i int) error                  { return s.add("int %d", i) }
func (s *script) LoadStr(v string) error               { return s.add("str %s", v) }
func (s *script) LoadAttr(name string) error           { return s.add("attr %s", name) }
func (s *script) LoadCellContents() error              { return s.add("contents") }
func (s *script) Subscript() error                     { return s.add("subscript") }
func (s *script) Call(nargs int) error                 { return s.add("call %d", nargs) }
func (s *script) LoadHelper(name string) error         { return s.add("helper %s", name) }
func (s *script) LoadRandomValue(i int) error          { return s.add("random %d", i) }

var (
	localX = NewLocalSource("x", 0)
	keyK   = Const{Index: 5, Text: "'k'", ID: 50}
	typeT  = Const{Index: 6, Text: "<class 'T'>", ID: 60}
)

// sourceCases lists each class of Source with its name, its family and the loads that yield the value again.
// Row: S002-79
// Row: S002-80
var sourceCases = []struct {
	source Source
	name   string
	family GuardSource
	loads  string
}{
	{localX, "x", SourceLocal, "slot 0 x"},
	{NewGlobalSource("torch"), "G['torch']", SourceGlobal, "global torch"},
	{NewGlobalsSource(), "G", SourceGlobal, "globals"},
	{NewBuiltinSource("len"), "___builtin('len')", SourceGlobal, "builtin len"},
	{NewObjectKeySource(NewGlobalSource("d"), localX), "G['d'][x]", SourceGlobal, "global d; slot 0 x; subscript"},
	{NewGradSource(localX), "x.grad", SourceLocal, "slot 0 x; attr grad"},
	{NewCellSource(localX), "___cells['x'].cell_contents", SourceLocal, "slot 0 x; contents"},
	{NewCellSource(NewIndexSource(localX, 1)), "x[1].cell_contents", SourceLocal,
		"slot 0 x; int 1; subscript; contents"},
	{NewConstSource(typeT, "___type_T"), "___object(60, '___type_T')", SourceConstant, "const 6"},
	{NewRandomValueSource(2), "random_value_2", SourceRandomValue, "random 2"},
	{NewAttrSource(localX, "weight"), "x.weight", SourceLocal, "slot 0 x; attr weight"},
	{NewShadowingAttrSource(localX, "k"), "___instance_attr(x, 'k')", SourceLocal, "slot 0 x; attr k"},
	{NewAttrSource(localX, "0 b"), "___instance_attr(x, '0 b')", SourceLocal, "slot 0 x; attr 0 b"},
	{NewModuleAttrSource(NewGlobalSource("m"), "pi"), "G['m'].pi", SourceGlobal, "global m; attr pi"},
	{NewSlotSource(localX, "s", 16), "x.s", SourceLocal, "slot 0 x; attr s"},
	{NewInstanceDictSource(localX), "___instance_dict(x)", SourceLocal, "helper instance_dict; slot 0 x; call 1"},
	{NewTypeSource(localX), "type(x)", SourceLocal, "builtin type; slot 0 x; call 1"},
	{NewTypeAttrSource(NewTypeSource(localX), "f"), "___type_lookup(type(x), 'f')", SourceLocal,
		"helper type_lookup; builtin type; slot 0 x; call 1; str f; call 2"},
	{NewMroSource(NewTypeSource(localX), 1, "f"), "type(x).__mro__[1].__dict__['f']", SourceLocal,
		"builtin type; slot 0 x; call 1; attr __mro__; int 1; subscript; attr __dict__; str f; subscript"},
	{NewMroClassSource(NewTypeSource(localX), 1), "___mro_class(type(x), 1)", SourceLocal,
		"helper mro_class; builtin type; slot 0 x; call 1; int 1; call 2"},
	{NewReferentSource(localX), "___referent(x)", SourceLocal, "helper referent; slot 0 x; call 1"},
	{NewFunctionFieldSource(localX, FuncCode), "x.__code__", SourceLocal, "slot 0 x; attr __code__"},
	{NewFunctionFieldSource(localX, MethodFunc), "x.__func__", SourceLocal, "slot 0 x; attr __func__"},
	{NewDictGetItemSource(localX, keyK), "x['k']", SourceLocal, "slot 0 x; const 5; subscript"},
	{NewDictGetItemSource(localX, typeT), "x[___object(60)]", SourceLocal, "slot 0 x; const 6; subscript"},
	{NewODictGetItemSource(localX, keyK), "___dict_getitem(x, 'k')", SourceLocal,
		"helper dict_getitem; slot 0 x; const 5; call 2"},
	{NewIndexSource(localX, 2), "x[2]", SourceLocal, "slot 0 x; int 2; subscript"},
	{NewDictKeySource(localX, 0), "list(x)[0]", SourceLocal, "helper dict_key; slot 0 x; int 0; call 2"},
	{NewDictValueSource(localX, 0), "___dict_value(x, 0)", SourceLocal, "helper dict_value; slot 0 x; int 0; call 2"},
	{NewIteratorSource(localX, IteratorValue, 2), "___iterator_value(x, 2)", SourceLocal,
		"helper iterator_value; slot 0 x; int 2; call 2"},
	{NewTupleIteratorGetItemSource(localX, 1), "___tuple_iterator_getitem(x, 1)", SourceLocal,
		"helper tuple_iterator_getitem; slot 0 x; int 1; call 2"},
	{NewTensorPropertySource(localX, TensorSize, 0), "x.size()[0]", SourceLocal, "slot 0 x; attr size; int 0; call 1"},
	{NewTensorPropertySource(NewAttrSource(NewNNModuleSource(localX), "w"), TensorStride, 2), "x.w.stride()[2]",
		SourceLocalNNModule, "slot 0 x; attr w; attr stride; int 2; call 1"},
	{NewGlobalWeakRefSource("r"), "G['r']()", SourceGlobal, "global r; call 0"},
	{NewNNModuleSource(localX), "x", SourceLocalNNModule, "slot 0 x"},
	{NewNNModuleSource(NewGlobalSource("m")), "G['m']", SourceGlobalNNModule, "global m"},
	{NewAttrSource(NewNNModuleSource(localX), "p"), "x.p", SourceLocalNNModule, "slot 0 x; attr p"},
	{NewNotNNModuleSource(NewNNModuleSource(localX)), "x", SourceLocal, "slot 0 x"},
	{NewNotNNModuleSource(NewNNModuleSource(NewGlobalSource("m"))), "G['m']", SourceGlobal, "global m"},
}

func TestEverySourceHasItsNameFamilyAndLoads(t *testing.T) {
	for _, c := range sourceCases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.name, c.source.Name())
			assert.Equal(t, c.family, c.source.GuardSource())
			var s script
			require.NoError(t, Reconstruct(c.source, &s))
			assert.Equal(t, c.loads, strings.Join(s.lines, "; "))
		})
	}
}

func TestReconstructWithoutASourceIsAnError(t *testing.T) {
	assert.Error(t, Reconstruct(nil, &script{}))
}

// Row: S002-87
func TestGuardSourceNamesAndFamilies(t *testing.T) {
	names := map[GuardSource]string{SourceLocal: "LOCAL", SourceGlobal: "GLOBAL",
		SourceLocalNNModule:  "LOCAL_NN_MODULE",
		SourceGlobalNNModule: "GLOBAL_NN_MODULE", SourceConstant: "CONSTANT", SourceRandomValue: "RANDOM_VALUE"}
	for s, name := range names {
		assert.Equal(t, name, s.String())
		assert.Equal(t, strings.HasSuffix(name, "NN_MODULE"), s.IsNNModule())
		assert.Equal(t, strings.HasPrefix(name, "LOCAL"), s.IsLocal())
	}
	assert.Equal(t, "UNKNOWN", GuardSource(99).String())
}

func TestQuoteWritesPythonStrings(t *testing.T) {
	assert.Equal(t, `'it\'s'`, quote("it's"))
	assert.Equal(t, `'a\\b\n\x01é'`, quote("a\\b\n\x01é"))
	assert.Equal(t, `'\xff'`, quote("\xff"))
}
