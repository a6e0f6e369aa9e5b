package variables

import (
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

type dictMethod struct {
	lo, hi int // least and largest number of positional arguments; if hi is -1, run checks their number
	run    func(tx Translator, d *DictVariable, args []VariableTracker, kwargs []Kw) (VariableTracker, error)
}

// dictMethods maps the name of a dict method to its implementation. It is filled in init, since the methods call
// DictVariable.CallMethod, which reads the map.
var dictMethods map[string]dictMethod

// orderedMethods maps the names of methods that OrderedDict overrides or adds to their implementations.
var orderedMethods map[string]dictMethod

func init() {
	dictMethods = map[string]dictMethod{
		"keys": {0, 0, dictView("keys")}, "values": {0, 0, dictView("values")}, "items": {0, 0, dictView("items")},
		"get": {1, 2, dictGet}, "copy": {0, 0, dictCopy}, "pop": {1, 2, dictPop}, "setdefault": {1, 2, dictSetDefault},
		"clear": {0, 0, dictClear}, "update": {0, -1, dictUpdate}, "popitem": {0, 0, dictPopItem},
		"fromkeys": {1, 2, dictFromKeys},
	}
	orderedMethods = map[string]dictMethod{
		"move_to_end": {1, 2, orderedMove}, "popitem": {0, 1, orderedPopItem},
	}
}

// CallMethod implements MethodCaller.
func (d *DictVariable) CallMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if err := d.lacksOwn(tx, name); err != nil {
		return nil, err
	}
	m, ok := dictMethods[name]
	if o, own := orderedMethods[name]; own && d.isOrdered(tx) {
		m, ok = o, true
	} else if len(kwargs) > 0 && name != "update" {
		ok = false
	}
	if !ok {
		return callDunder(tx, d, name, args, kwargs)
	}
	if len(args) < m.lo || (m.hi >= 0 && len(args) > m.hi) {
		return nil, wrongCall(tx, d, name, args, kwargs)
	}
	return m.run(tx, d, args, kwargs)
}

func dictView(what string) func(Translator, *DictVariable, []VariableTracker, []Kw) (VariableTracker, error) {
	return func(_ Translator, d *DictVariable, _ []VariableTracker, _ []Kw) (VariableTracker, error) {
		return &DictViewVariable{dict: d, what: what}, nil
	}
}

func dictGet(tx Translator, d *DictVariable, args []VariableTracker, _ []Kw) (VariableTracker, error) {
	v, ok, err := d.get(tx, args[0])
	if err != nil || ok {
		return v, err
	}
	return arg(args, 1), nil
}

func dictCopy(tx Translator, d *DictVariable, _ []VariableTracker, _ []Kw) (VariableTracker, error) {
	return d.duplicate(tx)
}

func dictPop(tx Translator, d *DictVariable, args []VariableTracker, _ []Kw) (VariableTracker, error) {
	var v VariableTracker
	var ok bool
	if len(d.keys) > 0 || d.isOrdered(tx) { // pop of an empty dict does not hash the key
		var err error
		if v, ok, err = d.remove(tx, args[0]); err != nil {
			return nil, err
		}
	}
	if !ok {
		if len(args) == 2 {
			return args[1], nil
		}
		return nil, keyError(tx, args[0])
	}
	if err := lettingGo(tx, v); err != nil {
		return nil, err
	}
	return v, methodEffect(tx, d, "pop", args[:1])
}

func dictSetDefault(tx Translator, d *DictVariable, args []VariableTracker, _ []Kw) (VariableTracker, error) {
	v, ok, err := d.get(tx, args[0])
	if err != nil || ok {
		return v, err
	}
	return arg(args, 1), d.SetItem(tx, args[0], arg(args, 1))
}

func dictClear(tx Translator, d *DictVariable, _ []VariableTracker, _ []Kw) (VariableTracker, error) {
	for _, v := range d.values {
		if err := lettingGo(tx, v); err != nil {
			return nil, err
		}
	}
	d.clear()
	return NoneConst(), methodEffect(tx, d, "clear", nil)
}

func dictUpdate(tx Translator, d *DictVariable, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	return NoneConst(), d.update(tx, args, kwargs)
}

