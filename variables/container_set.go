package variables

import (
	"slices"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// SetVariable is a set, or a frozenset whose items are not all constants. Each item has a stand-in (see keyring).
// CPython computes every method on a real set of the stand-ins, so results, iteration order and exceptions are its own.
type SetVariable struct {
	Base
	keyring
	real py.Object // the set of stand-ins
	// history lists the stand-ins in the order in which they were added.
	history []py.Object
	version int
	like    py.Object // a set with an identical hash table; see Settle
	frozen  bool
	// origin is the existing set that was wrapped, or zero for a set that the translated code made.
	origin  py.Object
	ordered bool // whether origin's iteration order is guarded; until the set changes, it is that of history
	// laidOut reports whether origin's hash table is guarded. The table determines the order after changes.
	laidOut bool
}

// NewSet returns a set of the items.
func NewSet(tx Translator, items []VariableTracker, frozen bool, src guards.Source) (*SetVariable, error) {
	s := &SetVariable{Base: Base{Src: src}, frozen: frozen}
	var err error
	if s.real, err = tx.Scope().Call(tx.World().SetType); err != nil {
		return nil, err
	}
	for _, it := range items {
		if err := s.add(tx, it); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// newSetObject returns the tracker of a set that existed before the frame ran. The tracker has a copy of the set with
// an identical hash table.
func newSetObject(tx Translator, obj py.Object, src guards.Source) (*SetVariable, error) {
	real, err := tx.Scope().Call(tx.World().setClone, obj)
	if err != nil {
		return nil, err
	}
	s := &SetVariable{Base: Base{Src: src}, real: real, origin: obj}
	s.history, err = listOf(tx, real)
	return s, err
}

func listOf(tx Translator, o py.Object) ([]py.Object, error) {
	l, err := tx.Scope().Call(tx.World().ListType, o)
	if err != nil {
		return nil, observed(err)
	}
	items := tx.Scope().Items(l)
	if len(items) > 1 && isSet(o) {
		tx.World().ordered(items)
	}
	return items, nil
}

// isSet reports whether o is a set or a frozenset, whose order depends on hashes.
func isSet(o py.Object) bool {
	switch o.Kind() {
	case py.SetKind, py.FrozenSet, py.Other:
		return true
	}
	return false
}

// Kind implements VariableTracker.
func (*SetVariable) Kind() string { return "SetVariable" }

// Children implements Container.
func (s *SetVariable) Children() []VariableTracker { return s.inHistory() }

// inHistory returns the members in the order in which they were added.
func (s *SetVariable) inHistory() []VariableTracker {
	out := make([]VariableTracker, len(s.history))
	for i, k := range s.history {
		out[i] = s.member(k)
	}
	return out
}

func (s *SetVariable) add(tx Translator, v VariableTracker) error {
	_, err := s.enter(tx, v)
	return err
}

// enter adds a member and returns its stand-in. If an equal member exists, it returns that member's stand-in.
func (s *SetVariable) enter(tx Translator, v VariableTracker) (py.Object, error) {
	k, err := s.keyObject(tx, v)
	if err != nil {
		return k, hashError(tx, v, true, err)
	}
	if _, err := tx.Scope().CallMethod(s.real, "add", k); err != nil {
		return k, observed(err)
	}
	if n, err := tx.Scope().Len(s.real); err != nil || n == len(s.history) {
		return k, err
	}
	s.version++
	s.history = append(s.history, k)
	return k, s.added(tx, k, v, func() []py.Object { return s.history })
}

func (s *SetVariable) contains(tx Translator, v VariableTracker) (bool, error) {
	k, err := s.soughtKey(tx, v)
	if err != nil {
		return false, err
	}
	if err := s.unlike(tx, k, func() []py.Object { return s.history }); err != nil {
		return false, err
	}
	in, err := tx.Scope().Contains(s.real, k)
	return in, observed(err)
}

// soughtKey returns the stand-in of a value that is looked up in the set. It refuses an unhashable set: CPython looks
// up a frozenset of that set's items instead.
func (s *SetVariable) soughtKey(tx Translator, v VariableTracker) (py.Object, error) {
	k, err := s.keyObject(tx, v)
	if _, raised := err.(*exc.Observed); raised {
		if t, typed := PythonType(tx, v); typed == nil && py.IsSubtype(t, tx.World().SetType) {
			return k, unsupported(exc.CallUnsupported, "membership of a set in a set")
		}
	}
	return k, hashError(tx, v, true, err)
}

// Items implements Sequence. It returns the items in CPython's iteration order. It breaks the graph if a set of several
// items has an item whose hash may depend on its address, because the order is then unknown. The order of a set that
// existed before the frame ran depends on that set's history, so it is guarded.
func (s *SetVariable) Items(tx Translator) ([]VariableTracker, error) {
	order, err := listOf(tx, s.real)
	if err != nil {
		return nil, err
	}
	if len(order) > 1 {
		if s.ordered && s.version == 0 && !s.mutated && len(s.members) > 0 {
			return s.inHistory(), nil
		}
		if len(s.members) > 0 {
			return nil, unsupported(exc.IterUnsupported, "order of a set")
		}
		if s.mutated || s.version > 0 {
			err = s.guardLayout(tx)
		} else {
			err = s.guardOrder(tx, order)
		}
		if err != nil {
			return nil, err
		}
	}
	out := make([]VariableTracker, len(order))
	for i, k := range order {
		out[i] = s.member(k)
	}
	return out, nil
}

// guardOrder guards the iteration order of a set that existed before the frame ran.
func (s *SetVariable) guardOrder(tx Translator, order []py.Object) error {
	if s.origin.IsNull() || s.ordered || s.laidOut {
		return nil
	}
	sc := tx.Scope()
	same, err := sc.Call(tx.World().sameOrder, sc.Tuple(order...))
	if err != nil {
		return err
	}
	tx.Output().AddGuards(guards.PyCheck(s.Src, tx.Output().Const(same), "in the order "+sc.Repr(sc.Tuple(order...))))
	s.ordered = true
	return nil
}

// guardLayout guards the hash table of a set that existed before the frame ran. The table determines the order of the
// set after changes and the order of its copies.
func (s *SetVariable) guardLayout(tx Translator) error {
	if s.origin.IsNull() || s.laidOut || len(s.history) == 0 {
		return nil
	}
	same, err := tx.Scope().Call(tx.World().layoutIs, s.origin)
	if err != nil {
		return err
	}
	tx.Output().AddGuards(guards.PyCheck(s.Src, tx.Output().Const(same), "laid out as "+tx.Scope().Repr(s.real)))
	s.laidOut = true
	return nil
}

// changes implements watched.
func (s *SetVariable) changes() (size, version int, what string) {
	return len(s.history), s.version, "Set"
}

// Len implements Lener.
func (s *SetVariable) Len(Translator) (int, error) { return len(s.history), nil }

// Truth implements Truther.
func (s *SetVariable) Truth(Translator) (bool, error) { return len(s.history) > 0, nil }

// PythonType implements Typed.
func (s *SetVariable) PythonType(tx Translator) (py.Object, error) {
	if s.frozen {
		return tx.World().FrozenSetType, nil
	}
	return tx.World().SetType, nil
}

// Snapshot implements Snapshotter.
func (s *SetVariable) Snapshot() VariableTracker {
	c := &SetVariable{keyring: s.keyring, like: s.like, history: append([]py.Object(nil), s.history...),
		frozen: s.frozen}
	return c
}

// Settle implements Settler. It decides how the transformed function rebuilds the set with the same hash table. If
// adding the items one by one would produce another table, the function copies a set that is one of its constants.
func (s *SetVariable) Settle(tx Translator) error {
	s.like = py.Object{}
	if err := s.settle(tx); err != nil || len(s.members) > 0 {
		return err
	}
	plain, err := s.rebuilt(tx, s.history)
	if err != nil {
		return err
	}
	same, err := tx.Scope().Call(tx.World().layoutIs, plain)
	if err != nil {
		return err
	}
	if tx.World().truth(tx.Scope(), same, s.real) {
		return nil
	}
	if s.frozen || s.holder != nil {
		return s.settleOrder(tx)
	}
	if s.like, err = tx.Scope().Call(tx.World().setClone, s.real); err != nil {
		return err
	}
	return nil
}

// rebuilt returns a new set to which the items have been added one by one.
func (s *SetVariable) rebuilt(tx Translator, items []py.Object) (py.Object, error) {
	set, err := tx.Scope().Call(tx.World().SetType)
	for _, k := range items {
		if err == nil {
			_, err = tx.Scope().CallMethod(set, "add", k)
		}
	}
	return set, observed(err)
}

// settleOrder finds an order in which the items can be added so that the new set has the right iteration order.
func (s *SetVariable) settleOrder(tx Translator) error {
	want, err := listOf(tx, s.real)
	if err != nil {
		return err
	}
	for _, try := range [][]py.Object{s.history, want} {
		again, err := s.rebuilt(tx, try)
		if err != nil {
			return err
		}
		if got, err := listOf(tx, again); err == nil && slices.Equal(got, want) {
			s.history = capped(try)
			return nil
		}
	}
	return unsupported(exc.Reconstruct, "set whose order depends on what was removed")
}

// Reconstruct implements Reconstructer.
func (s *SetVariable) Reconstruct(e Emitter) error {
	if !s.like.IsNull() {
		e.PushNull()
		e.LoadConst(setCloneFunction)
		e.LoadConst(s.like)
		e.Call(1, nil)
		return nil
	}
	if s.frozen {
		e.PushNull()
		e.LoadConst(frozenSetType)
	}
	if err := LoadAll(e, s.inHistory()); err != nil {
		return err
	}
	e.BuildSet(len(s.history))
	if s.frozen {
		e.Call(1, nil)
	}
	return nil
}

var setCloneFunction, frozenSetType py.Object // set when a World is made; never freed
