package shapes

import (
	"slices"

	"github.com/godynamo/godynamo/fxgraph/sym"
)

// sized returns t viewed with the given sizes, one of which may be -1.
func (c *call) sized(t *Tensor, sizes []Size) Value {
	out := append([]Size{}, sizes...)
	open, known := -1, one
	for i, s := range out {
		switch {
		case s.Is(-1) && open < 0:
			open = i
		case !c.required(s):
			return c.fail()
		default:
			known = c.Env.Mul(known, s)
		}
	}
	n := c.numel(t.Shape)
	if n.IsUnknown() || known.IsUnknown() {
		return c.regrouped(t, out, open)
	}
	if open >= 0 {
		if c.eq(known, Size{}) || !c.divides(known, n) {
			return c.fail()
		}
		out[open] = c.quotient(n, known)
		known = n
	}
	if !c.requireEqual(known, n) {
		return c.fail()
	}
	return t.with(out)
}

// regrouped is like sized, for products that are too large for the normal form of package sym. It cuts both shapes into
// parts whose products are equal at this call's sizes, and requires that corresponding parts have equal products. This
// also rejects sizes for which another division into parts would match.
func (c *call) regrouped(t *Tensor, out []Size, open int) Value {
	in, end := t.Shape, len(out)
	if open >= 0 {
		end = open
	}
	used, ok := c.matched(in, out[:end])
	if !ok {
		return c.fail()
	}
	in = in[used:]
	if open >= 0 {
		tail := reversed(out[open+1:])
		if used, ok = c.matched(reversed(in), tail); !ok {
			return c.fail()
		}
		out[open] = c.numel(in[:len(in)-used])
		return t.with(out)
	}
	for _, s := range in {
		if !c.eq(s, one) {
			return c.fail()
		}
	}
	return t.with(out)
}

// matched returns how many of the first sizes of `in` have the product of all sizes of `out`.
func (c *call) matched(in, out []Size) (used int, ok bool) {
	for i := 0; i < len(out); {
		a, b := one, out[i]
		i++
		for {
			x, known := c.Env.Hint(a)
			y, known2 := c.Env.Hint(b)
			switch {
			case !known || !known2 || x == 0 || y == 0:
				return 0, false
			case x < y && used < len(in):
				a = c.Env.Mul(a, in[used])
				used++
				continue
			case x > y && i < len(out):
				b = c.Env.Mul(b, out[i])
				i++
				continue
			case x != y || !c.eq(a, b):
				return 0, false
			}
			break
		}
	}
	return used, true
}

func reversed(sizes []Size) []Size {
	sizes = slices.Clone(sizes)
	slices.Reverse(sizes)
	return sizes
}

func view(c *call) Value { return c.sized(c.tensor(0, ""), c.variadic(1, "size")) }

func reshapeMethod(c *call) Value { return c.sized(c.tensor(0, ""), c.variadic(1, "shape")) }

func reshape(c *call) Value {
	c.only(2)
	return c.sized(c.tensor(0, "input"), c.sizes(c.at(1, "shape")))
}

// sizedAs is the rule of x.view_as(other) and x.reshape_as(other).
func sizedAs(c *call) Value {
	c.only(2)
	return c.sized(c.tensor(0, ""), c.tensor(1, "other").Shape)
}

func (c *call) expanded(t *Tensor, sizes []Size) Value {
	ahead := len(sizes) - len(t.Shape)
	if ahead < 0 {
		return c.fail()
	}
	out := append([]Size{}, sizes...)
	for i := range out {
		switch {
		case i < ahead:
			c.bad = c.bad || !c.notNegative(out[i])
		case out[i].Is(-1):
			out[i] = t.Shape[i-ahead]
		case t.Shape[i-ahead].Is(1):
			c.bad = c.bad || !c.notNegative(out[i])
		case !c.eq(t.Shape[i-ahead], out[i]) && !c.eq(t.Shape[i-ahead], one):
			return c.fail()
		}
	}
	return t.with(out)
}

func expand(c *call) Value {
	t := c.tensor(0, "")
	c.ignore("implicit")
	return c.expanded(t, c.variadic(1, "size"))
}

func expandAs(c *call) Value {
	c.only(2)
	return c.expanded(c.tensor(0, ""), c.tensor(1, "other").Shape)
}

func repeat(c *call) Value {
	t, times := c.tensor(0, ""), c.variadic(1, "repeats")
	ahead := len(times) - len(t.Shape)
	if ahead < 0 {
		return c.fail()
	}
	out := append([]Size{}, times...)
	for i := range out {
		c.bad = c.bad || !c.required(out[i])
		if i >= ahead {
			out[i] = c.Env.Mul(out[i], t.Shape[i-ahead])
		}
	}
	return t.with(out)
}

