package py

// #include <stdlib.h>
// #include "helpers.h"
import "C"

import (
	"unsafe"

	python3 "github.com/DataDog/go-python3"

	"github.com/godynamo/godynamo/bytecode/opcode"
)

// Name returns an interned str for text. Each scope makes one str per text.
func (s *Scope) Name(text string) Object {
	if o, ok := s.names[text]; ok {
		return o
	}
	o := s.Str(text)
	if s.names == nil {
		s.names = map[string]Object{}
	}
	s.names[text] = o
	return o
}

// Str makes a str from UTF-8.
func (s *Scope) Str(text string) Object {
	var p *C.char
	if len(text) > 0 {
		p = (*C.char)(unsafe.Pointer(unsafe.StringData(text)))
	}
	return s.made(wrapC(C.PyUnicode_DecodeUTF8(p, C.Py_ssize_t(len(text)), errorsSurrogate)))
}

// CodeInterns reports whether code objects intern the string o: one that has o among its constants replaces it by the
// interned string of the same text.
func CodeInterns(o Object) bool { return C.gdpy_code_interns(o.c()) != 0 }

var errorsSurrogate = C.CString("surrogatepass")

// Interned returns the interned str of a name, the form in which code objects and attribute dicts hold it.
func (s *Scope) Interned(text string) Object {
	c := C.CString(text)
	defer C.free(unsafe.Pointer(c))
	return s.made(wrapC(C.PyUnicode_InternFromString(c)))
}

// Int makes an int.
func (s *Scope) Int(v int64) Object { return s.made(Object{python3.PyLong_FromLongLong(v)}) }

// Float makes a float.
func (s *Scope) Float(v float64) Object { return s.made(Object{python3.PyFloat_FromDouble(v)}) }

// Bytes makes a bytes object.
func (s *Scope) Bytes(b []byte) Object {
	var p *C.char
	if len(b) > 0 {
		p = (*C.char)(unsafe.Pointer(&b[0]))
	}
	return s.made(wrapC(C.PyBytes_FromStringAndSize(p, C.Py_ssize_t(len(b)))))
}

// BytesOf returns a copy of the contents of a bytes object.
func BytesOf(o Object) []byte {
	p := o.c()
	return C.GoBytes(unsafe.Pointer(C.PyBytes_AsString(p)), C.int(C.PyBytes_Size(p)))
}

func cArray(items []Object) **C.PyObject {
	if len(items) == 0 {
		return nil
	}
	return (**C.PyObject)(unsafe.Pointer(&items[0]))
}

// Tuple makes a tuple of the items.
func (s *Scope) Tuple(items ...Object) Object {
	return s.made(wrapC(C.gdpy_tuple(cArray(items), C.Py_ssize_t(len(items)))))
}

// ObjectsInts makes the tuple (a, b, i, j), followed by last unless it is the zero Object.
func (s *Scope) ObjectsInts(a, b Object, i, j int, last Object) Object {
	return s.made(wrapC(C.gdpy_objects_ints(a.c(), b.c(), C.long(i), C.long(j), last.c())))
}

// List makes a list of the items.
func (s *Scope) List(items ...Object) Object {
	return s.made(wrapC(C.gdpy_list(cArray(items), C.Py_ssize_t(len(items)))))
}

// Dict makes a dict of pairs.
func (s *Scope) Dict(pairs ...[2]Object) (Object, error) {
	d := s.made(wrapC(C.PyDict_New()))
	for _, kv := range pairs {
		if C.PyDict_SetItem(d.c(), kv[0].c(), kv[1].c()) < 0 {
			return Object{}, s.Err()
		}
	}
	return d, nil
}

// result returns p, a new reference, as an Object. If p is NULL, it returns the Python error.
func (s *Scope) result(p *C.PyObject) (Object, error) {
	if p == nil {
		return Object{}, s.Err()
	}
	return s.take(p), nil
}

// Call calls f with positional arguments.
func (s *Scope) Call(f Object, args ...Object) (Object, error) {
	return s.result(C.gdpy_call(f.c(), cArray(args), C.Py_ssize_t(len(args)), nil))
}

// CallKw calls f; the last len(names) of args are keyword arguments.
func (s *Scope) CallKw(f Object, args []Object, names []string) (Object, error) {
	if len(names) == 0 {
		return s.Call(f, args...)
	}
	kw := make([]Object, len(names))
	for i, n := range names {
		kw[i] = s.Name(n)
	}
	return s.result(C.gdpy_call(f.c(), cArray(args), C.Py_ssize_t(len(args)-len(names)), s.Tuple(kw...).c()))
}

// CallMethod calls o.name(*args).
func (s *Scope) CallMethod(o Object, name string, args ...Object) (Object, error) {
	m, err := s.GetAttr(o, name)
	if err != nil {
		return Object{}, err
	}
	return s.Call(m, args...)
}

// GetAttr returns getattr(o, name). It may run the user's code, so it is only for our own modules and for
// types known to be plain.
func (s *Scope) GetAttr(o Object, name string) (Object, error) {
	return s.result(C.gdpy_getattr(o.c(), s.Name(name).c()))
}

