package variables

import (
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// setMethods describes the methods of set. `takes` is 'i' for one item, '0' for no argument, '1' for one iterable, and
// 's' for any number of iterables. `changes` is true if the method changes the set. `result` is the kind of the
// method's result: "none", "set" or a plain "value".
var setMethods = map[string]struct {
	takes   byte
	changes bool
	result  string
}{
	"add": {'i', true, "none"}, "discard": {'i', true, "none"}, "remove": {'i', true, "none"},
	"clear": {'0', true, "none"}, "pop": {'0', true, "value"}, "copy": {'0', false, "set"},
	"update": {'s', true, "none"}, "intersection_update": {'s', true, "none"}, "difference_update": {'s', true, "none"},
	"symmetric_difference_update": {'1', true, "none"},
	"union":                       {'s', false, "set"}, "intersection": {'s', false, "set"},
	"difference":           {'s', false, "set"},
	"symmetric_difference": {'1', false, "set"},
	"issubset":             {'1', false, "value"}, "issuperset": {'1', false, "value"},
	"isdisjoint": {'1', false, "value"},
}

// CallMethod implements MethodCaller. CPython applies the method to the set of stand-ins.
func (s *SetVariable) CallMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	m, ok := setMethods[name]
	if !ok || (m.changes && s.frozen) {
		return callDunder(tx, s, name, args, kwargs)
	}
	one := m.takes == 'i' || m.takes == '1'
	if len(kwargs) > 0 || one && len(args) != 1 || m.takes == '0' && len(args) > 0 {
		return nil, wrongCall(tx, s, name, args, kwargs)
	}
	if m.takes == 'i' {
		return s.itemMethod(tx, name, args[0])
	}
	operands := make([]*SetVariable, len(args))
	objs := make([]py.Object, len(args))
	for i, a := range args {
		o, real, err := s.operand(tx, a)
		if err != nil {
			return nil, err
		}
		operands[i], objs[i] = o, real
	}
	if name == "pop" {
		return s.pop(tx)
	}
	target := s.real
	var err error
	if s.frozen { // methods of a frozenset return frozensets
		if target, err = tx.Scope().Call(tx.World().FrozenSetType, s.real); err != nil {
			return nil, err
		}
	}
	r, err := tx.Scope().CallMethod(target, name, objs...)
	if err != nil {
		return nil, observed(err)
	}
	switch {
	case m.changes:
		effectArgs := make([]VariableTracker, len(args))
		for i, o := range operands {
			effectArgs[i] = o.asArgument(args[i])
			if err := o.guardLayout(tx); err != nil {
				return nil, err
			}
		}
		if err := s.refresh(tx, s.real, operands); err != nil {
			return nil, err
		}
		return NoneConst(), methodEffect(tx, s, name, effectArgs)
	case m.result == "set":
		if s.frozen && r == target && s.Src == nil {
			return s, nil
		}
		return s.derived(tx, r, operands)
	}
	return NewConstant(r, nil), nil
}

// asArgument returns the argument that the effect passes to the real method. A set is passed as it is. Another iterable
// becomes a tuple of its items, in the order in which they were read.
func (s *SetVariable) asArgument(given VariableTracker) VariableTracker {
	if l, ok := given.(*LazyVariable); ok && l.real != nil {
		given = l.real
	}
	switch given.(type) {
	case *SetVariable, *ConstantVariable:
		return given
	}
	return NewTuple(s.inHistory(), nil)
}

