package variables

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// DictVariable is a dict whose keys are known. If class is set, it is an OrderedDict or a defaultdict. Go keeps the
// keys and values in the dict's order. Each key has a stand-in (see keyring), and CPython looks up positions of keys in
// a real dict of these stand-ins.
type DictVariable struct {
	Base
	keyring
	keys       []VariableTracker
	values     []VariableTracker
	keyObjects []py.Object
	index      py.Object     // maps a stand-in to the serial number of its entry
	at         map[int64]int // maps a serial number to a position in keys
	serial     int64
	version    int             // increases when a key is added or removed, for iterators
	class      py.Object       // zero for an exact dict
	factory    VariableTracker // default_factory of a defaultdict, or nil
	owner      VariableTracker // the instance or function whose __dict__ this is, or nil
	// ordered is an OrderedDict that existed before the frame ran. It may have instance attributes.
	ordered py.Object
}

// NewDict returns an empty dict.
func NewDict(src guards.Source) *DictVariable {
	return &DictVariable{Base: Base{Src: src}, at: map[int64]int{}}
}

// NewDictOf returns a dict that the translated code makes from these keys and values.
func NewDictOf(tx Translator, keys, values []VariableTracker) (*DictVariable, error) {
	d := NewDict(nil)
	for i, k := range keys {
		if err := d.put(tx, k, values[i]); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Keys returns the dict's keys in iteration order.
func (d *DictVariable) Keys() []VariableTracker { return capped(d.keys) }

// Values returns the dict's values in iteration order.
func (d *DictVariable) Values() []VariableTracker { return capped(d.values) }

// Plain reports whether the dict is an exact dict.
func (d *DictVariable) Plain() bool { return d.class.IsNull() && d.factory == nil }

// Swap replaces the i-th value and returns the old one. Swap is no effect of the program; to restore the dict, call it
// again with the old value.
func (d *DictVariable) Swap(i int, v VariableTracker) (before VariableTracker) {
	before, d.values[i] = d.values[i], v
	return before
}

// Kind implements VariableTracker.
func (*DictVariable) Kind() string { return "ConstDictVariable" }

// Children implements Container.
func (d *DictVariable) Children() []VariableTracker {
	out := append(append([]VariableTracker(nil), d.keys...), d.values...)
	if d.factory != nil {
		out = append(out, d.factory)
	}
	if d.owner != nil {
		out = append(out, d.owner)
	}
	return out
}

// entry returns the position of a key, or -1 if the dict has no such key. If hash(key) raises, entry returns the error
// as an exception of the user's program.
func (d *DictVariable) entry(tx Translator, key VariableTracker) (int, py.Object, error) {
	k, err := d.keyObject(tx, key)
	if err != nil {
		return 0, k, hashError(tx, key, false, err)
	}
	if d.index.IsNull() {
		if d.index, err = tx.Scope().Dict(); err != nil {
			return 0, k, err
		}
	}
	n, ok := tx.Scope().DictGet(d.index, k)
	if !ok {
		if err := d.unlike(tx, k, func() []py.Object { return d.keyObjects }); err != nil {
			return 0, k, err
		}
		_, err = hashOf(tx, k)
		return -1, k, hashError(tx, key, false, err)
	}
	serial, _ := py.AsInt(n)
	return d.at[serial], k, nil
}

func (d *DictVariable) put(tx Translator, key, value VariableTracker) error {
	i, k, err := d.entry(tx, key)
	if err != nil {
		return err
	}
	if i >= 0 {
		if err := lettingGo(tx, d.values[i]); err != nil {
			return err
		}
		d.values[i] = value
		return nil
	}
	s := tx.Scope()
	if _, err := s.CallMethod(d.index, "__setitem__", k, s.Int(d.serial)); err != nil {
		return err
	}
	if err := d.added(tx, k, key, func() []py.Object { return d.keyObjects }); err != nil {
		return err
	}
	d.at[d.serial] = len(d.keys)
	d.serial++
	d.version++
	d.keys, d.values, d.keyObjects = append(d.keys, key), append(d.values, value), append(d.keyObjects, k)
	return nil
}

// Lookup returns the value of a key, or false if the dict has no such key.
func (d *DictVariable) Lookup(tx Translator, key VariableTracker) (VariableTracker, bool, error) {
	return d.get(tx, key)
}

func (d *DictVariable) get(tx Translator, key VariableTracker) (VariableTracker, bool, error) {
	i, _, err := d.entry(tx, key)
	if err != nil || i < 0 {
		return nil, false, err
	}
	return d.values[i], true, nil
}

func (d *DictVariable) remove(tx Translator, key VariableTracker) (VariableTracker, bool, error) {
	i, k, err := d.entry(tx, key)
	if err != nil || i < 0 {
		return nil, false, err
	}
	v := d.values[i]
	n, _ := tx.Scope().DictGet(d.index, k)
	serial, _ := py.AsInt(n)
	if _, err := tx.Scope().CallMethod(d.index, "__delitem__", k); err != nil {
		return nil, false, err
	}
	d.keys = without(d.keys, i)
	d.values = without(d.values, i)
	d.keyObjects = append(append([]py.Object(nil), d.keyObjects[:i]...), d.keyObjects[i+1:]...)
	delete(d.at, serial)
	d.dropped(k)
	for s, j := range d.at {
		if j > i {
			d.at[s] = j - 1
		}
	}
	d.version++
	return v, true, nil
}

// without returns a copy of vs without item i.
func without(vs []VariableTracker, i int) []VariableTracker {
	return append(append([]VariableTracker(nil), vs[:i]...), vs[i+1:]...)
}

func (d *DictVariable) clear() {
	fresh := NewDict(nil)
	d.keyring, d.keys, d.values, d.keyObjects, d.index, d.at = keyring{}, nil, nil, nil, py.Object{}, fresh.at
	d.version++
}

// duplicate returns a new dict with the same items and class.
func (d *DictVariable) duplicate(tx Translator) (*DictVariable, error) {
	c := NewDict(nil)
	c.class, c.factory = d.class, d.factory
	for i := range d.keys {
		if err := c.put(tx, d.keys[i], d.values[i]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// isOrdered reports whether d is an OrderedDict. Two OrderedDicts are equal only if their orders are equal as well. The
// order is stored separately from the hash table.
func (d *DictVariable) isOrdered(tx Translator) bool {
	return !d.class.IsNull() && py.IsSubtype(d.class, tx.World().OrderedDictType)
}

// Items implements Sequence. It returns the keys, as iterating over a dict does.
func (d *DictVariable) Items(Translator) ([]VariableTracker, error) { return capped(d.keys), nil }

// changes implements watched.
func (d *DictVariable) changes() (size, version int, what string) {
	return len(d.keys), d.version, "dictionary"
}

// Len implements Lener.
func (d *DictVariable) Len(Translator) (int, error) { return len(d.keys), nil }

// Truth implements Truther.
func (d *DictVariable) Truth(Translator) (bool, error) { return len(d.keys) > 0, nil }

// PythonType implements Typed.
func (d *DictVariable) PythonType(tx Translator) (py.Object, error) {
	if !d.class.IsNull() {
		return d.class, nil
	}
	return tx.World().DictType, nil
}

// AsProxy implements Proxy.
func (d *DictVariable) AsProxy(tx Translator) (fxgraph.Arg, error) {
	if !d.class.IsNull() && d.class != tx.World().DictType {
		return nil, unsupported(exc.CallUnsupported, "a %s as an operand", py.TypeName(d.class))
	}
	k, err := proxies(tx, d.keys)
	if err != nil {
		return nil, err
	}
	v, err := proxies(tx, d.values)
	return fxgraph.Dict{Keys: k, Values: v}, err
}

// GetAttr implements AttrGetter.
func (d *DictVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	if err := d.lacksOwn(tx, name); err != nil {
		return nil, err
	}
	if name == "default_factory" && !d.class.IsNull() && py.IsSubtype(d.class, tx.World().DefaultDictType) {
		if d.factory == nil {
			return NoneConst(), nil
		}
		return d.factory, nil
	}
	return methodAttr(tx, d, name)
}

// lacksOwn guards that an existing OrderedDict has no instance attribute of this name. An instance attribute would
// replace a method.
func (d *DictVariable) lacksOwn(tx Translator, name string) error {
	if d.ordered.IsNull() || d.Src == nil {
		return nil
	}
	if _, has := tx.Scope().InstanceAttr(d.ordered, name); has {
		return unsupported(exc.AttrUnsupported, "%s of an OrderedDict, which has it itself", name)
	}
	tx.Output().AddGuards(guards.HasAttr(d.Src, name, false))
	return nil
}

// GetItem implements ItemGetter.
func (d *DictVariable) GetItem(tx Translator, key VariableTracker) (VariableTracker, error) {
	v, ok, err := d.get(tx, key)
	if err != nil || ok {
		return v, err
	}
	if d.factory == nil {
		return nil, keyError(tx, key)
	}
	if v, err = Call(tx, d.factory, nil, nil); err != nil {
		return nil, err
	}
	return v, d.SetItem(tx, key, v)
}

// keyError returns KeyError(key).
func keyError(tx Translator, key VariableTracker) error {
	// The text is repr(key), like that of str() of a KeyError.
	o := &exc.Observed{TypeName: "KeyError", Text: Describe(tx, key)}
	v, err := newException(tx, tx.World().Builtin("KeyError"), []VariableTracker{key}, nil)
	if err == nil {
		o.Value = v
	}
	return o
}

// SetItem implements ItemSetter.
func (d *DictVariable) SetItem(tx Translator, key, value VariableTracker) error {
	if value == nil {
		old, ok, err := d.remove(tx, key)
		if err == nil && !ok {
			err = keyError(tx, key)
		}
		if err == nil {
			err = lettingGo(tx, old)
		}
		if err != nil {
			return err
		}
		return itemEffect(tx, d, key, nil)
	}
	if err := d.put(tx, key, value); err != nil {
		return err
	}
	return itemEffect(tx, d, key, value)
}

// Settle implements Settler.
func (d *DictVariable) Settle(tx Translator) error { return d.settle(tx) }

// Snapshot implements Snapshotter.
func (d *DictVariable) Snapshot() VariableTracker {
	if d.owner != nil {
		return d
	}
	return &DictVariable{keys: append([]VariableTracker(nil), d.keys...),
		values: append([]VariableTracker(nil), d.values...), class: d.class, factory: d.factory}
}

// Reconstruct implements Reconstructer.
func (d *DictVariable) Reconstruct(e Emitter) error {
	if d.owner != nil {
		return loadPlainAttr(e, d.owner, "__dict__")
	}
	nargs := 1
	if !d.class.IsNull() {
		e.PushNull()
		e.LoadConst(d.class)
		if isDefaultDict(d.class) {
			nargs = 2
			if d.factory == nil {
				e.LoadConst(py.None())
			} else if err := e.Load(d.factory); err != nil {
				return err
			}
		}
	}
	for i := range d.keys {
		if err := LoadAll(e, []VariableTracker{d.keys[i], d.values[i]}); err != nil {
			return err
		}
	}
	e.BuildMap(len(d.keys))
	if !d.class.IsNull() {
		e.Call(nargs, nil)
	}
	return nil
}

func isDefaultDict(class py.Object) bool { return py.TypeName(class) == "collections.defaultdict" }

// DictViewVariable is d.keys(), d.values() or d.items() of a tracked dict. It reflects later changes of the dict.
type DictViewVariable struct {
	Base
	dict *DictVariable
	what string
}

// Kind implements VariableTracker.
func (*DictViewVariable) Kind() string { return "DictViewVariable" }

// Children implements Container.
func (v *DictViewVariable) Children() []VariableTracker { return []VariableTracker{v.dict} }

// Items implements Sequence.
func (v *DictViewVariable) Items(Translator) ([]VariableTracker, error) {
	out := make([]VariableTracker, len(v.dict.keys))
	for i := range out {
		out[i] = v.at(i)
	}
	return out, nil
}

// at implements indexed.
func (v *DictViewVariable) at(i int) VariableTracker {
	switch v.what {
	case "keys":
		return v.dict.keys[i]
	case "values":
		return v.dict.values[i]
	}
	return NewTuple([]VariableTracker{v.dict.keys[i], v.dict.values[i]}, nil)
}

// changes implements watched.
func (v *DictViewVariable) changes() (size, version int, what string) { return v.dict.changes() }

// Len implements Lener.
func (v *DictViewVariable) Len(Translator) (int, error) { return len(v.dict.keys), nil }

// Truth implements Truther.
func (v *DictViewVariable) Truth(Translator) (bool, error) { return len(v.dict.keys) > 0, nil }

// PythonType implements Typed.
func (v *DictViewVariable) PythonType(tx Translator) (py.Object, error) {
	empty, err := tx.Scope().Call(v.dict.classOrDict(tx))
	if err != nil {
		return py.Object{}, observed(err)
	}
	view, err := tx.Scope().CallMethod(empty, v.what)
	if err != nil {
		return py.Object{}, observed(err)
	}
	return view.Type(), nil
}

// classOrDict returns OrderedDict for an OrderedDict, and dict for all other dicts. Views of an OrderedDict have types
// of their own.
func (d *DictVariable) classOrDict(tx Translator) py.Object {
	if d.isOrdered(tx) {
		return tx.World().OrderedDictType
	}
	return tx.World().DictType
}

// CallMethod implements MethodCaller.
func (v *DictViewVariable) CallMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if name == "isdisjoint" && len(args) == 1 && len(kwargs) == 0 {
		s, err := setOf(tx, v, false)
		if err != nil {
			return nil, err
		}
		return s.CallMethod(tx, name, args, kwargs)
	}
	return callDunder(tx, v, name, args, kwargs)
}

// Settle implements Settler.
func (v *DictViewVariable) Settle(tx Translator) error { return madeBy(tx, v) }

// Reconstruct implements Reconstructer.
func (v *DictViewVariable) Reconstruct(e Emitter) error {
	if err := e.Load(v.dict); err != nil {
		return err
	}
	e.LoadMethod(v.what)
	e.CallMethod(0, nil)
	return nil
}
