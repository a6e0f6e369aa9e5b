package variables

import (
	"strconv"
	"strings"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// exceptionState is the state that BaseException keeps in C: the arguments, and the fields that raising sets. An
// exception that the translated code made is an ObjectVariable with this state. So its Python methods, properties and
// attributes work like those of any object.
//
// An exception raised while translating lacks the traceback that CPython would add, so it must not leave the frame. If
// the exception is needed as a real object, the translation restarts and lets CPython raise it at the step RaisedAt (a
// step is the translation of one instruction).
type exceptionState struct {
	args     []VariableTracker
	opaque   bool // whether args are unknown, so that only CPython has the exact text
	raisedAt int  // step of the outermost frame at which it was raised, or 0
	context  VariableTracker
	cause    VariableTracker
	suppress bool
	native   py.Object // the first class of the MRO that is written in C
	// ownInit is true if __init__ is written in Python. It runs while translating.
	ownInit bool
	members []VariableTracker // the members of an exception group
	// part is the original group if this group was split from it, in one or several steps.
	part *ObjectVariable
}

// IsException reports whether v is an instance of BaseException or of a subclass.
func IsException(tx Translator, v VariableTracker) bool {
	o, ok := v.(*ObjectVariable)
	return ok && py.IsSubtype(o.Class, tx.World().BaseException)
}

// newException makes an instance of an exception class.
func newException(tx Translator, class py.Object, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	s := tx.Scope()
	o := &ObjectVariable{Class: class, exc: &exceptionState{args: args}}
	for _, k := range s.Mro(class) {
		if !py.Is(k, py.Mutable) {
			o.exc.native = k
			break
		}
	}
	if isGroup(tx, class) && len(kwargs) == 0 {
		return newGroup(tx, class, args)
	}
	if d, ok := s.TypeLookup(class, "__new__"); !ok || d.Kind() != py.Builtin {
		return nil, unsupported(exc.CallUnsupported, "exception %s with its own __new__", py.TypeName(class))
	}
	init, _ := s.TypeLookup(class, "__init__")
	if init.Kind() == py.Function {
		if !plainExceptions[py.TypeName(o.exc.native)] {
			return nil, unsupported(exc.CallUnsupported, "exception %s over %s", py.TypeName(class),
				py.TypeName(o.exc.native))
		}
		o.exc.ownInit = true
		fn := tx.Build(init, guards.NewTypeAttrSource(classSource(tx, class), "__init__"))
		r, err := Call(tx, fn, append([]VariableTracker{o}, args...), kwargs)
		if err != nil {
			return nil, err
		}
		if c, ok := AsConstant(tx, r); !ok || c != pyNone {
			return nil, &exc.Observed{TypeName: "TypeError", Text: "__init__() should return None", Vague: true}
		}
		return o, nil
	}
	if !py.IsNative(class, "__init__", init) {
		return nil, unsupported(exc.CallUnsupported, "exception %s whose __init__ is not a function",
			py.TypeName(class))
	}
	if len(kwargs) > 0 {
		return nil, unsupported(exc.CallUnsupported, "exception with keywords")
	}
	if !plainExceptions[py.TypeName(o.exc.native)] && !valueExceptions[py.TypeName(o.exc.native)] {
		return nil, unsupported(exc.CallUnsupported, "exception %s", py.TypeName(class))
	}
	return o, nil
}

// plainExceptions are the classes whose instances keep only their arguments in C.
var plainExceptions = map[string]bool{
	"BaseException": true, "Exception": true, "ArithmeticError": true, "AssertionError": true, "BufferError": true,
	"EOFError":           true,
	"FloatingPointError": true, "GeneratorExit": true, "IndexError": true, "KeyError": true, "KeyboardInterrupt": true,
	"LookupError": true, "MemoryError": true, "NotImplementedError": true, "OverflowError": true,
	"RecursionError": true,
	"ReferenceError": true, "RuntimeError": true, "StopAsyncIteration": true, "TypeError": true,
	"UnboundLocalError": true, "ValueError": true, "ZeroDivisionError": true, "Warning": true, "UserWarning": true,
	"DeprecationWarning": true, "RuntimeWarning": true, "FutureWarning": true, "SyntaxWarning": true,
	"PendingDeprecationWarning": true,
	"ImportWarning":             true, "UnicodeWarning": true, "BytesWarning": true, "ResourceWarning": true,
}

// valueExceptions are the classes whose C fields follow from the positional arguments alone. These fields are `value`
// and `code`; the fields `name` and `obj` stay None.
var valueExceptions = map[string]bool{"StopIteration": true, "SystemExit": true, "NameError": true,
	"AttributeError": true}

// wordedExceptions are classes that C code raises with the error's text as the only argument.
var wordedExceptions = map[string]bool{
	"TypeError": true, "ValueError": true, "IndexError": true, "RuntimeError": true, "AttributeError": true,
	"NameError":         true,
	"UnboundLocalError": true,
}

// namesEnums guards the names of enum classes that occur in the text of a CPython error. Guards on enum members do not
// cover the names of their classes.
func namesEnums(tx Translator, text py.Object) {
	if text.Kind() != py.Str {
		return
	}
	for _, class := range tx.World().enums {
		if strings.Contains(py.GoString(text), py.TypeName(class)) {
			typeName(tx, class)
		}
	}
}

// ExceptionOf returns the tracker of an exception that the user's code raised.
func ExceptionOf(tx Translator, o *exc.Observed) (*ObjectVariable, error) {
	if v, ok := o.Value.(*ObjectVariable); ok {
		return v, nil
	}
	class, args, opaque := py.Object{}, []VariableTracker(nil), true
	if real, ok := o.Real.(py.Object); ok && !real.IsNull() {
		class = real.Type()
		own, _ := tx.Scope().TypeLookup(tx.World().BaseException, "args")
		if a, ok := py.Answered(tx.Scope().CallMethod(own, "__get__", real, class)); ok && a.Kind() == py.Tuple {
			opaque = false
			for _, it := range tx.Scope().Items(a) {
				if !isImmutable(tx, it) {
					opaque = true
				}
				namesEnums(tx, it)
				args = append(args, NewConstant(it, nil))
			}
		}
	} else if c, ok := tx.Scope().DictGetName(tx.World().builtins, o.TypeName); ok && c.Kind() == py.TypeKind {
		class = c
		if !o.Vague && wordedExceptions[o.TypeName] {
			opaque = false
			args = []VariableTracker{NewConstant(tx.Scope().Str(o.Text), nil)}
		}
	} else {
		return nil, unsupported(exc.ProgramRaises, "%s: %s", o.TypeName, o.Text)
	}
	if opaque {
		args = nil
	}
	v := &ObjectVariable{Class: class, exc: &exceptionState{args: args, opaque: opaque, native: class}}
	if !plainExceptions[py.TypeName(class)] && !valueExceptions[py.TypeName(class)] {
		v.exc.opaque = true
	}
	o.Value = v
	return v, nil
}

// RaisesA reports whether o, an exception that the user's code raised, is an instance of the builtin class of this
// name.
func RaisesA(tx Translator, o *exc.Observed, class string) (bool, error) {
	if o.Value == nil && o.Real == nil {
		return o.TypeName == class, nil
	}
	v, err := ExceptionOf(tx, o)
	if err != nil {
		return false, err
	}
	return py.IsSubtype(v.Class, tx.World().Builtin(class)), nil
}

// StopIteration returns the error for a StopIteration with this value. The exception has no argument if value is nil or
// None.
func StopIteration(tx Translator, value VariableTracker) error {
	var args []VariableTracker
	if value != nil {
		if c, ok := AsConstant(tx, value); !ok || c != pyNone {
			args = append(args, value)
		}
	}
	class := tx.World().Builtin("StopIteration")
	return Raise(&ObjectVariable{Class: class, exc: &exceptionState{args: args, native: class}})
}

// RaiseText returns the error for `raise class(text)`. The text must equal CPython's.
func RaiseText(tx Translator, class, text string) *exc.Observed {
	c := tx.World().Builtin(class)
	return Raise(&ObjectVariable{Class: c, exc: &exceptionState{args: []VariableTracker{StrConst(tx, text)},
		native: c}})
}

// RaiseFrom returns the error for `raise class(text) from cause`.
func RaiseFrom(tx Translator, class, text string, cause *ObjectVariable) error {
	c := tx.World().Builtin(class)
	e := &ObjectVariable{Class: c, exc: &exceptionState{args: []VariableTracker{StrConst(tx, text)}, native: c}}
	SetCause(e, cause)
	return Raise(e)
}

// Raise returns the error for `raise v`. v must be an exception.
func Raise(v *ObjectVariable) *exc.Observed {
	return &exc.Observed{TypeName: py.TypeName(v.Class), Value: v}
}

// MarkRaised records the step of the outermost frame at which an exception was raised. handled is the exception that
// was being handled then, or nil.
func MarkRaised(v *ObjectVariable, step int, handled VariableTracker) {
	if v.exc == nil {
		return
	}
	if v.exc.raisedAt == 0 {
		v.exc.raisedAt = step
	}
	if handled != nil && handled != VariableTracker(v) {
		v.exc.context = handled
	}
}

// SetCause sets the cause as `raise v from cause` does. cause is None or an exception.
func SetCause(v *ObjectVariable, cause VariableTracker) {
	v.exc.cause, v.exc.suppress = cause, true
}

// RaisedAt returns the step of the outermost frame at which an exception was raised while translating, or 0 if it was
// not. v is the exception or its traceback.
func RaisedAt(v VariableTracker) int {
	switch x := v.(type) {
	case *ObjectVariable:
		if x.exc != nil && x.slot == nil {
			return x.exc.raisedAt
		}
	case *TracebackVariable:
		if x.of.exc != nil {
			return x.of.exc.raisedAt
		}
	}
	return 0
}

// exceptionField reads an attribute that BaseException keeps in C, from an exception that the translated code made.
func (o *ObjectVariable) exceptionField(tx Translator, name string) (VariableTracker, error) {
	e := o.exc
	switch {
	case name == "__class__":
		return NewClass(o.Class, nil), nil
	case name == "__dict__" || Materialized(o):
	case name == "exceptions" && e.members != nil:
		return NewTuple(e.members, nil), nil
	case name == "message" && e.members != nil:
		return e.args[0], nil
	case name == "args" && !e.opaque:
		return NewTuple(e.args, nil), nil
	case name == "__cause__" && e.cause != nil:
		return e.cause, nil
	case name == "__cause__":
		return NoneConst(), nil
	case name == "__context__" && e.context != nil:
		return e.context, nil
	case name == "__suppress_context__":
		return BoolConst(e.suppress), nil
	case name == "__traceback__" && e.raisedAt != 0:
		return NewTraceback(o), nil
	case (name == "value" || name == "code") && !e.opaque && len(e.args) <= 1:
		if len(e.args) == 0 {
			return NoneConst(), nil
		}
		return e.args[0], nil
	}
	return nil, unsupported(exc.AttrUnsupported, "%s of an exception", name)
}

// exceptionFields are the attributes that a guard program can read from an exception that existed before the frame ran.
var exceptionFields = map[string]guards.FuncField{"args": guards.ExceptionArgs, "__cause__": guards.ExceptionCause,
	"__context__": guards.ExceptionContext, "__traceback__": guards.ExceptionTraceback}

// realExceptionField reads one of exceptionFields from an exception that existed before the frame ran. It returns false
// for other attributes and objects.
func (o *ObjectVariable) realExceptionField(tx Translator, name string, d py.Object) (VariableTracker, bool, error) {
	field, ok := exceptionFields[name]
	if !ok || o.exc != nil || o.Obj.IsNull() || o.Src == nil || !py.IsSubtype(o.Class, tx.World().BaseException) {
		return nil, false, nil
	}
	if own, _ := tx.Scope().TypeLookup(tx.World().BaseException, name); own != d {
		return nil, false, nil
	}
	v, err := tx.Scope().CallMethod(d, "__get__", o.Obj, o.Class) // calls no user code
	if err != nil {
		return nil, true, observed(err)
	}
	return remember(o, name, tx.Build(v, guards.NewFunctionFieldSource(o.Src, field))), true, nil
}

// exceptionMethod calls a method that BaseException implements in C, on an exception that the translated code made.
func exceptionMethod(tx Translator, o *ObjectVariable, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	e := o.exc
	if len(kwargs) > 0 || Materialized(o) {
		return nil, unsupported(exc.CallUnsupported, "%s of an exception", name)
	}
	if r, ok, err := groupMethod(tx, o, name, args); ok || err != nil {
		return r, err
	}
	switch {
	case name == "__init__" && e.members != nil:
	case name == "__init__":
		e.args = args
		return NoneConst(), nil
	case name == "__str__" && len(args) == 0 && !e.opaque:
		return exceptionText(tx, o)
	case name == "__repr__" && len(args) == 0 && !e.opaque:
		return exceptionRepr(tx, o)
	}
	return nil, unsupported(exc.CallUnsupported, "%s of an exception", name)
}

// exceptionRepr implements BaseException.__repr__.
func exceptionRepr(tx Translator, o *ObjectVariable) (VariableTracker, error) {
	var of VariableTracker = NewTuple(o.exc.args, nil)
	open, end := "", ""
	if len(o.exc.args) == 1 {
		of, open, end = o.exc.args[0], "(", ")"
	}
	text, err := Call(tx, NewBuiltin(tx.World().Builtin("repr"), "repr", nil), []VariableTracker{of}, nil)
	if err != nil {
		return nil, err
	}
	inner, ok := ConstStr(tx, MustRealize(tx, text))
	if !ok {
		return nil, unsupported(exc.CallUnsupported, "__repr__ of an exception")
	}
	return StrConst(tx, typeName(tx, o.Class)+open+inner+end), nil
}

// exceptionText implements __str__ of BaseException, KeyError and BaseExceptionGroup.
func exceptionText(tx Translator, o *ObjectVariable) (VariableTracker, error) {
	str := NewBuiltin(tx.World().Builtin("str"), "str", nil)
	if n := len(o.exc.members); n > 0 {
		text, _ := ConstStr(tx, MustRealize(tx, o.exc.args[0]))
		plural := "s"
		if n == 1 {
			plural = ""
		}
		return StrConst(tx, text+" ("+strconv.Itoa(n)+" sub-exception"+plural+")"), nil
	}
	switch len(o.exc.args) {
	case 0:
		return StrConst(tx, ""), nil
	case 1:
		if py.TypeName(o.exc.native) == "KeyError" {
			return Call(tx, NewBuiltin(tx.World().Builtin("repr"), "repr", nil), o.exc.args, nil)
		}
		return Call(tx, str, o.exc.args, nil)
	}
	return Call(tx, str, []VariableTracker{NewTuple(o.exc.args, nil)}, nil)
}

// reconstructException emits code that makes the exception. The caller emits the code that stores its attributes.
func (o *ObjectVariable) reconstructException(e Emitter) error {
	x := o.exc
	if x.raisedAt != 0 || x.opaque {
		return unsupported(exc.Reconstruct, "a raised %s", py.TypeName(o.Class))
	}
	e.PushNull()
	n := len(x.args)
	// __init__ is not called again, since its effects are recorded.
	if x.ownInit {
		e.LoadConst(x.native)
		e.LoadAttr("__new__")
		n++
	}
	e.LoadConst(o.Class)
	if err := LoadAll(e, x.args); err != nil {
		return err
	}
	e.Call(n, nil)
	return nil
}

// TracebackVariable is the traceback of an exception that was raised while translating.
type TracebackVariable struct {
	Base
	of *ObjectVariable
}

// NewTraceback returns the traceback of an exception that the translated code made.
func NewTraceback(of *ObjectVariable) *TracebackVariable { return &TracebackVariable{of: of} }

// Kind implements VariableTracker.
func (*TracebackVariable) Kind() string { return "TracebackVariable" }

// unknownTracebacks reports whether a and b are two tracebacks. They may be one: an exception has a new traceback after
// each frame that it leaves.
func unknownTracebacks(a, b VariableTracker) bool {
	_, first := a.(*TracebackVariable)
	_, second := b.(*TracebackVariable)
	return first && second
}

// Truth implements Truther.
func (*TracebackVariable) Truth(Translator) (bool, error) { return true, nil }

// currentException implements sys.exception(). If the translated code is handling no exception, it adds a guard that no
// caller is handling one.
func currentException(tx Translator) (VariableTracker, error) {
	if h := tx.Handled(); h != nil {
		return Realize(tx, h)
	}
	if !tx.World().truth(tx.Scope(), tx.World().handlesNothing, pyNone) {
		return nil, unsupported(exc.CallUnsupported, "sys.exc_info where a caller handles an exception")
	}
	c := tx.Output().Const(tx.World().handlesNothing)
	tx.Output().AddGuards(guards.PyCheck(guards.NewConstSource(c, "___exc_info"), c, "handles no exception"))
	return NoneConst(), nil
}

// excInfo implements sys.exc_info().
func excInfo(tx Translator) (VariableTracker, error) {
	h, err := currentException(tx)
	if err != nil {
		return nil, err
	}
	o, ok := h.(*ObjectVariable)
	if !ok {
		return NewTuple([]VariableTracker{h, NoneConst(), NoneConst()}, nil), nil
	}
	if _, real := realException(tx, o); !real && (o.exc == nil || Materialized(o)) {
		return nil, unsupported(exc.CallUnsupported, "sys.exc_info of %s", Describe(tx, h))
	}
	parts, err := exceptionParts(tx, o)
	if err != nil {
		return nil, err
	}
	return NewTuple(parts, nil), nil
}

// ContextMethods looks up __enter__ and __exit__ of a context manager on its class, in CPython's order.
func ContextMethods(tx Translator, v VariableTracker) (enter, exit VariableTracker, err error) {
	if s, ok := v.(standIn); ok && s.parts().public(tx, "__enter__") && s.parts().public(tx, "__exit__") {
		return &BoundBuiltin{obj: v, name: "__enter__"}, &BoundBuiltin{obj: v, name: "__exit__"}, nil
	}
	if c, ok := v.(*ConstantVariable); ok {
		return constantManager(tx, c)
	}
	o, ok := v.(*ObjectVariable)
	if !ok {
		return nil, nil, unsupported(exc.CallUnsupported, "context manager %s", Describe(tx, v))
	}
	for _, name := range []string{"__enter__", "__exit__"} { // CPython looks up both before it calls __enter__
		if d, ok := tx.Scope().TypeLookup(o.Class, name); ok && d.Kind() == py.NoneKind {
			return nil, nil, unsupported(exc.CallUnsupported, "%s = None", name)
		}
	}
	if enter, err = o.lookupSpecial(tx, "__enter__"); err != nil {
		return nil, nil, err
	}
	if exit, err = o.lookupSpecial(tx, "__exit__"); err != nil {
		return nil, nil, err
	}
	if enter == nil || exit == nil {
		return nil, nil, notContext(tx, o)
	}
	return enter, exit, nil
}

// constantManager returns the methods of an immutable context manager written in C, such as a torch.device, if both
// methods have stand-ins.
func constantManager(tx Translator, c *ConstantVariable) (enter, exit VariableTracker, err error) {
	var methods [2]VariableTracker
	for i, name := range []string{"__enter__", "__exit__"} {
		d, ok := tx.Scope().TypeLookup(c.Value.Type(), name)
		if ok && d.Kind() == py.MethodDescr {
			sub, err := tx.World().standInFor(tx.Scope(), d)
			if err != nil {
				return nil, nil, err
			}
			ok = !sub.fn.IsNull()
		}
		if !ok {
			return nil, nil, unsupported(exc.CallUnsupported, "context manager %s", Describe(tx, c))
		}
		methods[i] = NewMethod(&UnboundMethod{name: name, descr: d}, c, nil)
	}
	return methods[0], methods[1], nil
}

// notContext returns CPython's TypeError for a `with` statement with an object that lacks __enter__ or __exit__.
func notContext(tx Translator, o *ObjectVariable) error {
	typeName(tx, o.Class) // guards the name
	s, args := tx.Scope(), []py.Object{o.Class}
	for _, name := range []string{"__enter__", "__exit__", "__aenter__", "__aexit__"} {
		if _, ok := s.TypeLookup(o.Class, name); ok {
			args = append(args, s.Name(name))
		}
	}
	return raiseWords(tx, "TypeError", tx.World().notContext, args...)
}

// ExceptionClassOf returns v as an exception class, such as the operand of an `except` clause or a `raise` statement.
// It returns false if v is not an exception class.
func ExceptionClassOf(tx Translator, v VariableTracker) (py.Object, bool) {
	c, ok := AsConstant(tx, v)
	if !ok || (c.Kind() != py.TypeKind && c.Kind() != py.TypeSub) || !py.IsSubtype(c, tx.World().BaseException) {
		return py.Object{}, false
	}
	return c, true
}
