package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godynamo/godynamo/internal/bench"
)

// recorded is a result file with one workload whose result is wrong, and one whose process died. internal/bench writes
// it.
const recorded = "../bench/testdata/result.json"

// healthy writes a result file with one workload. The workload takes about this many microseconds in each of eight
// processes.
func healthy(t *testing.T, microseconds float64) string {
	t.Helper()
	var samples [][]float64
	for i := range 8 {
		samples = append(samples, []float64{microseconds * (1 + 0.001*float64(i))})
	}
	r := bench.Result{
		Kind: "godynamo bench", Version: 1,
		Settings: bench.Settings{Engines: []string{"eager"}, Processes: 8, Rounds: 1},
		Workloads: []*bench.Workload{{Name: "relu", Suite: "micro",
			Engines: map[string]*bench.Figures{"eager": {Correct: "yes", Samples: samples}}}},
	}
	path := filepath.Join(t.TempDir(), "r.json")
	file, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, r.Write(file))
	require.NoError(t, file.Close())
	return path
}

func TestBenchShowsAResultThatWasWritten(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "new.json")
	code, stdout, stderr := run("bench", "--load", recorded, "--json", out, "--csv", filepath.Join(dir, "r.csv"),
		"--png", dir)
	assert.Equal(t, 1, code, "a workload is wrong: %s", stderr)
	assert.Contains(t, stdout, "segmentation fault")
	for _, name := range []string{"new.json", "r.csv", "ratio.png", "warm.png", "cold.png"} {
		assert.FileExists(t, filepath.Join(dir, name))
	}
	code, stdout, _ = run("bench", "--load", recorded, "--json")
	assert.Equal(t, 1, code)
	assert.NoError(t, json.Unmarshal([]byte(stdout), new(bench.Result)), "JSON and nothing else")
}

func TestBenchFailsOnARegressionOnly(t *testing.T) {
	old, same, slower := healthy(t, 10), healthy(t, 10.1), healthy(t, 12)
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"--load", same, "--compare", old, "--fail-on", "0"}, 0},
		{[]string{"--load", slower, "--compare", old}, 0},
		{[]string{"--load", slower, "--compare", old, "--fail-on", "5%"}, 1},
		{[]string{"--load", slower, "--compare", old, "--fail-on", "30%"}, 0},
		{[]string{"--load", slower, "--compare", old, "--margin", "25%", "--fail-on", "5%"}, 0},
		{[]string{"--load", old, "--compare", slower, "--fail-on", "5%"}, 0},
	} {
		code, stdout, stderr := run(append([]string{"bench"}, c.args...)...)
		assert.Equal(t, c.code, code, "%v\n%s%s", c.args, stdout, stderr)
		assert.Equal(t, c.code == 1, strings.Contains(stderr, "relu with eager got 20.0 % slower"), stderr)
		within := slices.Contains(c.args, "25%") || slices.Contains(c.args, "0")
		assert.Equal(t, within, strings.Contains(stderr, "lower the margin too"), stderr)
	}
}

func TestBenchBadUseIsOneLine(t *testing.T) {
	torn := filepath.Join(t.TempDir(), "torn.json")
	require.NoError(t, os.WriteFile(torn, []byte(`{"kind": "godyn`), 0o666))
	old := healthy(t, 10)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--load", torn}, "torn or no JSON"},
		{[]string{"--load", old, "--compare", torn}, "torn or no JSON"},
		{[]string{"--load", old, "--compare", old, "--margin", "much"}, "--margin much: a percentage is wanted"},
		{[]string{"--load", old, "--compare", old, "--fail-on", "-3"}, "--fail-on -3: a percentage is wanted"},
		{[]string{"--load", recorded, "--compare", recorded, "--fail-on", "5%"},
			"--fail-on: no regression can show in this comparison: 5 of 5 rows"},
		{[]string{"--load", old, "--html", filepath.Dir(old)}, "is a directory"},
		{[]string{"--load", old, "--png", old}, "--png: "},
		{[]string{"--load", old, "--json", "--csv", "-"}, "--json and --csv both want stdout"},
		{[]string{"relu", "identity"}, "bench takes no arguments"},
	} {
		code, _, stderr := run(append([]string{"bench"}, c.args...)...)
		assert.Equal(t, 2, code, c.args)
		assert.Contains(t, stderr, c.want)
		assert.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	}
}
