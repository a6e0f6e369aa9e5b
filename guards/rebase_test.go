package guards

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRebaseMovesWhatIsReadFromAPlace(t *testing.T) {
	layers := NewAttrSource(NewLocalSource("self", 0), "layers")
	one, two := NewIndexSource(layers, 0), NewIndexSource(layers, 1)
	r := NewRebase(one, two)
	weight := NewDictGetItemSource(NewAttrSource(NewNNModuleSource(one), "_parameters"), Const{Text: "'weight'"})
	moved := r.Source(weight)
	require.Equal(t, "self.layers[1]._parameters['weight']", moved.Name())
	require.Equal(t, SourceLocalNNModule, moved.GuardSource())
	require.Same(t, moved, r.Source(weight), "each source once")
	require.Equal(t, "___type_lookup(type(self.layers[1]), 'f')",
		r.Source(NewTypeAttrSource(NewTypeSource(one), "f")).Name())
	for _, s := range []Source{layers, two, NewGlobalSource("g"), NewIndexSource(layers, 10)} {
		require.Same(t, s, r.Source(s))
	}
}

// TestRebaseKnowsEveryKindOfSource checks that Rebase handles each kind of source that is read from another
// source.
func TestRebaseKnowsEveryKindOfSource(t *testing.T) {
	from, to := NewLocalSource("a", 0), NewLocalSource("b", 1)
	for _, s := range []Source{
		NewNNModuleSource(from), NewNotNNModuleSource(from), NewCellSource(from), NewAttrSource(from, "x"),
		NewShadowingAttrSource(from, "x"),
		NewModuleAttrSource(from, "x"), NewSlotSource(from, "x", 16), NewRawSlotSource(from, "x", 16),
		NewInstanceDictSource(from), NewTypeSource(from),
		NewTypeAttrSource(from, "x"), NewMroSource(from, 1, "x"), NewMroClassSource(from, 1),
		NewFunctionFieldSource(from, FuncCode),
		NewDictGetItemSource(from, Const{Text: "1"}), NewODictGetItemSource(from, Const{Text: "1"}),
		NewIndexSource(from, 1), NewDictKeySource(from, 1), NewDictValueSource(from, 1),
		NewTupleIteratorGetItemSource(from, 1), NewIteratorSource(from, IteratorItem, 1),
		NewReferentSource(from), NewGradSource(from),
		NewTensorPropertySource(from, TensorStride, 1),
	} {
		moved := NewRebase(from, to).Source(s)
		require.IsType(t, s, moved)
		require.Equal(t, to, moved.Base())
		back := NewRebase(to, from).Source(moved)
		require.Equal(t, s, back)
	}
	byKey := NewRebase(from, to).Source(NewObjectKeySource(NewGlobalSource("d"), NewAttrSource(from, "x")))
	require.Equal(t, NewObjectKeySource(NewGlobalSource("d"), NewAttrSource(to, "x")), byKey)
	require.Nil(t, NewRebase(NewGlobalSource("w"), to).Source(NewGlobalWeakRefSource("w")),
		"its base is not free to choose")
}

func TestRebaseMovesBothPlacesOfAGuard(t *testing.T) {
	one, two, other := NewLocalSource("a", 0), NewLocalSource("b", 1), NewLocalSource("c", 2)
	r := NewRebase(one, two)
	g, ok := r.Guard(DuplicateInput(NewAttrSource(one, "x"), NewAttrSource(one, "y")))
	require.True(t, ok)
	require.Equal(t, DuplicateInput(NewAttrSource(two, "x"), NewAttrSource(two, "y")), g)
	g, ok = r.Guard(NoAlias(other, one))
	require.True(t, ok)
	require.Equal(t, NoAlias(other, two), g)
	g, ok = r.Guard(GlobalState())
	require.True(t, ok)
	require.Equal(t, GlobalState(), g)
	_, ok = NewRebase(NewGlobalSource("w"), two).Guard(WeakrefAlive(NewGlobalWeakRefSource("w")))
	require.False(t, ok)
}

func TestPlacesFindWhatWasSaidBelow(t *testing.T) {
	self := NewLocalSource("self", 0)
	one, ten := NewAttrSource(self, "one"), NewAttrSource(self, "ten")
	typ := Const{Text: "T"}
	said := NewSet(
		TypeMatch(self, typ), TypeMatch(one, typ), TypeMatch(NewAttrSource(NewNNModuleSource(one), "x"), typ),
		TypeMatch(ten, typ),
		NoAlias(ten, NewAttrSource(one, "y")), GlobalState(),
	).Guards()
	reads := []Source{ten, NewAttrSource(one, "z"), NewAttrSource(one, "z")}
	var p Places
	gs, rs := p.Below(one, said, reads)
	require.Equal(t, []*Guard{said[1], said[2], said[4]}, gs)
	require.Equal(t, reads[1:], rs)
	said = append(said, NewSet(TypeMatch(NewTypeSource(one), typ)).Guards()...)
	gs, _ = p.Below(one, said, reads)
	require.Equal(t, []*Guard{said[1], said[2], said[4], said[6]}, gs, "the log has grown")
	gs, rs = p.Below(NewLocalSource("nobody", 1), said, reads)
	require.Empty(t, gs)
	require.Empty(t, rs)
}