// operand converts an iterable argument to a set. It also returns the real object for CPython's method: the set's
// stand-ins as a set, or the stand-ins of another iterable's items as a tuple.
func (s *SetVariable) operand(tx Translator, v VariableTracker) (*SetVariable, py.Object, error) {
	v, err := Realize(tx, v)
	if err == nil {
		v, err = setWithin(tx, v)
	}
	if err != nil {
		return nil, py.Object{}, err
	}
	switch x := v.(type) {
	case *SetVariable:
		if len(s.users) > 0 && len(x.users) > 0 && x != s {
			return nil, py.Object{}, unsupported(exc.CallUnsupported, "sets of objects with their own comparison")
		}
		return x, x.real, nil
	case *ConstantVariable:
		if x.Value.Kind() == py.FrozenSet {
			items, err := listOf(tx, x.Value)
			if err != nil {
				return nil, py.Object{}, err
			}
			set := &SetVariable{history: items, real: x.Value, frozen: true}
			return set, x.Value, nil
		}
	}
	items, err := Unpack(tx, v)
	if err != nil {
		return nil, py.Object{}, err
	}
	set, err := NewSet(tx, nil, false, nil)
	if err != nil {
		return nil, py.Object{}, err
	}
	set.keyring = s.keyring.clone()
	keys := make([]py.Object, len(items))
	for i, it := range items {
		if keys[i], err = set.enter(tx, it); err != nil {
			return nil, py.Object{}, err
		}
	}
	return set, tx.Scope().Tuple(keys...), nil
}

func (s *SetVariable) itemMethod(tx Translator, name string, item VariableTracker) (VariableTracker, error) {
	if name == "add" {
		if err := s.add(tx, item); err != nil {
			return nil, err
		}
		return NoneConst(), methodEffect(tx, s, name, []VariableTracker{item})
	}
	k, err := s.soughtKey(tx, item)
	if err != nil {
		return nil, err
	}
	if err := s.unlike(tx, k, func() []py.Object { return s.history }); err != nil {
		return nil, err
	}
	if in, ok := py.Answered(tx.Scope().Contains(s.real, k)); ok && !in && name == "remove" {
		return nil, keyError(tx, item)
	}
	if _, err := tx.Scope().CallMethod(s.real, name, k); err != nil {
		return nil, observed(err)
	}
	if err := s.refresh(tx, s.real, nil); err != nil {
		return nil, err
	}
	return NoneConst(), methodEffect(tx, s, name, []VariableTracker{item})
}

// pop removes the item that CPython would remove. For a set that existed before the frame ran, the item depends on the
// hash table, so the table is guarded.
func (s *SetVariable) pop(tx Translator) (VariableTracker, error) {
	if len(s.history) == 0 {
		return nil, RaiseText(tx, "KeyError", "pop from an empty set")
	}
	if _, err := s.Items(tx); err != nil {
		return nil, err
	}
	if err := s.guardLayout(tx); err != nil {
		return nil, err
	}
	k, err := tx.Scope().CallMethod(s.real, "pop")
	if err != nil {
		return nil, observed(err)
	}
	v := s.member(k)
	if err := s.refresh(tx, s.real, nil); err != nil {
		return nil, err
	}
	// At run time origin has the same table, so origin.pop() removes the same item, now and in later calls of pop.
	if !s.origin.IsNull() {
		return v, methodEffect(tx, s, "pop", nil)
	}
	return v, methodEffect(tx, s, "discard", []VariableTracker{v})
}

// refresh updates the history after CPython has changed the set of stand-ins. The trackers of new members come from the
// operands.
func (s *SetVariable) refresh(tx Translator, real py.Object, operands []*SetVariable) error {
	now, err := listOf(tx, real)
	if err != nil {
		return err
	}
	alive := map[py.Object]bool{}
	for _, k := range now {
		alive[k] = true
	}
	had := map[py.Object]bool{}
	var history []py.Object
	for _, k := range s.history {
		if alive[k] {
			history, had[k] = append(history, k), true
		} else {
			s.dropped(k)
		}
	}
	if len(history) != len(s.history) || len(now) != len(history) {
		s.version++
	}
	take := func(k py.Object, from *SetVariable) {
		if !alive[k] || had[k] {
			return
		}
		had[k] = true
		history = append(history, k)
		if v, ok := from.members[k]; ok {
			if s.members == nil {
				s.members = map[py.Object]VariableTracker{}
			}
			s.members[k] = v
			s.users = append(s.users, usersIn(tx, k)...)
		}
	}
	for _, o := range operands {
		for _, k := range o.history {
			take(k, o)
		}
	}
	for _, k := range now {
		take(k, s)
	}
	s.history = capped(history)
	return nil
}

