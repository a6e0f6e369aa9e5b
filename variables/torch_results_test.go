package variables

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestResultsAreReadAsTheyAreWritten(t *testing.T) {
	for _, kind := range resultKinds {
		text := string(kind)
		if kind == givesTensors {
			text += ":12"
		}
		r, err := parseResult(text)
		assert.NoError(t, err)
		assert.Equal(t, text, r.String())
	}
}

func TestTextsThatAreNoResults(t *testing.T) {
	for _, text := range []string{"", "Tensor", "tensors", "tensor:2", "list:1"} {
		_, err := parseResult(text)
		assert.ErrorContains(t, err, "is no result kind", text)
	}
}
