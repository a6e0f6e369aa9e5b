// Package shapes infers the sizes, dtype and device of an operation's result from those of the operands. It has a rule
// for each operation that it supports. It is consulted before torch's FakeTensor, which runs a dispatcher in Python for
// each operation (121 µs, MEASUREMENTS.md).
//
// A rule has an answer only for the operands it supports. Strides, requires_grad and unusual operands are left to
// FakeTensor. If an operation would raise, there is no answer. The rules follow the documentation of torch's
// functions; the tests compare each with torch: testdata/examples.txt here, and torch's own op_db in
// python/tests/torch_library.
//
// The package holds no Python objects: the caller converts operands to Values.
package shapes

import (
	"slices"
	"strings"

	"github.com/godynamo/godynamo/fxgraph/sym"
)

// Size is the number of elements along a dimension.
type Size = sym.Size

// Value is an operand or a result: *Tensor, List, Int, Float, Bool, None, Str, Dtype, Device, Slice, Ellipsis or
// Unknown.
type Value interface{}

// Device is the text of a device, with the index if the device has one, such as "cpu" or "cuda:0".
type Device string

// Tensor is a dense strided tensor. Shape never changes after creation, since several Tensors may share it.
type Tensor struct {
	Shape  []Size
	Dtype  Dtype
	Device Device
}

type (
	// List is a list, a tuple or a torch.Size.
	List []Value
	// Int is an int that is not a bool.
	Int struct{ Size }
	// Float is a float. NaN is a float whose value is unknown.
	Float float64
	// Strided is torch.strided, the layout of every Tensor.
	Strided struct{}
	// Bool is True or False.
	Bool bool
	// None is None.
	None struct{}
	// Str is a str.
	Str string
	// Slice is a slice of ints and None.
	Slice struct{ Start, Stop, Step Value }
	// Ellipsis is `...`.
	Ellipsis struct{}
	// Unknown is any other value: other objects, and results of operations without an answer.
	Unknown struct{}
)

// Kwarg is an operand that is passed by keyword.
type Kwarg struct {
	Name  string
	Value Value
}

// Context is the part of torch's state that affects results.
type Context struct {
	DefaultDtype Dtype
	CPU          Device   // device of new tensors without a device argument; "" if it is not the CPU
	Env          *sym.Env // owner of the symbols in operands; records the conditions on which results depend
	Fresh        bool     // sizes that depend on data may be new symbols
	// Trues has the numbers of true elements of masks, by the masks' values. The caller empties it where a mask may
	// have changed.
	Trues    map[*Tensor]Size
	Untraced bool // operations run as they are: torch need not know their sizes
	Why      any  // the place of the operation, which is recorded with each condition
}

// call is an operation while its rule runs. Accessors set bad if an operand has an unexpected type.
type call struct {
	Context
	name   string
	args   []Value
	kwargs []Kwarg
	used   uint64 // keyword operands that were read, one bit each
	bad    bool
}

// rule returns the operation's result. The result is valid only if c.bad is not set and every keyword operand was
// read.
type rule func(c *call) Value

// Function returns the result of a torch function, given by its printed name in graphs ("torch.relu",
// "operator.add").
func Function(x Context, name string, args []Value, kwargs []Kwarg) (Value, bool) {
	return apply(ruleOf(functions, name), x, name, args, kwargs)
}

// Method returns the result of a tensor's method. args[0] is the tensor.
func Method(x Context, name string, args []Value, kwargs []Kwarg) (Value, bool) {
	if len(args) == 0 {
		return Unknown{}, false
	}
	if _, ok := args[0].(*Tensor); !ok {
		return Unknown{}, false
	}
	return apply(ruleOf(methods, name), x, name, args, kwargs)
}

func ruleOf(table map[string]rule, name string) rule {
	if r, ok := table[name]; ok || !changesInPlace(name) {
		return r
	}
	return inPlaceFirst
}

func apply(r rule, x Context, name string, args []Value, kwargs []Kwarg) (Value, bool) {
	if r == nil {
		return Unknown{}, false
	}
	c := &call{Context: x, name: name, args: args, kwargs: kwargs}
	v := r(c)
	if c.bad || v == nil || c.used != 1<<len(kwargs)-1 {
		return Unknown{}, false
	}
	if !answered(v) {
		return Unknown{}, false
	}
	return v, true
}

// answered reports whether a result and all its sizes are known.
func answered(v Value) bool {
	switch v := v.(type) {
	case Unknown:
		return false
	case *Tensor:
		return !slices.ContainsFunc(v.Shape, Size.IsUnknown)
	case List:
		return !slices.ContainsFunc(v, func(item Value) bool { return !answered(item) })
	}
	return true
}

// KeepsSizes reports whether an operation that changes an operand in place keeps the sizes, dtype and device of
// every tensor.
func KeepsSizes(name string) bool { return inPlace[name] || changesInPlace(name) }

// GivesTuple reports whether an operation returns its results in a plain tuple, not in a subclass.
func GivesTuple(name string) bool {
	switch strings.TrimPrefix(name, "torch.") {
	case "chunk", "split", "unbind", "tensor_split", "split_with_sizes":
		return true
	}
	return false
}

// fail records that the rule has no answer.
func (c *call) fail() Value {
	c.bad = true
	return nil
}

