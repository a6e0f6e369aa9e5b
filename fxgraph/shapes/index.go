package shapes

// getitem is the rule of x[index] for a tensor x and ints, slices, None, Ellipsis, and adjacent tensors or lists of
// integers. It also selects an item from a list of results.
func getitem(c *call) Value {
	c.only(2)
	if list, ok := c.at(0, "").(List); ok {
		i, ok := c.at(1, "").(Int)
		if !ok || int(i) >= len(list) || int(i) < -len(list) {
			return c.fail()
		}
		return list[(int(i)+len(list))%len(list)]
	}
	t := c.tensor(0, "")
	index, ok := c.at(1, "").(List)
	if !ok {
		index = List{c.at(1, "")}
	}
	takes, ellipses, tensors, last := 0, 0, [][]int(nil), 0
	index = append(List(nil), index...)
	for i, v := range index {
		if list, ok := v.(List); ok {
			shape, d, ok := nested(list, "")
			if !ok || d != torchInt64 {
				return c.fail()
			}
			v = &Tensor{shape, d, t.Device}
			index[i] = v
		}
		switch v := v.(type) {
		case Int, Slice:
			takes++
		case *Tensor:
			if kinds[v.Dtype] != intKind || v.Dtype == torchUint8 || len(v.Shape) == 0 || v.Device != t.Device {
				return c.fail() // a mask, or a number as an index: it is not distinguished from an int here
			}
			if tensors != nil && last != i-1 { // the dimensions in between would move to the end
				return c.fail()
			}
			takes++
			tensors, last = append(tensors, v.Shape), i
		case Ellipsis:
			ellipses++
		case None:
		default:
			return c.fail()
		}
	}
	if c.bad || takes > len(t.Shape) || ellipses > 1 {
		return c.fail()
	}
	out, at := []int{}, 0
	for _, v := range index {
		switch v := v.(type) {
		case None:
			out = append(out, 1)
		case Ellipsis:
			n := len(t.Shape) - takes
			out = append(out, t.Shape[at:at+n]...)
			at += n
		case Int:
			if s := t.Shape[at]; int(v) >= s || int(v) < -s {
				return c.fail()
			}
			at++
		case Slice:
			out = append(out, c.sliced(v, t.Shape[at]))
			at++
		case *Tensor:
			if tensors != nil { // all index tensors go where the first is
				out, tensors = append(out, c.broadcast(tensors...)...), nil
			}
			at++
		}
	}
	return t.with(append(out, t.Shape[at:]...))
}

// sliced returns the number of elements that a slice selects from a dimension.
func (c *call) sliced(s Slice, size int) int {
	bound := func(v Value, otherwise int) int {
		n := otherwise
		switch v := v.(type) {
		case None:
		case Int:
			n = int(v)
		default:
			c.bad = true
		}
		if n < 0 {
			n += size
		}
		return min(max(n, 0), size)
	}
	start, stop, step := bound(s.Start, 0), bound(s.Stop, size), 1
	switch v := s.Step.(type) {
	case None:
	case Int:
		step = int(v)
	default:
		c.bad = true
	}
	if step <= 0 {
		c.bad = true
		return 0
	}
	return max(0, (stop-start+step-1)/step)
}

// gather yields a tensor with the index's shape.
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

// indexSelect selects along one dimension by a vector of indices.
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
	d, i := c.dim(c.integer(1, "dim", 0), len(t.Shape)), c.integer(2, "index", 0)
	if c.bad || len(t.Shape) == 0 || i >= t.Shape[d] || i < -t.Shape[d] {
		return c.fail()
	}
	return t.with(append(append([]int{}, t.Shape[:d]...), t.Shape[d+1:]...))
}
