package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// FunctionVariable represents a Python function. Fn is the function object, or zero if the frame makes the function
// with MAKE_FUNCTION.
type FunctionVariable struct {
	Base
	Fn py.Object

	// The following fields describe a function that the frame makes.
	Code, GlobalsDict py.Object
	GlobalsSrc        guards.Source
	Name, QualName    string
	Closure           []*CellVariable
	Defaults          VariableTracker // a tuple, or nil
	KwDefaults        VariableTracker // a dict, or nil
	Annotations       VariableTracker // tuple of names and values, or nil
	Foreign           bool            // made by an inlined function of another module
	born              py.Object       // the code with which it is made, once the program has replaced Code
	fields            []Kw            // fields that differ from what MAKE_FUNCTION sets, see function_made.go
	dict              *DictVariable   // __dict__; nil while it is empty and the program has not read it
}

// NewFunction returns the tracker of an existing function. If it has a source, the caller has guarded its code.
func NewFunction(fn py.Object, src guards.Source) *FunctionVariable {
	return &FunctionVariable{Base: Base{Src: src}, Fn: fn}
}

// Kind implements VariableTracker.
func (f *FunctionVariable) Kind() string {
	if f.Fn.IsNull() {
		return "NestedUserFunctionVariable"
	}
	return "UserFunctionVariable"
}

// Children implements Container.
func (f *FunctionVariable) Children() []VariableTracker {
	var out []VariableTracker
	for _, c := range f.Closure {
		out = append(out, c)
	}
	for _, part := range []VariableTracker{f.Defaults, f.KwDefaults, f.Annotations} {
		if part != nil {
			out = append(out, part)
		}
	}
	for _, kw := range f.fields {
		out = append(out, kw.Value)
	}
	if f.dict != nil { // the dict itself is made with the function
		out = append(append(out, f.dict.keys...), f.dict.values...)
	}
	return out
}

// PythonType implements Typed.
func (f *FunctionVariable) PythonType(tx Translator) (py.Object, error) {
	return tx.World().FunctionType, nil
}

// AsConstant implements Constant. It always returns false: a function compares by identity, and its closure may hold
// unknown values.
func (f *FunctionVariable) AsConstant(Translator) (py.Object, bool) {
	return py.Object{}, false
}

// Call implements Caller. The function is inlined.
func (f *FunctionVariable) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if _, fixed := f.Src.(*guards.ConstSource); tx.World().Calls > 0 && f.Src != nil && !fixed {
		return PythonCall(tx, f, args, kwargs) // the call may have changed f's code, defaults or globals
	}
	if r, ok, err := drawingFunction(tx, f, args, kwargs); ok || err != nil {
		return r, err
	}
	return tx.Inline(f, args, kwargs)
}

// CallMethod implements MethodCaller.
func (f *FunctionVariable) CallMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if name != "__get__" {
		fn, err := f.GetAttr(tx, name)
		if err != nil {
			return nil, err
		}
		return Call(tx, fn, args, kwargs)
	}
	if len(args) == 0 || len(args) > 2 || len(kwargs) > 0 {
		return nil, wrongCall(tx, f, name, args, kwargs)
	}
	instance, err := Realize(tx, args[0])
	if err != nil {
		return nil, err
	}
	if k, ok := AsConstant(tx, instance); ok && k.Kind() == py.NoneKind { // f.__get__(None, cls) is f
		if len(args) == 1 {
			return nil, wrongCall(tx, f, name, args, kwargs)
		}
		owner, err := Realize(tx, args[1])
		if err != nil {
			return nil, err
		}
		if k, ok := AsConstant(tx, owner); ok && k.Kind() == py.NoneKind {
			return nil, wrongCall(tx, f, name, args, kwargs)
		}
		return f, nil
	}
	return NewMethod(f, instance, nil), nil
}

