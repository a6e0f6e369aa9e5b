package translate

import (
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// A graph that the backend compiles has plain tensors only. An input of a subclass is passed as a torch.Tensor. If the
// user's code must see a result as an instance of the subclass, the result is converted after the graph. So no backend
// sees the subclass or calls its `__torch_function__`.

// OfClass implements variables.Output.
func (o *OutputGraph) OfClass(node *fxgraph.Node, class py.Object) {
	if o.backend.Inline() {
		return
	}
	if o.classOf == nil {
		o.classOf = map[*fxgraph.Node]py.Object{}
	}
	o.classOf[node] = class
	o.Const(class)
}

// plainInput loads a subclass input as a plain tensor. It also keeps that tensor in a temp, by which wrapOutputs
// recognizes the tensor among the results.
func (c *Codegen) plainInput(n *fxgraph.Node, in *variables.TensorVariable) error {
	c.PushNull()
	c.LoadConst(c.out.world.PlainTensorFunction())
	if err := c.loadSource(in.Source()); err != nil {
		return err
	}
	c.Call(1, nil)
	c.Copy(1)
	c.emit(opcode.STORE_FAST, spaceTemp|c.tempOfNode(n))
	return nil
}

// wrapOutputs converts results of the graph to their subclasses. If a result is the plain tensor of an input,
// wrapOutputs replaces it by the input itself. If a result is Tensor.data of an input, it is read again from the
// input.
func (c *Codegen) wrapOutputs(outputs []*fxgraph.Node) error {
	o := c.out
	var inputs []*fxgraph.Node
	for _, n := range o.graph.Nodes() {
		if in, ok := o.inputOf[n]; ok && !in.Real.IsNull() {
			inputs = append(inputs, n)
		}
	}
	var results, items []*fxgraph.Node
	wrapped := map[*fxgraph.Node]bool{}
	for _, n := range outputs {
		// The user's Tensor.data has its own version counter. The view that AOTAutograd returns would share the
		// tensor's counter.
		if in := o.dataOf(n); in != nil && o.TakesApart() {
			if err := c.loadSource(in.Source()); err != nil {
				return err
			}
			c.LoadAttr("data")
			c.emit(opcode.STORE_FAST, spaceTemp|c.tempOfNode(n))
			continue
		}
		_, wrapped[n] = o.classOf[n]
		from, isNode := firstNode(n)
		switch {
		case wrapped[n] && isNode && n.Item && wrapped[from]: // an item of a wrapped sequence
			items = append(items, n)
		case wrapped[n] || len(inputs) > 0 && !o.world.GivesNew(o.scope, n.Target.Text):
			results = append(results, n)
		}
	}
	if len(results) > 0 {
		if err := c.wrapResults(results, inputs); err != nil {
			return err
		}
	}
	for _, n := range items {
		from, _ := firstNode(n)
		if err := c.runItem(n, from); err != nil {
			return err
		}
	}
	return nil
}

// wrapResults converts all results in one call, since two results may be one tensor.
func (c *Codegen) wrapResults(results, inputs []*fxgraph.Node) error {
	temps := func(nodes []*fxgraph.Node) {
		for _, n := range nodes {
			c.emit(opcode.LOAD_FAST, spaceTemp|c.tempOfNode(n))
		}
		c.BuildTuple(len(nodes))
	}
	c.PushNull()
	c.LoadConst(c.out.world.WrapResults())
	temps(results)
	for _, n := range results {
		class, ok := c.out.classOf[n]
		if !ok {
			class = py.None()
		}
		c.LoadConst(class)
	}
	c.BuildTuple(len(results))
	temps(inputs)
	for _, in := range inputs {
		if err := c.loadSource(c.out.inputOf[in].Source()); err != nil {
			return err
		}
	}
	c.BuildTuple(len(inputs))
	c.Call(4, nil)
	c.UnpackSequence(len(results))
	for _, n := range results {
		c.emit(opcode.STORE_FAST, spaceTemp|c.tempOfNode(n))
	}
	return nil
}

func firstNode(n *fxgraph.Node) (*fxgraph.Node, bool) {
	if len(n.Args) == 0 {
		return nil, false
	}
	from, ok := n.Args[0].(*fxgraph.Node)
	return from, ok
}

// runItem reads an item of a sequence of results again, once the sequence is wrapped.
func (c *Codegen) runItem(n, from *fxgraph.Node) error {
	read := n.Target.Text == "builtins.getattr"
	if read {
		c.PushNull()
		c.LoadConst(c.out.world.GetAttrBuiltin)
	}
	c.emit(opcode.LOAD_FAST, spaceTemp|c.tempOfNode(from))
	if err := c.LoadArg(n.Args[1]); err != nil {
		return err
	}
	if read {
		c.Call(2, nil)
	} else {
		c.Subscript()
	}
	c.emit(opcode.STORE_FAST, spaceTemp|c.tempOfNode(n))
	return nil
}
