package variables

import (
	"strings"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// BuiltinVariable is a function or type of the builtins module, or another C callable. Callables with a handler below
// work on tracked values. While translating, CPython runs the others if all arguments are known and the call is pure.
type BuiltinVariable struct {
	Base
	Fn   py.Object
	name string
}

// CallsBuiltin reports whether v is the builtin of this name.
func CallsBuiltin(w *World, v VariableTracker, name string) bool {
	switch x := v.(type) {
	case *LazyVariable:
		return x.Peek() == w.Builtin(name)
	case *BuiltinVariable:
		return x.Fn == w.Builtin(name)
	case *ClassVariable:
		return x.Class == w.Builtin(name)
	}
	return false
}

// NewBuiltin returns the tracker of a C callable.
func NewBuiltin(fn py.Object, name string, src guards.Source) *BuiltinVariable {
	return &BuiltinVariable{Base: Base{Src: src}, Fn: fn, name: name}
}

// Kind implements VariableTracker.
func (*BuiltinVariable) Kind() string { return "BuiltinVariable" }

// AsConstant implements Constant.
func (b *BuiltinVariable) AsConstant(Translator) (py.Object, bool) { return b.Fn, true }

// PythonType implements Typed.
func (b *BuiltinVariable) PythonType(Translator) (py.Object, error) { return b.Fn.Type(), nil }

// Reconstruct implements Reconstructer.
func (b *BuiltinVariable) Reconstruct(e Emitter) error {
	e.LoadConst(b.Fn)
	return nil
}

// GetAttr implements AttrGetter.
func (b *BuiltinVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	if k := b.Fn.Kind(); k == py.TypeKind || k == py.TypeSub {
		return NewClass(b.Fn, nil).GetAttr(tx, name)
	}
	v, err := tx.Scope().GetAttr(b.Fn, name)
	if err != nil {
		return nil, observed(err)
	}
	return attributeResult(tx, v, name)
}

type builtinHandler func(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error)

// builtinHandlers maps the name of a builtin to its handler for tracked values. A handler that returns (nil, nil)
// leaves the call to constant folding. The map is filled in init, since handlers call BuiltinVariable.Call, which reads
// the map.
var builtinHandlers map[string]builtinHandler

func init() {
	builtinHandlers = map[string]builtinHandler{
		"len":        positional(1, 1, builtinLen),
		"isinstance": positional(2, 2, builtinIsInstance),
		"issubclass": positional(2, 2, builtinIsSubclass),
		"getattr":    positional(2, 3, builtinGetAttr),
		"hasattr":    positional(2, 2, builtinHasAttr),
		"setattr":    positional(3, 3, builtinSetAttr),
		"delattr":    positional(2, 2, builtinDelAttr),
		"type":       positional(1, 1, builtinType),
		"callable":   positional(1, 1, builtinCallable),
		"tuple":      positional(0, 1, builtinTuple),
		"list":       positional(0, 1, builtinList),
		"dict":       builtinDict,
		"set":        positional(0, 1, builtinSet),
		"next":       positional(1, 2, builtinNext),
		"range":      builtinRange,
		"slice":      positional(1, 3, builtinSlice),
		"enumerate":  builtinEnumerate,
		"zip":        builtinZip,
		"map":        builtinMap,
		"filter":     positional(2, 2, builtinFilter),
		"reversed":   positional(1, 1, builtinReversed),
		"sorted":     builtinSorted,
		"sum":        builtinSum,
		"min":        extremum("min", opcode.CMP_LT),
		"max":        extremum("max", opcode.CMP_GT),
		"any":        positional(1, 1, anyAll(true)),
		"all":        positional(1, 1, anyAll(false)),
		"abs":        positional(1, 1, builtinAbs),
		"bool":       positional(0, 1, builtinBool),
		"print":      builtinPrint,
		"str":        positional(1, 1, valueText(strText)),
		"repr":       positional(1, 1, valueText(reprText)),
		"ascii":      positional(1, 1, builtinASCII),
		"frozenset":  positional(0, 1, builtinFrozenSet),
		"hash":       positional(1, 1, builtinHash),
		"super":      positional(0, 2, builtinSuper),
		"id":         positional(1, 1, builtinID),
		"pow": positional(2, 2, func(tx Translator, a []VariableTracker) (VariableTracker, error) {
			return operatorOrFold(tx, opcode.NB_POWER, a)
		}),
		"divmod": positional(2, 2, builtinDivmod),
	}
}

// HandledBuiltin reports whether a builtin has a handler for tracked values.
func HandledBuiltin(name string) bool { return builtinHandlers[name] != nil }

func operatorOrFold(tx Translator, op opcode.BinaryOp, a []VariableTracker) (VariableTracker, error) {
	return Binary(tx, op, a[0], a[1])
}

// positional returns a handler that checks the number of arguments and calls h. If the number is wrong or there are
// keywords, the handler returns (nil, nil): constant folding then calls the builtin, and CPython raises the error.
func positional(lo, hi int, h func(tx Translator, args []VariableTracker) (VariableTracker, error)) builtinHandler {
	return func(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
		if len(args) < lo || len(args) > hi || len(kwargs) > 0 {
			return nil, nil
		}
		return h(tx, args)
	}
}

// Call implements Caller.
func (b *BuiltinVariable) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if python, err := b.looksAtOpaque(tx, args); err != nil || python {
		if err != nil {
			return nil, err
		}
		return PythonCall(tx, b, args, kwargs)
	}
	if (b.name == "str" || b.name == "repr") && len(args) == 1 && len(kwargs) == 0 {
		if r, err := textOfSizes(tx, args[0], b.name); r != nil || err != nil {
			return r, err
		}
	}
	if r, ok, err := sizeCall(tx, b.name, args, kwargs); ok || err != nil {
		return r, err
	}
	if r, ok, err := callStandIn(tx, b.Fn, args, kwargs); ok || err != nil {
		return r, err
	}
	if r, ok, err := b.runTimeCall(tx, args, kwargs); ok || err != nil {
		return r, err
	}
	if h := builtinHandlers[b.name]; h != nil {
		r, err := h(tx, args, kwargs)
		if err != nil || r != nil {
			return r, err
		}
	}
	if k := b.Fn.Kind(); (k == py.MethodDescr || k == py.WrapperDescr) && len(args) > 0 {
		return (&UnboundMethod{name: b.name, descr: b.Fn}).Call(tx, args, kwargs)
	}
	if r, ok, err := b.operatorFunction(tx, args, kwargs); ok || err != nil {
		return r, err
	}
	if r, ok, err := b.convertObject(tx, args, kwargs); ok || err != nil {
		return r, err
	}
	if r, ok, err := b.newFunction(tx, args, kwargs); ok || err != nil {
		return r, err
	}
	if r, ok, err := descriptorCall(tx, b.Fn, args, kwargs); ok || err != nil {
		return r, err
	}
	if class := b.appliedFunction(tx); class != nil && len(kwargs) == 0 {
		return higherCalls.ApplyFunction(tx, class, args)
	}
	for _, a := range args {
		a, err := Realize(tx, a)
		if err != nil {
			return nil, err
		}
		if t, ok := a.(*TensorVariable); ok {
			if len(args) == 1 && len(kwargs) == 0 && (b.name == "int" || b.name == "float") {
				if v, ok, err := t.foresee(tx, b.name); ok || err != nil {
					return v, err
				}
				if v, ok, err := t.runTimeValue(tx, "__"+b.name+"__"); ok || err != nil {
					return v, err
				}
			}
			return nil, unsupported(exc.TensorToPython, "%s of a tensor", b.name)
		}
	}
	if b.name == "int" && len(args) > 0 {
		if o, ok := AsConstant(tx, MustRealize(tx, valueOf(MustRealize(tx, args[0])))); ok && o.Kind() != py.Int &&
			slowNumber(tx, o) {
			return nil, unsupported(exc.TooLarge, "integer of many digits")
		}
	}
	pure, err := tx.World().IsPure(tx.Scope(), b.Fn)
	if err != nil {
		return nil, err
	}
	if !pure && !tx.World().isNumpyFunction(b.Fn) {
		if tx.World().PythonOps {
			return PythonCall(tx, b, args, kwargs)
		}
		return nil, unsupported(exc.CallUnsupported, "%s", tx.Scope().Repr(b.Fn))
	}
	return foldPure(tx, b.Fn, args, kwargs)
}