// CellVariable represents a cell: a free variable of the frame, or a cell that the frame or an inlined function makes.
type CellVariable struct {
	Base
	Real     py.Object // the cell, if it exists already
	contents VariableTracker
	loaded   bool
}

// NewCell returns the tracker of a cell that the program makes. It is empty if contents is nil.
func NewCell(contents VariableTracker) *CellVariable {
	return &CellVariable{contents: contents, loaded: true}
}

// NewRealCell returns the tracker of an existing cell that is read through src.
func NewRealCell(cell py.Object, src guards.Source) *CellVariable {
	return &CellVariable{Base: Base{Src: src}, Real: cell}
}

// Kind implements VariableTracker.
func (*CellVariable) Kind() string { return "CellVariable" }

// Children implements Container.
func (c *CellVariable) Children() []VariableTracker {
	if c.loaded && c.contents != nil {
		return []VariableTracker{c.contents}
	}
	return nil
}

// PythonType implements Typed.
func (c *CellVariable) PythonType(Translator) (py.Object, error) { return py.CellType(), nil }

// StillHolds reports whether v was read from the cell, or stored to it, and is its contents now.
func (c *CellVariable) StillHolds(v VariableTracker) bool { return v != nil && Chosen(c.contents) == v }

// Empty reports whether the cell is empty now. It adds no guard.
func (c *CellVariable) Empty(tx Translator) bool {
	if c.loaded {
		return c.contents == nil
	}
	_, full := tx.Scope().CellContents(c.Real)
	return !full
}

// Get returns the contents, or nil if the cell is empty.
func (c *CellVariable) Get(tx Translator) (VariableTracker, error) {
	if !c.loaded {
		c.loaded = true
		v, ok := tx.Scope().CellContents(c.Real)
		if !ok {
			tx.Output().AddGuards(guards.CellEmpty(c.Src))
			return nil, nil
		}
		c.contents = tx.Build(v, guards.NewCellSource(c.Src))
	}
	return c.contents, nil
}

// Set stores v into the cell, or empties the cell if v is nil. If other code can see the cell, the store is written
// through at once.
func (c *CellVariable) Set(tx Translator, v VariableTracker) error {
	if Materialized(c) {
		old := c.contents
		if !c.loaded {
			if obj, ok := tx.Scope().CellContents(c.Real); ok {
				old = NewLazy(obj, nil)
			}
			if c.Src != nil {
				tx.Output().AddGuards(guards.QuietIndex(c.Src, 0))
			}
		}
		if old != v { // old is v while the cell is being materialized
			if err := lettingGo(tx, old); err != nil {
				return err
			}
		}
	}
	if !Materialized(c) && c.contents == nil && v != nil {
		tx.World().Fills++
	}
	c.contents, c.loaded = v, true
	if v == nil {
		return writeThrough(tx, c, nil, func(e Emitter, _ []VariableTracker) error {
			if err := e.Load(c); err != nil {
				return err
			}
			e.DeleteAttr("cell_contents")
			return nil
		})
	}
	return writeThrough(tx, c, []VariableTracker{v}, func(e Emitter, vs []VariableTracker) error {
		if err := LoadAll(e, []VariableTracker{vs[0], c}); err != nil {
			return err
		}
		e.StoreAttr("cell_contents")
		return nil
	})
}

// Snapshot implements Snapshotter.
func (c *CellVariable) Snapshot() VariableTracker { return NewCell(c.contents) }

// Reconstruct implements Reconstructer with types.CellType(contents).
func (c *CellVariable) Reconstruct(e Emitter) error {
	e.PushNull()
	e.LoadConst(py.CellType())
	n := 0
	if c.contents != nil {
		if err := e.Load(c.contents); err != nil {
			return err
		}
		n = 1
	}
	e.Call(n, nil)
	return nil
}

// MethodVariable is a Python function bound to an object.
type MethodVariable struct {
	Base
	Fn   VariableTracker
	Self VariableTracker
}

