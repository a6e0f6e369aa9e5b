package translate

import (
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/pyhook/py"
)

// An operation without a shape rule, such as a custom operator, runs on FakeTensors with the sizes of this call. These
// sizes thereby become constants. If sizes of the frame's tensors have changed between calls, the operation first runs
// on torch's symbolic shapes (_translator/open_sizes.py). If the operation's own function for fake tensors needs no
// condition on sizes, the result's rank and dtype are the same for all sizes. A result size that is no operand's size
// is an open size: it is read at run time.

// tensorSizes returns a node's sizes by the rules or, for an operation without a rule, open sizes.
func (o *OutputGraph) tensorSizes(n *fxgraph.Node) (*shapes.Tensor, bool) {
	v, ok := o.openValue(n).(*shapes.Tensor)
	return v, ok
}

// openValue is byRule, with open sizes for the operations without a rule.
func (o *OutputGraph) openValue(n *fxgraph.Node) shapes.Value {
	v := o.byRule(n)
	if _, unknown := v.(shapes.Unknown); !unknown && v != nil || !o.mayOpen() {
		return v
	}
	for _, earlier := range o.graph.Nodes()[:n.Index+1] {
		if !o.open(earlier) {
			return shapes.Unknown{}
		}
	}
	return o.sizes.values[n]
}

// mayOpen reports whether open sizes are worth their cost, which is some milliseconds an operation.
func (o *OutputGraph) mayOpen() bool {
	if o.sizes.off || o.sizes.autocast != nil || !o.sizes.context.Fresh {
		return false
	}
	for _, in := range o.inputs {
		if o.symbolic(in) && o.frame.Varied.Dims[in.Source().Name()] != 0 {
			return true
		}
	}
	return false
}

// open finds the sizes of a node's result, if they are unknown. It returns false if the rules no longer apply.
func (o *OutputGraph) open(n *fxgraph.Node) bool {
	s := o.sizes
	if _, unknown := s.values[n].(shapes.Unknown); !unknown || n.State || n.Inplace || n.RunsOnce() || s.asked[n] {
		return !s.off
	}
	if n.Op != fxgraph.CallFunction && n.Op != fxgraph.CallMethod {
		return true
	}
	v := o.follow(n)
	if _, unknown := v.(shapes.Unknown); unknown {
		if s.asked == nil {
			s.asked = map[*fxgraph.Node]bool{}
		}
		s.asked[n] = true
		v = o.fromTorch(n)
		o.adoptSymbols(n, v)
	}
	s.values[n] = v
	return !s.off
}

// openCall converts a node's operands for _translator/open_sizes.py.
type openCall struct {
	out             *OutputGraph
	symbol, operand py.Object // the classes Symbol and Operand
	sizes           []sym.Size
	hints           []py.Object
	bad             bool
}

// fromTorch computes the result of a node with torch's symbolic shapes. It returns Unknown if torch has no result.
func (o *OutputGraph) fromTorch(n *fxgraph.Node) shapes.Value {
	s := o.scope
	m, ok := py.Answered(s.Import("godynamo._translator.open_sizes"))
	if !ok {
		return shapes.Unknown{}
	}
	c := &openCall{out: o}
	c.symbol, _ = py.Answered(s.GetAttr(m, "Symbol"))
	c.operand, _ = py.Answered(s.GetAttr(m, "Operand"))
	args := c.all(n.Args)
	var pairs [][2]py.Object
	for _, kw := range n.Kwargs {
		pairs = append(pairs, [2]py.Object{s.Name(kw.Name), c.value(kw.Value)})
	}
	if c.bad || len(c.sizes) == 0 {
		return shapes.Unknown{}
	}
	kwargs, ok := py.Answered(s.Dict(pairs...))
	if !ok {
		return shapes.Unknown{}
	}
	target := s.Name(n.Target.Text)
	if n.Op == fxgraph.CallFunction {
		target = o.pool[n.Target.Pool]
	}
	v, ok := py.Answered(s.CallMethod(m, "result", s.Name(n.Op.String()), target, s.Tuple(args...), kwargs,
		s.Tuple(c.hints...)))
	if !ok || v.Kind() != py.Tuple {
		return shapes.Unknown{}
	}
	return c.result(v)
}

