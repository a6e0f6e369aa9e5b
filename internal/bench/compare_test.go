package bench

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// run returns a result with several workloads, each measured in the given number of processes. The time of a round is
// base(workload), times a random factor of the process, times a random factor of the round that is at least 1.
func run(random *rand.Rand, processes, workloads int, base func(workload int) float64) *Result {
	r := &Result{Kind: kind, Version: 1, Settings: Settings{Engines: []string{Eager}, Processes: processes}}
	for w := range workloads {
		var samples [][]float64
		for range processes {
			luck := 1 + 0.01*random.NormFloat64()
			var rounds []float64
			for range 6 {
				rounds = append(rounds, base(w)*luck*(1+0.05*random.ExpFloat64()))
			}
			samples = append(samples, rounds)
		}
		r.Workloads = append(r.Workloads, &Workload{
			Name: string(rune('a' + w)), Engines: map[string]*Figures{Eager: {Correct: "yes", Samples: samples}},
		})
	}
	r.finish()
	return r
}

func even(int) float64 { return 10 }

func TestTwoRunsOfTheSameShowNoChange(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	wrong := 0
	for range 200 {
		c := Compare(run(random, 7, 20, even), run(random, 7, 20, even), "old", Margin)
		for _, row := range c.Rows {
			if row.Significant {
				wrong++
				break
			}
		}
	}
	assert.LessOrEqual(t, wrong, 20, "of 200 comparisons of twenty rows")
}

func TestASlowedWorkloadShowsAndNoOther(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	slowed := func(w int) float64 {
		if w == 4 {
			return 11
		}
		return 10
	}
	c := Compare(run(random, 7, 20, even), run(random, 7, 20, slowed), "old", Margin)
	worse := c.Worse(0.05)
	require.Len(t, worse, 1)
	assert.Equal(t, "e", worse[0].Workload)
	assert.InDelta(t, 0.1, worse[0].Change, 0.03)
	assert.Empty(t, c.Worse(0.2))
	assert.Contains(t, c.String(), "slower")
	faster := Compare(run(random, 7, 20, slowed), run(random, 7, 20, even), "old", Margin)
	assert.Empty(t, faster.Worse(0))
	assert.Contains(t, faster.String(), "faster")
}

func TestAComparisonSaysWhatItLacks(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	old, now := run(random, 2, 3, even), run(random, 2, 3, even)
	old.Machine.Torch, now.Machine.Torch = "2.6.0", "2.15.0"
	now.Workloads[0].Engines[Eager] = &Figures{Error: "broken", Correct: "no"}
	old.Workloads = old.Workloads[:2]
	now.Workloads[1].Name = "new"
	c := Compare(old, now, "old.json", Margin)
	assert.Empty(t, c.Rows)
	assert.Equal(t, []string{"a, eager: no figures in this run", "new: only in this run", "c: only in this run",
		"b: only in old.json"}, c.Missing)
	assert.Equal(t, []string{"torch was 2.6.0 and is 2.15.0"}, c.Notes)
	assert.True(t, c.Blind(), "nothing is compared")
}

func TestAComparisonThatCanShowNothingSaysSo(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	slow := func(int) float64 { return 30 }
	for _, step := range []struct {
		processes, rows int
		blind           bool
		note            string
	}{
		{3, 1, true,
			"1 of 1 rows can show no change, whatever it is, with as few as 3 processes: at least 4, better 10"},
		{4, 1, false, ""},
		{4, 2, true,
			"2 of 2 rows can show no change, whatever it is, with as few as 4 processes: at least 5, better 10"},
		{7, 80, false, ""},
		{7, 90, true,
			"90 of 90 rows can show no change, whatever it is, with as few as 7 processes: at least 8, better 10"},
	} {
		c := Compare(run(random, step.processes, step.rows, even), run(random, step.processes, step.rows, slow),
			"old", Margin)
		assert.Equal(t, step.blind, c.Blind(), step)
		assert.Equal(t, step.blind, len(c.Worse(0)) == 0, "%v: three times as slow", step)
		if step.blind {
			assert.Equal(t, []string{step.note}, c.Notes)
		} else {
			assert.Empty(t, c.Notes)
		}
	}
}

func TestWhatIsWithinTheMarginIsNoChange(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	drifted := func(int) float64 { return 10.4 }
	old, now := run(random, 10, 5, even), run(random, 10, 5, drifted)
	assert.NotContains(t, Compare(old, now, "old", Margin).String(), "slower")
	assert.NotContains(t, Compare(now, old, "old", Margin).String(), "faster")
	assert.Contains(t, Compare(old, now, "old", 0).String(), "slower")
}

func TestAPercentageIsRead(t *testing.T) {
	for text, want := range map[string]float64{"5%": 0.05, "12.5": 0.125, " 0 % ": 0} {
		got, err := Share("--fail-on", text)
		require.NoError(t, err, text)
		assert.InDelta(t, want, got, 1e-12)
	}
	for _, text := range []string{"", "fast", "-1%", "NaN"} {
		_, err := Share("--fail-on", text)
		assert.IsType(t, Problem(""), err, text)
	}
}
