package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// wrapping is an object for which a tracker is being made.
type wrapping struct {
	tx  Translator
	obj py.Object
	src guards.Source
	typ guards.Const // the object's type
}

// ofType returns the guard on the object's type, with room for one more.
func (w *wrapping) ofType() []guards.Guard {
	return append(make([]guards.Guard, 0, 2), guards.TypeMatch(w.src, w.typ))
}

// wrapper returns the tracker of an object and the guards on which it depends, or no tracker and no error if the object
// is not of the wrapper's kind.
type wrapper func(w *wrapping) (VariableTracker, []guards.Guard, error)

func (w *wrapping) object() guards.Const { return w.tx.Output().Const(w.obj) }

func (w *wrapping) equals() []guards.Guard { return guards.EqualsMatch(w.src, w.typ, w.object()) }

func (w *wrapping) same(keep guards.Keep) []guards.Guard {
	return []guards.Guard{guards.IDMatch(w.src, w.object(), keep)}
}

// refused returns the error for an object that cannot be tracked. `text` is a format string. Its arguments are the name
// of the place from which the object was read, and then args.
func (w *wrapping) refused(text string, args ...any) error {
	return unsupported(exc.UntrackedObject, text, append([]any{w.src.Name()}, args...)...)
}

// wrapByKind maps exact builtin types and some of their subclasses to their wrappers. wrapByClass lists the wrappers
// for all other objects, in the order in which they are tried.
var (
	wrapByKind  map[py.Kind]wrapper
	wrapByClass []wrapper
)

func init() { // set in init, since the wrappers call wrap, which reads these variables
	wrapByKind = map[py.Kind]wrapper{
		py.NoneKind: wrapIdentical, py.BoolKind: wrapIdentical, py.EllipsisKind: wrapIdentical,
		py.NotImplemented: wrapIdentical,
		// The guard compares a property by identity. Properties have no weak references, so the guard keeps the
		// property alive.
		py.Property: wrapIdentical,
		py.Int:      wrapEqual, py.Float: wrapEqual, py.Complex: wrapEqual, py.Str: wrapEqual, py.Bytes: wrapEqual,
		py.Tuple: wrapSequence, py.List: wrapSequence, py.FrozenSet: wrapFrozen, py.Slice: wrapSlice,
		py.TupleSub: wrapTupleLike, py.DictSub: wrapDictLike, py.Method: wrapMethod, py.Module: wrapPythonModule,
		py.TypeKind: wrapType, py.TypeSub: wrapType,
		py.Range: func(w *wrapping) (VariableTracker, []guards.Guard, error) {
			return NewRangeObject(w.obj, w.src), w.equals(), nil
		},
		py.Dict:    func(w *wrapping) (VariableTracker, []guards.Guard, error) { return wrapDict(w.tx, w.obj, w.src) },
		py.SetKind: func(w *wrapping) (VariableTracker, []guards.Guard, error) { return wrapSet(w.tx, w.obj, w.src) },
		py.Function: func(w *wrapping) (VariableTracker, []guards.Guard, error) {
			return wrapFunction(w.tx, w.obj, w.src, w.ofType())
		},
		py.Code: func(w *wrapping) (VariableTracker, []guards.Guard, error) {
			return NewConstant(w.obj, w.src), w.same(guards.KeepWeak), nil
		},
		py.Cell: func(w *wrapping) (VariableTracker, []guards.Guard, error) {
			return NewRealCell(w.obj, w.src), w.ofType(), nil
		},
		py.Builtin: wrapNative, py.MethodDescr: wrapNative, py.WrapperDescr: wrapNative, py.MethodWrapper: wrapNative,
		py.ClassMethodDescr: wrapNative,
	}
	wrapByClass = []wrapper{
		wrapTensor, wrapArray, wrapDequeOrWeakref, wrapRealIterator,
		wrapNumpyFunction, wrapShadowed, wrapTorchConstant, wrapGenerator,
		wrapEnumMember, wrapOptimizedCallable,
		wrapPartialCallable, wrapTorchCallable, wrapStandInObject, wrapBuiltinSubclass, wrapPlainObject,
	}
}

func wrapIdentical(w *wrapping) (VariableTracker, []guards.Guard, error) {
	return NewConstant(w.obj, w.src), w.same(guards.KeepStrong), nil
}

func wrapEqual(w *wrapping) (VariableTracker, []guards.Guard, error) {
	return NewConstant(w.obj, w.src), w.equals(), nil
}

func wrapNative(w *wrapping) (VariableTracker, []guards.Guard, error) {
	return wrapCallable(w.tx, w.obj, w.src)
}

