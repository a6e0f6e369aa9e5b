package translate

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/variables"
)

// freezeMade materializes a class that the frame makes (variables/class_made.go), and the class of an instance. done is
// false if Freeze must still materialize v.
func (o *OutputGraph) freezeMade(tx variables.Translator, v variables.VariableTracker) (done bool, err error) {
	if !o.world.MakesClasses() {
		return false, nil
	}
	if step, err := o.partOfTemplate(tx, v); err != nil {
		return false, err
	} else if step != 0 {
		return false, o.breakAt(step, exc.Break(exc.Reconstruct, "%s of a class that the frame makes", v.Kind()))
	}
	chosen := variables.Chosen(v)
	if chosen == nil || variables.Materialized(chosen) {
		return false, nil
	}
	switch x := chosen.(type) {
	case *variables.ClassVariable:
		made := o.world.MadeClass(x.Class)
		switch {
		case made == nil:
			return false, nil
		case made == x:
			o.hold(o.here(&event{emit: x.Reconstruct}), x)
			return true, nil
		}
		err := o.Freeze(tx, made)
		variables.SetSlot(x, variables.SlotOf(made))
		return true, err
	case *variables.TupleVariable:
		if made := o.world.MadeClass(x.Subclass()); made != nil {
			return false, o.Freeze(tx, made)
		}
	case *variables.ObjectVariable:
		if o.world.MadeClass(x.Class) != nil {
			return false, exc.Break(exc.Reconstruct, "an instance of a class that the frame makes")
		}
	}
	return false, nil
}

// partOfTemplate returns the step at which the frame makes a class if v is no constant and was read from the class's
// template, else 0.
func (o *OutputGraph) partOfTemplate(tx variables.Translator, v variables.VariableTracker) (int, error) {
	for s := v.Source(); s != nil; s = s.Base() {
		c, ok := s.(*guards.ConstSource)
		if !ok || c.Const.Index >= len(o.pool) {
			continue
		}
		step := o.world.ClassMadeAt(o.pool[c.Const.Index])
		if step == 0 {
			return 0, nil
		}
		real, err := variables.Realize(tx, v)
		if err != nil {
			return 0, err
		}
		if _, constant := variables.AsConstant(tx, real); constant {
			return 0, nil
		}
		return step, nil
	}
	return 0, nil
}