func dictPopItem(tx Translator, d *DictVariable, _ []VariableTracker, _ []Kw) (VariableTracker, error) {
	return d.popAt(tx, len(d.keys)-1, nil)
}

// popAt implements popitem() for the item at position i.
func (d *DictVariable) popAt(tx Translator, i int, args []VariableTracker) (VariableTracker, error) {
	if len(d.keys) == 0 {
		text := "popitem(): dictionary is empty"
		if d.isOrdered(tx) {
			text = "dictionary is empty"
		}
		return nil, RaiseText(tx, "KeyError", text)
	}
	k := d.keys[i]
	v, _, err := d.remove(tx, k)
	if err != nil {
		return nil, err
	}
	if err := lettingGo(tx, v); err != nil {
		return nil, err
	}
	return NewTuple([]VariableTracker{k, v}, nil), methodEffect(tx, d, "popitem", args)
}

func dictFromKeys(tx Translator, d *DictVariable, args []VariableTracker, _ []Kw) (VariableTracker, error) {
	return fromKeys(tx, d.class, args)
}

// fromKeys implements class.fromkeys(iterable, value). A zero class means dict.
func fromKeys(tx Translator, class py.Object, args []VariableTracker) (VariableTracker, error) {
	keys, err := Unpack(tx, args[0])
	if err != nil {
		return nil, err
	}
	d := NewDict(nil)
	d.class = class
	for _, k := range keys {
		if err := d.put(tx, k, arg(args, 1)); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// lastArgument returns the value of the argument `last` of popitem or move_to_end of an OrderedDict.
func lastArgument(tx Translator, args []VariableTracker, at int, kwargs []Kw) (bool, error) {
	if len(kwargs) > 0 {
		kw := kwargs[0]
		if kw.Name != "last" || len(kwargs) > 1 {
			return false, unsupported(exc.CallUnsupported, "OrderedDict method with %s", kw.Name)
		}
		return Truth(tx, kw.Value)
	}
	if len(args) > at {
		return Truth(tx, args[at])
	}
	return true, nil
}

func orderedPopItem(tx Translator, d *DictVariable, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	last, err := lastArgument(tx, args, 0, kwargs)
	if err != nil {
		return nil, err
	}
	i := 0
	if last {
		i = len(d.keys) - 1
	}
	return d.popAt(tx, i, []VariableTracker{BoolConst(last)})
}

func orderedMove(tx Translator, d *DictVariable, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if len(args) == 0 {
		return nil, unsupported(exc.CallUnsupported, "move_to_end by keyword")
	}
	last, err := lastArgument(tx, args, 1, kwargs)
	if err != nil {
		return nil, err
	}
	i, _, err := d.entry(tx, args[0])
	if err != nil {
		return nil, err
	}
	if i < 0 {
		return nil, keyError(tx, args[0])
	}
	key := d.keys[i]
	keys, values := without(d.keys, i), without(d.values, i)
	if last {
		keys, values = append(keys, key), append(values, d.values[i])
	} else {
		keys = append([]VariableTracker{key}, keys...)
		values = append([]VariableTracker{d.values[i]}, values...)
	}
	d.clear()
	for j := range keys {
		if err := d.put(tx, keys[j], values[j]); err != nil {
			return nil, err
		}
	}
	return NoneConst(), methodEffect(tx, d, "move_to_end", []VariableTracker{args[0], BoolConst(last)})
}

func (d *DictVariable) update(tx Translator, args []VariableTracker, kwargs []Kw) error {
	pairs, err := dictPairs(tx, "update", args, kwargs)
	if err != nil {
		return err
	}
	for _, p := range pairs {
		if err := d.SetItem(tx, p[0], p[1]); err != nil {
			return err
		}
	}
	return nil
}

// dictPairs returns the pairs of keys and values that are the arguments of dict() or dict.update().
func dictPairs(tx Translator, what string, args []VariableTracker, kwargs []Kw) ([][2]VariableTracker, error) {
	var out [][2]VariableTracker
	if len(args) > 1 {
		return nil, &exc.Observed{TypeName: "TypeError", Text: what + " expected at most 1 argument, got " +
			itoa(len(args))}
	}
	if len(args) == 1 {
		pairs, err := mappingPairs(tx, args[0])
		if err != nil {
			return nil, err
		}
		out = pairs
	}
	for _, kw := range kwargs {
		out = append(out, [2]VariableTracker{StrConst(tx, kw.Name), kw.Value})
	}
	return out, nil
}

// HasKeys reports whether {**v} accepts v as a mapping. It does so if v's type has a method keys().
func HasKeys(tx Translator, v VariableTracker) bool {
	t, err := PythonType(tx, v)
	if err != nil {
		return false
	}
	_, ok := tx.Scope().TypeLookup(t, "keys")
	return ok
}

// mappingPairs returns the pairs of a dict, of an object with a method keys(), or of an iterable of pairs.
func mappingPairs(tx Translator, v VariableTracker) ([][2]VariableTracker, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return nil, err
	}
	var out [][2]VariableTracker
	if o, ok := v.(*ObjectVariable); ok { // CPython looks up keys() first
		d, has := tx.Scope().TypeLookup(o.Class, "keys")
		_, own := readsItself(tx.Scope(), o.Class)
		if own || has && d.Kind() != py.Function && !py.IsNative(o.Class, "keys", d) {
			return nil, unsupported(exc.CallUnsupported, "pairs of %s", Describe(tx, v))
		}
	}
	if d, ok := plainDict(tx, v); ok {
		for i := range d.keys {
			out = append(out, [2]VariableTracker{d.keys[i], d.values[i]})
		}
		return out, nil
	}
	if IsTensor(v) {
		return nil, unsupported(exc.CallUnsupported, "pairs of a tensor")
	}
	if o, ok := v.(*ObjectVariable); ok {
		if _, has := tx.Scope().TypeLookup(o.Class, "keys"); has {
			keys, err := CallMethod(tx, o, "keys", nil, nil)
			if err != nil {
				return nil, err
			}
			names, err := UnpackIterator(tx, keys)
			if err != nil {
				return nil, err
			}
			for _, k := range names {
				item, err := GetItem(tx, o, k)
				if err != nil {
					return nil, err
				}
				out = append(out, [2]VariableTracker{k, item})
			}
			return out, nil
		}
	}
	if _, ok := v.(Sequence); !ok {
		if v, err = Iter(tx, v); err != nil {
			return nil, err
		}
	}
	for i := 0; ; i++ {
		it, more, err := pairAt(tx, v, i)
		if err != nil {
			return nil, err
		}
		if !more {
			return out, nil
		}
		kv, err := UnpackIterator(tx, it)
		if err != nil {
			if IsObserved(err) {
				err = unsupported(exc.CallUnsupported, "element %d of a dict's pairs, which is not a pair", i)
			}
			return nil, err
		}
		if len(kv) != 2 { // the error's text depends on the class, and CPython adds the earlier pairs first
			return nil, unsupported(exc.CallUnsupported, "element %d of a dict's pairs, of %d items", i, len(kv))
		}
		out = append(out, [2]VariableTracker{kv[0], kv[1]})
	}
}

// pairAt returns the i-th item of a sequence, or the next item of an iterator. It returns false at the end. Items are
// read one by one, since CPython stops at an item that is not a pair.
func pairAt(tx Translator, v VariableTracker, i int) (VariableTracker, bool, error) {
	s, ok := v.(Sequence)
	if !ok {
		if i >= maxUnroll {
			return nil, false, unsupported(exc.TooLarge, "iterator of more than %d items", maxUnroll)
		}
		return next(tx, v)
	}
	items, err := s.Items(tx)
	if err != nil || i >= len(items) {
		return nil, false, err
	}
	return items[i], true, nil
}

// plainDict returns the dict whose items CPython copies without calling methods. It is v itself, or the dict value of
// an instance whose class extends dict and does not override __iter__.
func plainDict(tx Translator, v VariableTracker) (*DictVariable, bool) {
	switch x := v.(type) {
	case *DictVariable:
		return x, true
	case *ObjectVariable:
		d, ok := x.value.(*DictVariable)
		if !ok {
			return nil, false
		}
		own, _ := tx.Scope().TypeLookup(x.Class, "__iter__")
		theirs, _ := tx.Scope().TypeLookup(d.classOrDict(tx), "__iter__")
		return d, own == theirs && !d.isOrdered(tx)
	}
	return nil, false
}
