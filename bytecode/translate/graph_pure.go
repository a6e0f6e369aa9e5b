package translate

import (
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// Pure implements variables.Output. It translates the call and removes the result (Tentative). If this fails, the
// frame is translated again, and the log says that the function called at this step is not pure.
func (o *OutputGraph) Pure(run func() error) (bool, error) {
	step, nodes, captured := o.steps, len(o.graph.Nodes()), false
	if o.log.impure[step] || o.visibleWrites() > 0 || o.bodies > 0 || o.tentative > 0 {
		return false, nil
	}
	if switched, err := o.switchedSince(py.Object{}); err != nil || switched {
		return false, err // the function may read torch's modes
	}
	_, seen, _, err := o.Tentative(func() (variables.VariableTracker, error) {
		err := run()
		captured = len(o.graph.Nodes()) > nodes
		return variables.NoneConst(), err
	})
	switch err.(type) {
	case nil:
		if !seen && !captured {
			o.steps = step // the next attempt finds the result in the cache, and counts the same steps
			return true, nil
		}
	case *exc.Unsupported, *exc.SkipFrame, *exc.Observed:
	default:
		return false, err
	}
	if o.log.impure == nil {
		o.log.impure = map[int]bool{}
	}
	o.log.impure[step] = true
	return false, &exc.RestartAnalysis{Reason: "a call that cannot be made while translating"}
}
