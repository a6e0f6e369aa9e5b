package translate

import (
	"sort"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Account records which of the user's instructions a translation captured, for `explain`. On a nil Account all
// methods do nothing.
type Account struct {
	Translated []CodeUnits    // instructions executed symbolically, by code object
	Calls      [][]ChainLevel // the user's stack at each torch operation of the graph, outermost frame first
	Python     []PythonCall   // instructions that run as Python operations in the graph
	// Native is the user's instruction that CPython runs at a graph break. Native.Code is zero if there is none. In the
	// transformed code, the instruction has the code units from Start to End-1.
	Native     CodeUnit
	Start, End int
	Copies     []Copy
	Nodes      []NodePlace // the graph's nodes, in order

	steps  map[py.Object]map[int]bool
	python map[py.Object]map[int]bool
	native []*bytecode.Instruction
}

// CodeUnits lists instructions of one code object, sorted. Units holds the index of each instruction's first code
// unit.
type CodeUnits struct {
	Code  py.Object
	Units []int
}

// CodeUnit identifies an instruction by the index of its first code unit.
type CodeUnit struct {
	Code py.Object
	Unit int
}

// PythonCall is an instruction that became a Python operation. It is counted under Callee.
type PythonCall struct {
	CodeUnit
	Line   int
	Callee string
}

// NodePlace is a node of the graph. Stack is the user's stack at its operation, innermost frame first, or nil for a
// graph input.
type NodePlace struct {
	Node  *fxgraph.Node
	Stack []exc.Frame
}

// Copy maps the instructions of a resume function's code to the user's instructions from which they were copied. Each
// pair in Units holds the code unit of the copy and that of the original.
type Copy struct {
	Code, Original py.Object
	Units          [][2]int
}

func newAccount(o *Options) *Account {
	if !o.Explain {
		return nil
	}
	return &Account{steps: map[py.Object]map[int]bool{}, python: map[py.Object]map[int]bool{}}
}

func put(m map[py.Object]map[int]bool, code py.Object, unit int) {
	if m[code] == nil {
		m[code] = map[int]bool{}
	}
	m[code][unit] = true
}

// translated records an instruction that was executed symbolically.
func (a *Account) translated(tx *InstructionTranslator, inst *bytecode.Instruction) {
	if a != nil && !tx.hidden {
		put(a.steps, tx.d.object, inst.Offset)
	}
}

// pythonForm records an instruction that becomes a Python operation.
func (a *Account) pythonForm(tx *InstructionTranslator, inst *bytecode.Instruction) {
	if a != nil && !tx.hidden {
		put(a.python, tx.d.object, inst.Offset)
		a.Python = append(a.Python, PythonCall{CodeUnit: CodeUnit{tx.d.object, inst.Offset}, Line: int(inst.Pos.Line)})
	}
}

// pythonCalls records that the current instruction of tx is a Python operation that calls callee.
func (a *Account) pythonCalls(tx *InstructionTranslator, callee string) {
	if a == nil || tx == nil || tx.inst == nil {
		return
	}
	for tx.hidden && tx.parent != nil {
		tx = tx.parent
	}
	at := CodeUnit{tx.d.object, tx.inst.Offset}
	if n := len(a.Python); n == 0 || a.Python[n-1].CodeUnit != at {
		a.pythonForm(tx, tx.inst)
	}
	if n := len(a.Python); n > 0 {
		a.Python[n-1].Callee = callee
	}
}

// nativeIs records the instruction that runs in CPython after a graph break, and the code written for it.
func (a *Account) nativeIs(tx *InstructionTranslator, inst *bytecode.Instruction, written []*bytecode.Instruction) {
	if a != nil {
		a.Native = CodeUnit{tx.d.object, inst.Offset}
		a.native = append([]*bytecode.Instruction(nil), written...)
	}
}

// copying notes the code units of a resume function's code before that code is lowered. The returned function records
// the Copy. It takes the new code object and the original one.
func (a *Account) copying(code *bytecode.Code) func(s *py.Scope, made, original py.Object) {
	if a == nil {
		return func(*py.Scope, py.Object, py.Object) {}
	}
	before := make([]int, len(code.Instructions))
	for i, in := range code.Instructions {
		before[i] = in.Offset
	}
	return func(s *py.Scope, made, original py.Object) {
		c := Copy{Code: s.Hold(made), Original: original}
		for i, in := range code.Instructions {
			if before[i] >= 0 {
				c.Units = append(c.Units, [2]int{in.Offset, before[i]})
			}
		}
		a.Copies = append(a.Copies, c)
	}
}

// done completes the account once the transformed code has been lowered.
func (a *Account) done(o *OutputGraph) *Account {
	if a == nil {
		return nil
	}
	for code, units := range a.steps {
		c := CodeUnits{Code: code}
		for u := range units {
			if !a.python[code][u] {
				c.Units = append(c.Units, u)
			}
		}
		sort.Ints(c.Units)
		a.Translated = append(a.Translated, c)
	}
	seen := map[*chain]bool{}
	stacks := map[*fxgraph.Node][]exc.Frame{}
	for _, e := range o.events {
		if e.node != nil && e.chain != nil {
			stacks[e.node] = e.chain.stack()
		}
		if e.node != nil && e.chain != nil && !e.node.State && !e.node.Item && !isPythonNode(e.node) && !seen[e.chain] {
			seen[e.chain] = true
			a.Calls = append(a.Calls, e.chain.Levels())
		}
	}
	for _, n := range o.graph.Nodes() {
		a.Nodes = append(a.Nodes, NodePlace{n, stacks[n]})
	}
	a.Start, a.End = -1, -1
	for _, in := range a.native {
		if in.Offset >= 0 && (a.Start < 0 || in.Offset < a.Start) {
			a.Start = in.Offset
		}
		a.End = max(a.End, in.Offset+1)
	}
	return a
}
