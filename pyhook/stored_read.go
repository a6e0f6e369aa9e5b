package pyhook

import (
	"bytes"
	"slices"
	"strings"

	"github.com/godynamo/godynamo/backends/fx"
	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/bytecode/translate"
	"github.com/godynamo/godynamo/cache"
	"github.com/godynamo/godynamo/cache/record"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
)

// restorer turns a record.Record into an entry for a frame. Objects that have a name are found by Python
// (godynamo._stored.objects.find), objects that have a place by reading that place of the frame. The guards then run on
// the frame, so a record that does not fit is a miss.
type restorer struct {
	s       *py.Scope
	inst    *installer
	frame   *translate.Frame
	rec     *record.Record
	objects py.Object // godynamo._stored.objects
	rows    py.Object // list, for Python
	found   []py.Object
	writers map[uint32]*record.Node
	regs    map[uint32]py.Object // registers read so far; null while one is being read, or if it cannot be read
	moved   [][2]string          // source files that have moved: the old name and the new one
}

// restored returns the entry of a record as a new reference.
func (i *installer) restored(s *py.Scope, f *translate.Frame, rec *record.Record,
	backend translate.Backend) (py.Object, error) {
	if rec.State != "" && rec.State != torchState(s) {
		return py.Object{}, missing("torch's global state is another")
	}
	if rec.Devices != "" && rec.Devices != askKeys(s, "devices") {
		return py.Object{}, missing("the machine has other devices")
	}
	if len(rec.Seed) > 0 {
		objects, err := s.Import("godynamo._stored.objects")
		if err != nil {
			return py.Object{}, err
		}
		if seed, err := hashSeed(s, objects, "seed"); err != nil || !bytes.Equal(seed, rec.Seed) {
			return py.Object{}, missing("the hash seed is another")
		}
	}
	r, g, err := i.foundAgain(s, f, rec)
	if err == nil && rec.Break != nil {
		err = i.breaksAgain(s, f, rec.Break)
	}
	if err == nil && len(rec.Graphs) > 0 {
		err = r.compile(g, backend)
	}
	if err == nil {
		err = r.finish(g)
	}
	if err != nil {
		return py.Object{}, err
	}
	entry, err := g.Install(s, i, f.Slots, f.Globals)
	if err != nil {
		return py.Object{}, err
	}
	if err := r.keepSizes(); err != nil {
		s.Adopt(entry)
		return py.Object{}, err
	}
	return entry, nil
}

// foundAgain returns the translation, so far without its function, and what has found its objects.
func (i *installer) foundAgain(s *py.Scope, f *translate.Frame, rec *record.Record) (*restorer, *cache.GuardedCode,
	error) {
	if rec.Program.NumSlots != len(f.Slots) {
		return nil, nil, missing("%d slots", len(f.Slots))
	}
	r := &restorer{s: s, inst: i, frame: f, rec: rec, found: make([]py.Object, len(rec.Objects)),
		writers: map[uint32]*record.Node{}, regs: map[uint32]py.Object{}}
	for k := range rec.Program.Nodes {
		if n := &rec.Program.Nodes[k]; guards.Op(n.Op).IsAccess() {
			r.writers[n.Dst] = n
		}
	}
	if err := r.find(); err != nil {
		return nil, nil, err
	}
	r.makeAnnotations()
	r.findFiles()
	g, err := r.guarded()
	return r, g, err
}

// findFiles finds the source files that have moved, and tells the guards' lines.
func (r *restorer) findFiles() {
	for _, f := range r.rec.Files {
		if now, ok := fileOf(r.s, r.found[f.Of]); ok && now != f.Name {
			r.moved = append(r.moved, [2]string{f.Name, now})
		}
	}
	p := &r.rec.Program
	for _, m := range r.moved {
		for i, name := range p.Files {
			if name == m[0] {
				p.Files[i] = m[1]
			}
		}
		p.Kinds = strings.ReplaceAll(p.Kinds, "\t"+m[0]+"\n", "\t"+m[1]+"\n")
	}
}

// breaksAgain returns an error if a new translation might not break the graph where this one does.
func (i *installer) breaksAgain(s *py.Scope, f *translate.Frame, rec *record.Record) error {
	r, g, err := i.foundAgain(s, f, rec)
	if err == nil {
		err = r.holds(g)
	}
	if err != nil {
		return missing("the graph may break elsewhere: %v", err)
	}
	return nil
}

