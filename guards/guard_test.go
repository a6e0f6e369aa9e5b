package guards

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Row: S002-72
// Row: S002-86
func TestAGuardIsItsNameFamilyKindAndKey(t *testing.T) {
	src := NewAttrSource(NewNNModuleSource(localX), "p")
	g := TypeMatch(src, Const{Index: 1})
	assert.Equal(t, GuardID{"x.p", SourceLocalNNModule, CreateTypeMatch, ""}, g.ID())
	assert.Equal(t, g.ID(), TypeMatch(NewAttrSource(NewNNModuleSource(localX), "p"),
		Const{Index: 2}).At(UserLine{"f.py", 3}).ID())
	assert.NotEqual(t, HasAttr(localX, "a", true).ID(), HasAttr(localX, "b", true).ID())
	assert.NotEqual(t, DictContains(localX, Const{Index: 1}, true).ID(),
		DictContains(localX, Const{Index: 2}, true).ID())
	assert.Len(t, map[GuardID]bool{g.ID(): true, TypeMatch(src, Const{}).ID(): true}, 1)
}

// Row: S002-86
func TestCompareGivesOneOrderWhateverTheFirst(t *testing.T) {
	gs := []Guard{
		TypeMatch(localX, Const{}), IDMatch(localX, Const{}, KeepWeak), TypeMatch(NewLocalSource("yy", 1), Const{}),
		HasAttr(localX, "b", true), HasAttr(localX, "a", true), TypeMatch(NewGlobalSource("a"), Const{}),
		GradMode(true),
	}
	want := slices.Clone(gs)
	slices.SortFunc(want, Guard.Compare)
	for range 50 {
		rand.Shuffle(len(gs), func(i, j int) { gs[i], gs[j] = gs[j], gs[i] })
		got := slices.Clone(gs)
		slices.SortFunc(got, Guard.Compare)
		for i := range got {
			assert.Equal(t, want[i].ID(), got[i].ID())
		}
	}
}

// Row: S002-73
// Row: S002-74
func TestSetsArePersistentAndKeepTheirOrder(t *testing.T) {
	a, b, c := TypeMatch(localX, Const{}), HasAttr(localX, "a", true), HasAttr(localX, "b", true)
	empty := Set{}
	one := empty.Add(a)
	two := one.Add(b, a)
	other := NewSet(c, b)
	union := two.Union(other, empty, two)

	assert.Equal(t, 0, empty.Len())
	assert.Equal(t, 1, one.Len())
	assert.Equal(t, 2, two.Len())
	assert.Equal(t, []GuardID{a.ID(), b.ID(), c.ID()}, ids(union))
	assert.Equal(t, []GuardID{c.ID(), b.ID()}, ids(other), "a union leaves its operands alone")
	assert.True(t, union.Contains(c))
	assert.False(t, two.Contains(c))
	assert.False(t, empty.Contains(a))
}

func ids(s Set) (out []GuardID) {
	s.Each(func(g Guard) { out = append(out, g.ID()) })
	return out
}

func TestALongChainOfSetsNeitherOverflowsNorTakesExponentialTime(t *testing.T) {
	var s Set
	for range 200 {
		s = s.Union(s.Add(TypeMatch(localX, Const{})), s)
	}
	for i := range 50000 {
		s = s.Add(DictContains(localX, Const{Index: i}, true))
	}
	assert.Equal(t, 50001, s.Len())
}

func TestTensorGuardsOnOnePlaceAreMerged(t *testing.T) {
	first := TensorMatch(localX, &TensorArgs{Fields: TensorType | TensorSizes, StaticSizes: 1})
	second := TensorMatch(localX, &TensorArgs{Fields: TensorDType | TensorSizes, StaticSizes: 2, StaticStrides: 4})
	s := NewSet(first, second)
	assert.Equal(t, &TensorArgs{Fields: TensorType | TensorSizes | TensorDType, StaticSizes: 3, StaticStrides: 4},
		s.Guards()[0].Args.Tensor)
	assert.Equal(t, TensorType|TensorSizes, first.Args.Tensor.Fields, "merging changes neither operand")
}
