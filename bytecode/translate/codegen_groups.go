package translate

import (
	"slices"
	"strings"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/pyhook/py"
)

// An optimizer runs the same operations for each parameter. Where the written code repeats a sequence of operations on
// other tensors, its units, one call of a Group takes their place, which runs each operation for all small tensors at
// once (pyhook/core/calls/group.h). It decides at each call whether anything could tell; if so, the units run in their
// order. Here the translator only finds the units, and proves that no unit reads what another one computes. The
// operations that may be in a unit are rows of groups.table.

//go:generate go run ./gen

const (
	minUnits     = 3  // fewer units are not worth a call
	maxUnitSteps = 64 // Adam has 17 steps, and most optimizers fewer
	maxExternals = 64 // GD_GROUP_EXTERNALS
	maxOperands  = 6  // GD_GROUP_OPERANDS
)

// eventCode is the range [start, end) of the instructions written for an event.
type eventCode struct {
	event      *event
	start, end int
}

// groupStep is the code of one event, as a step of a unit.
type groupStep struct {
	eventCode
	operator bool
	function bool                    // torch.NAME
	name     string                  // "" for code that only copies a value to another temp
	names    []string                // keyword names of the last operands
	loads    []*bytecode.Instruction // one for each operand
	result   int                     // the temp in which the result is stored
}

// stepShape is what equal steps of two units have in common.
type stepShape struct {
	operator, function, operation bool
	name, names                   string
	operands                      int
}

func (s *groupStep) shape() stepShape {
	return stepShape{s.operator, s.function, s.event.node != nil, s.name, strings.Join(s.names, ","), len(s.loads)}
}

// groupOperations replaces repeated sequences of operations by calls of Groups.
func (c *Codegen) groupOperations() {
	if len(c.spans) < minUnits {
		return
	}
	steps, any := c.groupSteps()
	if !any {
		return
	}
	uses := c.tempUses()
	var found []replacement
	for i := 0; i < len(steps); {
		g := c.groupAt(steps[i:], uses)
		if g == nil {
			i++
			continue
		}
		n := len(g.units) * len(g.steps)
		start, end := steps[i].start, steps[i+n-1].end
		c.markAsOne(start, end)
		found = append(found, replacement{start, end, c.groupCall(g, steps[i])})
		i += n
	}
	c.replace(found)
}

// replacement is the code that takes the place of the instructions in [start, end).
type replacement struct {
	start, end int
	code       []*bytecode.Instruction
}

// replace makes replacements, which are in the order of the instructions and do not overlap.
func (c *Codegen) replace(found []replacement) {
	if len(found) == 0 {
		return
	}
	remap := make([]int, len(c.list)+1)
	var out []*bytecode.Instruction
	copied := 0 // number of instructions that have been moved or replaced
	move := func(to int) {
		for ; copied < to; copied++ {
			remap[copied] = len(out)
			out = append(out, c.list[copied])
		}
	}
	for _, r := range found {
		move(r.start)
		for ; copied < r.end; copied++ {
			remap[copied] = len(out)
		}
		out = append(out, r.code...)
	}
	move(len(c.list))
	remap[len(c.list)] = len(out)
	c.become(out, remap)
}

// markAsOne gives the instructions in [start, end) the chain of the first one.
func (c *Codegen) markAsOne(start, end int) {
	inside := func(m mark) bool { return m.start > start && m.start < end }
	at := slices.IndexFunc(c.marks, inside)
	if at < 0 {
		return
	}
	rest := at
	for rest < len(c.marks) && inside(c.marks[rest]) {
		rest++
	}
	if rest == len(c.marks) || c.marks[rest].start > end {
		rest--
		c.marks[rest].start = end // the chain of the last one goes on behind them
	}
	c.marks = slices.Delete(c.marks, at, rest)
}

