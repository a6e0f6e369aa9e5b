package shapes

import "github.com/godynamo/godynamo/fxgraph/sym"

// Rules of functions that arrange elements: stacking, tiling, diagonals, copies of views.

// broadcastTo is the rule of x.broadcast_to(size).
func broadcastTo(c *call) Value {
	c.only(2)
	return c.expanded(c.tensor(0, "input"), c.sizes(c.at(1, "size")))
}

// broadcastAll is the rule of torch.broadcast_tensors.
func broadcastAll(c *call) Value {
	list := List(c.args)
	if len(list) == 1 {
		if inner, ok := list[0].(List); ok {
			list = inner
		}
	}
	shapes := make([][]Size, len(list))
	for i, v := range list {
		t, ok := v.(*Tensor)
		if !ok {
			return c.fail()
		}
		shapes[i] = t.Shape
	}
	out := make(List, len(list))
	for i, v := range list {
		out[i] = v.(*Tensor).with(c.broadcast(shapes...))
	}
	return out
}

// ravel is the rule of x.ravel().
func ravel(c *call) Value {
	c.only(1)
	t := c.tensor(0, "input")
	return t.with([]Size{c.numel(t.Shape)})
}

// atLeast is the rule of torch.atleast_1d, 2d and 3d for one tensor.
func atLeast(n int) rule {
	return func(c *call) Value {
		c.only(1)
		t, ok := c.at(0, "").(*Tensor)
		if !ok {
			return c.fail()
		}
		s := t.Shape
		switch k := len(s); {
		case k >= n:
			return t
		case k == 0:
			return t.with([]Size{one, one, one}[:n])
		case n == 2:
			return t.with([]Size{one, s[0]})
		case k == 1:
			return t.with([]Size{one, s[0], one})
		}
		return t.with([]Size{s[0], s[1], one})
	}
}

// stacked is the rule of hstack (dim 1), vstack (0) and dstack (2). It gives each tensor at least `least` dimensions,
// then concatenates them along dim.
func stacked(dim, least int) rule {
	return func(c *call) Value {
		c.only(1)
		list, ok := c.at(0, "tensors").(List)
		if !ok || len(list) == 0 {
			return c.fail()
		}
		items, d := List{}, dim
		for _, v := range list {
			t, ok := v.(*Tensor)
			if !ok {
				return c.fail()
			}
			inner := &call{Context: c.Context, args: List{t}}
			t, ok = atLeast(least)(inner).(*Tensor)
			if !ok {
				return c.fail()
			}
			items = append(items, t)
		}
		if least == 1 && len(items[0].(*Tensor).Shape) == 1 {
			d = 0
		}
		inner := &call{Context: c.Context, args: List{items, Constant(d)}}
		out := cat(inner)
		c.bad = c.bad || inner.bad
		return out
	}
}

// columns is the rule of torch.column_stack: vectors become columns.
func columns(c *call) Value {
	c.only(1)
	list, ok := c.at(0, "tensors").(List)
	if !ok || len(list) == 0 {
		return c.fail()
	}
	items := List{}
	for _, v := range list {
		t, ok := v.(*Tensor)
		if !ok {
			return c.fail()
		}
		if len(t.Shape) <= 1 {
			t = t.with([]Size{c.numel(t.Shape), one})
		}
		items = append(items, t)
	}
	inner := &call{Context: c.Context, args: List{items, Constant(1)}}
	out := cat(inner)
	c.bad = c.bad || inner.bad
	return out
}

// tile is the rule of x.tile(*dims), which repeats each dimension; missing counts are 1.
func tile(c *call) Value {
	t, times := c.tensor(0, "input"), c.variadic(1, "dims")
	n := max(len(times), len(t.Shape))
	out := make([]Size, n)
	for i := range out {
		out[i] = one
		for _, s := range [][]Size{t.Shape, times} {
			if at := i - (n - len(s)); at >= 0 {
				out[i] = c.Env.Mul(out[i], s[at])
			}
		}
	}
	for _, s := range times {
		c.bad = c.bad || !c.required(s)
	}
	return t.with(out)
}

// diagonalSize returns the length of a diagonal of a matrix.
func (c *call) diagonalSize(rows, columns Size, offset int) Size {
	if offset >= 0 {
		columns = c.add(columns, -offset)
	} else {
		rows = c.add(rows, offset)
	}
	n := c.Env.Min(rows, columns)
	if c.bad || n.IsUnknown() {
		return Size{}
	}
	return c.Env.Max(n, Size{})
}

