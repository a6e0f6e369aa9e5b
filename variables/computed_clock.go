package variables

import (
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// readClock calls a function that reads a clock, such as time.perf_counter. Code in program order reads it at its
// place. A whole graph would run after all reads, so the graph breaks there. It returns false for other functions.
func readClock(tx Translator, fn py.Object, args []VariableTracker, kwargs []Kw) (VariableTracker, bool, error) {
	class, ok := tx.Scope().DictGet(tx.World().clocks, fn)
	if !ok || len(args)+len(kwargs) > 0 {
		return nil, false, nil
	}
	if tx.Output().WholeGraph() {
		return nil, true, unsupported(exc.CallUnsupported, "%s with a backend that takes whole graphs",
			tx.Scope().Repr(fn))
	}
	// What reads a clock is not repeated: neither a layer, nor the body of a loop or of an operation.
	tx.World().Writes++
	tx.World().Effects++
	tx.Output().Const(fn)
	v, err := compute(tx, class, nil, func(e Emitter) error { return EmitCall(e, fn, nil) })
	if err == nil {
		v.passed = nil
	}
	return v, true, err
}
