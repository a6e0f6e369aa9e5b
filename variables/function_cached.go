package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// This file captures calls of functions wrapped by functools.lru_cache, if the arguments are plain constants. A call
// that hits the cache returns the cached object, which is guarded. The call is replayed as an effect, so that the
// cache's hit count and order of use match CPython's. A call that misses the cache breaks the graph, and CPython runs
// the function. A guard checks that later calls still miss (python/godynamo/_translator/caches.py).

// cachedCall captures a call of a function wrapped by lru_cache. It returns false for other objects and for a cache
// with unknown contents.
func cachedCall(tx Translator, o *ObjectVariable, args []VariableTracker, kwargs []Kw) (VariableTracker, bool, error) {
	s, w, out := tx.Scope(), tx.World(), tx.Output()
	if o.Class != w.cacheWrapper || o.Obj.IsNull() || o.Src == nil || len(kwargs) > 0 || w.PythonOps ||
		out.MadeHere(o.Src) {
		return nil, false, nil
	}
	given := make([]VariableTracker, len(args))
	objs := make([]py.Object, len(args))
	for i, a := range args {
		v, err := Realize(tx, a)
		if err != nil {
			return nil, true, err
		}
		obj, ok := AsConstant(tx, v)
		if !ok || !plainKey(tx, obj) {
			return nil, false, nil
		}
		given[i], objs[i] = v, obj
	}
	found, ok := py.Answered(s.Call(w.cachePeek, o.Obj, s.Tuple(objs...)))
	if !ok || found == pyNone {
		return nil, false, nil
	}
	out.AddGuards(guards.IDMatch(o.Src, out.Const(o.Obj), guards.KeepWeak))
	parts := s.Items(found)
	still := func(tx Translator) guards.Guard {
		src := guards.NewConstSource(tx.Output().Const(o.Obj), "___cached")
		return guards.PyCheck(src, tx.Output().Const(parts[2]), "finds the same in its cache")
	}
	if parts[0] != py.True() {
		out.Until(func(tx Translator) { tx.Output().AddGuards(still(tx)) })
		return nil, true, unsupported(exc.CallUnsupported, "a function whose cache lacks %s", s.Repr(s.Tuple(objs...)))
	}
	out.AddGuards(still(tx))
	err := out.Effect(tx, append([]VariableTracker{o}, given...), func(e Emitter) error {
		e.PushNull()
		if err := LoadAll(e, append([]VariableTracker{o}, given...)); err != nil {
			return err
		}
		e.Call(len(given), nil)
		e.PopTop()
		return nil
	})
	if err != nil {
		return nil, true, err
	}
	if isImmutable(tx, parts[1]) {
		return NewConstant(parts[1], nil), true, nil
	}
	return tx.Build(parts[1], guards.NewConstSource(out.Const(parts[1]), "___cached_result")), true, nil
}

// plainKey reports whether o is a constant whose hash and equality run no user code.
func plainKey(tx Translator, o py.Object) bool {
	switch o.Kind() {
	case py.NoneKind, py.BoolKind, py.Int, py.Float, py.Str, py.Bytes:
		return true
	case py.Tuple:
		for _, it := range tx.Scope().Items(o) {
			if !plainKey(tx, it) {
				return false
			}
		}
		return true
	}
	return false
}
