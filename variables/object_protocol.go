package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Truth implements Truther.
func (o *ObjectVariable) Truth(tx Translator) (bool, error) {
	for _, name := range []string{"__bool__", "__len__"} {
		m, err := o.slotMethod(tx, name)
		if err != nil {
			return false, err
		}
		if m == nil {
			if _, has := tx.Scope().TypeLookup(o.Class, name); has && name == "__bool__" && o.value != nil {
				break // the builtin type's __bool__ takes precedence over __len__
			}
			continue
		}
		if name == "__len__" {
			n, err := o.Len(tx)
			return n > 0, err
		}
		r, err := Call(tx, m, nil, nil)
		if err != nil {
			return false, err
		}
		return boolResult(tx, r)
	}
	if o.value != nil {
		return onHeld(o, func() (bool, error) { return Truth(tx, o.value) })
	}
	return true, nil
}

// boolResult returns the truth value of an object that __bool__ returned.
func boolResult(tx Translator, r VariableTracker) (bool, error) {
	r, err := Realize(tx, r)
	if err != nil {
		return false, err
	}
	if x, ok := r.(*ComputedVariable); ok && x.Type == tx.World().Builtin("bool") {
		return Truth(tx, x)
	}
	if c, ok := AsConstant(tx, r); !ok || c.Kind() != py.BoolKind {
		if IsTensor(r) {
			return false, unsupported(exc.TensorToPython, "__bool__ that returns a tensor")
		}
		return false, typeError(tx, "__bool__ should return bool, returned \x00", r)
	}
	return Truth(tx, r)
}

// Len implements Lener.
func (o *ObjectVariable) Len(tx Translator) (int, error) {
	m, err := o.slotMethod(tx, "__len__")
	if err != nil {
		return 0, err
	}
	if m == nil {
		if o.value != nil {
			return onHeld(o, func() (int, error) { return Len(tx, o.value) })
		}
		return 0, typeError(tx, "object of type '\x00' has no len()", o)
	}
	r, err := Call(tx, m, nil, nil)
	if err != nil {
		return 0, err
	}
	k, err := indexOf(tx, r)
	if err != nil {
		return 0, err
	}
	n, ok := py.AsInt(k)
	if !ok {
		return 0, unsupported(exc.CallUnsupported, "len of a %s", py.TypeName(o.Class))
	}
	if n < 0 {
		return 0, &exc.Observed{TypeName: "ValueError", Text: "__len__() should return >= 0"}
	}
	return int(n), nil
}

// GetItem implements ItemGetter.
func (o *ObjectVariable) GetItem(tx Translator, key VariableTracker) (VariableTracker, error) {
	m, err := o.slotMethod(tx, "__getitem__")
	if err != nil {
		return nil, err
	}
	if m != nil {
		return Call(tx, m, []VariableTracker{key}, nil)
	}
	if o.value == nil {
		return nil, typeError(tx, "'\x00' object is not subscriptable", o)
	}
	return o.valueItem(tx, key)
}

// valueItem reads an item of the contents as the builtin type does. If a dict lacks the key, its __missing__ is called.
func (o *ObjectVariable) valueItem(tx Translator, key VariableTracker) (VariableTracker, error) {
	if d, ok := o.value.(*DictVariable); ok {
		m, err := o.lookupSpecial(tx, "__missing__")
		if err != nil {
			return nil, err
		}
		if m != nil {
			v, ok, err := d.get(tx, key)
			if err != nil || ok {
				return v, err
			}
			return Call(tx, m, []VariableTracker{key}, nil)
		}
		if d.factory != nil && o.overrides(tx, "__setitem__") { // CPython stores the factory's result with __setitem__
			return nil, unsupported(exc.SubscriptUnsupported, "subscript of a %s with __setitem__",
				py.TypeName(o.Class))
		}
	}
	return onHeld(o, func() (VariableTracker, error) { return GetItem(tx, o.value, key) })
}

// SetItem implements ItemSetter.
func (o *ObjectVariable) SetItem(tx Translator, key, value VariableTracker) error {
	name, other, args, text := "__setitem__", "__delitem__", []VariableTracker{key, value},
		"'\x00' object does not support item assignment"
	if value == nil {
		name, other, args, text = "__delitem__", "__setitem__", args[:1], "'\x00' object does not support item deletion"
	}
	if _, has := tx.Scope().TypeLookup(o.Class, name); !has {
		if _, half := tx.Scope().TypeLookup(o.Class, other); half { // both methods share one C slot
			return RaiseText(tx, "AttributeError", name)
		}
	}
	m, err := o.slotMethod(tx, name)
	if err != nil {
		return err
	}
	if m == nil {
		if o.value != nil {
			return heldError(o, SetItem(tx, o.value, key, value))
		}
		// Classes made by a class statement also fill the sequence slot for deletion, which takes an int key.
		if value == nil && py.Is(o.Class, py.Mutable) {
			k, known := AsConstant(tx, key)
			if !known {
				return unsupported(exc.StoreUnsupported, "item of %s", Describe(tx, o))
			}
			if kind := k.Kind(); kind == py.Int || kind == py.BoolKind {
				text = "'\x00' object doesn't support item deletion"
			}
		}
		return typeError(tx, text, o)
	}
	_, err = Call(tx, m, args, nil)
	return err
}

