package variables

import (
	"math"
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Functions of torch.distributed communicate with other ranks, and their tensors may be of classes that dispatch
// operators in Python (DTensor, AsyncCollectiveTensor). Each call is one foreign operation of the graph
// (fxgraph.Node.Foreign). Its result is a tensor whose class and metadata are unknown, None, or an object with which
// the program can do little more than pass it on. python/godynamo/_translator/foreign.py lists the functions.

// foreignObjectMethods are the methods of the objects that foreign operations return: c10d.Work. None has none of
// them, so that the program raises as in CPython where no Work was returned.
var foreignObjectMethods = map[string]bool{"wait": true}

// NewForeign returns the tracker of an object that is the result or an operand of a foreign operation.
func NewForeign(node *fxgraph.Node, name string) *OpaqueVariable {
	return &OpaqueVariable{Node: node, name: name, foreign: true}
}

// AsProxy implements Proxy.
func (o *OpaqueVariable) AsProxy(Translator) (fxgraph.Arg, error) {
	if !o.foreign && o.part == "" {
		return nil, unsupported(exc.CallUnsupported, "the result of %s as an operand of the graph", o.Callee())
	}
	return o.Node, nil
}

// CallMethod implements MethodCaller.
func (o *OpaqueVariable) CallMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if o.foreign && foreignObjectMethods[name] {
		node, err := tx.Output().CallForeign(tx, py.Object{}, name, append([]VariableTracker{o}, args...), kwargs)
		if err != nil {
			return nil, err
		}
		node.Inplace = true
		return NewForeign(node, name+"()"), nil
	}
	if len(args)+len(kwargs) == 0 {
		if o.part == "hook" && name == "remove" {
			return o.removeHook(tx)
		}
		if v, ok, err := o.partMethod(tx, name); ok || err != nil {
			return v, err
		}
	}
	fn, err := o.GetAttr(tx, name)
	if err != nil {
		return nil, err
	}
	return Call(tx, fn, args, kwargs)
}

// callForeign adds a call of a function of torch.distributed. The detail of its kind is what the function returns.
func (t *TorchVariable) callForeign(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	switch t.detail {
	case "fsdp_before", "fsdp_after":
		return t.fsdpHook(tx, name, args)
	case "ddp_before":
		return ddpBefore(tx, name, args, kwargs)
	case "ddp_after":
		return ddpAfter(tx, name, args, kwargs)
	}
	gives, rest, _ := strings.Cut(t.detail, ":")
	if gives != "tensor" && tx.Output().InForeignBody() {
		return nil, unsupported(exc.CallUnsupported, "%s, in a function given to an operation", name)
	}
	node, err := tx.Output().CallForeign(tx, t.Fn, name, args, kwargs)
	if err != nil {
		return nil, err
	}
	if gives == "tensor" {
		tx.Output().ForeignRule(node, rest)
		return NewTensor(node), nil
	}
	node.Inplace = true
	if gives == "none" {
		return NoneConst(), nil
	}
	if gives == "work" {
		async := VariableTracker(BoolConst(false))
		if r, err := parseResult("tensors:" + rest); err == nil && r.n < len(args) {
			async = args[r.n]
		}
		for _, kw := range kwargs {
			if kw.Name == "async_op" {
				async = kw.Value
			}
		}
		if c, ok := AsConstant(tx, MustRealize(tx, async)); ok && c == py.Bool(false) {
			return NoneConst(), nil
		}
	}
	return NewForeign(node, name+"()"), nil
}

// factOf calls a function that reports something about a process group or, without an argument, about the default
// group. A guard repeats the call.
func (t *TorchVariable) factOf(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	given := append(append([]VariableTracker(nil), args...), KwValues(kwargs)...)
	if len(given) > 1 || len(kwargs) == 1 && kwargs[0].Name != "group" {
		return nil, nil
	}
	group, src := pyNone, guards.Source(nil)
	if len(given) == 1 {
		v := given[0]
		if l, ok := v.(*LazyVariable); ok && tx.World().ForeignOperand(tx.Scope(), l.obj) {
			group, src = l.obj, l.Src
		} else if c, ok := AsConstant(tx, MustRealize(tx, v)); ok && (c == pyNone || c.Kind() == py.Int) {
			group = c // GroupMember.NON_GROUP_MEMBER is an int
		} else {
			return nil, nil
		}
	}
	if src == nil {
		src = guards.NewConstSource(tx.Output().Const(group), "___group")
	}
	r, err := tx.Scope().Call(tx.World().factOf, t.Fn, group)
	if err != nil || r == pyNone {
		return nil, err
	}
	parts := tx.Scope().Items(r)
	tx.Output().AddGuards(guards.PyCheck(src, tx.Output().Const(parts[1]), name+"()"))
	return immutableResult(tx, parts[0])
}

