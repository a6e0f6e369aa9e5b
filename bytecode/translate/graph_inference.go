package translate

import (
	"slices"
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Outside inference mode, an operation that changes an inference tensor in place writes to it, and then raises. A piece
// whose operation raises may run again from its start, and would write twice. So CPython runs such an operation.

// raisesAfterWriting returns a graph break if an operation would change an inference tensor outside inference mode.
func (o *OutputGraph) raisesAfterWriting(operation string, args []fxgraph.Arg, kwargs []fxgraph.Kwarg) error {
	var changed []fxgraph.Arg
	for _, kw := range kwargs {
		if kw.Name == "out" {
			changed = append(changed, kw.Value)
		}
	}
	name := operation[strings.LastIndexByte(operation, '.')+1:]
	inPlace := strings.HasSuffix(name, "_") && !strings.HasSuffix(name, "__") ||
		strings.HasPrefix(operation, "operator.") && shapes.KeepsSizes(operation)
	if len(args) > 0 && inPlace {
		changed = append(changed, args[0])
	}
	if len(changed) == 0 || !o.maybeInference(changed) {
		return nil
	}
	torch, err := o.scope.Import("torch")
	if err != nil {
		return err
	}
	on, err := o.scope.CallMethod(torch, "is_inference_mode_enabled")
	if err != nil || on == py.True() {
		return err
	}
	return exc.Break(exc.ProgramRaises, "a change in place of an inference tensor, outside inference mode")
}

// maybeInference reports whether operands may be inference tensors: tensors that came with the frame, views of them, or
// tensors computed in a piece that switches to inference mode. It guards which inputs are inference tensors.
func (o *OutputGraph) maybeInference(operands []fxgraph.Arg) bool {
	seen, maybe, computed := map[*fxgraph.Node]bool{}, false, false
	var visit func(n *fxgraph.Node)
	visit = func(n *fxgraph.Node) {
		if seen[n] {
			return
		}
		seen[n] = true
		if in, ok := o.inputOf[n]; ok {
			o.need(in, o.tensorArgs[in], fieldKeyset)
			answer, known := py.Answered(o.scope.CallMethod(in.Example, "is_inference"))
			maybe = maybe || !known || answer == py.True()
			return
		}
		computed = true
		if !o.world.MakesNew(o.scope, n.Target.Text) {
			n.EachInput(visit)
		}
	}
	for _, a := range operands {
		fxgraph.EachNode(a, visit)
	}
	return maybe || computed && slices.ContainsFunc(o.graph.Nodes(), func(n *fxgraph.Node) bool {
		return n.State && strings.Contains(n.Target.Text, "inference_mode")
	})
}
