package guards

import (
	"container/heap"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/godynamo/godynamo/internal/exc"
)

// Options choose what CheckFunctionManager checks and how it prints.
type Options struct {
	GuardNNModules bool     // check what is inside nn.Modules too; off, those guards are left out, as the seed has it
	SlotNames      []string // names of the slots; a global of the same name is then printed G['name']
	// Reads are places the program read without asking what they hold: that they can be read is checked, where no guard and no
	// value does so anyway.
	Reads []Source
}

// CheckFunctionManager turns all guards of a translation into one Program and one text.
//
// Parts stand in the order they are checked: `___guarded_code.valid`, then the others, small rank first and a part after the
// parts on what its value is read from, then the tensors with torch's global state. The order depends on the set alone,
// not on the order the guards were made in.
type CheckFunctionManager struct {
	numSlots   int
	printer    *printer
	parts      []*part
	tensors    []Guard
	needsState bool
	places     uint8           // guards of QuietAt's family
	pinned     map[string]bool // places whose value is a tensor, or equal to a constant
	stateLine  UserLine
	kinds      []byte
	program    *Program
}

// part is one condition of the text with its checks.
type part struct {
	guard  Guard
	stage  int
	text   string
	checks []check

	cost    int     // see cost()
	order   int     // position by cost alone
	waiting int     // parts that must come before and have not come yet
	next    []*part // parts that wait for this one
}

// validText is the first part.
const validText = "___guarded_code.valid"

// NewCheckFunctionManager builds the program for a frame of numSlots slots. values are the Sources whose value the
// transformed function takes as parameters after the slots, in order. A malformed guard is an error here, at once.
func NewCheckFunctionManager(numSlots int, set Set, values []Source, opts Options) (*CheckFunctionManager, error) {
	all := sortedGuards(set.Guards())
	all = slices.DeleteFunc(all, func(g Guard) bool {
		return g.Source == SourcePolyfill || (!opts.GuardNNModules && g.IsNNModule())
	})
	opts.Reads = slices.DeleteFunc(slices.Clone(opts.Reads), func(s Source) bool { return s.GuardSource() == SourcePolyfill })
	m := &CheckFunctionManager{numSlots: numSlots, printer: newPrinter(all, append(slices.Clone(values), opts.Reads...), opts.SlotNames)}
	local, global := &GuardBuilder{m}, &GuardBuilder{m}
	m.countQuiet(all)
	for _, g := range all {
		if err := g.Create(local, global); err != nil {
			return nil, err
		}
	}
	m.dropDuplicates()
	program, err := m.compile(values, m.unseen(opts))
	if err != nil {
		return nil, err
	}
	if err := program.Verify(); err != nil {
		return nil, err
	}
	m.program = program
	program.Kinds = string(m.kinds)
	return m, nil
}

// maxPlaces is how many places a translation takes into account for one object (1 + HELD in core/guards/end.c).
const maxPlaces = 7

// countQuiet counts the guards on values that the frame drops, and finds the values that need none.
func (m *CheckFunctionManager) countQuiet(all []Guard) {
	for i := range all {
		if _, quiet := quietFamily[all[i].CreateFn]; quiet && m.places < maxPlaces {
			m.places++
		}
	}
	if m.places == 0 {
		return
	}
	m.pinned = map[string]bool{}
	for i := range all {
		switch all[i].CreateFn {
		case CreateTensorMatch, CreateEqualsMatch, CreateConstantMatch:
			m.pinned[all[i].Name] = true
		case CreateIDMatch:
			if isSingleton(all[i].Args.Obj) {
				m.pinned[all[i].Name] = true
			}
		}
	}
}

// describe adds a guard's line to Program.Kinds, for the part that is being written.
func (m *CheckFunctionManager) describe(e *emitter, g *Guard, own bool) {
	if m.kinds == nil {
		m.kinds = make([]byte, 0, 96*(len(m.parts)+len(m.tensors)+1))
	}
	b := strconv.AppendInt(m.kinds, int64(len(e.program.Parts)-1), 10)
	b = append(append(b, '\t'), g.CreateFn.String()...)
	b = append(append(b, '\t'), g.Source.String()...)
	b = append(append(b, '\t'), g.Name...)
	if own && g.Line.File != "" {
		b = strconv.AppendInt(append(b, '\t'), int64(g.Line.Line), 10)
		b = append(append(b, '\t'), g.Line.File...)
	}
	m.kinds = append(b, '\n')
}

// Program is the verified program.
func (m *CheckFunctionManager) Program() *Program { return m.program }

// CodeParts are the conditions of the text in order.
func (m *CheckFunctionManager) CodeParts() []string { return m.program.Parts }

