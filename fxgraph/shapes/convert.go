package shapes

import (
	"math"
	"slices"
	"strings"

	"github.com/godynamo/godynamo/fxgraph/sym"
)

// toDtype is the rule of x.float() and similar methods.
func toDtype(d Dtype) rule {
	return func(c *call) Value {
		c.only(1)
		t := c.tensor(0, "input")
		c.ignore("memory_format")
		return t.as(d)
	}
}

// typeAs is the rule of x.type_as(other).
func typeAs(c *call) Value {
	c.only(2)
	t, other := c.tensor(0, "input"), c.tensor(1, "other")
	return &Tensor{t.Shape, other.Dtype, other.Device}
}

// to is the rule of x.to(dtype), x.to(device), x.to(device, dtype) and x.to(other). Further arguments have no
// effect on the result.
func to(c *call) Value {
	t := *c.tensor(0, "input")
	rest := c.args[1:]
	if len(rest) > 0 {
		if other, ok := rest[0].(*Tensor); ok {
			t.Dtype, t.Device = other.Dtype, other.Device
			rest = rest[1:]
		}
	}
	for _, v := range rest {
		switch v := v.(type) {
		case Dtype, Device, Str:
			c.convert(&t, v)
		case Bool, None:
		default:
			c.bad = true
		}
	}
	for _, name := range []string{"dtype", "device"} {
		if v := c.at(-1, name); !none(v) {
			c.convert(&t, v)
		}
	}
	c.ignore("non_blocking", "copy", "memory_format")
	return &t
}

func (c *call) convert(t *Tensor, v Value) {
	switch v := v.(type) {
	case Dtype:
		t.Dtype = c.dtype(v, t.Dtype)
	case Device:
		t.Device = v
	case Str:
		d, known := DeviceNamed(string(v))
		c.bad = c.bad || !known || d != t.Device
	default:
		c.bad = true
	}
}

// DeviceNamed returns the device of a tensor that is made on the device with this text. Tensors on the CPU and on meta
// have no index. It returns false for an accelerator without an index: the current device decides.
func DeviceNamed(text string) (Device, bool) {
	kind, _, indexed := strings.Cut(text, ":")
	if kind == "cpu" || kind == "meta" {
		return Device(kind), true
	}
	return Device(text), indexed
}

// made returns a new tensor of a given shape. It reads the keyword operands dtype and device, for which the parameters
// are the defaults, and accepts keyword operands that have no effect on the result.
func (c *call) made(shape []Size, dtype Dtype, device Device) *Tensor {
	t := &Tensor{shape, c.dtype(c.at(-1, "dtype"), dtype), device}
	if v := c.at(-1, "device"); !none(v) {
		switch v := v.(type) {
		case Device:
			t.Device = v
		case Str:
			t.Device, _ = DeviceNamed(string(v))
			c.bad = c.bad || t.Device != "cpu" // the translator has no object for the text of another device
		default:
			c.bad = true
		}
	}
	if v := c.at(-1, "layout"); !none(v) && v != (Strided{}) {
		c.bad = true
	}
	c.ignore("requires_grad", "pin_memory", "memory_format", "generator")
	if t.Device == "" || c.numel(shape).IsUnknown() {
		c.bad = true
	}
	for _, s := range shape {
		if !c.required(s) {
			c.bad = true
		}
	}
	return t
}

// filled is the rule of torch.zeros(*size) and similar functions.
func filled(c *call) Value {
	return c.made(c.variadic(0, "size"), c.DefaultDtype, c.CPU)
}

// full is the rule of torch.full(size, fill_value). The value determines the dtype.
func full(c *call) Value {
	c.only(2)
	size := c.sizes(c.at(0, "size"))
	d := Dtype("")
	switch c.at(1, "fill_value").(type) {
	case Bool:
		d = torchBool
	case Int:
		d = torchInt64
	case Float:
		d = c.DefaultDtype
	default:
		c.bad = true
	}
	return c.made(size, d, c.CPU)
}

// like is the rule of torch.zeros_like and similar functions.
func like(c *call) Value {
	t := c.tensor(0, "input")
	c.only(1)
	return c.made(t.Shape, t.Dtype, t.Device)
}

