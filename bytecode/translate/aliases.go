package translate

import (
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/variables"
)

// Tensors from outside may be one object, or views of one another, in the next call if not in this one. What an operation in place does to
// more than the values of the one is then seen on the other: its sizes where they are one object (a guard says that they are not), and whether
// it requires gradients also where they are views (the frame is split in front of the question).

// changesMetadata tells whether an operation, of the events from one on, may change sizes or flags of a tensor in place.
func (o *OutputGraph) changesMetadata(from int) bool {
	for _, e := range o.events[from:] {
		if n := e.node; n != nil && n.Inplace && !n.State && !shapes.KeepsSizes(n.Target.Text) {
			return true
		}
	}
	return false
}

// GradFlagMayDiffer implements variables.Output.
func (o *OutputGraph) GradFlagMayDiffer(t *variables.TensorVariable, requires bool) (bool, error) {
	for _, e := range o.events {
		n := e.node
		if n == nil || n.State || !n.Inplace || o.changesOwn(n) {
			continue
		}
		changed, known := changedBy(n)
		if known && changed == t.Node {
			continue
		}
		after, err := o.gradFlagAfter(n, changed, known)
		if err != nil {
			return false, err
		}
		switch {
		case !after && !switchesGradFlag(n):
		case after != requires, t.Example.IsNull() || t.Changed: // what is computed may require gradients because this does
			return true, nil
		}
	}
	return false, nil
}

// switchesGradFlag tells operations that can take the flag away.
func switchesGradFlag(n *fxgraph.Node) bool {
	name := n.Target.Text[strings.LastIndexByte(n.Target.Text, '.')+1:]
	return name == "requires_grad_" || name == "detach_"
}

// gradFlagAfter tells whether the tensor that n changes may require gradients afterwards. known: that is the one tensor it changes.
func (o *OutputGraph) gradFlagAfter(n, changed *fxgraph.Node, known bool) (bool, error) {
	if !switchesGradFlag(n) {
		plain := true
		n.EachInput(func(in *fxgraph.Node) {
			t := o.inputOf[in]
			if plain = plain && t != nil && !t.Changed && !t.Example.IsNull(); plain {
				if m, err := o.readMeta(t.Example); err != nil || m.RequiresGrad {
					plain = false
				} else {
					o.NeedField(t, fieldGrad)
				}
			}
		})
		if plain {
			return false, nil
		}
	}
	if !known {
		return true, nil
	}
	v, err := o.fake(changed)
	if err != nil {
		return false, err
	}
	m, err := o.readMeta(v)
	if err != nil {
		return false, err
	}
	return m.RequiresGrad, nil
}
