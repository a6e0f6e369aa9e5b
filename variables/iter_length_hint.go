package variables

import (
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// To build a list or tuple from an iterable, CPython first reads a length: PyObject_LengthHint in Objects/abstract.c of
// CPython 3.11. Some functions read the iterable's length, others that of its iterator.

// UnpackSized does the same as Unpack, for operations that read the iterable's length: list(), sorted(), extend.
func UnpackSized(tx Translator, v VariableTracker) ([]VariableTracker, error) {
	return unpackHinted(tx, v, func(v, _ VariableTracker) error { return lengthHint(tx, v) })
}

// UnpackTuple does the same as Unpack, for operations that make a tuple: tuple(), a call with a star. From 3.14 on they
// read no length (PySequence_Tuple of Objects/abstract.c).
func UnpackTuple(tx Translator, v VariableTracker) ([]VariableTracker, error) {
	if tx.World().tupleAsksLength == py.Bool(true) {
		return UnpackSized(tx, v)
	}
	return Unpack(tx, v)
}

// UnpackIterator does the same as Unpack, for operations that read the iterator's length: a starred target, str.join,
// assignment to a slice, the pairs of a dict.
func UnpackIterator(tx Translator, v VariableTracker) ([]VariableTracker, error) {
	return unpackHinted(tx, v, func(v, it VariableTracker) error { return plainHint(tx, v, it) })
}

// unpackHinted does the same as Unpack. If user code may compute the length of v or of its iterator, it calls `ask`
// with v and the iterator before it takes the first item.
func unpackHinted(tx Translator, v VariableTracker, ask func(v, it VariableTracker) error) ([]VariableTracker, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return nil, err
	}
	if !hinted(v) {
		return Unpack(tx, v)
	}
	it, err := Iter(tx, v)
	if err != nil {
		return nil, err
	}
	if err := ask(v, it); err != nil {
		return nil, err
	}
	return Unpack(tx, it)
}

// plainHint breaks the graph if user code computes the length of `it`, an iterator over v.
func plainHint(tx Translator, v, it VariableTracker) error {
	var o *ObjectVariable
	switch x := it.(type) {
	case *ObjectIterator:
		o = x.obj
	case *SubscriptIterator:
		o = x.obj
	case *ReverseIterator:
		o, _ = x.owner.(*ObjectVariable)
	}
	if o != nil {
		for _, name := range []string{"__len__", "__length_hint__"} {
			if d, ok := tx.Scope().TypeLookup(o.Class, name); ok && !py.IsNative(o.Class, name, d) {
				return unsupported(exc.IterUnsupported, "items of %s, whose iterator has a %s", Describe(tx, v), name)
			}
		}
	}
	return nil
}

// hinted reports whether user code may compute the length of v.
func hinted(v VariableTracker) bool {
	switch v.(type) {
	case *ObjectVariable, *ClassVariable, *ConstantVariable, *ObjectIterator, *SubscriptIterator, *ReverseIterator:
		return true
	}
	return false
}

// lengthHint runs the code that PyObject_LengthHint runs for v. It discards the result.
func lengthHint(tx Translator, v VariableTracker) error {
	switch x := v.(type) {
	case *ObjectVariable:
		return x.lengthHint(tx)
	case *ObjectIterator:
		return x.obj.lengthHint(tx)
	case *SubscriptIterator:
		if x.done {
			return nil
		}
		return x.obj.sizeAsked(tx)
	case *ReverseIterator:
		if o, ok := x.owner.(*ObjectVariable); ok && x.seq == nil {
			if x.index < 0 {
				return unsupported(exc.IterUnsupported, "length of an exhausted iterator")
			}
			return o.sizeAsked(tx)
		}
	case *ClassVariable:
		meta := tx.World().Metaclass(tx, x.Class)
		if _, ok := tx.Scope().TypeLookup(meta, "__length_hint__"); ok {
			return unsupported(exc.IterUnsupported, "items of %s, whose metaclass has a __length_hint__",
				Describe(tx, v))
		}
		if _, ok := tx.Scope().TypeLookup(meta, "__len__"); ok && !tx.World().IsEnumClass(tx.Scope(), x.Class) {
			_, err := x.Len(tx)
			return unlessTypeError(tx, err)
		}
		if d, ok := tx.Scope().TypeLookup(meta, "__len__"); ok && !byEnum(tx, d) {
			return unsupported(exc.IterUnsupported, "items of %s, whose metaclass has a __len__", Describe(tx, v))
		}
	case *ConstantVariable:
		if _, member := enumMember(tx, x); member && !plainMember(tx, x.Value, "__len__", "__length_hint__") {
			return unsupported(exc.IterUnsupported, "items of %s", Describe(tx, v))
		}
	}
	return nil
}

// sizeAsked runs the instance's __len__ and ignores a TypeError that it raises.
func (o *ObjectVariable) sizeAsked(tx Translator) error {
	if _, ok := tx.Scope().TypeLookup(o.Class, "__len__"); !ok {
		return nil
	}
	n, err := o.Len(tx)
	if err == nil && n > maxUnroll {
		return unsupported(exc.TooLarge, "items of %s", Describe(tx, o))
	}
	return unlessTypeError(tx, err)
}

// lengthHint runs __len__ and, if that is missing or raises TypeError, __length_hint__.
func (o *ObjectVariable) lengthHint(tx Translator) error {
	if _, ok := tx.Scope().TypeLookup(o.Class, "__len__"); ok {
		n, err := o.Len(tx)
		if err == nil && n > maxUnroll {
			return unsupported(exc.TooLarge, "items of %s", Describe(tx, o))
		}
		if err == nil || unlessTypeError(tx, err) != nil {
			return err
		}
	}
	m, err := o.lookupSpecial(tx, "__length_hint__")
	if err != nil {
		return err
	}
	if d, ok := tx.Scope().TypeLookup(o.Class, "__length_hint__"); m == nil && ok && d.Kind() == py.NoneKind {
		return nil // calling None is a TypeError
	}
	if m == nil {
		return nil
	}
	r, err := Call(tx, m, nil, nil)
	if err != nil {
		return unlessTypeError(tx, err)
	}
	if r, err = Realize(tx, r); err != nil {
		return err
	}
	if c, ok := AsConstant(tx, r); ok && c.Kind() == py.NotImplemented {
		return nil
	} else if ok && c.Kind() == py.Int {
		if n, small := py.AsInt(c); small && n >= 0 && n <= maxUnroll {
			return nil
		}
	}
	return unsupported(exc.CallUnsupported, "__length_hint__ that returns %s", Describe(tx, r))
}

// unlessTypeError returns err, or nil if err is a TypeError raised by the program.
func unlessTypeError(tx Translator, err error) error {
	if e, ok := err.(*exc.Observed); ok && raises(tx, e, "TypeError") {
		return nil
	}
	return err
}