// groupSteps returns the steps that the events have become; nil for an event that cannot be in a unit. any is false if
// too few of them change a tensor.
func (c *Codegen) groupSteps() (steps []*groupStep, any bool) {
	off, operations := false, 0 // off: grad mode has been switched off
	for _, s := range c.spans {
		if n := s.event.node; n != nil && n.State && gradModes[n.Target.Text] {
			off = len(n.Args) == 1 && isLiteral(n.Args[0], "False")
		}
		if s.start == s.end {
			continue
		}
		var step *groupStep
		if off {
			step = c.groupStep(s)
		}
		if step != nil && step.changes() {
			operations++
		}
		steps = append(steps, step)
	}
	return steps, operations >= minUnits
}

// groupStep returns the step that an event's code is: one operator or method call, whose result is stored. It returns
// nil for other code.
func (c *Codegen) groupStep(s eventCode) *groupStep {
	e := s.event
	if !e.mayBeStep() {
		return nil
	}
	step := &groupStep{eventCode: s}
	list := c.list[s.start:s.end]
	last := len(list) - 1
	if last < 1 || list[last].Op != opcode.STORE_FAST || !isTemp(list[last].Arg) {
		return nil
	}
	step.result = list[last].Arg
	for i, in := range list[:last] {
		switch in.Op {
		case opcode.LOAD_FAST, opcode.LOAD_CONST, opcode.LOAD_DEREF:
			step.loads = append(step.loads, in)
		case opcode.LOAD_METHOD:
			if len(step.loads) != 1 || step.name != "" {
				return nil
			}
			step.name = c.names[in.Arg]
		case opcode.KW_NAMES:
			for _, n := range c.out.scope.Items(c.consts[in.Arg]) {
				step.names = append(step.names, py.GoString(n))
			}
		case opcode.CALL:
			if i != last-1 || !groupMethods[step.name] || in.Arg != len(step.loads)-1 {
				return nil
			}
		case opcode.BINARY_OP:
			if i != last-1 || step.name != "" || len(step.loads) != 2 {
				return nil
			}
			step.operator, step.name = true, opcode.BinaryOp(in.Arg).Symbol()
		case opcode.UNARY_NEGATIVE:
			if i != last-1 || step.name != "" || len(step.loads) != 1 {
				return nil
			}
			step.operator, step.name = true, "neg"
		default:
			return nil
		}
	}
	switch {
	case len(step.loads) > maxOperands:
		return nil
	case step.operator && step.name != "neg" && !groupOperators[step.name]:
		return nil
	case step.copies() && (len(step.loads) != 1 || step.loads[0].Op != opcode.LOAD_FAST):
		return nil
	}
	return step
}

// mayBeStep reports whether C code may run the event, as far as it depends on where the frame goes on.
func (e *event) mayBeStep() bool {
	return !(e.protected || e.exit != nil || e.leaves != nil || e.putBack || e.draws || e.held || e.effect() ||
		e.node != nil && e.node.RunsOnce())
}

func (s *groupStep) copies() bool { return s.name == "" }

// changes reports whether the step changes its first operand, if that is a tensor.
func (s *groupStep) changes() bool {
	n := len(s.name)
	return n > 1 && (!s.operator && s.name[n-1] == '_' || s.operator && s.name[n-1] == '=')
}

// tempUses counts the loads of each temp. A temp that is stored more than once, or deleted, has a negative count.
func (c *Codegen) tempUses() map[int]int {
	uses, stores := map[int]int{}, map[int]int{}
	for _, in := range c.list {
		switch in.Op {
		case opcode.LOAD_FAST:
			uses[in.Arg]++
		case opcode.STORE_FAST:
			stores[in.Arg]++
		case opcode.DELETE_FAST:
			stores[in.Arg] += 2
		}
	}
	for a, n := range stores {
		if n > 1 || c.held[a&^spaceMask] {
			uses[a] = -1
		}
	}
	return uses
}

// groupOperand is an operand of a step: the result of an earlier step of the unit, a value from outside, or a constant
// that all units share.
type groupOperand struct {
	step, external int // -1 if it is none
	constant       *bytecode.Instruction
}