func flatten(c *call) Value {
	c.only(3)
	t := c.tensor(0, "input")
	n := len(t.Shape)
	first, last := c.dim(c.integer(1, "start_dim", 0), n), c.dim(c.integer(2, "end_dim", -1), n)
	if n == 0 {
		return t.with([]Size{one})
	}
	if c.bad || first > last {
		return c.fail()
	}
	out := append([]Size{}, t.Shape[:first]...)
	out = append(out, c.numel(t.Shape[first:last+1]))
	return t.with(append(out, t.Shape[last+1:]...))
}

func unflatten(c *call) Value {
	c.only(3)
	t := c.tensor(0, "input")
	d, sizes := c.dim(c.integer(1, "dim", 0), len(t.Shape)), c.sizes(c.at(2, "sizes"))
	if c.bad || len(t.Shape) == 0 {
		return c.fail()
	}
	inner, ok := c.sized(t.with(t.Shape[d:d+1]), sizes).(*Tensor)
	if !ok {
		return c.fail()
	}
	out := append([]Size{}, t.Shape[:d]...)
	return t.with(append(append(out, inner.Shape...), t.Shape[d+1:]...))
}

func transpose(c *call) Value {
	c.only(3)
	t := c.tensor(0, "input")
	a, b := c.integer(1, "dim0", 1<<20), c.integer(2, "dim1", 1<<20)
	a, b = c.dim(a, len(t.Shape)), c.dim(b, len(t.Shape))
	if c.bad || len(t.Shape) == 0 {
		return t
	}
	out := append([]Size{}, t.Shape...)
	out[a], out[b] = out[b], out[a]
	return t.with(out)
}

// t2 is the rule of x.t(), for at most two dimensions.
func t2(c *call) Value {
	c.only(1)
	t := c.tensor(0, "input")
	switch len(t.Shape) {
	case 0, 1:
		return t
	case 2:
		return t.with([]Size{t.Shape[1], t.Shape[0]})
	}
	return c.fail()
}

// attribute is the rule of getattr(x, name) for attributes that are tensors.
func attribute(c *call) Value {
	c.only(2)
	t := c.tensor(0, "")
	name, _ := c.at(1, "").(Str)
	n := len(t.Shape)
	switch {
	case name == "data", name == "real" && kinds[t.Dtype] != complexKind:
		return t
	case (name == "T" || name == "H") && n == 2, (name == "mT" || name == "mH") && n >= 2:
		out := append([]Size{}, t.Shape...)
		out[n-1], out[n-2] = out[n-2], out[n-1]
		return t.with(out)
	}
	return c.fail()
}

func (c *call) permuted(t *Tensor, dims []int) Value {
	if len(dims) != len(t.Shape) {
		return c.fail()
	}
	out, seen := make([]Size, len(dims)), make([]bool, len(dims))
	for i, d := range dims {
		d = c.dim(d, len(dims))
		if c.bad || seen[d] {
			return c.fail()
		}
		seen[d] = true
		out[i] = t.Shape[d]
	}
	return t.with(out)
}

func permuteMethod(c *call) Value {
	t, dims := c.tensor(0, ""), c.variadic(1, "dims")
	out := make([]int, len(dims))
	for i, d := range dims {
		out[i] = c.constant(d)
	}
	return c.permuted(t, out)
}

func permute(c *call) Value {
	c.only(2)
	return c.permuted(c.tensor(0, "input"), c.ints(c.at(1, "dims")))
}

func unsqueeze(c *call) Value {
	c.only(2)
	t := c.tensor(0, "input")
	d := c.dim(c.integer(1, "dim", 1<<20), len(t.Shape)+1)
	if c.bad {
		return nil
	}
	out := append([]Size{}, t.Shape[:d]...)
	return t.with(append(append(out, one), t.Shape[d:]...))
}

func squeeze(c *call) Value {
	c.only(2)
	t := c.tensor(0, "input")
	which := func(int) bool { return true }
	switch v := c.at(1, "dim").(type) {
	case nil:
	case Int:
		d := c.dim(c.constant(v.Size), len(t.Shape))
		which = func(i int) bool { return i == d }
	default:
		dims := map[int]bool{}
		for _, d := range c.ints(v) {
			dims[c.dim(d, len(t.Shape))] = true
		}
		which = func(i int) bool { return dims[i] }
	}
	out := []Size{}
	for i, s := range t.Shape {
		if !which(i) || !c.eq(s, one) {
			out = append(out, s)
		}
	}
	return t.with(out)
}

