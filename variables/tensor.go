package variables

import (
	"slices"
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// TensorVariable is a tensor: a node of the graph. Its metadata is computed only when the program asks.
type TensorVariable struct {
	Base
	Node    *fxgraph.Node
	Example py.Object // the real tensor of a graph input; zero for what the graph computes
	Class   py.Object // zero: torch.Tensor
	Real    py.Object // of an input of a subclass, whose example is a plain tensor: the object itself
	meta    *TensorMeta
	sizes   *TensorMeta                // by rules: without strides and requires_grad
	Changed bool                       // an in-place operation ran on it: the example no longer tells its metadata
	attrs   map[string]VariableTracker // Python attributes that the program has stored
	known   map[string]VariableTracker // and those that it has read
	made    *TensorVariable            // what _torch_function.as_subclass was given, and may have given back
}

// TensorMeta is what a program may ask of a tensor besides its data. Sizes in elements.
type TensorMeta struct {
	Shape, Stride         []int
	Dtype, Device, Layout py.Object
	RequiresGrad          bool
}

// NewTensor returns the tensor a node computes.
func NewTensor(node *fxgraph.Node) *TensorVariable { return &TensorVariable{Node: node} }

// NewTensorInput returns the tensor of a graph input; obj is the real one.
func NewTensorInput(node *fxgraph.Node, obj py.Object, src guards.Source) *TensorVariable {
	return &TensorVariable{Base: Base{Src: src}, Node: node, Example: obj}
}

func isTensor(v VariableTracker) bool {
	switch v.(type) {
	case *TensorVariable:
		return true
	}
	return false
}

// Kind implements VariableTracker.
func (*TensorVariable) Kind() string { return "TensorVariable" }

// AsProxy implements Proxy.
func (t *TensorVariable) AsProxy(tx Translator) (fxgraph.Arg, error) {
	if handled, err := t.handled(tx); err != nil || handled {
		return nil, unsupported(exc.TensorSubclass, "an operation on a %s", py.TypeName(t.class(tx)))
	}
	return t.Node, nil
}

// PythonType implements Typed.
func (t *TensorVariable) PythonType(tx Translator) (py.Object, error) {
	if tx.World().Casts > 0 && t.Src == nil {
		return py.Object{}, unsupported(exc.TensorMetadata, "type of %s, where Python calls return tensors", t.describe())
	}
	if len(t.classes(tx)) > 1 {
		return py.Object{}, unsupported(exc.TensorSubclass, "type of %s, which may be an operand", t.describe())
	}
	return t.class(tx), nil
}

// class is the type whose methods the tensor has.
func (t *TensorVariable) class(tx Translator) py.Object {
	if !t.Class.IsNull() {
		return t.Class
	}
	return tx.World().TensorType
}

// Truth implements Truther: it depends on data, so the step loop splits the frame.
func (t *TensorVariable) Truth(tx Translator) (bool, error) {
	if v, ok, err := tx.Output().Foresee(tx, t, "bool"); ok || err != nil {
		return v == py.True(), err
	}
	return false, &exc.Unsupported{Code: exc.DataDependentBranch, Context: t.describe(), DataDependent: true}
}

func (t *TensorVariable) describe() string {
	if t.Src != nil {
		return "tensor " + t.Src.Name()
	}
	return "result of " + t.Node.Target.Text
}

// Meta returns the metadata, computed once, as long as no in-place operation has changed it.
func (t *TensorVariable) Meta(tx Translator) (*TensorMeta, error) {
	if tx.World().Calls > 0 {
		return nil, unsupported(exc.TensorMetadata, "%s, which a Python call may have changed", t.describe())
	}
	if !t.exemplified() {
		tx.World().Asked.Meta++
	}
	if t.meta == nil {
		m, err := tx.Output().Meta(tx, t)
		if err != nil {
			return nil, err
		}
		t.meta = m
	}
	return t.meta, nil
}

// exemplified tells inputs whose real tensor still has their metadata.
func (t *TensorVariable) exemplified() bool { return !t.Example.IsNull() && !t.Changed }

// change says that an operation ran on it in place: nothing that was known of it need be so still.
func (t *TensorVariable) change() { t.meta, t.sizes, t.Changed = nil, nil, true }

// Sizes is Meta without strides and requires_grad: by rules where they have an answer.
func (t *TensorVariable) Sizes(tx Translator) (*TensorMeta, error) {
	if t.meta != nil || tx.World().Calls > 0 || t.exemplified() {
		return t.Meta(tx)
	}
	tx.World().Asked.Sizes++
	if t.sizes == nil {
		m, ok := tx.Output().Sizes(t)
		if !ok {
			return t.Meta(tx)
		}
		t.sizes = m
	}
	return t.sizes, nil
}

// sameTensor decides `is` between two tensors: one node, one object; an input against what the graph computed afresh differs,
// unless an operation may hand its argument through.
func (t *TensorVariable) sameTensor(tx Translator, o *TensorVariable) (bool, error) {
	if t.Node == o.Node {
		return true, nil
	}
	if t.Src != nil && o.Src != nil {
		tx.Output().AddGuards(noAlias(t.Src, o.Src))
		return false, nil
	}
	later := t
	if o.Src == nil && (t.Src != nil || o.Node.Index > t.Node.Index) {
		later = o
	}
	if later.isNew(tx) {
		return false, nil
	}
	return false, unsupported(exc.OperatorUnsupported, "identity of two tensors")
}

// Len implements Lener.
func (t *TensorVariable) Len(tx Translator) (int, error) {
	if handled, err := t.handled(tx); err != nil {
		return 0, err
	} else if handled {
		v, err := t.torchMethod(tx, "__len__", nil, nil)
		if err != nil {
			return 0, err
		}
		if n, ok := ConstInt(tx, v); ok {
			return n, nil
		}
		return 0, unsupported(exc.TensorSubclass, "len of a %s", py.TypeName(t.Class))
	}
	m, err := t.Sizes(tx)
	if err != nil {
		return 0, err
	}
	if len(m.Shape) == 0 {
		t.need(tx, "ndim")
		return 0, &exc.Observed{TypeName: "TypeError", Text: "len() of a 0-d tensor"}
	}
	t.need(tx, "shape")
	return m.Shape[0], nil
}

// Items implements Sequence: what iterating a tensor gives, x.unbind(0), as Tensor.__iter__ does.
func (t *TensorVariable) Items(tx Translator) ([]VariableTracker, error) {
	if handled, err := t.handled(tx); err != nil {
		return nil, err
	} else if handled {
		it, err := t.torchMethod(tx, "__iter__", nil, nil)
		if err != nil {
			return nil, err
		}
		return Unpack(tx, it)
	}
	n, err := t.Len(tx)
	if e, ok := err.(*exc.Observed); ok {
		e.Text = "iteration over a 0-d tensor"
	}
	if err != nil {
		return nil, err
	}
	node, err := tx.Output().CallMethod(tx, "unbind", []VariableTracker{t, IntConst(tx, 0)}, nil)
	if err != nil {
		return nil, err
	}
	return (&TensorSequence{Node: node, n: n}).Items(tx)
}

func intTuple(tx Translator, vs []int, class py.Object) VariableTracker {
	items := make([]VariableTracker, len(vs))
	for i, v := range vs {
		items[i] = IntConst(tx, v)
	}
	if class.IsNull() {
		return NewTuple(items, nil)
	}
	return NewTupleOf(items, class, nil)
}

func product(vs []int) int {
	n := 1
	for _, v := range vs {
		n *= v
	}
	return n
}

// metaAttr answers attributes that are metadata.
func (t *TensorVariable) metaAttr(tx Translator, name string) (VariableTracker, bool, error) {
	ask := t.Sizes
	switch name {
	case "shape", "ndim", "dtype", "device", "layout":
	case "requires_grad":
		if ask = t.Meta; !t.exemplified() && tx.Output().ChangesTensors() {
			t.meta = nil // a view of it, or what it is a view of, may have been changed since it was asked
		}
	default:
		return nil, false, nil
	}
	m, err := ask(tx)
	if err != nil {
		return nil, true, err
	}
	t.need(tx, name)
	if name == "requires_grad" {
		tx.World().Asked.Changes++
		if differs, err := tx.Output().GradFlagMayDiffer(t, m.RequiresGrad); differs || err != nil {
			if err == nil {
				err = unsupported(exc.TensorMetadata, "requires_grad of %s, behind an operation in place on a tensor that may share its memory", t.describe())
			}
			return nil, true, err
		}
	}
	switch name {
	case "shape":
		return intTuple(tx, m.Shape, tx.World().SizeType), true, nil
	case "ndim":
		return IntConst(tx, len(m.Shape)), true, nil
	case "dtype":
		return NewConstant(m.Dtype, nil), true, nil
	case "device":
		return NewConstant(m.Device, nil), true, nil
	case "layout":
		return NewConstant(m.Layout, nil), true, nil
	}
	return BoolConst(m.RequiresGrad), true, nil
}

// fields of gd_tensor_spec that each question rests on.
var neededFields = map[string]uint16{
	"shape": 32 | 64, "ndim": 32, "dtype": 4, "device": 8, "layout": 2, "requires_grad": 16, "stride": 32 | 64 | 128, "": 32 | 64,
	"is_contiguous": 32 | 64 | 128,
}

func (t *TensorVariable) need(tx Translator, what string) {
	fields, ok := neededFields[what]
	if !ok {
		fields = neededFields[""]
	}
	tx.Output().NeedField(t, fields)
}

// asksForDtype tells classes such as torch.FloatTensor, of which a tensor is an instance by its dtype, layout and device.
func asksForDtype(tx Translator, class py.Object) bool {
	if class.Kind() != py.Tuple {
		return strings.HasSuffix(py.TypeName(class.Type()), "tensortype")
	}
	return slices.ContainsFunc(tx.Scope().Items(class), func(c py.Object) bool { return asksForDtype(tx, c) })
}

// flagAttrs are boolean attributes that follow from the device, dtype and layout alone: asked of the example or a fake.
var flagAttrs = map[string]bool{
	"is_cuda": true, "is_cpu": true, "is_meta": true, "is_sparse": true, "is_mkldnn": true, "is_quantized": true,
	"is_nested": true, "is_mps": true, "is_xpu": true, "itemsize": true, "nbytes": true,
}

// flag answers a flag of a computed tensor whose sizes come from rules, which know dense strided tensors alone.
func (t *TensorVariable) flag(tx Translator, name string) (VariableTracker, bool) {
	if t.meta != nil || !t.Example.IsNull() {
		return nil, false
	}
	m, ok := tx.Output().Sizes(t)
	if !ok {
		return nil, false
	}
	t.need(tx, "device")
	switch name {
	case "is_sparse", "is_mkldnn", "is_quantized", "is_nested":
		return BoolConst(false), true
	case "is_cuda", "is_cpu", "is_meta", "is_mps", "is_xpu":
		kind, ok := py.Answered(tx.Scope().GetAttr(m.Device, "type"))
		return BoolConst(py.GoString(kind) == name[len("is_"):]), ok
	}
	return nil, false
}

// tensorAttrs are attributes whose value is a tensor made from this one.
var tensorAttrs = map[string]bool{"T": true, "mT": true, "H": true, "mH": true, "real": true, "imag": true, "data": true}

// GetAttr implements AttrGetter.
func (t *TensorVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	if name == "__class__" {
		c, err := t.PythonType(tx)
		return NewClass(c, nil), err
	}
	if v, ok, err := t.ownAttr(tx, name); ok || err != nil {
		return v, err
	}
	return t.torchAttr(tx, name)
}

// plainAttr is an attribute that torch.Tensor has, where no handler is called.
func (t *TensorVariable) plainAttr(tx Translator, name string) (VariableTracker, error) {
	if v, ok, err := t.metaAttr(tx, name); ok {
		return v, err
	}
	if tensorAttrs[name] {
		node, err := tx.Output().CallFunction(tx, tx.World().GetAttrBuiltin, "builtins.getattr", []VariableTracker{t, StrConst(tx, name)}, nil)
		if err != nil {
			return nil, err
		}
		return NewTensor(node), nil
	}
	if flagAttrs[name] && tx.World().Calls == 0 {
		if v, ok := t.flag(tx, name); ok {
			return v, nil
		}
		if !t.Example.IsNull() {
			tx.Output().NeedField(t, 255)
		}
		sample, err := tx.Output().Sample(t)
		if err != nil {
			return nil, err
		}
		v, err := tx.Scope().GetAttr(sample, name)
		if err != nil {
			return nil, observed(err)
		}
		return immutableResult(tx, v)
	}
	class := t.class(tx)
	d, ok := tx.Scope().TypeLookup(class, name)
	if !ok {
		return nil, unsupported(exc.AttrUnsupported, "%s of a tensor", name)
	}
	switch d.Kind() {
	case py.MethodDescr, py.WrapperDescr, py.Function:
		return &BoundBuiltin{obj: t, name: name}, nil
	case py.ClassMethod:
		return bindClassAttr(tx, t, class, name, d, guards.NewTypeAttrSource(classSource(tx, class), name))
	}
	return nil, unsupported(exc.AttrUnsupported, "%s of a tensor", name)
}

// tensorToPython are methods whose result depends on data.
var tensorToPython = map[string]bool{
	"item": true, "tolist": true, "numpy": true, "__bool__": true, "__int__": true, "__float__": true, "__index__": true,
	"__complex__": true, "equal": true, "allclose": true, "is_nonzero": true, "__array__": true, "__len__": false,
}

// foreseen are those whose result Output.Foresee may know.
var foreseen = map[string]string{"item": "item", "__bool__": "bool", "__int__": "int", "__float__": "float"}

// CallMethod implements MethodCaller.
func (t *TensorVariable) CallMethod(tx Translator, name string, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if fn, ok := tx.Scope().TypeLookup(tx.World().TensorType, name); !t.Class.IsNull() && t.Class != tx.World().ParameterType {
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

// torchMethod is a method that torch.Tensor has, whatever the tensor's class has under its name.
func (t *TensorVariable) torchMethod(tx Translator, name string, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if fn, ok := tx.Scope().TypeLookup(tx.World().TensorType, name); ok && name != "as_subclass" {
		again := func() (VariableTracker, error) { return t.plainMethod(tx, name, args, kwargs) }
		if name == "__iter__" { // what it iterates over are plain tensors
			again = nil
		}
		if r, ok, err := dispatchTorch(tx, fn, append([]VariableTracker{t}, args...), kwargs, again); ok || err != nil {
			return r, err
		}
	}
	return t.plainMethod(tx, name, args, kwargs)
}

// plainMethod is a method of torch.Tensor's, where no handler is called.
func (t *TensorVariable) plainMethod(tx Translator, name string, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
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
	}
	if len(kwargs) == 0 {
		if v, ok, err := t.metaMethod(tx, name, args); ok {
			return v, err
		}
	}
	all := append([]VariableTracker{t}, args...)
	if kind, ok, err := placesKind(tx, name, all, kwargs); ok || err != nil {
		if err != nil {
			return nil, err
		}
		node, err := tx.Output().CallMethod(tx, name, all, kwargs)
		if err != nil {
			return nil, err
		}
		return wrapNode(tx, node, kind)
	}
	kinds, err := argKinds(tx, args)
	if err != nil {
		return nil, err
	}
	kind, err := tx.World().MethodKind(tx.Scope(), name, len(args), kwNames(kwargs), kinds)
	if err != nil {
		return nil, err
	}
	if kind == "inline" {
		return t.inlineMethod(tx, name, all, kwargs)
	}
	return t.recordMethod(tx, name, kind, all, kwargs)
}

// toPython is a method that returns Python values computed at run time: it splits, unless they can be predicted.
func (t *TensorVariable) toPython(tx Translator, name string, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if ask, ok := foreseen[name]; ok && len(args)+len(kwargs) == 0 {
		if v, ok, err := tx.Output().Foresee(tx, t, ask); ok || err != nil {
			return NewConstant(v, nil), err
		}
	}
	return nil, unsupported(exc.TensorToPython, "%s()", name)
}

// knownMethod is a method that has code of its own here; false for others.
func (t *TensorVariable) knownMethod(tx Translator, name string, args []VariableTracker, kwargs []Kw) (r VariableTracker, known bool, err error) {
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

// inlineMethod is a method in Python, of the tensor's class; all: the tensor and the arguments.
func (t *TensorVariable) inlineMethod(tx Translator, name string, all []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	fn, ok := tx.Scope().TypeLookup(t.class(tx), name)
	if !ok || fn.Kind() != py.Function {
		return nil, unsupported(exc.CallUnsupported, "Tensor.%s", name)
	}
	return tx.Inline(NewFunction(fn, nil), all, kwargs)
}

// recordMethod makes a node of a method whose result has this kind; all: the tensor and the arguments.
func (t *TensorVariable) recordMethod(tx Translator, name, kind string, all []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if err := recordable(tx, name, kind, all[1:]); err != nil {
		return nil, err
	}
	inplace := kind == "self" || strings.HasSuffix(name, "_") && !strings.HasPrefix(name, "__")
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
	var node *fxgraph.Node
	var err error
	if fn, overridden := t.overridden(tx, name); overridden && !tx.Output().WholeGraph() {
		node, err = tx.Output().CallFunction(tx, fn, "torch.Tensor."+name, all, kwargs)
	} else {
		node, err = tx.Output().CallMethod(tx, name, all, kwargs)
	}
	if err != nil {
		return nil, err
	}
	if inplace {
		t.change()
		node.Inplace = true
		return t, nil
	}
	return wrapNode(tx, node, kind)
}

// recordable refuses methods whose results are no tensors, or not known to be.
func recordable(tx Translator, name, kind string, args []VariableTracker) error {
	switch {
	case kind == "unknown" || kind == "scalar" || kind == "object":
		return unsupported(exc.UnknownResult, "Tensor.%s", name)
	case isPythonNumberKind(kind):
		return unsupported(exc.TensorToPython, "Tensor.%s", name)
	case isDunder(name) && !operandsOnly(tx, args): // it may give NotImplemented
		return unsupported(exc.OperatorUnsupported, "Tensor.%s", name)
	}
	return nil
}

func isPythonNumberKind(kind string) bool { return kind == "int" || kind == "float" || kind == "bool" }

func kwNames(kwargs []Kw) []string {
	out := make([]string, len(kwargs))
	for i, kw := range kwargs {
		out[i] = kw.Name
	}
	return out
}

// ofDtype are methods that ask for an attribute of the dtype.
var ofDtype = map[string]string{
	"is_floating_point": "is_floating_point", "is_complex": "is_complex", "is_signed": "is_signed", "element_size": "itemsize",
}

// metaMethod answers methods that only ask for metadata.
func (t *TensorVariable) metaMethod(tx Translator, name string, args []VariableTracker) (VariableTracker, bool, error) {
	switch name {
	case "size", "stride", "dim", "ndimension", "numel", "nelement", "__len__":
	case "is_floating_point", "is_complex", "is_signed", "is_contiguous", "element_size":
		if len(args) > 0 || tx.World().Calls > 0 {
			return nil, false, nil
		}
		if !t.Example.IsNull() {
			tx.Output().NeedField(t, 255)
		}
		if m, ok := tx.Output().Sizes(t); ok && ofDtype[name] != "" {
			t.need(tx, "dtype")
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
	default:
		return nil, false, nil
	}
	ask := t.Sizes
	if name == "stride" {
		ask = t.Meta
	}
	m, err := ask(tx)
	if err != nil {
		return nil, true, err
	}
	switch name {
	case "dim", "ndimension":
		t.need(tx, "ndim")
		return IntConst(tx, len(m.Shape)), true, nil
	case "numel", "nelement":
		t.need(tx, "shape")
		return IntConst(tx, product(m.Shape)), true, nil
	case "__len__":
		n, err := t.Len(tx)
		return IntConst(tx, n), true, err
	}
	vs, class := m.Shape, tx.World().SizeType
	if name == "stride" {
		vs, class = m.Stride, py.Object{}
		t.need(tx, "stride")
	} else {
		t.need(tx, "shape")
	}
	if len(args) == 0 {
		return intTuple(tx, vs, class), true, nil
	}
	i, ok := ConstInt(tx, args[0])
	if !ok || len(args) > 1 {
		return nil, false, nil
	}
	if i < 0 {
		i += len(vs)
	}
	if i < 0 || i >= len(vs) {
		return nil, true, &exc.Observed{TypeName: "IndexError", Text: "Dimension out of range", Vague: true}
	}
	return IntConst(tx, vs[i]), true, nil
}

// GetItem implements ItemGetter.
func (t *TensorVariable) GetItem(tx Translator, key VariableTracker) (VariableTracker, error) {
	plain := func() (VariableTracker, error) { return t.plainItem(tx, key) }
	if r, ok, err := overriddenOperator(tx, "getitem", false, []VariableTracker{t, key}); ok || err != nil {
		return r, err
	}
	if r, ok, err := dispatchTorch(tx, tx.World().Operator("getitem"), []VariableTracker{t, key}, nil, plain); ok || err != nil {
		return r, err
	}
	return plain()
}

// SetItem implements ItemSetter.
func (t *TensorVariable) SetItem(tx Translator, key, value VariableTracker) error {
	if value == nil {
		return unsupported(exc.StoreUnsupported, "del of a tensor's item")
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

// plainItem is Tensor.__getitem__, where no handler is called.
func (t *TensorVariable) plainItem(tx Translator, key VariableTracker) (VariableTracker, error) {
	fn, name := tx.World().Operator("getitem"), "operator.getitem"
	if own, overridden := t.overridden(tx, "__getitem__"); overridden && !tx.Output().WholeGraph() {
		fn, name = own, "torch.Tensor.__getitem__"
	}
	return graphCall(tx, fn, name, []VariableTracker{t, key}, nil, "tensor")
}

// plainStore is Tensor.__setitem__, where no handler is called.
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

// overridden is the method of torch.Tensor's that the tensor's class has another one in the place of.
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

// operandsOnly tells arguments that operators of tensors take.
func operandsOnly(tx Translator, args []VariableTracker) bool {
	for _, a := range args {
		if v, err := Realize(tx, a); err != nil || !isTensor(v) && !isNumber(tx, v) && !isComputedNumber(tx, v) {
			return false
		}
	}
	return true
}

// tensorOperator adds the node of an operator with at least one tensor operand.
func tensorOperator(tx Translator, name string, inplace bool, operands ...VariableTracker) (VariableTracker, error) {
	operands = append([]VariableTracker(nil), operands...)
	for i, v := range operands {
		// Scalars of numpy's leave operators to the tensor, in front of it too; torch reads a numpy.bool as a float, and refuses to
		// multiply matrices by a scalar in words that name its type.
		if c, ok := v.(*ConstantVariable); ok && (tx.World().isNumpyBool(c.Value) || tx.World().isNumpy(c.Value) && name == "matmul") {
			return nil, unsupported(exc.OperatorUnsupported, "%s of %s and a tensor", name, Describe(tx, c))
		}
		if plain := plainNumber(tx, v); plain != v {
			class, err := PythonType(tx, v)
			if err != nil {
				return nil, err
			}
			c, known := AsConstant(tx, plain)
			if !known {
				return nil, unsupported(exc.OperatorUnsupported, "%s of %s and a tensor", name, Describe(tx, v))
			}
			k := c.Kind()
			if mayHandle(tx, class) || name == "matmul" || !isReal(c) && k != py.Complex {
				return nil, unsupported(exc.OperatorUnsupported, "%s of %s and a tensor", name, Describe(tx, v))
			}
			operands[i] = plain
		}
	}
	if r, ok, err := handledOperator(tx, name, inplace, operands); ok || err != nil {
		return r, err
	}
	return plainOperator(tx, name, inplace, operands)
}

// handledOperator is an operator on operands whose classes have special methods of their own, or handlers.
func handledOperator(tx Translator, name string, inplace bool, operands []VariableTracker) (VariableTracker, bool, error) {
	if r, ok, err := overriddenOperator(tx, name, inplace, operands); ok || err != nil {
		return r, ok, err
	}
	asked := name
	if _, ok := operands[0].(*TensorVariable); ok && inplace {
		asked = "i" + strings.TrimSuffix(name, "_")
	}
	fn := tx.World().operatorIfAny(asked)
	if fn.IsNull() {
		return nil, false, nil
	}
	again := func() (VariableTracker, error) { return plainOperator(tx, name, inplace, operands) }
	return dispatchTorch(tx, fn, operands, nil, again)
}

// plainOperator is an operator on tensors and numbers where no handler is called.
func plainOperator(tx Translator, name string, inplace bool, operands []VariableTracker) (VariableTracker, error) {
	for _, v := range operands {
		if !isTensor(v) && !isNumber(tx, v) && !isComputedNumber(tx, v) {
			return nil, unsupported(exc.OperatorUnsupported, "%s of a tensor and %s", name, Describe(tx, v))
		}
	}
	if inplace && name == "matmul" && !(isTensor(operands[0]) && isTensor(operands[1])) { // CPython's error names @=
		return nil, unsupported(exc.OperatorUnsupported, "@= of %s and %s", Describe(tx, operands[0]), Describe(tx, operands[1]))
	}
	t, self := operands[0].(*TensorVariable)
	if inplace && self {
		own := "i" + strings.TrimSuffix(name, "_")
		if _, inplace = tx.Scope().TypeLookup(tx.World().TensorType, "__"+own+"__"); inplace { // there is no __imatmul__
			name = own
			if err := t.mayChange(tx, "__"+own+"__"); err != nil {
				return nil, err
			}
		}
	}
	if err := numberOperands(tx, name, operands); err != nil {
		return nil, err
	}
	node, err := tx.Output().CallFunction(tx, tx.World().Operator(name), "operator."+name, operands, nil)
	if err != nil {
		return nil, err
	}
	if inplace && self {
		t.change()
		node.Inplace = true
		return t, nil
	}
	return NewTensor(node), nil
}

// plainNumber is the number that an instance of a subclass of int or float holds, members of IntEnum included: torch reads that.
func plainNumber(tx Translator, v VariableTracker) VariableTracker {
	v = valueOf(v)
	c, ok := v.(*ConstantVariable)
	if ok && tx.World().isNumpy(c.Value) {
		if o, ok := py.Answered(tx.Scope().CallMethod(c.Value, "item")); ok {
			return AddGuards(NewConstant(o, nil), c.Guards())
		}
	}
	if !ok || !tx.World().IsEnum(tx.Scope(), c.Value) {
		return v
	}
	for _, name := range []string{"int", "float"} {
		t := tx.World().Builtin(name)
		if py.IsSubtype(c.Value.Type(), t) {
			if o, ok := py.Answered(tx.Scope().Call(tx.World().plainValue, t, c.Value)); ok {
				return AddGuards(NewConstant(o, nil), c.Guards())
			}
		}
	}
	return v
}

func isNumber(tx Translator, v VariableTracker) bool {
	o, ok := AsConstant(tx, v)
	if !ok {
		return false
	}
	switch o.Kind() {
	case py.Int, py.Float, py.BoolKind, py.Complex:
		return true
	case py.Other:
		return py.IsSubtype(o.Type(), tx.World().Builtin("int"))
	}
	return false
}

// graphCall adds a call_function node and wraps its result.
func graphCall(tx Translator, fn py.Object, name string, args []VariableTracker, kwargs []Kw, kind string) (VariableTracker, error) {
	node, err := tx.Output().CallFunction(tx, fn, name, args, kwargs)
	if err != nil {
		return nil, err
	}
	return wrapNode(tx, node, kind)
}

// wrapNode makes the tracker of a node's result from its kind (see _translator/callables.py): "tensor", "tensors:N", "list", "none".
func wrapNode(tx Translator, node *fxgraph.Node, kind string) (VariableTracker, error) {
	switch {
	case kind == "tensor":
		return NewTensor(node), nil
	case kind == "none":
		node.Inplace = true
		return NoneConst(), nil
	case kind == "list":
		n, err := tx.Output().NodeValue(tx, node)
		if err != nil {
			return nil, err
		}
		count, _ := py.AsInt(n)
		return &TensorSequence{Node: node, n: int(count)}, nil
	case strings.HasPrefix(kind, "tensors:"):
		n := 0
		for _, c := range kind[len("tensors:"):] {
			n = n*10 + int(c-'0')
		}
		return &TensorSequence{Node: node, n: n}, nil
	}
	return nil, unsupported(exc.UnknownResult, "%s gives %s", node.Target.Text, kind)
}

// PythonType implements Typed.
func (t *TensorSequence) PythonType(tx Translator) (py.Object, error) {
	return tx.Output().NodeType(t.Node)
}

// TensorSequence is a tuple, list or named tuple of tensors that one operation returned; its items are getitem nodes.
type TensorSequence struct {
	Base
	Node  *fxgraph.Node
	Class py.Object // of the items; zero: torch.Tensor
	n     int
	items []VariableTracker
}

// Kind implements VariableTracker.
func (*TensorSequence) Kind() string { return "TensorSequence" }

// Items implements Sequence.
func (s *TensorSequence) Items(tx Translator) ([]VariableTracker, error) {
	if s.items == nil {
		for i := 0; i < s.n; i++ {
			v, err := graphCall(tx, tx.World().Operator("getitem"), "operator.getitem", []VariableTracker{s, IntConst(tx, i)}, nil, "tensor")
			if err != nil {
				return nil, err
			}
			if !s.Class.IsNull() {
				v.(*TensorVariable).become(tx, s.Class)
			}
			s.items = append(s.items, v)
		}
	}
	return s.items, nil
}

// Len implements Lener.
func (s *TensorSequence) Len(Translator) (int, error) { return s.n, nil }

// Truth implements Truther.
func (s *TensorSequence) Truth(Translator) (bool, error) { return s.n > 0, nil }

// AsProxy implements Proxy.
func (s *TensorSequence) AsProxy(Translator) (fxgraph.Arg, error) { return s.Node, nil }

// GetItem implements ItemGetter.
func (s *TensorSequence) GetItem(tx Translator, key VariableTracker) (VariableTracker, error) {
	items, err := s.Items(tx)
	if err != nil {
		return nil, err
	}
	t := NewTuple(items, nil)
	return sequenceItem(tx, t, t, key)
}

// GetAttr implements AttrGetter: fields of torch's named results (values, indices, ...).
func (s *TensorSequence) GetAttr(tx Translator, name string) (VariableTracker, error) {
	if strings.HasPrefix(name, "_") || name == "count" || name == "index" || name == "append" {
		return nil, unsupported(exc.AttrUnsupported, "%s of an operation's results", name)
	}
	v, err := graphCall(tx, tx.World().GetAttrBuiltin, "builtins.getattr", []VariableTracker{s, StrConst(tx, name)}, nil, "tensor")
	if err == nil && !s.Class.IsNull() {
		v.(*TensorVariable).become(tx, s.Class)
	}
	return v, err
}
