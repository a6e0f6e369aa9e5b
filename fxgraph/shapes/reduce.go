package shapes

// reduced returns the shape without the given dimensions, or without all of them if dims is absent, None or empty. If
// keep is true, these dimensions stay with size 1.
func (c *call) reduced(t *Tensor, dims Value, keep bool) []Size {
	gone := map[int]bool{}
	switch v := dims.(type) {
	case nil, None:
	case Int:
		gone[c.dim(c.constant(v.Size), len(t.Shape))] = true
	default:
		for _, d := range c.ints(v) {
			d = c.dim(d, len(t.Shape))
			if gone[d] {
				c.bad = true
			}
			gone[d] = true
		}
	}
	out := []Size{}
	for i, s := range t.Shape {
		switch {
		case len(gone) > 0 && !gone[i]:
			out = append(out, s)
		case keep:
			out = append(out, one)
		}
	}
	return out
}

// reduction is the rule of a function of (input, dim, keepdim). result returns the dtype, or "" for no answer.
func reduction(result func(c *call, t *Tensor) Dtype, names ...string) rule {
	return func(c *call) Value {
		c.only(3)
		t := c.tensor(0, "input")
		dims := c.at(1, "dim")
		if dims == nil {
			dims = c.at(-1, "axis")
		}
		shape := c.reduced(t, dims, c.boolean(2, "keepdim", false))
		d := result(c, t)
		c.ignore(names...)
		if d == "" {
			return c.fail()
		}
		return &Tensor{shape, d, t.Device}
	}
}

// sumDtype returns torchInt64 for integers, unless a dtype is given.
func sumDtype(c *call, t *Tensor) Dtype {
	d := t.Dtype
	if !d.floating() {
		d = torchInt64
	}
	return c.dtype(c.at(-1, "dtype"), d)
}

// meanDtype returns the dtype of a mean. There is no answer for integers.
func meanDtype(c *call, t *Tensor) Dtype {
	d := c.dtype(c.at(-1, "dtype"), t.Dtype)
	if !d.floating() {
		return ""
	}
	return d
}

func ownDtype(_ *call, t *Tensor) Dtype { return t.Dtype }

func floatDtype(_ *call, t *Tensor) Dtype {
	if kinds[t.Dtype] != floatKind {
		return ""
	}
	return t.Dtype
}

// truthDtype returns the dtype of any and all: torchUint8 for torchUint8, else bool.
func truthDtype(_ *call, t *Tensor) Dtype {
	if t.Dtype == torchUint8 {
		return torchUint8
	}
	return torchBool
}

func indexDtype(*call, *Tensor) Dtype { return torchInt64 }

// nonEmpty returns the rule inner, except that there is no answer for a tensor without elements.
func nonEmpty(inner rule) rule {
	return func(c *call) Value {
		if t, ok := c.at(0, "input").(*Tensor); !ok || c.eq(c.numel(t.Shape), Size{}) {
			return c.fail()
		}
		return inner(c)
	}
}

// argReduction is the rule of argmax and argmin, over one dimension or over all elements.
func argReduction(c *call) Value {
	if v, ok := c.at(1, "dim").(List); ok && v != nil {
		return c.fail()
	}
	return nonEmpty(reduction(indexDtype))(c)
}

// single is the rule of torch.max and torch.min. With a dim, the result is (values, indices). For one tensor without a
// dim, it is one value. For two tensors, it is the elementwise maximum or minimum.
func single(c *call) Value {
	if len(c.args) == 1 && len(c.kwargs) == 0 {
		return nonEmpty(reduction(ownDtype))(c)
	}
	if len(c.args) == 2 && len(c.kwargs) == 0 {
		if _, ok := c.args[1].(*Tensor); ok {
			return binary()(c)
		}
	}
	d, ok := c.at(1, "dim").(Int)
	if !ok {
		return c.fail()
	}
	inner := &call{Context: c.Context, args: List{c.at(0, "input"), d, Bool(c.boolean(2, "keepdim", false))}}
	c.only(3)
	v, ok := nonEmpty(reduction(ownDtype))(inner).(*Tensor)
	if !ok || inner.bad {
		return c.fail()
	}
	return List{v, v.as(torchInt64)}
}

// topk is the rule of torch.topk, which yields (values, indices) of the k largest elements along a dimension.
func topk(c *call) Value {
	c.only(5)
	t := c.tensor(0, "input")
	k, d := c.size(1, "k", -1), c.dim(c.integer(2, "dim", -1), len(t.Shape))
	c.at(3, "largest")
	c.at(4, "sorted")
	if c.bad || !c.notNegative(k) || c.gt(k, t.size(d)) {
		return c.fail()
	}
	v := t.with(t.replaced(d, k))
	return List{v, v.as(torchInt64)}
}

// cumulative is the rule of torch.cumsum and similar functions, which keep the shape. Sums of integers are torchInt64.
func cumulative(c *call) Value {
	c.only(2)
	t := c.tensor(0, "input")
	c.dim(c.integer(1, "dim", 1<<20), len(t.Shape))
	return t.as(sumDtype(c, t))
}

// softmax is the rule of softmax functions, which keep the shape. The dtype may be given.
func softmax(c *call) Value {
	c.only(3)
	t := c.tensor(0, "input")
	c.dim(c.integer(1, "dim", 1<<20), len(t.Shape))
	d := c.dtype(c.at(2, "dtype"), t.Dtype)
	if !d.floating() {
		return c.fail()
	}
	return t.as(d)
}

// norm is the rule of torch.norm(input, p, dim, keepdim).
func norm(c *call) Value {
	c.only(4)
	t := c.tensor(0, "input")
	c.at(1, "p")
	shape := c.reduced(t, c.at(2, "dim"), c.boolean(3, "keepdim", false))
	d := c.dtype(c.at(-1, "dtype"), t.Dtype)
	if kinds[t.Dtype] != floatKind || kinds[d] != floatKind {
		return c.fail()
	}
	return &Tensor{shape, d, t.Device}
}

// sorted is the rule of torch.sort, which yields (values, indices) along a dimension.
func sorted(c *call) Value {
	c.only(3)
	t := c.tensor(0, "input")
	c.dim(c.integer(1, "dim", -1), len(t.Shape))
	c.at(2, "descending")
	c.ignore("stable")
	return List{t, t.as(torchInt64)}
}

// diff is the rule of torch.diff(input, n, dim, prepend, append).
func diff(c *call) Value {
	c.only(5)
	t := c.tensor(0, "input")
	n, d := c.size(1, "n", 1), c.dim(c.integer(2, "dim", -1), len(t.Shape))
	if c.bad || len(t.Shape) == 0 {
		return c.fail()
	}
	size := t.Shape[d]
	for i, name := range []string{"prepend", "append"} {
		v := c.at(3+i, name)
		if none(v) {
			continue
		}
		more, ok := v.(*Tensor)
		if !ok || len(more.Shape) != len(t.Shape) || more.Dtype != t.Dtype {
			return c.fail()
		}
		c.oneDevice(t, more)
		for j, s := range more.Shape {
			if j != d && !c.eq(s, t.Shape[j]) {
				return c.fail()
			}
		}
		size = c.Env.Add(size, more.Shape[d])
	}
	if !c.required(n) {
		return c.fail()
	}
	if left := c.Env.Sub(size, n); !c.notNegative(left) {
		size = Size{}
	} else {
		size = left
	}
	return t.with(t.replaced(d, size))
}