// runTimeCall calls a builtin on a value that is known only at run time. ok is false for other calls.
func (b *BuiltinVariable) runTimeCall(tx Translator, args []VariableTracker,
	kwargs []Kw) (v VariableTracker, ok bool, err error) {
	if v, ok, err = computedCall(tx, b.Fn, b.name, args, kwargs); ok || err != nil {
		return v, ok, err
	}
	v, err = arrayBuiltin(tx, b, args, kwargs)
	return v, v != nil, err
}

// operatorFunction calls a function of the operator module on tracked values.
func (b *BuiltinVariable) operatorFunction(tx Translator, args []VariableTracker,
	kwargs []Kw) (VariableTracker, bool, error) {
	name, ok := strings.CutPrefix(b.name, "operator.")
	if !ok || len(kwargs) > 0 {
		return nil, false, nil
	}
	name = strings.Trim(name, "_")
	if len(args) == 2 {
		if op, ok := opcode.BinaryOpOf(name); ok {
			r, err := Binary(tx, op, args[0], args[1])
			return r, true, err
		}
		if op, ok := opcode.CompareOpOf(name); ok {
			r, err := Compare(tx, op, args[0], args[1])
			return r, true, err
		}
		if name == "is" || name == "is_not" {
			same, err := Is(tx, args[0], args[1])
			return BoolConst(same == (name == "is")), true, err
		}
		if name == "contains" {
			in, err := Contains(tx, args[0], args[1])
			return BoolConst(in), true, err
		}
		if name == "concat" || name == "iconcat" {
			op := opcode.NB_ADD
			if name == "iconcat" {
				op = opcode.NB_INPLACE_ADD
			}
			r, err := Binary(tx, op, args[0], args[1])
			return r, true, err
		}
		if name == "getitem" {
			r, err := GetItem(tx, args[0], args[1])
			return r, true, err
		}
	}
	if name == "setitem" && len(args) == 3 {
		return NoneConst(), true, SetItem(tx, args[0], args[1], args[2])
	}
	if name == "delitem" && len(args) == 2 {
		return NoneConst(), true, SetItem(tx, args[0], args[1], nil)
	}
	if len(args) == 1 {
		for i, n := range []string{"pos", "neg", "invert", "not"} {
			if n == name {
				r, err := Unary(tx, i, args[0])
				return r, true, err
			}
		}
		if name == "index" {
			k, err := indexOf(tx, args[0])
			if err != nil || (k.Kind() != py.Int && k.Kind() != py.BoolKind) {
				return nil, false, err
			}
			return NewConstant(k, nil), true, nil
		}
		if name == "abs" {
			r, err := builtinAbs(tx, args)
			return r, r != nil, err
		}
		if name == "is_none" || name == "is_not_none" {
			same, err := Is(tx, args[0], NoneConst())
			return BoolConst(same == (name == "is_none")), true, err
		}
		if name == "truth" {
			t, err := Truth(tx, args[0])
			return BoolConst(t), true, err
		}
	}
	return nil, false, nil
}

