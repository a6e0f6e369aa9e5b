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
	// also check the inside of nn.Modules; if false, those guards are left out, as in TorchDynamo
	GuardNNModules bool
	SlotNames      []string // names of the slots; a global with one of these names is printed as G['name']
	// Reads are places that the frame read, although the translation does not depend on their values. The guard program
	// checks that each of them can be read. A place that the program reads for another purpose needs no such check.
	Reads []Source
	// Anonymous leaves out Program.Kinds, for a program that is not shown to users.
	Anonymous bool
}

// CheckFunctionManager turns all guards of a translation into one Program and one text.
//
// Parts are in the order in which they are checked: first `___guarded_code.valid`, then the others by ascending
// rank, then the check of the tensors and of torch's global state, and last the conditions on sizes. A part comes
// after the parts on the places from which its value is read. The order depends only on the set of guards, not on
// the order in which the guards were made.
type CheckFunctionManager struct {
	numSlots   int
	printer    *printer
	unguarded  func(GuardSource) bool // whether guards on places of a family are left out
	parts      []*part
	room       []part // the next parts are stored here; a full array is replaced and not copied
	tensors    []*Guard
	conditions []*part // on sizes and ints
	needsState bool
	threads    bool // whether the number of threads is part of the state
	anonymous  bool
	places     uint8           // number of QUIET_* guards (see QuietAt), at most maxPlaces
	pinned     map[string]bool // places whose value is checked to be a tensor or to equal a constant
	stateLine  UserLine
	kinds      strings.Builder
	program    *Program
}

// part is one condition of the guard text, with its check.
type part struct {
	guard *Guard
	stage int
	text  string
	check check

	cost    int     // the result of the function cost
	order   int     // position in the order by cost alone
	waiting int     // prerequisites not yet emitted
	next    []*part // parts that wait for this part
}

// validText is the text of the first part.
const validText = "___guarded_code.valid"

// NewCheckFunctionManager builds the program for a frame of numSlots slots. values are the Sources of the transformed
// function's parameters after the slots, in order. It returns an error for a malformed guard.
func NewCheckFunctionManager(numSlots int, set Set, values []Source, opts Options) (*CheckFunctionManager, error) {
	unguarded := func(family GuardSource) bool {
		return family == SourcePolyfill || !opts.GuardNNModules && family.IsNNModule()
	}
	all := sortedGuards(set.Guards())
	all = slices.DeleteFunc(all, func(g *Guard) bool { return unguarded(g.Source) })
	opts.Reads = slices.DeleteFunc(slices.Clone(opts.Reads),
		func(s Source) bool { return s.GuardSource() == SourcePolyfill })
	m := &CheckFunctionManager{numSlots: numSlots, unguarded: unguarded, anonymous: opts.Anonymous,
		parts:   make([]*part, 0, len(all)+len(all)/8),
		printer: newPrinter(all, append(slices.Clone(values), opts.Reads...), opts.SlotNames)}
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
	program.Kinds = m.kinds.String()
	return m, nil
}

// TextOf returns the text of a Source, in the form that the guard text uses.
func (m *CheckFunctionManager) TextOf(src Source) string { return printed(src, m.printer) }

// maxPlaces is the largest number of QUIET_* guards that a program counts. It equals 1 + HELD in core/guards/end.c, the
// number of references to one object that the C core ignores in one attempt to translate.
const maxPlaces = 7

// countQuiet counts the QUIET_* guards, which are on values that the frame drops. It also finds the values for
// which no such guard is needed.
func (m *CheckFunctionManager) countQuiet(all []*Guard) {
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

// describe adds a guard's line to Program.Kinds, for the current part. If `own` is set, it also appends the
// line of the user's code that was being translated when the guard was made.
func (m *CheckFunctionManager) describe(e *emitter, g *Guard, own bool) {
	if m.anonymous {
		return
	}
	if m.kinds.Cap() == 0 {
		m.kinds.Grow(m.lengthOfKinds())
	}
	columns := [...]string{strconv.Itoa(len(e.program.Parts) - 1), g.CreateFn.String(), g.Source.String(), g.Name}
	for i, column := range columns {
		if i > 0 {
			m.kinds.WriteByte('\t')
		}
		m.kinds.WriteString(column)
	}
	if own && g.Line.File != "" {
		m.kinds.WriteByte('\t')
		m.kinds.WriteString(strconv.Itoa(g.Line.Line))
		m.kinds.WriteByte('\t')
		m.kinds.WriteString(g.Line.File)
	}
	m.kinds.WriteByte('\n')
}

// lengthOfKinds returns a bound of the length of Program.Kinds.
func (m *CheckFunctionManager) lengthOfKinds() int {
	const aroundName = 64 // the other columns, except a file
	n := 0
	for _, parts := range [][]*part{m.parts, m.conditions} {
		for _, p := range parts {
			n += aroundName + len(p.guard.Name)
		}
	}
	for _, g := range m.tensors {
		n += aroundName + len(g.Name) + len(g.Line.File)
	}
	return n
}

// Program returns the verified program.
func (m *CheckFunctionManager) Program() *Program { return m.program }

// CodeParts returns the conditions of the guard text in order.
func (m *CheckFunctionManager) CodeParts() []string { return m.program.Parts }

// Text returns the whole condition: executable Python in the environment of godynamo._called.guard_env.
func (m *CheckFunctionManager) Text() string { return strings.Join(m.program.Parts, " and ") }

// sortedGuards returns the guards in the order of Guard.Compare.
func sortedGuards(set []*Guard) []*Guard {
	out := slices.Clone(set)
	slices.SortFunc(out, (*Guard).compare) // no two guards of a set are equal
	return out
}

// newPrinter finds the roots (sources without a base) and decides which of them the text can print as bare
// names.
func newPrinter(all []*Guard, values []Source, slotNames []string) *printer {
	p := &printer{globals: map[string]bool{}, cells: map[string]bool{}, quoted: map[string]bool{},
		texts: map[Source]string{}}
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
	var visit func(src Source)
	visit = func(src Source) {
		keys(src, visit)
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
		for s := range g.Args.Cond.sources {
			visit(s)
		}
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

// dropDuplicates removes each part whose text occurred before, since parts with equal texts check the same
// condition. If two kinds print the same text (TYPE_MATCH, and the type check of LIST_LENGTH), the earlier part
// stays.
func (m *CheckFunctionManager) dropDuplicates() {
	seen := map[string]bool{}
	twice := func(p *part) bool {
		if seen[p.text] {
			return true
		}
		seen[p.text] = true
		return false
	}
	m.parts = slices.DeleteFunc(m.parts, twice)
	m.conditions = slices.DeleteFunc(m.conditions, twice)
}

// compile orders the parts and writes the nodes.
func (m *CheckFunctionManager) compile(values, reads []Source) (*Program, error) {
	e := newEmitter(m.numSlots, values, 1+len(m.parts)+len(values)+len(reads)+1+len(m.conditions))
	e.beginPart(validText, UserLine{})
	e.node(Node{Op: OpValid})
	parts, err := m.sorted()
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		e.beginPart(p.text, p.guard.Line)
		m.describe(e, p.guard, false)
		if err := e.part(p); err != nil {
			return nil, err
		}
	}
	if err := e.values(values, m.printer); err != nil {
		return nil, err
	}
	for _, p := range m.conditions {
		for s := range p.guard.Args.Cond.sources {
			if property(s) == nil {
				reads = append(reads, s)
			}
		}
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
	for _, p := range m.conditions {
		e.beginPart(p.text, p.guard.Line)
		m.describe(e, p.guard, false)
		if err := e.condition(p.guard.Args.Cond); err != nil {
			return nil, err
		}
	}
	if err := e.sizes(values, m.printer); err != nil {
		return nil, err
	}
	return e.finish()
}

// unseen returns the places in opts.Reads that the tensor check does not read.
func (m *CheckFunctionManager) unseen(opts Options) []Source {
	read := map[string]bool{}
	for _, g := range m.tensors {
		for s := g.Origin; s != nil; s = s.Base() {
			read[s.Name()] = true
		}
	}
	var out []Source
	for _, s := range opts.Reads {
		if p := property(s); p != nil {
			s = p.Base() // the check of the tensor covers its sizes
		}
		if !read[s.Name()] && (opts.GuardNNModules || !s.GuardSource().IsNNModule()) {
			out = append(out, s)
		}
	}
	return out
}

// final writes the tensor check, which also compares torch's global state.
func (m *CheckFunctionManager) final(e *emitter) error {
	if len(m.tensors) == 0 && !m.needsState {
		return nil
	}
	text, line, flags := "___check_global_state()", m.stateLine, FlagState
	if m.threads {
		flags |= FlagThreads
	}
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
		m.describe(e, g, true)
		reg, err := e.register(g.Origin)
		if err != nil {
			return err
		}
		t := g.Args.Tensor
		e.program.Tensors = append(e.program.Tensors,
			TensorSpec{reg, t.Fields, t.StaticSizes, t.StaticStrides, t.Example})
	}
	e.node(Node{Op: OpTensors, Flags: flags, B: uint32(len(m.tensors))})
	return nil
}

// sorted orders the parts by cost (see the function cost), but puts each part after its prerequisites. A cycle
// of prerequisites is an error: without those parts the entry would serve frames for which it was not made.
func (m *CheckFunctionManager) sorted() ([]*part, error) {
	for i, p := range m.parts {
		p.order, p.cost = i, cost(p)
	}
	slices.SortFunc(m.parts, func(a, b *part) int {
		if a.cost != b.cost {
			return a.cost - b.cost
		}
		if c := a.guard.compare(b.guard); c != 0 {
			return c
		}
		if a.stage != b.stage {
			return a.stage - b.stage
		}
		return a.order - b.order
	})
	at := make(map[string][]*part, len(m.parts)/2) // parts by the name of their place
	for i, p := range m.parts {
		p.order, p.waiting, p.next = i, 0, nil
		// A check of two places is no prerequisite of the places read from them: `a is not a[0]` would wait for itself.
		if p.guard.Origin != nil && p.guard.Args.Other == nil {
			at[p.guard.Name] = append(at[p.guard.Name], p)
		}
	}
	ready := make(partQueue, 0, len(m.parts))
	for _, p := range m.parts {
		prerequisites(p, at, func(before *part) {
			before.next = append(before.next, p)
			p.waiting++
		})
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

// cost returns the sum of a part's rank, its stage and the cost of fetching its value.
func cost(p *part) int {
	depth := 0
	if p.guard.Origin != nil {
		for s := p.guard.Origin.Base(); s != nil; s = s.Base() {
			depth++
		}
	}
	return kindTable[p.guard.CreateFn].rank + p.stage + 2*depth
}

// prerequisites calls do for the parts that must hold before p's value is read: parts of earlier stages on the
// same place, and the parts on the nearest base place that has parts. Those parts have their own
// prerequisites.
func prerequisites(p *part, at map[string][]*part, do func(*part)) {
	if p.guard.Origin == nil {
		return
	}
	if p.stage > 0 {
		for _, q := range at[p.guard.Name] {
			if q.stage < p.stage {
				do(q)
			}
		}
	}
	for _, q := range nearest(p.guard.Origin, at) {
		do(q)
	}
	if other := p.guard.Args.Other; other != nil {
		for _, q := range nearest(other, at) {
			do(q)
		}
	}
}

// nearest goes from src to its base, the base's base and so on, and returns the parts on the first of these
// places that has parts. A Source that only changes the family of its base is the same place as the base and
// has the same name.
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

// partQueue is a heap of parts in the order by cost.
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

// errTooLarge returns the error for guards that do not fit into one program. It ends the translation, and
// CPython runs the frame.
func errTooLarge(what string, n int) error {
	return &exc.SkipFrame{Code: exc.TooLarge, Reason: fmt.Sprintf("guards: %d %s are too many for one program", n,
		what), Always: true}
}

// CheckFresh runs the program on the frame from which it was made. A guard that fails there would never
// hold, so the translation must be discarded at once. h and slots are as for Program.Eval.
func (m *CheckFunctionManager) CheckFresh(h Heap, slots []Value) error {
	if failed, ok := m.program.Eval(h, slots); !ok {
		return fmt.Errorf("guards: %q fails on the frame it was made from", m.program.FailedPart(failed))
	}
	return nil
}
