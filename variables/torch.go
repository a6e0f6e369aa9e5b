package variables

import (
	"slices"
	"strings"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// classified is the kind of a callable, with an optional detail about the callable.
type classified struct {
	kind   callableKind
	detail string
}

// own reports whether the callable has no kind. Such a callable is user code and is inlined.
func (c classified) own() bool { return c.kind == "" }

// TorchVariable represents a callable that goes into the graph, or whose result is known while translating. Most such
// callables belong to torch. python/godynamo/_translator/callables.py classifies them.
type TorchVariable struct {
	Base
	Fn py.Object
	classified
}

// newTorch returns the tracker of a torch callable.
func newTorch(fn py.Object, kind classified, src guards.Source) *TorchVariable {
	return &TorchVariable{Base: Base{Src: src}, Fn: fn, classified: kind}
}

// Kind implements VariableTracker.
func (*TorchVariable) Kind() string { return "TorchInGraphFunctionVariable" }

// AsConstant implements Constant.
func (t *TorchVariable) AsConstant(Translator) (py.Object, bool) { return t.Fn, true }

// PythonType implements Typed.
func (t *TorchVariable) PythonType(Translator) (py.Object, error) { return t.Fn.Type(), nil }

// Reconstruct implements Reconstructer.
func (t *TorchVariable) Reconstruct(e Emitter) error {
	e.LoadConst(t.Fn)
	return nil
}

// GetAttr implements AttrGetter.
func (t *TorchVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	if t.kind == kindNumpy && ufuncMethods[name] && py.TypeName(t.Fn.Type()) == "numpy.ufunc" {
		return &UfuncMethod{ufunc: t.Fn, name: name}, nil
	}
	if d, ok := tx.Scope().InstanceDict(t.Fn); ok && t.Src != nil && t.Fn.Kind() == py.Function {
		if v, ok := tx.Scope().DictGetName(d, name); ok {
			return tx.Build(v, guards.NewAttrSource(t.Src, name)), nil
		}
	}
	v, err := tx.Scope().GetAttr(t.Fn, name)
	if err != nil {
		return nil, observed(err)
	}
	// for example, torch._C._VariableFunctions.rsub, torch.ops.aten.add.Tensor
	if class, err := tx.World().classified(tx.Scope(), v); err != nil || !class.own() {
		return newTorch(v, class, constSource(tx, v, "___torch")), err
	}
	return attributeResult(tx, v, name)
}

// Call implements Caller.
func (t *TorchVariable) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if tx.World().Calls > 0 && t.kind != kindGraphBreak && t.kind != kindComptime {
		python, err := holdsOpaque(tx, append(KwValues(kwargs), args...)...)
		if err != nil {
			return nil, err
		}
		if python || t.kind == kindState {
			return PythonCall(tx, t, args, kwargs)
		}
	}
	name := tx.World().CallableName(tx.Scope(), t.Fn)
	if err := mayMakeLeaf(tx, name, kwargs); err != nil {
		return nil, err
	}
	r, err := torchCalls[t.kind](tx, t, name, args, kwargs)
	if r == nil && err == nil {
		return nil, unsupported(exc.CallUnsupported, "%s", name)
	}
	return r, err
}

// region handles a call of a function of godynamo/_user/break_errors. The function begins an error_on_graph_break
// region, in the calling frame or in that frame's caller, or ends one.
func (t *TorchVariable) region(tx Translator, args []VariableTracker) (VariableTracker, error) {
	if t.detail == "end" {
		tx.EndRegion(1)
		return NoneConst(), nil
	}
	on, ok := AsConstant(tx, MustRealize(tx, arg(args, 0)))
	if !ok {
		return nil, unsupported(exc.CallUnsupported, "error_on_graph_break with an unknown flag")
	}
	up := 0
	if t.detail == "of_caller" {
		up = 1
	}
	tx.BeginRegion(up, on == py.True())
	return NoneConst(), nil
}

// asksToSplit returns the error for graph_break(msg), which breaks the graph here, or skip_frame(msg), which leaves
// the whole frame to CPython.
func (t *TorchVariable) asksToSplit(tx Translator, name string, args []VariableTracker, kwargs []Kw) error {
	for _, v := range append(KwValues(kwargs), args...) {
		if c, ok := AsConstant(tx, MustRealize(tx, v)); ok && c.Kind() == py.Str && py.GoString(c) != "" {
			name += ": " + py.GoString(c)
		}
	}
	if t.kind == kindSkipFrame {
		return &exc.SkipFrame{Reason: name}
	}
	return unsupported(exc.ExplicitBreak, "%s", name)
}

