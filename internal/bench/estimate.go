package bench

import (
	"fmt"
	"strings"
	"time"
)

// Typical times of a run on a quiet core, in seconds. Planning imports the same modules as measuring. The machine
// counts as slower by the factor by which planning takes longer than planSeconds.
const (
	planSeconds = 2.5
	inductor    = "inductor"
)

// costs are the times of one workload of a suite with one engine: of a round, of the first calls, and of the first
// calls with inductor and an empty cache.
type costs struct{ round, first, inductor float64 }

var (
	microCosts = costs{0.005, 0.3, 4}
	userCosts  = costs{0.013, 1, 8}
	modelCosts = costs{0.04, 5, 40}
)

// about estimates the time of a run from the time that planning took.
func (r *runner) about(planning time.Duration) time.Duration {
	o := r.options
	seconds := float64(len(r.batches())*o.Processes) * planSeconds
	for _, w := range r.result.Workloads {
		c := modelCosts
		switch w.Suite {
		case microSuite:
			c = microCosts
		case "user":
			c = userCosts
		}
		for _, label := range o.Engines {
			seconds += float64(o.Processes*o.Rounds) * c.round
			engine, backend, named := strings.Cut(label, "=")
			if !named {
				backend = w.Backend
			}
			switch {
			case engine == Eager:
			case backend == inductor:
				// later processes find the compiled code in the cache on disk
				seconds += c.inductor * (1 + float64(o.Processes-1)/4)
			default:
				seconds += c.first * float64(o.Processes)
			}
		}
	}
	slower := min(max(planning.Seconds()/planSeconds, 0.5), 5)
	return time.Duration(seconds * slower * float64(time.Second))
}

// roughly prints a duration with the precision of an estimate.
func roughly(d time.Duration) string {
	switch s := d.Seconds(); {
	case s < 55:
		return fmt.Sprintf("%.0f s", max(5, 5*float64(int(s/5+0.5))))
	case s < 90:
		return "a minute"
	case s < 5400:
		return fmt.Sprintf("%.0f minutes", s/60)
	default:
		return fmt.Sprintf("%.1f hours", s/3600)
	}
}