func builtinLen(tx Translator, a []VariableTracker) (VariableTracker, error) {
	v, err := Realize(tx, a[0])
	if err != nil {
		return nil, err
	}
	if t, ok := v.(*TensorVariable); ok {
		if size, err := t.first(tx); size != nil || err != nil {
			return size, err
		}
	}
	if l, ok := v.(*LoopList); ok {
		return NewSize(tx, l.N), nil
	}
	n, err := Len(tx, v)
	if err != nil {
		return nil, err
	}
	return IntConst(tx, n), nil
}

// MustRealize does the same as Realize, but returns v itself if Realize fails.
func MustRealize(tx Translator, v VariableTracker) VariableTracker {
	r, err := Realize(tx, v)
	if err != nil {
		return v
	}
	return r
}

func builtinIsSubclass(tx Translator, a []VariableTracker) (VariableTracker, error) {
	c, ok := AsConstant(tx, MustRealize(tx, a[0]))
	cls, ok2 := AsConstant(tx, MustRealize(tx, a[1]))
	if !ok || !ok2 {
		return nil, unsupported(exc.CallUnsupported, "issubclass of %s", Describe(tx, a[0]))
	}
	asked, pure := instanceChecks(tx, cls)
	if !pure {
		return nil, unsupported(exc.CallUnsupported, "issubclass of %s", Describe(tx, a[0]))
	}
	if tx.World().IsEnum(tx.Scope(), c) { // CPython reads the __bases__ of an enum member
		return nil, unsupported(exc.CallUnsupported, "issubclass of %s", Describe(tx, a[0]))
	}
	if k := c.Kind(); k == py.TypeKind || k == py.TypeSub {
		tx.World().RestsOnBases(tx, c)
	}
	r, err := tx.Scope().IsSubclass(c, cls)
	if err == nil {
		err = registered(tx, c, cls, asked, r)
	}
	return BoolConst(r), observed(err)
}

