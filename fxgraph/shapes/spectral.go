package shapes

import "github.com/godynamo/godynamo/fxgraph/sym"

// Rules of torch.fft. A transform along a dimension of size n maps n complex numbers to n complex numbers. The
// transform of n real numbers consists of n // 2 + 1 complex numbers.

// transform is how a function of torch.fft changes dtypes and the size of the last dimension.
type transform struct{ fromReal, toReal bool }

// last returns the size of the last transformed dimension in the result. size is its size in the input, and n is the
// size that the program gives, if it does.
func (x transform) last(c *call, n Value, size Size) Size {
	given, ok := n.(Int)
	switch {
	case x.toReal && ok:
		size = given.Size
	case x.toReal:
		size = c.times(c.add(size, -1), 2)
	case ok:
		size = given.Size
	}
	if !c.positive(size) {
		c.bad = true
	}
	if x.fromReal {
		size = c.add(c.quotient(size, sym.Const(2)), 1)
	}
	return size
}

// dtype returns the dtype of the result.
func (x transform) dtype(c *call, t *Tensor) Dtype {
	d := t.Dtype
	if !d.floating() {
		d = c.DefaultDtype
	}
	if x.fromReal && kinds[d] == complexKind || d == torchBfloat16 {
		c.bad = true
	}
	if kinds[d] == floatKind {
		d = complexOf[d]
	}
	if x.toReal {
		d = d.real()
	}
	return d
}

// fft is the rule of transforms along one dimension: f(input, n, dim, norm).
func fft(x transform) rule {
	return func(c *call) Value {
		c.only(4)
		t := c.tensor(0, "input")
		n, d := c.at(1, "n"), c.dim(c.integer(2, "dim", -1), len(t.Shape))
		c.at(3, "norm")
		if c.bad || len(t.Shape) == 0 {
			return c.fail()
		}
		if !none(n) {
			if _, ok := n.(Int); !ok {
				return c.fail()
			}
		}
		if n, ok := n.(Int); ok && n.Is(-1) {
			return c.fail()
		}
		if !c.positive(t.Shape[d]) {
			return c.fail()
		}
		return t.with(t.replaced(d, x.last(c, n, t.Shape[d]))).as(x.dtype(c, t))
	}
}

// fftn is the rule of transforms along several dimensions: f(input, s, dim, norm). dims are the default dimensions; nil
// means all.
func fftn(x transform, dims ...int) rule {
	return func(c *call) Value {
		c.only(4)
		t := c.tensor(0, "input")
		sizes, along := c.at(1, "s"), dims
		switch v := c.at(2, "dim").(type) {
		case nil, None:
			if dims == nil && none(sizes) {
				for i := range t.Shape {
					along = append(along, i)
				}
			} else if dims == nil {
				return c.fail()
			}
		case Int:
			along = []int{c.constant(v.Size)}
		default:
			along = c.ints(v)
		}
		c.at(3, "norm")
		given := List{}
		if !none(sizes) {
			if list, ok := sizes.(List); ok && len(list) == len(along) {
				given = list
			} else {
				return c.fail()
			}
		}
		out, seen := append([]Size{}, t.Shape...), map[int]bool{}
		for i, d := range along {
			d = c.dim(d, len(t.Shape))
			if c.bad || seen[d] || len(t.Shape) == 0 || !c.positive(t.Shape[d]) {
				return c.fail()
			}
			seen[d] = true
			var n Value
			if len(given) > 0 {
				k, ok := given[i].(Int)
				if !ok || k.Is(-1) {
					return c.fail()
				}
				n = k
			}
			how := transform{}
			if i == len(along)-1 {
				how = x
			}
			out[d] = how.last(c, n, t.Shape[d])
		}
		if len(along) == 0 {
			return c.fail()
		}
		return t.with(out).as(x.dtype(c, t))
	}
}