// Text is the whole condition: executable Python in the environment of godynamo._called.guard_env.
func (m *CheckFunctionManager) Text() string { return strings.Join(m.program.Parts, " and ") }

// sortedGuards are the guards in Guard.Compare's order. Pointers are sorted: a Guard is many words.
func sortedGuards(set []Guard) []Guard {
	pointers := make([]*Guard, len(set))
	for i := range set {
		pointers[i] = &set[i]
	}
	slices.SortFunc(pointers, (*Guard).compare) // no two of a set are equal
	out := make([]Guard, len(set))
	for i, g := range pointers {
		out[i] = *g
	}
	return out
}

// newPrinter finds the roots and decides which of them the text can call by their bare names.
func newPrinter(all []Guard, values []Source, slotNames []string) *printer {
	p := &printer{globals: map[string]bool{}, cells: map[string]bool{}, quoted: map[string]bool{}, texts: map[Source]string{}}
	locals := map[string]bool{}
	for _, name := range slotNames {
		locals[name] = true
	}
	local := func(s *LocalSource) {
		locals[s.Local] = true
		if isReserved(s.Local) || !isIdentifier(s.Local) {
			p.quoted[s.Local] = true
		}
	}
	visit := func(src Source) {
		for s := src; s != nil; s = s.Base() {
			switch s := s.(type) {
			case *LocalSource:
				local(s)
			case *GlobalSource:
				p.globals[s.Global] = true
			case *CellSource:
				if base, ok := s.base.(*LocalSource); ok {
					p.cells[base.Local] = true
				}
			}
		}
	}
	for _, g := range all {
		visit(g.Origin)
		visit(g.Args.Other)
		if base, ok := g.Origin.(*LocalSource); ok && g.CreateFn == CreateCellEmpty {
			p.cells[base.Local] = true
		}
	}
	for _, s := range values {
		visit(s)
	}
	for name := range p.globals {
		if locals[name] || isReserved(name) || !isIdentifier(name) {
			delete(p.globals, name)
		}
	}
	return p
}

// dropDuplicates removes parts with a text that was there before: they check the same thing. Of two kinds that give one
// text (TYPE_MATCH, and LIST_LENGTH's own), the earlier stays.
func (m *CheckFunctionManager) dropDuplicates() {
	seen := map[string]bool{}
	m.parts = slices.DeleteFunc(m.parts, func(p *part) bool {
		if seen[p.text] {
			return true
		}
		seen[p.text] = true
		return false
	})
}

// compile orders the parts and writes the nodes.
func (m *CheckFunctionManager) compile(values, reads []Source) (*Program, error) {
	e := newEmitter(m.numSlots, values)
	e.beginPart(validText, UserLine{})
	e.node(Node{Op: OpValid})
	parts, err := m.sorted()
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		e.beginPart(p.text, p.guard.Line)
		m.describe(e, &p.guard, false)
		if err := e.part(p); err != nil {
			return nil, err
		}
	}
	if err := e.values(values, m.printer); err != nil {
		return nil, err
	}
	for _, s := range reads {
		if _, known := e.regs[s.Name()]; known {
			continue
		}
		e.beginPart("___loads("+s.text(m.printer)+")", UserLine{})
		if _, err := e.register(s); err != nil {
			return nil, err
		}
	}
	if err := m.final(e); err != nil {
		return nil, err
	}
	return e.finish()
}

// unseen are the places of opts.Reads that the tensor check does not read.
func (m *CheckFunctionManager) unseen(opts Options) []Source {
	read := map[string]bool{}
	for _, g := range m.tensors {
		for s := g.Origin; s != nil; s = s.Base() {
			read[s.Name()] = true
		}
	}
	var out []Source
	for _, s := range opts.Reads {
		if !read[s.Name()] && (opts.GuardNNModules || !s.GuardSource().IsNNModule()) {
			out = append(out, s)
		}
	}
	return out
}

// final writes the tensor check, which compares torch's global state with it.
func (m *CheckFunctionManager) final(e *emitter) error {
	if len(m.tensors) == 0 && !m.needsState {
		return nil
	}
	text, line, flags := "___check_global_state()", m.stateLine, FlagState
	if len(m.tensors) > 0 {
		names := make([]string, len(m.tensors))
		var distinct []string
		for i, g := range m.tensors {
			names[i] = g.Origin.text(m.printer)
			if g.Args.Tensor.Fields&TensorDistinct != 0 {
				distinct = append(distinct, names[i])
			}
		}
		text, line = "___check_tensors("+strings.Join(names, ", ")+")", m.tensors[0].Line
		if len(distinct) > 1 {
			text += " and ___check_distinct(" + strings.Join(distinct, ", ") + ")"
			flags |= FlagDistinct
		}
	}
	e.beginPart(text, line)
	for _, g := range m.tensors {
		m.describe(e, &g, true)
		reg, err := e.register(g.Origin)
		if err != nil {
			return err
		}
		t := g.Args.Tensor
		e.program.Tensors = append(e.program.Tensors, TensorSpec{reg, t.Fields, t.StaticSizes, t.StaticStrides, t.Example})
	}
	e.node(Node{Op: OpTensors, Flags: flags, B: uint32(len(m.tensors))})
	return nil
}

