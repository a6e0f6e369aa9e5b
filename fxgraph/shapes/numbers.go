package shapes

import (
	"slices"
	"strings"
)

// A program may compute a size with torch, as in x.view(torch.div(n, 2, rounding_mode="trunc"), 2): torch makes a
// tensor of the quotient, and view takes it for an int. The number in such a tensor follows from sizes alone.

// numbers has a function for each operation that makes a tensor of a number from ints. It returns the number.
var numbers = map[string]func(c *call) Size{
	"torch.div":         roundedQuotient,
	"torch.divide":      roundedQuotient,
	"torch.tensor":      func(c *call) Size { c.only(1); return c.size(0, "data", 0) },
	"operator.add":      func(c *call) Size { return c.Env.Add(c.size(0, "", 0), c.size(1, "", 0)) },
	"operator.sub":      func(c *call) Size { return c.Env.Sub(c.size(0, "", 0), c.size(1, "", 0)) },
	"operator.mul":      func(c *call) Size { return c.Env.Mul(c.size(0, "", 0), c.size(1, "", 0)) },
	"operator.floordiv": floorQuotient,
}

func roundedQuotient(c *call) Size {
	if mode := c.at(-1, "rounding_mode"); mode != Str("trunc") && mode != Str("floor") {
		c.bad = true
	}
	return floorQuotient(c)
}

// floorQuotient has no answer for negative operands, for which truncating and rounding down differ.
func floorQuotient(c *call) Size {
	c.only(2)
	a, b := c.size(0, "input", 0), c.size(1, "other", 0)
	if c.bad || !c.notNegative(a) || !c.positive(b) {
		c.bad = true
		return Size{}
	}
	return c.quotient(a, b)
}

// Number returns the tensor that an operation on ints makes, and the number in it. The operands are ints and tensors
// with such a number, which are passed as Int.
func Number(x Context, name string, args []Value, kwargs []Kwarg) (*Tensor, Size, bool) {
	number := numbers[name]
	if number == nil || x.CPU == "" {
		return nil, Size{}, false
	}
	c := &call{Context: x, name: name, args: args, kwargs: kwargs}
	n := number(c)
	if c.bad || n.IsUnknown() || c.used != 1<<len(kwargs)-1 {
		return nil, Size{}, false
	}
	return &Tensor{Dtype: torchInt64, Device: x.CPU}, n, true
}

// MakesNumber reports whether an operation may make a tensor with a known number, see Number.
func MakesNumber(name string) bool { return numbers[name] != nil }

// MayChange reports whether an operation that may change its operands may change a number that an earlier operation
// made. Tensors with such a number are of int64, and so are their views.
func MayChange(args []Value, kwargs []Kwarg) bool {
	for _, kw := range kwargs {
		args = append(args[:len(args):len(args)], kw.Value)
	}
	return slices.ContainsFunc(args, func(operand Value) bool {
		switch v := operand.(type) {
		case *Tensor:
			return v.Dtype == torchInt64
		case List:
			return MayChange(v, nil)
		case Unknown, nil:
			return true
		}
		return false
	})
}

// TakesSizes reports whether all operands of an operation, except the tensor of a method, are sizes or lists of sizes,
// for which torch also takes a tensor of one int.
func TakesSizes(name string) bool { return takesSizes[strings.TrimPrefix(name, "torch.")] }

var takesSizes = map[string]bool{
	"view": true, "reshape": true, "expand": true, "repeat": true, "tile": true, "new_zeros": true, "new_ones": true,
	"new_empty": true, "zeros": true, "ones": true, "empty": true, "as_strided": true, "unflatten": true,
}
