package translate

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Saved-tensor hooks (torch.autograd.graph.saved_tensors_hooks) run the user's code for each tensor that an operation
// saves for backward. A hook may raise; checkpointing ends its second forward pass in this way. If operations have run
// under hooks, the piece (the code between two graph breaks) cannot run again, since the hooks would see the operations
// twice.
//
// So if the translation relies on a second run, a guard checks whether hooks are active. If they are, the graph breaks
// at its effects, and no operation with a handler is captured. Other graphs are the same with and without hooks, and
// need no guard; may_run_again in godynamo._called.runtime then decides at run time.

// savedTensors records whether saved-tensor hooks are active.
type savedTensors struct{ asked, active bool }

// hooked reports whether saved-tensor hooks are active on this thread. The result is guarded.
func (o *OutputGraph) hooked() (active bool, err error) {
	if h := &o.hooks; !h.asked {
		m, err := o.scope.Import("godynamo._called.saved_tensors")
		if err != nil {
			return false, err
		}
		r, err := o.scope.CallMethod(m, "hooks_active")
		if err != nil {
			return false, err
		}
		h.active = r == py.True()
		name, text := "without_hooks", "no saved-tensor hooks"
		if h.active {
			name, text = "with_hooks", "saved-tensor hooks"
		}
		same, err := o.scope.GetAttr(m, name)
		if err != nil {
			return false, err
		}
		o.AddGuards(guards.PyCheck(guards.NewConstSource(o.Const(m), "___saved_tensors"), o.Const(same), text))
		h.asked, o.log.hooked = true, true
	}
	return o.hooks.active, nil
}

// hooksMatter reports whether saved-tensor hooks prevent a second run of a whole graph that leaves no trace, although
// an effect or a mode would be lost without it.
func (o *OutputGraph) hooksMatter() bool {
	if !o.hasProtected && !o.leavesOtherModes() && !o.lostFrom(0, false) {
		return false
	}
	active, err := o.hooked()
	return active || err != nil
}
