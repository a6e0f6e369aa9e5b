package shapes

// broadcast returns the shape to which the given shapes broadcast.
func (c *call) broadcast(shapes ...[]Size) []Size {
	n := 0
	for _, s := range shapes {
		n = max(n, len(s))
	}
	out := make([]Size, n)
	for i := range out {
		out[i] = one
	}
	for _, s := range shapes {
		for i, size := range s {
			at := &out[n-len(s)+i]
			switch { // a constant 1 needs no condition; for other sizes, equality is checked first
			case size.Is(1):
			case at.Is(1):
				*at = size
			case c.eq(size, *at), c.eq(size, one):
			case c.eq(*at, one):
				*at = size
			default:
				c.bad = true
			}
		}
	}
	return out
}

func shapesOf(operands ...Value) [][]Size {
	var out [][]Size
	for _, v := range operands {
		if t, ok := v.(*Tensor); ok {
			out = append(out, t.Shape)
		}
	}
	return out
}

// pointwise returns the result of an elementwise operation on tensors and numbers.
func (c *call) pointwise(d Dtype, operands ...Value) *Tensor {
	shapes := shapesOf(operands...)
	if len(shapes) == 0 || d == "" {
		c.bad = true
	}
	return &Tensor{c.broadcast(shapes...), d, c.device(operands...)}
}

// same returns a rule whose result has the shape, dtype and device of the first operand. The other operands, whose
// names are given, have no effect on the result.
func same(names ...string) rule {
	return func(c *call) Value {
		c.only(1 + len(names))
		t := c.tensor(0, "input")
		c.ignore(names...)
		return t
	}
}

// tensorBesideInt is the rule of max and min of a tensor without dimensions and an int. The result is one of the two;
// the rule describes the tensor (variables.TensorOrInt).
func tensorBesideInt(c *call) Value {
	c.only(2)
	if _, ok := c.at(0, "").(*Tensor); ok {
		return c.tensor(0, "")
	}
	return c.tensor(1, "")
}

// alone is like same, but the rule accepts all operands except the first only by keyword.
func alone(names ...string) rule {
	inner := same(names...)
	return func(c *call) Value {
		c.only(1)
		return inner(c)
	}
}

// triangle is the rule of tril and triu.
func triangle(c *call) Value {
	c.only(2)
	c.integer(1, "diagonal", 0)
	return c.tensor(0, "input")
}

// activation is like sameFloat, but the rule has no answer if another positional operand is a tensor.
func activation(names ...string) rule {
	inner := sameFloat(names...)
	return func(c *call) Value {
		for _, v := range c.args[min(1, len(c.args)):] {
			if _, is := v.(*Tensor); is {
				return c.fail()
			}
		}
		return inner(c)
	}
}

// tensors returns the rule inner, except that there is no answer if a positional operand is not a tensor.
func tensors(inner rule) rule {
	return func(c *call) Value {
		for _, v := range c.args {
			if _, is := v.(*Tensor); !is {
				return c.fail()
			}
		}
		return inner(c)
	}
}

// sameFloat is like same, but the rule accepts only floating-point and complex tensors.
func sameFloat(names ...string) rule {
	return func(c *call) Value {
		t := c.tensor(0, "input")
		c.ignore(names...)
		if !t.Dtype.floating() {
			return c.fail()
		}
		return t
	}
}

// floatUnary is the rule of functions computed in floating point. Integers yield the default dtype.
func floatUnary(c *call) Value {
	c.only(1)
	t := c.tensor(0, "input")
	if t.Dtype.floating() {
		return t
	}
	return t.as(c.DefaultDtype)
}

// binary returns the rule of an elementwise operation on two operands. The dtype of the result is their
// torch.result_type. Further operands with these names have no effect on the result.
func binary(names ...string) rule {
	return func(c *call) Value {
		c.only(2)
		a, b := c.at(0, "input"), c.at(1, "other")
		c.ignore(names...)
		return c.pointwise(c.resultType(a, b), a, b)
	}
}