// at returns the operand at a position or with a name, or nil if it is absent.
func (c *call) at(i int, name string) Value {
	if i >= 0 && i < len(c.args) {
		return c.args[i]
	}
	for i, kw := range c.kwargs {
		if kw.Name == name {
			c.used |= 1 << i
			return kw.Value
		}
	}
	return nil
}

// none reports whether an operand is absent or None.
func none(v Value) bool {
	_, is := v.(None)
	return is || v == nil
}

// only fails if there are more than n positional operands.
func (c *call) only(n int) {
	if len(c.args) > n {
		c.bad = true
	}
}

var noTensor = &Tensor{}

// tensor reads an operand that must be a tensor.
func (c *call) tensor(i int, name string) *Tensor {
	if t, ok := c.at(i, name).(*Tensor); ok {
		return t
	}
	c.bad = true
	return noTensor
}

// integer reads an operand that must be a constant int. It returns `fallback` if the operand is absent.
func (c *call) integer(i int, name string, fallback int) int {
	switch v := c.at(i, name).(type) {
	case Int:
		return c.constant(v.Size)
	case nil:
		return fallback
	}
	c.bad = true
	return fallback
}

// size reads an operand that must be an int. It returns `fallback` if the operand is absent.
func (c *call) size(i int, name string, fallback int) Size {
	switch v := c.at(i, name).(type) {
	case Int:
		return v.Size
	case nil:
		return sym.Const(int64(fallback))
	}
	c.bad = true
	return Size{}
}

// boolean reads an operand that must be a bool. It returns `fallback` if the operand is absent.
func (c *call) boolean(i int, name string, fallback bool) bool {
	switch v := c.at(i, name).(type) {
	case Bool:
		return bool(v)
	case nil:
		return fallback
	}
	c.bad = true
	return fallback
}

// sizes returns the numbers of a list of ints.
func (c *call) sizes(v Value) []Size {
	list, ok := v.(List)
	if !ok {
		c.bad = true
		return nil
	}
	out := make([]Size, len(list))
	for i, item := range list {
		n, ok := item.(Int)
		if !ok {
			c.bad = true
			return nil
		}
		out[i] = n.Size
	}
	return out
}

// ints returns the numbers of a list of constant ints.
func (c *call) ints(v Value) []int {
	sizes := c.sizes(v)
	out := make([]int, len(sizes))
	for i, s := range sizes {
		out[i] = c.constant(s)
	}
	return out
}

// variadic returns the ints from position i on. They may be passed one by one, as one list, or by name: x.permute(1,
// 0), x.permute((1, 0)).
func (c *call) variadic(i int, name string) []Size {
	if len(c.args) <= i {
		return c.sizes(c.at(i, name))
	}
	if list, ok := c.args[i].(List); ok {
		c.only(i + 1)
		return c.sizes(list)
	}
	return c.sizes(List(c.args[i:]))
}

// ignore reads operands that have no effect on the result.
func (c *call) ignore(names ...string) {
	for _, name := range names {
		c.at(-1, name)
	}
}

// pair returns one number for each of n dimensions, from an int or a list of 1 or n ints. It uses `fallback` if v is
// absent.
func (c *call) pair(v Value, n, fallback int) []int {
	out := make([]int, n)
	var given []int
	switch v := v.(type) {
	case nil:
		given = []int{fallback}
	case Int:
		given = []int{c.constant(v.Size)}
	default:
		given = c.ints(v)
	}
	if len(given) != n && len(given) != 1 {
		c.bad = true
		return out
	}
	for i := range out {
		out[i] = given[i%len(given)]
	}
	return out
}

// pairSizes returns one size for each of n dimensions, from an int or a list of 1 or n ints.
func (c *call) pairSizes(v Value, n int) []Size {
	given := []Size{}
	if i, ok := v.(Int); ok {
		given = append(given, i.Size)
	} else {
		given = c.sizes(v)
	}
	out := make([]Size, n)
	if len(given) != n && len(given) != 1 {
		c.bad = true
		return out
	}
	for i := range out {
		out[i] = given[i%len(given)]
	}
	return out
}

// dim converts a dimension index, which may be negative, to a non-negative one. n is the number of dimensions; 0
// counts as 1.
func (c *call) dim(d, n int) int {
	m := max(n, 1)
	if d < -m || d >= m {
		c.bad = true
		return 0
	}
	if d < 0 {
		d += m
	}
	return d
}

func (t *Tensor) with(shape []Size) *Tensor { return &Tensor{shape, t.Dtype, t.Device} }

func (t *Tensor) as(d Dtype) *Tensor { return &Tensor{t.Shape, d, t.Device} }

// size returns the size of a dimension, or 1 for a tensor without dimensions.
func (t *Tensor) size(d int) Size {
	if len(t.Shape) == 0 {
		return one
	}
	return t.Shape[d]
}

// without returns the sizes except that of dimension d.
func (t *Tensor) without(d int) []Size {
	return append(append([]Size{}, t.Shape[:d]...), t.Shape[d+1:]...)
}

// replaced returns the shape with another size for dimension d.
func (t *Tensor) replaced(d int, size Size) []Size {
	out := append([]Size(nil), t.Shape...)
	if len(out) > 0 {
		out[d] = size
	}
	return out
}