// recursive calls a __repr__ wrapped by dataclasses or reprlib. For an object nested in itself, such a wrapper prints a
// fixed text.
func (t *TorchVariable) recursive(tx Translator, self VariableTracker) (VariableTracker, error) {
	self, err := Realize(tx, self)
	if err != nil {
		return nil, err
	}
	s, w := tx.Scope(), tx.World()
	r, err := s.Call(w.recursiveRepr, t.Fn)
	if err != nil {
		return nil, err
	}
	parts := s.Items(r)
	if !w.truth(s, parts[2], pyNone) {
		return nil, unsupported(exc.CallUnsupported, "__repr__ of an object that is being printed")
	}
	tx.Output().AddGuards(guards.PyCheck(t.Src, tx.Output().Const(parts[2]), "prints nothing yet"))
	if w.printing[self] {
		return NewConstant(parts[1], nil), nil
	}
	w.printing[self] = true
	defer delete(w.printing, self)
	fn := tx.Build(parts[0], guards.NewConstSource(tx.Output().Const(parts[0]), "___user_function"))
	return Call(tx, fn, []VariableTracker{self}, nil)
}

// typeHintsOf returns typing.get_type_hints(v) of a class or function. The annotations are guarded.
func typeHintsOf(tx Translator, v VariableTracker) (VariableTracker, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return nil, err
	}
	var obj py.Object
	switch x := v.(type) {
	case *ClassVariable:
		obj = x.Class
	case *FunctionVariable:
		obj = x.Fn
	}
	refused := unsupported(exc.CallUnsupported, "typing.get_type_hints of %s", Describe(tx, v))
	// the program may have changed annotations, or the names that they contain
	if obj.IsNull() || tx.World().Effects > 0 {
		return nil, refused
	}
	r, err := tx.Scope().Call(tx.World().typeHints, obj)
	if err != nil {
		return nil, err
	}
	if r == pyNone {
		return nil, refused
	}
	parts := tx.Scope().Items(r)
	src := v.Source()
	if src == nil {
		src = guards.NewConstSource(tx.Output().Const(obj), "___annotated")
	}
	tx.Output().AddGuards(guards.PyCheck(src, tx.Output().Const(parts[1]), "has the same type hints"))
	return immutableResult(tx, parts[0])
}

// asked calls a function that reads process state, such as a setting. A guard repeats the call.
func (t *TorchVariable) asked(tx Translator) (VariableTracker, error) {
	r, err := tx.Scope().Call(tx.World().asked, t.Fn)
	if err != nil {
		return nil, err
	}
	parts := tx.Scope().Items(r)
	name := tx.World().CallableName(tx.Scope(), t.Fn)
	src := guards.NewConstSource(tx.Output().Const(t.Fn), "___function_"+name)
	tx.Output().AddGuards(guards.PyCheck(src, tx.Output().Const(parts[1]), name+"()"))
	return immutableResult(tx, parts[0])
}

// dispatch calls a functools.singledispatch function. CPython selects the implementation by the class of the first
// argument.
func (t *TorchVariable) dispatch(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if len(args) == 0 || t.Src == nil {
		return nil, unsupported(exc.CallUnsupported, "singledispatch")
	}
	class, err := PythonType(tx, args[0])
	if err != nil {
		return nil, err
	}
	r, err := tx.Scope().Call(tx.World().dispatched, t.Fn, class)
	if err != nil {
		return nil, observed(err)
	}
	parts := tx.Scope().Items(r)
	tx.Output().AddGuards(guards.PyCheck(t.Src, tx.Output().Const(parts[1]), ".dispatch("+py.TypeName(class)+")",
		class.ID()))
	chosen := tx.Build(parts[0], guards.NewConstSource(tx.Output().Const(parts[0]), "___dispatched"))
	return Call(tx, chosen, args, kwargs)
}

