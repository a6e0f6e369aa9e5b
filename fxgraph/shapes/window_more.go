package shapes

import "github.com/godynamo/godynamo/fxgraph/sym"

// Rules of further operations on images and sequences.

// convTranspose is the rule of a transposed convolution over n dimensions.
func convTranspose(n int) rule {
	return func(c *call) Value {
		c.only(8)
		x, w := c.convolved()
		stride, padding := c.pair(c.at(3, "stride"), n, 1), c.pair(c.at(4, "padding"), n, 0)
		more, groups := c.pair(c.at(5, "output_padding"), n, 0), c.integer(6, "groups", 1)
		dilation := c.pair(c.at(7, "dilation"), n, 1)
		if c.bad || len(w.Shape) != n+2 || (len(x.Shape) != n+2 && len(x.Shape) != n+1) || groups <= 0 {
			return c.fail()
		}
		channels := len(x.Shape) - n - 1
		if !c.positive(x.Shape[channels]) || !c.eq(x.Shape[channels], w.Shape[0]) {
			return c.fail()
		}
		out := append(append([]Size{}, x.Shape[:channels]...), c.times(w.Shape[1], groups))
		for i := range n {
			size := c.times(c.add(x.Shape[channels+1+i], -1), stride[i])
			size = c.Env.Add(size, c.times(c.add(w.Shape[2+i], -1), dilation[i]))
			if size = c.add(size, more[i]+1-2*padding[i]); !c.positive(size) {
				return c.fail()
			}
			out = append(out, size)
		}
		return x.with(out)
	}
}

// pooledWithIndices is the rule of a pooling that also returns the indices of the largest elements.
func pooledWithIndices(inner rule) rule {
	return func(c *call) Value {
		t, ok := inner(c).(*Tensor)
		if !ok {
			return c.fail()
		}
		return List{t, t.as(torchInt64)}
	}
}

// gridSample is the rule of torch.grid_sampler over n dimensions.
func gridSample(c *call) Value {
	c.only(5)
	x, grid := c.tensor(0, "input"), c.tensor(1, "grid")
	for i, name := range []string{"interpolation_mode", "padding_mode", "align_corners"} {
		c.at(2+i, name)
	}
	c.oneDtype(x, grid)
	c.oneDevice(x, grid)
	n := len(x.Shape)
	if c.bad || n < 4 || n > 5 || len(grid.Shape) != n || !c.requireEqual(x.Shape[0], grid.Shape[0]) {
		return c.fail()
	}
	return x.with(append(append([]Size{}, x.Shape[:2]...), grid.Shape[1:n-1]...))
}

// recurrent is the rule of torch.lstm, gru, rnn_tanh and rnn_relu: (input, hidden states, weights, has_biases,
// num_layers, dropout, train, bidirectional, batch_first). If the input is packed, batch_sizes follows it, and there is
// no batch_first. states is the number of hidden states.
func recurrent(states int) rule {
	return func(c *call) Value {
		c.only(9)
		x, at := c.tensor(0, "input"), 1
		if len(c.args) == 9 {
			if _, packed := c.args[3].(List); packed {
				c.tensor(1, "batch_sizes")
				at = 2
			}
		}
		var hidden []*Tensor
		if states == 1 {
			hidden = append(hidden, c.tensor(at, "hx"))
		} else if list, ok := c.at(at, "hx").(List); ok && len(list) == states {
			for _, v := range list {
				t, ok := v.(*Tensor)
				if !ok {
					return c.fail()
				}
				hidden = append(hidden, t)
			}
		}
		if _, ok := c.at(at+1, "params").(List); !ok || len(hidden) != states || len(c.args) != 9 {
			return c.fail()
		}
		c.oneDtype(append(hidden, x)...)
		both := c.boolean(at+6, "bidirectional", false)
		n, dims := len(x.Shape), len(hidden[0].Shape)
		if c.bad || n < 2 || n > 3 || at == 1 && dims != n || at == 2 && (n != 2 || dims != 3) {
			return c.fail()
		}
		width := hidden[0].Shape[dims-1]
		if both {
			width = c.Env.Mul(width, sym.Const(2))
		}
		out := List{x.with(x.replaced(n-1, width))}
		for _, h := range hidden {
			out = append(out, h)
		}
		return out
	}
}

// bilinear is the rule of F.bilinear(input1, input2, weight, bias).
func bilinear(c *call) Value {
	c.only(4)
	a, b, w := c.tensor(0, "input1"), c.tensor(1, "input2"), c.tensor(2, "weight")
	c.at(3, "bias")
	c.oneDtype(a, b, w)
	n := len(a.Shape)
	if c.bad || n == 0 || len(b.Shape) != n || len(w.Shape) != 3 {
		return c.fail()
	}
	for i := range n - 1 {
		if !c.requireEqual(a.Shape[i], b.Shape[i]) {
			return c.fail()
		}
	}
	return a.with(a.replaced(n-1, w.Shape[0]))
}

// normalized is the rule of torch.native_layer_norm(input, normalized_shape, weight, bias, eps), which also returns the
// means and the inverse deviations.
func normalized(c *call) Value {
	c.only(5)
	t := c.tensor(0, "input")
	last := len(c.sizes(c.at(1, "normalized_shape")))
	for i, name := range []string{"weight", "bias", "eps"} {
		c.at(2+i, name)
	}
	n := len(t.Shape)
	if c.bad || last == 0 || last > n || t.Dtype != torchFloat32 && t.Dtype != torchFloat64 {
		return c.fail()
	}
	out := append([]Size{}, t.Shape[:n-last]...)
	for range last {
		out = append(out, one)
	}
	return List{t, t.with(out), t.with(out)}
}

// pooledRegions is the rule of torchvision's roi_align(input, rois, spatial_scale, pooled_height, pooled_width, ...).
func pooledRegions(c *call) Value {
	x, rois := c.tensor(0, "input"), c.tensor(1, "rois")
	c.at(2, "spatial_scale")
	height, width := c.size(3, "pooled_height", -1), c.size(4, "pooled_width", -1)
	c.ignore("sampling_ratio", "aligned")
	c.oneDtype(x, rois)
	c.oneDevice(x, rois)
	c.bad = c.bad || len(c.args) < 5 || len(x.Shape) != 4 || len(rois.Shape) != 2
	if c.bad || !c.required(height) || !c.required(width) {
		return c.fail()
	}
	return x.with([]Size{rois.Shape[0], x.Shape[1], height, width})
}