// arithmetic is like binary, for operations that are undefined on two bools (subtraction, remainders).
func arithmetic(names ...string) rule {
	inner := binary(names...)
	return func(c *call) Value {
		v, ok := inner(c).(*Tensor)
		if !ok || v.Dtype == torchBool {
			return c.fail()
		}
		return v
	}
}

// power is the rule of torch.pow, whose second operand is named exponent.
func power(c *call) Value {
	c.only(2)
	a, b := c.at(0, "input"), c.at(1, "exponent")
	d := c.resultType(a, b)
	if d == torchBool {
		return c.fail()
	}
	return c.pointwise(d, a, b)
}

// trueDivide is the rule of torch.div. The result is floating-point, unless a rounding mode is given.
func trueDivide(c *call) Value {
	c.only(2)
	a, b := c.at(0, "input"), c.at(1, "other")
	d := c.resultType(a, b)
	if rounds := c.at(-1, "rounding_mode"); none(rounds) && !d.floating() {
		d = c.DefaultDtype
	}
	return c.pointwise(d, a, b)
}

// comparison is the rule of elementwise comparisons, which yield bools.
func comparison(c *call) Value {
	c.only(2)
	a, b := c.at(0, "input"), c.at(1, "other")
	c.resultType(a, b)
	return c.pointwise(torchBool, a, b)
}

// bitwise is the rule of bitwise operations on integers and bools.
func bitwise(c *call) Value {
	v := binary()(c).(*Tensor)
	if v.Dtype.floating() {
		return c.fail()
	}
	return v
}

// absolute is the rule of torch.abs. The absolute values of complex numbers are real.
func absolute(c *call) Value {
	c.only(1)
	t := c.tensor(0, "input")
	if kinds[t.Dtype] == complexKind {
		return t.as(realOf[t.Dtype])
	}
	return t
}

// test is the rule of elementwise tests, such as torch.isnan, which yield bools.
func test(c *call) Value {
	c.only(1)
	return c.tensor(0, "input").as(torchBool)
}

// where is the rule of torch.where, which selects elements from two operands by a condition.
func where(c *call) Value {
	return c.chosen(c.tensor(0, "condition"), c.at(1, "input"), c.at(2, "other"))
}

// whereMethod is the rule of x.where(condition, other).
func whereMethod(c *call) Value {
	return c.chosen(c.tensor(1, "condition"), c.tensor(0, "input"), c.at(2, "other"))
}

func (c *call) chosen(cond *Tensor, a, b Value) Value {
	c.only(3)
	if cond.Dtype != torchBool {
		return c.fail()
	}
	return c.pointwise(c.resultType(a, b), cond, a, b)
}

// clamp is the rule of torch.clamp, which limits elements to a range.
func clamp(c *call) Value {
	c.only(3)
	operands := []Value{c.tensor(0, "input")}
	for i, name := range []string{"min", "max"} {
		if v := c.at(i+1, name); !none(v) {
			operands = append(operands, v)
		}
	}
	return c.pointwise(c.resultType(operands...), operands...)
}

// maskedFill is the rule of torch.masked_fill. The result has the dtype of the first operand.
func maskedFill(c *call) Value {
	c.only(3)
	t, mask := c.tensor(0, "input"), c.tensor(1, "mask")
	c.at(2, "value")
	c.oneDevice(t, mask)
	return t.with(c.broadcast(t.Shape, mask.Shape))
}

// inPlaceFirst is the rule of in-place operations, which return their first operand itself.
func inPlaceFirst(c *call) Value {
	if len(c.args) == 0 {
		return c.fail()
	}
	t, ok := c.args[0].(*Tensor)
	if !ok {
		return c.fail()
	}
	c.used = 1<<len(c.kwargs) - 1
	return t
}

// square is the rule of x * x. For bools the result is int64.
func square(c *call) Value {
	c.only(1)
	t := c.tensor(0, "input")
	if t.Dtype == torchBool {
		return t.as(torchInt64)
	}
	return t
}