// like reports whether p is the same operand of another unit.
func (o groupOperand) like(p groupOperand) bool {
	return o.step == p.step && o.external == p.external && (o.constant == nil) == (p.constant == nil)
}

// group is a sequence of units. steps are those of the first one.
type group struct {
	steps    []*groupStep
	operands [][]groupOperand
	units    [][]*bytecode.Instruction // per unit, the loads of its externals
}

// groupAt returns the group that starts with the first step: of the lengths a unit can have, the one that covers most
// steps. It returns nil if there is none.
func (c *Codegen) groupAt(steps []*groupStep, uses map[int]int) (best *group) {
	covered := 0
	for m := 1; m <= maxUnitSteps && minUnits*m <= len(steps) && steps[m-1] != nil; m++ {
		k := repeats(steps, m)
		if k < minUnits || k*m <= covered {
			continue
		}
		if g := c.unitsOf(steps[:k*m], m, uses); g != nil && len(g.units)*m > covered {
			best, covered = g, len(g.units)*m
		}
	}
	return best
}

// repeats returns how many times the first m steps are there, one after the other, with nothing between them and in
// the same mode.
func repeats(steps []*groupStep, m int) int {
	if steps[0] == nil {
		return 0
	}
	state := steps[0].event.state
	for i, s := range steps {
		same := s != nil && s.shape() == steps[i%m].shape() && s.event.state == state &&
			(i == 0 || steps[i-1].end == s.start)
		if !same {
			return i / m
		}
	}
	return len(steps) / m
}

// unitsOf returns the group of units of m steps each, as many as have the same operands as the first one. It returns
// nil if these are too few, or if a unit changes no tensor or one that an earlier unit has changed.
func (c *Codegen) unitsOf(steps []*groupStep, m int, uses map[int]int) *group {
	g := &group{steps: steps[:m]}
	changed := map[int]bool{} // the places of tensors
	for ; len(steps) >= m; steps = steps[m:] {
		loads, operands, ok := c.unit(steps[:m], g, uses)
		if !ok {
			break
		}
		own := map[int]bool{}
		for i, s := range steps[:m] {
			if s.changes() && operands[i][0].external >= 0 {
				own[loads[operands[i][0].external].Arg] = true
			}
		}
		for place := range own {
			if changed[place] {
				return nil
			}
			changed[place] = true
		}
		if len(own) == 0 {
			return nil
		}
		g.operands = operands
		g.units = append(g.units, loads)
	}
	if len(g.units) < minUnits {
		return nil
	}
	return g
}

// unit returns the loads of a unit's externals, and its operands. ok is false if they differ from those of the group,
// or if anything outside the unit reads one of its results.
func (c *Codegen) unit(steps []*groupStep, g *group, uses map[int]int) (loads []*bytecode.Instruction,
	operands [][]groupOperand, ok bool) {
	results, reads := map[int]int{}, map[int]int{} // per temp: the step that computes it, and its readers in the unit
	places := map[[2]int]int{}
	number := 0 // of the step in the plan, which has no copies
	for i, s := range steps {
		if _, twice := results[s.result]; twice {
			return nil, nil, false
		}
		if s.copies() {
			from := s.loads[0].Arg
			at, local := results[from]
			if !local {
				return nil, nil, false
			}
			reads[from]++
			results[s.result] = at
			operands = append(operands, nil)
			continue
		}
		var list []groupOperand
		for k, in := range s.loads {
			if at, local := results[in.Arg]; local && in.Op == opcode.LOAD_FAST {
				reads[in.Arg]++
				list = append(list, groupOperand{step: at, external: -1})
				continue
			}
			if c.sharedConstant(in, g, i, k) {
				list = append(list, groupOperand{step: -1, external: -1, constant: in})
				continue
			}
			place := [2]int{int(in.Op), in.Arg}
			at, seen := places[place]
			if !seen {
				at = len(loads)
				places[place] = at
				loads = append(loads, in)
			}
			list = append(list, groupOperand{step: -1, external: at})
		}
		operands = append(operands, list)
		results[s.result] = number
		number++
	}
	for result := range results {
		if uses[result] != reads[result] {
			return nil, nil, false
		}
	}
	if len(loads) == 0 || len(loads) > maxExternals {
		return nil, nil, false
	}
	for i, list := range g.operands {
		for k, o := range list {
			if !o.like(operands[i][k]) {
				return nil, nil, false
			}
		}
	}
	return loads, operands, true
}

