package pyhook

// #include <stdlib.h>
// #include <string.h>
// #include "bridge.h"
import "C"

import (
	"encoding/binary"
	"runtime"
	"unsafe"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/translate"
	"github.com/godynamo/godynamo/cache"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
)

// installer makes CPython objects from a translation's result, through the C core (translate.Installer).
type installer struct {
	owner             py.Object // the callable that receives the entry, or the Root for frames that the hook serves
	globals, builtins py.Object // the frame's globals and builtins
	trace             py.Object // the translation's number in the trace; null if there is none
}

func goBytes(b C.gd_bytes) []byte { return C.GoBytes(unsafe.Pointer(b.data), C.int(b.len)) }

func goString(b C.gd_bytes) string {
	return C.GoStringN((*C.char)(unsafe.Pointer(b.data)), C.int(b.len))
}

// Decode implements translate.Installer. It reads the whole code object with one call into C.
func (*installer) Decode(s *py.Scope, code py.Object) (*bytecode.Raw, []py.Object, error) {
	view := (*C.gd_code_view)(C.calloc(1, C.sizeof_gd_code_view))
	defer C.free(unsafe.Pointer(view))
	if C.gdb_code_view((*C.PyObject)(code.Ptr()), view) < 0 {
		return nil, nil, s.Err()
	}
	defer C.gdb_code_view_release(view)
	raw := &bytecode.Raw{
		Name: goString(view.name), QualName: goString(view.qualname), Filename: goString(view.filename),
		Code: goBytes(view.code), LineTable: goBytes(view.linetable), ExceptionTable: goBytes(view.exceptiontable),
		Flags: int(view.flags), FirstLine: int(view.firstlineno), ArgCount: int(view.argcount),
		PosOnlyArgCount: int(view.posonlyargcount), KwOnlyArgCount: int(view.kwonlyargcount),
		StackSize: int(view.stacksize), NumConsts: int(view.nconsts),
	}
	for _, b := range unsafe.Slice(view.names, int(view.nnames)) {
		raw.Names = append(raw.Names, goString(b))
	}
	for _, b := range unsafe.Slice(view.localsplusnames, int(view.nlocalsplus)) {
		raw.LocalsPlusNames = append(raw.LocalsPlusNames, goString(b))
	}
	raw.LocalsPlusKinds = C.GoBytes(unsafe.Pointer(view.localspluskinds), C.int(view.nlocalsplus))
	consts := make([]py.Object, 0, raw.NumConsts)
	for _, p := range unsafe.Slice((**C.PyObject)(unsafe.Pointer(view.consts)), raw.NumConsts) {
		consts = append(consts, s.Hold(object(p)))
	}
	return raw, consts, nil
}

// arena pins Go memory while C reads it, and frees the C arrays that it allocated.
type arena struct {
	pin  runtime.Pinner
	free []unsafe.Pointer
}

func (a *arena) close() {
	for _, p := range a.free {
		C.free(p)
	}
	a.pin.Unpin()
}

func (a *arena) alloc(n int, size uintptr) unsafe.Pointer {
	p := C.calloc(C.size_t(max(n, 1)), C.size_t(size))
	a.free = append(a.free, p)
	return p
}

func (a *arena) bytes(b []byte) C.gd_bytes {
	p := a.alloc(len(b)+1, 1)
	if len(b) > 0 {
		C.memcpy(p, unsafe.Pointer(&b[0]), C.size_t(len(b)))
	}
	return C.gd_bytes{data: (*C.char)(p), len: C.size_t(len(b))}
}

func (a *arena) text(s string) C.gd_bytes { return a.bytes([]byte(s)) }

func (a *arena) texts(list []string) *C.gd_bytes {
	p := (*C.gd_bytes)(a.alloc(len(list), C.sizeof_gd_bytes))
	for i, s := range list {
		unsafe.Slice(p, len(list))[i] = a.text(s)
	}
	return p
}

