//go:build pyembed

package cache

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
)

// fakeInstaller makes no entry. Its Check returns the field `failed` as the failed node.
type fakeInstaller struct {
	failed int
	made   int
}

func (f *fakeInstaller) Make(*py.Scope, *GuardedCode) (py.Object, error) {
	f.made++
	return py.Object{}, nil
}

func (f *fakeInstaller) Check(*py.Scope, py.Object, []py.Object, py.Object) (int, error) {
	return f.failed, nil
}

func entryFor(t *testing.T) *GuardedCode {
	t.Helper()
	set := guards.NewSet(guards.TypeMatch(guards.NewLocalSource("y", 0), guards.Const{Index: 0, Text: "int", ID: 7}))
	m, err := guards.NewCheckFunctionManager(1, set, nil, guards.Options{})
	require.NoError(t, err)
	return &GuardedCode{Program: m.Program(), Pool: make([]py.Object, 1)}
}

// Row: S002-71, S002-109
func TestAnEntryIsMadeOnceItsGuardsHold(t *testing.T) {
	in := &fakeInstaller{failed: -1}
	_, err := entryFor(t).Install(py.OpenScope(), in, nil, py.Object{})
	require.NoError(t, err)
	require.Equal(t, 1, in.made)
}

// Row: S002-107
func TestAGuardThatFailsOnItsOwnFrameIsFoundAtOnce(t *testing.T) {
	g := entryFor(t)
	_, err := g.Install(py.OpenScope(), &fakeInstaller{failed: len(g.Program.Nodes) - 1}, nil, py.Object{})
	require.True(t, errors.Is(err, ErrGuardFails))
	require.ErrorContains(t, err, "___check_type_id(y, 7)")
}

// Row: S002-106
func TestMalformedEntriesAreRefusedBeforeTheyAreMade(t *testing.T) {
	for name, spoil := range map[string]func(g *GuardedCode){
		"register out of range": func(g *GuardedCode) { g.Extra = []uint32{999} },
		"registers descend":     func(g *GuardedCode) { g.Program.NumRegs = 9; g.Extra = []uint32{8, 7} },
		"row without chain":     func(g *GuardedCode) { g.Rows = []TracebackRow{{Start: 1, End: 2}} },
		"constant out of range": func(g *GuardedCode) { g.Pool = nil },
		"frame without code":    func(g *GuardedCode) { g.Chains = [][]Level{{{Code: py.None(), Globals: py.None()}}} },
	} {
		t.Run(name, func(t *testing.T) {
			g, in := entryFor(t), &fakeInstaller{failed: -1}
			spoil(g)
			_, err := g.Install(py.OpenScope(), in, nil, py.Object{})
			require.Error(t, err)
			require.Zero(t, in.made)
		})
	}
}
