package variables

import (
	"slices"
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// TensorVariable represents a tensor in the graph. The translator computes its metadata when the program first reads
// them.
type TensorVariable struct {
	Base
	Node      *fxgraph.Node
	Example   py.Object // the real tensor of a graph input; zero for a tensor that the graph computes
	Class     py.Object // zero means torch.Tensor
	Real      py.Object // for an input of a subclass, the input itself; Example is then a plain tensor
	meta      *TensorMeta
	sizes     *TensorMeta                // metadata from shape rules; lacks strides and requires_grad
	Changed   bool                       // changed in place: Example no longer has the tensor's metadata
	attrs     map[string]VariableTracker // Python attributes that the program has stored
	known     map[string]VariableTracker // Python attributes that the program has read
	backwards int                        // how many calls of backward() known["grad"] comes after
	gradUsed  bool                       // whether anything but zero_grad has read the gradient
	retained  *fxgraph.Node              // the program's first call of retain_grad(); nil if there is none
	retains   bool                       // whether the tensor is no leaf, and keeps its gradient since that call
	// made is set if as_subclass (_translator/torch_function) made this tensor: it is the argument, which as_subclass
	// may return itself.
	made *TensorVariable
}

// TensorMeta is a tensor's metadata: everything that a program may read of it except its data. Sizes and strides are
// in elements.
type TensorMeta struct {
	Shape                 []sym.Size
	Stride                []int
	Dtype, Device, Layout py.Object
	RequiresGrad          bool
}

// NewTensor returns the tracker of a tensor that a node computes.
func NewTensor(node *fxgraph.Node) *TensorVariable { return &TensorVariable{Node: node} }

// NewTensorInput returns the tracker of a graph input. obj is the real tensor.
func NewTensorInput(node *fxgraph.Node, obj py.Object, src guards.Source) *TensorVariable {
	return &TensorVariable{Base: Base{Src: src}, Node: node, Example: obj}
}

// IsTensor reports whether v is a tensor of the graph.
func IsTensor(v VariableTracker) bool {
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
		return py.Object{}, unsupported(exc.TensorMetadata, "type of %s, where Python calls return tensors",
			t.describe())
	}
	if t.unknownClass(tx) {
		among, err := t.foreignClasses(tx)
		if err == nil && len(among) > 1 {
			err = t.unknownForeign("type")
		}
		if err != nil {
			return py.Object{}, err
		}
		return among[0], nil
	}
	if len(t.classes(tx)) > 1 {
		return py.Object{}, unsupported(exc.TensorSubclass, "type of %s, which may be an operand", t.describe())
	}
	return t.class(tx), nil
}

// class returns the type that defines the tensor's methods.
func (t *TensorVariable) class(tx Translator) py.Object {
	if !t.Class.IsNull() {
		return t.Class
	}
	return tx.World().TensorType
}

// Truth implements Truther. The value depends on data, so Truth breaks the graph unless the value can be precomputed.
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

// Meta returns the metadata. It is computed once, and again after an in-place operation changes the tensor.
func (t *TensorVariable) Meta(tx Translator) (*TensorMeta, error) {
	if tx.World().Calls > 0 {
		return nil, unsupported(exc.TensorMetadata, "%s, which a Python call may have changed", t.describe())
	}
	if !t.exemplified() {
		tx.World().Asked.Meta++
	}
	if t.computedForeign(tx) {
		return nil, t.unknownForeign("metadata")
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

// exemplified reports whether t is an input that still has the metadata of its Example.
func (t *TensorVariable) exemplified() bool { return !t.Example.IsNull() && !t.Changed }

// change records an in-place operation on the tensor. It drops the metadata, which may no longer hold.
func (t *TensorVariable) change() { t.meta, t.sizes, t.Changed = nil, nil, true }

// Sizes returns the metadata without strides and requires_grad. It uses shape rules where they apply, else Meta.
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

// sameTensor reports whether two tensors are the same object. Tensors of one node are the same object. A guard checks
// that two inputs are distinct. A computed tensor is a new object, unless its operation may return an operand.
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
		t.Need(tx, "ndim")
		return 0, &exc.Observed{TypeName: "TypeError", Text: "len() of a 0-d tensor"}
	}
	t.Need(tx, "shape")
	n, err := Specialise(tx, m.Shape[0])
	return int(n), err
}