// diagonal returns the rule of diagonal(input, offset, dim1, dim2). first and second are the defaults of dim1 and dim2.
// If named is set, all operands except input are keyword-only.
func diagonal(first, second int, named bool) rule {
	return func(c *call) Value {
		t := c.tensor(0, "input")
		at := func(i int) int {
			if named {
				return -1
			}
			return i
		}
		c.only(max(1, at(4)))
		n := len(t.Shape)
		if named {
			if v := c.at(-1, "A"); v != nil {
				return c.fail()
			}
		}
		offset := c.integer(at(1), "offset", 0)
		a, b := c.dim(c.integer(at(2), "dim1", first), n), c.dim(c.integer(at(3), "dim2", second), n)
		if c.bad || n < 2 || a == b {
			return c.fail()
		}
		out := []Size{}
		for i, s := range t.Shape {
			if i != a && i != b {
				out = append(out, s)
			}
		}
		return t.with(append(out, c.diagonalSize(t.Shape[a], t.Shape[b], offset)))
	}
}

// diag is the rule of torch.diag: a vector becomes a diagonal matrix, a matrix its diagonal.
func diag(c *call) Value {
	c.only(2)
	t, k := c.tensor(0, "input"), c.integer(1, "diagonal", 0)
	switch len(t.Shape) {
	case 1:
		n := c.add(t.Shape[0], max(k, -k))
		return t.with([]Size{n, n})
	case 2:
		return t.with([]Size{c.diagonalSize(t.Shape[0], t.Shape[1], k)})
	}
	return c.fail()
}

// diagFlat is the rule of torch.diagflat.
func diagFlat(c *call) Value {
	c.only(2)
	t, k := c.tensor(0, "input"), c.integer(1, "offset", 0)
	n := c.add(c.numel(t.Shape), max(k, -k))
	return t.with([]Size{n, n})
}

// diagEmbed is the rule of torch.diag_embed(input, offset). Each vector along the last dimension becomes a matrix in
// the last two dimensions.
func diagEmbed(c *call) Value {
	c.only(2)
	t, k := c.tensor(0, "input"), c.integer(1, "offset", 0)
	if len(t.Shape) == 0 {
		return c.fail()
	}
	n := c.add(t.Shape[len(t.Shape)-1], max(k, -k))
	return t.with(joined(t.Shape[:len(t.Shape)-1], n, n))
}

// moved is the rule of movedim for ints or lists of ints.
func moved(c *call) Value {
	c.only(3)
	t := c.tensor(0, "input")
	list := func(v Value) []int {
		if n, ok := v.(Int); ok {
			return []int{c.constant(n.Size)}
		}
		return c.ints(v)
	}
	from, to, n := list(c.at(1, "source")), list(c.at(2, "destination")), len(t.Shape)
	if c.bad || len(from) != len(to) {
		return c.fail()
	}
	out, given, taken := make([]int, n), make([]bool, n), make([]bool, n)
	for i := range from {
		a, b := c.dim(from[i], n), c.dim(to[i], n)
		if c.bad || n == 0 || given[b] || taken[a] {
			return c.fail()
		}
		out[b], given[b], taken[a] = a, true, true
	}
	next := 0
	for i := range out {
		if given[i] {
			continue
		}
		for taken[next] {
			next++
		}
		out[i] = next
		next++
	}
	return c.permuted(t, out)
}

// rotated is the rule of torch.rot90(input, k, dims).
func rotated(c *call) Value {
	c.only(3)
	t, k := c.tensor(0, "input"), c.integer(1, "k", 1)
	dims := []int{0, 1}
	if v := c.at(2, "dims"); v != nil {
		dims = c.ints(v)
	}
	if c.bad || len(dims) != 2 {
		return c.fail()
	}
	a, b := c.dim(dims[0], len(t.Shape)), c.dim(dims[1], len(t.Shape))
	if c.bad || len(t.Shape) < 2 || a == b {
		return c.fail()
	}
	out := append([]Size{}, t.Shape...)
	if k%2 != 0 {
		out[a], out[b] = out[b], out[a]
	}
	return t.with(out)
}

// meshgrid is the rule of torch.meshgrid for vectors.
func meshgrid(c *call) Value {
	list := List(c.args)
	if len(list) == 1 {
		if inner, ok := list[0].(List); ok {
			list = inner
		}
	}
	swap := c.at(-1, "indexing") == Value(Str("xy"))
	shape := []Size{}
	for _, v := range list {
		t, ok := v.(*Tensor)
		if !ok || len(t.Shape) > 1 {
			return c.fail()
		}
		shape = append(shape, t.size(0))
	}
	if swap && len(shape) > 1 {
		shape[0], shape[1] = shape[1], shape[0]
	}
	out := make(List, len(list))
	for i, v := range list {
		out[i] = v.(*Tensor).with(shape)
	}
	return out
}