// SetAttr implements AttrSetter. __setattr__ and __delattr__ are inlined if they are Python code.
func (o *ObjectVariable) SetAttr(tx Translator, name string, value VariableTracker) error {
	hook := "__setattr__"
	if value == nil {
		hook = "__delattr__"
	}
	d, _ := tx.Scope().TypeLookup(o.Class, hook)
	if d.Kind() == py.Function && (d != tx.World().ModuleSetAttr || o.Obj.IsNull()) {
		if o.IsModule(tx) && value == nil && !o.Obj.IsNull() {
			return unsupported(exc.StoreUnsupported, "del of a module's attribute")
		}
		fn := tx.Build(d, guards.NewTypeAttrSource(classSource(tx, o.Class), hook))
		args := []VariableTracker{o, StrConst(tx, name)}
		if value != nil {
			args = append(args, value)
		}
		_, err := Call(tx, fn, args, nil)
		return err
	}
	if d.Kind() != py.WrapperDescr && d != tx.World().ModuleSetAttr {
		return unsupported(exc.StoreUnsupported, "%s of a %s: %s is overridden", name, py.TypeName(o.Class), hook)
	}
	if v, ok := o.value.(*DictVariable); ok && d.Kind() == py.WrapperDescr {
		// the class sets __setattr__ = dict.__setitem__
		if own, _ := tx.Scope().TypeLookup(tx.World().DictType, "__setitem__"); own == d {
			return SetItem(tx, v, StrConst(tx, name), value)
		}
		if own, _ := tx.Scope().TypeLookup(tx.World().DictType, "__delitem__"); own == d {
			return SetItem(tx, v, StrConst(tx, name), nil)
		}
	}
	if d.Kind() == py.WrapperDescr && !tx.World().IsObjectMethod(tx.Scope(), hook, d) &&
		!py.Is(o.Class, py.GenericSetAttr) {
		return unsupported(exc.StoreUnsupported, "%s of a %s: %s is overridden", name, py.TypeName(o.Class), hook)
	}
	return o.setGeneric(tx, name, value, d == tx.World().ModuleSetAttr)
}

// setGeneric runs object.__setattr__ or object.__delattr__, or nn.Module.__setattr__ if module is true.
func (o *ObjectVariable) setGeneric(tx Translator, name string, value VariableTracker, module bool) error {
	if c, ok := tx.Scope().TypeLookup(o.Class, name); ok {
		if _, data := isDescriptor(tx, c); data {
			return o.setDescriptor(tx, name, c, value)
		}
	}
	if same, err := o.holdsAlready(tx, name, value, module); same || err != nil {
		return err
	}
	if module {
		if err := o.setModuleAttr(tx, name, value); err != nil {
			return err
		}
	}
	if o.dictless(tx) && (o.Obj.IsNull() || !py.HasInstanceStorage(o.Obj)) {
		if _, ok := tx.Scope().TypeLookup(o.Class, name); ok {
			return RaiseText(tx, "AttributeError",
				"'"+typeName(tx, o.Class)+"' object attribute '"+name+"' is read-only")
		}
		return raiseWords(tx, "AttributeError", tx.World().noPlace, o.Class, tx.Scope().Name(name))
	}
	if value == nil {
		d, inClass := tx.Scope().TypeLookup(o.Class, name)
		v := o.attrs[name]
		if v == nil {
			var err error
			if v, err = o.instanceAttr(tx, name, d, inClass); err != nil {
				return err
			}
		}
		if v == nil {
			o.guardNotOwn(tx, name)
			return noAttribute(tx, o.Class, name)
		}
	}
	if old := o.attrs[name]; old != nil {
		if err := lettingGo(tx, old); err != nil {
			return err
		}
	} else if !o.Obj.IsNull() && o.dict == nil {
		if o.Src != nil {
			tx.Output().AddGuards(guards.QuietName(o.inside(tx), name))
		}
		if v, ok := tx.Scope().InstanceAttr(o.Obj, name); ok && o.attrs[name] == nil && !o.gone[name] {
			if err := lettingGo(tx, NewLazy(v, nil)); err != nil {
				return err
			}
		}
	}
	if o.dict != nil {
		delete(o.known, name)
		var err error
		if value == nil {
			_, _, err = o.dict.remove(tx, StrConst(tx, name))
		} else {
			err = o.dict.put(tx, StrConst(tx, name), value)
		}
		if err != nil {
			return err
		}
	} else {
		o.store(name, value)
	}
	return o.storeEffectAs(tx, name, value, module)
}

