package variables

import (
	"slices"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// writeThrough records a change to a value as an effect, in program order among the operations. A container made by the
// translated code needs no effect while it does not exist as a real object.
func writeThrough(tx Translator, v VariableTracker, values []VariableTracker,
	emit func(e Emitter, vs []VariableTracker) error) error {
	w := tx.World()
	before := w.Writes
	w.Writes++
	w.Wrote(v)
	if d, ok := v.(*DictVariable); ok && d.owner != nil && Materialized(d.owner) && !Materialized(d) {
		if err := tx.Output().Freeze(tx, d); err != nil {
			return err
		}
	}
	if !Materialized(v) {
		w.Own++
		return nil
	}
	w.Stored(values...)
	v.base().mutated = true
	if h := v.base().holder; h != nil {
		h.mutated = true
	}
	err := tx.Output().Effect(tx, append([]VariableTracker{v}, values...),
		func(e Emitter) error { return emit(e, values) })
	if isConstantStore(v, values) {
		w.Constants += w.Writes - before
	}
	return err
}

// isConstantStore reports whether a change stores a value without code in an attribute of an instance.
func isConstantStore(v VariableTracker, values []VariableTracker) bool {
	if _, ok := v.(*ObjectVariable); !ok || len(values) != 1 {
		return false
	}
	c, ok := values[0].(*ConstantVariable)
	return ok && slices.Contains(plainKinds, c.Value.Kind())
}

// methodEffect records an effect that repeats a method call on a real container at run time, in program order. For an
// instance of a builtin's subclass, it calls the builtin type's method even if the subclass overrides the method.
func methodEffect(tx Translator, v VariableTracker, name string, args []VariableTracker) error {
	if t := v.base().through; !t.IsNull() {
		return typeMethodEffect(tx, t, v, name, args)
	}
	return writeThrough(tx, v, args, func(e Emitter, vs []VariableTracker) error {
		if err := e.Load(v); err != nil {
			return err
		}
		e.LoadMethod(name)
		if err := LoadAll(e, vs); err != nil {
			return err
		}
		e.CallMethod(len(vs), nil)
		e.PopTop()
		return nil
	})
}

// typeMethodEffect records an effect that calls a builtin type's method on v.
func typeMethodEffect(tx Translator, t py.Object, v VariableTracker, name string, args []VariableTracker) error {
	method, err := tx.Scope().GetAttr(t, name)
	if err != nil {
		return observed(err)
	}
	tx.Output().Const(method)
	return writeThrough(tx, v, args, func(e Emitter, vs []VariableTracker) error {
		e.PushNull()
		e.LoadConst(method)
		if err := LoadAll(e, append([]VariableTracker{v}, vs...)); err != nil {
			return err
		}
		e.Call(1+len(vs), nil)
		e.PopTop()
		return nil
	})
}

// itemEffect records an effect that stores an item in a real container, or deletes the item if value is nil.
func itemEffect(tx Translator, v, key, value VariableTracker) error {
	if !v.base().through.IsNull() {
		if value == nil {
			return methodEffect(tx, v, "__delitem__", []VariableTracker{key})
		}
		return methodEffect(tx, v, "__setitem__", []VariableTracker{key, value})
	}
	if value == nil {
		return writeThrough(tx, v, []VariableTracker{key}, func(e Emitter, vs []VariableTracker) error {
			if err := LoadAll(e, []VariableTracker{v, vs[0]}); err != nil {
				return err
			}
			e.DeleteSubscr()
			return nil
		})
	}
	return writeThrough(tx, v, []VariableTracker{key, value}, func(e Emitter, vs []VariableTracker) error {
		if err := LoadAll(e, []VariableTracker{vs[1], v, vs[0]}); err != nil {
			return err
		}
		e.StoreSubscr()
		return nil
	})
}

// lettingGo is called when the program drops the value `old`. It refuses a value whose deallocation may run code
// (World.Replaceable). For a value that existed before the frame ran, it may add a guard that dropping the value at the
// same source runs no code in a later call.
func lettingGo(tx Translator, old VariableTracker) error {
	switch v := old.(type) {
	case *LazyVariable:
		if g, ok := guards.QuietAt(v.Src); ok {
			tx.Output().AddGuards(g)
		}
		return tx.World().Replaceable(tx.Scope(), v.obj)
	case *ObjectVariable:
		if d, ok := tx.Scope().TypeLookup(v.Class, "__del__"); ok && d.Kind() != py.NoneKind &&
			py.Is(v.Class, py.Mutable) {
			return unsupported(exc.StoreUnsupported, "replacing a %s, which has a __del__", py.TypeName(v.Class))
		}
	}
	return nil
}
