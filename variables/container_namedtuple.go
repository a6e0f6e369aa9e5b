package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// GetAttr implements AttrGetter. A field of a namedtuple is an item. Other attributes are read as from any instance.
func (t *TupleVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	s := tx.Scope()
	class, _ := t.PythonType(tx)
	d, ok := s.TypeLookup(class, name)
	if !t.obj.IsNull() && name != "__class__" {
		if _, own := s.InstanceAttr(t.obj, name); own {
			return nil, unsupported(exc.AttrUnsupported, "%s of a %s, which has it itself", name, py.TypeName(class))
		}
		data := false
		if ok {
			_, data = isDescriptor(tx, d)
		}
		if !data {
			tx.Output().AddGuards(guards.HasAttr(t.Src, name, false))
		}
	}
	if !ok {
		return nil, noAttribute(tx, class, name)
	}
	switch {
	case name == "__class__":
		return wrapKnown(tx, class), nil
	case t.class.IsNull() || t.class == tx.World().SizeType:
		return &BoundBuiltin{obj: t, name: name}, nil
	}
	src := guards.NewTypeAttrSource(classSource(tx, t.class), name)
	switch d.Kind() {
	case py.Function:
		return NewMethod(tx.Build(d, src), t, nil), nil
	case py.Property:
		if v, ok, err := getProperty(tx, t, d, src); ok || err != nil {
			return v, err
		}
	case py.StaticMethod, py.ClassMethod, py.TypeKind:
		return NewClass(t.class, nil).GetAttr(tx, name)
	case py.MethodDescr, py.WrapperDescr:
		return bindNative(tx, t, t.class, name, d, src), nil
	}
	if get, _ := isDescriptor(tx, d); !get {
		return tx.Build(d, src), nil
	}
	if v, err := t.field(tx, d, src); v != nil || err != nil {
		return v, err
	}
	return nil, unsupported(exc.AttrUnsupported, "%s of a %s", name, py.TypeName(t.class))
}
