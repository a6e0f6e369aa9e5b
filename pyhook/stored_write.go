package pyhook

import (
	"maps"
	"slices"

	"github.com/godynamo/godynamo/backends/fx"
	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/bytecode/translate"
	"github.com/godynamo/godynamo/cache"
	"github.com/godynamo/godynamo/cache/record"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
)

// recorder converts a finished translation to a record.Record. Python describes the objects
// (godynamo._stored.objects.Table).
type recorder struct {
	s       *py.Scope
	objects py.Object // godynamo._stored.objects
	table   py.Object
	numbers map[py.Object]uint32
	names   record.Names
	levels  map[cache.Level]uint32
	// compiled is the backend if it takes whole graphs, else nil.
	compiled *fx.Backend
	out      record.Record
	err      error // the first object that cannot be described
}

func newRecorder(s *py.Scope, objects py.Object) *recorder {
	return &recorder{s: s, objects: objects, numbers: map[py.Object]uint32{}, levels: map[cache.Level]uint32{},
		names: record.Names{Numbers: map[uint64]uint32{}}}
}

// recorded returns the record of a translation of the frame f. The error says which object cannot be described.
func (i *installer) recorded(s *py.Scope, f *translate.Frame, g *cache.GuardedCode, r *translate.Result,
	backend translate.Backend) (*record.Record, error) {
	objects, err := s.Import("godynamo._stored.objects")
	if err != nil {
		return nil, err
	}
	w := newRecorder(s, objects)
	w.compiled, _ = backend.(*fx.Backend)
	if err := w.open(f, g); err != nil {
		return nil, err
	}
	if r.OnlyHere.Local != "" {
		return nil, notStored(r.OnlyHere.Local)
	}
	if r.Abandoned != nil && r.Abandoned.Local() != "" {
		return nil, notStored(r.Abandoned.Local())
	}
	if r.OnlyHere.Seeded {
		if w.out.Seed, err = hashSeed(s, objects, "lasting_seed"); err != nil {
			return nil, err
		}
	}
	if r.OnlyHere.Devices {
		w.out.Devices = askKeys(s, "devices")
	}
	for _, pair := range r.OnlyHere.Registered {
		w.out.Registered = append(w.out.Registered, [2]uint32{w.object(pair[0]), w.object(pair[1])})
	}
	for _, call := range r.OnlyHere.Folded {
		w.out.Folded = append(w.out.Folded, [3]uint32{w.object(call[0]), w.object(call[1]), w.object(call[2])})
	}
	w.compiledGraphs(g)
	w.function(i, g)
	w.program(g)
	w.tracebacks(g)
	w.out.Flags.Breaks = len(r.Breaks) > 0
	w.sizes(r.SizePlaces)
	w.info(g)
	w.files()
	if w.err == nil {
		w.rows()
	}
	if w.err == nil && r.Abandoned != nil {
		w.out.Break = brokenBy(s, objects, f, r.Abandoned)
	}
	return &w.out, w.err
}

// brokenBy returns the guards of the attempt that led to a graph break as a record. It returns nil if they cannot be
// stored: without them, other processes may load the translation where a new one would not break.
func brokenBy(s *py.Scope, objects py.Object, f *translate.Frame, a *translate.Abandoned) *record.Record {
	p, pool, err := a.Program()
	if err != nil {
		return nil
	}
	g := &cache.GuardedCode{Program: p, Pool: pool}
	w := newRecorder(s, objects)
	if w.open(f, g) != nil {
		return nil
	}
	clear(p.Parts) // nobody reads the texts
	clear(p.PartLines)
	w.program(g)
	if w.err == nil {
		w.rows()
	}
	if w.err != nil {
		return nil
	}
	return &w.out
}

// open makes the table, which must know where objects can be found in a frame and which are resume callables.
func (w *recorder) open(f *translate.Frame, g *cache.GuardedCode) error {
	places, err := w.s.Dict()
	if err != nil {
		return err
	}
	writers := writersOf(g.Program)
	for _, n := range g.Program.Nodes {
		kind := 0
		switch n.Op {
		case guards.OpIDMatch:
			kind = int(record.KindRegister)
		case guards.OpTypeMatch:
			kind = int(record.KindType)
		default:
			continue
		}
		c := g.Program.Consts[n.A]
		if c.Index < 0 || readsConst(g.Program, writers, n.Src, n.A) {
			continue
		}
		key := w.s.Int(int64(g.Pool[c.Index].ID()))
		if _, known := w.s.DictGet(places, key); known {
			continue
		}
		where := w.s.Tuple(w.s.Int(int64(kind)), w.s.Int(int64(n.Src)))
		if _, err := w.s.CallMethod(places, "__setitem__", key, where); err != nil {
			return err
		}
	}
	made, err := w.s.Dict()
	if err != nil {
		return err
	}
	add := func(o py.Object, kind record.Kind, number int) error {
		row := w.s.Tuple(w.s.Int(int64(kind)), w.s.Int(int64(number)))
		_, err := w.s.CallMethod(made, "__setitem__", w.s.Int(int64(o.ID())), row)
		return err
	}
	for k, o := range w.resumes(g) {
		if err := add(o, record.KindResume, k); err != nil {
			return err
		}
	}
	for k, m := range w.graphs(g) {
		if err := add(m.Callable, record.KindGraph, k); err != nil {
			return err
		}
	}
	w.table, err = w.s.CallMethod(w.objects, "Table", f.Function, places, made, w.s.Tuple(g.Pool...))
	return err
}