// first returns len(t), or nil if t is not a plain tensor or has no dimensions.
func (t *TensorVariable) first(tx Translator) (VariableTracker, error) {
	if handled, err := t.handled(tx); err != nil || handled {
		return nil, err
	}
	m, err := t.Sizes(tx)
	if err != nil || len(m.Shape) == 0 {
		return nil, err
	}
	t.Need(tx, "shape")
	return NewSize(tx, m.Shape[0]), nil
}

// Items implements Sequence: iterating a tensor yields x.unbind(0), as Tensor.__iter__ does.
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

// sizeTuple returns sizes as a torch.Size, or ints as a tuple if class is zero.
func sizeTuple(tx Translator, sizes []sym.Size, class py.Object) VariableTracker {
	items := make([]VariableTracker, len(sizes))
	for i, s := range sizes {
		items[i] = NewSize(tx, s)
	}
	if class.IsNull() {
		return NewTuple(items, nil)
	}
	return NewTupleOf(items, class, nil)
}

// numel returns the product of sizes.
func numel(tx Translator, sizes []sym.Size) (VariableTracker, error) {
	n, env := sym.Const(1), tx.World().Env()
	for _, s := range sizes {
		n = env.Mul(n, s)
	}
	if n.IsUnknown() {
		fixed, err := SpecialiseAll(tx, sizes)
		if err != nil {
			return nil, err
		}
		n = sym.Const(1)
		for _, k := range fixed {
			n = env.Mul(n, sym.Const(int64(k)))
		}
	}
	if n.IsUnknown() {
		return nil, unsupported(exc.TensorMetadata, "a number of elements beyond 64 bits")
	}
	return NewSize(tx, n), nil
}

// metaAttr returns an attribute that is metadata, such as shape. It returns false for other names.
func (t *TensorVariable) metaAttr(tx Translator, name string) (VariableTracker, bool, error) {
	if t.computedForeign(tx) && (name == "requires_grad" || !t.knownForeign(tx)) {
		return t.foreignMeta(tx, name)
	}
	switch name {
	case "shape", "ndim", "dtype", "device", "layout":
	case "requires_grad":
		v, err := t.gradFlag(tx)
		return v, true, err
	default:
		return nil, false, nil
	}
	m, err := t.Sizes(tx)
	if err != nil {
		return nil, true, err
	}
	t.Need(tx, name)
	switch name {
	case "shape":
		return sizeTuple(tx, m.Shape, tx.World().SizeType), true, nil
	case "ndim":
		return IntConst(tx, len(m.Shape)), true, nil
	case "dtype":
		return NewConstant(m.Dtype, nil), true, nil
	case "device":
		return NewConstant(m.Device, nil), true, nil
	}
	return NewConstant(m.Layout, nil), true, nil
}

// gradFlag returns requires_grad. The flag of a computed tensor is computed on each read, since an in-place operation
// on a view or its base may have changed it.
func (t *TensorVariable) gradFlag(tx Translator) (VariableTracker, error) {
	flag, err := t.requiresGrad(tx)
	if err != nil {
		return nil, err
	}
	t.Need(tx, "requires_grad")
	tx.World().Asked.Changes++
	differs, err := tx.Output().GradFlagMayDiffer(t, flag)
	if err == nil && differs {
		err = unsupported(exc.TensorMetadata,
			"requires_grad of %s, after an in-place operation on a tensor that may share its memory", t.describe())
	}
	if err != nil {
		return nil, err
	}
	return BoolConst(flag), nil
}

func (t *TensorVariable) requiresGrad(tx Translator) (bool, error) {
	if t.exemplified() {
		m, err := t.Meta(tx)
		return m != nil && m.RequiresGrad, err
	}
	if tx.World().Calls > 0 {
		return false, unsupported(exc.TensorMetadata, "%s, which a Python call may have changed", t.describe())
	}
	tx.World().Asked.Flags++
	return tx.Output().RequiresGrad(tx, t)
}

// neededFields maps an attribute or method to the fields of gd_tensor_spec that its result depends on.
var neededFields = map[string]uint16{
	"shape": 32 | 64, "ndim": 32, "dtype": 4, "device": 8, "layout": 2, "requires_grad": 16, "stride": 32 | 64 | 128,
	"":              32 | 64,
	"is_contiguous": 32 | 64 | 128,
}

func (t *TensorVariable) Need(tx Translator, what string) {
	fields, ok := neededFields[what]
	if !ok {
		fields = neededFields[""]
	}
	tx.Output().NeedField(t, fields)
}