func builtinGetAttr(tx Translator, a []VariableTracker) (VariableTracker, error) {
	MustRealize(tx, a[1])
	name, ok := ConstStr(tx, a[1])
	if !ok {
		return nil, unsupported(exc.AttrUnsupported, "getattr with name %s", Describe(tx, a[1]))
	}
	v, err := GetAttr(tx, a[0], name)
	if o, ok := err.(*exc.Observed); ok && o.TypeName == "AttributeError" && len(a) == 3 {
		return a[2], nil
	}
	return v, err
}

func builtinHasAttr(tx Translator, a []VariableTracker) (VariableTracker, error) {
	MustRealize(tx, a[1])
	name, ok := ConstStr(tx, a[1])
	if !ok {
		return nil, unsupported(exc.AttrUnsupported, "hasattr with name %s", Describe(tx, a[1]))
	}
	v, err := Realize(tx, a[0])
	if err != nil {
		return nil, err
	}
	if t, ok := v.(*TensorVariable); ok {
		class, err := t.PythonType(tx)
		if err != nil {
			return nil, err
		}
		if d, ok := tx.Scope().TypeLookup(class, name); !ok {
			return t.hasAttr(tx, name)
		} else if handled, err := t.handled(tx); err != nil || handled && d.Kind() == py.GetSet ||
			d.Kind() == py.Property && class != tx.World().TensorType {
			// hasattr reads the attribute, which runs user code.
			return nil, unsupported(exc.AttrUnsupported, "hasattr of a %s", py.TypeName(class))
		}
		if name != "grad_fn" {
			return BoolConst(true), nil
		}
		return nil, unsupported(exc.AttrUnsupported, "hasattr of a tensor")
	}
	_, err = GetAttr(tx, v, name)
	if o, ok := err.(*exc.Observed); ok && o.TypeName == "AttributeError" {
		return BoolConst(false), nil
	}
	if err != nil {
		return nil, err
	}
	return BoolConst(true), nil
}

func builtinSetAttr(tx Translator, a []VariableTracker) (VariableTracker, error) {
	MustRealize(tx, a[1])
	name, ok := ConstStr(tx, a[1])
	if !ok {
		return nil, unsupported(exc.StoreUnsupported, "setattr with name %s", Describe(tx, a[1]))
	}
	return NoneConst(), SetAttr(tx, a[0], name, a[2])
}

