package shapes

import (
	"slices"
	"strings"
)

func linear(c *call) Value {
	c.only(3)
	x, w := c.tensor(0, "input"), c.tensor(1, "weight")
	tensors := []*Tensor{x, w}
	if b := c.at(2, "bias"); !none(b) {
		t, ok := b.(*Tensor)
		if !ok || len(t.Shape) > 1 || len(w.Shape) == 2 && len(t.Shape) == 1 && !c.eq(t.Shape[0], w.Shape[0]) {
			return c.fail()
		}
		tensors = append(tensors, t)
	}
	c.oneDtype(tensors...)
	c.oneDevice(tensors...)
	if len(x.Shape) == 0 || len(w.Shape) != 2 || !c.requireEqual(x.Shape[len(x.Shape)-1], w.Shape[1]) {
		return c.fail()
	}
	return x.with(x.replaced(len(x.Shape)-1, w.Shape[0]))
}

func matmul(c *call) Value {
	c.only(2)
	a, b := c.tensor(0, "input"), c.tensor(1, "other")
	c.oneDtype(a, b)
	c.oneDevice(a, b)
	if c.bad || len(a.Shape) == 0 || len(b.Shape) == 0 {
		return c.fail()
	}
	left, right := a.Shape, b.Shape
	if len(left) == 1 {
		left = []Size{one, left[0]}
	}
	if len(right) == 1 {
		right = []Size{right[0], one}
	}
	n, m := len(left), len(right)
	if !c.requireEqual(left[n-1], right[m-2]) {
		return c.fail()
	}
	out := c.broadcast(left[:n-2], right[:m-2])
	if len(a.Shape) > 1 {
		out = append(out, left[n-2])
	}
	if len(b.Shape) > 1 {
		out = append(out, right[m-1])
	}
	return a.with(out)
}

// product returns the result of mm (n = 2) or bmm (n = 3) for tensors of n dimensions. The first n-2 sizes must be
// equal.
func (c *call) product(a, b *Tensor, n int) *Tensor {
	c.oneDtype(a, b)
	c.oneDevice(a, b)
	if len(a.Shape) != n || len(b.Shape) != n || !c.requireEqual(a.Shape[n-1], b.Shape[n-2]) ||
		!c.requireSame(a.Shape[:n-2], b.Shape[:n-2]) {
		c.bad = true
		return noTensor
	}
	return a.with(append(append([]Size{}, a.Shape[:n-1]...), b.Shape[n-1]))
}

func mm(n int) rule {
	return func(c *call) Value {
		c.only(2)
		return c.product(c.tensor(0, "input"), c.tensor(1, "mat2"), n)
	}
}

// groupedProduct is the rule of a product of groups of rows and the matrices of a batch. The third operand has the ends
// of the groups. Without dtypes, the operands may have any dtype.
func groupedProduct(dtypes ...Dtype) rule {
	return func(c *call) Value {
		c.only(3)
		a, b, ends := c.tensor(0, "input"), c.tensor(1, "weight"), c.tensor(2, "offs")
		c.oneDtype(a, b)
		if c.bad || len(dtypes) > 0 && !slices.Contains(dtypes, a.Dtype) || len(a.Shape) != 2 || len(b.Shape) != 3 ||
			len(ends.Shape) != 1 || !c.eq(a.Shape[1], b.Shape[1]) || !c.eq(ends.Shape[0], b.Shape[0]) {
			return c.fail()
		}
		return a.with([]Size{a.Shape[0], b.Shape[2]})
	}
}

// addmm is the rule of input + a @ b.
func addmm(n int, first, second string) rule {
	return func(c *call) Value {
		c.only(3)
		t := c.tensor(0, "input")
		p := c.product(c.tensor(1, first), c.tensor(2, second), n)
		c.ignore("beta", "alpha")
		c.oneDtype(t, p)
		if c.bad || !c.equal(c.broadcast(t.Shape, p.Shape), p.Shape) {
			return c.fail()
		}
		return p
	}
}

func embedding(c *call) Value {
	w, ids := c.tensor(0, "weight"), c.tensor(1, "indices")
	c.ignore("padding_idx", "scale_grad_by_freq", "sparse")
	c.oneDevice(w, ids)
	if len(w.Shape) != 2 {
		return c.fail()
	}
	return w.with(append(append([]Size{}, ids.Shape...), w.Shape[1]))
}

