package variables

import (
	"strconv"

	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// array is a list or deque with tracked items. To rearrange the items, CPython's methods are applied to a real list or
// deque of their positions.
type array interface {
	VariableTracker
	row() *[]VariableTracker
	// scratch returns a real object of the array's type that holds the positions 0..n-1.
	scratch(tx Translator, n int) (py.Object, error)
	// changed records that items were added or removed.
	changed()
}

// rearranging describes a method that rearranges items. `args` has a letter for each argument: 'x' for an item, '*' for
// an iterable of items, 'k' for a known index, 'o' for an optional known index. `item` is true if the method returns an
// item.
type rearranging struct {
	args string
	item bool
}

var listRearranging = map[string]rearranging{
	"append": {"x", false}, "extend": {"*", false}, "insert": {"kx", false}, "pop": {"o", true}, "clear": {"", false},
	"reverse": {"", false},
}

var dequeRearranging = map[string]rearranging{
	"append": {"x", false}, "appendleft": {"x", false}, "extend": {"*", false}, "extendleft": {"*", false},
	"insert": {"kx", false},
	"pop":    {"", true}, "popleft": {"", true}, "clear": {"", false}, "reverse": {"", false}, "rotate": {"o", false},
}

// rearrange applies CPython's method to a list or deque of the items' positions, and reorders the tracked items in the
// same way.
func rearrange(tx Translator, a array, m rearranging, name string, args []VariableTracker) (VariableTracker, error) {
	s := tx.Scope()
	if len(args) > len(m.args) || (len(args) < len(m.args) && m.args != "o") {
		return nil, wrongCall(tx, a, name, args, nil)
	}
	row := a.row()
	if v, known := atAnEnd(tx, a, name, args); known {
		a.changed()
		if m.item {
			if err := lettingGo(tx, v); err != nil {
				return nil, err
			}
		}
		return v, methodEffect(tx, a, name, args)
	}
	all := append([]VariableTracker(nil), *row...)
	given := append([]VariableTracker(nil), args...)
	objs := make([]py.Object, len(args))
	for i, v := range args {
		switch m.args[i] {
		case 'x':
			objs[i] = s.Int(int64(len(all)))
			all = append(all, v)
		case '*':
			unpack := Unpack
			o, list := a.(*ListVariable)
			if list {
				unpack = UnpackSized
			}
			more, err := unpack(tx, v)
			if err != nil {
				return nil, err
			}
			if list && name == "extend" { // extend is often called in loops, so it uses no real list
				o.items = append(o.items, more...)
				return NoneConst(), methodEffect(tx, a, name, []VariableTracker{NewTuple(more, nil)})
			}
			objs[i] = s.Tuple(positions(tx, len(all), len(more))...)
			all = append(all, more...)
			given[i] = NewTuple(more, nil)
		default:
			k, err := indexOf(tx, v)
			if err != nil {
				return nil, err
			}
			objs[i], given[i] = k, NewConstant(k, nil)
		}
	}
	real, err := a.scratch(tx, len(*row))
	if err != nil {
		return nil, err
	}
	r, err := s.CallMethod(real, name, objs...)
	if err != nil {
		return nil, observed(err)
	}
	order, err := listOf(tx, real)
	if err == nil {
		err = letGoAll(tx, all, order)
	}
	if err != nil {
		return nil, err
	}
	*row = pick(all, order)
	a.changed()
	if err := methodEffect(tx, a, name, given); err != nil || !m.item {
		return NoneConst(), err
	}
	n, _ := py.AsInt(r)
	return all[n], nil
}

// atAnEnd implements methods that add or remove one item. It uses no real list, which would take linear time for each
// call in a loop. It returns false for other calls.
func atAnEnd(tx Translator, a array, name string, args []VariableTracker) (VariableTracker, bool) {
	row := a.row()
	n := len(*row)
	_, list := a.(*ListVariable)
	if d, ok := a.(*DequeVariable); ok && d.maxlen != py.None() && (name == "append" || name == "appendleft") {
		return nil, false
	}
	switch {
	case name == "append" && len(args) == 1:
		*row = append(*row, args[0])
		return NoneConst(), true
	case name == "appendleft" && len(args) == 1:
		*row = append([]VariableTracker{args[0]}, *row...)
		return NoneConst(), true
	case name == "pop" && len(args) == 0 && n > 0:
		v := (*row)[n-1]
		// Another Go slice may share the array. This slice gets no spare capacity, so the next append copies the array
		// instead of overwriting the other slice's item.
		*row = (*row)[: n-1 : n-1]
		return v, true
	case name == "pop" && len(args) == 1 && list: // queues often call pop(0)
		k, ok := smallInt(tx, args[0])
		if k < 0 {
			k += n
		}
		if !ok || k < 0 || k >= n {
			return nil, false
		}
		v := (*row)[k]
		if k == 0 {
			*row = (*row)[1:]
		} else {
			*row = append((*row)[:k:k], (*row)[k+1:]...)
		}
		return v, true
	case name == "insert" && len(args) == 2 && list:
		k, ok := smallInt(tx, args[0])
		if k < 0 {
			k = max(k+n, 0)
		}
		if !ok {
			return nil, false
		}
		k = min(k, n)
		*row = append(append((*row)[:k:k], args[1]), (*row)[k:]...)
		return NoneConst(), true
	case name == "popleft" && len(args) == 0 && n > 0:
		v := (*row)[0]
		*row = (*row)[1:]
		return v, true
	}
	return nil, false
}

// smallInt returns the value of a known exact int.
func smallInt(tx Translator, v VariableTracker) (int, bool) {
	c, ok := AsConstant(tx, v)
	if !ok || c.Kind() != py.Int {
		return 0, false
	}
	n, ok := py.AsInt(c)
	return int(n), ok
}

// positions returns n consecutive ints, starting with first.
func positions(tx Translator, first, n int) []py.Object {
	out := make([]py.Object, n)
	for i := range out {
		out[i] = tx.Scope().Int(int64(first + i))
	}
	return out
}

// pick returns the items at positions that CPython has computed.
func pick(all []VariableTracker, at []py.Object) []VariableTracker {
	out := make([]VariableTracker, len(at))
	for i, o := range at {
		n, _ := py.AsInt(o)
		out[i] = all[n]
	}
	return out
}

// letGoAll calls lettingGo for each item whose position is not in at.
func letGoAll(tx Translator, all []VariableTracker, at []py.Object) error {
	kept := make(map[int64]bool, len(at))
	for _, o := range at {
		n, _ := py.AsInt(o)
		kept[n] = true
	}
	for i, v := range all {
		if !kept[int64(i)] {
			if err := lettingGo(tx, v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *ListVariable) row() *[]VariableTracker { return &l.items }
func (l *ListVariable) changed()                {}
func (l *ListVariable) scratch(tx Translator, n int) (py.Object, error) {
	return tx.Scope().List(positions(tx, 0, n)...), nil
}

// CallMethod implements MethodCaller.
func (l *ListVariable) CallMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if name == "sort" {
		return l.sort(tx, args, kwargs)
	}
	if len(kwargs) > 0 {
		return nil, wrongCall(tx, l, name, args, kwargs)
	}
	if m, ok := listRearranging[name]; ok {
		return rearrange(tx, l, m, name, args)
	}
	switch name {
	case "copy":
		if len(args) == 0 {
			return NewList(append([]VariableTracker(nil), l.items...), nil), nil
		}
	case "remove":
		return removeItem(tx, l, args)
	case "index", "count":
		return sequenceSearch(tx, l, l.items, name, args)
	}
	return callDunder(tx, l, name, args, kwargs)
}

// removeItem implements remove(x) of a list or deque.
func removeItem(tx Translator, a array, args []VariableTracker) (VariableTracker, error) {
	if len(args) != 1 {
		return nil, wrongCall(tx, a, "remove", args, nil)
	}
	row := a.row()
	for i, it := range *row {
		same, err := Equal(tx, it, args[0])
		if err != nil {
			return nil, err
		}
		if same {
			if err := lettingGo(tx, it); err != nil {
				return nil, err
			}
			*row = without(*row, i)
			a.changed()
			return NoneConst(), itemEffect(tx, a, IntConst(tx, i), nil)
		}
	}
	if _, ok := a.(*DequeVariable); ok {
		return nil, absent(tx, "deque", "remove", args[0])
	}
	return nil, absent(tx, "list", "remove", args[0])
}

// sequenceSearch implements index(x[, start[, stop]]) and count(x).
func sequenceSearch(tx Translator, v VariableTracker, items []VariableTracker, name string,
	args []VariableTracker) (VariableTracker, error) {
	start, stop := 0, len(items)
	if len(args) < 1 || len(args) > 3 || (name == "count" && len(args) > 1) {
		return nil, wrongCall(tx, v, name, args, nil)
	}
	for i, at := range []*int{&start, &stop} {
		if len(args) > i+1 {
			k, err := indexOf(tx, args[i+1])
			if err != nil {
				return nil, err
			}
			n, ok := py.AsInt(k)
			if !ok {
				return nil, wrongCall(tx, v, name, args, nil)
			}
			*at = clamp(int(n), len(items))
		}
	}
	count := 0
	for i, it := range items {
		if i < start || i >= stop {
			continue
		}
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
	if name == "count" {
		return IntConst(tx, count), nil
	}
	if _, ok := v.(*TupleVariable); ok {
		return nil, &exc.Observed{TypeName: "ValueError", Text: "tuple.index(x): x not in tuple"}
	}
	kind := "list"
	if _, ok := v.(*DequeVariable); ok {
		kind = "deque"
	}
	return nil, absent(tx, kind, "index", args[0])
}

// absent returns the ValueError of a method of a list or deque that does not find x. Up to 3.13 the text of some
// methods has the repr of x, which may run code of the user.
func absent(tx Translator, kind, method string, x VariableTracker) error {
	s := tx.Scope()
	told, err := s.Call(tx.World().absentText, s.Name(kind), s.Name(method))
	if err != nil {
		return err
	}
	text := py.GoString(told)
	if text == "" {
		if text, err = reprText(tx, x); err != nil {
			return err
		}
		text += " is not in " + kind
	}
	return RaiseText(tx, "ValueError", text)
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

func itoa(i int) string { return strconv.Itoa(i) }

// wrongCall returns the graph break for a call that the method rejects or that the translator does not support. CPython
// runs the call.
func wrongCall(tx Translator, v VariableTracker, name string, args []VariableTracker, kwargs []Kw) error {
	return unsupported(exc.CallUnsupported, "%s of %s with %d arguments", name, Describe(tx, v), len(args)+len(kwargs))
}

// indexOf returns operator.index(v), or v itself if v is a slice. The result is a known object.
func indexOf(tx Translator, v VariableTracker) (py.Object, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return py.Object{}, err
	}
	if s, ok := v.(*SliceVariable); ok {
		if v, err = s.indexed(tx); err != nil {
			return py.Object{}, err
		}
	}
	if err := indexComputable(tx, v); err != nil {
		return py.Object{}, err
	}
	if o, ok := v.(*ObjectVariable); ok {
		if c, ok := AsConstant(tx, valueOf(o)); ok && c.Kind() == py.Int {
			return c, nil // an int is its own index
		}
		if _, has := tx.Scope().TypeLookup(o.Class, "__index__"); !has && o.value != nil {
			return py.Object{}, unsupported(exc.SubscriptUnsupported, "index %s", Describe(tx, v))
		}
		r, err := o.number(tx, "__index__", "Int")
		if err != nil {
			return py.Object{}, err
		}
		if c, known := AsConstant(tx, r); r != nil && known && c.Kind() == py.Int {
			if _, small := py.AsInt(c); !small { // CPython's error names v's class
				return py.Object{}, unsupported(exc.TooLarge, "__index__ of %s", Describe(tx, o))
			}
		}
		if r != nil {
			v = r
		}
	}
	if k, ok := AsConstant(tx, v); ok {
		return k, nil
	}
	return py.Object{}, unsupported(exc.SubscriptUnsupported, "index %s", Describe(tx, v))
}

// SetItem implements ItemSetter.
func (l *ListVariable) SetItem(tx Translator, key, value VariableTracker) error {
	k, err := indexOf(tx, key)
	if err != nil {
		return err
	}
	if k.Kind() == py.Slice {
		return l.setSlice(tx, k, value)
	}
	if i, ok := py.AsInt(k); ok && value != nil && (k.Kind() == py.Int || k.Kind() == py.BoolKind) {
		if i < 0 {
			i += int64(len(l.items))
		}
		if i >= 0 && i < int64(len(l.items)) {
			if err := lettingGo(tx, l.items[i]); err != nil {
				return err
			}
			items := append([]VariableTracker(nil), l.items...)
			items[i] = value
			l.items = items
			return itemEffect(tx, l, IntConst(tx, int(i)), value)
		}
	}
	return setArrayItem(tx, l, k, value)
}

func setArrayItem(tx Translator, a array, k py.Object, value VariableTracker) error {
	row := a.row()
	if i, ok := py.AsInt(k); ok && value == nil && k.Kind() == py.Int {
		n := int64(len(*row))
		if i < 0 {
			i += n
		}
		if i >= 0 && i < n {
			if err := lettingGo(tx, (*row)[i]); err != nil {
				return err
			}
			*row = append((*row)[:i:i], (*row)[i+1:]...)
			a.changed()
			return itemEffect(tx, a, NewConstant(k, nil), nil)
		}
	}
	real, err := a.scratch(tx, len(*row))
	if err != nil {
		return err
	}
	all := *row
	operator, objs := "delitem", []py.Object{real, k}
	if value != nil {
		all = append(all[:len(all):len(all)], value)
		operator, objs = "setitem", append(objs, tx.Scope().Int(int64(len(all)-1)))
	}
	if _, err := tx.Scope().Call(tx.World().Operator(operator), objs...); err != nil {
		return observed(err)
	}
	order, err := listOf(tx, real)
	if err != nil {
		return err
	}
	if err := letGoAll(tx, all, order); err != nil {
		return err
	}
	*row = pick(all, order)
	if value == nil {
		a.changed()
	}
	return itemEffect(tx, a, NewConstant(k, nil), value)
}

// setSlice assigns value to a known slice, or deletes the slice if value is nil.
func (l *ListVariable) setSlice(tx Translator, k py.Object, value VariableTracker) error {
	s := tx.Scope()
	var more []VariableTracker
	if value != nil {
		var err error
		if more, err = UnpackIterator(tx, value); err != nil {
			if o, ok := err.(*exc.Observed); ok && o.TypeName == "TypeError" {
				o.Value, o.Real = nil, nil
				o.Text = "can only assign an iterable"
			}
			return err
		}
	}
	all := append(append([]VariableTracker(nil), l.items...), more...)
	pos := positions(tx, 0, len(all))
	real := s.List(pos[:len(l.items)]...)
	method, args := "__delitem__", []py.Object{k}
	if value != nil {
		method, args = "__setitem__", []py.Object{k, s.List(pos[len(l.items):]...)}
	}
	if _, err := s.CallMethod(real, method, args...); err != nil {
		return observed(err)
	}
	if err := letGoAll(tx, all, s.Items(real)); err != nil {
		return err
	}
	l.items = pick(all, s.Items(real))
	key := NewConstant(k, nil)
	if value == nil {
		return itemEffect(tx, l, key, nil)
	}
	return itemEffect(tx, l, key, NewList(more, nil))
}

// CallMethod implements MethodCaller.
func (t *TupleVariable) CallMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if (name == "index" || name == "count") && len(kwargs) == 0 {
		return sequenceSearch(tx, t, t.items, name, args)
	}
	if name == "numel" && t.class == tx.World().SizeType && len(args)+len(kwargs) == 0 {
		if n, ok := numelOf(tx, t.items); ok {
			return n, nil
		}
	}
	if !t.class.IsNull() && t.class != tx.World().SizeType {
		fn, err := t.GetAttr(tx, name)
		if err != nil {
			return nil, err
		}
		if b, ok := fn.(*BoundBuiltin); !ok || b.obj != VariableTracker(t) {
			return Call(tx, fn, args, kwargs)
		}
	}
	if _, ok := AsConstant(tx, t); ok {
		if _, ok := constants(tx, args); ok && len(kwargs) == 0 {
			return callConstantMethod(tx, t, name, args, kwargs)
		}
	}
	return callDunder(tx, t, name, args, kwargs)
}
