package variables

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// ListVariable is an exact list whose items are tracked.
type ListVariable struct {
	Base
	items []VariableTracker
}

// NewList returns a list. src is nil if the translated code made the list.
func NewList(items []VariableTracker, src guards.Source) *ListVariable {
	return &ListVariable{Base: Base{Src: src}, items: capped(items)}
}

// Kind implements VariableTracker.
func (*ListVariable) Kind() string { return "ListVariable" }

// Children implements Container.
func (l *ListVariable) Children() []VariableTracker { return l.items }

// Items implements Sequence.
func (l *ListVariable) Items(Translator) ([]VariableTracker, error) { return capped(l.items), nil }

// capped returns items without spare capacity, so that the next append to the result copies the items. A container may
// append to its own slice in place, so slices that enter or leave it are capped.
func capped[T any](items []T) []T { return items[:len(items):len(items)] }

// Len implements Lener.
func (l *ListVariable) Len(Translator) (int, error) { return len(l.items), nil }

// Truth implements Truther.
func (l *ListVariable) Truth(Translator) (bool, error) { return len(l.items) > 0, nil }

// PythonType implements Typed.
func (l *ListVariable) PythonType(tx Translator) (py.Object, error) { return tx.World().ListType, nil }

// AsProxy implements Proxy.
func (l *ListVariable) AsProxy(tx Translator) (fxgraph.Arg, error) {
	items, err := proxies(tx, l.items)
	return fxgraph.List{Items: items}, err
}

// Snapshot implements Snapshotter.
func (l *ListVariable) Snapshot() VariableTracker {
	return NewList(append([]VariableTracker(nil), l.items...), nil)
}

// Reconstruct implements Reconstructer.
func (l *ListVariable) Reconstruct(e Emitter) error {
	if err := LoadAll(e, l.items); err != nil {
		return err
	}
	e.BuildList(len(l.items))
	return nil
}

// TupleVariable is a tuple whose items are tracked. It is an exact tuple, or an instance of a tuple subclass
// (torch.Size, a namedtuple) if class is set.
type TupleVariable struct {
	Base
	items []VariableTracker
	class py.Object // zero for an exact tuple
	// obj is the existing object that was wrapped, if instances of its class have a dict.
	obj py.Object
	// real is the real object of a tuple that is a constant or an attribute. For a tuple that has a source or that the
	// translated code made, it is zero.
	real py.Object
}

// NewTuple returns an exact tuple.
func NewTuple(items []VariableTracker, src guards.Source) *TupleVariable {
	return &TupleVariable{Base: Base{Src: src}, items: items}
}

// NewKnownTuple returns the tracker of o, an exact tuple, with the trackers of its items.
func NewKnownTuple(items []VariableTracker, o py.Object) *TupleVariable {
	return &TupleVariable{items: items, real: o}
}

// Real returns the tuple's real object, or the zero Object if there is none.
func (t *TupleVariable) Real() py.Object { return t.real }

// NewTupleOf returns a tuple of a subclass.
func NewTupleOf(items []VariableTracker, class py.Object, src guards.Source) *TupleVariable {
	return &TupleVariable{Base: Base{Src: src}, items: items, class: class}
}

// Exact reports whether t is an exact tuple. For an exact tuple, tuple(t) and t[:] return t itself instead of a copy.
func (t *TupleVariable) Exact() bool { return t.class.IsNull() && t.holder == nil }

// Subclass returns the tuple's class if it is a subclass of tuple, or the zero Object for an exact tuple.
func (t *TupleVariable) Subclass() py.Object { return t.class }

// Kind implements VariableTracker.
func (t *TupleVariable) Kind() string {
	if !t.class.IsNull() {
		return "NamedTupleVariable"
	}
	return "TupleVariable"
}

// Children implements Container.
func (t *TupleVariable) Children() []VariableTracker { return t.items }

// Items implements Sequence.
func (t *TupleVariable) Items(Translator) ([]VariableTracker, error) { return t.items, nil }

// Len implements Lener.
func (t *TupleVariable) Len(Translator) (int, error) { return len(t.items), nil }