// holds returns an error unless the guards hold on the frame.
func (r *restorer) holds(g *cache.GuardedCode) error {
	check, err := r.inst.NewCheck(r.s, g.Program, g.Pool)
	if err != nil {
		return err
	}
	if held, err := check.Holds(r.s, r.frame.Slots, r.frame.Globals); err != nil {
		return err
	} else if !held {
		return missing("the guards do not hold")
	}
	return nil
}

// find finds all objects: first those with a name, then those with a place, then what depends on these.
func (r *restorer) find() error {
	var err error
	if r.objects, err = r.s.Import("godynamo._stored.objects"); err != nil {
		return err
	}
	rows := make([]py.Object, len(r.rec.Objects))
	for i, o := range r.rec.Objects {
		items := make([]py.Object, len(o.Items))
		for k, it := range o.Items {
			items[k] = r.s.Int(int64(it))
		}
		rows[i] = r.s.Tuple(r.s.Int(int64(o.Kind)), r.s.Int(int64(o.Number)), r.s.Name(o.Text), r.s.Bytes(o.Data),
			r.s.Tuple(items...), r.s.Bytes(o.Print), py.Bool(o.Own))
	}
	r.rows = r.s.List(rows...)
	if err := r.ask(); err != nil {
		return err
	}
	for i := range r.found {
		r.object(uint32(i))
	}
	if err := r.resumes(); err != nil {
		return err
	}
	if err := r.ask(); err != nil {
		return err
	}
	list := make([]py.Object, len(r.found))
	for i, o := range r.found {
		if r.rec.Objects[i].Kind == record.KindGraph {
			o = py.None() // it is compiled once the guards have held
			r.found[i] = o
		}
		if o.IsNull() {
			return missing("object %d is not found", i)
		}
		list[i] = r.s.Tuple(o)
	}
	if _, err = r.s.CallMethod(r.objects, "check", r.rows, r.s.List(list...)); err != nil {
		return err
	}
	for _, pair := range r.rec.Registered {
		class, cls := r.found[pair[0]], r.found[pair[1]]
		if is, ok := py.Answered(r.s.IsSubclass(class, cls)); !ok || !is {
			return missing("%s is not registered", py.TypeName(class))
		}
	}
	for _, call := range r.rec.Folded {
		_, err := r.s.CallMethod(r.objects, "check_folded", r.found[call[0]], r.found[call[1]], r.found[call[2]])
		if err != nil {
			return err
		}
	}
	return nil
}

// ask lets Python find what it can.
func (r *restorer) ask() error {
	list := make([]py.Object, len(r.found))
	for i, o := range r.found {
		if list[i] = py.None(); !o.IsNull() {
			list[i] = r.s.Tuple(o)
		}
	}
	found := r.s.List(list...)
	if _, err := r.s.CallMethod(r.objects, "find", r.rows, r.frame.Function, found); err != nil {
		return err
	}
	for i, t := range r.s.Items(found) {
		if t.Kind() == py.Tuple {
			r.found[i] = r.s.Items(t)[0]
		}
	}
	return nil
}

// object returns an object, or a null one if it is not known yet.
func (r *restorer) object(i uint32) py.Object {
	o := &r.rec.Objects[i]
	if r.found[i].IsNull() {
		switch o.Kind {
		case record.KindRegister:
			r.found[i] = r.register(o.Number)
		case record.KindType:
			if v := r.register(o.Number); !v.IsNull() {
				r.found[i] = v.Type()
			}
		}
	}
	return r.found[i]
}

// register returns the value that the guard program reads into a register, or a null object. It runs no code of the
// program.
func (r *restorer) register(reg uint32) py.Object {
	n := r.rec.Program.NumSlots
	switch {
	case int(reg) < n:
		return r.frame.Slots[reg]
	case int(reg) == n:
		return r.frame.Globals
	case int(reg) == n+1:
		return r.frame.Builtins
	}
	if v, known := r.regs[reg]; known {
		return v
	}
	r.regs[reg] = py.Object{}
	node := r.writers[reg]
	if node == nil {
		return py.Object{}
	}
	if guards.Op(node.Op) == guards.OpConst {
		r.regs[reg] = r.constant(node.A)
	} else if v := r.register(node.Src); !v.IsNull() {
		if found, ok := r.access(node, v); ok {
			r.regs[reg] = r.s.Hold(found)
		}
	}
	return r.regs[reg]
}

