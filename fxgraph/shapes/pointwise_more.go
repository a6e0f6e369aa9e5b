package shapes

// Rules of further elementwise operations.

// floatOf returns a rule whose result is floating-point: integers become the default dtype. Operands after the first
// n tensors and numbers, whose names are given, have no effect on the result.
func floatOf(n int, names ...string) rule {
	return func(c *call) Value {
		c.only(n + len(names))
		var operands []Value
		for i, name := range []string{"input", "other"}[:n] {
			operands = append(operands, c.at(i, name))
		}
		for i, name := range names {
			c.at(n+i, name)
		}
		d := c.resultType(operands...)
		if !d.floating() {
			d = c.DefaultDtype
		}
		return c.pointwise(d, operands...)
	}
}

// secondFloat is floatOf for functions of an int and a tensor, such as torch.polygamma(n, input).
func secondFloat(number, tensor int) rule {
	return func(c *call) Value {
		c.only(2)
		t := c.tensor(tensor, "input")
		c.integer(number, "n", -1)
		if !t.Dtype.floating() {
			return t.as(c.DefaultDtype)
		}
		return t
	}
}

// toComplex is the rule of x.cfloat() and similar methods.
func toComplex(c *call) Value {
	c.only(1)
	c.ignore("memory_format")
	return c.tensor(0, "").as(map[string]Dtype{"cfloat": torchComplex64, "cdouble": torchComplex128,
		"chalf": torchComplex32}[c.name])
}

// oneType is the rule of elementwise operations on operands of one dtype.
func oneType(names ...string) rule {
	return func(c *call) Value {
		c.only(2)
		a, b := c.tensor(0, "input"), c.tensor(1, "other")
		c.ignore(names...)
		c.oneDtype(a, b)
		return c.pointwise(a.Dtype, a, b)
	}
}

// floatPower is the rule of torch.float_power, computed in double precision.
func floatPower(c *call) Value {
	c.only(2)
	a, b := c.at(0, "input"), c.at(1, "exponent")
	d := torchFloat64
	if kinds[c.resultType(a, b)] == complexKind {
		d = torchComplex128
	}
	return c.pointwise(d, a, b)
}

// three is the rule of operations on three tensors, the last of which may be a number: lerp, addcmul.
func three(names ...string) rule {
	return func(c *call) Value {
		c.only(3)
		operands := []Value{c.at(0, names[0]), c.at(1, names[1]), c.at(2, names[2])}
		c.ignore(names[3:]...)
		var tensors []*Tensor
		for _, v := range operands {
			switch v := v.(type) {
			case *Tensor:
				tensors = append(tensors, v)
			case Float, Int:
			default:
				return c.fail()
			}
		}
		if len(tensors) < 2 {
			return c.fail()
		}
		c.oneDtype(tensors...)
		return c.pointwise(tensors[0].Dtype, operands...)
	}
}

// complexFrom is the rule of torch.complex and torch.polar.
func complexFrom(c *call) Value {
	c.only(2)
	a, b := c.tensor(0, "real"), c.tensor(1, "imag")
	if len(c.kwargs) > 0 {
		return c.fail()
	}
	c.oneDtype(a, b)
	d, ok := complexOf[a.Dtype]
	if !ok || a.Dtype == torchBfloat16 {
		return c.fail()
	}
	return c.pointwise(d, a, b)
}

// realPart is the rule of torch.real, imaginaryPart that of torch.imag.
func realPart(c *call) Value {
	c.only(1)
	t := c.tensor(0, "input")
	return t.as(t.Dtype.real())
}

func imaginaryPart(c *call) Value {
	c.only(1)
	t := c.tensor(0, "input")
	if kinds[t.Dtype] != complexKind {
		return c.fail()
	}
	return t.as(t.Dtype.real())
}

func angle(c *call) Value {
	c.only(1)
	t := c.tensor(0, "input")
	if !t.Dtype.floating() {
		return t.as(c.DefaultDtype)
	}
	return t.as(t.Dtype.real())
}

// mantissa is the rule of torch.frexp.
func mantissa(c *call) Value {
	c.only(1)
	t := c.tensor(0, "input")
	if kinds[t.Dtype] != floatKind {
		return c.fail()
	}
	return List{t, t.as(torchInt32)}
}

// member is the rule of torch.isin(elements, test_elements).
func member(c *call) Value {
	c.only(2)
	t := c.tensor(0, "elements")
	c.at(1, "test_elements")
	c.ignore("assume_unique", "invert")
	return t.as(torchBool)
}

// limitedBy is the rule of clamp_min and clamp_max.
func limitedBy(name string) rule {
	return func(c *call) Value {
		c.only(2)
		a, b := c.tensor(0, "input"), c.at(1, name)
		return c.pointwise(c.resultType(a, b), a, b)
	}
}

// floored is the rule of torch.floor_divide.
func floored(c *call) Value {
	c.only(2)
	a, b := c.at(0, "input"), c.at(1, "other")
	d := c.resultType(a, b)
	if d == torchBool || kinds[d] == complexKind {
		return c.fail()
	}
	return c.pointwise(d, a, b)
}

// shifted is the rule of shifts of integers.
func shifted(c *call) Value {
	v, ok := binary()(c).(*Tensor)
	if !ok || kinds[v.Dtype] != intKind {
		return c.fail()
	}
	return v
}

// halved is the rule of F.glu(input, dim), which halves a dimension.
func halved(c *call) Value {
	c.only(2)
	t := c.tensor(0, "input")
	d := c.dim(c.integer(1, "dim", -1), len(t.Shape))
	if c.bad || len(t.Shape) == 0 || !t.Dtype.floating() || !c.divides(two, t.Shape[d]) {
		return c.fail()
	}
	return t.with(t.replaced(d, c.quotient(t.Shape[d], two)))
}

// normal is the rule of torch.normal(mean, std) for tensors.
func normal(c *call) Value {
	c.only(2)
	a, b := c.at(0, "mean"), c.at(1, "std")
	c.ignore("generator")
	t, ok := a.(*Tensor)
	if other, is := b.(*Tensor); is {
		if ok {
			c.oneDtype(t, other)
		}
		t, ok = other, true
	}
	if !ok || !t.Dtype.floating() {
		return c.fail()
	}
	return c.pointwise(t.Dtype, a, b)
}

// isClose is the rule of torch.isclose(input, other, rtol, atol).
func isClose(c *call) Value {
	c.only(4)
	a, b := c.tensor(0, "input"), c.tensor(1, "other")
	c.at(2, "rtol")
	c.at(3, "atol")
	c.ignore("equal_nan")
	return c.pointwise(torchBool, a, b)
}
