package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Some programs append to a list or deque that existed before the frame ran, and do not read it: a log, for example,
// which grows with each call. Its length must not cause recompiles, so only its type is guarded. Such an object is
// called unseen. The items that the program adds are recorded. If the program reads the object later, its tracker has
// the contents at the frame's start, followed by the recorded items.

// unseen records the items that the program adds to an unseen object.
type unseen struct {
	sources []guards.Source // the places from which the object was read
	added   []VariableTracker
}

// unseenMethods are the methods that only add items at the end.
var unseenMethods = map[string]bool{"append": true, "extend": true}

// isUnseen returns v if it is an unseen list or deque, and whether it is one.
func isUnseen(tx Translator, v VariableTracker) (*LazyVariable, bool) {
	l, ok := v.(*LazyVariable)
	if !ok || l.real != nil || l.Src == nil || tx.World().PythonOps {
		return nil, false
	}
	if l.obj.Kind() != py.List && l.obj.Type() != tx.World().DequeType {
		return nil, false
	}
	if _, ours := OurOwn(l); ours {
		return nil, false
	}
	_, looked := tx.World().objects[l.obj]
	return l, !looked
}

// unseenMethod returns one of unseenMethods, bound to an unseen object. It returns false for other methods and objects.
func unseenMethod(tx Translator, v VariableTracker, name string) (VariableTracker, bool) {
	if !unseenMethods[name] {
		return nil, false
	}
	l, ok := isUnseen(tx, v)
	if !ok {
		return nil, false
	}
	return &BoundBuiltin{obj: l, name: name}, true
}

// addUnseen calls one of unseenMethods. It returns false if the object has been read or must be read for this call.
func addUnseen(tx Translator, v VariableTracker, name string, args []VariableTracker, kwargs []Kw) (bool, error) {
	if !unseenMethods[name] || len(args) != 1 || len(kwargs) > 0 {
		return false, nil
	}
	l, ok := isUnseen(tx, v)
	if !ok {
		return false, nil
	}
	added, given := args, args
	if name == "extend" {
		if other, lazy := args[0].(*LazyVariable); lazy && other.obj == l.obj {
			return false, nil
		}
		unpack := Unpack
		if l.obj.Kind() == py.List {
			unpack = UnpackSized
		}
		items, err := unpack(tx, args[0])
		if err != nil {
			return false, err
		}
		if _, ok := isUnseen(tx, v); !ok { // iterating over the argument has read the object
			return false, nil
		}
		added, given = items, []VariableTracker{NewTuple(items, nil)}
	}
	w := tx.World()
	if ok, err := w.makesRoom(tx, l, len(added)); !ok || err != nil {
		return false, err
	}
	u := w.unseen[l.obj]
	if u == nil {
		u = &unseen{}
		w.unseen[l.obj] = u
	}
	u.reachedAt(tx, l)
	u.added = append(u.added, added...)
	return true, methodEffect(tx, l, name, given)
}

// makesRoom reports whether n items can be added while the object stays unseen. A list, or a deque without a maxlen,
// always has room. A full deque drops an item for each new one. That item must be one that the deque had at the frame's
// start, and its deallocation must run no code.
func (w *World) makesRoom(tx Translator, l *LazyVariable, n int) (bool, error) {
	if l.obj.Kind() == py.List {
		return true, nil
	}
	most, err := tx.Scope().GetAttr(l.obj, "maxlen")
	if err != nil || most.Kind() == py.NoneKind {
		return err == nil, err
	}
	items, err := listOf(tx, l.obj)
	if err != nil {
		return false, err
	}
	first := 0
	if u := w.unseen[l.obj]; u != nil {
		first = len(u.added)
	}
	if limit, ok := py.AsInt(most); !ok || int64(first+n) > limit {
		return false, nil
	}
	for i := first; i < first+n; i++ {
		tx.Output().AddGuards(guards.QuietIndex(l.Src, i))
		if i < len(items) {
			if err := w.Replaceable(tx.Scope(), items[i]); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

func (u *unseen) reachedAt(tx Translator, l *LazyVariable) {
	for _, s := range u.sources {
		if s.Name() == l.Src.Name() {
			return
		}
	}
	u.sources = append(u.sources, l.Src)
	tx.Output().AddGuards(guards.TypeMatch(l.Src, tx.Output().Const(l.obj.Type())))
}

// lookAt is called when the object is read. v is the tracker of its contents at the frame's start. lookAt appends the
// recorded items to v.
func (u *unseen) lookAt(tx Translator, v VariableTracker, src guards.Source) error {
	switch x := v.(type) {
	case *ListVariable:
		x.items = append(x.items, u.added...)
	case *DequeVariable:
		x.items = append(x.items, u.added...)
		if most, ok := py.AsInt(x.maxlen); ok && len(x.items) > int(most) { // the deque has dropped its first items
			x.items = x.items[len(x.items)-int(most):]
		}
	default:
		return unsupported(exc.UntrackedObject, "%s that was added to unseen", v.Kind())
	}
	v.base().mutated = true
	for _, s := range u.sources {
		if s.Name() != src.Name() {
			tx.Output().AddGuards(guards.DuplicateInput(src, s))
		}
	}
	return nil
}

// Unseen calls f for each place from which an unseen object was read.
func (w *World) Unseen(f func(obj py.Object, src guards.Source)) {
	for obj, u := range w.unseen {
		for _, s := range u.sources {
			f(obj, s)
		}
	}
}

// concatUnseen implements += if the left operand is an unseen object and the right operand is a list or tuple. It
// returns false for other types of the right operand, which may define the operator.
func concatUnseen(tx Translator, a, b VariableTracker) (bool, error) {
	if _, ok := isUnseen(tx, a); !ok {
		return false, nil
	}
	v, err := Realize(tx, b)
	if err != nil {
		return false, err
	}
	switch x := v.(type) {
	case *ListVariable:
		if Holder(x) == nil {
			return addUnseen(tx, a, "extend", []VariableTracker{b}, nil)
		}
	case *TupleVariable:
		if x.class.IsNull() {
			return addUnseen(tx, a, "extend", []VariableTracker{b}, nil)
		}
	}
	return false, nil
}

// addsUnseen implements list.append(items, x) for an unseen object. Code after a graph break calls append in this form.
func (u *UnboundMethod) addsUnseen(tx Translator, args []VariableTracker, kwargs []Kw) (bool, error) {
	if len(args) != 2 {
		return false, nil
	}
	l, ok := isUnseen(tx, args[0])
	if !ok {
		return false, nil
	}
	for name := range unseenMethods {
		if d, _ := tx.Scope().TypeLookup(l.obj.Type(), name); d == u.descr {
			return addUnseen(tx, l, name, args[1:], kwargs)
		}
	}
	return false, nil
}
