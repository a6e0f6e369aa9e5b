package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// keyring maps the members of a dict or set to stand-ins, the objects that CPython hashes and compares in their place.
// A fully known value is its own stand-in. A tensor, or another value that compares by identity, has one bare object()
// as its stand-in for the whole translation. The stand-in of a tuple is the tuple of its items' stand-ins. So CPython
// itself determines which keys are equal, the iteration order, and the errors of unhashable values.
type keyring struct {
	members map[py.Object]VariableTracker // maps stand-ins to their members; constants are left out
	users   []userKey
	objects bool            // whether a member compares by identity
	reading VariableTracker // the container that existed before the frame ran, while its keys are read
}

// userKey is a member whose class defines __eq__ and __hash__ in Python.
type userKey struct {
	hash     py.Object
	standIn  py.Object
	instance *ObjectVariable
}

// keyObject returns the stand-in of v as a key. If hash(v) raises, it returns the exception as an exc.Observed.
func (r *keyring) keyObject(tx Translator, v VariableTracker) (py.Object, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return py.Object{}, err
	}
	if o, ok := AsConstant(tx, v); ok {
		return r.constant(tx, v, o)
	}
	switch x := v.(type) {
	case *TupleVariable:
		if !plainHash(tx, x.class, tx.World().TupleType) {
			break
		}
		items := make([]py.Object, len(x.items))
		for i, it := range x.items {
			if items[i], err = r.keyObject(tx, it); err != nil {
				return py.Object{}, err
			}
		}
		return tx.Scope().Tuple(items...), nil
	case *FunctionVariable:
		if !x.Fn.IsNull() {
			return r.functionKey(tx, x)
		}
		return r.identity(tx, v)
	case *TensorVariable:
		if handled, err := x.handled(tx); err != nil || handled {
			return py.Object{}, unsupported(exc.TensorSubclass, "a %s as a key", py.TypeName(x.class(tx)))
		}
		return r.identity(tx, v)
	case *ObjectVariable:
		return r.object(tx, x)
	case *ClassVariable: // a class that the frame makes
		return r.constant(tx, v, x.Class)
	case *ListVariable, *DictVariable, *SetVariable, *ShadowVariable:
		t, err := PythonType(tx, v)
		if err != nil {
			return py.Object{}, err
		}
		return py.Object{}, &exc.Observed{TypeName: "TypeError", Text: "unhashable type: '" + typeName(tx, t) + "'"}
	}
	return py.Object{}, unsupported(exc.SubscriptUnsupported, "dict key %s", Describe(tx, v))
}

// hashError returns the exception of a dict or set for a key whose hash raises err. From 3.14 on, the text of a
// TypeError says what the key was for.
func hashError(tx Translator, key VariableTracker, isSet bool, err error) error {
	raised, ok := err.(*exc.Observed)
	if !ok || raised.TypeName != "TypeError" {
		return err
	}
	t, typed := PythonType(tx, key)
	if typed != nil {
		return err
	}
	s := tx.Scope()
	text, failed := s.Call(tx.World().keyText, t, s.Str(raised.Text), py.Bool(isSet))
	if failed != nil {
		return failed
	}
	if py.GoString(text) == raised.Text {
		return err
	}
	return RaiseText(tx, "TypeError", py.GoString(text))
}

// constant returns the stand-in of a fully known key, which is the key itself.
func (r *keyring) constant(tx Translator, v VariableTracker, o py.Object) (py.Object, error) {
	if err := tx.World().computable(tx, []py.Object{o}, "__hash__", "__eq__"); err != nil {
		return py.Object{}, err
	}
	switch o.Kind() {
	case py.TypeKind, py.TypeSub:
		if !py.Is(o.Type(), py.IdentityHash) || !tx.World().plainMetaclass(tx, o, "__hash__", "__eq__") {
			return py.Object{}, unsupported(exc.SubscriptUnsupported, "class %s whose metaclass overrides __hash__",
				py.TypeName(o))
		}
	}
	if len(r.users) > 0 && o.Kind() == py.Tuple {
		for k := range r.members {
			if k.Kind() == py.Tuple && len(usersIn(tx, k)) > 0 {
				return py.Object{}, unsupported(exc.SubscriptUnsupported,
					"tuples as keys, with items with their own comparison")
			}
		}
	}
	if len(r.users) > 0 {
		h, err := hashOf(tx, o)
		if err != nil {
			return py.Object{}, err
		}
		for _, u := range r.users {
			if sameInt(u.hash, h) {
				return py.Object{}, unsupported(exc.SubscriptUnsupported, "keys %s and %s of one hash", Describe(tx, v),
					Describe(tx, u.instance))
			}
		}
		return o, nil
	}
	return o, nil
}

