package translate

import "github.com/godynamo/godynamo/internal/exc"

// SpeculationLog says where earlier attempts at this frame failed: at which step (executed instructions of the outermost
// frame, counted from 0) and why. Translating is deterministic, so the same step comes round again.
type SpeculationLog struct {
	entries map[int]error
	last    error // the newest entry
	// strict: effects split the frame, see OutputGraph.effectsLost.
	strict bool
}

func newSpeculationLog() *SpeculationLog { return &SpeculationLog{entries: map[int]error{}} }

func (l *SpeculationLog) failedAt(step int) (error, bool) {
	err, ok := l.entries[step]
	return err, ok
}

func (l *SpeculationLog) add(step int, err error) error {
	l.entries[step], l.last = err, err
	return &exc.RestartAnalysis{Reason: err.Error()}
}
