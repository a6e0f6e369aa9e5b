package variables

import (
	"strconv"

	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Exception groups made by the translated code, and `except*`. The code follows Objects/exceptions.c, and
// exception_group_match in Python/ceval.c, of CPython 3.11. A group is an exception whose arguments are its message and
// its exceptions. CPython itself splits groups of user classes and groups that existed before the frame ran.

// isGroup reports whether class is ExceptionGroup or BaseExceptionGroup.
func isGroup(tx Translator, class py.Object) bool {
	return class == tx.World().Builtin("ExceptionGroup") || class == tx.World().Builtin("BaseExceptionGroup")
}

// newGroup implements BaseExceptionGroup.__new__. The result is an ExceptionGroup if all members are Exceptions.
func newGroup(tx Translator, class py.Object, args []VariableTracker) (*ObjectVariable, error) {
	if len(args) != 2 {
		return nil, unsupported(exc.CallUnsupported, "%s with %d arguments", py.TypeName(class), len(args))
	}
	if _, ok := ConstStr(tx, MustRealize(tx, args[0])); !ok {
		return nil, unsupported(exc.CallUnsupported, "%s with message %s", py.TypeName(class), Describe(tx, args[0]))
	}
	switch MustRealize(tx, args[1]).(type) {
	case *ListVariable, *TupleVariable:
	default:
		return nil, unsupported(exc.CallUnsupported, "%s of %s", py.TypeName(class), Describe(tx, args[1]))
	}
	members, err := Unpack(tx, args[1])
	if err != nil {
		return nil, err
	}
	if len(members) == 0 {
		return nil, RaiseText(tx, "ValueError", "second argument (exceptions) must be a non-empty sequence")
	}
	plain := true // whether all members are Exceptions
	for i, m := range members {
		if members[i], err = Realize(tx, m); err != nil {
			return nil, err
		}
		t, err := PythonType(tx, members[i])
		if err != nil {
			return nil, err
		}
		if !py.IsSubtype(t, tx.World().BaseException) {
			return nil, RaiseText(tx, "ValueError",
				"Item "+strconv.Itoa(i)+" of second argument (exceptions) is not an exception")
		}
		plain = plain && py.IsSubtype(t, tx.World().Builtin("Exception"))
	}
	if group := tx.World().Builtin("ExceptionGroup"); plain {
		class = group
	} else if class == group {
		return nil, RaiseText(tx, "TypeError", "Cannot nest BaseExceptions in an ExceptionGroup")
	}
	return &ObjectVariable{Class: class,
		exc: &exceptionState{args: args, members: members, native: tx.World().Builtin("BaseExceptionGroup")}}, nil
}

// MatchGroup implements CHECK_EG_MATCH. e is the exception that reaches an `except*` clause. MatchGroup returns the
// part of e that the clause handles, and the rest; either may be nil. If e is not a group, the handled part is a new
// group around e. matches reports whether the clause handles a class.
func MatchGroup(tx Translator, e VariableTracker,
	matches func(class py.Object) bool) (match, rest VariableTracker, err error) {
	e, err = Realize(tx, e)
	if err != nil {
		return nil, nil, err
	}
	if c, ok := AsConstant(tx, e); ok && c == pyNone { // earlier clauses handled everything
		return nil, nil, nil
	}
	o, ok := e.(*ObjectVariable)
	if !ok {
		return nil, nil, unsupported(exc.CallUnsupported, "except* with %s", Describe(tx, e))
	}
	group := py.IsSubtype(o.Class, tx.World().Builtin("BaseExceptionGroup"))
	switch {
	case matches(o.Class) && group:
		return o, nil, nil
	case matches(o.Class):
		wrapped, err := newGroup(tx, tx.World().Builtin("BaseExceptionGroup"),
			[]VariableTracker{StrConst(tx, ""), NewTuple([]VariableTracker{o}, nil)})
		return wrapped, nil, err
	case !group:
		return nil, o, nil
	}
	return splitGroup(tx, o, matches)
}

// splitGroup implements exceptiongroup_split_recursive. match or rest is nil if it would contain no exception.
func splitGroup(tx Translator, o *ObjectVariable,
	matches func(class py.Object) bool) (match, rest VariableTracker, err error) {
	if o.exc == nil || o.exc.members == nil || Materialized(o) {
		return nil, nil, unsupported(exc.CallUnsupported, "except* with %s", Describe(tx, o))
	}
	if err := tx.World().Enter(); err != nil {
		return nil, nil, err
	}
	defer tx.World().Leave()
	var in, out []VariableTracker
	for _, m := range o.exc.members {
		k, err := PythonType(tx, m)
		if err != nil {
			return nil, nil, err
		}
		switch member, ok := m.(*ObjectVariable); {
		case matches(k):
			in = append(in, m)
		case ok && py.IsSubtype(k, tx.World().Builtin("BaseExceptionGroup")):
			a, b, err := splitGroup(tx, member, matches)
			if err != nil {
				return nil, nil, err
			}
			if a != nil {
				in = append(in, a)
			}
			if b != nil {
				out = append(out, b)
			}
		default:
			out = append(out, m)
		}
	}
	if match, err = subset(tx, o, in); err != nil {
		return nil, nil, err
	}
	rest, err = subset(tx, o, out)
	return match, rest, err
}

// subset implements exceptiongroup_subset. It returns a group of some of o's exceptions that has o's message, context,
// cause and raisedAt. It returns nil if members is empty.
func subset(tx Translator, o *ObjectVariable, members []VariableTracker) (VariableTracker, error) {
	if len(members) == 0 {
		return nil, nil
	}
	g, err := newGroup(tx, tx.World().Builtin("BaseExceptionGroup"),
		[]VariableTracker{o.exc.args[0], NewList(members, nil)})
	if err != nil {
		return nil, err
	}
	if len(o.order) > 0 || o.dict != nil { // o has __notes__ or other attributes
		return nil, unsupported(exc.CallUnsupported, "a part of an exception group with attributes")
	}
	from := o.exc.part
	if from == nil {
		from = o
	}
	s := g.exc
	s.part, s.raisedAt, s.context, s.cause, s.suppress = from, o.exc.raisedAt, o.exc.context, o.exc.cause,
		o.exc.suppress
	return g, nil
}

// ReraiseGroup implements PREP_RERAISE_STAR. It returns the exception to raise after the `except*` clauses, or nil for
// none. `left` holds the exceptions that the clauses raised or did not handle. If there are several, ReraiseGroup
// breaks the graph, and CPython combines them.
func ReraiseGroup(tx Translator, caught VariableTracker, left []VariableTracker) (VariableTracker, error) {
	var found []VariableTracker
	for _, e := range left {
		e, err := Realize(tx, e)
		if err != nil {
			return nil, err
		}
		if c, ok := AsConstant(tx, e); !ok || c != pyNone {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	caught, err := Realize(tx, caught)
	if err != nil {
		return nil, err
	}
	o, ok := caught.(*ObjectVariable)
	if !ok || len(found) > 1 {
		return nil, unsupported(exc.ProgramRaises, "the rest of %s after its except* clauses", Describe(tx, caught))
	}
	if !py.IsSubtype(o.Class, tx.World().Builtin("BaseExceptionGroup")) {
		return found[0], nil
	}
	e, ok := found[0].(*ObjectVariable)
	if ok && (e == o || e.exc != nil &&
		(e.exc.part == o || o.exc != nil && e.exc.part != nil && e.exc.part == o.exc.part)) {
		return e, nil // e is a part of the caught group
	}
	// e is the only exception left, and a clause raised it.
	if ok && e.exc != nil && !Materialized(e) {
		return e, nil
	}
	return nil, unsupported(exc.ProgramRaises, "the rest of %s after its except* clauses", Describe(tx, caught))
}

// groupMethod implements the methods split, subgroup and derive of a group that the translated code made. The argument
// of split and subgroup must be an exception class or a tuple of them. It returns false for other methods and
// arguments.
func groupMethod(tx Translator, o *ObjectVariable, name string, args []VariableTracker) (VariableTracker, bool, error) {
	if o.exc.members == nil || len(args) != 1 {
		return nil, false, nil
	}
	if name == "derive" {
		g, err := newGroup(tx, tx.World().Builtin("BaseExceptionGroup"), []VariableTracker{o.exc.args[0], args[0]})
		if err != nil {
			return nil, true, err
		}
		return g, true, nil
	}
	if name != "split" && name != "subgroup" {
		return nil, false, nil
	}
	matches, err := ExceptionClasses(tx, args[0])
	if err != nil || matches == nil {
		return nil, false, err
	}
	var match, rest VariableTracker
	if matches(o.Class) {
		match = o
	} else if match, rest, err = splitGroup(tx, o, matches); err != nil {
		return nil, true, err
	}
	if match == nil {
		match = NoneConst()
	}
	if name == "subgroup" {
		return match, true, nil
	}
	if rest == nil {
		rest = NoneConst()
	}
	return NewTuple([]VariableTracker{match, rest}, nil), true, nil
}

// ExceptionClasses returns a function that reports whether an exception of a class matches v. v is an exception class
// or a tuple of them. For any other v, it returns nil.
func ExceptionClasses(tx Translator, v VariableTracker) (func(class py.Object) bool, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return nil, err
	}
	named := []VariableTracker{v}
	if s, ok := v.(Sequence); ok {
		if t, err := PythonType(tx, v); err != nil || t != tx.World().TupleType {
			return nil, err
		}
		if named, err = s.Items(tx); err != nil {
			return nil, err
		}
	}
	var classes []py.Object
	for _, c := range named {
		c, err := Realize(tx, c)
		if err != nil {
			return nil, err
		}
		k, ok := ExceptionClassOf(tx, c)
		if !ok {
			return nil, nil
		}
		classes = append(classes, k)
	}
	return func(class py.Object) bool {
		for _, k := range classes {
			if py.IsSubtype(class, k) {
				return true
			}
		}
		return false
	}, nil
}