func wrapFrozen(w *wrapping) (VariableTracker, []guards.Guard, error) {
	if isImmutable(w.tx, w.obj) {
		return wrapFrozenSet(w.tx, w.obj, w.src, w.equals())
	}
	v, err := frozenFunctions(w.tx, w.obj, w.src)
	if err != nil {
		return nil, nil, err
	}
	if v == nil {
		items, err := listOf(w.tx, w.obj)
		if err != nil {
			return nil, nil, err
		}
		return readMembers(w.tx, w.obj, w.src, items)
	}
	return v, w.same(guards.KeepStrong), err
}

func wrapSlice(w *wrapping) (VariableTracker, []guards.Guard, error) {
	v, err := NewSliceObject(w.tx, w.obj)
	if err != nil {
		return nil, nil, err
	}
	v.base().Src = w.src
	return v, w.equals(), nil
}

func wrapSequence(w *wrapping) (VariableTracker, []guards.Guard, error) {
	items := w.tx.Scope().Items(w.obj)
	if err := bounded(w.obj, len(items)); err != nil {
		return nil, nil, err
	}
	vs := make([]VariableTracker, len(items))
	for i, it := range items {
		vs[i] = w.tx.Build(it, guards.NewIndexSource(w.src, i))
	}
	gs := append(w.ofType(), guards.ListLength(w.src, w.typ, len(items)))
	if w.obj.Kind() == py.Tuple {
		return NewTuple(vs, w.src), gs, nil
	}
	return NewList(vs, w.src), gs, nil
}

// bounded returns an error if a container of n items is too large to be tracked. Each item that is read has a guard.
func bounded(obj py.Object, n int) error {
	if n <= maxUnroll {
		return nil
	}
	return unsupported(exc.TooLarge, "%s of more than %d items", py.TypeName(obj.Type()), maxUnroll)
}

func wrapTupleLike(w *wrapping) (VariableTracker, []guards.Guard, error) {
	if w.tx.World().IsSingletonType(w.obj.Type()) { // for example sys.version_info
		return wrapIdentical(w)
	}
	return wrapTupleSubclass(w.tx, w.obj, w.src, w.ofType())
}

func wrapDictLike(w *wrapping) (VariableTracker, []guards.Guard, error) {
	if t := w.obj.Type(); t != w.tx.World().OrderedDictType && t != w.tx.World().DefaultDictType {
		return nil, nil, nil
	}
	return wrapDict(w.tx, w.obj, w.src)
}

func wrapMethod(w *wrapping) (VariableTracker, []guards.Guard, error) {
	fn, self := w.tx.Scope().MethodParts(w.obj)
	if py.TypeName(self.Type()) == "numpy.random.mtrand.RandomState" { // for example np.random.rand
		if v, gs, err := wrapTorchCallable(w); v != nil || err != nil {
			return v, gs, err
		}
	}
	f := w.tx.Build(fn, guards.NewFunctionFieldSource(w.src, guards.MethodFunc))
	me := w.tx.Build(self, guards.NewFunctionFieldSource(w.src, guards.MethodSelf))
	return NewMethod(f, me, w.src), w.ofType(), nil
}

func wrapPythonModule(w *wrapping) (VariableTracker, []guards.Guard, error) {
	if hook, _ := w.tx.Scope().TypeLookup(w.obj.Type(), "__getattribute__"); hook.Kind() == py.Function {
		return nil, nil, unsupported(exc.UntrackedObject, "a module whose class overrides __getattribute__")
	}
	return NewModule(w.obj, w.src), []guards.Guard{guards.PyModuleMatch(w.src, w.object())}, nil
}

func wrapType(w *wrapping) (VariableTracker, []guards.Guard, error) {
	s, world := w.tx.Scope(), w.tx.World()
	if opaqueClass(w.tx, w.obj) {
		return nil, nil, w.refused("%s, class %s whose metaclass decides", py.TypeName(w.obj))
	}
	class, err := world.classified(s, w.obj)
	if err != nil {
		return nil, nil, err
	}
	if name, ok := world.BuiltinName(s, w.obj); ok && class.own() {
		return NewBuiltin(w.obj, name, w.src), []guards.Guard{guards.BuiltinMatch(w.src, w.object())}, nil
	}
	if !class.own() {
		return newTorch(w.obj, class, w.src), w.same(guards.KeepWeak), nil
	}
	return NewClass(w.obj, w.src), w.same(guards.KeepWeak), nil
}

func wrapTensor(w *wrapping) (VariableTracker, []guards.Guard, error) {
	if !w.tx.World().IsTensor(w.obj) {
		return nil, nil, nil
	}
	t, err := w.tx.Output().TensorInput(w.tx, w.obj, w.src)
	return t, nil, err
}

