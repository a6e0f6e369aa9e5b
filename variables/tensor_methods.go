package variables

import (
	"slices"
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// tensorToPython lists methods whose result depends on the tensor's data.
var tensorToPython = map[string]bool{
	"item": true, "tolist": true, "numpy": true, "__bool__": true, "__int__": true, "__float__": true,
	"__index__":   true,
	"__complex__": true, "equal": true, "allclose": true, "is_nonzero": true, "__array__": true, "__len__": false,
}

// foreseen lists the methods whose result Output.Foresee may precompute. It maps each to the name that Foresee takes.
var foreseen = map[string]string{"item": "item", "__bool__": "bool", "__int__": "int", "__float__": "float"}

// CallMethod implements MethodCaller.
func (t *TensorVariable) CallMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if r, ok, err := t.foreignMethod(tx, name, args, kwargs); ok || err != nil {
		return r, err
	}
	if fn, ok := tx.Scope().TypeLookup(tx.World().TensorType, name); !t.Class.IsNull() &&
		t.Class != tx.World().ParameterType {
		if own, has := tx.Scope().TypeLookup(t.Class, name); !has || !ok || own != fn {
			m, err := t.GetAttr(tx, name)
			if err != nil {
				return nil, err
			}
			return Call(tx, m, args, kwargs)
		}
	}
	return t.torchMethod(tx, name, args, kwargs)
}

// torchMethod calls torch.Tensor's method, even if the tensor's class overrides it.
func (t *TensorVariable) torchMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if fn, ok := tx.Scope().TypeLookup(tx.World().TensorType, name); ok && name != "as_subclass" {
		again := func() (VariableTracker, error) { return t.plainMethod(tx, name, args, kwargs) }
		if name == "__iter__" { // Tensor.__iter__ iterates over plain tensors
			again = nil
		}
		if r, ok, err := dispatchTorch(tx, fn, append([]VariableTracker{t}, args...), kwargs, again); ok || err != nil {
			return r, err
		}
	}
	return t.plainMethod(tx, name, args, kwargs)
}

// plainMethod calls a method of torch.Tensor without calling a __torch_function__ handler.
func (t *TensorVariable) plainMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if tensorToPython[name] {
		return t.toPython(tx, name, args, kwargs)
	}
	if r, ok, err := t.knownMethod(tx, name, args, kwargs); ok || err != nil {
		return r, err
	}
	if name == "type" && len(args) > 0 {
		asked, err := typeAsked(tx, args[0])
		if err != nil {
			return nil, err
		}
		args = append([]VariableTracker{asked}, args[1:]...)
	} else if name != "type" {
		var err error
		if args, kwargs, err = asDtypes(tx, name, args, kwargs); err != nil {
			return nil, err
		}
	}
	if name == "backward" {
		return t.backward(tx, args, kwargs)
	}
	if v, ok, err := t.hookMethod(tx, name, args, kwargs); ok || err != nil {
		return v, err
	}
	if len(args)+len(kwargs) == 0 {
		if v, ok, err := t.partMethod(tx, name); ok || err != nil {
			return v, err
		}
	}
	if (name == "size" || name == "stride") && len(args) == 0 && len(kwargs) == 1 && kwargs[0].Name == "dim" {
		args, kwargs = KwValues(kwargs), nil
	}
	if len(kwargs) == 0 {
		if v, ok, err := t.metaMethod(tx, name, args); ok {
			return v, err
		}
	}
	if name == "is_contiguous" && len(args) == 0 && len(kwargs) == 1 && kwargs[0].Name == "memory_format" {
		if v, ok, err := t.contiguousIn(tx, kwargs[0].Value); ok || err != nil {
			return v, err
		}
	}
	all := append([]VariableTracker{t}, args...)
	if kind, ok, err := placesKind(tx, name, all, kwargs); ok || err != nil {
		if err != nil {
			return nil, err
		}
		return wrapped(tx, kind, func() (*fxgraph.Node, error) { return tx.Output().CallMethod(tx, name, all, kwargs) })
	}
	kinds, err := argKinds(tx, args)
	if err != nil {
		return nil, err
	}
	kind, err := tx.World().methodResult(tx.Scope(), name, len(args), KwNames(kwargs), kinds)
	if err != nil {
		return nil, err
	}
	if kind.kind == givesInline {
		return t.inlineMethod(tx, name, all, kwargs)
	}
	return t.recordMethod(tx, name, kind, all, kwargs)
}

