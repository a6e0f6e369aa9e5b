package bench

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestHowLongItTakesIsSaidBeforeTheFirstStep(t *testing.T) {
	plan := func(processes, rounds int, slow time.Duration, engines ...string) time.Duration {
		r := &runner{options: Options{Engines: engines, Processes: processes, Rounds: rounds},
			result: &Result{Workloads: []*Workload{
				{Name: "a", Suite: "micro", Backend: "eager"}, {Name: "b", Suite: "timm", Backend: "eager"},
				{Name: "c", Suite: "user", Backend: "eager"},
			}}}
		return r.about(slow)
	}
	quiet := time.Duration(planSeconds * float64(time.Second))
	base := plan(5, 20, quiet, "eager", "godynamo")
	assert.Greater(t, base, 20*time.Second)
	assert.Greater(t, plan(10, 20, quiet, "eager", "godynamo"), base)
	assert.Greater(t, plan(5, 40, quiet, "eager", "godynamo"), base)
	assert.Greater(t, plan(5, 20, quiet, "eager", "godynamo=inductor"), base)
	assert.Equal(t, 2*base, plan(5, 20, 2*quiet, "eager", "godynamo"), "a machine that is busy")

	for _, terminal := range []bool{false, true} {
		var out bytes.Buffer
		progress, end := NewProgress(&out, terminal)
		progress.Plan(21, 7, 4*time.Minute)
		end()
		assert.Contains(t, out.String(), "bench: 21 measurements in 7 processes, about 4 minutes; fewer: --quick")
	}
}

func TestAnEstimateIsNoMorePreciseThanItIs(t *testing.T) {
	for seconds, want := range map[int]string{1: "5 s", 33: "35 s", 54: "55 s", 80: "a minute", 200: "3 minutes",
		9000: "2.5 hours"} {
		assert.Equal(t, want, roughly(time.Duration(seconds)*time.Second))
	}
}