// SetAttr executes setattr(o, name, v).
func (s *Scope) SetAttr(o Object, name string, v Object) error {
	if C.gdpy_setattr(o.c(), s.Name(name).c(), v.c()) != 0 {
		return s.Err()
	}
	return nil
}

// Import imports a module by its dotted name.
func (s *Scope) Import(name string) (Object, error) {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	return s.result(C.gdpy_import(c))
}

// InstanceAttr reads an attribute from the instance's own storage; it never runs user code and never
// creates a __dict__.
func (s *Scope) InstanceAttr(o Object, name string) (Object, bool) {
	v := s.take(C.gdpy_instance_attr(o.c(), s.Name(name).c()))
	return v, !v.IsNull()
}

// OddKeys reports whether the dict has a key that is not an exact str.
func OddKeys(dict Object) bool { return C.gdpy_odd_keys(dict.c()) != 0 }

// OddClass reports whether a class in typ's MRO has a key that is not an exact str. To look an attribute up may then
// run that key's __eq__.
func OddClass(typ Object) bool { return C.gdpy_odd_class(typ.c()) != 0 }

// OddAttributes reports whether the instance's __dict__ has a key that is not an exact str.
func OddAttributes(o Object) bool { return C.gdpy_odd_attributes(o.c()) != 0 }

// InstanceDict returns the instance's __dict__ if it exists already.
func (s *Scope) InstanceDict(o Object) (Object, bool) {
	v := s.take(C.gdpy_instance_dict(o.c()))
	return v, !v.IsNull()
}

// MadeDict returns the instance's __dict__ and creates it if necessary. It returns false if the type has none.
func (s *Scope) MadeDict(o Object) (Object, bool) {
	v := s.take(C.gdpy_made_dict(o.c()))
	return v, !v.IsNull()
}

// HasInstanceStorage reports whether instances like o can have instance attributes.
func HasInstanceStorage(o Object) bool { return C.gdpy_has_instance_storage(o.c()) != 0 }

// TypeLookup calls _PyType_Lookup: it returns the raw value found along the MRO, without calling descriptors.
func (s *Scope) TypeLookup(typ Object, name string) (Object, bool) {
	v, found := s.TypeLookupQuietly(typ, name)
	if s.OnTypeLookup != nil && Is(typ, Mutable) {
		s.OnTypeLookup(typ, name, v)
	}
	return v, found
}

// TypeLookupQuietly is TypeLookup without a call of OnTypeLookup, for results that nothing depends on.
func (s *Scope) TypeLookupQuietly(typ Object, name string) (Object, bool) {
	v := s.take(C.gdpy_type_lookup(typ.c(), s.Name(name).c()))
	return v, !v.IsNull()
}

// MadeOfObject reports whether object is the only class written in C in typ's MRO.
func (s *Scope) MadeOfObject(typ Object) bool {
	mro := s.Mro(typ)
	for i, base := range mro {
		if !Is(base, Mutable) && i < len(mro)-1 {
			return false
		}
	}
	return true
}

// MroIndex returns the index in typ.__mro__ of the class that defines name, or -1.
func (s *Scope) MroIndex(typ Object, name string) int {
	return int(C.gdpy_mro_index(typ.c(), s.Name(name).c()))
}

// DictItems returns keys and values in order, read from storage.
func (s *Scope) DictItems(d Object) (keys, values []Object) {
	n := DictLen(d)
	if n == 0 {
		return nil, nil
	}
	keys, values = make([]Object, n), make([]Object, n)
	n = int(C.gdpy_dict_items(d.c(), cArray(keys), cArray(values), C.Py_ssize_t(n)))
	keys, values = keys[:n], values[:n]
	for i := range keys {
		s.Adopt(keys[i])
		s.Adopt(values[i])
	}
	return keys, values
}

// TensorGrad returns the gradient of a leaf tensor, or None. It returns false if reading the gradient could run code.
func (s *Scope) TensorGrad(tensor Object) (Object, bool) {
	core, ok := Answered(s.Import("godynamo._C"))
	if !ok {
		return Object{}, false
	}
	grad, ok := Answered(s.CallMethod(core, "tensor_grad", tensor))
	return grad, ok && grad.Kind() != NotImplemented
}

// Lookup is the result of FindObject.
type Lookup int

// The results: the container has the object; it lacks it; this is unknown without running code of the program.
const (
	Found Lookup = iota
	Absent
	Undecided
)

// FindObject looks up a key of a dict or a member of a set that equals only itself: an instance of a class without
// __eq__ and __hash__, or a tensor. If a dict has the key, FindObject returns its value. It runs no code.
func (s *Scope) FindObject(container, object Object) (Object, Lookup) {
	core, ok := Answered(s.Import("godynamo._C"))
	if !ok {
		return Object{}, Undecided
	}
	found, ok := Answered(s.CallMethod(core, "find_object", container, object))
	if !ok {
		return Object{}, Undecided
	}
	parts := s.Items(found)
	switch n, _ := AsInt(parts[0]); {
	case n < 0:
		return Object{}, Undecided
	case n == 0:
		return Object{}, Absent
	}
	return parts[len(parts)-1], Found
}

