package shapes

import "github.com/godynamo/godynamo/fxgraph/sym"

// getitem is the rule of x[index]. The parts of the index may be ints, slices, None, Ellipsis, and either one mask or
// adjacent tensors or lists of integers. getitem also selects an item from a list of results.
func getitem(c *call) Value {
	c.only(2)
	if list, ok := c.at(0, "").(List); ok {
		i, ok := c.at(1, "").(Int)
		if !ok {
			return c.fail()
		}
		at := c.constant(i.Size)
		if c.bad || at >= len(list) || at < -len(list) {
			return c.fail()
		}
		return list[(at+len(list))%len(list)]
	}
	t := c.tensor(0, "")
	index, ok := c.at(1, "").(List)
	if !ok {
		index = List{c.at(1, "")}
	}
	index, takes, tensors, masked := c.subscript(t, index)
	if c.bad || takes > len(t.Shape) {
		return c.fail()
	}
	out, at := []Size{}, 0
	for _, v := range index {
		switch v := v.(type) {
		case None:
			out = append(out, one)
		case Ellipsis:
			n := len(t.Shape) - takes
			out = append(out, t.Shape[at:at+n]...)
			at += n
		case Int:
			// A number known only at run time is out of range if the operation raises. There is no result then.
			if _, known := c.Env.Hint(v.Size); known {
				if s := t.Shape[at]; !c.lt(v.Size, s) || !c.notNegative(c.Env.Add(v.Size, s)) {
					return c.fail()
				}
			}
			at++
		case Slice:
			out = append(out, c.sliced(v, t.Shape[at]))
			at++
		case *Tensor:
			if masked {
				n := len(v.Shape)
				if !c.equal(v.Shape, t.Shape[at:at+n]) {
					return c.fail()
				}
				out = append(out, c.trues(v))
				at += n
				continue
			}
			if tensors != nil { // the dimensions of all index tensors go where the first one is
				out, tensors = append(out, c.broadcast(tensors...)...), nil
			}
			at++
		}
	}
	return t.with(append(out, t.Shape[at:]...))
}

// subscript analyzes the parts of a subscript of t. It returns the parts with lists converted to tensors, the number of
// dimensions that they take, the shapes of the index tensors, and whether one part is a mask. It sets bad for a part
// that getitem does not support.
func (c *call) subscript(t *Tensor, parts List) (index List, takes int, tensors [][]Size, masked bool) {
	ellipses, last := 0, 0
	index = append(List(nil), parts...)
	for i, v := range index {
		if list, ok := v.(List); ok {
			shape, d, ok := nested(list, "")
			c.bad = c.bad || !ok || d != torchInt64
			v = &Tensor{shape, d, t.Device}
			index[i] = v
		}
		switch v := v.(type) {
		case Int, Slice:
			takes++
		case *Tensor:
			if v.Dtype == torchBool && len(v.Shape) > 0 && v.Device == t.Device && !masked && tensors == nil {
				masked = true
				takes += len(v.Shape)
				continue
			}
			// Not supported: a second mask, a tensor that does not hold indices, and a tensor without dimensions, which
			// torch treats as an int.
			unknown := masked || kinds[v.Dtype] != intKind || v.Dtype == torchUint8 || len(v.Shape) == 0
			// If index tensors are not adjacent, torch moves their dimensions to the front. This is not supported.
			apart := tensors != nil && last != i-1
			c.bad = c.bad || unknown || apart || v.Device != t.Device
			takes++
			tensors, last = append(tensors, v.Shape), i
		case Ellipsis:
			ellipses++
		case None:
		default:
			c.bad = true
		}
	}
	c.bad = c.bad || ellipses > 1
	return index, takes, tensors, masked
}

// sliced returns the number of elements that a slice selects from a dimension.
func (c *call) sliced(s Slice, size Size) Size {
	bound := func(v Value, fallback Size) Size {
		n := fallback
		switch v := v.(type) {
		case None:
			return n
		case Int:
			n = v.Size
		default:
			c.bad = true
		}
		if !c.notNegative(n) {
			n = c.Env.Add(n, size)
		}
		switch {
		case !c.notNegative(n):
			return Size{}
		case c.gt(n, size):
			return size
		}
		return n
	}
	start, stop, step := bound(s.Start, Size{}), bound(s.Stop, size), 1
	switch v := s.Step.(type) {
	case None:
	case Int:
		step = c.constant(v.Size)
	default:
		c.bad = true
	}
	if step <= 0 {
		c.bad = true
		return Size{}
	}
	n := c.Env.Sub(stop, start)
	if !c.notNegative(n) {
		return Size{}
	}
	return c.quotient(c.add(n, step-1), sym.Const(int64(step)))
}

// gather is the rule of torch.gather. The result has the shape of the index.
func gather(c *call) Value {
	c.only(3)
	t, index := c.tensor(0, "input"), c.tensor(2, "index")
	c.integer(1, "dim", 0)
	c.ignore("sparse_grad")
	c.oneDevice(t, index)
	if len(t.Shape) != len(index.Shape) {
		return c.fail()
	}
	return t.with(index.Shape)
}

// indexSelect is the rule of torch.index_select, which selects along one dimension by a vector of indices.
func indexSelect(c *call) Value {
	c.only(3)
	t, index := c.tensor(0, "input"), c.tensor(2, "index")
	d := c.dim(c.integer(1, "dim", 0), len(t.Shape))
	c.oneDevice(t, index)
	if c.bad || len(index.Shape) != 1 || len(t.Shape) == 0 {
		return c.fail()
	}
	return t.with(t.replaced(d, index.Shape[0]))
}

// sel is the rule of x.select(dim, index).
func sel(c *call) Value {
	c.only(3)
	t := c.tensor(0, "input")
	d, i := c.dim(c.integer(1, "dim", 0), len(t.Shape)), c.size(2, "index", 0)
	if c.bad || len(t.Shape) == 0 || !c.lt(i, t.Shape[d]) || !c.notNegative(c.Env.Add(i, t.Shape[d])) {
		return c.fail()
	}
	return t.with(t.without(d))
}
