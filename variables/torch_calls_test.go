//go:build pyembed

package variables

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEachKindOfCallableHasItsCall(t *testing.T) {
	for _, kind := range callableKinds {
		assert.Contains(t, torchCalls, kind)
	}
	assert.Len(t, torchCalls, len(callableKinds))
}

func TestACallThatTakesFunctionsIsNotForgotten(t *testing.T) {
	assert.PanicsWithValue(t, "variables: HigherCalls lacks Transform", func() { RegisterHigherCalls(HigherCalls{}) })
}