// foresee returns a Python value of the tensor that follows from sizes, or that a guard computes again in each call.
func (t *TensorVariable) foresee(tx Translator, ask string) (VariableTracker, bool, error) {
	if ask == "item" || ask == "int" || ask == "index" {
		if size, ok := tx.Output().ValueBySizes(t); ok {
			return NewSize(tx, size), true, nil
		}
	}
	v, ok, err := tx.Output().Foresee(tx, t, ask)
	return NewConstant(v, nil), ok, err
}

// toPython handles methods that return a Python value computed from data. It breaks the graph, unless the value can be
// precomputed.
func (t *TensorVariable) toPython(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if ask, ok := foreseen[name]; ok && len(args)+len(kwargs) == 0 {
		if v, ok, err := t.foresee(tx, ask); ok || err != nil {
			return v, err
		}
	}
	if len(args)+len(kwargs) == 0 {
		if name == "numpy" {
			return t.array(tx, py.Object{}, "")
		}
		if v, ok, err := t.runTimeValue(tx, name); ok || err != nil {
			return v, err
		}
	}
	if name == "equal" || name == "allclose" {
		all := append([]VariableTracker{t}, args...)
		if v, ok, err := t.numberOfMethod(tx, name, result{kind: givesBool}, all, kwargs); ok || err != nil {
			return v, err
		}
	}
	return nil, unsupported(exc.TensorToPython, "%s()", name)
}

// knownMethod handles methods that have a handler written in Go. It returns false for other methods.
func (t *TensorVariable) knownMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (r VariableTracker, known bool, err error) {
	switch {
	case name == "as_subclass" && len(kwargs) == 0:
		r, err = t.asSubclass(tx, py.Object{}, args)
	case name == "type" && len(args)+len(kwargs) == 0:
		r, err = t.typeName(tx)
	case name == "__getitem__" && len(args) == 1 && len(kwargs) == 0:
		r, err = t.plainItem(tx, args[0])
	case name == "__setitem__" && len(args) == 2 && len(kwargs) == 0:
		r, err = NoneConst(), t.plainStore(tx, args[0], args[1])
	default:
		return nil, false, nil
	}
	return r, true, err
}

// inlineMethod inlines a method of the tensor's class that is written in Python. all holds the tensor, followed by the
// arguments.
func (t *TensorVariable) inlineMethod(tx Translator, name string, all []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	fn, ok := tx.Scope().TypeLookup(t.class(tx), name)
	if !ok || fn.Kind() != py.Function {
		return nil, unsupported(exc.CallUnsupported, "Tensor.%s", name)
	}
	return tx.Inline(NewFunction(fn, nil), all, kwargs)
}

// recordMethod adds a node for a method whose result is of the given kind. all holds the tensor, followed by the
// arguments.
func (t *TensorVariable) recordMethod(tx Translator, name string, kind result, all []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if v, ok, err := t.numberOfMethod(tx, name, kind, all, kwargs); ok || err != nil {
		return v, err
	}
	if err := recordable(tx, name, kind, all[1:]); err != nil {
		return nil, err
	}
	inplace := kind.kind == givesSelf || strings.HasSuffix(name, "_") && !strings.HasPrefix(name, "__")
	if inplace || isDunder(name) && strings.HasPrefix(name, "__i") {
		if err := t.mayChange(tx, name); err != nil {
			return nil, err
		}
	}
	if err := mayMakeLeaf(tx, "Tensor."+name, kwargs); err != nil {
		return nil, err
	}
	if name == "requires_grad_" {
		if err := t.mayRequireGrad(tx, all[1:], kwargs); err != nil {
			return nil, err
		}
	}
	add := func() (*fxgraph.Node, error) {
		if fn, overridden := t.overridden(tx, name); overridden && !tx.Output().WholeGraph() {
			return tx.Output().CallFunction(tx, fn, "torch.Tensor."+name, all, kwargs)
		}
		return tx.Output().CallMethod(tx, name, all, kwargs)
	}
	if !inplace {
		return wrapped(tx, kind, add)
	}
	node, err := add()
	if err != nil {
		return nil, err
	}
	t.change()
	node.Inplace = true
	return t, nil
}

