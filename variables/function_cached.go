package variables

import (
	"strings"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// This file captures calls of functions wrapped by functools.lru_cache, if each argument is a plain constant or an
// object of the frame that hashes and compares by identity, such as the self of a method. A call that hits the cache
// returns the cached object, which is guarded. The call is replayed as an effect, so that the cache's hit count and
// order of use match CPython's. A call that misses the cache breaks the graph, and CPython runs the function. A guard
// checks that later calls still miss (python/godynamo/_translator/caches.py).

// cachedCall captures a call of a function wrapped by lru_cache. It returns false for other objects and for a cache
// with unknown contents.
func cachedCall(tx Translator, o *ObjectVariable, args []VariableTracker, kwargs []Kw) (VariableTracker, bool, error) {
	s, w, out := tx.Scope(), tx.World(), tx.Output()
	if o.Class != w.cacheWrapper || o.Obj.IsNull() || o.Src == nil || len(kwargs) > 0 || w.PythonOps ||
		out.MadeHere(o.Src) {
		return nil, false, nil
	}
	given := make([]VariableTracker, len(args))
	objs, plain := make([]py.Object, len(args)), make([]py.Object, len(args))
	same := []*ObjectVariable{o}
	texts, ids := make([]string, len(args)), make([]uint64, len(args))
	for i, a := range args {
		v, err := Realize(tx, a)
		if err != nil {
			return nil, true, err
		}
		obj, ok := AsConstant(tx, v)
		texts[i] = Describe(tx, v)
		if ok = ok && plainKey(tx, obj); !ok {
			switch x := v.(type) {
			case *ClassVariable:
				if !py.Is(obj.Type(), py.IdentityHash) || !w.plainMetaclass(tx, obj, "__hash__", "__eq__") {
					return nil, false, nil
				}
			case *ObjectVariable:
				if !identityKey(tx, x) {
					return nil, false, nil
				}
				obj, texts[i] = x.Obj, "a "+py.TypeName(x.Class)
				same = append(same, x)
			default:
				return nil, false, nil
			}
		}
		given[i], objs[i], plain[i] = v, obj, py.Bool(ok)
		ids[i] = obj.ID()
	}
	found, ok := py.Answered(s.Call(w.cachePeek, o.Obj, s.Tuple(objs...), s.Tuple(plain...)))
	if !ok || found == pyNone {
		return nil, true, unsupported(exc.CallUnsupported, "a function whose cache no guard can follow")
	}
	call := "(" + strings.Join(texts, ", ") + ")"
	parts := s.Items(found)
	finds := func(tx Translator, again func(guards.Source) guards.Source) {
		out := tx.Output() // that of a later attempt, if the call breaks the graph
		for _, x := range same {
			out.AddGuards(guards.IDMatch(again(x.Src), out.Const(x.Obj), guards.KeepWeak))
		}
		out.AddGuards(guards.PyCheck(guards.NewConstSource(out.Const(o.Obj), "___cached"), out.Const(parts[2]),
			"finds the same for "+call+" in its cache", ids...))
	}
	if parts[0] != py.True() {
		out.Until(finds)
		return nil, true, unsupported(exc.CallUnsupported, "a function whose cache lacks a call with %s", call)
	}
	finds(tx, func(src guards.Source) guards.Source { return src })
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

// identityKey reports whether o is an object of the frame, whose hash and equality are those of object.
func identityKey(tx Translator, o *ObjectVariable) bool {
	if o.Obj.IsNull() || o.Src == nil || o.value != nil || tx.Output().MadeHere(o.Src) {
		return false
	}
	looksFor(tx, o.Class, "__hash__", "__eq__")
	return py.Is(o.Class, py.IdentityHash) && py.Is(o.Class, py.IdentityCompare)
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