func hashOf(tx Translator, o py.Object) (py.Object, error) {
	h, err := tx.Scope().Call(tx.World().Builtin("hash"), o)
	return h, observed(err)
}

// hashResult returns the hash that hash() makes of h, the result of __hash__, as slot_tp_hash of CPython 3.11 does
// (Objects/typeobject.c). An int that fits a machine word is its own hash, except that -1 becomes -2.
func hashResult(tx Translator, h py.Object) (py.Object, error) {
	switch n, ok := py.AsInt(h); {
	case !ok:
		return hashOf(tx, h)
	case n == -1:
		return tx.Scope().Int(-2), nil
	}
	return h, nil
}

func sameInt(a, b py.Object) bool {
	x, ok := py.AsInt(a)
	y, ok2 := py.AsInt(b)
	return ok && ok2 && x == y
}

// plainHash reports whether instances of `class` hash and compare as those of `base` do. `base` is the builtin type
// that `class` extends. A zero `class` means `base` itself.
func plainHash(tx Translator, class, base py.Object) bool {
	if class.IsNull() || class == base {
		return true
	}
	s := tx.Scope()
	for _, name := range []string{"__hash__", "__eq__"} {
		own, _ := s.TypeLookup(class, name)
		theirs, _ := s.TypeLookup(base, name)
		if own != theirs {
			return false
		}
	}
	return true
}

// functionKey returns f's function, which is its own stand-in. It guards the function's identity, since no other guard
// does.
func (r *keyring) functionKey(tx Translator, f *FunctionVariable) (py.Object, error) {
	guardIdentity(tx, f)
	return f.Fn, nil
}

// identified is a value that compares by identity and is, or was looked up as, a key or member.
type identified struct {
	value   VariableTracker
	standIn py.Object
	among   VariableTracker // the container whose keys were read with this one, or nil: they are distinct objects
	pinned  bool            // whether a guard requires this very object
}

// maxPairs is the number of such values up to which guards compare each pair of them. Beyond it, guards require the
// very objects of the first call, one guard each.
const maxPairs = 16

// identity returns the stand-in of a value that compares by identity. Guards check that it is another object than each
// other value of its kind that has a stand-in.
func (r *keyring) identity(tx Translator, v VariableTracker) (py.Object, error) {
	if len(r.users) > 0 {
		return py.Object{}, errMixed()
	}
	w := tx.World()
	for _, id := range w.identities {
		if id.value == v {
			return id.standIn, nil
		}
	}
	o, err := tx.Scope().Call(w.ObjectType)
	if err != nil {
		return py.Object{}, err
	}
	id := &identified{value: v, standIn: o, among: r.reading}
	for _, other := range w.identities {
		if err := id.apart(tx, other); err != nil {
			return py.Object{}, err
		}
	}
	w.identities = append(w.identities, id)
	return o, nil
}

// errMixed is the error for a key that compares by identity beside one whose class defines __eq__: their hashes may be
// equal in another call, and CPython would then compare the two.
func errMixed() error {
	return unsupported(exc.SubscriptUnsupported, "objects as keys beside keys with their own comparison")
}

// apart guards that two values are distinct objects. It breaks the graph if they are one object.
func (id *identified) apart(tx Translator, other *identified) error {
	if id.value.Kind() != other.value.Kind() || id.among != nil && id.among == other.among {
		return nil
	}
	if len(tx.World().identities) >= maxPairs && id.pin(tx) && other.pin(tx) {
		return nil
	}
	same, err := Is(tx, id.value, other.value)
	if err == nil && same {
		err = unsupported(exc.SubscriptUnsupported, "two views of one object as keys")
	}
	return err
}