// foreignProperty reads a property of a metaclass that torch.distributed computes: group.WORLD. It returns nil for
// other properties.
func (c *ClassVariable) foreignProperty(tx Translator, name string, property py.Object) (VariableTracker, error) {
	if property.Kind() != py.Property {
		return nil, nil
	}
	get, ok := py.Answered(tx.Scope().GetAttr(property, "fget"))
	if !ok || get.Kind() != py.Function {
		return nil, nil
	}
	if class, err := tx.World().classified(tx.Scope(), get); err != nil || class.kind != kindForeign {
		return nil, err
	}
	node, err := tx.Output().CallForeign(tx, tx.World().GetAttrBuiltin, "builtins.getattr",
		[]VariableTracker{NewConstant(c.Class, nil), StrConst(tx, name)}, nil)
	if err != nil {
		return nil, err
	}
	return NewForeign(node, "."+name), nil
}

// foreignConstant returns a constant that an attribute of a class of torch.distributed holds, such as ReduceOp.SUM. ok
// is false for other attributes.
func (c *ClassVariable) foreignConstant(tx Translator, name string) (v VariableTracker, ok bool) {
	w := tx.World()
	if c.Class.Type() == w.TypeType || !foreignMetaclass(c.Class) {
		return nil, false
	}
	o, found := tx.Scope().TypeLookup(c.Class, name)
	if !found || !w.foreignConstantType(o.Type()) {
		return nil, false
	}
	src := guards.NewTypeAttrSource(classSource(tx, c.Class), name)
	tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(o), guards.KeepStrong))
	return NewConstant(o, nil), true
}

// foreign reports whether the tensor is an input of a class that dispatches operators in Python, or is computed by a
// foreign operation.
func (t *TensorVariable) foreign() bool { return t.Node != nil && t.Node.Foreign }

// computedForeign reports whether a foreign operation has computed the tensor, so that its class is unknown.
func (t *TensorVariable) computedForeign(tx Translator) bool {
	return t.foreign() && t.Src == nil && !t.dispatches(tx)
}

// unknownClass reports whether the tensor's class is unknown.
func (t *TensorVariable) unknownClass(tx Translator) bool {
	return t.computedForeign(tx) && tx.Output().ForeignKind(t.Node) != "plain"
}

// foreignClasses returns the classes that a tensor of unknown class may have.
func (t *TensorVariable) foreignClasses(tx Translator) ([]py.Object, error) {
	r, err := tx.Scope().Call(tx.World().foreignClasses, tx.Scope().Name(tx.Output().ForeignKind(t.Node)))
	if err != nil {
		return nil, err
	}
	return tx.Scope().Items(r), nil
}

func (t *TensorVariable) unknownForeign(what string) error {
	return unsupported(exc.TensorMetadata, "%s of the %s, whose class computes it", what, t.describe())
}

// foreignAttr reads an attribute that the classes of foreign tensors define. ok is false for the attributes of
// torch.Tensor.
func (t *TensorVariable) foreignAttr(tx Translator, name string) (v VariableTracker, ok bool, err error) {
	switch gives, _ := t.foreignMember(tx, name); gives {
	case "":
		return nil, false, nil
	case "object":
		node, err := tx.Output().CallForeign(tx, tx.World().GetAttrBuiltin, "builtins.getattr",
			[]VariableTracker{t, StrConst(tx, name)}, nil)
		if err != nil {
			return nil, true, err
		}
		return NewForeign(node, "."+name), true, nil
	case "tensor":
		return &BoundBuiltin{obj: t, name: name}, true, nil
	}
	return nil, true, unsupported(exc.AttrUnsupported, "%s of the %s, whose class computes it", name, t.describe())
}

// knownForeign reports whether rules give the shape, dtype and device of a tensor that a foreign operation computed.
func (t *TensorVariable) knownForeign(tx Translator) bool {
	if tx.World().Calls > 0 {
		return false
	}
	_, known := tx.Output().Sizes(t)
	return known
}

// foreignMeta reads metadata of a tensor that a foreign operation has computed, if no rule gives them. The graph reads
// them at run time: sizes are ints without a hint, and a dtype or device can only be passed on.
func (t *TensorVariable) foreignMeta(tx Translator, name string) (VariableTracker, bool, error) {
	switch name {
	case "shape", "dtype", "device":
	case "ndim", "layout", "requires_grad":
		return nil, true, t.unknownForeign(name)
	default:
		return nil, false, nil
	}
	if !captures(tx, intNumber) {
		return nil, true, t.unknownForeign(name)
	}
	node, err := tx.Output().CallForeign(tx, tx.World().GetAttrBuiltin, "builtins.getattr",
		[]VariableTracker{t, StrConst(tx, name)}, nil)
	if err != nil {
		return nil, true, err
	}
	v := NewForeign(node, "."+name)
	v.sizes = name == "shape"
	return v, true, nil
}