func builtinDelAttr(tx Translator, a []VariableTracker) (VariableTracker, error) {
	MustRealize(tx, a[1])
	name, ok := ConstStr(tx, a[1])
	if !ok {
		return nil, unsupported(exc.StoreUnsupported, "delattr with name %s", Describe(tx, a[1]))
	}
	return NoneConst(), SetAttr(tx, a[0], name, nil)
}

func builtinType(tx Translator, a []VariableTracker) (VariableTracker, error) {
	v, err := Realize(tx, a[0])
	if err != nil {
		return nil, err
	}
	t, err := PythonType(tx, v)
	if x, ok := v.(*TensorVariable); ok && err == nil {
		t, err = x.exactType(tx)
	}
	if err != nil {
		return nil, err
	}
	return wrapKnown(tx, t), nil
}

func builtinCallable(tx Translator, a []VariableTracker) (VariableTracker, error) {
	v, err := Realize(tx, a[0])
	if err != nil {
		return nil, err
	}
	if _, object := v.(*ObjectVariable); !object {
		if _, ok := v.(Caller); ok {
			return BoolConst(true), nil
		}
	}
	t, err := PythonType(tx, v)
	if err != nil {
		return nil, err
	}
	looksFor(tx, t, "__call__")
	return BoolConst(py.Is(t, py.HasCall)), nil
}

func builtinTuple(tx Translator, a []VariableTracker) (VariableTracker, error) {
	if len(a) == 0 {
		return NewTuple(nil, nil), nil
	}
	v, err := Realize(tx, a[0])
	if err != nil {
		return nil, err
	}
	if t, ok := v.(*TupleVariable); ok && t.Exact() {
		return t, nil
	}
	items, err := UnpackTuple(tx, v)
	return NewTuple(items, nil), err
}

func builtinList(tx Translator, a []VariableTracker) (VariableTracker, error) {
	if len(a) == 0 {
		return NewList(nil, nil), nil
	}
	items, err := UnpackSized(tx, a[0])
	return NewList(items, nil), err
}

