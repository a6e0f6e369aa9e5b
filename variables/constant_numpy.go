package variables

import (
	"slices"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// isNumpy reports whether o is a numpy scalar. See python/godynamo/_translator/numpy.py.
func (w *World) isNumpy(o py.Object) bool {
	return o.Kind() == py.Other && dictHasType(w.numpyScalars, o.Type())
}

func (w *World) isNumpyBool(o py.Object) bool {
	return w.isNumpy(o) && py.TypeName(o.Type()) == "numpy.bool"
}

// isNumpyNumber reports whether v is a scalar of numpy, known or not. The two bools are single objects.
func isNumpyNumber(tx Translator, v VariableTracker) bool {
	switch x := v.(type) {
	case *ConstantVariable:
		return tx.World().isNumpy(x.Value) && !tx.World().isNumpyBool(x.Value)
	case *ArrayVariable:
		return tx.World().isNumpy(x.Sample)
	}
	return false
}

// HoldsNumpy reports whether v is a numpy scalar or a container that holds one.
func HoldsNumpy(tx Translator, v VariableTracker) bool {
	return holdsNumpy(tx, v, map[VariableTracker]bool{})
}

func holdsNumpy(tx Translator, v VariableTracker, seen map[VariableTracker]bool) bool {
	if _, size := v.(*SymNodeVariable); size {
		return false // Realize would make the size a constant
	}
	v, err := Realize(tx, v)
	if err != nil || seen[v] {
		return false
	}
	seen[v] = true
	if c, ok := v.(*ConstantVariable); ok {
		return tx.World().isNumpy(c.Value)
	}
	c, ok := v.(Container)
	return ok && slices.ContainsFunc(c.Children(), func(it VariableTracker) bool { return holdsNumpy(tx, it, seen) })
}

// isNumpyFunction reports whether o is a numpy function that returns a number when given numbers and lists of numbers.
func (w *World) isNumpyFunction(o py.Object) bool {
	// The type is checked first, since looking up an object of a user's class would call its __hash__.
	return o.Kind() == py.Other && dictHasType(w.numpyCallables, o.Type()) && dictHasType(w.numpyFunctions, o)
}

func (w *World) anyNumpy(objs []py.Object) bool {
	for _, o := range objs {
		if w.isNumpy(o) {
			return true
		}
	}
	return false
}

// computeKnown computes an operator on known operands. `kind` is "binary", "unary" or "compare", and `op` is the number
// of the operator among those of its kind.
func computeKnown(tx Translator, kind string, op int, objs ...py.Object) (r py.Object, err error) {
	s, w := tx.Scope(), tx.World()
	defer func() { namesTypes(tx, err, objs) }()
	if err := w.computable(tx, objs, operatorSpecials(kind, op)...); err != nil {
		return py.Object{}, err
	}
	if w.anyNumpy(objs) || kind == "unary" && op == 2 && objs[0].Kind() == py.BoolKind {
		r, err := s.Call(w.numpyOperation, s.Name(kind), s.Int(int64(op)), s.Tuple(objs...))
		return watchedResult(tx, r, err)
	}
	switch kind {
	case "unary":
		return s.Unary(op, objs[0])
	case "compare":
		return s.Compare(opcode.CompareOp(op), objs[0], objs[1])
	}
	return s.Binary(opcode.BinaryOp(op), objs[0], objs[1])
}

// namesTypes guards the names of user classes that the text of err may contain.
func namesTypes(tx Translator, err error, objs []py.Object) {
	if err == nil {
		return
	}
	_ = tx.World().eachWithin(tx, objs, maxNested, func(o py.Object) error {
		typeName(tx, o.Type())
		if k := o.Kind(); k == py.TypeKind || k == py.TypeSub {
			typeName(tx, o)
		}
		return nil
	})
}

// operatorSpecials returns the special methods that an operator looks up on its operands. It returns nil if the
// operator may call any special method.
func operatorSpecials(kind string, op int) []string {
	switch {
	case kind == "unary" && op == 3:
		return []string{"__bool__", "__len__"}
	case kind == "unary":
		return []string{"__" + unaryNames[op] + "__"}
	case kind == "compare":
		c := opcode.CompareOp(op)
		return []string{c.Method(), c.Swapped().Method(), "__eq__"}
	}
	if n := opcode.BinaryOp(op).Plain(); n != opcode.NB_REMAINDER {
		return []string{n.Method(), n.Reflected(), n.InplaceMethod(), "__index__"}
	}
	return nil // `text % v` may call any special method
}

// callKnown calls a function on known values. A call that warns is unsupported, since the warning must name the line
// of the call, each time.
func callKnown(tx Translator, fn py.Object, objs []py.Object, names []string) (r py.Object, err error) {
	s, w := tx.Scope(), tx.World()
	defer func() { namesTypes(tx, err, objs) }()
	if err := w.computable(tx, objs); err != nil {
		return py.Object{}, err
	}
	self, bound := py.Object{}, false
	if k := fn.Kind(); k == py.Builtin || k == py.MethodWrapper {
		self, bound = w.BoundSelf(s, fn)
	}
	numpy := w.anyNumpy(objs) || bound && w.isNumpy(self) || dictHasType(w.numpyScalars, fn) || w.isNumpyFunction(fn)
	if !numpy && !w.mayWarn(fn, self, objs) {
		return s.CallKw(fn, objs, names)
	}
	computed := w.computed
	if numpy {
		computed = w.numpyComputed
	}
	return callWatched(tx, computed, fn, objs, names)
}

// callWatched calls a function through one of the helpers that notice warnings (_translator/warned.py and numpy.py).
func callWatched(tx Translator, computed, fn py.Object, objs []py.Object, names []string) (py.Object, error) {
	s := tx.Scope()
	var pairs [][2]py.Object
	at := len(objs) - len(names)
	for i, n := range names {
		pairs = append(pairs, [2]py.Object{s.Name(n), objs[at+i]})
	}
	kw, err := s.Dict(pairs...)
	if err != nil {
		return py.Object{}, err
	}
	r, err := s.Call(computed, fn, s.Tuple(objs[:at]...), kw)
	return watchedResult(tx, r, err)
}

// mayWarn reports whether a function that may be called while translating (_translator/kinds.py) warns for some values:
// complex of complex numbers, bytes.decode of unknown escapes, ~ of a bool, the truth of NotImplemented. `self` is the
// object that it is bound to, if any. The call then goes through a helper that notices warnings, which is slower.
func (w *World) mayWarn(fn, self py.Object, objs []py.Object) bool {
	if self.IsNull() && len(objs) > 0 {
		self = objs[0]
	}
	switch self.Kind() {
	case py.Bytes, py.BoolKind, py.NotImplemented:
		return true
	}
	return fn == w.Builtin("complex") || fn.Kind() == py.Function
}

func watchedResult(tx Translator, r py.Object, err error) (py.Object, error) {
	if err != nil {
		return py.Object{}, err
	}
	if r == pyNone {
		return py.Object{}, unsupported(exc.CallUnsupported, "a call that warns")
	}
	return tx.Scope().Items(r)[0], nil
}
