package shapes

import (
	"fmt"
	"math"

	"github.com/godynamo/godynamo/fxgraph/sym"
)

// Rules of operations whose sizes depend on data. Such a size is a new symbol without a hint.

// fresh returns a new symbol for a size between 0 and most. The rule has no answer if the context allows no such
// symbols.
func (c *call) fresh(most Size) Size {
	if !c.Fresh {
		c.bad = true
		return Size{}
	}
	s := Fresh(c.Context)
	c.Env.Assume(c.Env.Le(s, most))
	return s
}

// trues returns the number of elements of t that are not zero. It is one symbol for all operations on a tensor that has
// not changed.
func (c *call) trues(t *Tensor) Size {
	if u, ok := c.Trues[t]; ok && c.Fresh {
		return u
	}
	u := c.fresh(c.numel(t.Shape))
	if c.Trues != nil && !c.bad {
		c.Trues[t] = u
	}
	return u
}

// Fresh returns a new symbol for a size that is read at run time.
func Fresh(x Context) Size {
	return x.Env.NewSymbol(sym.Info{Name: fmt.Sprintf("u%d", x.Env.Len()), Lo: 0, Hi: math.MaxInt64})
}

// nonzero is the rule of torch.nonzero, as one tensor or, with as_tuple=True, as one vector for each dimension.
func nonzero(c *call) Value {
	c.only(1)
	t := c.tensor(0, "input")
	tuple := c.boolean(-1, "as_tuple", false)
	if c.bad {
		return nil
	}
	u := c.trues(t)
	if tuple {
		return c.vectors(u, max(len(t.Shape), 1), t.Device)
	}
	return &Tensor{[]Size{u, sym.Const(int64(len(t.Shape)))}, torchInt64, t.Device}
}

func (c *call) vectors(u Size, n int, device Device) Value {
	out := make(List, n)
	for i := range out {
		out[i] = &Tensor{[]Size{u}, torchInt64, device}
	}
	return out
}

// whereTrue is the rule of torch.where(condition) and of torch.where with three operands.
func whereTrue(c *call) Value {
	if len(c.args) != 1 || len(c.kwargs) > 0 {
		return where(c)
	}
	t := c.tensor(0, "condition")
	if c.bad {
		return nil
	}
	return c.vectors(c.trues(t), max(len(t.Shape), 1), t.Device)
}

// maskedSelect is the rule of torch.masked_select.
func maskedSelect(c *call) Value {
	c.only(2)
	t, mask := c.tensor(0, "input"), c.tensor(1, "mask")
	c.oneDevice(t, mask)
	if c.bad || mask.Dtype != torchBool {
		return c.fail()
	}
	return t.with([]Size{c.fresh(c.numel(c.broadcast(t.Shape, mask.Shape)))})
}

// unique2 is the rule of torch._unique2(input, sorted, return_inverse, return_counts), which torch.unique calls.
func unique2(c *call) Value {
	c.only(4)
	t := c.tensor(0, "input")
	c.boolean(1, "sorted", true)
	inverse, counts := c.boolean(2, "return_inverse", false), c.boolean(3, "return_counts", false)
	if c.bad {
		return nil
	}
	u := c.fresh(c.numel(t.Shape))
	out := List{t.with([]Size{u}), &Tensor{[]Size{{}}, torchInt64, t.Device}, &Tensor{[]Size{{}}, torchInt64, t.Device}}
	if inverse {
		out[1] = &Tensor{t.Shape, torchInt64, t.Device}
	}
	if counts {
		out[2] = &Tensor{[]Size{u}, torchInt64, t.Device}
	}
	return out
}

// repeatedBy returns the result of repeat_interleave with a tensor of repeats. The size of the repeated dimension
// depends on data.
func (c *call) repeatedBy(t *Tensor) Value {
	v := c.at(2, "dim")
	c.ignore("output_size")
	if none(v) {
		if c.bad {
			return nil
		}
		return t.with([]Size{c.fresh(sym.Const(math.MaxInt64))})
	}
	d, ok := v.(Int)
	at := c.dim(c.constant(d.Size), len(t.Shape))
	if c.bad || !ok || len(t.Shape) == 0 {
		return c.fail()
	}
	return t.with(t.replaced(at, c.fresh(sym.Const(math.MaxInt64))))
}

// kept is the rule of torchvision's nms(boxes, scores, iou_threshold), the indices of the boxes that it keeps.
func kept(c *call) Value {
	c.only(3)
	boxes, scores := c.tensor(0, "dets"), c.tensor(1, "scores")
	c.at(2, "iou_threshold")
	c.oneDevice(boxes, scores)
	if c.bad || len(boxes.Shape) != 2 || len(scores.Shape) != 1 || !c.requireEqual(boxes.Shape[0], scores.Shape[0]) {
		return c.fail()
	}
	return &Tensor{[]Size{c.fresh(boxes.Shape[0])}, torchInt64, boxes.Device}
}

// packed is the rule of torch._pack_padded_sequence(input, lengths, batch_first): the elements of all sequences, and
// the number of sequences that reach each step.
func packed(c *call) Value {
	c.only(3)
	t, lengths := c.tensor(0, "input"), c.tensor(1, "lengths")
	batchFirst := c.boolean(2, "batch_first", false)
	if c.bad || !c.Untraced || len(t.Shape) < 2 || len(lengths.Shape) != 1 {
		return c.fail()
	}
	steps := t.Shape[0]
	if batchFirst {
		steps = t.Shape[1]
	}
	most := c.Env.Mul(t.Shape[0], t.Shape[1])
	data := append([]Size{c.fresh(most)}, t.Shape[2:]...)
	return List{t.with(data), &Tensor{[]Size{c.fresh(steps)}, torchInt64, lengths.Device}}
}

// padded is the rule of torch._pad_packed_sequence(data, batch_sizes, batch_first, padding_value, total_length): the
// sequences, and their lengths. The number of sequences depends on data.
func padded(c *call) Value {
	c.only(5)
	t, counts := c.tensor(0, "data"), c.tensor(1, "batch_sizes")
	batchFirst := c.boolean(2, "batch_first", false)
	c.at(3, "padding_value")
	total, ok := c.at(4, "total_length").(Int)
	if c.bad || !ok || !c.Untraced || len(t.Shape) == 0 || len(counts.Shape) != 1 {
		return c.fail()
	}
	sequences := c.fresh(t.Shape[0])
	first := []Size{total.Size, sequences}
	if batchFirst {
		first = []Size{sequences, total.Size}
	}
	return List{t.with(append(first, t.Shape[1:]...)), &Tensor{[]Size{sequences}, torchInt64, counts.Device}}
}