// fullLike is the rule of torch.full_like(input, fill_value).
func fullLike(c *call) Value {
	t := c.tensor(0, "input")
	c.only(2)
	c.at(1, "fill_value")
	return c.made(t.Shape, t.Dtype, t.Device)
}

// newFilled is the rule of x.new_zeros(*size) and similar methods.
func newFilled(c *call) Value {
	t := c.tensor(0, "")
	return c.made(c.variadic(1, "size"), t.Dtype, t.Device)
}

// newFull is the rule of x.new_full(size, fill_value).
func newFull(c *call) Value {
	t := c.tensor(0, "")
	c.only(3)
	size := c.sizes(c.at(1, "size"))
	c.at(2, "fill_value")
	return c.made(size, t.Dtype, t.Device)
}

// arange is the rule of torch.arange([start,] end[, step]) for ints.
func arange(c *call) Value {
	c.only(3)
	var bounds []Size
	for _, v := range c.args {
		n, ok := v.(Int)
		if !ok {
			return floatRange(c)
		}
		bounds = append(bounds, n.Size)
	}
	given := func(name string, fallback int) Size { return c.size(-1, name, fallback) }
	start, end, step := Size{}, Size{}, one
	switch len(bounds) {
	case 0:
		if start, end, step = given("start", 0), given("end", -1), given("step", 1); !c.notNegative(end) {
			return c.fail()
		}
	case 1:
		end, step = bounds[0], given("step", 1)
		if v := c.at(-1, "end"); v != nil {
			return c.fail()
		}
	case 2:
		start, end, step = bounds[0], bounds[1], given("step", 1)
	case 3:
		start, end, step = bounds[0], bounds[1], bounds[2]
	}
	if c.bad || !c.positive(step) || c.lt(end, start) {
		return c.fail()
	}
	n := c.quotient(c.add(c.Env.Add(c.Env.Sub(end, start), step), -1), step)
	return c.made([]Size{n}, torchInt64, c.CPU)
}

// floatRange is the rule of torch.arange for constants, at least one of them a float.
func floatRange(c *call) Value {
	var bounds []float64
	for _, v := range c.args {
		switch v := v.(type) {
		case Float:
			bounds = append(bounds, float64(v))
		case Int:
			bounds = append(bounds, float64(c.constant(v.Size)))
		default:
			return c.fail()
		}
	}
	start, end, step := 0.0, bounds[0], 1.0
	if len(bounds) > 1 {
		start, end = end, bounds[1]
	}
	if len(bounds) > 2 {
		step = bounds[2]
	}
	n := math.Ceil((end - start) / step)
	t := c.made([]Size{sym.Const(int64(n))}, c.DefaultDtype, c.CPU)
	if !(n >= 0 && n < 1<<31) || !t.Dtype.floating() {
		return c.fail()
	}
	return t
}

// literal is the rule of torch.tensor and torch.as_tensor for numbers, nested lists of numbers, and a tensor.
func literal(c *call) Value {
	c.only(1)
	data := c.at(0, "data")
	if t, ok := data.(*Tensor); ok {
		return c.made(t.Shape, t.Dtype, t.Device)
	}
	shape, d, ok := nested(data, c.DefaultDtype)
	if !ok {
		return c.fail()
	}
	return c.made(shape, d, c.CPU)
}

func nested(v Value, floats Dtype) ([]Size, Dtype, bool) {
	switch v := v.(type) {
	case Bool:
		return nil, torchBool, true
	case Int:
		return nil, torchInt64, true
	case Float:
		return nil, floats, true
	case List:
		if len(v) == 0 {
			return []Size{{}}, floats, true
		}
		var inner []Size
		var d Dtype
		for i, item := range v {
			s, one, ok := nested(item, floats)
			if !ok || (i > 0 && !slices.Equal(s, inner)) {
				return nil, "", false
			}
			inner, d = s, promote(d, one)
		}
		return append(Sizes(len(v)), inner...), d, true
	}
	return nil, "", false
}