// NewCode implements translate.Installer.
func (*installer) NewCode(s *py.Scope, raw *bytecode.Raw, consts []py.Object) (py.Object, error) {
	a := &arena{}
	defer a.close()
	spec := (*C.gd_code_spec)(a.alloc(1, C.sizeof_gd_code_spec))
	spec.name, spec.qualname, spec.filename = a.text(raw.Name), a.text(raw.QualName), a.text(raw.Filename)
	spec.code, spec.linetable, spec.exceptiontable = a.bytes(raw.Code), a.bytes(raw.LineTable),
		a.bytes(raw.ExceptionTable)
	spec.flags, spec.firstlineno = C.int32_t(raw.Flags), C.int32_t(raw.FirstLine)
	spec.argcount, spec.posonlyargcount = C.int32_t(raw.ArgCount), C.int32_t(raw.PosOnlyArgCount)
	spec.kwonlyargcount, spec.stacksize = C.int32_t(raw.KwOnlyArgCount), C.int32_t(raw.StackSize)
	spec.consts = (*C.PyObject)(s.Tuple(consts...).Ptr())
	spec.nnames, spec.nlocalsplus = C.int32_t(len(raw.Names)), C.int32_t(len(raw.LocalsPlusNames))
	spec.names, spec.localsplusnames = a.texts(raw.Names), a.texts(raw.LocalsPlusNames)
	spec.localspluskinds = (*C.uint8_t)(unsafe.Pointer(a.bytes(raw.LocalsPlusKinds).data))
	p := C.gdb_code_new(spec)
	if p == nil {
		return py.Object{}, s.Err()
	}
	return s.Adopt(object(p)), nil
}

// originAttr is the attribute in which a resume function stores its translate.Origin.
const originAttr = "__godynamo_origin__"

// Resume implements translate.Installer. The Root keeps resume callables by code, globals, builtins, place,
// stack and locals, so that all graph breaks of a frame at one place share a resume callable.
func (i *installer) Resume(s *py.Scope, o *translate.Origin, globals, builtins py.Object,
	build func() (py.Object, error)) (py.Object, error) {
	table, err := s.GetAttr(i.root(s), "resumes")
	if err != nil {
		return py.Object{}, err
	}
	ints := func(list []int) py.Object {
		out := make([]py.Object, len(list))
		for i, n := range list {
			out[i] = s.Int(int64(n))
		}
		return s.Tuple(out...)
	}
	origin := s.Tuple(o.Code, s.Int(int64(o.Target)), ints(o.Params), s.Str(o.Stack), ints(o.Computed),
		ints(o.Sizes))
	key := s.Tuple(s.Int(int64(globals.ID())), s.Int(int64(builtins.ID())), origin)
	if v, ok := s.DictGet(table, key); ok {
		return v, nil
	}
	fn, err := build()
	if err != nil {
		return py.Object{}, err
	}
	if err := s.SetAttr(fn, originAttr, origin); err != nil {
		return py.Object{}, err
	}
	if !i.trace.IsNull() {
		if err := s.SetAttr(fn, madeByAttr, i.trace); err != nil {
			return py.Object{}, err
		}
	}
	p := C.gdb_resume_new((*C.PyObject)(i.owner.Ptr()), (*C.PyObject)(fn.Ptr()))
	if p == nil {
		return py.Object{}, s.Err()
	}
	w := s.Adopt(object(p))
	_, err = s.CallMethod(table, "__setitem__", key, w)
	return w, err
}

// root returns the Root of the owner's family: the callable's Root, or the owner itself for frames that the
// hook serves.
func (i *installer) root(s *py.Scope) py.Object {
	if r, ok := py.Answered(s.GetAttr(i.owner, "root")); ok {
		return r
	}
	return i.owner
}

// readOrigin returns the Origin of a resume function, or nil for any other function.
func readOrigin(s *py.Scope, function py.Object) *translate.Origin {
	v, ok := py.Answered(s.GetAttr(function, originAttr))
	if !ok {
		return nil
	}
	parts := s.Items(v)
	target, _ := py.AsInt(parts[1])
	o := &translate.Origin{Code: parts[0], Target: int(target), Stack: py.GoString(parts[3])}
	ints := func(list py.Object) (out []int) {
		for _, p := range s.Items(list) {
			n, _ := py.AsInt(p)
			out = append(out, int(n))
		}
		return out
	}
	o.Params, o.Computed, o.Sizes = ints(parts[2]), ints(parts[4]), ints(parts[5])
	return o
}