// derived returns the tracker of a new set. real is the result that CPython computed from s and the operands.
func (s *SetVariable) derived(tx Translator, real py.Object, operands []*SetVariable) (VariableTracker, error) {
	d := &SetVariable{real: real, frozen: real.Kind() == py.FrozenSet}
	d.history = nil
	if err := d.refresh(tx, real, append([]*SetVariable{s}, operands...)); err != nil {
		return nil, err
	}
	// The result's order depends on the hash tables of those operands that existed before the frame ran.
	for _, o := range append([]*SetVariable{s}, operands...) {
		if len(d.history) > 1 && len(d.members) == 0 {
			if err := o.guardLayout(tx); err != nil {
				return nil, err
			}
		}
	}
	if d.frozen && len(d.members) == 0 {
		return NewConstant(real, nil), nil
	}
	if d.frozen {
		set, err := tx.Scope().Call(tx.World().SetType, real)
		if err != nil {
			return nil, err
		}
		d.real = set
	}
	return d, nil
}

// untrackedSet reports whether v is an instance of a subclass of set or frozenset whose members are unknown.
func untrackedSet(tx Translator, v VariableTracker) bool {
	o, ok := v.(*ObjectVariable)
	return ok && o.value == nil && (py.IsSubtype(o.Class, tx.World().SetType) ||
		py.IsSubtype(o.Class, tx.World().FrozenSetType))
}

// setWithin returns the set value of an instance of a subclass of set or frozenset, and v itself for other values. C
// code reads the hash table of such an instance and does not call its __iter__.
func setWithin(tx Translator, v VariableTracker) (VariableTracker, error) {
	o, ok := v.(*ObjectVariable)
	if !ok || !py.IsSubtype(o.Class, tx.World().SetType) && !py.IsSubtype(o.Class, tx.World().FrozenSetType) {
		return v, nil
	}
	if s, ok := o.value.(*SetVariable); ok {
		return s, nil
	}
	return nil, unsupported(exc.CallUnsupported, "the members of %s", Describe(tx, o))
}

// setOf converts a set, a dict view or a known frozenset to a SetVariable.
func setOf(tx Translator, v VariableTracker, frozen bool) (*SetVariable, error) {
	if s, ok := v.(*SetVariable); ok {
		return s, nil
	}
	empty, err := NewSet(tx, nil, frozen, nil)
	if err != nil {
		return nil, err
	}
	s, _, err := empty.operand(tx, v)
	return s, err
}

// setOperators maps operators and augmented assignments to the set methods that implement them.
var setOperators = map[opcode.BinaryOp]string{
	opcode.NB_OR: "union", opcode.NB_INPLACE_OR: "update",
	opcode.NB_AND: "intersection", opcode.NB_INPLACE_AND: "intersection_update",
	opcode.NB_SUBTRACT: "difference", opcode.NB_INPLACE_SUBTRACT: "difference_update",
	opcode.NB_XOR: "symmetric_difference", opcode.NB_INPLACE_XOR: "symmetric_difference_update",
}

// setLike reports whether set operators accept v: a set, a frozenset, or a keys or items view of a dict.
func setLike(v VariableTracker) bool {
	switch x := v.(type) {
	case *SetVariable:
		return true
	case *ConstantVariable:
		return x.Value.Kind() == py.FrozenSet
	case *DictViewVariable:
		return x.what != "values"
	}
	return false
}

