package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
)

// LazyVariable is a value passed to the frame that the translation has not read yet. It has no guards, and passes
// unchanged through assignments, calls and returns.
type LazyVariable struct {
	Base
	obj  py.Object
	real VariableTracker
}

// NewLazy returns the tracker of obj, which is read through src.
func NewLazy(obj py.Object, src guards.Source) *LazyVariable {
	return &LazyVariable{Base: Base{Src: src}, obj: obj}
}

// Kind implements VariableTracker.
func (l *LazyVariable) Kind() string {
	if l.real != nil {
		return l.real.Kind()
	}
	return "LazyVariable"
}

// Guards implements VariableTracker. It returns the guards of the realized value.
func (l *LazyVariable) Guards() guards.Set {
	if l.real != nil {
		return l.real.Guards()
	}
	return l.set
}

// Peek returns the real object of a lazy value. Peek does not count as a read by the program and adds no guard.
func (l *LazyVariable) Peek() py.Object { return l.obj }

// Realized reports whether Realize has determined the value's kind.
func (l *LazyVariable) Realized() bool { return l.real != nil }

// GuardType guards the type of a value that the translation does not read.
func (l *LazyVariable) GuardType(tx Translator) {
	tx.Output().AddGuards(guards.TypeMatch(l.Src, tx.Output().Const(l.obj.Type())))
}

// Real returns the tracker that Realize chose for the value, or nil if Realize has not been called.
func (l *LazyVariable) Real() VariableTracker { return l.real }

// Chosen returns the tracker that models v, nil if Realize has not chosen one.
func Chosen(v VariableTracker) VariableTracker {
	if l, ok := v.(*LazyVariable); ok {
		return l.real
	}
	return v
}

// Realize returns the tracker that models v. For a lazy value, it determines the kind and adds guards. It returns other
// trackers unchanged, with three exceptions: objects that a Python call in the graph may have changed (see current),
// sizes, whose values it fixes (see SymNodeVariable), and parameters that FSDP2 may have resharded, which break the
// graph.
func Realize(tx Translator, v VariableTracker) (VariableTracker, error) {
	l, ok := v.(*LazyVariable)
	if !ok {
		if x, ok := v.(*SymNodeVariable); ok {
			return x.Fixed(tx)
		}
		if x, ok := v.(*staleParameter); ok {
			return nil, x.unknown()
		}
		metAbove(tx, v)
		return current(tx, v)
	}
	if l.real == nil {
		if tx.World().Calls > 0 && !lookedAt(tx, l.obj) {
			o, err := tx.Output().ObjectNode(tx, l)
			if err != nil {
				return nil, err
			}
			l.real = o
			return o, nil
		}
		real, err := wrap(tx, l.obj, l.Src)
		if err != nil {
			return nil, err
		}
		l.real = real
	}
	metAbove(tx, l.real)
	return current(tx, l.real)
}

// RealizeAll returns the realized values as a new slice.
func RealizeAll(tx Translator, vs []VariableTracker) ([]VariableTracker, error) {
	out := make([]VariableTracker, len(vs))
	for i, v := range vs {
		r, err := Realize(tx, v)
		if err != nil {
			return nil, err
		}
		out[i] = r
	}
	return out, nil
}