// recordable breaks the graph for a method whose result is not, or may not be, a tensor.
func recordable(tx Translator, name string, kind result, args []VariableTracker) error {
	switch {
	case kind.kind == givesUnknown || kind.kind == givesScalar || kind.kind == givesObject:
		return unsupported(exc.UnknownResult, "Tensor.%s", name)
	case kind.number():
		return unsupported(exc.TensorToPython, "Tensor.%s", name)
	case isDunder(name) && !operandsOnly(tx, args): // the method may return NotImplemented
		return unsupported(exc.OperatorUnsupported, "Tensor.%s", name)
	}
	return nil
}

// KwNames returns the names of keyword arguments, in order.
func KwNames(kwargs []Kw) []string {
	out := make([]string, len(kwargs))
	for i, kw := range kwargs {
		out[i] = kw.Name
	}
	return out
}

// ofDtype maps a method to the attribute of the tensor's dtype that the method returns.
var ofDtype = map[string]string{
	"is_floating_point": "is_floating_point", "is_complex": "is_complex", "is_signed": "is_signed",
	"element_size": "itemsize",
}

// deviceIndex returns the result of get_device: the index of the device, -1 for the CPU and meta.
func (t *TensorVariable) deviceIndex(tx Translator, args []VariableTracker) (VariableTracker, bool, error) {
	if len(args) > 0 || tx.World().Calls > 0 {
		return nil, false, nil
	}
	m, err := t.Sizes(tx)
	if err != nil {
		return nil, true, err
	}
	t.Need(tx, "device")
	index, err := tx.Scope().GetAttr(m.Device, "index")
	if err == nil && index == pyNone {
		return IntConst(tx, -1), true, nil
	}
	return NewConstant(index, nil), true, err
}

// flagMethod handles methods that return a property of the dtype, or whether the tensor is contiguous.
func (t *TensorVariable) flagMethod(tx Translator, name string, args []VariableTracker) (VariableTracker, bool, error) {
	if len(args) > 0 || tx.World().Calls > 0 {
		return nil, false, nil
	}
	if name == "is_contiguous" {
		if holds, ok, err := t.contiguous(tx); ok || err != nil {
			return BoolConst(holds), true, err
		}
	}
	if !t.Example.IsNull() {
		fields := uint16(2 | 4)
		if name == "is_contiguous" {
			fields = 255
		}
		tx.Output().NeedField(t, fields)
	}
	if m, ok := tx.Output().Sizes(t); ok && ofDtype[name] != "" {
		t.Need(tx, "dtype")
		v, err := tx.Scope().GetAttr(m.Dtype, ofDtype[name])
		return NewConstant(v, nil), true, err
	}
	sample, err := tx.Output().Sample(t)
	if err != nil {
		return nil, true, err
	}
	v, err := tx.Scope().CallMethod(sample, name)
	if err != nil {
		return nil, true, observed(err)
	}
	return NewConstant(v, nil), true, nil
}