func unbind(c *call) Value {
	c.only(2)
	t := c.tensor(0, "input")
	d := c.dim(c.integer(1, "dim", 0), len(t.Shape))
	if c.bad || len(t.Shape) == 0 {
		return c.fail()
	}
	item := t.with(t.without(d))
	n := c.fixed(t.Shape[d])
	if c.bad {
		return nil
	}
	out := make(List, n)
	for i := range out {
		out[i] = item
	}
	return out
}

func (c *call) parts(t *Tensor, d int, sizes []Size) Value {
	out := make(List, len(sizes))
	for i, s := range sizes {
		out[i] = t.with(t.replaced(d, s))
	}
	return out
}

// maxCut is the largest number of pieces whose sizes may be symbols.
const maxCut = 64

// cut returns the sizes of the pieces into which a dimension is cut, as pieces does. The number of pieces is that of
// the translated call, which becomes a condition.
func (c *call) cut(size, piece Size) []Size {
	n, ok1 := c.Env.Hint(size)
	k, ok2 := c.Env.Hint(piece)
	if !ok1 || !ok2 || n <= 0 || k <= 0 || (n-1)/k >= maxCut {
		return pieces(c.fixed(size), c.fixed(piece))
	}
	before := (n - 1) / k // the number of pieces before the last
	cut := c.Env.Mul(sym.Const(before), piece)
	last := c.Env.Sub(size, cut)
	if !c.decide(c.Env.Gt(last, Size{})) || !c.decide(c.Env.Le(last, piece)) {
		c.bad = true
	}
	out := make([]Size, before+1)
	for i := range before {
		out[i] = piece
	}
	out[before] = last
	return out
}

// pieces returns the sizes of the pieces into which a dimension is cut. Each has the size `piece`, but the last may be
// smaller. An empty dimension is one piece of size 0.
func pieces(size, piece int) []Size {
	var out []int
	for at := 0; at < size; at += piece {
		out = append(out, min(piece, size-at))
	}
	if out == nil {
		out = []int{0}
	}
	return Sizes(out...)
}

func chunk(c *call) Value {
	c.only(3)
	t := c.tensor(0, "input")
	n, d := c.integer(1, "chunks", 0), c.dim(c.integer(2, "dim", 0), len(t.Shape))
	if c.bad || n <= 0 || len(t.Shape) == 0 || c.eq(t.Shape[d], Size{}) {
		return c.fail()
	}
	size, by := t.Shape[d], sym.Const(int64(n))
	if c.Env.Ask(sym.Zero(c.Env.Mod(size, by))) == sym.True {
		return c.parts(t, d, slices.Repeat([]Size{c.quotient(size, by)}, n))
	}
	return c.parts(t, d, c.cut(size, c.quotient(c.Env.Add(size, sym.Const(int64(n-1))), by)))
}

// split returns the rule of torch.split and x.split, which cut a tensor by one size or by a list of sizes. name is the
// name of that operand, which differs between the function and the method.
func split(name string) rule {
	return func(c *call) Value {
		c.only(3)
		t := c.tensor(0, "tensor")
		by, d := c.at(1, name), c.dim(c.integer(2, "dim", 0), len(t.Shape))
		if c.bad || len(t.Shape) == 0 {
			return c.fail()
		}
		if n, ok := by.(Int); ok {
			if !c.positive(n.Size) {
				return c.fail()
			}
			return c.parts(t, d, c.cut(t.Shape[d], n.Size))
		}
		sizes, sum := c.sizes(by), Size{}
		for _, s := range sizes {
			sum = c.Env.Add(sum, s)
			c.bad = c.bad || !c.required(s)
		}
		if c.bad || !c.requireEqual(sum, t.Shape[d]) {
			return c.fail()
		}
		return c.parts(t, d, sizes)
	}
}

func narrow(c *call) Value {
	c.only(4)
	t := c.tensor(0, "input")
	d := c.dim(c.integer(1, "dim", 1<<20), len(t.Shape))
	start, length := c.size(2, "start", -1), c.size(3, "length", -1)
	if c.bad || !c.notNegative(start) || !c.notNegative(length) || c.gt(c.Env.Add(start, length), t.size(d)) {
		return c.fail()
	}
	return t.with(t.replaced(d, length))
}

