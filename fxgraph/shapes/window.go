package shapes

import (
	"math"

	"github.com/godynamo/godynamo/fxgraph/sym"
)

// windows returns the number of windows that fit along a dimension.
func (c *call) windows(size, kernel Size, stride, padding, dilation int, ceil bool) Size {
	span := c.add(c.Env.Sub(size, c.times(c.add(kernel, -1), dilation)), 2*padding-1)
	if stride <= 0 || !c.notNegative(span) {
		return Size{}
	}
	by := sym.Const(int64(stride))
	n := c.add(c.quotient(span, by), 1)
	if ceil && !c.divides(by, span) && c.lt(c.times(n, stride), c.add(size, padding)) {
		n = c.add(n, 1) // the last window begins in the input or left padding
	}
	return n
}

// convolved returns the input and the weight of a convolution. It checks them and the bias.
func (c *call) convolved() (x, w *Tensor) {
	x, w = c.tensor(0, "input"), c.tensor(1, "weight")
	tensors := []*Tensor{x, w}
	if b := c.at(2, "bias"); !none(b) {
		t, ok := b.(*Tensor)
		if !ok {
			c.bad = true
			return x, w
		}
		tensors = append(tensors, t)
	}
	c.oneDtype(tensors...)
	c.oneDevice(tensors...)
	return x, w
}

// conv is the rule of a convolution over n dimensions.
func conv(n int) rule {
	return func(c *call) Value {
		c.only(7)
		x, w := c.convolved()
		stride, padding := c.pair(c.at(3, "stride"), n, 1), make([]int, n)
		same := false
		switch v := c.at(4, "padding").(type) {
		case Str:
			same = v == "same"
			c.bad = c.bad || v != "same" && v != "valid"
		case Value:
			padding = c.pair(v, n, 0)
		}
		dilation, groups := c.pair(c.at(5, "dilation"), n, 1), c.integer(6, "groups", 1)
		if c.bad || len(w.Shape) != n+2 || (len(x.Shape) != n+2 && len(x.Shape) != n+1) || groups <= 0 {
			return c.fail()
		}
		channels := len(x.Shape) - n - 1
		if !c.requireEqual(x.Shape[channels], c.times(w.Shape[1], groups)) ||
			!c.divides(sym.Const(int64(groups)), w.Shape[0]) {
			return c.fail()
		}
		if !c.positive(x.Shape[channels]) { // with no channels, torch keeps the input's sizes
			return c.fail()
		}
		out := append(append([]Size{}, x.Shape[:channels]...), w.Shape[0])
		for i := range n {
			size := x.Shape[channels+1+i]
			if !same {
				size = c.windows(size, w.Shape[2+i], stride[i], padding[i], dilation[i], false)
			} else if stride[i] != 1 {
				return c.fail()
			}
			if !c.positive(size) {
				return c.fail()
			}
			out = append(out, size)
		}
		return x.with(out)
	}
}

// pool returns the rule of a pooling over n dimensions. dilates is set if the pooling has a dilation operand. Otherwise
// the operand after padding is ceil_mode.
func pool(n int, dilates bool, names ...string) rule {
	return func(c *call) Value {
		x := c.tensor(0, "input")
		kernel := c.pair(c.at(1, "kernel_size"), n, 0)
		stride := kernel
		if v := c.at(2, "stride"); !none(v) {
			if list, ok := v.(List); !ok || len(list) > 0 {
				stride = c.pair(v, n, 0)
			}
		}
		padding, dilation, next := c.pair(c.at(3, "padding"), n, 0), c.pair(nil, n, 1), 4
		if dilates {
			dilation, next = c.pair(c.at(4, "dilation"), n, 1), 5
		}
		ceil := c.boolean(next, "ceil_mode", false)
		c.ignore(names...)
		if c.bad || (len(x.Shape) != n+1 && len(x.Shape) != n+2) {
			return c.fail()
		}
		lead := len(x.Shape) - n
		out := append([]Size{}, x.Shape[:lead]...)
		for i := range n {
			window := sym.Const(int64(kernel[i]))
			size := c.windows(x.Shape[lead+i], window, stride[i], padding[i], dilation[i], ceil)
			if !c.positive(size) || 2*padding[i] > kernel[i] {
				return c.fail()
			}
			out = append(out, size)
		}
		return x.with(out)
	}
}

