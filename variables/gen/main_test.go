package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheGeneratedFilesAreOfTheseSources(t *testing.T) {
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join("..", f.source))
		require.NoError(t, err)
		want, err := f.formatted(string(text))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join("..", f.file))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "run `make generate`")
	}
}

func TestFactsThatAreNoFields(t *testing.T) {
	for text, problem := range map[string]string{
		"x = 1\n": "no function facts()",
		"\ndef facts() -> dict:\n    return {}\n":                                             "gives no dict",
		"\ndef facts() -> dict:\n    return {\n        \"a-b\": 1,\n    }\n":                  "neither snake_case nor CamelCase",
		"\ndef facts() -> dict:\n    return {\n        \"ab\": 1,\n        \"ab\": 2,\n}\n":   "are one field",
		"\ndef facts() -> dict:\n    return {\n        \"a_b\": 1,\n        \"a_b\": 2,\n}\n": "are one field",
	} {
		_, err := factNames(text)
		assert.ErrorContains(t, err, problem)
	}
}

func TestRowsThatAreNoKinds(t *testing.T) {
	for text, problem := range map[string]string{
		"x = 1\n": "no CallableKind",
		"\nCallableKind = Literal[\n    \"op\",\n]\n":                                "not a word and what it means",
		"\nCallableKind = Literal[\n    \"a:b\",  # two\n]\n":                        "not a word and what it means",
		"\nCallableKind = Literal[\n    \"op\",  # one\n    \"op\",  # another\n]\n": "has two rows",
	} {
		_, err := words(text, "CallableKind")
		assert.ErrorContains(t, err, problem)
	}
}

func TestNamesAreGos(t *testing.T) {
	assert.Equal(t, "callableName", field("callable_name"))
	assert.Equal(t, "ListType", field("ListType"))
	assert.Equal(t, "kindRecursiveRepr", callableKinds.constant("recursive_repr"))
}