// graphs returns the compiled graphs among the function's constants.
func (w *recorder) graphs(g *cache.GuardedCode) []fx.Made {
	if w.compiled == nil {
		return nil
	}
	var out []fx.Made
	for _, o := range closureOf(w.s, g.Function) {
		for _, m := range w.compiled.Made() {
			if m.Callable == o {
				out = append(out, m)
				break
			}
		}
	}
	return out
}

// compiledGraphs describes the compiled graphs, so that another process compiles them again.
func (w *recorder) compiledGraphs(g *cache.GuardedCode) {
	if w.compiled == nil {
		return
	}
	inputs := map[py.Object]uint32{}
	for _, t := range g.Program.Tensors {
		inputs[g.Pool[t.Example.Index]] = t.Reg
	}
	for _, m := range w.graphs(g) {
		row := record.Graph{Rows: w.plain(m.Rows), Several: w.plain(m.Several), Changed: w.object(m.Changed),
			OfModules: w.object(m.OfModules), Sizes: w.plain(m.Sizes), Assumed: w.plain(m.Assumed), Whole: m.Whole}
		for _, example := range m.Examples {
			reg, known := inputs[example]
			switch {
			case known:
				row.Inputs = append(row.Inputs, int(reg))
			case m.Sizes != py.None() && example.Kind() == py.Int:
				row.Inputs = append(row.Inputs, -1)
			default:
				w.refuse("an input of the graph is no tensor of the frame")
				return
			}
		}
		if m.Sizes != py.None() && !w.derivable(m) {
			w.refuse("the compiler's symbols are not all sizes of the graph's inputs")
			return
		}
		w.out.Graphs = append(w.out.Graphs, row)
	}
	if w.err == nil {
		w.out.Facts, w.err = w.compiled.Facts(w.s)
	}
}

// derivable reports whether the tensors among a graph's inputs determine its symbols.
func (w *recorder) derivable(m fx.Made) bool {
	symbolic, ok := py.Answered(w.s.Import("godynamo._backends.symbolic"))
	if !ok {
		return false
	}
	v, ok := py.Answered(w.s.CallMethod(symbolic, "derivable", m.Sizes, w.s.List(m.Examples...)))
	return ok && v == py.True()
}

// plain returns the number of data that godynamo has made.
func (w *recorder) plain(o py.Object) uint32 {
	if w.err != nil {
		return 0
	}
	v, err := w.s.CallMethod(w.table, "add_plain", o, py.True())
	if err != nil {
		w.err = err
		return 0
	}
	n, _ := py.AsInt(v)
	return uint32(n)
}

// writersOf returns the node that writes each register, by register.
func writersOf(p *guards.Program) map[uint32]*guards.Node {
	writers := make(map[uint32]*guards.Node, p.NumRegs)
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Op.IsAccess() {
			writers[n.Dst] = n
		}
	}
	return writers
}

// readsConst reports whether a constant must be known to fetch the value of a register.
func readsConst(p *guards.Program, writers map[uint32]*guards.Node, reg, constant uint32) bool {
	for n := writers[reg]; n != nil; n = writers[n.Src] {
		if n.Op == guards.OpConst {
			return n.A == constant
		}
	}
	return false
}

// resumes returns the resume callables among the function's constants.
func (w *recorder) resumes(g *cache.GuardedCode) []py.Object {
	var out []py.Object
	for _, o := range closureOf(w.s, g.Function) {
		if fn, ok := resumeFunction(w.s, o); ok && readOrigin(w.s, fn) != nil {
			out = append(out, o)
		}
	}
	return out
}

// resumeFunction returns the function that a Callable wraps.
func resumeFunction(s *py.Scope, o py.Object) (py.Object, bool) {
	if o.Kind() != py.Other || py.TypeName(o.Type()) != "godynamo._C.Callable" {
		return py.Object{}, false
	}
	return py.Answered(s.GetAttr(o, "function"))
}

