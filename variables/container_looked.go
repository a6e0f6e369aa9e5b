package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Many programs look up some keys of a dict that existed before the frame ran, and read nothing else of it: a table of
// settings, os.environ, a registry of functions. Its other keys must not cause recompiles, so only the keys that were
// looked up are guarded. Such a dict stays lazy; a later read of its length or order makes a DictVariable of it.

// lookedUp records the dicts that stayed lazy when a key was looked up.
type lookedUp struct {
	sources []guards.Source // the places from which the dict was read
	plain   bool            // its keys compare by value
}

// lookUp returns the value of a key of a dict that the program has only looked keys up in. The value is nil if the dict
// has no such key. decided is false if the dict has been read otherwise, or if code of the program compares its keys.
func lookUp(tx Translator, d, key VariableTracker) (value VariableTracker, decided bool, err error) {
	l, ok := isLookedUp(tx, d)
	if !ok {
		return nil, false, nil
	}
	if key, err = Realize(tx, key); err != nil {
		return nil, false, err
	}
	k, ok := AsConstant(tx, key)
	if !ok || !comparesByValue(k) {
		return nil, false, nil
	}
	if l, ok = isLookedUp(tx, d); !ok || !tx.World().lookedAtPlace(tx, l) {
		return nil, false, nil
	}
	name := tx.Output().Const(k)
	v, found := tx.Scope().DictGet(l.obj, k)
	tx.Output().AddGuards(guards.TypeMatch(l.Src, tx.Output().Const(l.obj.Type())),
		guards.DictContains(l.Src, name, found))
	if !found {
		return nil, true, nil
	}
	return l.item(tx, name, v), true, nil
}

// isLookedUp returns d if it is a dict that the program has not read, or only looked keys up in.
func isLookedUp(tx Translator, d VariableTracker) (*LazyVariable, bool) {
	l, ok := d.(*LazyVariable)
	w := tx.World()
	if !ok || l.real != nil || l.Src == nil || l.obj.Kind() != py.Dict || w.PythonOps || w.Calls > 0 {
		return nil, false
	}
	if _, ours := OurOwn(l); ours {
		return nil, false
	}
	_, read := w.objects[l.obj]
	return l, !read
}

// comparesByValue reports whether k equals only keys of the same type, by value.
func comparesByValue(k py.Object) bool {
	switch k.Kind() {
	case py.Str, py.Bytes, py.NoneKind:
		return true
	}
	return false
}

// lookedAtPlace records a place from which a dict was read to look up a key. It returns false if a key of the dict may
// define its own comparison.
func (w *World) lookedAtPlace(tx Translator, l *LazyVariable) bool {
	u := w.lookedUp[l.obj]
	if u == nil {
		u = &lookedUp{plain: bounded(l.obj, py.DictLen(l.obj)) == nil}
		if u.plain {
			keys, _ := tx.Scope().DictItems(l.obj)
			for _, k := range keys {
				u.plain = u.plain && (comparesByValue(k) || k.Kind() == py.Int)
			}
		}
		w.lookedUp[l.obj] = u
	}
	if !u.plain {
		return false
	}
	for _, s := range u.sources {
		if s.Name() == l.Src.Name() {
			return true
		}
	}
	u.sources = append(u.sources, l.Src)
	return true
}

// LookedUp calls f for each place of each dict in which keys were looked up.
func (w *World) LookedUp(f func(obj py.Object, src guards.Source)) {
	for obj, u := range w.lookedUp {
		for _, s := range u.sources {
			f(obj, s)
		}
	}
}

// boundGet returns d.get, bound to a dict that the program has only looked keys up in.
func boundGet(tx Translator, d VariableTracker, name string) (VariableTracker, bool) {
	if name != "get" {
		return nil, false
	}
	l, ok := isLookedUp(tx, d)
	if !ok {
		return nil, false
	}
	return &BoundBuiltin{obj: l, name: name}, true
}

// callGet calls d.get for a dict that the program has only looked keys up in. decided is false for other dicts.
func callGet(tx Translator, d VariableTracker, name string, args []VariableTracker, kwargs []Kw) (VariableTracker, bool,
	error) {
	if name != "get" || len(args) < 1 || len(args) > 2 || len(kwargs) > 0 {
		return nil, false, nil
	}
	v, decided, err := lookUp(tx, d, args[0])
	if decided && v == nil {
		v = arg(args, 1)
	}
	return v, decided, err
}