// holdsAlready reports whether value is a tensor that the attribute already holds, as in `self.steps += 1`. Such a
// store changes nothing.
func (o *ObjectVariable) holdsAlready(tx Translator, name string, value VariableTracker, module bool) (bool, error) {
	if _, stored := o.attrs[name]; value == nil || stored || o.Obj.IsNull() || o.dict != nil || o.gone[name] {
		return false, nil
	}
	if l, ok := value.(*LazyVariable); ok && l.real == nil && !tx.World().IsTensor(l.obj) {
		return false, nil // value has not been read; it may be a list that is only appended to
	}
	v, err := Argument(tx, value)
	if err != nil {
		return false, err
	}
	if t, ok := v.(*TensorVariable); !ok || t.Src == nil || !t.Class.IsNull() {
		return false, nil
	}
	if own, _ := tx.Scope().TypeLookup(o.Class, "register_buffer"); module && own != tx.World().registerBuffer {
		return false, nil
	}
	class, inClass := tx.Scope().TypeLookup(o.Class, name)
	held, err := o.instanceAttr(tx, name, class, inClass)
	if err != nil {
		return false, err
	}
	if held == nil && module {
		buffers, err := o.lookup(tx, "_buffers")
		if err != nil || buffers == nil {
			return false, err
		}
		if held, _, err = moduleDictItem(tx, buffers, name); err != nil || held == nil {
			return false, err
		}
		hooks := tx.Output().Const(tx.World().bufferHooks)
		tx.Output().AddGuards(guards.PyCheck(guards.NewConstSource(hooks, "_global_buffer_registration_hooks"),
			tx.Output().Const(tx.World().Operator("not_")), "not"))
	}
	if held == nil {
		return false, nil
	}
	held, err = Realize(tx, held)
	return err == nil && held == v, err
}

// dictless reports whether the instances of the class have no __dict__, only slots.
func (o *ObjectVariable) dictless(tx Translator) bool {
	_, has := tx.Scope().TypeLookup(o.Class, "__dict__")
	return !has
}

// storeEffect stores an attribute on a real instance, with nn.Module.__setattr__ if the class has it, else with
// object.__setattr__.
func (o *ObjectVariable) storeEffect(tx Translator, name string, value VariableTracker) error {
	return o.storeEffectAs(tx, name, value, true)
}

// storeEffectAs does the same as storeEffect, but for modules the caller chooses the method. If `module` is true, it is
// nn.Module.__setattr__, which registers buffers, else object.__setattr__.
func (o *ObjectVariable) storeEffectAs(tx Translator, name string, value VariableTracker, module bool) error {
	hook := "__setattr__"
	if value == nil {
		hook = "__delattr__"
	}
	d, _ := tx.Scope().TypeLookup(o.Class, hook)
	plain := tx.World().IsObjectMethod(tx.Scope(), hook, d) || module && d == tx.World().ModuleSetAttr ||
		py.Is(o.Class, py.GenericSetAttr)
	values := []VariableTracker{}
	if value != nil {
		values = append(values, value)
	}
	if !plain {
		own, err := tx.Scope().GetAttr(tx.World().ObjectType, hook)
		if err != nil {
			return observed(err)
		}
		tx.Output().Const(own)
		return writeThrough(tx, o, values, func(e Emitter, vs []VariableTracker) error {
			e.PushNull()
			e.LoadConst(own)
			if err := e.Load(o); err != nil {
				return err
			}
			e.LoadStr(name)
			if err := LoadAll(e, vs); err != nil {
				return err
			}
			e.Call(2+len(vs), nil)
			e.PopTop()
			return nil
		})
	}
	return writeThrough(tx, o, values, func(e Emitter, vs []VariableTracker) error {
		if len(vs) == 0 {
			if err := e.Load(o); err != nil {
				return err
			}
			e.DeleteAttr(name)
			return nil
		}
		if err := LoadAll(e, []VariableTracker{vs[0], o}); err != nil {
			return err
		}
		e.StoreAttr(name)
		return nil
	})
}