// Truth implements Truther.
func (t *TupleVariable) Truth(Translator) (bool, error) { return len(t.items) > 0, nil }

// PythonType implements Typed.
func (t *TupleVariable) PythonType(tx Translator) (py.Object, error) {
	if !t.class.IsNull() {
		return t.class, nil
	}
	return tx.World().TupleType, nil
}

// AsConstant implements Constant.
func (t *TupleVariable) AsConstant(tx Translator) (py.Object, bool) {
	items, ok := constants(tx, t.items)
	if !ok {
		return py.Object{}, false
	}
	o := tx.Scope().Tuple(items...)
	if t.class.IsNull() {
		return o, true
	}
	if t.class != tx.World().SizeType {
		return py.Object{}, false
	}
	return py.Answered(tx.Scope().Call(t.class, o))
}

// AsProxy implements Proxy.
func (t *TupleVariable) AsProxy(tx Translator) (fxgraph.Arg, error) {
	if !t.class.IsNull() && t.class != tx.World().SizeType {
		return nil, unsupported(exc.CallUnsupported, "a %s as an operand", py.TypeName(t.class))
	}
	items, err := proxies(tx, t.items)
	return fxgraph.Tuple{Items: items, Size: !t.class.IsNull()}, err
}

// Reconstruct implements Reconstructer.
func (t *TupleVariable) Reconstruct(e Emitter) error {
	if t.class.IsNull() {
		if err := LoadAll(e, t.items); err != nil {
			return err
		}
		e.BuildTuple(len(t.items))
		return nil
	}
	// A namedtuple is made by tuple.__new__(class, items). The class's own __new__ does the same, but cannot be called:
	// it may be the frame being translated. tuple.__new__ refuses torch.Size, whose own __new__ is written in C.
	maker := tupleType
	if isSize(t.class) {
		maker = t.class
	}
	e.PushNull()
	e.LoadConst(maker)
	e.LoadAttr("__new__")
	e.LoadConst(t.class)
	if err := LoadAll(e, t.items); err != nil {
		return err
	}
	e.BuildTuple(len(t.items))
	e.Call(2, nil)
	return nil
}

var tupleType py.Object // set when a World is made; never freed

func isSize(class py.Object) bool { return py.TypeName(class) == "torch.Size" }

// LoadAll emits instructions that leave the values on the stack, in order.
func LoadAll(e Emitter, vs []VariableTracker) error {
	for _, v := range vs {
		if err := e.Load(v); err != nil {
			return err
		}
	}
	return nil
}

// EmitCall emits the call of an object with positional arguments. It leaves the result on the stack.
func EmitCall(e Emitter, fn py.Object, args []VariableTracker) error {
	e.PushNull()
	e.LoadConst(fn)
	if err := LoadAll(e, args); err != nil {
		return err
	}
	e.Call(len(args), nil)
	return nil
}

// namedByTorch refuses an operand that contains both tensors and enum members. The graph has only an enum member's
// value, so an error of torch would not name the member's class as it does in eager mode.
func namedByTorch(tx Translator, vs []VariableTracker) error {
	tensors, member := false, VariableTracker(nil)
	for _, v := range vs {
		v, err := Argument(tx, v)
		if err != nil {
			return err
		}
		tensors = tensors || IsTensor(v)
		if _, ok := enumMember(tx, v); ok {
			member = v
		}
	}
	if tensors && member != nil {
		return unsupported(exc.CallUnsupported, "%s among tensors", Describe(tx, member))
	}
	return nil
}

func proxies(tx Translator, vs []VariableTracker) ([]fxgraph.Arg, error) {
	if err := namedByTorch(tx, vs); err != nil {
		return nil, err
	}
	out := make([]fxgraph.Arg, len(vs))
	for i, v := range vs {
		a, err := AsProxy(tx, v)
		if err != nil {
			return nil, err
		}
		out[i] = a
	}
	return out, nil
}

// SliceVariable is a slice whose parts are tracked.
type SliceVariable struct {
	Base
	parts [3]VariableTracker // start, stop, step
}

// NewSlice returns slice(start, stop, step).
func NewSlice(start, stop, step VariableTracker) *SliceVariable {
	return &SliceVariable{parts: [3]VariableTracker{start, stop, step}}
}