// metaMethod handles methods that only read metadata.
func (t *TensorVariable) metaMethod(tx Translator, name string, args []VariableTracker) (VariableTracker, bool, error) {
	switch name {
	case "size", "stride", "dim", "ndimension", "numel", "nelement", "__len__":
	case "get_device":
		return t.deviceIndex(tx, args)
	case "is_floating_point", "is_complex", "is_signed", "is_contiguous", "element_size":
		return t.flagMethod(tx, name, args)
	default:
		return nil, false, nil
	}
	if unknown := t.computedForeign(tx) && name == "size" && !t.knownForeign(tx); unknown && len(args) == 0 {
		return t.foreignMeta(tx, "shape")
	} else if unknown && len(args) == 1 {
		v, err := t.foreignSize(tx, args[0])
		return v, true, err
	}
	ask := t.Sizes
	if name == "stride" {
		sizes, strides, ok, err := tx.Output().Layout(t)
		if err == nil && ok {
			strides, err = t.reliableStrides(tx, sizes, strides, args)
		}
		if err != nil {
			return nil, true, err
		} else if ok {
			return sizesAsked(tx, strides, py.Object{}, args)
		}
		ask = t.Meta
	}
	if tx.Output().OnlyAtRunTime(t.Node) {
		if v, ok, err := t.countAtRunTime(tx, name); ok || err != nil {
			return v, true, err
		}
	}
	m, err := ask(tx)
	if err != nil {
		if v, ok, failed := t.countAtRunTime(tx, name); ok || failed != nil {
			return v, true, failed
		}
		return nil, true, err
	}
	switch name {
	case "dim", "ndimension":
		t.Need(tx, "ndim")
		return IntConst(tx, len(m.Shape)), true, nil
	case "numel", "nelement":
		t.Need(tx, "shape")
		n, err := numel(tx, m.Shape)
		return n, true, err
	case "__len__":
		if size, err := t.first(tx); size != nil || err != nil {
			return size, true, err
		}
		n, err := t.Len(tx)
		return IntConst(tx, n), true, err
	}
	vs, class := m.Shape, tx.World().SizeType
	if name == "stride" {
		vs, class = shapes.Sizes(m.Stride...), py.Object{}
		if vs, err = t.reliableStrides(tx, m.Shape, vs, args); err != nil {
			return nil, true, err
		}
		t.Need(tx, "stride")
	} else {
		t.Need(tx, "shape")
	}
	return sizesAsked(tx, vs, class, args)
}

// reliableStrides returns the strides of a tensor, those that may differ from eager mode's replaced by strides that the
// graph reads: in torch 2.15, FakeTensor has other strides than eager mode for dimensions of size 1 (x.view(1, 4) of a
// transposed column), and possibly for tensors without elements. args are those of stride(). Where a graph cannot read
// strides, it breaks.
func (t *TensorVariable) reliableStrides(tx Translator, sizes, strides []sym.Size,
	args []VariableTracker) ([]sym.Size, error) {
	if !t.Example.IsNull() && !t.Changed {
		return strides, nil
	}
	asked, one := 0, false
	if len(args) == 1 {
		if asked, one = ConstInt(tx, MustRealize(tx, args[0])); asked < 0 {
			asked += len(sizes)
		}
	}
	env, empty := tx.World().Env(), false
	doubtful := make([]bool, len(sizes))
	for i, s := range sizes {
		least := int64(2)
		if one && i != asked {
			least = 1
		}
		holds, err := decide(tx, env.Ge(s, sym.Const(least)))
		if err != nil {
			return nil, err
		}
		doubtful[i] = !holds
		if !holds && !empty {
			if empty, err = decide(tx, env.Eq(s, sym.Const(0))); err != nil {
				return nil, err
			}
		}
	}
	strides = slices.Clone(strides)
	for i := range strides {
		if !doubtful[i] && !empty || one && i != asked {
			continue
		}
		v := tx.Output().StrideAtRunTime(t, i)
		if v == nil {
			return nil, unsupported(exc.TensorMetadata, "the stride of a dimension of size 0 or 1 of %s", t.describe())
		}
		strides[i] = v.Size
	}
	return strides, nil
}