// pin guards the identity of a value that was passed to the frame. It returns false for other values.
func (id *identified) pin(tx Translator) bool {
	if id.pinned {
		return true
	}
	obj, src := existing(id.value)
	if src == nil {
		return false
	}
	tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(obj), guards.KeepWeak))
	id.pinned = true
	return true
}

// existing returns the object of a tensor or an instance that existed before the frame ran, and its place. The place is
// nil for other values.
func existing(v VariableTracker) (py.Object, guards.Source) {
	switch x := v.(type) {
	case *TensorVariable:
		if o := x.real(); !o.IsNull() {
			return o, x.Src
		}
	case *ObjectVariable:
		if !x.Obj.IsNull() {
			return x.Obj, x.Src
		}
	}
	return py.Object{}, nil
}

// object returns the stand-in of an instance. If its class compares by identity, the instance has a stand-in of its
// own. If its class defines __eq__ in Python and the instance equals a member, it shares that member's stand-in.
func (r *keyring) object(tx Translator, o *ObjectVariable) (py.Object, error) {
	if o.value != nil && o.unhashed(tx) {
		return py.Object{}, unsupported(exc.SubscriptUnsupported, "dict key %s", Describe(tx, o))
	}
	if o.value != nil && plainHash(tx, o.Class, builtinBase(tx, o.Class)) {
		return onHeld(o, func() (py.Object, error) { return r.keyObject(tx, o.value) })
	}
	looksFor(tx, o.Class, "__hash__", "__eq__")
	if equalsOnlyItself(o.Class) {
		return r.identity(tx, o)
	}
	if r.objects {
		return py.Object{}, errMixed()
	}
	m, err := o.lookupSpecial(tx, "__hash__")
	if err != nil {
		return py.Object{}, err
	}
	if m == nil {
		if d, _ := tx.Scope().TypeLookup(o.Class, "__hash__"); d.IsNull() || d.Kind() == py.NoneKind {
			return py.Object{}, &exc.Observed{TypeName: "TypeError", Text: "unhashable type: '" +
				typeName(tx, o.Class) + "'"}
		}
		return py.Object{}, unsupported(exc.SubscriptUnsupported, "dict key %s", Describe(tx, o))
	}
	h, err := ownHash(tx, o, m)
	if err != nil {
		return py.Object{}, err
	}
	writes := tx.World().Writes
	for _, u := range r.users {
		if !sameInt(u.hash, h) {
			continue
		}
		same := u.instance == o
		if !same {
			if same, err = Equal(tx, u.instance, o); err != nil {
				return py.Object{}, err
			}
			if tx.World().Writes != writes {
				return py.Object{}, unsupported(exc.SubscriptUnsupported, "__eq__ of %s, which has effects",
					Describe(tx, o))
			}
		}
		if same {
			return u.standIn, nil
		}
	}
	s, err := tx.Scope().Call(tx.World().ObjectType)
	if err != nil {
		return py.Object{}, err
	}
	tx.World().userHash[s] = userKey{hash: h, standIn: s, instance: o}
	return s, nil
}

// ownHash returns hash(o), computed by m, the __hash__ of o's class. It refuses a method with effects: CPython calls
// __hash__ once and stores the hash, but the translator calls it again when o enters another container or the container
// is materialized.
func ownHash(tx Translator, o *ObjectVariable, m VariableTracker) (py.Object, error) {
	writes := tx.World().Writes
	hv, err := Call(tx, m, nil, nil)
	if err != nil {
		return py.Object{}, err
	}
	if tx.World().Writes != writes {
		return py.Object{}, unsupported(exc.SubscriptUnsupported, "__hash__ of %s, which has effects", Describe(tx, o))
	}
	h, ok := AsConstant(tx, MustRealize(tx, hv))
	if !ok || h.Kind() != py.Int {
		return py.Object{}, unsupported(exc.SubscriptUnsupported, "hash of %s", Describe(tx, o))
	}
	return hashResult(tx, h)
}

