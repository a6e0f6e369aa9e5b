package echarts

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheScriptIsTheOneThatTheReadmeNames(t *testing.T) {
	sum := sha256.Sum256([]byte(Script))
	assert.Equal(t, SHA256, hex.EncodeToString(sum[:]))
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	assert.Contains(t, string(readme), SHA256)
	assert.Contains(t, string(readme), Version)
}

func TestTheScriptMayStandInAPage(t *testing.T) {
	assert.NotContains(t, strings.ToLower(Script), "</script")
}
