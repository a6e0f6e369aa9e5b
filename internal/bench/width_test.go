package bench

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatIsPrintedFitsATerminalWhateverIsMeasured(t *testing.T) {
	for _, longer := range []int{0, 12, 60} {
		r := made()
		for _, w := range r.Workloads {
			w.Name += strings.Repeat("n", longer)
			if w.Error != "" {
				w.Error += strings.Repeat(" and more", longer)
			}
		}
		for i, label := range r.Settings.Engines {
			r.Settings.Engines[i] = label + strings.Repeat("é", longer)
			for _, w := range r.Workloads {
				if f := w.Engines[label]; f != nil && longer > 0 {
					delete(w.Engines, label)
					w.Engines[r.Settings.Engines[i]] = f
				}
			}
		}
		r.Comparison = Compare(r, r, "old.json", Margin)
		var out strings.Builder
		require.NoError(t, r.WriteTable(&out))
		for _, line := range strings.Split(out.String(), "\n") {
			fits := utf8.RuneCountInString(line) <= width
			assert.True(t, fits || !strings.Contains(strings.TrimSpace(line), " "), "%d: %s", longer, line)
		}
		for _, name := range header {
			assert.Contains(t, out.String(), name)
		}
	}
}