// settle checks that the hashes of members have not changed. It is called before the members enter a real container.
func (r *keyring) settle(tx Translator) error {
	for _, u := range r.users {
		m, err := u.instance.lookupSpecial(tx, "__hash__")
		if err != nil {
			return err
		}
		if m == nil {
			return unsupported(exc.Reconstruct, "key %s", Describe(tx, u.instance))
		}
		h, err := ownHash(tx, u.instance, m)
		if _, raised := err.(*exc.Observed); err != nil && !raised {
			return err
		}
		if err != nil || !sameInt(h, u.hash) {
			return unsupported(exc.Reconstruct, "key %s, whose hash has changed", Describe(tx, u.instance))
		}
	}
	return nil
}

// added records that v is now a member and has this stand-in. It refuses an instance whose class defines __eq__ if a
// constant member has the same hash, since CPython would compare the two.
func (r *keyring) added(tx Translator, standIn py.Object, v VariableTracker, all func() []py.Object) error {
	v = MustRealize(tx, v)
	if err := r.unlike(tx, standIn, all); err != nil {
		return err
	}
	if _, ok := AsConstant(tx, v); ok {
		return nil
	}
	if r.members == nil {
		r.members = map[py.Object]VariableTracker{}
	}
	r.members[standIn] = v
	users := usersIn(tx, standIn)
	r.users, r.objects = append(r.users, users...), r.objects || len(users) == 0
	return nil
}

// dropped removes the member with this stand-in. Later keys are no longer compared with it.
func (r *keyring) dropped(standIn py.Object) {
	delete(r.members, standIn)
	for i, u := range r.users {
		if u.standIn == standIn {
			r.users = append(append([]userKey(nil), r.users[:i]...), r.users[i+1:]...)
			return
		}
	}
}

// usersIn returns the instances in a key whose classes define __eq__ in Python. Such an instance may be the key itself
// or an item of a tuple.
func usersIn(tx Translator, standIn py.Object) []userKey {
	if u, ok := tx.World().userHash[standIn]; ok {
		return []userKey{u}
	}
	if standIn.Kind() != py.Tuple {
		return nil
	}
	var out []userKey
	for _, it := range tx.Scope().Items(standIn) {
		out = append(out, usersIn(tx, it)...)
	}
	return out
}

// unlike refuses an instance whose class defines __eq__ if a constant member has the same hash, since CPython would
// compare the two.
func (r *keyring) unlike(tx Translator, standIn py.Object, all func() []py.Object) error {
	inside := usersIn(tx, standIn)
	if len(inside) == 0 || all == nil {
		return nil
	}
	u, isUser := tx.World().userHash[standIn]
	for _, o := range all() {
		if _, tracked := r.members[o]; tracked || o == standIn {
			continue
		}
		if !isUser { // for a tuple it is unknown which items CPython would compare
			if o.Kind() == py.Tuple {
				return unsupported(exc.SubscriptUnsupported, "tuples as keys, with items with their own comparison")
			}
			continue
		}
		h, err := hashOf(tx, o)
		if err != nil {
			return err
		}
		if sameInt(h, u.hash) {
			return unsupported(exc.SubscriptUnsupported, "keys of one hash")
		}
	}
	return nil
}

// member returns the tracker of the member with this stand-in.
func (r *keyring) member(standIn py.Object) VariableTracker {
	if v, ok := r.members[standIn]; ok {
		return v
	}
	return NewConstant(standIn, nil)
}

// clone returns a copy of the keyring with the same members.
func (r *keyring) clone() keyring {
	c := keyring{users: append([]userKey(nil), r.users...), objects: r.objects}
	if r.members != nil {
		c.members = make(map[py.Object]VariableTracker, len(r.members))
		for k, v := range r.members {
			c.members[k] = v
		}
	}
	return c
}

// guardIdentity guards the identity of a function. Without this guard, only the function's code is guarded.
func guardIdentity(tx Translator, f *FunctionVariable) {
	if _, constant := f.Src.(*guards.ConstSource); f.Src != nil && !constant && !f.Fn.IsNull() {
		tx.Output().AddGuards(guards.IDMatch(f.Src, tx.Output().Const(f.Fn), guards.KeepWeak))
	}
}