// attention is the rule of scaled_dot_product_attention.
func attention(c *call) Value {
	c.only(6)
	q, k, v := c.tensor(0, "query"), c.tensor(1, "key"), c.tensor(2, "value")
	c.at(3, "attn_mask")
	c.at(4, "dropout_p")
	c.at(5, "is_causal")
	c.ignore("scale")
	grouped := c.boolean(-1, "enable_gqa", false)
	c.oneDtype(q, k, v)
	c.oneDevice(q, k, v)
	n := len(q.Shape)
	if c.bad || n < 3 || len(k.Shape) != n || len(v.Shape) != n || !c.requireEqual(q.Shape[n-1], k.Shape[n-1]) ||
		!c.requireEqual(k.Shape[n-2], v.Shape[n-2]) {
		return c.fail()
	}
	if grouped { // the heads of key and value are repeated
		if !c.equal(q.Shape[:n-3], k.Shape[:n-3]) || !c.equal(q.Shape[:n-3], v.Shape[:n-3]) {
			return c.fail()
		}
		return q.with(q.replaced(n-1, v.Shape[n-1]))
	}
	out := c.broadcast(q.Shape[:n-2], k.Shape[:n-2], v.Shape[:n-2])
	return q.with(append(out, q.Shape[n-2], v.Shape[n-1]))
}

// nativeAttention is the rule of torch._native_multi_head_attention without weights in the result.
func nativeAttention(c *call) Value {
	if len(c.args) < 8 || c.at(10, "need_weights") != Bool(false) {
		return c.fail()
	}
	q, proj := c.tensor(0, "query"), c.tensor(7, "proj_weight")
	if c.bad || len(q.Shape) != 3 || len(proj.Shape) != 2 {
		return c.fail()
	}
	for _, name := range []string{"mask", "average_attn_weights", "mask_type"} {
		c.ignore(name)
	}
	c.only(13)
	return List{q.with(q.replaced(2, proj.Shape[0])), None{}}
}

// encoderLayer is the rule of torch._transformer_encoder_layer_fwd, which adds to its first operand.
func encoderLayer(c *call) Value {
	if len(c.kwargs) > 0 {
		return c.fail()
	}
	return c.tensor(0, "src")
}

// einsum is the rule of torch.einsum. A letter whose sizes differ, or are 1 in some operands, has no answer.
func einsum(c *call) Value {
	equation, ok := c.at(0, "equation").(Str)
	operands := List(c.args[min(1, len(c.args)):])
	if len(operands) == 1 {
		if list, ok := operands[0].(List); ok {
			operands = list
		}
	}
	in, out, arrow := strings.Cut(strings.ReplaceAll(string(equation), " ", ""), "->")
	terms := strings.Split(in, ",")
	if !ok || len(terms) != len(operands) {
		return c.fail()
	}
	sizes := map[rune]Size{}
	var tensors []*Tensor
	var dotted [][]Size // the dimensions for which each ellipsis stands
	for i, v := range operands {
		t, ok := v.(*Tensor)
		if !ok {
			return c.fail()
		}
		tensors = append(tensors, t)
		rest, ok := c.einsumTerm(terms[i], t.Shape, sizes)
		if !ok {
			return c.fail()
		}
		if strings.Contains(terms[i], "...") {
			dotted = append(dotted, rest)
		}
	}
	c.oneDtype(tensors...)
	c.oneDevice(tensors...)
	if !arrow {
		out = implicitOutput(in)
	}
	head, tail, dots := strings.Cut(out, "...")
	if c.bad || !tensors[0].Dtype.floating() { // sums of integers may have a wider dtype
		return c.fail()
	}
	shape := []Size{}
	for _, letter := range head + tail {
		s, seen := sizes[letter]
		if !seen {
			return c.fail()
		}
		delete(sizes, letter) // the output has each letter once
		shape = append(shape, s)
	}
	between := c.broadcast(dotted...)
	if dots {
		shape = slices.Insert(shape, len(head), between...)
	}
	return tensors[0].with(shape)
}

// einsumTerm notes the sizes of the letters in an operand's term, and returns the sizes that its ellipsis represents.
func (c *call) einsumTerm(term string, shape []Size, sizes map[rune]Size) ([]Size, bool) {
	head, tail, dots := strings.Cut(term, "...")
	n := len(shape) - len(head) - len(tail)
	if n < 0 || n > 0 && !dots {
		return nil, false
	}
	named := slices.Concat(shape[:len(head)], shape[len(head)+n:])
	for i, letter := range head + tail {
		if was, seen := sizes[letter]; !isLetter(letter) || seen && !c.eq(was, named[i]) {
			return nil, false
		}
		sizes[letter] = named[i]
	}
	return shape[len(head) : len(head)+n], true
}

// implicitOutput returns the output of an equation without an arrow: the ellipsis, then the letters that occur once,
// sorted.
func implicitOutput(in string) string {
	var once []rune
	for _, letter := range in {
		if isLetter(letter) && strings.Count(in, string(letter)) == 1 {
			once = append(once, letter)
		}
	}
	slices.Sort(once)
	if strings.Contains(in, "...") {
		return "..." + string(once)
	}
	return string(once)
}

func isLetter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }
