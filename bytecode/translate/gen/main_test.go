package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	text, err := os.ReadFile("../groups.table")
	require.NoError(t, err)
	files, err := generate(string(text))
	require.NoError(t, err)
	for path, want := range files {
		found, err := os.ReadFile(filepath.Join("..", path))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(found), path)
	}
}

func TestWrongRowsAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"two columns":                      "add  both",
		"no form and no such method":       "add  both  OHTER  ADD",
		"a method after the operators":     "+  -  PyNumber_Add\nadd  both  OTHER  ADD",
		"a method without a kernel":        "add  both  OTHER",
		"an operator with a kernel":        "+  -  PyNumber_Add  ADD",
		"an operator without its method":   "+  add  PyNumber_Add",
		"a second column of another value": "add  all  OTHER  ADD",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := generate(text)
			assert.ErrorContains(t, err, "groups.table:")
		})
	}
}
