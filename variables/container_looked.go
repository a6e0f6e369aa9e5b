package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Many programs look up some keys of a dict that existed before the frame ran, and read nothing else of it: a table of
// settings, os.environ, a registry of functions. Its other keys must not cause recompiles, so only the keys that were
// looked up are guarded. Such a dict stays lazy; a later read of its length or order makes a DictVariable of it.

// lookedUp records the dicts that stayed lazy when a key was looked up.
type lookedUp struct {
	sources []guards.Source // the places from which the dict was read
	plain   *bool           // the result of comparesPlainly
}

// lookUp returns the value of a key of a dict that the program has only looked keys up in. The value is nil if the dict
// has no such key. decided is false if the dict has been read otherwise, or if code of the program compares its keys.
func lookUp(tx Translator, d, key VariableTracker) (value VariableTracker, decided bool, err error) {
	if v, decided, err := lookUpObject(tx, d, key); decided || err != nil {
		return v, decided, err
	}
	l, ok := isLookedUp(tx, d)
	if !ok {
		return nil, false, nil
	}
	if key, err = Argument(tx, key); err != nil {
		return nil, false, err
	}
	if asSymNode(tx, key) != nil && py.DictLen(l.obj) <= maxNumberKeys {
		return nil, false, nil // the number is compared with all keys, see lacksNumber
	}
	if key, err = Realize(tx, key); err != nil {
		return nil, false, err
	}
	k, ok := AsConstant(tx, key)
	if !ok || !comparesByValue(k) {
		return nil, false, nil
	}
	l, ok = isLookedUp(tx, d) // reading the key may have read the dict
	if !ok || !tx.World().lookedUpAt(l).comparesPlainly(tx, l.obj) {
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

// lookUpObject looks up a key that equals only itself and was passed to the frame, such as a module, or a parameter in
// an optimizer's state. decided is false for other keys, and if the dict has been read otherwise. The value is nil if
// the dict has no such key.
func lookUpObject(tx Translator, d, key VariableTracker) (value VariableTracker, decided bool, err error) {
	l, ok := d.(*LazyVariable)
	if !ok || l.obj.Kind() != py.Dict && l.obj.Type() != tx.World().DefaultDictType {
		return nil, false, nil
	}
	item, src, found, err := findObject(tx, l, key)
	if err != nil || found == py.Undecided {
		return nil, false, err
	}
	if found == py.Absent {
		if inOptimizer(tx) {
			return nil, false, withoutState(tx, l)
		}
		if l.obj.Kind() != py.Dict { // a defaultdict adds the key
			return nil, false, nil
		}
		tx.Output().AddGuards(guards.HoldsObject(l.Src, src, false))
		return nil, true, nil
	}
	at := guards.NewObjectKeySource(l.Src, src)
	tx.Output().Reads(at)
	return tx.Build(item, at), true, nil
}

// isMember reports whether a set that the program has only looked members up in has this one, which equals only itself
// and was passed to the frame. decided is false for other sets and values.
func isMember(tx Translator, set, v VariableTracker) (in, decided bool, err error) {
	l, ok := set.(*LazyVariable)
	if !ok || l.obj.Kind() != py.SetKind && l.obj.Kind() != py.FrozenSet {
		return false, false, nil
	}
	_, src, found, err := findObject(tx, l, v)
	if err != nil || found == py.Undecided {
		return false, false, err
	}
	tx.Output().AddGuards(guards.HoldsObject(l.Src, src, found == py.Found))
	return found == py.Found, true, nil
}

// findObject looks up an object in a dict or set that the program has not read otherwise, and guards the container's
// type. It returns the dict's value and the object's place.
func findObject(tx Translator, l *LazyVariable, key VariableTracker) (py.Object, guards.Source, py.Lookup, error) {
	k, lazy := key.(*LazyVariable)
	if lazy && !tx.World().IsTensor(k.obj) && !equalsOnlyItself(k.obj.Type()) || asSymNode(tx, key) != nil ||
		!isUnread(tx, l) {
		return py.Object{}, nil, py.Undecided, nil
	}
	v, err := Realize(tx, key)
	if err != nil {
		return py.Object{}, nil, py.Undecided, err
	}
	obj, src := existing(v)
	if src == nil || !isUnread(tx, l) {
		return py.Object{}, nil, py.Undecided, nil
	}
	item, found := tx.Scope().FindObject(l.obj, obj)
	if found == py.Undecided {
		return py.Object{}, nil, found, nil
	}
	tx.World().lookedUpAt(l)
	tx.Output().AddGuards(guards.TypeMatch(l.Src, tx.Output().Const(l.obj.Type())))
	return item, src, found, nil
}

// equalsOnlyItself reports whether instances of the class are hashed and compared by identity.
func equalsOnlyItself(class py.Object) bool {
	return py.Is(class, py.IdentityHash) && py.Is(class, py.IdentityCompare)
}

// withoutState leaves an optimizer's step to CPython, which makes the state that is missing. The next step is captured:
// if it is part of another function, a guard on the number of states fails then.
func withoutState(tx Translator, l *LazyVariable) error {
	const why = "the state of a parameter before the first step"
	if tx.Output().OptimizerAlone() {
		return exc.Postpone(exc.Uninitialized, why)
	}
	n, src := py.DictLen(l.obj), l.Src
	tx.Output().Until(func(tx Translator, again func(guards.Source) guards.Source) {
		tx.Output().AddGuards(guards.DictLength(again(src), n))
	})
	return unsupported(exc.Uninitialized, why)
}

// storesSame reports whether the program stores, in a dict of which it has only looked up keys, the value that the key
// has already. Such a store changes nothing.
func storesSame(tx Translator, d, key, value VariableTracker) (bool, error) {
	l, ok := isLookedUp(tx, d)
	if !ok || value == nil || tx.World().lookedUp[l.obj] == nil {
		return false, nil
	}
	old, decided, err := lookUp(tx, d, key)
	if err != nil || !decided || old == nil {
		return false, err
	}
	if old, err = Argument(tx, old); err != nil {
		return false, err
	}
	value, err = Argument(tx, value)
	return old == value, err
}

// isUnread reports whether the program has not read a dict, or has only looked keys up in it.
func isUnread(tx Translator, l *LazyVariable) bool {
	w := tx.World()
	_, ours := OurOwn(l)
	_, read := w.objects[l.obj]
	return l.real == nil && l.Src != nil && !w.PythonOps && w.Calls == 0 && !ours && !read
}

// isLookedUp returns d if it is a dict that the program has not read, or only looked keys up in.
func isLookedUp(tx Translator, d VariableTracker) (*LazyVariable, bool) {
	l, ok := d.(*LazyVariable)
	return l, ok && l.obj.Kind() == py.Dict && isUnread(tx, l)
}

// comparesByValue reports whether k equals only keys of the same type, by value.
func comparesByValue(k py.Object) bool {
	switch k.Kind() {
	case py.Str, py.Bytes, py.NoneKind:
		return true
	}
	return false
}

// lookedUpAt records a place from which a dict was read to look up a key.
func (w *World) lookedUpAt(l *LazyVariable) *lookedUp {
	u := w.lookedUp[l.obj]
	if u == nil {
		u = &lookedUp{}
		w.lookedUp[l.obj] = u
	}
	for _, s := range u.sources {
		if s.Name() == l.Src.Name() {
			return u
		}
	}
	u.sources = append(u.sources, l.Src)
	return u
}

// comparesPlainly reports whether no key of the dict may define its own comparison.
func (u *lookedUp) comparesPlainly(tx Translator, dict py.Object) bool {
	if u.plain == nil {
		plain := bounded(dict, py.DictLen(dict)) == nil
		if plain {
			keys, _ := tx.Scope().DictItems(dict)
			for _, k := range keys {
				plain = plain && (comparesByValue(k) || k.Kind() == py.Int)
			}
		}
		u.plain = &plain
	}
	return *u.plain
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