// callOp adds an operation to the graph. If the operation is a Python function and the kind of its result is unknown,
// it is inlined instead.
func (t *TorchVariable) callOp(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if tx.Output().WholeGraph() && becomesAnother(tx, name, args) && tx.Output().TakesApart() {
		return nil, unsupported(exc.CallUnsupported, "%s, which the backend would take apart", name)
	}
	if len(args) > 0 {
		first, err := Argument(tx, args[0])
		if err != nil {
			return nil, err
		}
		// usually the program passes such a member in place of a tensor; the text of torch's error contains the
		// member's class
		if _, member := enumMember(tx, first); member {
			return nil, unsupported(exc.CallUnsupported, "%s of %s", name, Describe(tx, first))
		}
	}
	if r, ok, err := tensorOfArray(tx, t.Fn, name, args, kwargs); ok || err != nil {
		return r, err
	}
	if r, ok, err := t.foreach(tx, name, args, kwargs); ok || err != nil {
		return r, err
	}
	if r, err := t.callQuantized(tx, name, args, kwargs); r != nil || err != nil {
		return r, err
	}
	args, err := t.knownSizes(tx, name, args)
	if err != nil {
		return nil, err
	}
	kind, err := t.resultOf(tx, name, args, kwargs)
	if err != nil {
		return nil, err
	}
	// a Python function of torch is inlined, since the kinds of the functions that it calls may be known
	if kind.kind == givesUnknown && t.Fn.Kind() == py.Function {
		return tx.Inline(NewFunction(t.Fn, guards.NewConstSource(tx.Output().Const(t.Fn), "___function_"+name)),
			args, kwargs)
	}
	switch kind.kind {
	case givesInt, givesFloat, givesBool, givesScalar, givesObject, givesUnknown:
		if v, ok, err := numberOfFunction(tx, t.Fn, name, kind, args, kwargs); ok || err != nil {
			return v, err
		}
		if pure, err := tx.World().IsPure(tx.Scope(), t.Fn); err != nil {
			return nil, err
		} else if pure { // of dtypes: promote_types, can_cast
			return foldCall(tx, t.Fn, args, kwargs)
		}
		return nil, unsupported(exc.UnknownResult, "%s (%s)", name, kind)
	case givesSelf:
		first, err := Realize(tx, arg(args, 0))
		if err != nil {
			return nil, err
		}
		if x, ok := first.(*TensorVariable); ok {
			if err := x.mayChange(tx, name[strings.LastIndex(name, ".")+1:]); err != nil {
				return nil, err
			}
		}
		node, err := tx.Output().CallFunction(tx, t.Fn, name, args, kwargs)
		if err != nil {
			return nil, err
		}
		if x, ok := first.(*TensorVariable); ok {
			x.change()
			node.Inplace = true
			return x, nil
		}
		return nil, unsupported(exc.UnknownResult, "%s", name)
	}
	for _, kw := range kwargs {
		if kw.Name == "out" {
			if c, ok := AsConstant(tx, kw.Value); !ok || c != py.None() {
				return t.callOut(tx, name, args, kwargs, kw.Value, kind)
			}
		}
	}
	return graphCall(tx, t.Fn, name, args, kwargs, kind)
}

// resultOf returns the kind of a call's result.
func (t *TorchVariable) resultOf(tx Translator, name string, args []VariableTracker, kwargs []Kw) (result, error) {
	kind, ok, err := placesKind(tx, strings.TrimPrefix(name, "torch."), args, kwargs)
	if ok || err != nil {
		return kind, err
	}
	kinds, err := argKinds(tx, args)
	if err != nil {
		return result{}, err
	}
	return tx.World().functionResult(tx.Scope(), t.Fn, len(args), KwNames(withoutOut(tx, kwargs)), kinds)
}

// withoutOut leaves out=None out of keyword arguments: torch takes it for no argument.
func withoutOut(tx Translator, kwargs []Kw) []Kw {
	return slices.DeleteFunc(slices.Clone(kwargs), func(kw Kw) bool {
		if kw.Name != "out" {
			return false
		}
		c, ok := AsConstant(tx, kw.Value)
		return ok && c == py.None()
	})
}

// callOut adds an operation that writes its results into the tensors given as out=. torch resizes these if necessary,
// and the operation returns them.
func (t *TorchVariable) callOut(tx Translator, name string, args []VariableTracker, kwargs []Kw, out VariableTracker,
	gives result) (VariableTracker, error) {
	v, err := Realize(tx, out)
	if err != nil {
		return nil, err
	}
	given := []VariableTracker{v}
	if s, ok := v.(*TupleVariable); ok && (gives.kind == givesNone || gives == (result{givesTensors, len(s.items)})) {
		if given, err = RealizeAll(tx, s.items); err != nil {
			return nil, err
		}
	} else if gives.kind != givesTensor {
		given = nil
	}
	changed := make([]*TensorVariable, len(given))
	for i, v := range given {
		changed[i], _ = v.(*TensorVariable)
	}
	if len(given) == 0 || slices.Contains(changed, nil) {
		return nil, unsupported(exc.CallUnsupported, "%s with out=", name)
	}
	for _, x := range changed {
		if err := x.hidesChange(tx, name); err != nil {
			return nil, err
		}
	}
	node, err := tx.Output().CallFunction(tx, t.Fn, name, args, kwargs)
	if err != nil {
		return nil, err
	}
	node.Inplace = true
	for _, x := range changed {
		x.change()
	}
	switch gives.kind {
	case givesTensor:
		return given[0], nil
	case givesNone:
		return NoneConst(), nil
	}
	return &TensorSequence{Node: node, n: len(given), items: given}, nil
}

