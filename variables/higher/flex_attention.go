package higher

import (
	"slices"
	"strings"

	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// Positions of the arguments of torch.ops.higher_order.flex_attention. score_mod and mask_mod, the last item of the
// block mask, each take scalars and return one. The operator runs them under vmap, in eager mode and in a fallback of a
// compiler; inductor makes a kernel from their graphs. Two arguments follow: the tensors that score_mod reads from
// outside, and those that mask_mod reads.
const (
	flexQuery = iota
	flexKey
	flexValue
	flexScoreMod
	flexBlockMask
	flexScale
	flexKernelOptions
	flexArguments // number of arguments before those of outer tensors
)

// flexAttention implements a call of torch.ops.higher_order.flex_attention. Eager mode runs this operator through
// torch.compile, so the functions are graphs there as well.
func (h *higher) flexAttention(t *variables.TorchVariable, args []variables.VariableTracker,
	kwargs []variables.Kw) (variables.VariableTracker, error) {
	tx := h.tx
	if len(args) != flexArguments || len(kwargs) > 0 {
		return nil, h.refused("with these arguments")
	}
	for _, a := range args[:flexScoreMod] {
		if !variables.IsTensor(variables.MustRealize(tx, a)) {
			return nil, h.refused("with " + variables.Describe(tx, a))
		}
	}
	mask, err := variables.Unpack(tx, args[flexBlockMask])
	if err != nil || len(mask) == 0 {
		return nil, h.refused("without a block mask")
	}
	tx.Output().AddGuards(guards.GlobalState())
	h.sizes = true
	last := len(mask) - 1
	scores, score, err := h.scalarFunction(args[flexScoreMod], args[flexQuery], "score", "index", "index", "index",
		"index")
	if err != nil {
		return nil, err
	}
	masks, maskGraph, err := h.scalarFunction(mask[last], args[flexQuery], "index", "index", "index", "index")
	if err != nil {
		return nil, err
	}
	node := slices.Clone(args)
	node[flexScoreMod] = score
	node[flexBlockMask] = variables.NewTuple(append(slices.Clone(mask[:last]), maskGraph), nil)
	node = append(node, variables.NewTuple(scores.body.Free, nil), variables.NewTuple(masks.body.Free, nil))
	r, err := variables.CallBodies(tx, t.Fn, h.name, node, nil)
	if err != nil {
		return nil, err
	}
	return r, h.giveAttentionSizes(r, args)
}

// scalarFunction captures a function of scalars. Each is made from query by one of the functions of
// _translator/higher.
func (h *higher) scalarFunction(f, query variables.VariableTracker,
	scalars ...string) (*function, variables.VariableTracker, error) {
	given := make([]variables.VariableTracker, len(scalars))
	for i := range given {
		given[i] = query
	}
	made, err := h.keptFunction(f, given, nil,
		func(i int, x *variables.TensorVariable) (*variables.TensorVariable, error) {
			return h.like(x, scalars[i])
		})
	switch {
	case err != nil:
		return nil, nil, err
	case !variables.IsTensor(made.results):
		return nil, nil, h.refused("of a function that returns more than a tensor")
	case made.body.Draws:
		return nil, nil, h.refused("of a function that draws random numbers")
	}
	s := h.tx.Scope()
	order := make([]py.Object, len(scalars)+len(made.body.Free))
	for i := range order {
		order[i] = s.Tuple(s.Int(int64(i)))
	}
	gm, err := s.CallMethod(h.module, "subgraph", made.body.Rows, s.Tuple(order...), py.True())
	if err != nil {
		return nil, nil, err
	}
	return made, variables.NewConstant(gm, nil), nil
}

// giveAttentionSizes sets the sizes of the operation's outputs: the attention, the sums and the maxima of the scores.
func (h *higher) giveAttentionSizes(r variables.VariableTracker, args []variables.VariableTracker) error {
	outputs, err := variables.Unpack(h.tx, r)
	if err != nil {
		return err
	}
	out := h.tx.Output()
	q, ok := out.Sizes(variables.MustRealize(h.tx, args[flexQuery]).(*variables.TensorVariable))
	v, known := out.Sizes(variables.MustRealize(h.tx, args[flexValue]).(*variables.TensorVariable))
	if !ok || !known || len(q.Shape) != 4 || len(v.Shape) != 4 {
		return nil
	}
	s := h.tx.Scope()
	device, err := s.CallMethod(q.Device, "__str__")
	if err != nil {
		return err
	}
	t := shapes.Tensor{Dtype: shapes.Dtype(strings.TrimPrefix(s.Repr(q.Dtype), "torch.")),
		Device: shapes.Device(py.GoString(device)), Shape: append(slices.Clone(q.Shape[:3]), v.Shape[3])}
	for i, o := range outputs {
		if i == 1 { // the others are in the precision of the scores
			t.Shape = q.Shape[:3]
			if t.Dtype != "float64" {
				t.Dtype = "float32"
			}
		}
		if x, ok := o.(*variables.TensorVariable); ok {
			sizes := t
			out.GiveSizes(x.Node, &sizes)
		}
	}
	return nil
}
