package main

import (
	"go/format"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheGeneratedFileIsOfTheseFacts(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", source))
	require.NoError(t, err)
	names, err := keys(string(text))
	require.NoError(t, err)
	want, err := format.Source(goFile(names))
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join("..", "facts_gen.go"))
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "run `make generate`")
}

func TestKeysThatAreNoFields(t *testing.T) {
	for text, problem := range map[string]string{
		"x = 1\n": "no function facts()",
		"\ndef facts() -> dict:\n    return {}\n":                                             "gives no dict",
		"\ndef facts() -> dict:\n    return {\n        \"a-b\": 1,\n    }\n":                  "neither snake_case nor CamelCase",
		"\ndef facts() -> dict:\n    return {\n        \"ab\": 1,\n        \"ab\": 2,\n}\n":   "are one field",
		"\ndef facts() -> dict:\n    return {\n        \"a_b\": 1,\n        \"a_b\": 2,\n}\n": "are one field",
	} {
		_, err := keys(text)
		assert.ErrorContains(t, err, problem)
	}
}

func TestAFieldIsNamedAsGoNamesIt(t *testing.T) {
	assert.Equal(t, "callableName", field("callable_name"))
	assert.Equal(t, "ListType", field("ListType"))
}
