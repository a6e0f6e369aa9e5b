package translate

import (
	"strings"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/pyhook/py"
)

// An operation often makes a tensor only for the next ones, which compute element by element: a bias and an activation
// after a product. They are its epilogue: one call of an Epilogue, which computes them in the memory of that tensor if
// it is small (pyhook/core/calls/epilogue.h). The Epilogue decides at each call whether anything could tell. Here the
// translator finds the operations, and proves that the tensor is new and that nothing else reads it.

// maxEpilogue is the number of operations in an epilogue (STEPS in epilogue.c).
const maxEpilogue = 16

// epilogue replaces the code of steps, which follow the operation that makes the tensor in the temp fresh.
type epilogue struct {
	fresh    int
	steps    []*groupStep
	operands [][]groupOperand
}

// writeEpilogues replaces operations by calls of Epilogues.
func (c *Codegen) writeEpilogues() {
	var events []eventCode
	for _, s := range c.spans {
		if s.start < s.end {
			events = append(events, s)
		}
	}
	var found []*epilogue
	var uses map[int]int
	var requiring map[*fxgraph.Node]bool
	for i := 0; i+1 < len(events); i++ {
		if !makesFresh(events[i].event.node) || c.epilogueStep(events[i+1]) == nil {
			continue
		}
		if uses == nil {
			uses = c.tempUses()
			requiring = c.out.requireGrad()
		}
		if requiring[events[i].event.node] {
			continue
		}
		if e := c.epilogueAfter(events[i:], uses); e != nil {
			found = append(found, e)
			i += len(e.steps) - 1 // the result may itself have an epilogue, on another line
		}
	}
	if len(found) == 0 {
		return
	}
	remap := make([]int, len(c.list)+1)
	var out []*bytecode.Instruction
	copied := 0
	for _, e := range found {
		start, end := e.steps[0].start, e.steps[len(e.steps)-1].end
		for ; copied < start; copied++ {
			remap[copied] = len(out)
			out = append(out, c.list[copied])
		}
		for ; copied < end; copied++ {
			remap[copied] = len(out)
		}
		c.markAsOne(start, end)
		out = append(out, c.epilogueCall(e)...)
	}
	for ; copied < len(c.list); copied++ {
		remap[copied] = len(out)
		out = append(out, c.list[copied])
	}
	remap[len(c.list)] = len(out)
	c.become(out, remap)
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

// functionStep returns the step of a call of torch.NAME as one of the method, which does the same for a tensor. It
// returns nil for other code.
func (c *Codegen) functionStep(s eventCode) *groupStep {
	n := s.event.node
	name, ok := strings.CutPrefix(n.Target.Text, "torch.")
	list := c.list[s.start:s.end]
	if !ok || !s.event.mayBeStep() || n.Op != fxgraph.CallFunction || !kernelMethods[name] || len(list) < 4 ||
		list[0].Op != opcode.PUSH_NULL || list[1].Op != opcode.LOAD_DEREF && list[1].Op != opcode.LOAD_CONST {
		return nil
	}
	step := &groupStep{eventCode: s, name: name, result: list[len(list)-1].Arg}
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

// epilogueAfter returns the longest epilogue of the operation in events[0], or nil.
func (c *Codegen) epilogueAfter(events []eventCode, uses map[int]int) *epilogue {
	maker := events[0]
	last := c.list[maker.end-1]
	if last.Op != opcode.STORE_FAST || !isTemp(last.Arg) {
		return nil
	}
	e := &epilogue{fresh: last.Arg}
	results, reads, whole := map[int]int{}, map[int]int{}, 0
	for i, s := range events[1:] {
		step := c.epilogueStep(s)
		if step == nil || i == maxEpilogue || s.start != events[i].end || s.event.state != events[1].event.state ||
			!sameLines(s.event.chain, events[1].event.chain) {
			break
		}
		operands, ok := c.epilogueOperands(step, e, results, reads)
		if _, twice := results[step.result]; !ok || twice || step.result == e.fresh {
			break
		}
		e.steps = append(e.steps, step)
		e.operands = append(e.operands, operands)
		results[step.result] = i
		if uses[e.fresh] == reads[e.fresh] && readInside(e.steps[:i], uses, reads) {
			whole = i + 1
		}
	}
	if whole == 0 {
		return nil
	}
	e.steps, e.operands = e.steps[:whole], e.operands[:whole]
	return e
}

// readInside reports whether nothing but the steps counted in reads loads the results of these steps.
func readInside(steps []*groupStep, uses, reads map[int]int) bool {
	for _, s := range steps {
		if uses[s.result] != reads[s.result] {
			return false
		}
	}
	return true
}

// epilogueOperands returns the operands of a step, the first one a tensor. ok is false if one is neither the fresh
// tensor, nor an earlier result, nor a number. Operations on other tensors could raise.
func (c *Codegen) epilogueOperands(step *groupStep, e *epilogue, results, reads map[int]int) (list []groupOperand,
	ok bool) {
	if first := step.loads[0]; first.Op == opcode.LOAD_CONST && step.operator &&
		(step.name == "+" || step.name == "*") {
		step.loads = []*bytecode.Instruction{step.loads[1], first}
	}
	var read []int
	for i, in := range step.loads {
		switch at, local := results[in.Arg]; {
		case in.Op == opcode.LOAD_FAST && in.Arg == e.fresh:
			list = append(list, groupOperand{step: -1, external: 0})
		case in.Op == opcode.LOAD_FAST && local:
			list = append(list, groupOperand{step: at, external: -1})
		case in.Op == opcode.LOAD_CONST && i > 0 && c.isNumberConst(in.Arg):
			list = append(list, groupOperand{step: -1, external: -1, constant: in})
			continue
		default:
			return nil, false
		}
		read = append(read, in.Arg)
	}
	for _, temp := range read {
		reads[temp]++
	}
	return list, true
}

// isNumberConst reports whether a constant of the code is an int or a float.
func (c *Codegen) isNumberConst(at int) bool {
	kind := c.consts[at].Kind()
	return kind == py.Int || kind == py.Float
}

// sameLines reports whether two places are on the same lines of the same inlined calls: in a traceback they are one
// place.
func sameLines(a, b *chain) bool {
	for ; a != b; a, b = a.parent, b.parent {
		if a == nil || b == nil || a.d != b.d || a.inst.Pos.Line != b.inst.Pos.Line {
			return false
		}
	}
	return true
}

// epilogueCall returns the code that calls the epilogue on the fresh tensor and stores the result.
func (c *Codegen) epilogueCall(e *epilogue) []*bytecode.Instruction {
	made, err := c.out.scope.Call(c.core("Epilogue"), c.planOf(e.steps, e.operands))
	if err != nil {
		panic(err)
	}
	first, last := e.steps[0], e.steps[len(e.steps)-1]
	list, pos := c.list, c.pos
	c.list, c.pos = nil, list[first.start].Pos
	c.PushNull()
	c.LoadConst(made)
	c.emit(opcode.LOAD_FAST, e.fresh)
	c.Call(1, nil)
	c.emit(opcode.STORE_FAST, last.result)
	out := c.list
	c.list, c.pos = list, pos
	c.takePlace(out, first.start, last.end)
	return out
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
