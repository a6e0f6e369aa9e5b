package shapes

import (
	"math"
	"slices"

	"github.com/godynamo/godynamo/fxgraph/sym"
)

var two = sym.Const(2)

// first is the rule of functions such as scatter, which return a changed copy of their first operand.
func first(c *call) Value {
	t, ok := c.at(0, "input").(*Tensor)
	for i, kw := range c.kwargs {
		c.used |= 1 << i
		c.bad = c.bad || kw.Name == "out"
	}
	if !ok {
		return c.fail()
	}
	return t
}

// taken is the rule of torch.take, whose result has the shape of the index.
func taken(c *call) Value {
	c.only(2)
	t, index := c.tensor(0, "input"), c.tensor(1, "index")
	c.oneDevice(t, index)
	return t.with(index.Shape)
}

// takenAlong is the rule of torch.take_along_dim(input, indices, dim).
func takenAlong(c *call) Value {
	c.only(3)
	t, index := c.tensor(0, "input"), c.tensor(1, "indices")
	v := c.at(2, "dim")
	c.oneDevice(t, index)
	if none(v) {
		return t.with([]Size{c.numel(index.Shape)})
	}
	n, ok := v.(Int)
	if !ok || len(t.Shape) != len(index.Shape) {
		return c.fail()
	}
	d := c.dim(c.constant(n.Size), len(t.Shape))
	out := make([]Size, len(t.Shape))
	for i := range out {
		if i == d {
			out[i] = index.Shape[i]
			continue
		}
		out[i] = c.broadcast(t.Shape[i:i+1], index.Shape[i:i+1])[0]
	}
	return t.with(out)
}

// positions is the rule of torch.searchsorted(sorted, values), which yields an index for each value, and of
// torch.bucketize, which takes these operands in the other order.
func positions(sorted, values int) rule {
	return func(c *call) Value {
		c.only(2)
		d := torchInt64
		if c.boolean(-1, "out_int32", false) {
			d = torchInt32
		}
		c.ignore("right", "side", "sorter")
		a := c.at(sorted, "")
		t, ok := c.at(values, "").(*Tensor)
		if boundaries, is := a.(*Tensor); !ok || !is || boundaries.Device != t.Device {
			return c.fail()
		}
		return t.as(d)
	}
}

// oneHot is the rule of F.one_hot with a given number of classes.
func oneHot(c *call) Value {
	c.only(2)
	t, n := c.tensor(0, "input"), c.size(1, "num_classes", -1)
	if c.bad || t.Dtype != torchInt64 || !c.positive(n) {
		return c.fail()
	}
	return t.with(joined(t.Shape, n))
}

// histogram is the rule of torch.histc(input, bins).
func histogram(c *call) Value {
	c.only(4)
	t, n := c.tensor(0, "input"), c.size(1, "bins", 100)
	c.at(2, "min")
	c.at(3, "max")
	if c.bad || !c.positive(n) || !t.Dtype.floating() {
		return c.fail()
	}
	return t.with([]Size{n})
}

// bins is the rule of torch.bincount, whose size is the largest element plus one. The weights determine the dtype. If
// there are no elements, torch ignores the weights and returns `minlength` zeros.
func bins(c *call) Value {
	c.only(3)
	t, weights, least := c.tensor(0, "input"), c.at(1, "weights"), c.size(2, "minlength", 0)
	if c.bad || len(t.Shape) != 1 || !c.required(least) {
		return c.fail()
	}
	d := torchInt64
	if w, ok := weights.(*Tensor); ok {
		if d = torchFloat64; w.Dtype == torchFloat32 {
			d = torchFloat32
		}
		if !c.positive(t.Shape[0]) {
			d = torchInt64
		}
	} else if !none(weights) {
		return c.fail()
	}
	u := c.fresh(sym.Const(math.MaxInt64))
	if c.bad {
		return nil
	}
	c.Env.Assume(c.Env.Ge(u, least))
	return &Tensor{[]Size{u}, d, t.Device}
}

// argwhere is the rule of torch.argwhere, which is nonzero for tensors with dimensions.
func argwhere(c *call) Value {
	c.only(1)
	t := c.tensor(0, "input")
	if c.bad {
		return nil
	}
	return &Tensor{[]Size{c.trues(t), sym.Const(int64(len(t.Shape)))}, torchInt64, t.Device}
}

