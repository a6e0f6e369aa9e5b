package guards

import (
	"slices"
	"strconv"
)

// The heap that the tests run programs on: a toy version of Python's object model. Handles are pointers,
// so that equal values can be different objects.

type pyType struct {
	name  string
	attrs map[string]Value
	mro   []*pyType
}

type pyLit struct { // int, str, float, None, ...
	typ  *pyType
	text string
}

type pyObject struct { // an instance, a module, a function, a method
	typ     *pyType
	attrs   map[string]Value
	hasDict bool
	fields  map[FuncField]Value
	changed bool
	watched bool
	grows   []string // names of the parameters of an nn.Module
}

type pySeq struct {
	typ   *pyType
	items []Value
}

type pyDict struct {
	typ        *pyType
	keys, vals []Value
}

type pyCell struct{ contents Value }

type pyRef struct{ referent Value }

type pyTensor struct{ typ, meta string }

var (
	typeType   = &pyType{name: "type"}
	intType    = &pyType{name: "int"}
	strType    = &pyType{name: "str"}
	floatType  = &pyType{name: "float"}
	noneType   = &pyType{name: "NoneType"}
	rangeType  = &pyType{name: "range"}
	listType   = &pyType{name: "list"}
	tupleType  = &pyType{name: "tuple"}
	dictType   = &pyType{name: "dict"}
	odictType  = &pyType{name: "OrderedDict"}
	funcType   = &pyType{name: "function"}
	moduleType = &pyType{name: "module"}
	cellType   = &pyType{name: "cell"}
	refType    = &pyType{name: "weakref"}
	iterType   = &pyType{name: "tuple_iterator"}
	tensorType = &pyType{name: "Tensor"}
	none       = &pyLit{noneType, "None"}
)

func integer(text string) *pyLit { return &pyLit{intType, text} }
func str(text string) *pyLit     { return &pyLit{strType, text} }

// world is the heap around a frame, and the translation's pool.
type world struct {
	pool     []Value
	dead     map[Value]bool
	names    map[string]*pyLit
	globals  *pyDict
	builtins *pyDict
	program  *Program
	invalid  bool
	noGrad   bool
	newState bool
	calls    func(Value) bool
	dims     map[*pyTensor][2][]int64 // sizes and strides
}

func newWorld() *world {
	return &world{dead: map[Value]bool{}, names: map[string]*pyLit{}, globals: &pyDict{typ: dictType},
		builtins: &pyDict{typ: dictType}}
}

// konst puts a value into the pool. Its address is 1000 plus its index.
func (w *world) konst(v Value, text string) Const {
	i := slices.Index(w.pool, v)
	if i < 0 {
		i = len(w.pool)
		w.pool = append(w.pool, v)
	}
	return Const{Index: i, Text: text, ID: uint64(1000 + i)}
}

func (w *world) name(s string) *pyLit {
	if w.names[s] == nil {
		w.names[s] = str(s)
	}
	return w.names[s]
}

func (d *pyDict) set(k, v Value) {
	d.keys, d.vals = append(d.keys, k), append(d.vals, v)
}

func (w *world) Globals() Value  { return w.globals }
func (w *world) Builtins() Value { return w.builtins }
func (w *world) Valid() bool     { return !w.invalid }
func (w *world) None() Value     { return none }

func (w *world) Const(i int) (Value, bool) {
	use := w.program.Consts[i]
	if use.Index < 0 {
		return w.name(use.Name), true
	}
	if use.Index >= len(w.pool) || w.dead[w.pool[use.Index]] {
		return nil, false
	}
	return w.pool[use.Index], true
}

func (w *world) Type(v Value) Value {
	switch v := v.(type) {
	case *pyType:
		return typeType
	case *pyLit:
		return v.typ
	case *pyObject:
		return v.typ
	case *pySeq:
		return v.typ
	case *pyDict:
		return v.typ
	case *pyCell:
		return cellType
	case *pyRef:
		return refType
	case *pyTensor:
		return tensorType
	}
	return nil
}

func text(v Value) string {
	if lit, ok := v.(*pyLit); ok {
		return lit.text
	}
	return ""
}

func (w *world) InstanceAttr(v, name Value) (Value, bool) {
	o, ok := v.(*pyObject)
	if !ok || o.typ == moduleType {
		return nil, false
	}
	found, ok := o.attrs[text(name)]
	return found, ok
}

func (w *world) InstanceDict(v Value) (Value, bool) {
	o, ok := v.(*pyObject)
	if !ok || !o.hasDict {
		return nil, false
	}
	d := &pyDict{typ: dictType}
	for k, x := range o.attrs {
		d.set(str(k), x)
	}
	return d, true
}

func (w *world) ModuleDict(v Value) (Value, bool) {
	o, ok := v.(*pyObject)
	if !ok || o.typ != moduleType {
		return nil, false
	}
	d := &pyDict{typ: dictType}
	for k, x := range o.attrs {
		d.set(str(k), x)
	}
	return d, true
}

func (w *world) Slot(v, name Value, offset int) (Value, bool) {
	o, ok := v.(*pyObject)
	if !ok || offset != 16 {
		return nil, false
	}
	found, ok := o.attrs["slot:"+text(name)]
	return found, ok
}

func (w *world) TypeLookup(t, name Value) (Value, bool, bool) {
	typ, ok := t.(*pyType)
	if !ok {
		return nil, false, false
	}
	for _, base := range append([]*pyType{typ}, typ.mro...) {
		if v, ok := base.attrs[text(name)]; ok {
			return v, true, true
		}
	}
	return nil, false, true
}

