package shapes

// Rules of further reductions: those whose dimensions or results differ from reduction's.

// productOf is the rule of torch.prod(input, dim, keepdim), over one dimension or all.
func productOf(c *call) Value {
	if _, ok := c.at(1, "dim").(List); ok {
		return c.fail()
	}
	return reduction(sumDtype)(c)
}

// spread is the rule of std and var: (input, dim, unbiased, keepdim), (input, unbiased) or with correction as keyword.
func spread(c *call) (t *Tensor, ok bool) {
	c.only(4)
	t = c.tensor(0, "input")
	dims := c.at(1, "dim")
	if _, unbiased := dims.(Bool); unbiased {
		c.only(2)
		dims = nil
	}
	c.at(2, "unbiased")
	keep := c.boolean(3, "keepdim", false)
	c.ignore("correction")
	shape := c.reduced(t, dims, keep)
	if c.bad || !t.Dtype.floating() {
		return nil, false
	}
	return &Tensor{shape, t.Dtype.real(), t.Device}, true
}

func stdOrVar(c *call) Value {
	t, ok := spread(c)
	if !ok {
		return c.fail()
	}
	return t
}

// withMean is the rule of std_mean and var_mean.
func withMean(c *call) Value {
	t, ok := spread(c)
	if !ok {
		return c.fail()
	}
	return List{t, t.as(c.tensor(0, "input").Dtype)}
}

// selecting is the rule of median, mode and kthvalue, which select an element along a dimension and also return its
// index. at is the position of the dimension. all is set if, without a dimension, one element is selected from all.
func selecting(at int, all bool) rule {
	return func(c *call) Value {
		c.only(at + 2)
		t := c.tensor(0, "input")
		if at == 2 {
			c.integer(1, "k", -1)
		}
		dims := c.at(at, "dim")
		if dims == nil && all {
			c.only(1)
			return t.with([]Size{})
		}
		if dims == nil {
			dims = Constant(-1)
		}
		if _, ok := dims.(Int); !ok {
			return c.fail()
		}
		v := t.with(c.reduced(t, dims, c.boolean(at+1, "keepdim", false)))
		return List{v, v.as(torchInt64)}
	}
}

// extremes is the rule of torch.aminmax.
func extremes(c *call) Value {
	c.only(1)
	t, ok := nonEmpty(reduction(ownDtype))(c).(*Tensor)
	if !ok {
		return c.fail()
	}
	return List{t, t}
}

// withIndices is the rule of cummax and cummin.
func withIndices(c *call) Value {
	c.only(2)
	t := c.tensor(0, "input")
	c.dim(c.integer(1, "dim", 1<<20), len(t.Shape))
	return List{t, t.as(torchInt64)}
}

// order is the rule of torch.argsort.
func order(c *call) Value {
	c.only(3)
	t := c.tensor(0, "input")
	c.dim(c.integer(1, "dim", -1), len(t.Shape))
	c.at(2, "descending")
	c.ignore("stable")
	return t.as(torchInt64)
}

// floatCumulative is the rule of logcumsumexp.
func floatCumulative(c *call) Value {
	c.only(2)
	t := c.tensor(0, "input")
	c.dim(c.integer(1, "dim", 1<<20), len(t.Shape))
	return c.inexact(t)
}

// quantile is the rule of torch.quantile(input, q, dim, keepdim): the dimensions of q are put first.
func quantile(c *call) Value {
	c.only(4)
	t := c.tensor(0, "input")
	out := []Size{}
	switch q := c.at(1, "q").(type) {
	case Float:
	case *Tensor:
		out = append(out, q.Shape...)
		c.bad = c.bad || len(q.Shape) > 1
	default:
		c.bad = true
	}
	dims := c.at(2, "dim")
	switch dims.(type) {
	case nil, None, Int:
	default:
		c.bad = true
	}
	keep := c.boolean(3, "keepdim", false)
	c.ignore("interpolation")
	rest := c.reduced(t, dims, keep)
	if c.bad || kinds[t.Dtype] != floatKind {
		return c.fail()
	}
	return t.with(append(out, rest...))
}

// trapezoid is the rule of torch.trapezoid(y, x, dim=-1), which removes a dimension. If cumulative is set, it is the
// rule of cumulative_trapezoid, which shortens the dimension by one.
func trapezoid(cumulative bool) rule {
	return func(c *call) Value {
		c.only(2)
		t := c.tensor(0, "y")
		d := c.dim(c.integer(-1, "dim", -1), len(t.Shape))
		c.ignore("dx")
		if v := c.at(1, "x"); v != nil {
			if _, ok := v.(*Tensor); ok || c.bad {
				return c.fail()
			}
		}
		if c.bad || len(t.Shape) == 0 || !t.Dtype.floating() || !c.positive(t.Shape[d]) {
			return c.fail()
		}
		if cumulative {
			return t.with(t.replaced(d, c.add(t.Shape[d], -1)))
		}
		return t.with(c.reduced(t, Constant(d), false))
	}
}

// count is the rule of torch.count_nonzero(input, dim).
func count(c *call) Value {
	c.only(2)
	t := c.tensor(0, "input")
	return &Tensor{c.reduced(t, c.at(1, "dim"), false), torchInt64, t.Device}
}

// traceOf is the rule of torch.trace.
func traceOf(c *call) Value {
	c.only(1)
	t := c.tensor(0, "input")
	if len(t.Shape) != 2 {
		return c.fail()
	}
	return t.with([]Size{}).as(sumDtype(c, t))
}

// drawn is the rule of torch.multinomial(input, num_samples).
func drawn(c *call) Value {
	c.only(3)
	t, n := c.tensor(0, "input"), c.size(1, "num_samples", -1)
	c.at(2, "replacement")
	c.ignore("generator")
	if c.bad || len(t.Shape) < 1 || len(t.Shape) > 2 || !c.positive(n) {
		return c.fail()
	}
	return t.with(t.replaced(len(t.Shape)-1, n)).as(torchInt64)
}