// KeyAt returns the i-th key of a dict or member of a set, in the order of iteration. It runs no code.
func (s *Scope) KeyAt(container Object, i int) (Object, bool) {
	return s.readAt("key_at", container, i)
}

// ValueAt returns the value of the i-th key of a dict. It runs no code.
func (s *Scope) ValueAt(dict Object, i int) (Object, bool) { return s.readAt("value_at", dict, i) }

func (s *Scope) readAt(reader string, container Object, i int) (Object, bool) {
	core, ok := Answered(s.Import("godynamo._C"))
	if !ok {
		return Object{}, false
	}
	return Answered(s.CallMethod(core, reader, container, s.Int(int64(i))))
}

// DictGet looks up a key in the dict's storage; the key's hash and equality must run no user code.
func (s *Scope) DictGet(d, key Object) (Object, bool) {
	v := s.take(C.gdpy_dict_get(d.c(), key.c()))
	return v, !v.IsNull()
}

// DictGetName looks up a str key.
func (s *Scope) DictGetName(d Object, name string) (Object, bool) { return s.DictGet(d, s.Name(name)) }

// DictSet stores an item in a dict that godynamo made.
func (s *Scope) DictSet(d Object, key string, v Object) {
	if C.PyDict_SetItem(d.c(), s.Name(key).c(), v.c()) < 0 {
		s.outOfMemory()
	}
}

// Binary evaluates an operator in CPython.
func (s *Scope) Binary(op opcode.BinaryOp, a, b Object) (Object, error) {
	return s.result(C.gdpy_binary(C.int(op), a.c(), b.c()))
}

// Unary evaluates a unary operator. op: + is 0, - is 1, ~ is 2, `not` is 3.
func (s *Scope) Unary(op int, a Object) (Object, error) {
	return s.result(C.gdpy_unary(C.int(op), a.c()))
}

// Compare evaluates a rich comparison.
func (s *Scope) Compare(op opcode.CompareOp, a, b Object) (Object, error) {
	return s.result(C.gdpy_compare(C.int(op), a.c(), b.c()))
}

// Contains returns v in o.
func (s *Scope) Contains(o, v Object) (bool, error) {
	r := C.gdpy_contains(o.c(), v.c())
	if r < 0 {
		return false, s.Err()
	}
	return r == 1, nil
}

// Truth returns bool(o).
func (s *Scope) Truth(o Object) (bool, error) {
	r := C.gdpy_truth(o.c())
	if r < 0 {
		return false, s.Err()
	}
	return r == 1, nil
}

// Len returns len(o).
func (s *Scope) Len(o Object) (int, error) {
	r := int(C.gdpy_len(o.c()))
	if r < 0 {
		return 0, s.Err()
	}
	return r, nil
}

// GetItem returns o[key].
func (s *Scope) GetItem(o, key Object) (Object, error) {
	return s.result(C.gdpy_getitem(o.c(), key.c()))
}

// IsInstance returns isinstance(o, cls).
func (s *Scope) IsInstance(o, cls Object) (bool, error) {
	r := C.gdpy_isinstance(o.c(), cls.c())
	if r < 0 {
		return false, s.Err()
	}
	return r == 1, nil
}

// IsSubclass returns issubclass(o, cls).
func (s *Scope) IsSubclass(o, cls Object) (bool, error) {
	r := C.gdpy_issubclass(o.c(), cls.c())
	if r < 0 {
		return false, s.Err()
	}
	return r == 1, nil
}

// ReprFailed is the result of Repr if repr() raises.
const ReprFailed = "<repr failed>"

// Repr returns repr(o), or ReprFailed if that raises. If repr(o) would run user code, Repr only names o's type.
func (s *Scope) Repr(o Object) string {
	p := C.gdpy_repr(o.c())
	if p == nil {
		C.gdpy_forget_error()
		return ReprFailed
	}
	return GoString(s.take(p))
}

// GoString returns the text of a str, or "" for other objects and for texts that cannot be encoded.
func GoString(o Object) string {
	if o.IsNull() {
		return ""
	}
	var n C.Py_ssize_t
	p := C.gdpy_utf8(o.c(), &n)
	if p == nil {
		return ""
	}
	return C.GoStringN(p, C.int(n))
}

// AsInt returns the value of an int that fits 64 bits.
func AsInt(o Object) (int64, bool) {
	var over C.int
	v := C.gdpy_int(o.c(), &over)
	return int64(v), over == 0
}

// Index calls operator.index in CPython.
func (s *Scope) Index(o Object) (Object, error) { return s.result(C.gdpy_index(o.c())) }

// TypeName returns a type's tp_name without calling anything. That is the type's __name__; for some static
// types the module's name and a dot precede it.
func TypeName(typ Object) string {
	return C.GoString((*C.PyTypeObject)(unsafe.Pointer(typ.p)).tp_name)
}