// setOperator implements the operators | & - ^ of sets and dict views. It returns false for other operands. A dict view
// accepts any iterable as the other operand; the result is a set.
func setOperator(tx Translator, n opcode.BinaryOp, inplace bool, a, b VariableTracker) (VariableTracker, bool, error) {
	method, ok := setOperators[n]
	if !ok || !(setLike(a) || setLike(b)) {
		return nil, false, nil
	}
	_, va := a.(*DictViewVariable)
	_, vb := b.(*DictViewVariable)
	if !va && !vb && !(setLike(a) && setLike(b)) {
		return nil, false, nil
	}
	if s, ok := a.(*SetVariable); ok && inplace && !s.frozen && !vb {
		_, err := s.CallMethod(tx, setOperators[n.InplaceOp()], []VariableTracker{b}, nil)
		return s, true, err
	}
	if va || vb {
		r, err := viewOperator(tx, n, a, b)
		return r, true, err
	}
	left, err := setOf(tx, a, false)
	if err != nil {
		return nil, true, err
	}
	r, err := left.CallMethod(tx, method, []VariableTracker{b}, nil)
	return r, true, err
}

// viewOperator implements the operators of dict views, as dictviews_sub, dictviews_or, dictviews_xor and
// _PyDictView_Intersect of CPython 3.11 do (Objects/dictobject.c). It copies the left operand to a set and changes the
// copy in place. For an intersection of two views, it iterates over the smaller view.
func viewOperator(tx Translator, n opcode.BinaryOp, a, b VariableTracker) (VariableTracker, error) {
	if n != opcode.NB_AND {
		left, err := freshSet(tx, a)
		if err != nil {
			return nil, err
		}
		_, err = left.CallMethod(tx, setOperators[n.InplaceOp()], []VariableTracker{b}, nil)
		return left, err
	}
	if _, view := a.(*DictViewVariable); !view {
		a, b = b, a
	}
	self := a.(*DictViewVariable)
	if s, ok := b.(*SetVariable); ok && !s.frozen && len(self.dict.keys) <= len(s.history) {
		return s.CallMethod(tx, "intersection", []VariableTracker{a}, nil)
	}
	if other, ok := b.(*DictViewVariable); ok && len(other.dict.keys) > len(self.dict.keys) {
		self, b = other, self
	}
	items, err := Unpack(tx, b)
	if err != nil {
		return nil, err
	}
	out, err := NewSet(tx, nil, false, nil)
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		in, err := Contains(tx, self, it)
		if err == nil && in {
			err = out.add(tx, it)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// freshSet implements set(v). It copies the hash table of a set or dict, as CPython does, and adds the items of other
// iterables one by one.
func freshSet(tx Translator, v VariableTracker) (*SetVariable, error) {
	v, err := setWithin(tx, v)
	if err != nil {
		return nil, err
	}
	if view, ok := v.(*DictViewVariable); ok && view.what == "keys" {
		v = view.dict
	}
	switch x := v.(type) {
	case *DictVariable:
		if x.index.IsNull() {
			break
		}
		real, err := tx.Scope().Call(tx.World().SetType, x.index)
		if err != nil {
			return nil, err
		}
		return &SetVariable{keyring: x.keyring.clone(), real: real, history: append([]py.Object(nil), x.keyObjects...)},
			nil
	case *SetVariable:
		if err := x.guardLayout(tx); err != nil {
			return nil, err
		}
		real, err := tx.Scope().Call(tx.World().SetType, x.real)
		if err != nil {
			return nil, err
		}
		return &SetVariable{keyring: x.keyring.clone(), real: real, history: append([]py.Object(nil), x.history...)},
			nil
	case *ConstantVariable:
		if x.Value.Kind() == py.FrozenSet {
			s, _, err := (&SetVariable{}).operand(tx, x)
			if err != nil {
				return nil, err
			}
			return freshSet(tx, s)
		}
	}
	items, err := Unpack(tx, v)
	if err != nil {
		return nil, err
	}
	return NewSet(tx, items, false, nil)
}
