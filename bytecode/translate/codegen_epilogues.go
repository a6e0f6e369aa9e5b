package translate

import (
	"strings"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/pyhook/py"
)

// An operation often makes a tensor only for the next one, which computes element by element: a product for its bias, a
// sum for its activation. That next operation becomes a call of an Epilogue, which computes it in the memory of the
// tensor if it is small (pyhook/core/calls/epilogue.h). The Epilogue decides at each call whether anything could tell.
// Here the translator finds the operations, and proves that the tensor is new and that nothing else reads it.

// epilogue replaces the code of step, the only one that loads the temp fresh.
type epilogue struct {
	step     *groupStep
	fresh    int
	externs  []*bytecode.Instruction // the loads of what is passed, the fresh tensor first
	operands []groupOperand
}

// writeEpilogues replaces operations by calls of Epilogues.
func (c *Codegen) writeEpilogues() {
	fresh := map[int]bool{} // temps with a new tensor
	var found []replacement
	var uses map[int]int
	var requiring map[*fxgraph.Node]bool
	for _, s := range c.spans {
		if s.start == s.end {
			continue
		}
		if len(fresh) > 0 {
			if e := c.epilogueOf(s, fresh); e != nil {
				if uses == nil {
					uses = c.tempUses()
				}
				if uses[e.fresh] == readsOf(e.step, e.fresh) {
					found = append(found, replacement{s.start, s.end, c.epilogueCall(e)})
				}
			}
		}
		if last := c.list[s.end-1]; last.Op == opcode.STORE_FAST && isTemp(last.Arg) && makesFresh(s.event.node) {
			if requiring == nil {
				requiring = c.out.requireGrad()
			}
			if !requiring[s.event.node] {
				fresh[last.Arg] = true
			}
		}
	}
	c.replace(found)
}

// readsOf returns how many operands of a step are the value of a temp.
func readsOf(step *groupStep, temp int) (n int) {
	for _, in := range step.loads {
		if in.Op == opcode.LOAD_FAST && in.Arg == temp {
			n++
		}
	}
	return n
}

// freshOperations are the names of operations, besides those with a kernel, whose result is always a new tensor in
// memory of its own.
var freshOperations = map[string]bool{
	"linear": true, "matmul": true, "mm": true, "bmm": true, "addmm": true, "baddbmm": true, "mv": true,
	"conv1d": true, "conv2d": true, "conv3d": true, "layer_norm": true, "batch_norm": true, "group_norm": true,
	"softmax": true, "sum": true, "mean": true, "sigmoid": true, "tanh": true, "exp": true, "log": true, "sin": true,
	"cos": true, "gelu": true, "silu": true, "softplus": true, "maximum": true, "minimum": true, "cat": true,
	"stack": true,
}

// freshOperators are the operators of Python whose result on tensors is a new one.
var freshOperators = map[string]bool{"add": true, "sub": true, "mul": true, "truediv": true, "matmul": true,
	"neg": true, "pow": true}

// makesFresh reports whether the result of n is a new tensor in memory of its own.
func makesFresh(n *fxgraph.Node) bool {
	if n == nil || n.Inplace || n.State || n.Opaque || n.RunsOnce() || hasOut(n) {
		return false
	}
	name := n.Target.Text
	if n.Op == fxgraph.CallFunction {
		for _, prefix := range []string{"torch._C._nn.", "torch.", "operator."} {
			if rest, ok := strings.CutPrefix(name, prefix); ok {
				name = rest
				break
			}
		}
		if name == n.Target.Text {
			return false
		}
		if strings.HasPrefix(n.Target.Text, "operator.") {
			return freshOperators[name]
		}
	} else if n.Op != fxgraph.CallMethod {
		return false
	}
	return freshOperations[name] || kernelMethods[name]
}

// epilogueStep returns the step that an event's code is, or nil if it computes no new tensor by a kernel.
func (c *Codegen) epilogueStep(s eventCode) *groupStep {
	n := s.event.node
	if n == nil || n.Inplace || hasOut(n) {
		return nil
	}
	step := c.groupStep(s)
	if step == nil {
		step = c.functionStep(s)
	}
	if step == nil || step.copies() || step.changes() {
		return nil
	}
	if step.operator && step.name != "neg" && !strings.Contains("+-*/", step.name) ||
		!step.operator && !kernelMethods[step.name] {
		return nil
	}
	return step
}

// functionStep returns the step that a call of torch.NAME is, or nil for other code.
func (c *Codegen) functionStep(s eventCode) *groupStep {
	n := s.event.node
	name, ok := strings.CutPrefix(n.Target.Text, "torch.")
	list := c.list[s.start:s.end]
	if !ok || !s.event.mayBeStep() || n.Op != fxgraph.CallFunction || !kernelMethods[name] || len(list) < 4 ||
		list[0].Op != opcode.PUSH_NULL || list[1].Op != opcode.LOAD_DEREF && list[1].Op != opcode.LOAD_CONST {
		return nil
	}
	step := &groupStep{eventCode: s, function: true, name: name, result: list[len(list)-1].Arg}
	if last := list[len(list)-1]; last.Op != opcode.STORE_FAST || !isTemp(last.Arg) {
		return nil
	}
	for i, in := range list[2 : len(list)-1] {
		switch in.Op {
		case opcode.LOAD_FAST, opcode.LOAD_CONST:
			step.loads = append(step.loads, in)
		case opcode.CALL:
			if i+2 != len(list)-2 || in.Arg != len(step.loads) {
				return nil
			}
		default:
			return nil
		}
	}
	return step
}

