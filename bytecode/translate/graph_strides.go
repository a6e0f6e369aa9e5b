package translate

import (
	"math"
	"slices"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// The strides of an input are expressions over its sizes where they can be, and constants otherwise. A guard compares
// each with the stride of the tensor that is passed. So x.stride(0) of a contiguous matrix is the number of its
// columns, in any call, and x.is_contiguous() does not depend on the sizes.

// The strides of a computed tensor are asked of torch (python/godynamo/_translator/layouts.py), once sizes have
// differed between calls. Before that, and where torch has no answer for all sizes, the sizes are constants.

// maxLayoutNodes bounds the nodes that a translation runs to learn the strides of computed tensors. Each takes about a
// millisecond.
const maxLayoutNodes = 400

// Layout implements variables.Output.
func (o *OutputGraph) Layout(t *variables.TensorVariable) (sizes, strides []sym.Size, ok bool, err error) {
	if o.world.Calls > 0 || o.bodies > 0 {
		return nil, nil, false, nil
	}
	o.byRule(t.Node)
	if t.Example.IsNull() || t.Changed {
		return o.computedLayout(t.Node)
	}
	if !o.symbolic(t) {
		return nil, nil, false, nil
	}
	if _, plain := o.inputSizes(t).(*shapes.Tensor); !plain {
		return nil, nil, false, nil
	}
	if sizes, strides, err = o.inputLayout(t); err != nil {
		return nil, nil, false, err
	}
	o.world.Asked.Sizes++
	o.tensorArgs[t].Fields |= fieldRank | fieldStride
	return sizes, strides, true, nil
}

// computedLayout returns the sizes and strides of a node's result for all sizes of the inputs. ok is false if torch
// does not know them.
func (o *OutputGraph) computedLayout(n *fxgraph.Node) (sizes, strides []sym.Size, ok bool, err error) {
	nodes := slices.DeleteFunc(o.needed(n), func(m *fxgraph.Node) bool { return m.Index > n.Index })
	if !o.mayOpen() || o.sizes.layoutNodes+len(nodes) > maxLayoutNodes {
		return nil, nil, false, nil
	}
	o.sizes.layoutNodes += len(nodes)
	rows, ok, err := o.layoutInputs(nodes)
	if !ok || err != nil {
		return nil, nil, false, err
	}
	o.world.Asked.Meta++
	if answer, known := py.Answered(o.askLayout(nodes, rows)); known && answer.Kind() == py.Tuple {
		sizes, strides, ok = o.layoutOfAnswer(o.scope.Items(answer))
	} else {
		ok = false
	}
	return sizes, strides, ok, nil
}

// askLayout returns the answer of layouts.Session for the last of the nodes.
func (o *OutputGraph) askLayout(nodes []*fxgraph.Node, rows map[*fxgraph.Node][2]py.Object) (py.Object, error) {
	s := o.scope
	m, err := s.Import("godynamo._translator.layouts")
	if err != nil {
		return py.Object{}, err
	}
	symbols, rounded, conditions := o.describeSymbols()
	session, err := s.CallMethod(m, "Session", symbols, rounded, conditions)
	if err != nil {
		return py.Object{}, err
	}
	if !o.state.entry.IsNull() {
		if _, err := s.CallMethod(session, "set_state", o.state.entry); err != nil {
			return py.Object{}, err
		}
	}
	var index py.Object
	for _, n := range nodes {
		index = s.Int(int64(n.Index))
		if row, is := rows[n]; is {
			if _, err := s.CallMethod(session, "described", index, row[0], row[1]); err != nil {
				return py.Object{}, err
			}
			continue
		}
		row, err := NodeRow(s, n, o.pool, o.refClass())
		if err != nil {
			return py.Object{}, err
		}
		if _, err := s.CallMethod(session, "run", index, row); err != nil {
			return py.Object{}, err
		}
	}
	return s.CallMethod(session, "layout", index)
}

// layoutInputs returns the description of each input among the nodes and its example. The strides of all of them become
// guards. ok is false if an input is a number known only at run time.
func (o *OutputGraph) layoutInputs(nodes []*fxgraph.Node) (rows map[*fxgraph.Node][2]py.Object, ok bool, err error) {
	rows = map[*fxgraph.Node][2]py.Object{}
	for _, n := range nodes {
		if n.Op != fxgraph.Placeholder {
			continue
		}
		in := o.inputOf[n]
		switch v := o.symbols.values[n]; {
		case v != nil:
			e, writable := o.describeInput(o.world.Env().Simplify(v.Size))
			if _, hinted := o.world.Env().Hint(v.Size); !writable || !hinted {
				return nil, false, nil
			}
			rows[n] = [2]py.Object{e, py.None()}
		case in == nil:
			return nil, false, nil
		case o.symbolic(in):
			sizes, strides, err := o.layoutOf(in)
			if err != nil {
				return nil, false, err
			}
			o.tensorArgs[in].Fields |= fieldAll &^ fieldSizes
			rows[n] = [2]py.Object{o.scope.Tuple(o.scope.Tuple(sizes...), o.scope.Tuple(strides...)), in.Example}
		default:
			o.need(in, o.tensorArgs[in], fieldAll)
			rows[n] = [2]py.Object{py.None(), in.Example}
		}
	}
	return rows, true, nil
}

// layoutOfAnswer reads the answer of layouts.Session: sizes, strides, and the conditions under which they hold, which
// become guards.
func (o *OutputGraph) layoutOfAnswer(parts []py.Object) (sizes, strides []sym.Size, ok bool) {
	read := func(list py.Object) []sym.Size {
		var out []sym.Size
		for _, e := range o.scope.Items(list) {
			size, known := o.sizeOf(e)
			if !known {
				return nil
			}
			out = append(out, size)
		}
		return out
	}
	sizes, strides = read(parts[0]), read(parts[1])
	if len(sizes) == 0 || len(strides) != len(sizes) {
		return nil, nil, false
	}
	for _, row := range o.scope.Items(parts[2]) {
		if c, known := o.conditionOf(o.scope.Items(row)); !known || !o.holds(c) {
			return nil, nil, false
		}
	}
	return sizes, strides, true
}

// StrideAtRunTime implements variables.Output. Compilers trace with fake tensors, which would answer for eager mode.
func (o *OutputGraph) StrideAtRunTime(t *variables.TensorVariable, dim int) *variables.SymNodeVariable {
	if o.forCompiler() || o.sizes.off || o.bodies > 0 || o.isErased(t.Node) || !o.runsOperators() {
		return nil
	}
	c := o.Const(o.scope.Int(int64(dim)))
	args := []fxgraph.Arg{t.Node, fxgraph.Lit{Pool: c.Index, Text: c.Text}}
	return o.AtRunTime(o.added(o.graph.CallMethod("stride", args, nil)), nil, 0, math.MaxInt64)
}

// inputLayout returns the sizes and strides of an input. A stride that cannot be computed from the sizes is a constant.
// All strides become guards.
func (o *OutputGraph) inputLayout(in *variables.TensorVariable) (sizes, strides []sym.Size, err error) {
	m, err := o.readMeta(in.Example)
	if err != nil {
		return nil, nil, err
	}
	env, args := o.world.Env(), o.tensorArgs[in]
	known, err := o.shapeOf(in, m.Shape)
	if err != nil {
		return nil, nil, err
	}
	sizes = slices.Clone(known)
	for i, size := range sizes {
		sizes[i] = env.Simplify(size)
	}
	if args.Fields&fieldStride == 0 {
		args.StaticStrides = 0 // no guard compares strides yet
	}
	strides = stridesBySizes(env, sizes, m)
	for i, stride := range strides {
		strides[i] = env.Simplify(stride)
		if _, constant := strides[i].Const(); constant {
			args.StaticStrides |= 1 << i
			continue
		}
		src := guards.NewTensorPropertySource(in.Source(), guards.TensorStride, i)
		o.AddGuards(guards.ShapeEnv(&guards.SizeCond{Rel: guards.SizeEQ, Right: o.sizeProgram(strides[i]),
			Left: []guards.SizeInst{{Op: guards.SizeLoad, Src: src, Hint: int64(m.Stride[i])}}}).At(o.userLine()))
	}
	return sizes, strides, nil
}

// stridesBySizes returns the strides of a tensor. A stride that equals the size times the stride of another dimension
// is returned as that product. The next dimension is preferred.
func stridesBySizes(env *sym.Env, shape []sym.Size, m *variables.TensorMeta) []sym.Size {
	out, order := make([]sym.Size, len(shape)), make([]int, len(shape))
	for i := range order {
		order[i] = len(shape) - 1 - i
	}
	slices.SortStableFunc(order, func(a, b int) int { return m.Stride[a] - m.Stride[b] })
	for k, i := range order {
		out[i] = sym.Const(int64(m.Stride[i]))
		for _, j := range slices.Backward(order[:k]) {
			product := env.Mul(out[j], shape[j])
			if n, ok := env.Hint(product); ok && n == int64(m.Stride[i]) {
				out[i] = product
				break
			}
		}
	}
	return out
}