// sorted orders the parts: by rank and depth, but after the parts they rest on. Parts that rest on each other are an error: left
// out, they would make an entry serve frames it was not made for.
func (m *CheckFunctionManager) sorted() ([]*part, error) {
	for i, p := range m.parts {
		p.order, p.cost = i, cost(p)
	}
	slices.SortFunc(m.parts, func(a, b *part) int {
		if a.cost != b.cost {
			return a.cost - b.cost
		}
		if c := a.guard.compare(&b.guard); c != 0 {
			return c
		}
		if a.stage != b.stage {
			return a.stage - b.stage
		}
		return a.order - b.order
	})
	at := map[string][]*part{} // by place
	for i, p := range m.parts {
		p.order, p.waiting, p.next = i, 0, nil
		// What is said of two places is no condition for looking below one of them: `a is not a[0]` would wait for itself.
		if p.guard.Origin != nil && p.guard.Args.Other == nil {
			at[p.guard.Name] = append(at[p.guard.Name], p)
		}
	}
	var ready partQueue
	for _, p := range m.parts {
		for _, before := range prerequisites(p, at) {
			before.next = append(before.next, p)
			p.waiting++
		}
	}
	for _, p := range m.parts {
		if p.waiting == 0 {
			ready = append(ready, p)
		}
	}
	heap.Init(&ready)
	out := make([]*part, 0, len(m.parts))
	for len(ready) > 0 {
		p := heap.Pop(&ready).(*part)
		out = append(out, p)
		for _, q := range p.next {
			if q.waiting--; q.waiting == 0 {
				heap.Push(&ready, q)
			}
		}
	}
	if len(out) != len(m.parts) {
		return nil, fmt.Errorf("guards: %d of %d parts rest on each other", len(m.parts)-len(out), len(m.parts))
	}
	return out, nil
}

// cost is a part's rank, plus what fetching its value takes; a part of a later stage costs what its kind costs or more.
func cost(p *part) int {
	depth := 0
	if p.guard.Origin != nil {
		for s := p.guard.Origin.Base(); s != nil; s = s.Base() {
			depth++
		}
	}
	return kindTable[p.guard.CreateFn].rank + p.stage + 2*depth
}

// prerequisites are the parts that must hold before p's value is looked at: earlier stages on the same place, and those on
// the nearest place below it that has any (which in turn wait for theirs).
func prerequisites(p *part, at map[string][]*part) []*part {
	if p.guard.Origin == nil {
		return nil
	}
	var out []*part
	for _, q := range at[p.guard.Name] {
		if q.stage < p.stage {
			out = append(out, q)
		}
	}
	out = append(out, nearest(p.guard.Origin, at)...)
	if other := p.guard.Args.Other; other != nil {
		out = append(out, nearest(other, at)...)
	}
	return out
}

// nearest are the parts on the nearest place below src that has any. A Source that only changes the family of its base is the
// same place under the same name.
func nearest(src Source, at map[string][]*part) []*part {
	for s := src.Base(); s != nil; s = s.Base() {
		if s.Name() == src.Name() {
			continue
		}
		if parts := at[s.Name()]; len(parts) > 0 {
			return parts
		}
	}
	return nil
}

// partQueue is a heap by cost order.
type partQueue []*part

func (q partQueue) Len() int           { return len(q) }
func (q partQueue) Less(i, j int) bool { return q[i].order < q[j].order }
func (q partQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *partQueue) Push(x any)        { *q = append(*q, x.(*part)) }
func (q *partQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// errTooLarge ends a translation whose guards do not fit a program: the frame is left to CPython.
func errTooLarge(what string, n int) error {
	return &exc.SkipFrame{Code: exc.TooLarge, Reason: fmt.Sprintf("guards: %d %s are too many for one program", n, what), Always: true}
}

// CheckFresh runs the program on the very frame it was made from: a guard that fails there would never hold, and the
// translation is to be left out at once. h and slots are as for Program.Eval.
func (m *CheckFunctionManager) CheckFresh(h Heap, slots []Value) error {
	if failed, ok := m.program.Eval(h, slots); !ok {
		return fmt.Errorf("guards: %q fails on the frame it was made from", m.program.FailedPart(failed))
	}
	return nil
}
