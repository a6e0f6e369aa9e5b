package variables

import (
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// methodEffect replays a method call on a real container: the program's own call, at its own place.
func methodEffect(tx Translator, v VariableTracker, name string, args []VariableTracker) error {
	return writeThrough(tx, v, args, func(e Emitter, vs []VariableTracker) error {
		if err := e.Load(v); err != nil {
			return err
		}
		e.LoadMethod(name)
		if err := loadAll(e, vs); err != nil {
			return err
		}
		e.CallMethod(len(vs), nil)
		e.PopTop()
		return nil
	})
}

func wrongArgs(kind, name string) error {
	return &exc.Observed{TypeName: "TypeError", Text: kind + "." + name + ": wrong arguments"}
}

// CallMethod implements MethodCaller.
func (l *ListVariable) CallMethod(tx Translator, name string, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if name == "sort" {
		return l.sort(tx, args, kwargs)
	}
	if len(kwargs) > 0 {
		return nil, unsupported(exc.CallUnsupported, "list.%s with keywords", name)
	}
	switch name {
	case "append":
		if len(args) != 1 {
			return nil, wrongArgs("list", name)
		}
		l.items = append(l.items[:len(l.items):len(l.items)], args[0])
		return NoneConst(), methodEffect(tx, l, name, args)
	case "extend":
		if len(args) != 1 {
			return nil, wrongArgs("list", name)
		}
		more, err := Unpack(tx, args[0])
		if err != nil {
			return nil, err
		}
		l.items = append(l.items[:len(l.items):len(l.items)], more...)
		return NoneConst(), methodEffect(tx, l, name, []VariableTracker{NewTuple(more, nil)})
	case "insert":
		i, ok := ConstInt(tx, arg(args, 0))
		if len(args) != 2 || !ok {
			return nil, unsupported(exc.CallUnsupported, "list.insert at an unknown place")
		}
		i = clamp(i, len(l.items))
		items := append([]VariableTracker(nil), l.items[:i]...)
		l.items = append(append(items, args[1]), l.items[i:]...)
		return NoneConst(), methodEffect(tx, l, name, args)
	case "pop":
		i, ok := -1, true
		if len(args) == 1 {
			i, ok = ConstInt(tx, args[0])
		}
		if len(args) > 1 || !ok {
			return nil, unsupported(exc.CallUnsupported, "list.pop at an unknown place")
		}
		if i < 0 {
			i += len(l.items)
		}
		if i < 0 || i >= len(l.items) {
			return nil, &exc.Observed{TypeName: "IndexError", Text: "pop index out of range"}
		}
		v := l.items[i]
		l.items = append(append([]VariableTracker(nil), l.items[:i]...), l.items[i+1:]...)
		return v, methodEffect(tx, l, name, args)
	case "clear":
		l.items = nil
		return NoneConst(), methodEffect(tx, l, name, args)
	case "reverse":
		items := make([]VariableTracker, len(l.items))
		for i, v := range l.items {
			items[len(items)-1-i] = v
		}
		l.items = items
		return NoneConst(), methodEffect(tx, l, name, args)
	case "copy":
		return NewList(append([]VariableTracker(nil), l.items...), nil), nil
	case "remove":
		i, err := l.find(tx, arg(args, 0))
		if err != nil {
			return nil, err
		}
		if i < 0 {
			return nil, &exc.Observed{TypeName: "ValueError", Text: "list.remove(x): x not in list"}
		}
		l.items = append(append([]VariableTracker(nil), l.items[:i]...), l.items[i+1:]...)
		return NoneConst(), writeThrough(tx, l, nil, func(e Emitter, _ []VariableTracker) error {
			if err := e.Load(l); err != nil {
				return err
			}
			e.LoadInt(i)
			e.DeleteSubscr()
			return nil
		})
	case "index", "count":
		return sequenceSearch(tx, l.items, name, args)
	}
	return nil, unsupported(exc.CallUnsupported, "list.%s", name)
}

func (l *ListVariable) find(tx Translator, v VariableTracker) (int, error) {
	for i, it := range l.items {
		same, err := Equal(tx, it, v)
		if err != nil {
			return 0, err
		}
		if same {
			return i, nil
		}
	}
	return -1, nil
}

func sequenceSearch(tx Translator, items []VariableTracker, name string, args []VariableTracker) (VariableTracker, error) {
	if len(args) != 1 {
		return nil, unsupported(exc.CallUnsupported, "%s with bounds", name)
	}
	count := 0
	for i, it := range items {
		same, err := Equal(tx, it, args[0])
		if err != nil {
			return nil, err
		}
		if same {
			if name == "index" {
				return IntConst(tx, i), nil
			}
			count++
		}
	}
	if name == "index" {
		return nil, &exc.Observed{TypeName: "ValueError", Text: "not in sequence"}
	}
	return IntConst(tx, count), nil
}

// sort handles list.sort of known values: CPython sorts the real ones.
func (l *ListVariable) sort(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	sorted, err := sortValues(tx, l.items, kwargs)
	if err != nil || len(args) > 0 {
		if err == nil {
			err = wrongArgs("list", "sort")
		}
		return nil, err
	}
	l.items = sorted
	return NoneConst(), writeThrough(tx, l, []VariableTracker{NewTuple(sorted, nil)}, func(e Emitter, vs []VariableTracker) error {
		if err := loadAll(e, []VariableTracker{vs[0], l}); err != nil {
			return err
		}
		e.LoadConst(py.None())
		e.LoadConst(py.None())
		e.BuildSlice(2)
		e.StoreSubscr()
		return nil
	})
}

func sortValues(tx Translator, items []VariableTracker, kwargs []Kw) ([]VariableTracker, error) {
	keys := items
	reverse := NewConstant(py.False(), nil)
	for _, kw := range kwargs {
		switch kw.Name {
		case "reverse":
			r, err := Truth(tx, kw.Value)
			if err != nil {
				return nil, err
			}
			reverse = BoolConst(r)
		case "key":
			if c, ok := AsConstant(tx, kw.Value); ok && c == py.None() {
				continue
			}
			keys = make([]VariableTracker, len(items))
			for i, it := range items {
				k, err := Call(tx, kw.Value, []VariableTracker{it}, nil)
				if err != nil {
					return nil, err
				}
				keys[i] = k
			}
		}
	}
	objs, ok := constants(tx, keys)
	if !ok {
		return sortByComparison(tx, items, keys, reverse)
	}
	s := tx.Scope()
	order := make([]py.Object, len(objs))
	for i := range objs {
		order[i] = s.Int(int64(i))
	}
	getter, err := s.GetAttr(s.List(objs...), "__getitem__")
	if err != nil {
		return nil, err
	}
	res, err := s.CallKw(tx.World().Sorted, []py.Object{s.List(order...), getter, reverse.Value}, []string{"key", "reverse"})
	if err != nil {
		return nil, observed(err)
	}
	out := make([]VariableTracker, len(items))
	for i, o := range s.Items(res) {
		n, _ := py.AsInt(o)
		out[i] = items[n]
	}
	return out, nil
}

// sortByComparison sorts items whose keys' < is Python code: the comparisons CPython makes, in its order.
func sortByComparison(tx Translator, items, keys []VariableTracker, reverse VariableTracker) ([]VariableTracker, error) {
	r, err := callPolyfill(tx, "sorting.order", NewTuple(keys, nil), reverse)
	if err != nil {
		return nil, err
	}
	places, err := Unpack(tx, r)
	if err != nil {
		return nil, err
	}
	out := make([]VariableTracker, len(items))
	for i, p := range places {
		n, ok := ConstInt(tx, p)
		if !ok || n >= len(items) {
			return nil, unsupported(exc.CallUnsupported, "sort by values that are not known")
		}
		out[i] = items[n]
	}
	return out, nil
}

func arg(args []VariableTracker, i int) VariableTracker {
	if i < len(args) {
		return args[i]
	}
	return NoneConst()
}

func clamp(i, n int) int {
	if i < 0 {
		i += n
	}
	return max(0, min(i, n))
}

// CallMethod implements MethodCaller.
func (t *TupleVariable) CallMethod(tx Translator, name string, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if (name == "index" || name == "count") && len(kwargs) == 0 {
		return sequenceSearch(tx, t.items, name, args)
	}
	return callConstantMethod(tx, t, name, args, kwargs)
}

// CallMethod implements MethodCaller.
func (d *DictVariable) CallMethod(tx Translator, name string, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	switch name {
	case "pop", "setdefault", "clear", "update", "popitem":
		if err := d.changeable(); err != nil {
			return nil, err
		}
	}
	switch name {
	case "keys", "values", "items":
		if len(args) == 0 && len(kwargs) == 0 {
			return &DictViewVariable{dict: d, what: name}, nil
		}
	case "get":
		v, ok, err := d.get(tx, arg(args, 0))
		if err != nil || ok {
			return v, err
		}
		return arg(args, 1), nil
	case "copy":
		c := NewDict(nil)
		c.class = d.class
		for i := range d.keys {
			if err := c.put(tx, d.keys[i], d.values[i]); err != nil {
				return nil, err
			}
		}
		return c, nil
	case "pop":
		v, ok, err := d.remove(tx, arg(args, 0))
		if err != nil {
			return nil, err
		}
		if !ok {
			if len(args) == 2 {
				return args[1], nil
			}
			return nil, &exc.Observed{TypeName: "KeyError", Text: Describe(tx, arg(args, 0))}
		}
		return v, methodEffect(tx, d, name, args[:1])
	case "setdefault":
		v, ok, err := d.get(tx, arg(args, 0))
		if err != nil || ok {
			return v, err
		}
		return arg(args, 1), d.SetItem(tx, arg(args, 0), arg(args, 1))
	case "clear":
		d.clear()
		return NoneConst(), methodEffect(tx, d, name, nil)
	case "update":
		return NoneConst(), d.update(tx, args, kwargs)
	case "popitem":
		if len(d.keys) == 0 {
			return nil, &exc.Observed{TypeName: "KeyError", Text: "popitem(): dictionary is empty"}
		}
		if len(args) > 0 || len(kwargs) > 0 {
			break
		}
		k := d.keys[len(d.keys)-1]
		v, _, err := d.remove(tx, k)
		if err != nil {
			return nil, err
		}
		return NewTuple([]VariableTracker{k, v}, nil), methodEffect(tx, d, name, nil)
	}
	return nil, unsupported(exc.CallUnsupported, "dict.%s", name)
}

func (d *DictVariable) update(tx Translator, args []VariableTracker, kwargs []Kw) error {
	pairs, err := dictPairs(tx, args, kwargs)
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

// dictPairs reads the arguments of dict() and dict.update().
func dictPairs(tx Translator, args []VariableTracker, kwargs []Kw) ([][2]VariableTracker, error) {
	var out [][2]VariableTracker
	if len(args) > 1 {
		return nil, &exc.Observed{TypeName: "TypeError", Text: "dict expected at most 1 argument"}
	}
	if len(args) == 1 {
		a, err := Realize(tx, args[0])
		if err != nil {
			return nil, err
		}
		if src, ok := a.(*DictVariable); ok {
			for i := range src.keys {
				out = append(out, [2]VariableTracker{src.keys[i], src.values[i]})
			}
		} else {
			items, err := Unpack(tx, a)
			if err != nil {
				return nil, err
			}
			for _, it := range items {
				kv, err := Unpack(tx, it)
				if err != nil {
					return nil, err
				}
				if len(kv) != 2 {
					return nil, &exc.Observed{TypeName: "ValueError", Text: "dictionary update sequence"}
				}
				out = append(out, [2]VariableTracker{kv[0], kv[1]})
			}
		}
	}
	for _, kw := range kwargs {
		out = append(out, [2]VariableTracker{StrConst(tx, kw.Name), kw.Value})
	}
	return out, nil
}

// CallMethod implements MethodCaller.
func (s *SetVariable) CallMethod(tx Translator, name string, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if s.frozen || len(kwargs) > 0 {
		return nil, unsupported(exc.CallUnsupported, "frozenset.%s", name)
	}
	switch name {
	case "add":
		if err := s.d.put(tx, arg(args, 0), arg(args, 0)); err != nil {
			return nil, err
		}
		return NoneConst(), methodEffect(tx, s, name, args)
	case "discard", "remove":
		_, ok, err := s.d.remove(tx, arg(args, 0))
		if err != nil {
			return nil, err
		}
		if !ok && name == "remove" {
			return nil, &exc.Observed{TypeName: "KeyError", Text: Describe(tx, arg(args, 0))}
		}
		return NoneConst(), methodEffect(tx, s, name, args)
	case "clear":
		s.d.clear()
		return NoneConst(), methodEffect(tx, s, name, nil)
	case "update":
		for _, a := range args {
			items, err := Unpack(tx, a)
			if err != nil {
				return nil, err
			}
			for _, it := range items {
				if err := s.d.put(tx, it, it); err != nil {
					return nil, err
				}
				if err := methodEffect(tx, s, "add", []VariableTracker{it}); err != nil {
					return nil, err
				}
			}
		}
		return NoneConst(), nil
	}
	return nil, unsupported(exc.CallUnsupported, "set.%s", name)
}

// SetItem implements ItemSetter.
func (l *ListVariable) SetItem(tx Translator, key, value VariableTracker) error {
	i, ok := ConstInt(tx, key)
	if !ok {
		return l.setSlice(tx, key, value)
	}
	if i < 0 {
		i += len(l.items)
	}
	if i < 0 || i >= len(l.items) {
		return &exc.Observed{TypeName: "IndexError", Text: "list assignment index out of range"}
	}
	items := append([]VariableTracker(nil), l.items...)
	if value == nil {
		l.items = append(items[:i], items[i+1:]...)
		return writeThrough(tx, l, nil, func(e Emitter, _ []VariableTracker) error {
			if err := e.Load(l); err != nil {
				return err
			}
			e.LoadInt(i)
			e.DeleteSubscr()
			return nil
		})
	}
	items[i] = value
	l.items = items
	return writeThrough(tx, l, []VariableTracker{value}, func(e Emitter, vs []VariableTracker) error {
		if err := loadAll(e, []VariableTracker{vs[0], l}); err != nil {
			return err
		}
		e.LoadInt(i)
		e.StoreSubscr()
		return nil
	})
}

// setSlice assigns to (value nil: deletes) a known slice: CPython applies it to the list of positions.
func (l *ListVariable) setSlice(tx Translator, key, value VariableTracker) error {
	k, ok := AsConstant(tx, key)
	if !ok || k.Kind() != py.Slice {
		return unsupported(exc.SubscriptUnsupported, "list index %s", Describe(tx, key))
	}
	s := tx.Scope()
	var more []VariableTracker
	if value != nil {
		var err error
		if more, err = Unpack(tx, value); err != nil {
			return err
		}
	}
	all := append(append([]VariableTracker(nil), l.items...), more...)
	pos := make([]py.Object, len(all))
	for i := range pos {
		pos[i] = s.Int(int64(i))
	}
	real := s.List(pos[:len(l.items)]...)
	method, args := "__delitem__", []py.Object{k}
	if value != nil {
		method, args = "__setitem__", []py.Object{k, s.List(pos[len(l.items):]...)}
	}
	if _, err := s.CallMethod(real, method, args...); err != nil {
		return observed(err)
	}
	var items []VariableTracker
	for _, o := range s.Items(real) {
		n, _ := py.AsInt(o)
		items = append(items, all[n])
	}
	l.items = items
	if value == nil {
		return methodEffect(tx, l, "__delitem__", []VariableTracker{NewConstant(k, nil)})
	}
	return methodEffect(tx, l, "__setitem__", []VariableTracker{NewConstant(k, nil), NewList(more, nil)})
}