// sharedConstant reports whether operand k of step i is a constant of the plan: a plain one, and equal to that of the
// first unit.
func (c *Codegen) sharedConstant(in *bytecode.Instruction, g *group, i, k int) bool {
	first := g.steps[i].loads[k]
	if in.Op != opcode.LOAD_CONST || first.Op != opcode.LOAD_CONST {
		return false
	}
	a, b := c.consts[first.Arg], c.consts[in.Arg]
	if a.Kind() == py.Float && b.Kind() == py.Float { // each unit has computed its own
		return a == b || c.out.scope.Repr(a) == c.out.scope.Repr(b)
	}
	return a == b && marshals(c.out.scope, a)
}

// groupCall returns the code that calls the group in place of its units, the first step of which is first.
func (c *Codegen) groupCall(g *group, first *groupStep) []*bytecode.Instruction {
	s := c.out.scope
	plan := s.Tuple(s.Int(int64(len(g.units))), s.Int(int64(len(g.units[0]))), c.planOf(g.steps, g.operands))
	made, err := s.Call(c.core("Group"), plan)
	if err != nil {
		panic(err)
	}
	list, pos := c.list, c.pos
	c.list, c.pos = nil, list[first.start].Pos
	c.PushNull()
	c.LoadConst(made)
	for _, loads := range g.units {
		for _, in := range loads {
			c.emit(in.Op, in.Arg)
		}
	}
	c.Call(len(g.units)*len(g.units[0]), nil)
	c.PopTop()
	out := c.list
	c.list, c.pos = list, pos
	c.takePlace(out, first.start, first.end)
	return out
}

// takePlace gives code that replaces instructions from start on the handler of those in [start, end).
func (c *Codegen) takePlace(code []*bytecode.Instruction, start, end int) {
	handler := handlerOf(c.list[start:end])
	for _, in := range code {
		in.Handler = handler
	}
	*c.list[start] = *code[0] // a jump may lead there
	code[0] = c.list[start]
}

// planOf returns the steps of a plan (pyhook/core/calls/group.h).
func (c *Codegen) planOf(steps []*groupStep, operands [][]groupOperand) py.Object {
	s := c.out.scope
	var plan []py.Object
	for i, step := range steps {
		if step.copies() {
			continue
		}
		values := make([]py.Object, len(step.loads))
		for k, o := range operands[i] {
			switch {
			case o.constant != nil:
				values[k] = s.Tuple(c.consts[o.constant.Arg])
			case o.external >= 0:
				values[k] = s.Int(int64(o.external))
			default:
				values[k] = s.Int(int64(^o.step))
			}
		}
		names := make([]py.Object, len(step.names))
		for k, n := range step.names {
			names[k] = s.Name(n)
		}
		kind := "call_method"
		switch {
		case step.operator:
			kind = "operator"
		case step.function:
			kind = "call_function"
		}
		plan = append(plan, s.Tuple(s.Name(kind), s.Name(step.name), s.Tuple(values...), s.Tuple(names...)))
	}
	return s.Tuple(plan...)
}

// handlerOf returns the exception-table region of the instruction that may raise.
func handlerOf(list []*bytecode.Instruction) *bytecode.ExceptionRegion {
	i := slices.IndexFunc(list, func(in *bytecode.Instruction) bool { return in.Handler != nil })
	if i < 0 {
		return nil
	}
	return list[i].Handler
}