// guarded converts the result of a finished translation to a cache.GuardedCode.
func guarded(s *py.Scope, f *translate.Frame, r *translate.Result) (*cache.GuardedCode, error) {
	if r.Program == nil {
		m, err := guards.NewCheckFunctionManager(len(f.Slots), guards.Set{}, nil, guards.Options{})
		if err != nil {
			return nil, err
		}
		r.Program, r.Text = m.Program(), m.Text()
	}
	info, err := infoDict(s, r)
	if err != nil {
		return nil, err
	}
	g := &cache.GuardedCode{
		Function: r.Function, OrigCode: f.Code, Program: r.Program, Pool: r.Pool, Extra: r.ExtraRegs,
		NeedsHook: r.NeedsHook, Rerun: r.Rerun, HandsOver: r.HandsOver, Catches: r.Catches, Watches: r.Watches,
		Info: info,
	}
	for _, row := range r.Rows {
		g.Rows = append(g.Rows, cache.TracebackRow(row))
	}
	for _, op := range r.Operations {
		g.Operations = append(g.Operations, cache.Operation(op))
	}
	for _, ch := range r.Chains {
		var levels []cache.Level
		for _, l := range ch.Levels() {
			levels = append(levels, cache.Level(l))
		}
		g.Chains = append(g.Chains, levels)
		var shown []cache.ShownLocal
		for _, l := range ch.Shown() {
			shown = append(shown, cache.ShownLocal(l))
		}
		g.Shown = append(g.Shown, shown)
		g.Nth = append(g.Nth, ch.Nth())
		g.Done = append(g.Done, ch.Done())
	}
	return g, nil
}

// Make implements cache.Installer.
func (i *installer) Make(s *py.Scope, g *cache.GuardedCode) (py.Object, error) {
	a := &arena{}
	defer a.close()
	spec := (*C.gd_entry_spec)(a.alloc(1, C.sizeof_gd_entry_spec))
	spec.function = (*C.PyObject)(g.Function.Ptr())
	if g.Function.IsNull() {
		spec.flags |= C.GD_ENTRY_RUN_ORIGINAL
	}
	if g.NeedsHook {
		spec.flags |= C.GD_ENTRY_NEEDS_HOOK
	}
	if g.HandsOver {
		spec.flags |= C.GD_ENTRY_HANDS_OVER
	}
	if g.Catches {
		spec.flags |= C.GD_ENTRY_CATCHES
	}
	if g.Watches {
		spec.flags |= C.GD_ENTRY_WATCHES
	}
	if g.Rerun {
		spec.flags |= C.GD_ENTRY_RERUN
	}
	i.program(s, a, spec, g)
	i.traceback(a, s, spec, g)
	i.texts(s, spec, g)
	spec.info = (*C.PyObject)(g.Info.Ptr())
	spec.orig_code = (*C.PyObject)(g.OrigCode.Ptr())
	p := C.gdb_entry_new(spec)
	if p == nil {
		return py.Object{}, s.Err()
	}
	return object(p), nil
}

// Check implements cache.Installer.
func (i *installer) Check(s *py.Scope, entry py.Object, slots []py.Object, globals py.Object) (int, error) {
	a := &arena{}
	defer a.close()
	array := (**C.PyObject)(a.alloc(len(slots), unsafe.Sizeof(uintptr(0))))
	for k, o := range slots {
		unsafe.Slice(array, len(slots))[k] = (*C.PyObject)(o.Ptr())
	}
	failed := (*C.int32_t)(a.alloc(1, 4))
	switch C.gdb_entry_check((*C.PyObject)(entry.Ptr()), array, C.uint32_t(len(slots)), (*C.PyObject)(globals.Ptr()),
		(*C.PyObject)(i.builtins.Ptr()), failed) {
	case 1:
		return -1, nil
	case 0:
		return int(*failed), nil
	}
	return 0, s.Err()
}

// NewCheck implements translate.Installer. It makes an entry that has guards but runs no function.
func (i *installer) NewCheck(s *py.Scope, p *guards.Program, pool []py.Object) (translate.Check, error) {
	info, err := s.Dict()
	if err != nil {
		return nil, err
	}
	entry, err := i.Make(s, &cache.GuardedCode{Program: p, Pool: pool, OrigCode: py.None(), Info: info})
	if err != nil {
		return nil, err
	}
	return &check{i, s.Adopt(entry)}, nil
}

// ReadsSizes implements translate.Installer.
func (*installer) ReadsSizes(tensor py.Object) bool {
	view := (*C.gd_tensor_view)(C.calloc(1, C.sizeof_gd_tensor_view))
	defer C.free(unsafe.Pointer(view))
	return C.gdb_tensor_view((*C.PyObject)(tensor.Ptr()), view) != 0
}