// sizesAsked returns the result of a method that returns all sizes or strides, or the one of the dimension that was
// passed. ok is false for other arguments.
func sizesAsked(tx Translator, vs []sym.Size, class py.Object, args []VariableTracker) (v VariableTracker, ok bool,
	err error) {
	if len(args) == 0 {
		return sizeTuple(tx, vs, class), true, nil
	}
	i, ok := ConstInt(tx, MustRealize(tx, args[0]))
	if !ok || len(args) > 1 {
		return nil, false, nil
	}
	if i < 0 {
		i += len(vs)
	}
	if i < 0 || i >= len(vs) {
		return nil, true, &exc.Observed{TypeName: "IndexError", Text: "Dimension out of range", Vague: true}
	}
	return NewSize(tx, vs[i]), true, nil
}

// contiguous returns the result of is_contiguous from expressions for sizes and strides. ok is false if there are none.
func (t *TensorVariable) contiguous(tx Translator) (holds, ok bool, err error) {
	sizes, strides, ok, err := tx.Output().Layout(t)
	if !ok || err != nil {
		return false, false, err
	}
	order := make([]int, len(sizes))
	for i := range order {
		order[i] = len(sizes) - 1 - i
	}
	if holds, ok, err = dense(tx, sizes, strides, order); err != nil || !ok || holds {
		return holds, ok, err
	}
	return t.hasNoElements(tx, sizes)
}

// dense reports whether the dimensions follow one another in memory in the given order, the innermost first. The stride
// of a dimension of size 1 does not matter. ok is false if the strides are too large.
func dense(tx Translator, sizes, strides []sym.Size, order []int) (holds, ok bool, err error) {
	env, expected := tx.World().Env(), sym.Const(1)
	for _, i := range order {
		as := env.Eq(strides[i], expected)
		if env.Ask(as) != sym.True {
			one, err := decide(tx, env.Eq(sizes[i], sym.Const(1)))
			if err != nil {
				return false, false, err
			}
			if !one {
				if same, err := decide(tx, as); err != nil || !same {
					return false, err == nil, err
				}
			}
		}
		if expected = env.Mul(expected, sizes[i]); expected.IsUnknown() {
			return false, false, nil
		}
	}
	return true, true, nil
}

// formatOrders has the orders of dimensions in memory for memory formats, the innermost first. Tensors of other ranks
// are not contiguous in such a format.
var formatOrders = map[string][]int{
	"torch.channels_last":    {1, 3, 2, 0},
	"torch.channels_last_3d": {1, 4, 3, 2, 0},
}

// contiguousIn returns the result of is_contiguous for a memory format. ok is false for other arguments.
func (t *TensorVariable) contiguousIn(tx Translator, format VariableTracker) (v VariableTracker, ok bool, err error) {
	value, known := AsConstant(tx, MustRealize(tx, format))
	if !known || tx.World().Calls > 0 {
		return nil, false, nil
	}
	repr := tx.Scope().Repr(value)
	if repr == "torch.contiguous_format" {
		return t.metaMethod(tx, "is_contiguous", nil)
	}
	order := formatOrders[repr]
	if order == nil {
		return nil, false, nil
	}
	if sizes, strides, ok, err := tx.Output().Layout(t); err != nil {
		return nil, false, err
	} else if ok {
		t.Need(tx, "ndim")
		if len(sizes) != len(order) {
			return BoolConst(false), true, nil
		}
		holds, ok, err := dense(tx, sizes, strides, order)
		return BoolConst(holds), ok, err
	}
	if !t.Example.IsNull() {
		t.Need(tx, "is_contiguous")
	}
	sample, err := tx.Output().Sample(t)
	if err != nil {
		return nil, false, err
	}
	method, err := tx.Scope().GetAttr(sample, "is_contiguous")
	if err != nil {
		return nil, false, observed(err)
	}
	r, err := tx.Scope().CallKw(method, []py.Object{value}, []string{"memory_format"})
	if err != nil {
		return nil, false, observed(err)
	}
	return NewConstant(r, nil), true, nil
}

func (t *TensorVariable) hasNoElements(tx Translator, sizes []sym.Size) (holds, ok bool, err error) {
	for _, s := range sizes {
		if empty, err := decide(tx, sym.Zero(s)); err != nil || empty {
			return empty, err == nil, err
		}
	}
	return false, true, nil
}

