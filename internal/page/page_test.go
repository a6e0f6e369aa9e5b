package page

import (
	"html/template"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTextIsEscapedAndNothingIsLoaded(t *testing.T) {
	var out strings.Builder
	require.NoError(t, Write(&out, Page{Title: "<script>alert(1)</script>", Subtitle: "a & b",
		Body: "<main>body</main>", Script: "let x = 1 < 2", Style: ".x{}"}))
	text := out.String()
	assert.NotContains(t, text, "<script>alert")
	assert.Contains(t, text, "&lt;script&gt;alert(1)&lt;/script&gt;")
	assert.Contains(t, text, "a &amp; b")
	assert.Contains(t, text, "<main>body</main>")
	assert.Contains(t, text, "<script>let x = 1 < 2</script>")
	assert.Contains(t, text, "default-src 'none'")
	assert.NotContains(t, text, "http://")
	assert.NotContains(t, text, "https://")
}

func TestColoursHaveALightAndADarkValue(t *testing.T) {
	light, dark, found := strings.Cut(string(Style()), "prefers-color-scheme: dark")
	require.True(t, found)
	for _, name := range []string{"--ink", "--paper", "--panel", "--line", "--soft", "--accent", "--good", "--warn",
		"--bad", "--mark", "--c0", "--c7"} {
		assert.Contains(t, light, name+":")
		assert.Contains(t, dark, name+":")
	}
	assert.IsType(t, template.CSS(""), Style())
}