func (c *openCall) all(items []fxgraph.Arg) []py.Object {
	out := make([]py.Object, len(items))
	for i, it := range items {
		out[i] = c.value(it)
	}
	return out
}

// value converts an operand. It sets bad for operands whose sizes or values are unknown.
func (c *openCall) value(a fxgraph.Arg) py.Object {
	o, s := c.out, c.out.scope
	switch x := a.(type) {
	case fxgraph.Lit:
		if x.Pool >= 0 {
			return o.pool[x.Pool]
		}
	case fxgraph.List:
		return s.List(c.all(x.Items)...)
	case fxgraph.Tuple:
		return s.Tuple(c.all(x.Items)...)
	case *fxgraph.Node:
		switch v := o.sizes.values[x].(type) {
		case *shapes.Tensor:
			return c.tensor(v)
		case shapes.Int:
			return c.size(v.Size)
		}
	}
	c.bad = true
	return py.None()
}

func (c *openCall) tensor(t *shapes.Tensor) py.Object {
	o, s := c.out, c.out.scope
	sizes := make([]py.Object, len(t.Shape))
	for i, d := range t.Shape {
		sizes[i] = c.size(d)
	}
	dtype, ok := o.sizes.dtype(s, t.Dtype)
	device, known := o.sizes.devices[t.Device]
	if !ok || !known {
		c.bad = true
		return py.None()
	}
	v, ok := py.Answered(s.Call(c.operand, s.Tuple(sizes...), dtype, device))
	c.bad = c.bad || !ok
	return v
}

// size converts a size: a constant, or a symbol for each expression.
func (c *openCall) size(d sym.Size) py.Object {
	s, env := c.out.scope, c.out.world.Env()
	d = env.Simplify(d)
	if n, ok := d.Const(); ok {
		return s.Int(n)
	}
	number := -1
	for i, known := range c.sizes {
		if known == d {
			number = i
		}
	}
	if number < 0 {
		hint, ok := env.Hint(d)
		if !ok {
			c.bad = true
			return py.None()
		}
		number = len(c.sizes)
		c.sizes, c.hints = append(c.sizes, d), append(c.hints, s.Int(hint))
	}
	v, ok := py.Answered(s.Call(c.symbol, s.Int(int64(number))))
	c.bad = c.bad || !ok
	return v
}

// result converts the answer.
func (c *openCall) result(v py.Object) shapes.Value {
	items := c.out.scope.Items(v)
	if len(items) == 3 {
		return c.made(items)
	}
	if len(items) != 1 {
		return shapes.Unknown{}
	}
	var out shapes.List
	for _, it := range c.out.scope.Items(items[0]) {
		t := c.made(c.out.scope.Items(it))
		if _, ok := t.(*shapes.Tensor); !ok {
			return t
		}
		out = append(out, t)
	}
	return out
}

func (c *openCall) made(items []py.Object) shapes.Value {
	o, s := c.out, c.out.scope
	sizes := s.Items(items[0])
	t := &shapes.Tensor{Shape: make([]sym.Size, len(sizes))}
	for i, d := range sizes {
		if n, ok := py.AsInt(d); ok && d.Kind() == py.Int {
			t.Shape[i] = sym.Const(n)
			continue
		}
		if d.Kind() == py.NoneKind {
			t.Shape[i] = shapes.Fresh(o.sizes.context)
			continue
		}
		number, ok := py.Answered(s.GetAttr(d, "number"))
		if !ok {
			return shapes.Unknown{}
		}
		n, _ := py.AsInt(number)
		t.Shape[i] = c.sizes[n]
	}
	t.Dtype = o.sizes.dtypeName(s, items[1])
	device, ok := o.sizes.constant(s, items[2]).(shapes.Device)
	if !ok || !t.Dtype.Known() || strings.HasPrefix(string(device), "meta") {
		return shapes.Unknown{}
	}
	t.Device = device
	return t
}
