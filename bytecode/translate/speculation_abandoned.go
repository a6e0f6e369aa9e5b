package translate

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Abandoned is an attempt that ended with a graph break. The translation of a frame that breaks has guards only on what
// the code before the break reads. Whether the graph must break there also depends on what the abandoned attempt read
// later, such as the hooks of a module whose call is not captured. Guards on all of this would split the cache for
// nothing: the translation is valid without them. They decide only whether another process loads the translation or
// tries to make a better one.
type Abandoned struct{ out *OutputGraph }

// abandon keeps the attempt if it ended with a graph break, possible or not, and read more than earlier ones.
func (o *OutputGraph) abandon(err error) {
	_, again := err.(*exc.RestartAnalysis)
	_, never := err.(*unbreakable)
	f := o.frame
	if (never || again && o.log.last != nil) &&
		(f.farthest == nil || len(o.guards.Said()) > len(f.farthest.out.guards.Said())) {
		f.farthest = &Abandoned{o}
	}
}

// Local returns the reason why the graph may break elsewhere in other processes, whatever the guards say, or "".
func (a *Abandoned) Local() string { return a.out.world.Local }

// Program returns the guards of the attempt and the constants to which they refer.
func (a *Abandoned) Program() (*guards.Program, []py.Object, error) {
	o := a.out
	if err := o.guardSizes(); err != nil {
		return nil, nil, err
	}
	m, err := guards.NewCheckFunctionManager(len(o.frame.Slots), o.guards.Set(), nil,
		guards.Options{GuardNNModules: o.opts.GuardNNModules, Anonymous: true})
	if err != nil {
		return nil, nil, err
	}
	return m.Program(), o.pool, nil
}