// constant returns a constant of the guard program, or a null object if it is not known yet.
func (r *restorer) constant(i uint32) py.Object {
	if int(i) >= len(r.rec.Program.Consts) {
		return py.Object{}
	}
	c := r.rec.Program.Consts[i]
	if c.Object < 0 {
		return r.s.Interned(c.Name)
	}
	return r.object(uint32(c.Object))
}

// iteratorReads names the functions of _C that read iterators (pyhook/core/guards/iterators.c).
var iteratorReads = map[guards.Op]string{guards.OpIterPart: "iterator_part", guards.OpIterItem: "iterator_item",
	guards.OpIterValue: "iterator_value"}

// ofIterator reads a part or an item of an iterator of a builtin type, and does not advance it.
func (r *restorer) ofIterator(op guards.Op, v py.Object, i int64) (py.Object, bool) {
	m, ok := py.Answered(r.s.Import("godynamo._C"))
	if !ok {
		return py.Object{}, false
	}
	return py.Answered(r.s.CallMethod(m, iteratorReads[op], v, r.s.Int(i)))
}

// access does what a node of the guard program does with v (pyhook/core/guards/eval.c).
func (r *restorer) access(n *record.Node, v py.Object) (py.Object, bool) {
	s := r.s
	name := func() string { return py.GoString(r.constant(n.A)) }
	switch guards.Op(n.Op) {
	case guards.OpMove:
		return v, true
	case guards.OpDictGet:
		key := r.constant(n.A)
		if key.IsNull() || v.Kind() != py.Dict && v.Kind() != py.DictSub {
			return py.Object{}, false
		}
		return s.DictGet(v, key)
	case guards.OpDictItem:
		key := r.register(n.A)
		if key.IsNull() || v.Kind() != py.Dict && v.Kind() != py.DictSub {
			return py.Object{}, false
		}
		value, found := s.FindObject(v, key)
		return value, found == py.Found
	case guards.OpAttr:
		return s.InstanceAttr(v, name())
	case guards.OpModuleAttr:
		if v.Kind() != py.Module {
			return py.Object{}, false
		}
		d, ok := py.Answered(s.GetAttr(v, "__dict__"))
		if !ok {
			return py.Object{}, false
		}
		return s.DictGetName(d, name())
	case guards.OpSlot:
		descr, ok := s.TypeLookupQuietly(v.Type(), name())
		if !ok || descr.Kind() != py.Member {
			return py.Object{}, false
		}
		value, offset, ok := s.MemberValue(descr, v)
		return value, ok && offset == int(n.B)
	case guards.OpInstanceDict:
		return s.MadeDict(v)
	case guards.OpType:
		return v.Type(), true
	case guards.OpTypeAttr, guards.OpMroAttr, guards.OpMroClass:
		return r.classAccess(n, v, name)
	case guards.OpIndex:
		return r.item(v, int(int32(n.A)))
	case guards.OpDictKey:
		return s.KeyAt(v, int(int32(n.A)))
	case guards.OpDictValue:
		return s.ValueAt(v, int(int32(n.A)))
	case guards.OpIterPart, guards.OpIterItem, guards.OpIterValue:
		return r.ofIterator(guards.Op(n.Op), v, int64(n.A))
	case guards.OpFuncField:
		return r.field(v, n.A)
	case guards.OpGrad:
		return s.TensorGrad(v)
	case guards.OpCell:
		if v.Kind() != py.Cell {
			return py.Object{}, false
		}
		return s.CellContents(v)
	}
	return py.Object{}, false
}

func at(list []py.Object, i int) (py.Object, bool) {
	if i < 0 {
		i += len(list)
	}
	if i < 0 || i >= len(list) {
		return py.Object{}, false
	}
	return list[i], true
}

func (r *restorer) item(v py.Object, i int) (py.Object, bool) {
	switch v.Kind() {
	case py.List, py.Tuple, py.ListSub, py.TupleSub:
		return at(r.s.Items(v), i)
	}
	m, ok := py.Answered(r.s.Import("collections"))
	if !ok {
		return py.Object{}, false
	}
	if deque, ok := py.Answered(r.s.GetAttr(m, "deque")); !ok || v.Type() != deque {
		return py.Object{}, false
	}
	return py.Answered(r.s.GetItem(v, r.s.Int(int64(i))))
}

// classAccess reads a class along its MRO.
func (r *restorer) classAccess(n *record.Node, v py.Object, name func() string) (py.Object, bool) {
	if k := v.Kind(); k != py.TypeKind && k != py.TypeSub {
		return py.Object{}, false
	}
	if guards.Op(n.Op) == guards.OpTypeAttr {
		return r.s.TypeLookupQuietly(v, name())
	}
	index := n.A
	if guards.Op(n.Op) == guards.OpMroAttr {
		index = n.B
	}
	class, ok := at(r.s.Mro(v), int(index))
	if !ok || guards.Op(n.Op) == guards.OpMroClass {
		return class, ok
	}
	if r.s.MroIndex(class, name()) != 0 {
		return py.Object{}, false
	}
	return r.s.TypeLookupQuietly(class, name())
}

// functionFields maps fields of guard programs to those that py.Scope reads.
var functionFields = map[uint32]py.FunctionPart{
	uint32(guards.FuncCode): py.FuncCode, uint32(guards.FuncClosure): py.FuncClosure,
	uint32(guards.FuncDefaults): py.FuncDefaults, uint32(guards.FuncKwDefaults): py.FuncKwDefaults,
	uint32(guards.FuncGlobals): py.FuncGlobals, uint32(guards.FuncName): py.FuncName,
	uint32(guards.FuncQualName): py.FuncQualName, uint32(guards.FuncModule): py.FuncModule,
	uint32(guards.FuncTypeParams): py.FuncTypeParams, uint32(guards.FuncAnnotate): py.FuncAnnotate,
}

// makeAnnotations makes the dicts of annotations that the guards read. Before 3.14, CPython makes the dict of a
// function when it is first read, and the translator has read it.
func (r *restorer) makeAnnotations() {
	for _, n := range r.rec.Program.Nodes {
		if guards.Op(n.Op) == guards.OpFuncField && n.A == uint32(guards.FuncAnnotations) {
			r.register(n.Dst)
		}
	}
}

func (r *restorer) field(v py.Object, field uint32) (py.Object, bool) {
	part, known := functionFields[field]
	switch {
	case v.Kind() == py.Function && field == uint32(guards.FuncAnnotations) && py.Minor < 14:
		return py.Answered(r.s.GetAttr(v, "__annotations__"))
	case v.Kind() == py.Function && known:
		return r.s.FunctionField(v, part)
	case v.Kind() == py.Method && field == uint32(guards.MethodFunc):
		fn, _ := r.s.MethodParts(v)
		return fn, true
	case v.Kind() == py.Method && field == uint32(guards.MethodSelf):
		_, self := r.s.MethodParts(v)
		return self, true
	}
	return py.Object{}, false
}

// guarded returns the translation. Its pool has the objects, then the examples of tensors.
func (r *restorer) guarded() (*cache.GuardedCode, error) {
	rec := r.rec
	names := record.Names{IDs: make([]uint64, len(r.found))}
	for i, o := range r.found {
		names.IDs[i] = o.ID()
	}
	pool := append([]py.Object(nil), r.found...)
	for i := range rec.Program.Tensors {
		t := &rec.Program.Tensors[i]
		example := r.register(t.Reg)
		if example.IsNull() || example.Type() != r.found[t.Type] {
			return nil, missing("tensor %d", i)
		}
		meta, ok := metaOf(r.s, example)
		if !ok || !t.Fits(&meta) {
			return nil, missing("tensor %d is another", i)
		}
		if t.Marks != marksOf(r.s, example) {
			return nil, missing("tensor %d has other marks (mark_dynamic and the like)", i)
		}
		pool = append(pool, example)
	}
	program, err := rec.Program.Program(&names, func(tensor int) int { return len(r.found) + tensor })
	if err != nil {
		return nil, err
	}
	g := &cache.GuardedCode{OrigCode: r.frame.Code, Program: program, Pool: pool, Extra: rec.Extra,
		NeedsHook: rec.Flags.NeedsHook, Rerun: rec.Flags.Rerun, HandsOver: rec.Flags.HandsOver,
		Catches: rec.Flags.Catches, Watches: rec.Flags.Watches}
	return g, nil
}

// finish adds the function and what tracebacks and explain() show.
func (r *restorer) finish(g *cache.GuardedCode) error {
	if r.rec.Function != nil {
		var err error
		if g.Function, err = r.function(r.rec.Function, r.frame.Code, r.frame.Globals, r.frame.Builtins); err != nil {
			return err
		}
	}
	r.tracebacks(g)
	return r.info(g)
}

// compile compiles the graphs, if the guards hold.
func (r *restorer) compile(g *cache.GuardedCode, backend translate.Backend) error {
	compiler, ok := backend.(*fx.Backend)
	if !ok {
		return missing("the backend takes no graphs")
	}
	err := r.holds(g)
	if err != nil {
		return err
	}
	symbolic := false
	for i, o := range r.rec.Objects {
		if o.Kind != record.KindGraph {
			continue
		}
		row := &r.rec.Graphs[o.Number]
		m := fx.Made{Rows: r.found[row.Rows], Several: r.found[row.Several], Changed: r.found[row.Changed],
			OfModules: r.found[row.OfModules], Sizes: r.found[row.Sizes], Assumed: r.found[row.Assumed],
			Whole: row.Whole}
		symbolic = symbolic || m.Sizes != py.None()
		for _, reg := range row.Inputs {
			example := py.None()
			if reg >= 0 {
				example = r.register(uint32(reg))
			}
			m.Examples = append(m.Examples, example)
		}
		if r.found[i], err = compiler.Again(r.s, m); err != nil {
			return err
		}
	}
	facts, err := compiler.Facts(r.s)
	if err == nil && facts != r.rec.Facts && !(symbolic && within(facts, r.rec.Facts)) {
		err = missing("the backend has turned out to be another")
	}
	return err
}

// within reports whether all words of the first text are in the second one. In the first process, a graph for constant
// sizes showed what the backend does with sizes. Where the first graph has symbols, less is known.
func within(words, all string) bool {
	known := strings.Fields(all)
	for _, w := range strings.Fields(words) {
		if !slices.Contains(known, w) {
			return false
		}
	}
	return true
}

// function makes a function of the record from the user's code object. Its code is verified first.
func (r *restorer) function(f *record.Function, of, globals, builtins py.Object) (py.Object, error) {
	file, err := r.s.GetAttr(of, "co_filename")
	if err != nil {
		return py.Object{}, err
	}
	raw := f.Code.Raw(py.GoString(file))
	if err := verifyCode(raw, len(f.Closure) > 0); err != nil {
		return py.Object{}, err
	}
	objects := func(numbers []uint32) []py.Object {
		out := make([]py.Object, len(numbers))
		for i, n := range numbers {
			out[i] = r.found[n]
		}
		return out
	}
	code, err := r.inst.NewCode(r.s, raw, objects(f.Code.Consts))
	if err != nil {
		return py.Object{}, err
	}
	var closure py.Object
	if len(f.Closure) > 0 {
		cells := objects(f.Closure)
		for i, v := range cells {
			cells[i] = r.s.NewCell(v)
		}
		closure = r.s.Tuple(cells...)
	}
	return r.s.NewFunction(code, globals, builtins, closure, f.Name, f.QualName, py.Object{})
}

// resumes makes the callables for the rest of the frames. Their constants may depend on code with a place.
func (r *restorer) resumes() error {
	unknown := func(n uint32) bool { return r.found[n].IsNull() }
	lacks := func(row record.Resume) bool {
		return unknown(row.Of) || slices.ContainsFunc(row.Inlined, unknown) ||
			slices.ContainsFunc(row.Function.Code.Consts, unknown)
	}
	if slices.ContainsFunc(r.rec.Resumes, lacks) {
		if err := r.ask(); err != nil {
			return err
		}
	}
	for i, o := range r.rec.Objects {
		if o.Kind != record.KindResume {
			continue
		}
		row := &r.rec.Resumes[o.Number]
		if lacks(*row) {
			return missing("the code of a resume function, or a constant of it")
		}
		origin := &translate.Origin{Code: r.found[row.Of], Target: row.Target, Params: row.Params, Stack: row.Stack,
			Computed: row.Computed, Sizes: row.Sizes}
		if err := r.checkPlace(origin, row.Function.Code.LocalsPlusNames); err != nil {
			return err
		}
		globals, builtins := r.inst.globals, r.inst.builtins
		if len(row.Inlined) > 0 {
			globals, builtins = r.found[row.Inlined[0]], r.found[row.Inlined[1]]
			if globals.Kind() != py.Dict || builtins.Kind() != py.Dict {
				return missing("the globals of an inlined frame")
			}
		}
		w, err := r.inst.Resume(r.s, origin, globals, builtins,
			func() (py.Object, error) { return r.function(&row.Function, origin.Code, globals, builtins) })
		if err != nil {
			return err
		}
		r.found[i] = w
	}
	return nil
}

