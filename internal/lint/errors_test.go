package lint

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An exception that a call into Python raised is an answer to nothing: it is returned, or said to be of no interest where it is looked at.
func TestNoErrorOfACallIntoPythonIsDropped(t *testing.T) {
	methods, err := fallible(filepath.Join(root, "pyhook", "py"))
	require.NoError(t, err)
	require.Contains(t, methods, "CallMethod")
	seen := 0
	for _, p := range packages(t) {
		if !callsPython(p) {
			continue
		}
		for _, file := range slices.Concat(p.GoFiles, p.CgoFiles) {
			found, err := droppedErrors(filepath.Join(p.Dir, file), nil, methods)
			require.NoError(t, err)
			assert.Empty(t, found)
			seen++
		}
	}
	assert.Greater(t, seen, 100)
}

func TestADroppedErrorIsFound(t *testing.T) {
	methods := map[string]bool{"Call": true, "GetAttr": true}
	cases := map[string]int{
		"_, _ = s.Call(f)":                   1,
		"v, _ := o.scope.GetAttr(m, name)":   1,
		"tx.Scope().Call(f)":                 1,
		"v, err := s.Call(f); _, _ = v, err": 0,
		"c.Call(1, nil)":                     0,
		"v, _ := s.DictGet(d, k); _ = v":     0,
	}
	for body, want := range cases {
		t.Run(body, func(t *testing.T) {
			found, err := droppedErrors("made.go", "package p\nfunc f() {\n"+body+"\n}\n", methods)
			require.NoError(t, err)
			assert.Len(t, found, want)
		})
	}
}
