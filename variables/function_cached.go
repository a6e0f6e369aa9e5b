package variables

import (
	"slices"
	"strings"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// This file captures calls of functions wrapped by functools.lru_cache, if each argument is a plain constant, or an
// object that hashes and compares by identity, such as the self of a method. A call that hits the cache returns the
// cached object, which is guarded. The call is replayed as an effect, so that the cache's hit count and order of use
// match CPython's.
//
// A call that misses the cache runs the function. If the function has no side effects, it is called while translating,
// and the call is a hit from then on (_C.AheadCall). Otherwise the graph breaks, and a guard checks that later calls
// still miss (python/godynamo/_translator/caches.py).

// cacheCall is a call of a function under lru_cache.
type cacheCall struct {
	wrapper *ObjectVariable
	args    []VariableTracker // the last ones are passed by the names
	objs    []py.Object       // the arguments' objects
	kept    []py.Object       // True for each argument that is a constant of the translation
	names   []string
	same    []*ObjectVariable // the objects whose identity matters
	ids     []uint64          // of objs
	text    string            // the arguments in words
}

// cachedCall captures a call of a function wrapped by lru_cache. It returns false for other objects and for arguments
// that may run the program's code when they are hashed.
func cachedCall(tx Translator, o *ObjectVariable, args []VariableTracker, kwargs []Kw) (VariableTracker, bool, error) {
	w, out := tx.World(), tx.Output()
	if o.Class != w.cacheWrapper || o.Obj.IsNull() || o.Src == nil || w.PythonOps || out.MadeHere(o.Src) {
		return nil, false, nil
	}
	c, err := newCacheCall(tx, o, args, kwargs)
	if c == nil || err != nil {
		return nil, err != nil, err
	}
	parts, err := c.look(tx)
	if err != nil {
		return nil, true, err
	}
	if parts[0] != py.True() {
		ran, err := c.runAhead(tx, args, kwargs)
		if err != nil {
			return nil, true, err
		}
		if !ran {
			out.Until(func(tx Translator, again func(guards.Source) guards.Source) { c.guard(tx, parts[2], again) })
			return nil, true, unsupported(exc.CallUnsupported, "a function whose cache lacks a call with %s", c.text)
		}
		if parts, err = c.look(tx); err != nil {
			return nil, true, err
		}
	}
	c.guard(tx, parts[2], func(src guards.Source) guards.Source { return src })
	if err := c.replay(tx, parts[3]); err != nil {
		return nil, true, err
	}
	if isImmutable(tx, parts[1]) {
		return NewConstant(parts[1], nil), true, nil
	}
	return tx.Build(parts[1], guards.NewConstSource(out.Const(parts[1]), "___cached_result")), true, nil
}

// newCacheCall returns nil if an argument may run the program's code when it is hashed or compared.
func newCacheCall(tx Translator, o *ObjectVariable, args []VariableTracker, kwargs []Kw) (*cacheCall, error) {
	c := &cacheCall{wrapper: o, same: []*ObjectVariable{o}}
	values, texts := slices.Clone(args), make([]string, 0, len(args))
	for _, kw := range kwargs {
		values, c.names = append(values, kw.Value), append(c.names, kw.Name)
	}
	for i, a := range values {
		v, err := Realize(tx, a)
		if err != nil {
			return nil, err
		}
		obj, text, kept := c.key(tx, v)
		if obj.IsNull() {
			return nil, nil
		}
		if i >= len(args) {
			text = kwargs[i-len(args)].Name + "=" + text
		}
		c.args, c.objs, c.kept = append(c.args, v), append(c.objs, obj), append(c.kept, py.Bool(kept))
		c.ids, texts = append(c.ids, obj.ID()), append(texts, text)
	}
	c.text = "(" + strings.Join(texts, ", ") + ")"
	return c, nil
}

// key returns an argument's object, a text for it, and whether the translation keeps the object alive anyway. The
// object is null if the program's code may run when it is hashed.
func (c *cacheCall) key(tx Translator, v VariableTracker) (obj py.Object, text string, kept bool) {
	if obj, ok := AsConstant(tx, v); ok && plainKey(tx, obj) {
		return obj, Describe(tx, v), true
	}
	switch x := v.(type) {
	case *ClassVariable:
		if obj, ok := AsConstant(tx, v); ok && py.Is(obj.Type(), py.IdentityHash) &&
			tx.World().plainMetaclass(tx, obj, "__hash__", "__eq__") {
			return obj, Describe(tx, v), false
		}
	case *ObjectVariable:
		if identityKey(tx, x) {
			_, kept := x.Src.(*guards.ConstSource)
			if !kept {
				c.same = append(c.same, x)
			}
			return x.Obj, "a " + py.TypeName(x.Class), kept
		}
	}
	return py.Object{}, "", false
}

// look returns what python/godynamo/_translator/caches.peek does: whether the call is a hit, its result, the guard's
// predicate, and what a translation calls in place of the wrapper, if the call has been made ahead.
func (c *cacheCall) look(tx Translator) ([]py.Object, error) {
	s := tx.Scope()
	args, kept := s.Tuple(c.objs...), s.Tuple(c.kept...)
	found, ok := py.Answered(s.Call(tx.World().cachePeek, c.wrapper.Obj, args, kept, c.nameTuple(s)))
	if !ok || found == pyNone {
		return nil, unsupported(exc.CallUnsupported, "a function whose cache no guard can follow")
	}
	return s.Items(found), nil
}

// nameTuple returns the names as a tuple.
func (c *cacheCall) nameTuple(s *py.Scope) py.Object {
	names := make([]py.Object, len(c.names))
	for i, n := range c.names {
		names[i] = s.Name(n)
	}
	return s.Tuple(names...)
}

// runAhead makes a call that misses the cache, if the function has no side effects.
func (c *cacheCall) runAhead(tx Translator, args []VariableTracker, kwargs []Kw) (bool, error) {
	s, out := tx.Scope(), tx.Output()
	if slices.Contains(c.kept, py.False()) {
		return false, nil // the key would keep an object of the program alive
	}
	fn, ok := py.Answered(s.GetAttr(c.wrapper.Obj, "__wrapped__"))
	if !ok {
		return false, nil
	}
	pure, err := out.Pure(func() error {
		_, err := Call(tx, tx.Build(fn, guards.NewConstSource(out.Const(fn), "___cached")), args, kwargs)
		return err
	})
	if err != nil || !pure {
		return false, err
	}
	ran, ok := py.Answered(s.Call(tx.World().cacheRunAhead, c.wrapper.Obj, s.Tuple(c.objs...), c.nameTuple(s)))
	return ok && ran == py.True(), nil
}

// guard has the translation checked for finding the same in the cache.
func (c *cacheCall) guard(tx Translator, predicate py.Object, again func(guards.Source) guards.Source) {
	out := tx.Output() // that of a later attempt, if the call breaks the graph
	for _, x := range c.same {
		out.AddGuards(guards.IDMatch(again(x.Src), out.Const(x.Obj), guards.KeepWeak))
	}
	out.AddGuards(guards.PyCheck(guards.NewConstSource(out.Const(c.wrapper.Obj), "___cached"), out.Const(predicate),
		"finds the same for "+c.text+" in its cache", c.ids...))
}

// replay repeats the call as an effect. ahead is what it calls in place of the wrapper, or None.
func (c *cacheCall) replay(tx Translator, ahead py.Object) error {
	values := append([]VariableTracker{c.wrapper}, c.args...)
	if ahead != pyNone {
		values[0] = NewConstant(ahead, nil)
	}
	tx.World().Own++ // only the cache's counts and its order of use can tell
	return tx.Output().Effect(tx, values, func(e Emitter) error {
		e.PushNull()
		if err := LoadAll(e, values); err != nil {
			return err
		}
		e.Call(len(c.args), c.names)
		e.PopTop()
		return nil
	})
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
	return dictHasType(tx.World().torchConstants, o.Type())
}
