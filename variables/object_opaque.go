package variables

import (
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// OpaqueVariable represents a Python object whose type and value are unknown while translating. Such an object is the
// result of a Python call in the graph, or was passed to the frame and may have been changed by such a call (option
// `python_ops`). Every operation on it becomes another Python operation of the graph, in program order. Control flow
// that depends on its value breaks the graph.
type OpaqueVariable struct {
	Base
	Node *fxgraph.Node
	name string // the attribute that was read, for reports: ".read"
	// foreign marks the result or operand of a foreign operation (fxgraph.Node.Foreign), which needs no `python_ops`.
	foreign bool
	// sizes marks the sizes of a foreign tensor, a torch.Size whose length is unknown.
	sizes bool
	// part is what the object is to a tensor: "grad_fn" or "storage" (tensor_parts.go), or the handle of a "hook"
	// (tensor_hooks.go). It is "" for other objects.
	part string
	// hooks counts the hook of a handle, if it is on an input; removed is set once the program has removed it.
	hooks   *leafHooks
	removed bool
}

// NewOpaque returns the tracker of an object that a node of the graph computes or represents.
func NewOpaque(node *fxgraph.Node, name string) *OpaqueVariable {
	return &OpaqueVariable{Node: node, name: name}
}

// Kind implements VariableTracker.
func (*OpaqueVariable) Kind() string { return "OpaqueVariable" }

// Callee returns the name that reports show when the object is called.
func (o *OpaqueVariable) Callee() string {
	if o.name != "" {
		return o.name
	}
	return o.Node.Target.Text
}

// Call implements Caller.
func (o *OpaqueVariable) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	return PythonCall(tx, o, args, kwargs)
}

// GetAttr implements AttrGetter.
func (o *OpaqueVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	_, number := partCalls[o.part][name]
	if o.foreign && foreignObjectMethods[name] || number || o.part == "grad_fn" && name == "name" ||
		o.part == "hook" && name == "remove" {
		return &BoundBuiltin{obj: o, name: name}, nil
	}
	return PythonAttr(tx, o, name)
}

// SetAttr implements AttrSetter.
func (o *OpaqueVariable) SetAttr(tx Translator, name string, value VariableTracker) error {
	if value == nil {
		return pythonEffect(tx, "delattr", o, StrConst(tx, name))
	}
	return pythonEffect(tx, "setattr", o, StrConst(tx, name), value)
}

// GetItem implements ItemGetter.
func (o *OpaqueVariable) GetItem(tx Translator, key VariableTracker) (VariableTracker, error) {
	if v, err := o.foreignSize(tx, key); v != nil || err != nil {
		return v, err
	}
	return tx.Output().PythonOp(tx, "getitem", []VariableTracker{o, key}, nil)
}

// SetItem implements ItemSetter.
func (o *OpaqueVariable) SetItem(tx Translator, key, value VariableTracker) error {
	if value == nil {
		return pythonEffect(tx, "delitem", o, key)
	}
	return pythonEffect(tx, "setitem", o, key, value)
}

// Truth implements Truther. It breaks the graph, since control flow would depend on the result of a Python call.
func (o *OpaqueVariable) Truth(Translator) (bool, error) {
	if o.part == "grad_fn" || o.part == "hook" {
		return true, nil
	}
	return false, &exc.Unsupported{Code: exc.DataDependentBranch, Context: "result of " + o.Callee(),
		DataDependent: true}
}

// PythonCall puts fn(*args, **kwargs) into the graph as a Python call.
func PythonCall(tx Translator, fn VariableTracker, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	return tx.Output().PythonOp(tx, PythonCallOp, append([]VariableTracker{fn}, args...), kwargs)
}

// PythonAttr puts obj.name into the graph as a Python operation.
func PythonAttr(tx Translator, obj VariableTracker, name string) (VariableTracker, error) {
	v, err := tx.Output().PythonOp(tx, "getattr", []VariableTracker{obj, StrConst(tx, name)}, nil)
	if err != nil {
		return nil, err
	}
	v.name = "." + name
	return v, nil
}

func pythonEffect(tx Translator, op string, args ...VariableTracker) error {
	_, err := tx.Output().PythonOp(tx, op, args, nil)
	return err
}

// PythonCallOp is the name of the operation whose first operand is the callee.
const PythonCallOp = "PyObjectCall"

func isOpaque(v VariableTracker) bool {
	_, ok := v.(*OpaqueVariable)
	return ok
}

// isPart reports whether v is an object that torch has made for a tensor.
func isPart(v VariableTracker) bool {
	o, ok := v.(*OpaqueVariable)
	return ok && o.part != ""
}

// PythonBinary adds a BINARY_OP to the graph as a Python operation.
func PythonBinary(tx Translator, op opcode.BinaryOp, a, b VariableTracker) (VariableTracker, error) {
	return tx.Output().PythonOp(tx, op.Function(), []VariableTracker{a, b}, nil)
}

// PythonCompare adds a rich comparison to the graph as a Python operation.
func PythonCompare(tx Translator, op opcode.CompareOp, a, b VariableTracker) (VariableTracker, error) {
	return tx.Output().PythonOp(tx, op.Name(), []VariableTracker{a, b}, nil)
}

// PythonUnary adds + (0), - (1), ~ (2) or not (3) to the graph as a Python operation.
func PythonUnary(tx Translator, op int, v VariableTracker) (VariableTracker, error) {
	name := "not_"
	if op < len(unaryNames) {
		name = unaryNames[op]
	}
	return tx.Output().PythonOp(tx, name, []VariableTracker{v}, nil)
}

// A Python call in the graph may change every real object that it can reach: the frame's arguments, and objects that
// the program made and passed to other code. After the call, the contents of these objects are unknown, but not their
// identity. Later operations on them are Python operations of the graph.