// check evaluates an entry's guards without running a function.
type check struct {
	installer *installer
	entry     py.Object
}

// Holds implements translate.Check.
func (c *check) Holds(s *py.Scope, slots []py.Object, globals py.Object) (bool, error) {
	failed, err := c.installer.Check(s, c.entry, slots, globals)
	return failed < 0 && err == nil, err
}

// constObject returns a constant of the program: an object in the translation's pool, or a str made for the
// program.
func constObject(s *py.Scope, g *cache.GuardedCode, c guards.ConstUse) py.Object {
	if c.Index < 0 {
		return s.Interned(c.Name)
	}
	return g.Pool[c.Index]
}

func (*installer) program(s *py.Scope, a *arena, spec *C.gd_entry_spec, g *cache.GuardedCode) {
	p := g.Program
	nodes := (*C.gd_node_spec)(a.alloc(len(p.Nodes), C.sizeof_gd_node_spec))
	for k, n := range p.Nodes {
		unsafe.Slice(nodes, len(p.Nodes))[k] = C.gd_node_spec{
			op: C.uint8_t(n.Op), flags: C.uint8_t(n.Flags), dst: C.uint32_t(n.Dst), src: C.uint32_t(n.Src),
			part: C.uint32_t(n.Part), a: C.uint32_t(n.A), b: C.uint32_t(n.B),
		}
	}
	spec.nodes, spec.nnodes = nodes, C.uint32_t(len(p.Nodes))
	spec.nslots, spec.nregs, spec.ncaches = C.uint32_t(p.NumSlots), C.uint32_t(p.NumRegs), C.uint32_t(p.NumCaches)
	consts := (*C.gd_const_spec)(a.alloc(len(p.Consts), C.sizeof_gd_const_spec))
	for k, c := range p.Consts {
		unsafe.Slice(consts, len(p.Consts))[k] = C.gd_const_spec{
			object: (*C.PyObject)(constObject(s, g, c).Ptr()), keep: C.int32_t(c.Keep),
		}
	}
	spec.consts, spec.nconsts = consts, C.uint32_t(len(p.Consts))
	tensors := (*C.gd_tensor_spec)(a.alloc(len(p.Tensors), C.sizeof_gd_tensor_spec))
	for k, t := range p.Tensors {
		unsafe.Slice(tensors, len(p.Tensors))[k] = C.gd_tensor_spec{
			reg: C.uint32_t(t.Reg), fields: C.uint16_t(t.Fields), static_sizes: C.uint64_t(t.StaticSizes),
			static_strides: C.uint64_t(t.StaticStrides), example: (*C.PyObject)(g.Pool[t.Example.Index].Ptr()),
		}
	}
	spec.tensors, spec.ntensors = tensors, C.uint32_t(len(p.Tensors))
	sizes := (*C.gd_size_spec)(a.alloc(len(p.Sizes), C.sizeof_gd_size_spec))
	for k, step := range p.Sizes {
		unsafe.Slice(sizes, len(p.Sizes))[k] = C.gd_size_spec{
			op: C.uint8_t(step.Op), dim: C.uint8_t(step.Dim), reg: C.uint32_t(step.Reg), n: C.int64_t(step.N),
		}
	}
	spec.sizes, spec.nsizes, spec.nkept = sizes, C.uint32_t(len(p.Sizes)), C.uint32_t(p.NumKept)
	extra := (*C.uint32_t)(a.alloc(len(g.Extra), 4))
	for k, v := range g.Extra {
		unsafe.Slice(extra, len(g.Extra))[k] = C.uint32_t(v)
	}
	spec.extra_regs, spec.nextra = extra, C.uint32_t(len(g.Extra))
}