// blockDiagonal is the rule of torch.block_diag.
func blockDiagonal(c *call) Value {
	list := List(c.args)
	if len(list) == 1 {
		if inner, ok := list[0].(List); ok {
			list = inner
		}
	}
	rows, columns := Size{}, Size{}
	for _, v := range list {
		t, ok := v.(*Tensor)
		if !ok || len(t.Shape) > 2 {
			return c.fail()
		}
		shape := append([]Size{one, one}, t.Shape...)
		shape = shape[len(shape)-2:]
		rows, columns = c.Env.Add(rows, shape[0]), c.Env.Add(columns, shape[1])
	}
	if len(list) == 0 {
		return c.fail()
	}
	return &Tensor{[]Size{rows, columns}, c.resultType(list...), c.oneDeviceOf(list)}
}

// windowsOf is the rule of x.unfold(dim, size, step): windows along a dimension.
func windowsOf(c *call) Value {
	c.only(4)
	t := c.tensor(0, "input")
	d := c.dim(c.integer(1, "dimension", 1<<20), len(t.Shape))
	size, step := c.size(2, "size", -1), c.integer(3, "step", 0)
	if c.bad || len(t.Shape) == 0 || step <= 0 || !c.required(size) {
		return c.fail()
	}
	left := c.Env.Sub(t.Shape[d], size)
	if !c.notNegative(left) {
		return c.fail()
	}
	n := c.add(c.quotient(left, sym.Const(int64(step))), 1)
	return t.with(append(t.replaced(d, n), size))
}

// realView is the rule of torch.view_as_real, complexView that of torch.view_as_complex.
func realView(c *call) Value {
	c.only(1)
	t := c.tensor(0, "input")
	if kinds[t.Dtype] != complexKind {
		return c.fail()
	}
	return t.with(joined(t.Shape, sym.Const(2))).as(t.Dtype.real())
}

func complexView(c *call) Value {
	c.only(1)
	t := c.tensor(0, "input")
	n := len(t.Shape)
	if n == 0 || complexOf[t.Dtype] == "" || t.Dtype == torchBfloat16 || !c.eq(t.Shape[n-1], sym.Const(2)) {
		return c.fail()
	}
	return t.with(t.Shape[: n-1 : n-1]).as(complexOf[t.Dtype])
}

// sumToSize is the rule of x.sum_to_size(*size).
func sumToSize(c *call) Value {
	t, sizes := c.tensor(0, ""), c.variadic(1, "size")
	if c.bad || !c.equal(c.broadcast(t.Shape, sizes), t.Shape) || !t.Dtype.floating() {
		return c.fail()
	}
	return t.with(sizes)
}

// shuffled is the rule of pixel_shuffle(input, factor), or of pixel_unshuffle if it is inverse.
func shuffled(inverse bool) rule {
	return func(c *call) Value {
		c.only(2)
		t, by := c.tensor(0, "input"), c.integer(1, "upscale_factor", 0)
		if inverse {
			by = c.integer(1, "downscale_factor", 0)
		}
		n := len(t.Shape)
		if c.bad || n < 3 || by <= 0 {
			return c.fail()
		}
		out, k := append([]Size{}, t.Shape...), sym.Const(int64(by))
		if inverse {
			if !c.divides(k, out[n-1]) || !c.divides(k, out[n-2]) {
				return c.fail()
			}
			if !c.positive(c.numel(t.Shape)) {
				return t.with(out) // torch does not rearrange an empty tensor
			}
			out[n-3], out[n-2], out[n-1] = c.times(out[n-3], by*by), c.quotient(out[n-2], k), c.quotient(out[n-1], k)
			return t.with(out)
		}
		square := sym.Const(int64(by * by))
		if !c.divides(square, out[n-3]) {
			return c.fail()
		}
		out[n-3], out[n-2], out[n-1] = c.quotient(out[n-3], square), c.times(out[n-2], by), c.times(out[n-1], by)
		return t.with(out)
	}
}

// strided is the rule of x.as_strided(size, stride, storage_offset).
func strided(c *call) Value {
	c.only(4)
	t, sizes := c.tensor(0, "input"), c.sizes(c.at(1, "size"))
	c.sizes(c.at(2, "stride"))
	c.at(3, "storage_offset")
	for _, s := range sizes {
		c.bad = c.bad || !c.required(s)
	}
	return t.with(sizes)
}

func emptyStrided(c *call) Value {
	c.only(2)
	c.at(1, "stride")
	return c.made(c.sizes(c.at(0, "size")), c.DefaultDtype, c.CPU)
}

func newStrided(c *call) Value {
	c.only(3)
	t := c.tensor(0, "")
	c.at(2, "stride")
	return c.made(c.sizes(c.at(1, "size")), t.Dtype, t.Device)
}

// viewCopy is the rule of torch.view_copy with sizes.
func viewCopy(c *call) Value {
	c.only(2)
	return c.sized(c.tensor(0, "input"), c.sizes(c.at(1, "size")))
}