// GetItem implements ItemGetter.
func (t *TensorVariable) GetItem(tx Translator, key VariableTracker) (VariableTracker, error) {
	key, err := t.sliceBounds(tx, key)
	if err != nil {
		return nil, err
	}
	plain := func() (VariableTracker, error) { return t.plainItem(tx, key) }
	if r, ok, err := overriddenOperator(tx, "getitem", false, []VariableTracker{t, key}); ok || err != nil {
		return r, err
	}
	if r, ok, err := dispatchTorch(tx, tx.World().Operator("getitem"), []VariableTracker{t, key}, nil, plain); ok ||
		err != nil {
		return r, err
	}
	return plain()
}

// SetItem implements ItemSetter.
func (t *TensorVariable) SetItem(tx Translator, key, value VariableTracker) error {
	if value == nil {
		return unsupported(exc.StoreUnsupported, "del of a tensor's item")
	}
	key, err := t.sliceBounds(tx, key)
	if err != nil {
		return err
	}
	operands := []VariableTracker{t, key, value}
	plain := func() (VariableTracker, error) { return NoneConst(), t.plainStore(tx, key, value) }
	if _, ok, err := overriddenOperator(tx, "setitem", false, operands); ok || err != nil {
		return err
	}
	_, ok, err := dispatchTorch(tx, tx.World().Operator("setitem"), operands, nil, plain)
	if !ok && err == nil {
		_, err = plain()
	}
	return err
}

// plainItem runs Tensor.__getitem__ without calling a handler.
func (t *TensorVariable) plainItem(tx Translator, key VariableTracker) (VariableTracker, error) {
	fn, name := tx.World().Operator("getitem"), "operator.getitem"
	if own, overridden := t.overridden(tx, "__getitem__"); overridden && !tx.Output().WholeGraph() {
		fn, name = own, "torch.Tensor.__getitem__"
	}
	if asSymNode(tx, key) != nil && tx.Output().Unbacked() { // as a subscript, a compiler's symbol becomes a constant
		return wrapped(tx, result{kind: givesTensor}, func() (*fxgraph.Node, error) {
			return tx.Output().CallMethod(tx, "select", []VariableTracker{t, IntConst(tx, 0), key}, nil)
		})
	}
	return graphCall(tx, fn, name, []VariableTracker{t, key}, nil, result{kind: givesTensor})
}

// plainStore runs Tensor.__setitem__ without calling a handler.
func (t *TensorVariable) plainStore(tx Translator, key, value VariableTracker) error {
	fn, name := tx.World().Operator("setitem"), "operator.setitem"
	if own, overridden := t.overridden(tx, "__setitem__"); overridden && !tx.Output().WholeGraph() {
		fn, name = own, "torch.Tensor.__setitem__"
	}
	if err := t.mayChange(tx, "__setitem__"); err != nil {
		return err
	}
	node, err := tx.Output().CallFunction(tx, fn, name, []VariableTracker{t, key, value}, nil)
	if err == nil {
		node.Inplace = true
	}
	return err
}

// overridden returns torch.Tensor's method. ok is true if the tensor's class overrides it.
func (t *TensorVariable) overridden(tx Translator, name string) (py.Object, bool) {
	if t.Class.IsNull() || t.Class == tx.World().ParameterType {
		return py.Object{}, false
	}
	theirs, ok := tx.Scope().TypeLookup(tx.World().TensorType, name)
	own, _ := tx.Scope().TypeLookup(t.Class, name)
	return theirs, ok && own != theirs
}

func isDunder(name string) bool {
	return len(name) > 4 && strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__")
}

// operandsOnly reports whether the operators of tensors accept all of args.
func operandsOnly(tx Translator, args []VariableTracker) bool {
	for _, a := range args {
		if v, err := Argument(tx, a); err != nil || !IsTensor(v) && !isNumber(tx, v) && !isComputedNumber(tx, v) {
			return false
		}
	}
	return true
}