// closureOf returns the contents of a function's cells.
func closureOf(s *py.Scope, fn py.Object) []py.Object {
	if fn.IsNull() {
		return nil
	}
	cells, ok := s.FunctionField(fn, py.FuncClosure)
	if !ok {
		return nil
	}
	var out []py.Object
	for _, c := range s.Items(cells) {
		v, _ := s.CellContents(c)
		out = append(out, v)
	}
	return out
}

// object returns the number of an object.
func (w *recorder) object(o py.Object) uint32 {
	if n, ok := w.numbers[o]; ok || w.err != nil {
		return n
	}
	v, err := w.s.CallMethod(w.table, "add", o)
	if err != nil {
		w.err = err
		return 0
	}
	n, _ := py.AsInt(v)
	w.numbers[o], w.names.Numbers[o.ID()] = uint32(n), uint32(n)
	return uint32(n)
}

func (w *recorder) all(list []py.Object) []uint32 {
	out := make([]uint32, len(list))
	for i, o := range list {
		out[i] = w.object(o)
	}
	return out
}

// function describes the transformed function and the resume functions that it calls.
func (w *recorder) function(i *installer, g *cache.GuardedCode) {
	if g.Function.IsNull() {
		return
	}
	for _, o := range w.resumes(g) {
		fn, _ := resumeFunction(w.s, o)
		origin := readOrigin(w.s, fn)
		row := record.Resume{Of: w.object(origin.Code), Target: origin.Target, Params: origin.Params,
			Computed: origin.Computed, Sizes: origin.Sizes, Stack: origin.Stack, Function: w.made(i, fn)}
		globals, _ := w.s.FunctionField(fn, py.FuncGlobals)
		builtins, err := w.s.GetAttr(fn, "__builtins__")
		if err != nil {
			w.err = err
			return
		}
		if globals != i.globals || builtins != i.builtins {
			row.Inlined = w.all([]py.Object{globals, builtins})
		}
		w.out.Resumes = append(w.out.Resumes, row)
	}
	f := w.made(i, g.Function)
	w.out.Function = &f
}

// made describes a function that the translation has made.
func (w *recorder) made(i *installer, fn py.Object) record.Function {
	code, _ := w.s.FunctionField(fn, py.FuncCode)
	raw, consts, err := i.Decode(w.s, code)
	if err != nil {
		w.err = err
		return record.Function{}
	}
	name, _ := w.s.FunctionField(fn, py.FuncName)
	qualName, _ := w.s.FunctionField(fn, py.FuncQualName)
	return record.Function{Name: py.GoString(name), QualName: py.GoString(qualName),
		Code: record.CodeOf(raw, w.all(consts)), Closure: w.all(closureOf(w.s, fn))}
}

// program describes the guards.
func (w *recorder) program(g *cache.GuardedCode) {
	p := g.Program
	for _, n := range p.Nodes {
		switch {
		case n.Op == guards.OpObjectMutation:
			w.refuse("a guard compares an object with what it was in this process")
		case n.Op == guards.OpTensors && n.Flags&guards.FlagState != 0:
			w.out.State = torchState(w.s)
		}
	}
	for _, c := range p.Consts {
		if c.Index >= 0 {
			w.object(g.Pool[c.Index])
		}
	}
	types := make([]uint32, len(p.Tensors))
	metas := make([]record.Meta, len(p.Tensors))
	for i, t := range p.Tensors {
		example := g.Pool[t.Example.Index]
		types[i] = w.object(example.Type())
		meta, ok := metaOf(w.s, example)
		if !ok {
			w.refuse("a tensor has sizes or strides that are not numbers")
		}
		metas[i] = meta
	}
	w.out.Extra = g.Extra
	w.out.Program = record.FromProgram(p, &w.names, func(pool int) uint32 { return w.object(g.Pool[pool]) })
	for i := range w.out.Program.Tensors {
		t := &w.out.Program.Tensors[i]
		t.Type, t.Meta, t.Marks = types[i], metas[i], marksOf(w.s, g.Pool[p.Tensors[i].Example.Index])
	}
}

// refuse records that the translation cannot be stored.
func (w *recorder) refuse(why string) {
	if w.err == nil {
		w.err = notStored(why)
	}
}