// NewSliceObject returns the tracker of an existing slice whose parts are known.
func NewSliceObject(tx Translator, o py.Object) (VariableTracker, error) {
	var parts [3]VariableTracker
	for i, name := range []string{"start", "stop", "step"} {
		p, err := tx.Scope().GetAttr(o, name)
		if err != nil {
			return nil, err
		}
		if !isImmutable(tx, p) {
			return nil, unsupported(exc.UntrackedObject, "slice of %s", py.TypeName(p.Type()))
		}
		parts[i] = NewConstant(p, nil)
	}
	return NewSlice(parts[0], parts[1], parts[2]), nil
}

// Parts returns start, stop and step.
func (s *SliceVariable) Parts() []VariableTracker { return s.parts[:] }

// Kind implements VariableTracker.
func (*SliceVariable) Kind() string { return "SliceVariable" }

// Children implements Container.
func (s *SliceVariable) Children() []VariableTracker { return s.parts[:] }

// AsConstant implements Constant.
func (s *SliceVariable) AsConstant(tx Translator) (py.Object, bool) {
	parts, ok := constants(tx, s.parts[:])
	if !ok || tx.World().computable(tx, parts, "__index__") != nil {
		return py.Object{}, false
	}
	return py.Answered(tx.Scope().Call(tx.World().SliceType, parts...))
}

// PythonType implements Typed.
func (s *SliceVariable) PythonType(tx Translator) (py.Object, error) {
	return tx.World().SliceType, nil
}

// AsProxy implements Proxy.
func (s *SliceVariable) AsProxy(tx Translator) (fxgraph.Arg, error) {
	p, err := proxies(tx, s.parts[:])
	if err != nil {
		return nil, err
	}
	return fxgraph.Slice{Start: p[0], Stop: p[1], Step: p[2]}, nil
}

// Reconstruct implements Reconstructer.
func (s *SliceVariable) Reconstruct(e Emitter) error {
	if err := LoadAll(e, s.parts[:]); err != nil {
		return err
	}
	e.BuildSlice(3)
	return nil
}

// RangeVariable is a fully known range.
type RangeVariable struct {
	ConstantVariable
	items []VariableTracker
}

// NewRangeObject returns the tracker of a range object. For a range that existed before the frame ran, the caller adds
// an EQUALS_MATCH guard.
func NewRangeObject(o py.Object, src guards.Source) *RangeVariable {
	return &RangeVariable{ConstantVariable: ConstantVariable{Base: Base{Src: src}, Value: o}}
}

// Kind implements VariableTracker.
func (*RangeVariable) Kind() string { return "RangeVariable" }

// maxUnroll is the largest number of items of a range, a repeated sequence or an iterator that are tracked one by one.
const maxUnroll = 100_000

// unrolls reports whether n items, repeated k times, are at most maxUnroll items. It divides, since n*k may overflow.
func unrolls(n, k int) bool { return n == 0 || k <= maxUnroll/n }

// Items implements Sequence.
func (r *RangeVariable) Items(tx Translator) ([]VariableTracker, error) {
	if r.items != nil {
		return r.items, nil
	}
	n, ok := py.Answered(tx.Scope().Len(r.Value))
	if !ok || n > maxUnroll {
		return nil, unsupported(exc.TooLarge, "range of more than %d items", maxUnroll)
	}
	l, err := tx.Scope().Call(tx.World().ListType, r.Value)
	if err != nil {
		return nil, err
	}
	r.items = make([]VariableTracker, 0, n)
	for _, o := range tx.Scope().Items(l) {
		r.items = append(r.items, NewConstant(o, nil))
	}
	return r.items, nil
}

// Len implements Lener.
func (r *RangeVariable) Len(tx Translator) (int, error) {
	n, err := tx.Scope().Len(r.Value)
	return n, observed(err)
}

// Reconstruct implements Reconstructer. It loads the range as a constant, since a range is immutable.
func (r *RangeVariable) Reconstruct(e Emitter) error {
	e.LoadConst(r.Value)
	return nil
}
