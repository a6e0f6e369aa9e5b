package translate

import (
	"strings"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// Some changes that operations make can be undone: changes to the state of torch's random generators, to the values of
// small tensors that came with the frame (usually batch norm's statistics), and stores to `data`, which give a tensor
// other memory. The old state is saved before such an operation if the piece (the code between two graph breaks) may
// run again after it. This is so if an operation is inside `try` or `with`, or if an effect precedes an operation of a
// whole graph.

// normalizations lists operations that change running statistics in training. Each function reports whether a node
// runs in training mode.
var normalizations = map[string]func(n *fxgraph.Node) bool{
	"batch_norm": set(5, "training", false), "instance_norm": set(5, "use_input_stats", false),
	"native_batch_norm": set(5, "training", false), "cudnn_batch_norm": set(5, "training", false),
	"miopen_batch_norm": set(5, "training", false), "_native_batch_norm_legit": set(5, "training", false),
}

// changesStatistics reports whether a node is a normalization that runs in training mode and keeps running
// statistics.
func changesStatistics(n *fxgraph.Node) bool {
	on, ok := normalizations[shortName(n)]
	return ok && on(n) && len(statistics(n)) > 0
}

// shortName returns an operation's name: add_ for operator.add_, torch.ops.aten.add_ and torch.ops.aten.add_.Tensor.
func shortName(n *fxgraph.Node) string {
	if operator, ok := strings.CutPrefix(n.Target.Text, operators); ok {
		_, operator, _ = strings.Cut(operator, ".")
		name, _, _ := strings.Cut(operator, ".")
		return name
	}
	if method, ok := variables.Stores[n.Target.Text]; ok {
		return method
	}
	return n.Target.Text[strings.LastIndexByte(n.Target.Text, '.')+1:]
}

// operators is the prefix of the names of torch's operators and of custom ones.
const operators = "torch.ops."

// statistics returns the running statistics among a normalization's operands. They are consecutive operands. In
// torch.batch_norm they follow weight and bias; in torch.nn.functional.batch_norm they precede them.
func statistics(n *fxgraph.Node) (out []*fxgraph.Node) {
	add := func(a fxgraph.Arg) {
		if t, ok := a.(*fxgraph.Node); ok {
			out = append(out, t)
		}
	}
	first := 3
	if strings.Contains(n.Target.Text, "functional.") {
		first = 1
	}
	for i := first; i < first+2 && i < len(n.Args); i++ {
		add(n.Args[i])
	}
	for _, k := range n.Kwargs {
		if k.Name == "running_mean" || k.Name == "running_var" {
			add(k.Value)
		}
	}
	return out
}

// arithmetic lists in-place operations that change only the values of a tensor, provided that their other operands
// are numbers.
var arithmetic = map[string]bool{"add_": true, "sub_": true, "mul_": true, "div_": true, "zero_": true, "fill_": true,
	"iadd": true, "isub": true, "imul": true, "itruediv": true}

// changedInputs returns the tensors that an operation changes in place. ok is false unless all of them came with the
// frame and are cheap to copy.
func (o *OutputGraph) changedInputs(n *fxgraph.Node) (changed []*fxgraph.Node, ok bool) {
	if changesStatistics(n) {
		changed = statistics(n)
	} else if out := o.outOfTorch(n); out != nil {
		changed = []*fxgraph.Node{out}
	} else {
		t, known := changedBy(n)
		if !known || strings.HasPrefix(n.Target.Text, "^") || !arithmetic[shortName(n)] || hasOut(n) ||
			o.tensorOperands(n) != 1 {
			return nil, false
		}
		changed = []*fxgraph.Node{t}
	}
	for _, t := range changed {
		if !o.cheapToCopy(t) || storedBefore(t, n) {
			return nil, false
		}
	}
	return changed, true
}

// outOfTorch returns the operand out= of a function of torch, which changes no other operand. Autograd records no such
// operation. It returns nil if out= is missing or a tuple.
func (o *OutputGraph) outOfTorch(n *fxgraph.Node) *fxgraph.Node {
	if n.Opaque || !strings.HasPrefix(n.Target.Text, "torch.") || strings.HasPrefix(n.Target.Text, operators) {
		return nil
	}
	out, _ := outOf(n).(*fxgraph.Node)
	return out
}

// replacedInput returns the tensor of the frame that a node gives other memory or, by out=, perhaps other sizes. It
// returns nil if there is none.
func (o *OutputGraph) replacedInput(n *fxgraph.Node) *fxgraph.Node {
	t := o.outOfTorch(n)
	if n.Target.Text == variables.StoreOfData {
		t, _ = n.Args[0].(*fxgraph.Node)
	}
	if in, ok := o.inputOf[t]; !ok || !in.Real.IsNull() || in.Example.IsNull() {
		return nil
	}
	return t
}

// storedBefore reports whether a node before n stores to the `data` of the tensor t. Then n changes other memory than
// that which t had at the start.
func storedBefore(t, n *fxgraph.Node) bool {
	return t.HasUser(func(user *fxgraph.Node) bool {
		return user.Target.Text == variables.StoreOfData && user.Args[0] == fxgraph.Arg(t) && user.Index < n.Index
	})
}

func (o *OutputGraph) tensorOperands(n *fxgraph.Node) int {
	count := 0
	look := func(in *fxgraph.Node) {
		if !o.isNumber(in) {
			count++
		}
	}
	for _, a := range n.Args {
		fxgraph.EachNode(a, look)
	}
	for _, k := range n.Kwargs {
		fxgraph.EachNode(k.Value, look)
	}
	return count
}

// cheapToCopy reports whether a node is a tensor of the frame that is cheap to copy. It calls Python once for each
// tensor.
func (o *OutputGraph) cheapToCopy(n *fxgraph.Node) bool {
	cheap, asked := o.cheap[n]
	if asked {
		return cheap
	}
	in, ok := o.inputOf[n]
	if ok && in.Real.IsNull() && !in.Example.IsNull() {
		if m, ok := py.Answered(o.scope.Import("godynamo._called.copies")); ok {
			answer, ok := py.Answered(o.scope.CallMethod(m, "cheap_to_copy", in.Example))
			cheap = ok && answer == py.True()
		}
	}
	if o.cheap == nil {
		o.cheap = map[*fxgraph.Node]bool{}
	}
	o.cheap[n] = cheap
	return cheap
}

// isPutBack reports whether an operation has an effect that can be undone.
func (o *OutputGraph) isPutBack(e *event) bool {
	return e.node != nil && !e.node.State && (o.drawsBy(e.node) == draws || o.traceOf(e.node) == copied)
}

// stays reports whether an operation has an effect that is not undone before the piece runs again.
func (o *OutputGraph) stays(e *event) bool {
	return !e.putBack && (o.isPutBack(e) || o.eventTrace(e) != noTrace)
}

// eventTrace returns the trace of an operation, or noTrace if the event is not an operation.
func (o *OutputGraph) eventTrace(e *event) trace {
	if e.node == nil {
		return noTrace
	}
	return o.traceOf(e.node)
}

// putBackRegion is a range of instructions. State is saved before it, and restored if one of the instructions raises.
type putBackRegion struct {
	start, end            int
	saved                 bool
	random, tensors, data int // temps, or -1 if no such state is saved
	copies                py.Object
}

// changedState is the state that operations change and that can be restored: that of the random generators, values of
// tensors, and the memory of tensors.
type changedState struct {
	random        bool
	tensors, data []*fxgraph.Node
}

// saveState writes the calls that save the state.
func (c *Codegen) saveState(changed changedState) error {
	r := &c.putsBack
	r.random, r.tensors, r.data = -1, -1, -1
	tensors := changed.tensors
	if changed.random {
		fn, err := c.function("godynamo._called.torch_state", "random_state")
		if err != nil {
			return err
		}
		c.PushNull()
		c.LoadConst(fn)
		c.Call(0, nil)
		r.random = c.newTemp()
		c.emit(opcode.STORE_FAST, spaceTemp|r.random)
	}
	if len(tensors) > 0 {
		class, err := c.function("godynamo._called.copies", "Copies")
		if err != nil {
			return err
		}
		examples := make([]py.Object, len(tensors))
		for i, t := range tensors {
			in := c.out.inputOf[t]
			examples[i] = in.Example
			c.out.NeedField(in, fieldAll) // the next call may pass a tensor that is not cheap to copy
		}
		if r.copies, err = c.out.scope.Call(class, examples...); err != nil {
			return err
		}
		read, err := c.out.scope.GetAttr(r.copies, "read")
		if err != nil {
			return err
		}
		c.PushNull()
		c.LoadConst(read)
		for _, t := range tensors {
			c.loadNode(t)
		}
		c.Call(len(tensors), nil)
		r.tensors = c.newTemp()
		c.emit(opcode.STORE_FAST, spaceTemp|r.tensors)
	}
	if len(changed.data) > 0 {
		read, err := c.function("godynamo._called.copies", "read_data")
		if err != nil {
			return err
		}
		c.PushNull()
		c.LoadConst(read)
		for _, t := range changed.data {
			c.loadNode(t)
		}
		c.Call(len(changed.data), nil)
		r.data = c.newTemp()
		c.emit(opcode.STORE_FAST, spaceTemp|r.data)
	}
	r.start, r.saved = len(c.list), true
	return nil
}

// endState ends the region in which state is restored, and drops the copies of tensors and their old memory.
func (c *Codegen) endState() {
	c.putsBack.end = len(c.list)
	for _, temp := range []int{c.putsBack.tensors, c.putsBack.data} {
		if c.putsBack.saved && temp >= 0 {
			c.LoadConst(py.None())
			c.emit(opcode.STORE_FAST, spaceTemp|temp)
		}
	}
}

// saveStateOf writes code that saves all state that the operations of the events change. With an inline backend the
// last event is the last protected operation. If that operation raises, it has not changed a tensor yet, so the tensors
// that it changes are not saved.
func (c *Codegen) saveStateOf(events []*event) error {
	var state changedState
	seen := map[*fxgraph.Node]bool{}
	stored := map[*fxgraph.Node]bool{}
	for i, e := range events {
		if e.node == nil {
			continue
		}
		if c.out.drawsBy(e.node) == draws {
			state.random, e.putBack = true, true
		}
		if i == len(events)-1 && c.out.backend.Inline() || c.out.traceOf(e.node) != copied {
			continue
		}
		e.putBack = true
		if t := c.out.replacedInput(e.node); t != nil {
			if !stored[t] {
				stored[t] = true
				state.data = append(state.data, t)
			}
		}
		changed, _ := c.out.changedInputs(e.node)
		for _, t := range changed {
			if !seen[t] {
				seen[t] = true
				state.tensors = append(state.tensors, t)
			}
		}
	}
	if !state.random && len(state.tensors) == 0 && len(state.data) == 0 {
		return nil
	}
	return c.as(heldCalls, func() error { return c.saveState(state) })
}

func (c *Codegen) function(module, name string) (py.Object, error) {
	m, err := c.out.scope.Import(module)
	if err != nil {
		return py.Object{}, err
	}
	return c.out.scope.GetAttr(m, name)
}

// writeStateRestore writes, at the end of the code, the handler of the region c.putsBack. This handler also catches
// exceptions that the handlers which restore torch's modes reraise.
func (c *Codegen) writeStateRestore() error {
	r := &c.putsBack
	if !r.saved {
		return nil
	}
	region := &bytecode.ExceptionRegion{Lasti: true}
	c.enclose(c.list[r.start:r.end], region)
	put := func(fn py.Object, temp int) {
		_ = c.as(heldCalls, func() error {
			c.PushNull()
			c.LoadConst(fn)
			c.emit(opcode.LOAD_FAST, spaceTemp|temp)
			c.Call(1, nil)
			return nil
		})
		c.PopTop()
	}
	return c.arm(func(first *bytecode.Instruction) { region.Target = first }, func() error {
		if r.random >= 0 {
			fn, err := c.function("godynamo._called.torch_state", "put_random_state")
			if err != nil {
				return err
			}
			put(fn, r.random)
		}
		if r.data >= 0 { // before the values, which belong into the old memory
			fn, err := c.function("godynamo._called.copies", "put_data_back")
			if err != nil {
				return err
			}
			put(fn, r.data)
		}
		if r.tensors >= 0 {
			fn, err := c.out.scope.GetAttr(r.copies, "put_back")
			if err != nil {
				return err
			}
			put(fn, r.tensors)
		}
		c.emit(opcode.RERAISE, 1)
		return nil
	})
}

// enclose puts a region around instructions, and around the handlers of regions among them. Each of these handlers ends
// with RERAISE.
func (c *Codegen) enclose(list []*bytecode.Instruction, region *bytecode.ExceptionRegion) {
	handlers := map[*bytecode.Instruction]bool{}
	for _, in := range list {
		if in.Handler == nil {
			in.Handler = region
		} else if in.Handler != region {
			handlers[in.Handler.Target] = true
		}
	}
	open := false
	for _, in := range c.list {
		open = open || handlers[in]
		if open && in.Handler == nil {
			in.Handler = region
		}
		if in.Op == opcode.RERAISE {
			open = false
		}
	}
}
