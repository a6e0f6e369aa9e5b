package variables

import (
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// GetItem implements ItemGetter. The result is a member of an enum class, an alias of a generic class, or the result of
// the class's __class_getitem__.
func (c *ClassVariable) GetItem(tx Translator, key VariableTracker) (VariableTracker, error) {
	s, w := tx.Scope(), tx.World()
	meta := tx.World().Metaclass(tx, c.Class)
	fold := meta == w.EnumMeta
	if m, err := c.metaMethod(tx, "__getitem__"); err != nil || m != nil {
		if err != nil {
			return nil, err
		}
		return Call(tx, m, []VariableTracker{key}, nil)
	}
	if _, ok := s.TypeLookup(meta, "__getitem__"); ok && !fold {
		return nil, unsupported(exc.SubscriptUnsupported, "class %s: its metaclass overrides this",
			py.TypeName(c.Class))
	}
	if fold {
		if err := guardMembers(tx, c.Class); err != nil {
			return nil, err
		}
	}
	if !fold {
		d, ok := s.TypeLookup(c.Class, "__class_getitem__")
		if _, hook := s.TypeLookup(meta, "__getattr__"); !ok && hook && !fold {
			return nil, unsupported(exc.SubscriptUnsupported, "class %s: its metaclass overrides this",
				py.TypeName(c.Class))
		}
		if !ok {
			return nil, &exc.Observed{TypeName: "TypeError", Text: "type '" + typeName(tx, c.Class) +
				"' is not subscriptable"}
		}
		if fold = d == w.GenericGetItem || d.Kind() == py.ClassMethodDescr ||
			c.Class == w.AbstractCallable; !fold {
			fn, err := c.GetAttr(tx, "__class_getitem__")
			if err != nil {
				return nil, err
			}
			return Call(tx, fn, []VariableTracker{key}, nil)
		}
	}
	k, ok := AsConstant(tx, key)
	if !ok && c.Class == w.AbstractCallable {
		k, ok = parameterTypes(tx, key)
	}
	if !ok {
		return nil, unsupported(exc.SubscriptUnsupported, "%s[%s]", Describe(tx, c), Describe(tx, key))
	}
	r, err := s.GetItem(c.Class, k)
	if err != nil {
		return nil, observed(err)
	}
	return immutableResult(tx, r)
}

// parameterTypes returns the key of Callable[[...], result], which has a list of known types.
func parameterTypes(tx Translator, key VariableTracker) (k py.Object, ok bool) {
	t, ok := key.(*TupleVariable)
	if !ok || !t.Exact() {
		return k, false
	}
	parts := make([]py.Object, len(t.items))
	for i, v := range t.items {
		if l, list := v.(*ListVariable); list {
			types, known := constants(tx, l.items)
			if !known {
				return k, false
			}
			parts[i] = tx.Scope().List(types...)
		} else if parts[i], ok = AsConstant(tx, MustRealize(tx, v)); !ok {
			return k, false
		}
	}
	return tx.Scope().Tuple(parts...), true
}

// callAlias calls the class of a generic alias and, as typing does, stores the alias on the instance as __orig_class__.
// It returns false if v is not a generic alias.
func callAlias(tx Translator, v VariableTracker, args []VariableTracker, kwargs []Kw) (VariableTracker, bool, error) {
	c, ok := v.(*ConstantVariable)
	if !ok || !tx.World().IsTorchConstant(c.Value.Type()) {
		return nil, false, nil
	}
	origin, ok := py.Answered(tx.Scope().GetAttr(c.Value, "__origin__"))
	if !ok || origin.Kind() != py.TypeKind && origin.Kind() != py.TypeSub {
		return nil, false, nil
	}
	// typing.List[int] cannot be called: its `_inst` is False. A full look-up on a types.GenericAlias would go on to
	// the aliased class, whose metaclass may have a __getattr__. InstanceAttr reads only the alias's own attributes.
	if inst, ok := tx.Scope().InstanceAttr(c.Value, "_inst"); ok && inst == py.False() {
		return nil, true, unsupported(exc.CallUnsupported, "%s", Describe(tx, v))
	}
	made, err := Call(tx, wrapKnown(tx, origin), args, kwargs)
	if err != nil {
		return nil, true, err
	}
	switch o := made.(type) {
	case *ObjectVariable:
		_, _, err := step(tx, func() (VariableTracker, error) { return nil, o.SetAttr(tx, "__orig_class__", v) },
			"AttributeError", "TypeError")
		return made, true, err
	case *ListVariable, *TupleVariable, *DictVariable, *SetVariable: // these instances cannot have attributes
		return made, true, nil
	}
	return nil, true, unsupported(exc.CallUnsupported, "%s", Describe(tx, v))
}