// asksForDtype reports whether class is a legacy class such as torch.FloatTensor, or a tuple that contains one. The
// instances of a legacy class are the tensors of one dtype, layout and device.
func asksForDtype(tx Translator, class py.Object) bool {
	if class.Kind() != py.Tuple {
		return strings.HasSuffix(py.TypeName(class.Type()), "tensortype")
	}
	return slices.ContainsFunc(tx.Scope().Items(class), func(c py.Object) bool { return asksForDtype(tx, c) })
}

// flagAttrs are attributes that are read from the example or from a fake tensor. Flags, such as is_cuda, depend only on
// device, dtype and layout.
var flagAttrs = map[string]bool{
	"is_cuda": true, "is_cpu": true, "is_meta": true, "is_sparse": true, "is_mkldnn": true, "is_quantized": true,
	"is_nested": true, "is_mps": true, "is_xpu": true, "itemsize": true, "nbytes": true,
}

// nbytes returns the number of bytes of a dense tensor's elements, or nil if the rules do not yield its sizes.
func (t *TensorVariable) nbytes(tx Translator) (VariableTracker, error) {
	m, ok := tx.Output().Sizes(t)
	if !ok || tx.Scope().Repr(m.Layout) != "torch.strided" {
		return nil, nil
	}
	t.Need(tx, "shape")
	t.Need(tx, "dtype")
	each, err := tx.Scope().GetAttr(m.Dtype, "itemsize")
	if err != nil {
		return nil, err
	}
	n, env := sym.Const(1), tx.World().Env()
	for _, s := range m.Shape {
		n = env.Mul(n, s)
	}
	k, _ := py.AsInt(each)
	if n = env.Mul(n, sym.Const(k)); n.IsUnknown() {
		return nil, nil
	}
	return NewSize(tx, n), nil
}

// flag returns a flag of a computed tensor whose sizes come from shape rules, which cover dense strided tensors, or of
// a sparse gradient. It returns false for all other tensors.
func (t *TensorVariable) flag(tx Translator, name string) (VariableTracker, bool) {
	if t.meta != nil || !t.Example.IsNull() {
		return nil, false
	}
	m, ok := tx.Output().Sizes(t)
	if !ok {
		return nil, false
	}
	t.Need(tx, "device")
	switch name {
	case "is_sparse":
		return BoolConst(tx.Scope().Repr(m.Layout) == "torch.sparse_coo"), true
	case "is_mkldnn", "is_quantized", "is_nested":
		return BoolConst(false), true
	case "is_cuda", "is_cpu", "is_meta", "is_mps", "is_xpu":
		kind, ok := py.Answered(tx.Scope().GetAttr(m.Device, "type"))
		return BoolConst(py.GoString(kind) == name[len("is_"):]), ok
	}
	return nil, false
}

// tensorAttrs are attributes whose value is a tensor computed from the tensor itself.
var tensorAttrs = map[string]bool{"T": true, "mT": true, "H": true, "mH": true, "real": true, "imag": true,
	"data": true}

// GetAttr implements AttrGetter.
func (t *TensorVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	if name == "__class__" {
		c, err := t.exactType(tx)
		return NewClass(c, nil), err
	}
	if v, ok, err := t.foreignAttr(tx, name); ok || err != nil {
		return v, err
	}
	if v, ok, err := t.ownAttr(tx, name); ok || err != nil {
		return v, err
	}
	return t.torchAttr(tx, name)
}

// plainAttr returns an attribute of torch.Tensor without calling a __torch_function__ handler.
func (t *TensorVariable) plainAttr(tx Translator, name string) (VariableTracker, error) {
	if v, ok, err := t.metaAttr(tx, name); ok {
		return v, err
	}
	if tensorAttrs[name] {
		return graphCall(tx, tx.World().GetAttrBuiltin, "builtins.getattr",
			[]VariableTracker{t, StrConst(tx, name)}, nil, result{kind: givesTensor})
	}
	if flagAttrs[name] && tx.World().Calls == 0 {
		if v, ok := t.flag(tx, name); ok {
			return v, nil
		}
		if name == "nbytes" {
			if v, err := t.nbytes(tx); v != nil || err != nil {
				return v, err
			}
		}
		if !t.Example.IsNull() {
			fields := uint16(2 | 4 | 8)
			if name == "nbytes" {
				fields = 255
			}
			tx.Output().NeedField(t, fields)
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
	switch name {
	case "grad":
		return t.grad(tx)
	case "grad_fn":
		return t.gradFn(tx)
	case "is_leaf":
		leaf, err := t.isLeaf(tx)
		return BoolConst(leaf), err
	}
	if v, ok, err := t.part(tx, name); ok || err != nil {
		return v, err
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