func (*installer) traceback(a *arena, s *py.Scope, spec *C.gd_entry_spec, g *cache.GuardedCode) {
	if len(g.Rows) == 0 {
		return
	}
	rows := (*C.gd_tb_row)(a.alloc(len(g.Rows), C.sizeof_gd_tb_row))
	for k, row := range g.Rows {
		c := C.gd_tb_row{start: C.uint32_t(row.Start), end: C.uint32_t(row.End), chain: C.uint32_t(row.Chain),
			place: C.uint32_t(row.Place)}
		if row.Drop {
			c.flags = C.GD_TB_DROP
		}
		if row.Graph {
			c.flags |= C.GD_TB_GRAPH
		}
		if row.Protected {
			c.flags |= C.GD_TB_PROTECTED
		}
		unsafe.Slice(rows, len(g.Rows))[k] = c
	}
	spec.tb_rows, spec.ntb_rows = rows, C.uint32_t(len(g.Rows))
	chains := make([]py.Object, len(g.Chains))
	// tuples made so far, each for one frame of the user's stack; operations of one inlined callee share the
	// tuples of their outer frames
	made := map[cache.Level]py.Object{}
	locals := shownLocals{s: s, lists: map[string]py.Object{}, pairs: map[[2]int]py.Object{}}
	for k, ch := range g.Chains {
		var levels []py.Object
		for i, l := range ch {
			level, ok := made[l]
			if shown := g.Shown[k]; i == 0 && (g.Nth[k] > 0 || g.Done[k]) {
				nth := int64(g.Nth[k])
				if g.Done[k] {
					nth = ^nth
				}
				level = s.Tuple(l.Code, l.Globals, s.Int(int64(l.Lasti)), s.Int(int64(l.Line)),
					locals.tuple(shown), s.Int(nth))
			} else if i == 0 && len(shown) > 0 {
				level = s.ObjectsInts(l.Code, l.Globals, l.Lasti, l.Line, locals.tuple(shown))
			} else if !ok {
				level = s.ObjectsInts(l.Code, l.Globals, l.Lasti, l.Line, py.Object{})
				made[l] = level
			}
			levels = append(levels, level)
		}
		chains[k] = s.Tuple(levels...)
	}
	spec.chains = (*C.PyObject)(s.Tuple(chains...).Ptr())
	if len(g.Operations) > 0 {
		operations := make([]py.Object, len(g.Operations))
		for k, op := range g.Operations {
			if op.Outside > 0 {
				operations[k] = s.Tuple(s.Name(op.Name), chains[op.Chain], s.Int(int64(op.Outside)))
			} else {
				operations[k] = s.Tuple(s.Name(op.Name), chains[op.Chain])
			}
		}
		spec.operations = (*C.PyObject)(s.Tuple(operations...).Ptr())
	}
}

// shownLocals makes the tuples that list the variables shown for a frame of a traceback. A variable (see
// cache.ShownLocal) is listed as (index, place) or (index, -1, value). Equal lists share one tuple: 600
// operations on two variables need only a few.
type shownLocals struct {
	s     *py.Scope
	lists map[string]py.Object
	pairs map[[2]int]py.Object
	key   []byte
}

func (m *shownLocals) tuple(shown []cache.ShownLocal) py.Object {
	m.key = m.key[:0]
	for _, l := range shown {
		m.key = binary.AppendVarint(binary.AppendVarint(m.key, int64(l.Index)), int64(l.Place))
		if l.Place < 0 {
			m.key = binary.AppendUvarint(m.key, l.Value.ID())
		}
	}
	if t, ok := m.lists[string(m.key)]; ok {
		return t
	}
	out := make([]py.Object, len(shown))
	for i, l := range shown {
		if l.Place < 0 {
			out[i] = m.s.Tuple(m.s.Int(int64(l.Index)), m.s.Int(-1), l.Value)
			continue
		}
		at := [2]int{l.Index, l.Place}
		if out[i] = m.pairs[at]; out[i].IsNull() {
			out[i] = m.s.Tuple(m.s.Int(int64(l.Index)), m.s.Int(int64(l.Place)))
			m.pairs[at] = out[i]
		}
	}
	t := m.s.Tuple(out...)
	m.lists[string(m.key)] = t
	return t
}

func (*installer) texts(s *py.Scope, spec *C.gd_entry_spec, g *cache.GuardedCode) {
	parts := make([]py.Object, len(g.Program.Parts))
	lines := make([]py.Object, len(parts))
	for k, p := range g.Program.Parts {
		parts[k] = s.Str(p)
		lines[k] = py.None()
		if k < len(g.Program.PartLines) && g.Program.PartLines[k].File != "" {
			l := g.Program.PartLines[k]
			lines[k] = s.Tuple(s.Name(l.File), s.Int(int64(l.Line)))
		}
	}
	spec.parts = (*C.PyObject)(s.Tuple(parts...).Ptr())
	spec.part_lines = (*C.PyObject)(s.Tuple(lines...).Ptr())
}