// identity is the rule of torch.eye(n, m).
func identity(c *call) Value {
	c.only(2)
	n := c.size(0, "n", -1)
	m := n
	if v := c.at(1, "m"); v != nil {
		m = c.size(1, "m", -1)
	}
	return c.made([]Size{n, m}, c.DefaultDtype, c.CPU)
}

// spaced is the rule of torch.linspace and torch.logspace with numbers as ends.
func spaced(c *call) Value {
	c.only(3)
	for i, name := range []string{"start", "end"} {
		switch c.at(i, name).(type) {
		case Int, Float:
		default:
			return c.fail()
		}
	}
	c.ignore("base")
	return c.made([]Size{c.size(2, "steps", -1)}, c.DefaultDtype, c.CPU)
}

// permutation is the rule of torch.randperm.
func permutation(c *call) Value {
	c.only(1)
	return c.made([]Size{c.size(0, "n", -1)}, torchInt64, c.CPU)
}

// randomInts is the rule of torch.randint([low,] high, size).
func randomInts(c *call) Value {
	var size Value
	for i, v := range c.args {
		if _, ok := v.(List); ok && i == len(c.args)-1 {
			size = v
			continue
		}
		if _, ok := v.(Int); !ok {
			return c.fail()
		}
	}
	c.only(3)
	c.ignore("low", "high")
	if size == nil {
		size = c.at(-1, "size")
	}
	return c.made(c.sizes(size), torchInt64, c.CPU)
}

// randomIntsLike is the rule of torch.randint_like.
func randomIntsLike(c *call) Value {
	c.only(3)
	t := c.tensor(0, "input")
	c.ignore("low", "high")
	for _, v := range c.args[1:] {
		if _, ok := v.(Int); !ok {
			return c.fail()
		}
	}
	return c.made(t.Shape, t.Dtype, t.Device)
}

// scalarTensor is the rule of torch.scalar_tensor.
func scalarTensor(c *call) Value {
	c.only(1)
	switch c.at(0, "s").(type) {
	case Int, Float, Bool:
		return c.made([]Size{}, c.DefaultDtype, c.CPU)
	}
	return c.fail()
}

// sections is the rule of tensor_split and, along fixed dimensions, of hsplit, vsplit and dsplit. It cuts a dimension
// into a given number of nearly equal pieces. The sizes of pieces that are cut at the elements of a tensor depend on
// data. There is no answer for cuts at given ints.
func sections(dim int) rule {
	return func(c *call) Value {
		c.only(3)
		t := c.tensor(0, "input")
		d := dim
		if dim < 0 {
			d = c.dim(c.integer(2, "dim", 0), len(t.Shape))
		} else if c.only(2); dim == 1 && len(t.Shape) == 1 {
			d = 0
		}
		if at, ok := c.at(1, "indices_or_sections").(*Tensor); ok && dim < 0 {
			return c.cutAt(t, d, at)
		}
		n := c.integer(1, "indices_or_sections", 0)
		if dim < 0 {
			if v := c.at(-1, "sections"); v != nil {
				return c.fail()
			}
		}
		if c.bad || n <= 0 || d >= len(t.Shape) {
			return c.fail()
		}
		by := sym.Const(int64(n))
		if dim >= 0 && !c.divides(by, t.Shape[d]) {
			return c.fail()
		}
		if c.Env.Ask(sym.Zero(c.Env.Mod(t.Shape[d], by))) == sym.True {
			return c.parts(t, d, slices.Repeat([]Size{c.quotient(t.Shape[d], by)}, n))
		}
		sizes := make([]Size, n) // the first pieces have one element more, if there is a remainder
		for i := range sizes {
			sizes[i] = c.quotient(c.Env.Add(t.Shape[d], sym.Const(int64(n-1-i))), by)
		}
		return c.parts(t, d, sizes)
	}
}

// cutAt returns the pieces of t, cut along dimension d at the elements of a vector.
func (c *call) cutAt(t *Tensor, d int, at *Tensor) Value {
	if c.bad || d >= len(t.Shape) || len(at.Shape) != 1 || at.Dtype != torchInt64 || at.Device != "cpu" {
		return c.fail()
	}
	n := c.fixed(at.Shape[0]) // the number of pieces
	if c.bad || n >= maxCut {
		return c.fail()
	}
	sizes := make([]Size, n+1)
	for i := range sizes {
		sizes[i] = c.fresh(t.Shape[d])
	}
	return c.parts(t, d, sizes)
}