// foreignSize returns one of a foreign tensor's sizes: t.size(dim).
func (t *TensorVariable) foreignSize(tx Translator, dim VariableTracker) (VariableTracker, error) {
	if _, ok := ConstInt(tx, dim); !ok || !captures(tx, intNumber) {
		return nil, t.unknownForeign("size")
	}
	node, err := tx.Output().CallForeign(tx, py.Object{}, "size", []VariableTracker{t, dim}, nil)
	if err != nil {
		return nil, err
	}
	return sizeAtRunTime(tx, node), nil
}

// foreignSize returns the size at a known index, or nil if o is not a foreign tensor's sizes.
func (o *OpaqueVariable) foreignSize(tx Translator, index VariableTracker) (VariableTracker, error) {
	if _, ok := ConstInt(tx, index); !ok || !o.sizes {
		return nil, nil
	}
	node, err := tx.Output().CallForeign(tx, tx.World().Operator("getitem"), "operator.getitem",
		[]VariableTracker{o, index}, nil)
	if err != nil {
		return nil, err
	}
	return sizeAtRunTime(tx, node), nil
}

// sizeAtRunTime returns the tracker of a foreign tensor's size. The number itself is not foreign: what is computed from
// it has metadata.
func sizeAtRunTime(tx Translator, node *fxgraph.Node) VariableTracker {
	node.Foreign = false
	return tx.Output().AtRunTime(node, nil, 0, math.MaxInt64)
}

// UnpackForeignSizes returns n sizes of a foreign tensor, or nil if v is something else. The graph raises CPython's
// exception if the tensor has another number of dimensions.
func UnpackForeignSizes(tx Translator, v VariableTracker, n int) ([]VariableTracker, error) {
	o, ok := v.(*OpaqueVariable)
	if !ok || !o.sizes {
		return nil, nil
	}
	m, err := tx.Scope().Import("godynamo._backends.python_ops")
	if err != nil {
		return nil, err
	}
	unpack, err := tx.Scope().GetAttr(m, "unpack")
	if err != nil {
		return nil, err
	}
	node, err := tx.Output().CallForeign(tx, unpack, "godynamo.unpack", []VariableTracker{o, IntConst(tx, n)}, nil)
	if err != nil {
		return nil, err
	}
	all := NewForeign(node, "")
	all.sizes = true
	items := make([]VariableTracker, n)
	for i := range items {
		if items[i], err = all.foreignSize(tx, IntConst(tx, i)); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// foreignMethod calls a method that the classes of foreign tensors define.
func (t *TensorVariable) foreignMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, bool, error) {
	switch gives, rule := t.foreignMember(tx, name); gives {
	case "":
		return nil, false, nil
	case "tensor":
		node, err := tx.Output().CallForeign(tx, py.Object{}, name, append([]VariableTracker{t}, args...), kwargs)
		if err != nil {
			return nil, true, err
		}
		tx.Output().ForeignRule(node, rule)
		return NewTensor(node), true, nil
	}
	return nil, true, unsupported(exc.CallUnsupported, "%s of the %s, whose class computes it", name, t.describe())
}

// foreignMember returns what _translator/foreign.member says of a name, and the rule for the result. It returns "" if
// the tensor is not foreign.
func (t *TensorVariable) foreignMember(tx Translator, name string) (gives, rule string) {
	if !t.foreign() || t.dispatches(tx) {
		return "", ""
	}
	r, ok := py.Answered(tx.Scope().Call(tx.World().foreignMember, tx.Scope().Name(name)))
	if !ok {
		return "unknown", ""
	}
	gives, rule, _ = strings.Cut(py.GoString(r), ":")
	return gives, rule
}

// ForeignClass reports whether tensors of the class are captured as foreign tensors.
func (w *World) ForeignClass(s *py.Scope, class py.Object) bool {
	return w.truth(s, w.foreignClass, class)
}

// ForeignOperand reports whether an object may be an operand of a foreign operation although nothing is known about it.
func (w *World) ForeignOperand(s *py.Scope, obj py.Object) bool {
	return w.truth(s, w.foreignOperand, obj)
}

// foreignMetaclass reports whether a class may be one of torch's classes that pybind11 makes.
func foreignMetaclass(class py.Object) bool {
	name := py.TypeName(class.Type())
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "CustomClassBaseMeta", "pybind11_type", "_ReduceOpMeta":
		return true
	}
	return false
}

// foreignConstantType reports whether typ is a type of torch.distributed's immutable values. The types found are kept
// for the process, since they never die.
func (w *World) foreignConstantType(typ py.Object) bool {
	if w.foreignConstants[typ.ID()] {
		return true
	}
	if !foreignMetaclass(typ) {
		return false
	}
	s := py.OpenScope()
	defer s.Close()
	if !w.truth(s, w.foreignConstant, typ) {
		return false
	}
	if w.foreignConstants == nil {
		w.foreignConstants = map[uint64]bool{}
	}
	w.foreignConstants[typ.ID()] = true
	return true
}