func builtinDict(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	pairs, err := dictPairs(tx, "dict", args, kwargs)
	if err != nil {
		return nil, err
	}
	d := NewDict(nil)
	for _, p := range pairs {
		if err := d.put(tx, p[0], p[1]); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func builtinNext(tx Translator, a []VariableTracker) (VariableTracker, error) {
	v, err := Realize(tx, a[0])
	if err != nil {
		return nil, err
	}
	if o, ok := v.(*ObjectVariable); ok {
		return nextOfObject(tx, o, a)
	}
	it, ok := v.(Iterator)
	if !ok {
		if ofBuiltinType(v) {
			return nil, typeError(tx, "'\x00' object is not an iterator", v)
		}
		return nil, unsupported(exc.IterUnsupported, "next of %s", Describe(tx, v))
	}
	tx.World().Writes++
	if !Materialized(v) {
		tx.World().Own++
	}
	tx.World().Wrote(v)
	item, ok, err := it.Next(tx)
	if err != nil || ok {
		return item, err
	}
	if len(a) == 2 {
		return a[1], nil
	}
	if r, ok := it.(Returner); ok {
		return nil, StopIteration(tx, r.StopValue())
	}
	return nil, StopIteration(tx, nil)
}

func builtinRange(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if r := rangeOfSize(tx, args); r != nil && len(kwargs) == 0 {
		return r, nil
	}
	return constantRange(tx, args, kwargs)
}

// constantRange returns range(*args). The bounds become constants.
func constantRange(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	for i, a := range args {
		v, err := Index(tx, a)
		if err != nil {
			return nil, err
		}
		if IsTensor(v) {
			return nil, unsupported(exc.TensorToPython, "range of a tensor")
		}
		args[i] = v
	}
	objs, ok := constants(tx, args)
	if !ok || len(kwargs) > 0 {
		return nil, unsupported(exc.CallUnsupported, "range of unknown bounds")
	}
	r, err := tx.Scope().Call(tx.World().RangeType, objs...)
	if err != nil {
		return nil, observed(err)
	}
	return NewRangeObject(r, nil), nil
}

func builtinSlice(_ Translator, a []VariableTracker) (VariableTracker, error) {
	parts := [3]VariableTracker{NoneConst(), NoneConst(), NoneConst()}
	if len(a) == 1 {
		parts[1] = a[0]
	} else {
		copy(parts[:], a)
	}
	return NewSlice(parts[0], parts[1], parts[2]), nil
}

func builtinSorted(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if len(args) != 1 {
		return nil, nil
	}
	items, err := UnpackSized(tx, args[0])
	if err != nil {
		return nil, err
	}
	sorted, err := sortValues(tx, items, kwargs)
	return NewList(sorted, nil), err
}

// each calls do for every item until do returns false. Each item is produced, with its effects, just before do is
// called with it.
func each(tx Translator, v VariableTracker, do func(it VariableTracker) (more bool, err error)) error {
	r, err := Iter(tx, v)
	if err != nil {
		return err
	}
	it, ok := r.(Iterator)
	if !ok {
		return unsupported(exc.IterUnsupported, "iteration over %s", Describe(tx, r))
	}
	for i := 0; i < maxUnroll; i++ {
		item, ok, err := it.Next(tx)
		if err != nil || !ok {
			return err
		}
		if more, err := do(item); err != nil || !more {
			return err
		}
	}
	return unsupported(exc.TooLarge, "iterator of more than %d items", maxUnroll)
}

// emptyExtremum returns the ValueError of min() or max() of nothing. CPython's versions word it differently.
func emptyExtremum(tx Translator, name string) error {
	_, err := tx.Scope().Call(tx.World().Builtin(name), tx.Scope().Tuple())
	return observed(err)
}

// extremum returns the handler of min or max. The translator must know the result of each comparison.
func extremum(name string, op opcode.CompareOp) builtinHandler {
	return func(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
		var key, def VariableTracker
		for _, kw := range kwargs {
			switch kw.Name {
			case "key":
				key = kw.Value
			case "default":
				def = kw.Value
			default:
				return nil, nil
			}
		}
		items := args
		if len(args) == 1 {
			var err error
			if items, err = Unpack(tx, args[0]); err != nil {
				return nil, err
			}
		}
		if len(args) != 1 && def != nil {
			return nil, nil
		}
		if len(items) == 0 {
			if len(args) == 0 {
				return nil, nil
			}
			if def != nil {
				return def, nil
			}
			return nil, emptyExtremum(tx, name)
		}
		keyed := func(v VariableTracker) (VariableTracker, error) {
			if key == nil {
				return v, nil
			}
			if c, ok := AsConstant(tx, MustRealize(tx, key)); ok && c == py.None() {
				return v, nil
			}
			return Call(tx, key, []VariableTracker{v}, nil)
		}
		if key == nil {
			if r, err := extremeAtRunTime(tx, name, items); r != nil || err != nil {
				return r, err
			}
		}
		best := items[0]
		bestKey, err := keyed(best)
		if err != nil {
			return nil, err
		}
		for _, it := range items[1:] {
			k, err := keyed(it)
			if err != nil {
				return nil, err
			}
			if k == it {
				if r, err := extremeOfSizes(tx, name, best, it); err != nil {
					return nil, err
				} else if r != nil {
					best, bestKey = r, r
					continue
				}
			}
			r, err := Compare(tx, op, k, bestKey)
			if err != nil {
				return nil, err
			}
			better, err := Truth(tx, r)
			if err != nil {
				return extremeUnordered(tx, name, items, key, asCallBreak(err, name))
			}
			if better {
				best, bestKey = it, k
			}
		}
		return best, nil
	}
}

// asCallBreak turns a data-dependent truth value inside a builtin into a graph break at the call of that builtin. Code
// can resume after a branch, but not inside a builtin.
func asCallBreak(err error, name string) error {
	if u, ok := err.(*exc.Unsupported); ok && u.DataDependent {
		return unsupported(exc.TensorToPython, "%s: %s", name, u.Context)
	}
	return err
}

func anyAll(stop bool) func(tx Translator, a []VariableTracker) (VariableTracker, error) {
	return func(tx Translator, a []VariableTracker) (VariableTracker, error) {
		found := false
		err := each(tx, a[0], func(it VariableTracker) (bool, error) {
			t, err := Truth(tx, it)
			found = err == nil && t == stop
			return !found, asCallBreak(err, "any/all")
		})
		return BoolConst(stop == found), err
	}
}

func builtinBool(tx Translator, a []VariableTracker) (VariableTracker, error) {
	if len(a) == 0 {
		return BoolConst(false), nil
	}
	if v, err := Argument(tx, a[0]); err != nil {
		return nil, err
	} else if t, ok := v.(*TensorVariable); ok {
		v, err := t.toPython(tx, "__bool__", nil, nil)
		return v, asCallBreak(err, "bool")
	}
	t, err := Truth(tx, a[0])
	if err != nil {
		return nil, asCallBreak(err, "bool")
	}
	return BoolConst(t), nil
}

// builtinPrint records a call of print as an effect in program order, if printing the values runs no user code.
func builtinPrint(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	all := append([]VariableTracker(nil), args...)
	for _, kw := range kwargs {
		if kw.Name == "file" {
			return nil, unsupported(exc.CallUnsupported, "print to a file")
		}
		all = append(all, kw.Value)
	}
	if err := queued(tx, "print", all); err != nil {
		return nil, err
	}
	fn := tx.World().Print
	return NoneConst(), told(tx, all, func(e Emitter) error {
		e.PushNull()
		e.LoadConst(fn)
		if err := LoadAll(e, all); err != nil {
			return err
		}
		e.Call(len(all), KwNames(kwargs))
		e.PopTop()
		return nil
	})
}

func printable(tx Translator, v VariableTracker) bool {
	// A guard on the type suffices. A guard on the value would cause a recompile for each new value.
	if l, ok := v.(*LazyVariable); ok && !l.Realized() {
		switch l.obj.Kind() {
		case py.Int, py.Float, py.Complex, py.Str, py.Bytes:
			l.GuardType(tx)
			return true
		}
	}
	v, err := Realize(tx, v)
	if err != nil {
		return false
	}
	switch x := v.(type) {
	case *TensorVariable:
		return x.Class.IsNull() || x.Class == tx.World().ParameterType // other classes may define __repr__
	case *ConstantVariable, *RangeVariable, *TensorSequence, *ShadowVariable:
		return true
	case *ObjectVariable:
		if o, ok := realException(tx, x); ok {
			plain, err := hasPlainText(tx, o, "__str__")
			return err == nil && plain
		}
		return false
	case *ComputedVariable:
		return isComputedNumber(tx, x) || x.Type == tx.World().Builtin("str")
	case *ListVariable, *TupleVariable, *DictVariable:
		if tx.World().Enter() != nil {
			return false
		}
		defer tx.World().Leave()
		for _, c := range x.(Container).Children() {
			if !printable(tx, c) {
				return false
			}
		}
		return true
	}
	return false
}

func builtinSuper(tx Translator, a []VariableTracker) (VariableTracker, error) {
	switch len(a) {
	case 0:
		cls, self, err := tx.SuperArgs()
		if err != nil {
			return nil, err
		}
		v, err := newSuper(tx, cls, self)
		if u, ok := err.(*exc.Unsupported); ok {
			u.Frame = true
		}
		return v, err
	case 2:
		return newSuper(tx, a[0], a[1])
	}
	return nil, unsupported(exc.CallUnsupported, "super with one argument")
}