// tracebacks describes the rows and chains from which tracebacks are made.
func (w *recorder) tracebacks(g *cache.GuardedCode) {
	for _, r := range g.Rows {
		w.out.Rows = append(w.out.Rows, record.Row{Start: r.Start, End: r.End, Chain: r.Chain, Drop: r.Drop,
			Graph: r.Graph, Protected: r.Protected, Place: r.Place})
	}
	for k, ch := range g.Chains {
		c := record.Chain{Nth: g.Nth[k], Done: g.Done[k]}
		for _, l := range ch {
			n, ok := w.levels[l]
			if !ok {
				n = uint32(len(w.out.Levels))
				w.levels[l] = n
				w.out.Levels = append(w.out.Levels, record.Level{Code: w.object(l.Code), Globals: w.object(l.Globals),
					Lasti: l.Lasti, Line: l.Line})
			}
			c.Levels = append(c.Levels, n)
		}
		for _, l := range g.Shown[k] {
			shown := record.Shown{Index: l.Index, Place: l.Place}
			if l.Place < 0 {
				shown.Value = w.object(l.Value)
			}
			c.Shown = append(c.Shown, shown)
		}
		w.out.Chains = append(w.out.Chains, c)
	}
	for _, op := range g.Operations {
		w.out.Operations = append(w.out.Operations, record.Operation{Name: op.Name, Chain: op.Chain,
			Outside: op.Outside})
	}
	w.out.Flags = record.Flags{NeedsHook: g.NeedsHook, Rerun: g.Rerun, HandsOver: g.HandsOver, Catches: g.Catches,
		Watches: g.Watches}
}

// sizes describes the places that hold ints computed from sizes.
func (w *recorder) sizes(places []translate.SizePlaces) {
	for _, p := range places {
		if _, known := w.numbers[p.Of]; p.Of.Kind() != py.Code && !known {
			continue // the function does not call this resume callable
		}
		row := record.SizePlace{Of: w.object(p.Of), Names: p.Names, Result: p.Result}
		if p.Result != "" {
			row.From = w.object(p.From)
		}
		w.out.Sizes = append(w.out.Sizes, row)
	}
}

// info describes what explain() shows, except the texts of guards, which the program has.
func (w *recorder) info(g *cache.GuardedCode) {
	info, err := w.s.CallMethod(g.Info, "copy")
	if err == nil {
		w.s.DictSet(info, "guards", w.s.Str(""))
		w.s.DictSet(info, "guard_kinds", w.s.Str(""))
		info, err = w.s.CallMethod(w.table, "add_plain", info)
	}
	if err != nil {
		w.err = err
		return
	}
	n, _ := py.AsInt(info)
	w.out.Info = uint32(n)
}

// files notes the source files of all code objects and functions, one object for each file.
func (w *recorder) files() {
	first := map[string]uint32{}
	for o, n := range w.numbers {
		if name, ok := fileOf(w.s, o); ok {
			if known, found := first[name]; !found || n < known {
				first[name] = n
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(first)) {
		w.out.Files = append(w.out.Files, record.File{Of: first[name], Name: name})
	}
}

// fileOf returns the source file of a code object or a function.
func fileOf(s *py.Scope, o py.Object) (string, bool) {
	if o.Kind() == py.Function {
		o, _ = s.FunctionField(o, py.FuncCode)
	}
	if o.IsNull() || o.Kind() != py.Code {
		return "", false
	}
	v, ok := py.Answered(s.GetAttr(o, "co_filename"))
	return py.GoString(v), ok
}

// rows copies the table.
func (w *recorder) rows() {
	list, err := w.s.GetAttr(w.table, "rows")
	if err != nil {
		w.err = err
		return
	}
	for _, row := range w.s.Items(list) {
		f := w.s.Items(row)
		kind, _ := py.AsInt(f[0])
		number, _ := py.AsInt(f[1])
		o := record.Object{Kind: record.Kind(kind), Number: uint32(number), Text: py.GoString(f[2]),
			Data: py.BytesOf(f[3]), Print: py.BytesOf(f[5]), Own: f[6] == py.True()}
		for _, it := range w.s.Items(f[4]) {
			n, _ := py.AsInt(it)
			o.Items = append(o.Items, uint32(n))
		}
		w.out.Objects = append(w.out.Objects, o)
	}
}

// hashSeed returns bytes that distinguish hash seeds. They come from a function of godynamo._stored.objects: "seed", or
// "lasting_seed" to store them.
func hashSeed(s *py.Scope, objects py.Object, function string) ([]byte, error) {
	v, err := s.CallMethod(objects, function)
	if err != nil {
		return nil, err
	}
	return py.BytesOf(v), nil
}

// notStored is the reason why a translation cannot be stored.
type notStored string

func (why notStored) Error() string { return string(why) }

// verifyCode returns an error unless the code is well-formed: its operands are in range, its jumps lead to
// instructions, its stack is as deep as it says, and it copies cells only if its function has them.
func verifyCode(raw *bytecode.Raw, cells bool) error {
	code, err := bytecode.Decode(raw, translate.Version)
	if err != nil {
		return err
	}
	for _, in := range code.Instructions {
		if in.Op == opcode.COPY_FREE_VARS && !cells {
			return notStored("the code copies cells that its function does not have")
		}
	}
	depths, err := bytecode.StackDepths(code)
	if err != nil {
		return err
	}
	for _, d := range depths {
		if d > raw.StackSize {
			return notStored("the code needs a deeper stack than it says")
		}
	}
	return nil
}
