package shapes

// Rules of loss functions, norms and distances.

// loss is the rule of a loss function. reduction is the position of its operand `reduction`, which is 0 if the losses
// are not combined. elements returns the losses before they are combined.
func loss(reduction int, elements func(c *call) *Tensor) rule {
	return func(c *call) Value {
		how := c.integer(reduction, "reduction", 1)
		if how != 0 {
			t := c.lossDtype(c.tensor(0, "input"))
			for i := range c.kwargs {
				c.used |= 1 << i
			}
			for _, kw := range c.kwargs {
				c.bad = c.bad || kw.Name == "out"
			}
			return t.with([]Size{})
		}
		t := elements(c)
		if c.bad {
			return nil
		}
		return c.lossDtype(t)
	}
}

// lossDtype returns t. It fails if t is not floating-point, or if another floating-point operand differs from t in
// dtype.
func (c *call) lossDtype(t *Tensor) *Tensor {
	for _, v := range c.args {
		if x, ok := v.(*Tensor); ok && x.Dtype.floating() && x.Dtype != t.Dtype {
			c.bad = true
		}
	}
	if kinds[t.Dtype] != floatKind {
		c.bad = true
	}
	return t
}

// elementLoss returns a function that yields the losses of two operands, which are broadcast against each other.
func elementLoss(names ...string) func(c *call) *Tensor {
	return func(c *call) *Tensor {
		a, b := c.tensor(0, "input"), c.tensor(1, "target")
		c.ignore(names...)
		return c.pointwise(a.Dtype, a, b)
	}
}

// weighted is like elementLoss, for losses with weights that are broadcast as well. names are the weights' names, and
// `at` is the position of the first one.
func weighted(at int, names ...string) func(c *call) *Tensor {
	return func(c *call) *Tensor {
		a, b := c.tensor(0, "input"), c.tensor(1, "target")
		operands := []Value{a, b}
		for i, name := range names {
			if v := c.at(at+i, name); !none(v) {
				operands = append(operands, v)
			}
		}
		return c.pointwise(a.Dtype, operands...)
	}
}

// classLoss returns the losses of predictions. It removes their dimension of classes, which is the second dimension or
// the only one.
func classLoss(c *call) *Tensor {
	a, b := c.tensor(0, "input"), c.tensor(1, "target")
	c.ignore("weight", "ignore_index", "label_smoothing")
	n := len(a.Shape)
	if n == 0 {
		c.bad = true
		return noTensor
	}
	out := append([]Size{}, a.Shape[:min(n-1, 1)]...)
	if n > 2 {
		out = append(out, a.Shape[2:]...)
	}
	if len(b.Shape) != len(out) && len(b.Shape) != n {
		c.bad = true
	}
	return a.with(out)
}

// similarity is the rule of functions of two tensors that reduce one dimension: cosine_similarity, pairwise_distance.
// at is the position of the operand dim, or -1 if the last dimension is reduced. keep is the position of keepdim, or -1
// if there is none.
func similarity(at, keep int, names ...string) rule {
	return func(c *call) Value {
		a, b := c.tensor(0, "x1"), c.tensor(1, "x2")
		d := -1
		if at >= 0 {
			d = c.integer(at, "dim", 1)
		}
		kept := keep >= 0 && c.boolean(keep, "keepdim", false)
		c.ignore(names...)
		c.oneDtype(a, b)
		t := c.pointwise(a.Dtype, a, b)
		if c.bad || kinds[t.Dtype] != floatKind || len(t.Shape) == 0 {
			return c.fail()
		}
		return t.with(c.reduced(t, Constant(d), kept))
	}
}

// distance is the rule of torch.dist, one number for two tensors.
func distance(c *call) Value {
	c.only(3)
	a, b := c.tensor(0, "input"), c.tensor(1, "other")
	c.at(2, "p")
	c.oneDtype(a, b)
	t := c.pointwise(a.Dtype, a, b)
	if c.bad || !t.Dtype.floating() {
		return c.fail()
	}
	return t.with([]Size{}).as(t.Dtype.real())
}

// onlyReduced is for losses that have an answer only if they are combined.
func onlyReduced(c *call) *Tensor {
	c.bad = true
	return noTensor
}