// dictAttr returns o.__dict__. From then on, o.dict holds the instance's attributes.
func (o *ObjectVariable) dictAttr(tx Translator) (VariableTracker, error) {
	if o.dict != nil {
		return o.dict, nil
	}
	d := NewDict(nil)
	d.owner = o
	if !o.Obj.IsNull() {
		real, ok := tx.Scope().MadeDict(o.Obj)
		if !ok {
			return nil, unsupported(exc.AttrUnsupported, "__dict__ of a %s", py.TypeName(o.Class))
		}
		v, err := Realize(tx, tx.Build(real, guards.NewInstanceDictSource(o.inside(tx))))
		if err != nil {
			return nil, err
		}
		found, ok := v.(*DictVariable)
		if !ok {
			return nil, unsupported(exc.AttrUnsupported, "__dict__ of a %s", py.TypeName(o.Class))
		}
		if len(o.attrs) > 0 && Materialized(o) {
			// the stores of the program are replayed before this point, so the real dict has these attributes
			if err := o.overlay(tx, found); err != nil {
				return nil, err
			}
		}
		found.owner = o
		o.dict, o.known = found, nil // the dict holds the attributes from now on
		return found, nil
	}
	if o.exc != nil || o.dictless(tx) {
		return nil, unsupported(exc.AttrUnsupported, "__dict__ of a %s", py.TypeName(o.Class))
	}
	var rest []string
	for _, n := range o.order {
		v := o.attrs[n]
		if v == nil {
			continue
		}
		if c, ok := tx.Scope().TypeLookup(o.Class, n); ok && c.Kind() == py.Member {
			rest = append(rest, n)
			continue
		}
		if err := d.put(tx, StrConst(tx, n), v); err != nil {
			return nil, err
		}
		delete(o.attrs, n)
	}
	o.order, o.dict = rest, d
	return d, nil
}

// overlay applies the program's stores and deletions to the tracker of the instance's dict.
func (o *ObjectVariable) overlay(tx Translator, d *DictVariable) error {
	for n := range o.gone {
		if _, _, err := d.remove(tx, StrConst(tx, n)); err != nil {
			return err
		}
	}
	var rest []string
	for _, n := range o.order {
		v := o.attrs[n]
		if c, ok := tx.Scope().TypeLookup(o.Class, n); ok && c.Kind() == py.Member {
			rest = append(rest, n)
			continue
		}
		delete(o.attrs, n)
		if v == nil {
			continue
		}
		if err := d.put(tx, StrConst(tx, n), v); err != nil {
			return err
		}
	}
	o.order = rest
	return nil
}

// noAttribute returns the AttributeError for a missing attribute of an instance of class.
func noAttribute(tx Translator, class py.Object, name string) error {
	o := &exc.Observed{TypeName: "AttributeError", Text: "'" + typeName(tx, class) +
		"' object has no attribute '" + name + "'"}
	if v, err := newException(tx, tx.World().Builtin("AttributeError"),
		[]VariableTracker{NewConstant(tx.Scope().Str(o.Text), nil)}, nil); err == nil {
		o.Value = v
	}
	return o
}

// absentSlot returns the AttributeError for an attribute of class's __slots__ that has no value.
func absentSlot(tx Translator, class py.Object, name string) error {
	return raiseWords(tx, "AttributeError", tx.World().absentSlot, class, tx.Scope().Name(name))
}

// TooMany returns the ValueError for an iterable with more items than the variables that it is unpacked to. From 3.14
// on the text has the length of a list, tuple or dict.
func TooMany(tx Translator, v VariableTracker, wanted int) error {
	t, err := PythonType(tx, v)
	if err != nil {
		return err
	}
	s, got := tx.Scope(), wanted+1
	switch t {
	case tx.World().ListType, tx.World().TupleType, tx.World().DictType:
		items, err := Unpack(tx, v)
		if err != nil {
			return err
		}
		got = len(items)
	}
	return raiseWords(tx, "ValueError", tx.World().tooMany, t, s.Int(int64(wanted)), s.Int(int64(got)))
}

// raiseWords returns an exception whose text depends on the version of CPython: the result of calling words, a function
// of godynamo._translator.words.
func raiseWords(tx Translator, class string, words py.Object, args ...py.Object) error {
	text, err := tx.Scope().Call(words, args...)
	if err != nil {
		return err
	}
	return RaiseText(tx, class, py.GoString(text))
}

// IsObserved reports whether err is an exception raised by the program itself.
func IsObserved(err error) bool {
	_, ok := err.(*exc.Observed)
	return ok
}

// constantText returns the text of a tracker known to be a str constant.
func constantText(v VariableTracker) (string, bool) {
	if l, ok := v.(*LazyVariable); ok {
		v = l.real
	}
	c, ok := v.(*ConstantVariable)
	if !ok || c.Value.Kind() != py.Str {
		return "", false
	}
	return py.GoString(c.Value), true
}