func wrapDequeOrWeakref(w *wrapping) (VariableTracker, []guards.Guard, error) {
	switch w.obj.Type() {
	case w.tx.World().DequeType:
		return wrapDeque(w.tx, w.obj, w.src)
	case w.tx.World().weakrefType:
		return &WeakrefVariable{Base: Base{Src: w.src}, obj: w.obj}, w.ofType(), nil
	}
	return nil, nil, nil
}

func wrapNumpyFunction(w *wrapping) (VariableTracker, []guards.Guard, error) {
	if !w.tx.World().isNumpyFunction(w.obj) {
		return nil, nil, nil
	}
	if class, err := w.tx.World().classified(w.tx.Scope(), w.obj); err != nil || !class.own() {
		return nil, nil, err
	}
	return NewBuiltin(w.obj, "", w.src), w.same(guards.KeepStrong), nil
}

func wrapShadowed(w *wrapping) (VariableTracker, []guards.Guard, error) {
	if !w.tx.World().isShadowType(w.obj.Type()) {
		return nil, nil, nil
	}
	return wrapShadow(w.tx, w.obj, w.src, w.ofType())
}

// wrapTorchConstant wraps a dtype, a device or another object guarded by equality.
func wrapTorchConstant(w *wrapping) (VariableTracker, []guards.Guard, error) {
	s, world := w.tx.Scope(), w.tx.World()
	if !world.IsTorchConstant(w.obj.Type()) {
		return nil, nil, nil
	}
	if world.IsSingletonType(w.obj.Type()) {
		return wrapIdentical(w)
	}
	text := s.Repr(w.obj)
	if text == py.ReprFailed { // the object's __init__ is still running
		return nil, nil, w.refused("%s, a %s that is not made yet", py.TypeName(w.obj.Type()))
	}
	equal := world.EqualTo(s, w.obj)
	// typing.Literal[[]] does not equal itself, because a list has no hash
	if same, ok := py.Answered(s.Call(equal, w.obj)); !ok || same != py.True() {
		return nil, nil, w.refused("%s, which does not equal itself")
	}
	return NewConstant(w.obj, w.src), append(w.ofType(), guards.PyCheck(w.src, w.tx.Output().Const(equal), "== "+text)),
		nil
}

func wrapEnumMember(w *wrapping) (VariableTracker, []guards.Guard, error) {
	if !w.tx.World().IsEnum(w.tx.Scope(), w.obj) {
		return nil, nil, nil
	}
	return NewConstant(w.obj, w.src), append(w.ofType(), w.same(guards.KeepWeak)...), nil
}

func wrapOptimizedCallable(w *wrapping) (VariableTracker, []guards.Guard, error) {
	fn := w.tx.World().CallableFunction(w.obj)
	if fn.IsNull() {
		return nil, nil, nil
	}
	return wrapOptimized(w.tx, w.obj, fn, w.src)
}

func wrapPartialCallable(w *wrapping) (VariableTracker, []guards.Guard, error) {
	partial := w.tx.World().PartialType
	if !py.IsSubtype(w.obj.Type(), partial) || !inherits(w.tx, w.obj.Type(), partial, "__call__") {
		return nil, nil, nil
	}
	return wrapPartial(w.tx, w.obj, w.src, w.ofType())
}

func wrapTorchCallable(w *wrapping) (VariableTracker, []guards.Guard, error) {
	class, err := w.tx.World().classified(w.tx.Scope(), w.obj)
	if err != nil || class.own() {
		return nil, nil, err
	}
	return newTorch(w.obj, class, w.src), w.same(guards.KeepStrong), nil
}

func wrapStandInObject(w *wrapping) (VariableTracker, []guards.Guard, error) {
	v, err := wrapStandIn(w.tx, w.obj, w.src)
	if v == nil {
		return nil, nil, err
	}
	return v, w.same(guards.KeepStrong), err
}

func wrapBuiltinSubclass(w *wrapping) (VariableTracker, []guards.Guard, error) {
	v, gs, ok, err := wrapSubclass(w.tx, w.obj, w.src, w.ofType())
	if !ok {
		return nil, nil, err
	}
	return v, gs, err
}

// wrapPlainObject wraps an exception, an instance of a class written in Python, or an instance of a C class that has
// only a dict or slots.
func wrapPlainObject(w *wrapping) (VariableTracker, []guards.Guard, error) {
	t := w.obj.Type()
	switch w.obj.Kind() {
	case py.Exception:
		return NewObject(w.obj, w.src), w.ofType(), nil
	case py.Other:
		if py.Is(t, py.HeapType) && !py.Is(t, py.HasIterNext) || w.tx.World().PlainLayout(w.tx.Scope(), t) {
			return NewObject(w.obj, w.src), w.ofType(), nil
		}
	}
	return nil, nil, nil
}