// checkPlace returns an error unless a frame can continue at a place: the user's code has the instruction, the stack is
// as high there, and the parameters, whose names come first in names, are variables of the code in its order. The
// translator relies on this.
func (r *restorer) checkPlace(o *translate.Origin, names []string) error {
	raw, _, err := r.inst.Decode(r.s, o.Code)
	if err != nil {
		return err
	}
	code, err := bytecode.Decode(raw, translate.Version)
	if err != nil {
		return err
	}
	depths, err := bytecode.StackDepths(code)
	if err != nil {
		return err
	}
	height := len(o.Stack) - strings.Count(o.Stack, "R") // this item is not on the user's stack
	if o.Target < 0 || o.Target >= len(depths) || depths[o.Target] != height {
		return missing("no frame continues at instruction %d", o.Target)
	}
	last := -1
	for i, slot := range o.Params {
		slot = max(slot, ^slot)
		if slot <= last || slot >= len(code.Locals) || i >= len(names) || !passes(code.Locals[slot], names[i]) {
			return missing("parameter %d is not variable %d", i, slot)
		}
		last = slot
	}
	return nil
}

// passes reports whether a parameter of a resume function has the name that the translator gives it for a variable.
func passes(l bytecode.Local, name string) bool {
	if l.Kind&opcode.CO_FAST_FREE != 0 {
		return strings.HasPrefix(name, "___cell_"+l.Name)
	}
	return name == l.Name
}

// tracebacks fills in the rows and chains.
func (r *restorer) tracebacks(g *cache.GuardedCode) {
	for _, row := range r.rec.Rows {
		g.Rows = append(g.Rows, cache.TracebackRow{Start: row.Start, End: row.End, Chain: row.Chain, Drop: row.Drop,
			Graph: row.Graph, Protected: row.Protected, Place: row.Place})
	}
	for _, ch := range r.rec.Chains {
		var levels []cache.Level
		for _, n := range ch.Levels {
			l := r.rec.Levels[n]
			levels = append(levels, cache.Level{Code: r.found[l.Code], Globals: r.found[l.Globals], Lasti: l.Lasti,
				Line: l.Line})
		}
		var shown []cache.ShownLocal
		for _, l := range ch.Shown {
			row := cache.ShownLocal{Index: l.Index, Place: l.Place}
			if l.Place < 0 {
				row.Value = r.found[l.Value]
			}
			shown = append(shown, row)
		}
		g.Chains, g.Shown = append(g.Chains, levels), append(g.Shown, shown)
		g.Nth, g.Done = append(g.Nth, ch.Nth), append(g.Done, ch.Done)
	}
	for _, op := range r.rec.Operations {
		g.Operations = append(g.Operations, cache.Operation{Name: op.Name, Chain: op.Chain, Outside: op.Outside})
	}
}

// info fills in what explain() shows.
func (r *restorer) info(g *cache.GuardedCode) error {
	g.Info = r.found[r.rec.Info]
	if g.Info.Kind() != py.Dict {
		return missing("no record for explain()")
	}
	if len(r.moved) > 0 {
		var pairs []py.Object
		for _, m := range r.moved {
			pairs = append(pairs, r.s.Tuple(r.s.Str(m[0]), r.s.Str(m[1])))
		}
		info, err := r.s.CallMethod(r.objects, "moved", g.Info, r.s.Tuple(pairs...))
		if err != nil {
			return err
		}
		g.Info = info
	}
	r.s.DictSet(g.Info, "guards", r.s.Str(strings.Join(g.Program.Parts, " and ")))
	r.s.DictSet(g.Info, "guard_kinds", r.s.Str(g.Program.Kinds))
	return nil
}

// keepSizes notes the places that hold ints computed from sizes.
func (r *restorer) keepSizes() error {
	var list []translate.SizePlaces
	for _, p := range r.rec.Sizes {
		row := translate.SizePlaces{Of: r.found[p.Of], Names: p.Names, Result: p.Result}
		if p.Result != "" {
			row.From = r.found[p.From]
		}
		list = append(list, row)
	}
	return r.inst.keepSizePlaces(r.s, list)
}
