package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

const subclassesName = "__subclasses__"

// boundSubclasses returns cls.__subclasses__, bound to the class. m is the metaclass's attribute of this name. It
// returns nil for other methods, and if the metaclass replaces type's method.
func (c *ClassVariable) boundSubclasses(tx Translator, name string, m py.Object) VariableTracker {
	if own, _ := tx.Scope().TypeLookup(tx.World().TypeType, subclassesName); name != subclassesName || m != own {
		return nil
	}
	tx.Output().AddGuards(guards.TypeHasAttr(classSource(tx, c.Class), name, false))
	return &BoundBuiltin{obj: c, name: name}
}

// subclasses implements cls.__subclasses__(). CPython lists the classes, and a guard compares them: a class that is
// made later, or that has died, is noticed.
func (c *ClassVariable) subclasses(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if len(args)+len(kwargs) > 0 || tx.World().Calls > 0 {
		return nil, unsupported(exc.CallUnsupported, "__subclasses__ of class %s", py.TypeName(c.Class))
	}
	s := tx.Scope()
	r, err := s.Call(tx.World().subclasses, c.Class)
	if err != nil {
		return nil, observed(err)
	}
	found, holds := s.Items(r)[0], s.Items(r)[1]
	tx.Output().AddGuards(guards.PyCheck(classSource(tx, c.Class), tx.Output().Const(holds), "has the same subclasses"))
	var items []VariableTracker
	for _, class := range s.Items(found) {
		items = append(items, wrapKnown(tx, class))
	}
	return NewList(items, nil), nil
}