// current returns the tracker to use for v at this point of the program.
func current(tx Translator, v VariableTracker) (VariableTracker, error) {
	if tx.World().Calls == 0 || v == nil {
		return v, nil
	}
	b := v.base()
	if b.outside == nil {
		if !changeable(v) {
			return v, nil
		}
		o, err := tx.Output().ObjectNode(tx, v)
		if err != nil {
			return nil, err
		}
		b.outside = o
	}
	return b.outside, nil
}

// changeable reports whether other code can reach and change v.
func changeable(v VariableTracker) bool {
	switch x := v.(type) {
	case *ConstantVariable, *RangeVariable, *TupleVariable, *SliceVariable, *TensorVariable, *TensorSequence,
		*OpaqueVariable,
		*FunctionVariable, *MethodVariable, *PartialVariable, *BoundBuiltin, *UnboundMethod, *BuiltinVariable,
		*TorchVariable, *CellVariable, *OptimizedVariable:
		return false
	case *SetVariable:
		return !x.frozen && reachable(v)
	case *ClassVariable:
		return x.Src != nil && py.Is(x.Class, py.Mutable)
	case *DictViewVariable:
		return changeable(x.dict)
	}
	return reachable(v)
}

// reachable reports whether v has a real object, which other code may hold.
func reachable(v VariableTracker) bool { return Materialized(v) || v.base().outside != nil }

// withinChanged reports whether v is of a kind that stays known after a Python call. Its attributes may still have
// changed.
func withinChanged(tx Translator, v VariableTracker) bool {
	if tx.World().Calls == 0 {
		return false
	}
	switch v.(type) {
	case *FunctionVariable, *MethodVariable, *PartialVariable, *BuiltinVariable, *TorchVariable, *OptimizedVariable:
		return true
	}
	return false
}

// holdsOpaque reports whether an argument is opaque, or is a tuple or list with an opaque item.
func holdsOpaque(tx Translator, vs ...VariableTracker) (bool, error) {
	for _, v := range vs {
		v, err := Realize(tx, v)
		if err != nil {
			return false, err
		}
		items := []VariableTracker(nil)
		switch x := v.(type) {
		case *OpaqueVariable:
			return true, nil
		case *TupleVariable:
			items = x.items
		case *ListVariable:
			items = x.items
		}
		if len(items) == 0 || tx.World().Enter() != nil {
			continue
		}
		found, err := holdsOpaque(tx, items...)
		tx.World().Leave()
		if err != nil || found {
			return found, err
		}
	}
	return false, nil
}

// KwValues returns the values of keyword arguments, in order.
func KwValues(kwargs []Kw) []VariableTracker {
	out := make([]VariableTracker, len(kwargs))
	for i, kw := range kwargs {
		out[i] = kw.Value
	}
	return out
}

// kwDict returns a real dict of keyword arguments. values holds their real values in the same order.
func kwDict(s *py.Scope, kwargs []Kw, values []py.Object) (py.Object, error) {
	pairs := make([][2]py.Object, len(kwargs))
	for i, kw := range kwargs {
		pairs[i] = [2]py.Object{s.Name(kw.Name), values[i]}
	}
	return s.Dict(pairs...)
}

// onlyStored maps a builtin to the number of leading arguments that it reads. The builtin stores its other arguments or
// passes them on, without reading them.
var onlyStored = map[string]int{"setattr": 2, "getattr": 2, "next": 1, "slice": 0}

// looksAtOpaque reports whether the builtin reads an opaque argument. Its call then becomes a Python operation.
func (b *BuiltinVariable) looksAtOpaque(tx Translator, args []VariableTracker) (bool, error) {
	if !tx.World().PythonOps {
		return false, nil
	}
	n, ok := onlyStored[b.name]
	if !ok || n > len(args) {
		n = len(args)
	}
	for _, a := range args[:n] {
		if l, ok := a.(*LazyVariable); ok && l.real == nil && tx.World().Calls == 0 {
			continue
		}
		a, err := Realize(tx, a)
		if err != nil {
			return false, err
		}
		if isOpaque(a) {
			return true, nil
		}
	}
	return false, nil
}

// lookedAt reports whether an object may be read while translating, even after a Python call: the object cannot change,
// or only its identity matters.
func lookedAt(tx Translator, obj py.Object) bool {
	switch obj.Kind() {
	case py.List, py.Dict, py.DictSub, py.SetKind, py.Module, py.Exception:
		return false
	case py.TypeKind, py.TypeSub:
		return !py.Is(obj, py.Mutable)
	case py.Other:
		w := tx.World()
		return w.IsTensor(obj) || w.IsTorchConstant(obj.Type()) || w.IsEnum(tx.Scope(), obj)
	}
	return true
}

// SetOutside replaces v with an object that a node of the graph builds. From then on, v is known only as that object.
func SetOutside(v VariableTracker, o *OpaqueVariable) { v.base().outside = o }

// Outside returns the object that replaces v in the graph, or nil if there is none.
func Outside(v VariableTracker) *OpaqueVariable { return v.base().outside }

// BuildsAnew returns the operation and operands that rebuild v, a container made by the program, in the graph. It
// returns "" for other values.
func BuildsAnew(v VariableTracker) (op string, parts [][]VariableTracker) {
	if Materialized(v) {
		return "", nil
	}
	switch x := v.(type) {
	case *ListVariable:
		return "build_list", [][]VariableTracker{x.items}
	case *DictVariable:
		if x.class.IsNull() && x.owner == nil {
			return "build_dict", [][]VariableTracker{x.keys, x.values}
		}
	case *SetVariable:
		if !x.frozen {
			return "build_set", [][]VariableTracker{x.inHistory()}
		}
	}
	return "", nil
}
