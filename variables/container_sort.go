package variables

import (
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// sort implements list.sort.
func (l *ListVariable) sort(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if len(args) > 0 {
		return nil, wrongCall(tx, l, "sort", args, kwargs)
	}
	sorted, err := sortValues(tx, l.items, kwargs)
	if err != nil {
		return nil, err
	}
	l.items = sorted
	all, err := tx.Scope().Call(tx.World().SliceType, py.None(), py.None())
	if err != nil {
		return nil, err
	}
	return NoneConst(), itemEffect(tx, l, NewConstant(all, nil), NewTuple(sorted, nil))
}

func sortValues(tx Translator, items []VariableTracker, kwargs []Kw) ([]VariableTracker, error) {
	keys := items
	reverse := false
	for _, kw := range kwargs {
		switch kw.Name {
		case "reverse":
			r, err := Truth(tx, kw.Value)
			if err != nil {
				return nil, asCallBreak(err, "sort")
			}
			reverse = r
		case "key":
			if c, ok := AsConstant(tx, MustRealize(tx, kw.Value)); ok && c == py.None() {
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
		default:
			return nil, unsupported(exc.CallUnsupported, "sort with %s", kw.Name)
		}
	}
	objs, ok := constants(tx, keys)
	if !ok {
		return sortByComparison(tx, items, keys, BoolConst(reverse))
	}
	s := tx.Scope()
	if err := tx.World().computable(tx, objs, "__lt__", "__gt__", "__eq__"); err != nil {
		return nil, err
	}
	getter, err := s.GetAttr(s.List(objs...), "__getitem__")
	if err != nil {
		return nil, err
	}
	order := s.List(positions(tx, 0, len(objs))...)
	res, err := s.CallKw(tx.World().Sorted, []py.Object{order, getter, py.Bool(reverse)}, []string{"key", "reverse"})
	if err != nil {
		return nil, observed(err)
	}
	return pick(items, s.Items(res)), nil
}

// sortByComparison sorts items whose keys are compared by Python code. It performs the same comparisons as CPython, in
// the same order.
func sortByComparison(tx Translator, items, keys []VariableTracker,
	reverse VariableTracker) ([]VariableTracker, error) {
	w := tx.World()
	outer := w.sorted
	w.sorted = sortedClass(tx, keys)
	r, err := callPolyfill(tx, "sorting.order", NewTuple(keys, nil), reverse)
	w.sorted = outer
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
			return nil, unsupported(exc.CallUnsupported, "sort by unknown values")
		}
		out[i] = items[n]
	}
	return out, nil
}

// sortedClass returns the class that all keys share (for tuples, that their first items share), or the zero Object if
// the classes differ. For keys of one class, list.sort calls __lt__ directly. If __lt__ returns NotImplemented,
// list.sort calls it once more: see unsafe_object_compare in Objects/listobject.c of CPython 3.11.
func sortedClass(tx Translator, keys []VariableTracker) py.Object {
	class := py.Object{}
	for _, k := range keys {
		k = MustRealize(tx, k)
		if t, ok := k.(*TupleVariable); ok && t.Exact() && len(t.items) > 0 {
			k = MustRealize(tx, t.items[0])
		}
		o, ok := k.(*ObjectVariable)
		if !ok || !class.IsNull() && o.Class != class {
			return py.Object{}
		}
		class = o.Class
	}
	return class
}