// NewMethod binds fn to self.
func NewMethod(fn, self VariableTracker, src guards.Source) *MethodVariable {
	return &MethodVariable{Base: Base{Src: src}, Fn: fn, Self: self}
}

// Kind implements VariableTracker.
func (*MethodVariable) Kind() string { return "UserMethodVariable" }

// Children implements Container.
func (m *MethodVariable) Children() []VariableTracker { return []VariableTracker{m.Fn, m.Self} }

// PythonType implements Typed.
func (m *MethodVariable) PythonType(tx Translator) (py.Object, error) {
	return tx.World().MethodType, nil
}

// Call implements Caller.
func (m *MethodVariable) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	return Call(tx, m.Fn, append([]VariableTracker{m.Self}, args...), kwargs)
}

// GetAttr implements AttrGetter.
func (m *MethodVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	switch name {
	case "__self__":
		return m.Self, nil
	case "__func__":
		return m.Fn, nil
	case "__class__":
		return NewClass(tx.World().MethodType, nil), nil
	}
	// as method_getattro does
	if _, own := tx.Scope().TypeLookup(tx.World().MethodType, name); own && name != "__doc__" {
		return nil, unsupported(exc.AttrUnsupported, "%s of a method", name)
	}
	return GetAttr(tx, m.Fn, name)
}

// Reconstruct implements Reconstructer with types.MethodType(fn, self).
func (m *MethodVariable) Reconstruct(e Emitter) error {
	e.PushNull()
	e.LoadConst(methodType)
	if err := LoadAll(e, []VariableTracker{m.Fn, m.Self}); err != nil {
		return err
	}
	e.Call(2, nil)
	return nil
}

var methodType py.Object // set by loadFacts; never freed

// BoundBuiltin represents obj.name, a C method bound to obj.
type BoundBuiltin struct {
	Base
	obj   VariableTracker
	name  string
	waits bool // LOAD_METHOD has left the method on the stack for a CALL
	// elsewhere is the method's descriptor if the object's class took it from another class or under another name
	// (C.add = set.add), else zero. Binding such a descriptor may raise. A call of the attribute calls the descriptor.
	elsewhere py.Object
}

// ToBeCalled returns the method as LOAD_METHOD leaves it on the stack: only a CALL consumes it.
func (b *BoundBuiltin) ToBeCalled() *BoundBuiltin {
	return &BoundBuiltin{Base: b.Base, obj: b.obj, name: b.name, waits: true}
}

// Name returns the method's name.
func (b *BoundBuiltin) Name() string { return b.name }

// Object returns the object that the method is bound to.
func (b *BoundBuiltin) Object() VariableTracker { return b.obj }

// Kind implements VariableTracker.
func (*BoundBuiltin) Kind() string { return "GetAttrVariable" }

// Children implements Container.
func (b *BoundBuiltin) Children() []VariableTracker { return []VariableTracker{b.obj} }

// Call implements Caller.
func (b *BoundBuiltin) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if !b.elsewhere.IsNull() {
		return (&UnboundMethod{name: b.name, descr: b.elsewhere}).Call(tx, append([]VariableTracker{b.obj}, args...),
			kwargs)
	}
	if o, ok := b.obj.(*ObjectVariable); ok && o.value != nil {
		if _, own := readsItself(tx.Scope(), o.Class); own { // the class's __getattribute__ has already read the method
			return o.callBound(tx, b.name, args, kwargs)
		}
	}
	return CallMethod(tx, b.obj, b.name, args, kwargs)
}

// Truth implements Truther.
func (b *BoundBuiltin) Truth(Translator) (bool, error) { return true, nil }

// Reconstruct implements Reconstructer.
func (b *BoundBuiltin) Reconstruct(e Emitter) error {
	if !b.elsewhere.IsNull() {
		return unsupported(exc.AttrUnsupported, "%s, a C method of another class", b.name)
	}
	return loadPlainAttr(e, b.obj, b.name)
}

