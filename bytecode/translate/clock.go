package translate

import (
	"time"

	"github.com/godynamo/godynamo/pyhook/py"
)

// Phase is a part of a translation whose time is told apart. What is no other phase's is Translating: the symbolic run itself.
type Phase uint8

// The phases, in the order in which they end.
const (
	Translating Phase = iota
	Decoding
	Guarding  // the guards' program and text
	Compiling // the backend
	Lowering  // the transformed code, and its code object
	Installing
	numPhases
)

var phaseNames = [numPhases]string{"translate", "decode", "guards", "backend", "lower", "install"}

func (p Phase) String() string { return phaseNames[p] }

// Clock measures what a translation spends its time on, by phase and by the user's functions. All of its methods do nothing on nil,
// so that a translation nobody traces is not measured.
//
// Times are told by the innermost thing that runs: what a phase takes is not in the function that it stands in.
type Clock struct {
	Attempts  int        // how often the frame was begun
	ResumedAt int        // the line that the rest of a frame goes on with
	Calls     []CallTime // by path; a parent stands in front of its callees
	phases    [numPhases]time.Duration
	paths     map[callPath]int
	running   []*time.Duration // where the time of what runs goes, innermost last
	since     time.Time        // when the innermost began to run, or to run again
	callees   []int            // paths of the functions that run, innermost last
}

// CallTime is a function at one path of calls: the user's own frame (Parent -1), or one inlined below another.
type CallTime struct {
	Parent     int // index of the caller
	Name, File string
	Line       int            // the function's first
	Count      int            // how often it was run through, restarts included
	Self       *time.Duration // a cell of its own: it is counted up while Calls grows
}

type callPath struct {
	parent int
	code   py.Object
}

// maxPaths bounds what a translation keeps of paths; what is below is its caller's time.
const maxPaths = 2000

// NewClock starts measuring.
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

// End ends the phase begun last, and what stands in it.
func (c *Clock) End() {
	if c != nil {
		c.end()
	}
}

// enter starts a function's frame, or goes on with it; leave ends that.
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
		c.Calls = append(c.Calls, CallTime{Parent: parent, Name: code.QualName, File: code.Filename, Line: code.FirstLine, Self: new(time.Duration)})
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

// Phases are the times so far, by Phase. Those of functions are Translating's too.
func (c *Clock) Phases() [numPhases]time.Duration {
	out := c.phases
	for i := range c.Calls {
		out[Translating] += *c.Calls[i].Self
	}
	return out
}
