package lint

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// If a call into Python raises an exception, the code must return it, or state that it is ignored on purpose.
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
			found, err = answeredErrors(filepath.Join(p.Dir, file), nil, methods)
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

func TestAnErrorThatBecomesAnAnswerIsFound(t *testing.T) {
	methods := map[string]bool{"Call": true, "SetAttr": true}
	cases := map[string]int{
		"if v, err := s.Call(f); err == nil { g(v) }":                                   1,
		"v, err := s.Call(f); if err != nil || v == none { return nil }":                1,
		"v, err := s.Call(f); if err != nil { return nil }; v, err = s.Call(g); h(err)": 1,
		"v, err := s.Call(f); if err != nil { return err }":                             0,
		"if v, err := s.Call(f); err != nil || v == none { return err }":                0,
		"if v, ok := py.Answered(s.Call(f)); ok { g(v) }":                               0,
		"if v, err := other(f); err == nil { g(v) }":                                    0,
		"v, err := s.Call(f); if err == nil && v == x { err = h() }; return err":        0,
		"v, err := s.Call(f); if err == nil { v, err = s.Call(g) }; return v, err":      0,
		"v, err := s.Call(f); if err == nil { v, err = s.Call(g) }; ok = err == nil":    2,
		"v, err := s.Call(f); if err == nil || v == x { err = h() }; return err":        1,
		"if s.SetAttr(f, n, v) != nil { return nil }":                                   1,
		"x = func() { if _, err := s.Call(f); err != nil { g() } }":                     1,
		"if v, err := s.Call(f); err == nil { g(v) } else { h(err) }":                   0,
	}
	for body, want := range cases {
		t.Run(body, func(t *testing.T) {
			found, err := answeredErrors("made.go", "package p\nfunc f() error {\n"+body+"\n}\n", methods)
			require.NoError(t, err)
			assert.Len(t, found, want)
		})
	}
}