// Unbind returns the function and the object that CPython's LOAD_METHOD pushes for a C method of a builtin type. For
// other methods, ok is false.
func (b *BoundBuiltin) Unbind(tx Translator) (fn, self VariableTracker, ok bool) {
	switch o := b.obj.(type) {
	case *LazyVariable: // a list or deque that is only appended to, see container_unseen.go
		d, found := tx.Scope().TypeLookup(o.obj.Type(), b.name)
		if !b.waits || !found || d.Kind() != py.MethodDescr {
			return nil, nil, false
		}
		if !o.Realized() {
			tx.Output().AddGuards(guards.TypeMatch(o.Src, tx.Output().Const(o.obj.Type())))
		}
		return NewBuiltin(d, "", nil), o, true
	case *ListVariable, *DictVariable, *SetVariable, *DequeVariable:
	case *ObjectVariable:
		if o.value == nil {
			return nil, nil, false
		}
	case *ConstantVariable:
		if k := o.Value.Kind(); k != py.Str && k != py.Bytes {
			return nil, nil, false
		}
	default:
		return nil, nil, false
	}
	if !b.waits || Materialized(b) {
		return nil, nil, false
	}
	t, err := PythonType(tx, b.obj)
	if err != nil {
		return nil, nil, false
	}
	d, ok := tx.Scope().TypeLookup(t, b.name)
	if !ok || d.Kind() != py.MethodDescr {
		return nil, nil, false
	}
	return NewBuiltin(d, "", nil), b.obj, true
}

// PartialVariable represents a functools.partial.
type PartialVariable struct {
	Base
	Fn     VariableTracker
	Args   []VariableTracker
	Kwargs []Kw
	obj    py.Object // zero if the program makes the partial
}

// Kind implements VariableTracker.
func (*PartialVariable) Kind() string { return "FunctoolsPartialVariable" }

// Children implements Container.
func (p *PartialVariable) Children() []VariableTracker {
	out := append([]VariableTracker{p.Fn}, p.Args...)
	for _, kw := range p.Kwargs {
		out = append(out, kw.Value)
	}
	return out
}

// Call implements Caller.
func (p *PartialVariable) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	kws := append([]Kw(nil), p.Kwargs...)
next:
	for _, kw := range kwargs {
		for i := range kws {
			if kws[i].Name == kw.Name {
				kws[i] = kw
				continue next
			}
		}
		kws = append(kws, kw)
	}
	return Call(tx, p.Fn, append(append([]VariableTracker(nil), p.Args...), args...), kws)
}

// GetAttr implements AttrGetter for func, and for args of an existing partial: code that makes a partial makes another
// tuple. A program can change the dict keywords, which a call would not see.
func (p *PartialVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	switch {
	case name == "func":
		fn, err := Realize(tx, p.Fn)
		if _, nested := fn.(*PartialVariable); !nested || !p.obj.IsNull() { // CPython merges a partial of a partial
			return fn, err
		}
	case name == "args" && !p.obj.IsNull():
		if v, err := unwrapped(tx, p.obj, p.Src, name); v != nil || err != nil {
			return v, err
		}
	}
	return nil, unsupported(exc.AttrUnsupported, "%s of %s", name, Describe(tx, p))
}

// Truth implements Truther.
func (p *PartialVariable) Truth(Translator) (bool, error) { return true, nil }

// Reconstruct implements Reconstructer.
func (p *PartialVariable) Reconstruct(e Emitter) error {
	e.PushNull()
	e.LoadConst(partialType)
	if err := LoadAll(e, append([]VariableTracker{p.Fn}, p.Args...)); err != nil {
		return err
	}
	names := KwNames(p.Kwargs)
	for _, kw := range p.Kwargs {
		if err := e.Load(kw.Value); err != nil {
			return err
		}
	}
	e.Call(1+len(p.Args)+len(names), names)
	return nil
}

var partialType py.Object // set by loadFacts; never freed