// adaptive is the rule of an adaptive pooling to one size for each of n dimensions. None keeps a dimension's size.
func adaptive(n int) rule {
	return func(c *call) Value {
		c.only(2)
		x := c.tensor(0, "input")
		list, ok := c.at(1, "output_size").(List)
		if !ok {
			list = List{c.at(1, "output_size")}
		}
		if c.bad || (len(list) != 1 && len(list) != n) || (len(x.Shape) != n+1 && len(x.Shape) != n+2) {
			return c.fail()
		}
		out := append([]Size{}, x.Shape...)
		for i := range n {
			switch v := list[i%len(list)].(type) {
			case Int:
				out[len(out)-n+i] = v.Size
			case None:
			default:
				return c.fail()
			}
		}
		return c.made(out, x.Dtype, x.Device)
	}
}

// pad is the rule of F.pad, which pads dimensions, starting with the last.
func pad(c *call) Value {
	c.only(4)
	x, by := c.tensor(0, "input"), c.sizes(c.at(1, "pad"))
	c.at(2, "mode")
	c.at(3, "value")
	if c.bad || len(by)%2 != 0 || len(by)/2 > len(x.Shape) {
		return c.fail()
	}
	out := append([]Size{}, x.Shape...)
	for i := 0; i < len(by); i += 2 {
		d := len(out) - 1 - i/2
		out[d] = c.Env.Add(out[d], c.Env.Add(by[i], by[i+1]))
		if !c.notNegative(out[d]) {
			return c.fail()
		}
	}
	return x.with(out)
}

// im2col is the rule of F.unfold: (N, C, H, W) becomes (N, C times the window's size, number of windows). N may be
// missing.
func im2col(c *call) Value {
	c.only(5)
	x := c.tensor(0, "input")
	kernel, dilation := c.pair(c.at(1, "kernel_size"), 2, 0), c.pair(c.at(2, "dilation"), 2, 1)
	padding, stride := c.pair(c.at(3, "padding"), 2, 0), c.pair(c.at(4, "stride"), 2, 1)
	lead := len(x.Shape) - 3
	if c.bad || lead < 0 || lead > 1 {
		return c.fail()
	}
	count := one
	for i := range 2 {
		window := sym.Const(int64(kernel[i]))
		count = c.Env.Mul(count, c.windows(x.Shape[lead+1+i], window, stride[i], padding[i], dilation[i], false))
	}
	if !c.positive(count) {
		return c.fail()
	}
	return x.with(append(append([]Size{}, x.Shape[:lead]...), c.times(x.Shape[lead], kernel[0]*kernel[1]), count))
}

// scaled returns a size times a factor, truncated: int(float64(size) * f). For f = 0.75 this is size * 3 // 4, which no
// rounding of floats changes while the product is below 1 << 53.
func (c *call) scaled(size Size, f float64) Size {
	const bits = 20
	m := math.Ldexp(f, bits)
	if f <= 0 || m >= 1<<30 || m != math.Trunc(m) || !c.decide(c.Env.Le(size, sym.Const(1<<22))) {
		return sym.Const(int64(float64(c.fixed(size)) * f))
	}
	k, by := int64(m), int64(1<<bits)
	for k%2 == 0 {
		k, by = k/2, by/2
	}
	return c.quotient(c.Env.Mul(size, sym.Const(k)), sym.Const(by))
}

// upsample returns the rule of an operation that resizes n dimensions to a size or by factors. corners is set if the
// operation has align_corners, an operand between the size and the factors.
func upsample(n int, corners bool) rule {
	return func(c *call) Value {
		x, factors := c.tensor(0, "input"), 2
		if corners {
			factors = 3
			c.at(2, "align_corners")
		}
		size, by := c.at(1, "output_size"), c.at(factors, "scale_factors")
		c.only(factors + 1)
		if c.bad || len(x.Shape) != n+2 {
			return c.fail()
		}
		out := append([]Size{}, x.Shape...)
		if !none(size) {
			copy(out[2:], c.pairSizes(size, n))
			return c.made(out, x.Dtype, x.Device)
		}
		list, ok := by.(List)
		if !ok || len(list) != n {
			return c.fail()
		}
		for i, v := range list {
			f, ok := v.(Float)
			if !ok || math.IsNaN(float64(f)) {
				return c.fail()
			}
			if k := int(f); float64(k) == float64(f) {
				out[2+i] = c.times(out[2+i], k)
				continue
			}
			out[2+i] = c.scaled(out[2+i], float64(f))
		}
		return x.with(out)
	}
}