func (w *world) MroDict(t Value, i int) (Value, bool) {
	typ, ok := t.(*pyType)
	if !ok || i > len(typ.mro) {
		return nil, false
	}
	d := &pyDict{typ: dictType}
	for k, v := range append([]*pyType{typ}, typ.mro...)[i].attrs {
		d.set(str(k), v)
	}
	return d, true
}

func (w *world) MroClass(t Value, i int) (Value, bool) {
	typ, ok := t.(*pyType)
	if !ok || i > len(typ.mro) {
		return nil, false
	}
	return append([]*pyType{typ}, typ.mro...)[i], true
}

func (w *world) Watched(v Value) bool {
	o, ok := v.(*pyObject)
	return ok && o.watched
}

func (w *world) EndsInCode(v, at Value) bool {
	var had Value
	switch i := at.(type) {
	case int:
		if items, ok := w.Items(v); ok && i < len(items) {
			had = items[i]
		}
	default:
		if had, _, _ = w.DictGet(v, at); had == nil {
			had, _ = w.InstanceAttr(v, at)
		}
	}
	return had != nil && w.Watched(had)
}

func (w *world) DictGet(d, key Value) (Value, bool, bool) {
	dict, ok := d.(*pyDict)
	if !ok {
		return nil, false, false
	}
	for i, k := range dict.keys {
		if w.Equal(k, key) {
			return dict.vals[i], true, true
		}
	}
	return nil, false, true
}

func (w *world) DictKeys(d Value) ([]Value, bool) {
	dict, ok := d.(*pyDict)
	if !ok {
		return nil, false
	}
	return dict.keys, true
}

func (w *world) Items(v Value) ([]Value, bool) {
	seq, ok := v.(*pySeq)
	if !ok || seq.typ == iterType {
		return nil, false
	}
	return seq.items, true
}

func (w *world) Length(v Value) (int, bool) {
	switch v := v.(type) {
	case *pySeq:
		return len(v.items), v.typ != iterType
	case *pyDict:
		return len(v.keys), true
	}
	return 0, false
}

func (w *world) TupleIter(v Value) ([]Value, bool) {
	seq, ok := v.(*pySeq)
	if !ok || seq.typ != iterType {
		return nil, false
	}
	return seq.items, true
}

// The heap's only iterators are those of tuples, which have no parts.
func (w *world) IterPart(Value, int) (Value, bool) { return nil, false }

func (w *world) IterItem(v Value, i int) (Value, bool) {
	items, _ := w.TupleIter(v)
	return at(items, i)
}

func (w *world) IterValue(Value, int) (Value, bool) { return nil, false }

func (w *world) IterNumber(v Value, i int) (int64, bool) {
	item, ok := w.IterItem(v, i)
	if !ok {
		return 0, false
	}
	return w.Int(item)
}

func (w *world) IterLeft(v Value) (int, bool) {
	items, ok := w.TupleIter(v)
	return len(items), ok
}

func (w *world) FuncField(v Value, field FuncField) (Value, bool) {
	o, ok := v.(*pyObject)
	if !ok {
		return nil, false
	}
	found, ok := o.fields[field]
	return found, ok
}

func (w *world) Cell(v Value) (Value, bool, bool) {
	cell, ok := v.(*pyCell)
	if !ok {
		return nil, false, false
	}
	return cell.contents, cell.contents == nil, true
}

func (w *world) Grad(Value) (Value, bool) { return nil, false }

func (w *world) Referent(v Value) (Value, bool) {
	ref, ok := v.(*pyRef)
	if !ok {
		return nil, false
	}
	if ref.referent == nil {
		return none, true
	}
	return ref.referent, true
}

func (w *world) IsName(v, name Value) bool {
	o, ok := v.(*pyObject)
	return ok && text(o.attrs["__name__"]) == text(name)
}

func (w *world) Float(v Value) (float64, bool) {
	x, ok := v.(*pyLit)
	if !ok || x.typ != floatType {
		return 0, false
	}
	f, err := strconv.ParseFloat(x.text, 64)
	return f, err == nil
}

func (w *world) Equal(a, b Value) bool {
	if a == b {
		return true
	}
	switch x := a.(type) {
	case *pyLit:
		y, ok := b.(*pyLit)
		return ok && *x == *y
	case *pySeq:
		y, ok := b.(*pySeq)
		return ok && x.typ == y.typ && slices.EqualFunc(x.items, y.items, w.Equal)
	}
	return false
}

func (w *world) ParamNames(v Value) ([]Value, bool) {
	o, ok := v.(*pyObject)
	if !ok || o.grows == nil {
		return nil, false
	}
	var out []Value
	for _, name := range o.grows {
		out = append(out, str(name))
	}
	return out, true
}

func (w *world) Unchanged(v Value) bool {
	o, ok := v.(*pyObject)
	return ok && !o.changed
}

func (w *world) GradEnabled() bool { return !w.noGrad }
func (w *world) StateEqual() bool  { return !w.newState }

func (w *world) Tensor(v Value, spec int) bool {
	t, ok := v.(*pyTensor)
	if !ok {
		return false
	}
	example, ok := w.pool[w.program.Tensors[spec].Example.Index].(*pyTensor)
	return ok && *t == *example
}

func (w *world) Dim(v Value, property TensorProperty, dim int) (int64, bool) {
	t, ok := v.(*pyTensor)
	if !ok || dim >= len(w.dims[t][property]) {
		return 0, false
	}
	return w.dims[t][property][dim], true
}

func (w *world) Int(v Value) (int64, bool) {
	lit, ok := v.(*pyLit)
	if !ok || lit.typ != intType {
		return 0, false
	}
	n, err := strconv.ParseInt(lit.text, 10, 64)
	return n, err == nil
}

func (w *world) NewInt(n int64) Value { return integer(strconv.FormatInt(n, 10)) }

func (w *world) Call(predicate, v Value) bool { return w.calls != nil && w.calls(v) }