// sample is the rule of samples: the tensors with which functions given to operations are captured. A sample is one
// slice along a dimension, by default the first dimension.
func sample(c *call) Value {
	c.only(2)
	t := c.tensor(0, "x")
	d := c.dim(c.integer(1, "dim", 0), len(t.Shape))
	if c.bad || len(t.Shape) == 0 {
		return c.fail()
	}
	return t.with(t.without(d))
}

// scalarSample returns the rule of samples without dimensions, of x's dtype if dtype is empty.
func scalarSample(dtype Dtype) rule {
	return func(c *call) Value {
		c.only(1)
		t := *c.tensor(0, "x")
		t.Shape = nil
		if dtype != "" {
			t.Dtype = dtype
		}
		return &t
	}
}

// slice is the rule of aten's slice.
func slice(c *call) Value {
	c.only(5)
	t := c.tensor(0, "self")
	d := c.dim(c.integer(1, "dim", 0), len(t.Shape))
	s := Slice{Start: c.at(2, "start"), Stop: c.at(3, "end"), Step: c.at(4, "step")}
	for _, v := range []*Value{&s.Start, &s.Stop, &s.Step} {
		if *v == nil {
			*v = None{}
		}
	}
	if c.bad || len(t.Shape) == 0 {
		return c.fail()
	}
	return t.with(t.replaced(d, c.sliced(s, t.size(d))))
}

func cat(c *call) Value {
	c.only(2)
	list, ok := c.at(0, "tensors").(List)
	d := c.integer(1, "dim", 0)
	if !ok || len(list) == 0 {
		return c.fail()
	}
	out := []Size(nil)
	vectors := !slices.ContainsFunc(list, func(v Value) bool {
		t, ok := v.(*Tensor)
		return !ok || len(t.Shape) != 1
	})
	for _, v := range list {
		t, ok := v.(*Tensor)
		if !ok || len(t.Shape) == 0 {
			return c.fail()
		}
		if len(t.Shape) == 1 && !vectors && c.eq(t.Shape[0], Size{}) { // cat ignores empty vectors
			continue
		}
		if out == nil {
			d = c.dim(d, len(t.Shape))
			out = append(out, t.Shape...)
			continue
		}
		if c.bad || len(t.Shape) != len(out) {
			return c.fail()
		}
		for j, s := range t.Shape {
			if j == d {
				out[j] = c.Env.Add(out[j], s)
			} else if !c.requireEqual(s, out[j]) {
				return c.fail()
			}
		}
	}
	if out == nil {
		return c.fail()
	}
	return &Tensor{out, c.resultType(list...), c.oneDeviceOf(list)}
}

// repeatInterleave is the rule of torch.repeat_interleave, which repeats each slice along a dimension a number of
// times.
func repeatInterleave(c *call) Value {
	c.only(3)
	t := c.tensor(0, "input")
	if _, byTensor := c.at(1, "repeats").(*Tensor); byTensor {
		return c.repeatedBy(t)
	}
	n, v := c.size(1, "repeats", -1), c.at(2, "dim")
	if none(v) {
		if c.bad || !c.required(n) {
			return c.fail()
		}
		return t.with([]Size{c.Env.Mul(c.numel(t.Shape), n)})
	}
	d, ok := v.(Int)
	at := c.dim(c.constant(d.Size), len(t.Shape))
	if c.bad || !ok || len(t.Shape) == 0 || !c.required(n) {
		return c.fail()
	}
	return t.with(t.replaced(at, c.Env.Mul(t.Shape[at], n)))
}

func (c *call) oneDeviceOf(list List) Device {
	var first Device
	for i, v := range list {
		t, ok := v.(*Tensor)
		if !ok || (i > 0 && t.Device != first) {
			c.bad = true
			return ""
		}
		first = t.Device
	}
	return first
}

func stack(c *call) Value {
	c.only(2)
	list, ok := c.at(0, "tensors").(List)
	d := c.integer(1, "dim", 0)
	if !ok || len(list) == 0 {
		return c.fail()
	}
	first, ok := list[0].(*Tensor)
	if !ok {
		return c.fail()
	}
	for _, v := range list {
		if t, ok := v.(*Tensor); !ok || !c.requireSame(t.Shape, first.Shape) {
			return c.fail()
		}
	}
	d = c.dim(d, len(first.Shape)+1)
	if c.bad {
		return nil
	}
	out := append([]Size{}, first.Shape[:d]...)
	out = append(append(out, sym.Const(int64(len(list)))), first.Shape[d:]...)
	return &Tensor{out, c.resultType(list...), c.oneDeviceOf(list)}
}