// epilogueOf returns the epilogue that an event's code is, or nil. One of its operands is in a temp of fresh, and the
// others are tensors and constant numbers.
func (c *Codegen) epilogueOf(s eventCode, fresh map[int]bool) *epilogue {
	step := c.epilogueStep(s)
	if step == nil {
		return nil
	}
	if first := step.loads[0]; first.Op == opcode.LOAD_CONST && step.operator &&
		(step.name == "+" || step.name == "*") {
		step.loads = []*bytecode.Instruction{step.loads[1], first}
	}
	e := &epilogue{step: step, fresh: -1}
	for _, in := range step.loads {
		if in.Op == opcode.LOAD_FAST && fresh[in.Arg] && e.fresh < 0 {
			e.fresh, e.externs = in.Arg, []*bytecode.Instruction{in}
		}
	}
	if e.fresh < 0 || step.result == e.fresh {
		return nil
	}
	for i, in := range step.loads {
		switch {
		case in.Op == opcode.LOAD_FAST && in.Arg == e.fresh:
			e.operands = append(e.operands, groupOperand{step: -1, external: 0})
		case in.Op == opcode.LOAD_FAST || in.Op == opcode.LOAD_DEREF:
			e.operands = append(e.operands, groupOperand{step: -1, external: len(e.externs)})
			e.externs = append(e.externs, in)
		case i > 0 && c.isNumberConst(in.Arg):
			e.operands = append(e.operands, groupOperand{step: -1, external: -1, constant: in})
		default:
			return nil
		}
	}
	return e
}

// isNumberConst reports whether a constant of the code is an int or a float.
func (c *Codegen) isNumberConst(at int) bool {
	kind := c.consts[at].Kind()
	return kind == py.Int || kind == py.Float
}

// epilogueCall returns the code that calls the epilogue and stores the result.
func (c *Codegen) epilogueCall(e *epilogue) []*bytecode.Instruction {
	made := c.epilogueObject(e)
	list, pos := c.list, c.pos
	c.list, c.pos = nil, list[e.step.start].Pos
	c.PushNull()
	c.LoadConst(made)
	for _, in := range e.externs {
		c.emit(in.Op, in.Arg)
	}
	c.Call(len(e.externs), nil)
	c.emit(opcode.STORE_FAST, e.step.result)
	out := c.list
	c.list, c.pos = list, pos
	c.takePlace(out, e.step.start, e.step.end)
	return out
}

// epilogueKey is what an Epilogue computes.
type epilogueKey struct {
	stepShape
	externals [maxOperands]int
	constants [maxOperands]py.Object
}

// epilogueObject returns the Epilogue of an operation. Equal operations of a function share one: making it takes longer
// than translating the operation.
func (c *Codegen) epilogueObject(e *epilogue) py.Object {
	key := epilogueKey{stepShape: e.step.shape()}
	for i, o := range e.operands {
		key.externals[i] = o.external
		if o.constant != nil {
			key.constants[i] = c.consts[o.constant.Arg]
		}
	}
	if made, ok := c.epilogues[key]; ok {
		return made
	}
	s := c.out.scope
	plan := s.Tuple(s.Int(int64(len(e.externs))), c.planOf([]*groupStep{e.step}, [][]groupOperand{e.operands}))
	made, err := s.Call(c.core("Epilogue"), plan)
	if err != nil {
		panic(err)
	}
	if c.epilogues == nil {
		c.epilogues = map[epilogueKey]py.Object{}
	}
	c.epilogues[key] = made
	return made
}

// requireGrad returns the operations whose results require gradients if they are computed in the state of this call:
// while grad mode is on, those of inputs that require them. The guards need not agree: an Epilogue looks at the tensor.
func (o *OutputGraph) requireGrad() map[*fxgraph.Node]bool {
	found := map[*fxgraph.Node]bool{}
	if on, ok := py.Answered(o.world.Recording(o.scope)); !ok || !on {
		return found
	}
	for _, n := range o.graph.Nodes() {
		if n.State && gradModes[n.Target.Text] {
			break // from here on, only the Epilogue knows
		}
		requires := false
		if in := o.inputOf[n]; in != nil && !in.Example.IsNull() {
			flag, ok := py.Answered(o.scope.GetAttr(in.Example, "requires_grad"))
			requires = ok && flag == py.True()
		}
		n.EachInput(func(from *fxgraph.Node) { requires = requires || found[from] })
		if requires {
			found[n] = true
		}
	}
	return found
}
