package translate

import (
	"time"

	"github.com/godynamo/godynamo/pyhook/py"
)

// Phase is a part of a translation that is timed separately. Translating includes symbolic execution and all time
// outside the other phases.
type Phase uint8

// The phases, in the order in which they end.
const (
	Translating Phase = iota
	Decoding
	Guarding  // building the guards' program and text
	Compiling // running the backend
	Lowering  // building the transformed code and its code object
	Installing
	numPhases
)

var phaseNames = [numPhases]string{"translate", "decode", "guards", "backend", "lower", "install"}

func (p Phase) String() string { return phaseNames[p] }

// Clock measures the time of a translation per phase and per user function. On a nil Clock, Begin and End do nothing,
// so an untraced translation is not measured.
//
// An activity is a phase or the run of a user function. Time counts for the innermost activity only, so the time of a
// phase does not count for the function in which it runs.
type Clock struct {
	Attempts  int        // number of times that the translation has started, restarts included
	ResumedAt int        // the line at which a resumed frame continues
	Calls     []CallTime // one for each call path; a caller comes before its callees
	phases    [numPhases]time.Duration
	paths     map[callPath]int
	running   []*time.Duration // counters of the current activities, innermost last
	since     time.Time        // when the innermost activity began or resumed
	callees   []int            // paths of the running functions, innermost last
}

// CallTime is a function at one call path: the user's frame (Parent -1), or a function inlined into another.
type CallTime struct {
	Parent     int // index of the caller
	Name, File string
	Line       int // the function's first line
	Count      int // number of times that the function ran, restarts included
	// Self is the time of the function without its callees. It is allocated separately, since it is updated while
	// Calls grows.
	Self *time.Duration
}

type callPath struct {
	parent int
	code   py.Object
}

// maxPaths bounds the number of recorded call paths. The time of any further path counts for its caller.
const maxPaths = 2000

// NewClock returns a Clock that is running.
func NewClock() *Clock {
	c := &Clock{paths: map[callPath]int{}, since: time.Now()}
	c.running = append(c.running, &c.phases[Translating])
	return c
}

func (c *Clock) begin(at *time.Duration) {
	now := time.Now()
	*c.running[len(c.running)-1] += now.Sub(c.since)
	c.running, c.since = append(c.running, at), now
}

func (c *Clock) end() {
	now := time.Now()
	last := len(c.running) - 1
	*c.running[last] += now.Sub(c.since)
	c.running, c.since = c.running[:last], now
}

// Begin starts a phase; End ends it.
func (c *Clock) Begin(p Phase) {
	if c != nil {
		c.begin(&c.phases[p])
	}
}

// End ends the phase begun last.
func (c *Clock) End() {
	if c != nil {
		c.end()
	}
}

// enter starts to count time for a function whose frame starts or resumes. leave stops counting.
func (c *Clock) enter(tx *InstructionTranslator) {
	parent := -1
	if n := len(c.callees); n > 0 {
		parent = c.callees[n-1]
	}
	path := callPath{parent, tx.d.object}
	at, known := c.paths[path]
	switch {
	case known:
	case len(c.Calls) == maxPaths && parent >= 0:
		at = parent
	default:
		at = len(c.Calls)
		c.paths[path] = at
		code := tx.d.code
		c.Calls = append(c.Calls, CallTime{Parent: parent, Name: code.QualName, File: code.Filename,
			Line: code.FirstLine, Self: new(time.Duration)})
	}
	if at != parent {
		c.Calls[at].Count++
	}
	c.callees = append(c.callees, at)
	c.begin(c.Calls[at].Self)
}

func (c *Clock) leave() {
	c.callees = c.callees[:len(c.callees)-1]
	c.end()
}

// Phases returns the time measured so far for each Phase. The time of user functions counts as Translating.
func (c *Clock) Phases() [numPhases]time.Duration {
	out := c.phases
	for i := range c.Calls {
		out[Translating] += *c.Calls[i].Self
	}
	return out
}