// becomesAnother reports whether an operator of a recurrent layer behaves differently after AOTAutograd has decomposed
// it. An LSTM's decomposed graph does not run. The decomposed graphs of the other layers draw other random numbers for
// the dropout between layers.
func becomesAnother(tx Translator, name string, args []VariableTracker) bool {
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "lstm":
		return true
	case "gru", "rnn_tanh", "rnn_relu": // arguments: (..., has_biases, num_layers, dropout, train, ...)
		first := slices.IndexFunc(args, func(a VariableTracker) bool {
			o, ok := AsConstant(tx, MustRealize(tx, a))
			return ok && o.Kind() == py.BoolKind
		})
		if first < 0 || first+3 >= len(args) {
			return true
		}
		dropout, known := AsConstant(tx, MustRealize(tx, args[first+2]))
		train, _ := AsConstant(tx, MustRealize(tx, args[first+3]))
		return !known || train == py.True() && tx.Scope().Repr(dropout) != "0.0" && tx.Scope().Repr(dropout) != "0"
	}
	return false
}

// argKinds returns the kind letters of all arguments (see argKind).
func argKinds(tx Translator, args []VariableTracker) (string, error) {
	var kinds strings.Builder
	for _, a := range args {
		a, err := Argument(tx, a)
		if err != nil {
			return "", err
		}
		kinds.WriteByte(argKind(tx, a))
	}
	return kinds.String(), nil
}

// argKind returns the letter by which result_kind_call identifies an argument: T for a tensor, L for a list of
// tensors, i for an int, f for a float, b for a bool, n for None, o for other values.
func argKind(tx Translator, v VariableTracker) byte {
	switch x := v.(type) {
	case *TensorVariable:
		return 'T'
	case *ConstantVariable:
		switch x.Value.Kind() {
		case py.Int:
			return 'i'
		case py.Float:
			return 'f'
		case py.BoolKind:
			return 'b'
		case py.NoneKind:
			return 'n'
		}
	case *ComputedVariable:
		if letter, ok := numberLetter(tx, x); ok {
			return letter
		}
	case *SymNodeVariable:
		return 'i'
	case *ListVariable, *TupleVariable, *TensorSequence:
		return 'L'
	}
	return 'o'
}

// overloadCheck handles has_torch_function and similar functions. Plain tensors and Python data have no handler. The
// stack of TorchFunctionModes is guarded.
func (t *TorchVariable) overloadCheck(tx Translator, args []VariableTracker) (VariableTracker, error) {
	tx.Output().AddGuards(guards.GlobalState())
	if on, err := tx.World().TorchFunctionModeActive(tx.Scope()); err != nil || on {
		return nil, unsupported(exc.TensorSubclass, "a torch function mode is active")
	}
	if mode, err := activeMode(tx); err != nil || mode != nil {
		return BoolConst(true), err
	}
	for _, a := range args {
		items := []VariableTracker{a}
		if r, err := Realize(tx, a); err != nil {
			return nil, err
		} else if s, ok := r.(*TupleVariable); ok {
			items = s.items
		}
		for _, it := range items {
			r, err := Realize(tx, it)
			if err != nil {
				return nil, err
			}
			if classes, err := overriding(tx, []VariableTracker{r}); err != nil || len(classes) > 0 {
				return BoolConst(true), err
			}
			if o, ok := r.(*ObjectVariable); ok {
				if _, hook := tx.Scope().TypeLookup(o.Class, "__getattr__"); hook || !plainGetAttr(tx, o.Class) {
					return nil, unsupported(exc.TensorSubclass, "a %s, which overrides attribute access",
						py.TypeName(o.Class))
				}
			}
		}
	}
	return BoolConst(false), nil
}

// predicate handles torch.is_tensor, and functions of one tensor that are also methods: is_floating_point, numel, ...
func (t *TorchVariable) predicate(tx Translator, name string, args []VariableTracker) (VariableTracker, error) {
	v, err := Realize(tx, arg(args, 0))
	if err != nil {
		return nil, err
	}
	name = strings.TrimPrefix(name, "torch.")
	if name == "is_tensor" {
		return BoolConst(IsTensor(v)), nil
	}
	if x, ok := v.(*TensorVariable); ok {
		if r, ok, err := x.metaMethod(tx, name, args[1:]); ok {
			return r, err
		}
	}
	return nil, unsupported(exc.UnknownResult, "%s", name)
}
