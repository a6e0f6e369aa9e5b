package variables

import (
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// OpaqueVariable is a Python object of which nothing is known while translating: what a Python call in the graph
// returned, or an object of the frame that such a call may have changed (optimize's python_ops). Every operation on it
// is one more Python operation of the graph, at its place in program order. What depends on its value in the program's
// control flow breaks the graph.
type OpaqueVariable struct {
	Base
	Node *fxgraph.Node
	name string // of what was read, for reports: ".read"
}

// NewOpaque returns the object that a node computes or represents.
func NewOpaque(node *fxgraph.Node, name string) *OpaqueVariable {
	return &OpaqueVariable{Node: node, name: name}
}

// Kind implements VariableTracker.
func (*OpaqueVariable) Kind() string { return "OpaqueVariable" }

// Callee names the object as a callee in reports.
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
	return tx.Output().PythonOp(tx, "getitem", []VariableTracker{o, key}, nil)
}

// SetItem implements ItemSetter.
func (o *OpaqueVariable) SetItem(tx Translator, key, value VariableTracker) error {
	if value == nil {
		return pythonEffect(tx, "delitem", o, key)
	}
	return pythonEffect(tx, "setitem", o, key, value)
}

// Truth implements Truther: the program's control flow depends on what a Python call returned, and the graph breaks.
func (o *OpaqueVariable) Truth(Translator) (bool, error) {
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

// PythonBinary is a BINARY_OP done by Python.
func PythonBinary(tx Translator, op opcode.BinaryOp, a, b VariableTracker) (VariableTracker, error) {
	return tx.Output().PythonOp(tx, op.Function(), []VariableTracker{a, b}, nil)
}

// PythonCompare is a rich comparison done by Python.
func PythonCompare(tx Translator, op opcode.CompareOp, a, b VariableTracker) (VariableTracker, error) {
	return tx.Output().PythonOp(tx, op.Name(), []VariableTracker{a, b}, nil)
}

// PythonUnary is + (0), - (1), ~ (2) or not (3), done by Python.
func PythonUnary(tx Translator, op int, v VariableTracker) (VariableTracker, error) {
	name := "not_"
	if op < len(unaryNames) {
		name = unaryNames[op]
	}
	return tx.Output().PythonOp(tx, name, []VariableTracker{v}, nil)
}

// A Python call in the graph may change whatever it can reach, which is everything with a real object: what the frame
// was given, and what the program made and let out. Of such objects nothing that is known of their inside holds any
// longer; they stay the objects they are, and are read by Python from then on.

// current is v as it may be used at this place of the program.
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

// changeable recognizes objects that other code can reach and change.
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
		return x.Src != nil && py.Is(x.Class, py.HeapType)
	case *DictViewVariable:
		return changeable(x.dict)
	}
	return reachable(v)
}

// reachable recognizes values with a real object: from then on other code may hold it.
func reachable(v VariableTracker) bool { return Materialized(v) || v.base().outside != nil }

// withinChanged recognizes kinds that stay known after a Python call, but not what is stored on them.
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

// holdsOpaque recognizes arguments that are opaque, or tuples and lists with such an item.
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

// KwValues are the values of keyword arguments, in order.
func KwValues(kwargs []Kw) []VariableTracker {
	out := make([]VariableTracker, len(kwargs))
	for i, kw := range kwargs {
		out[i] = kw.Value
	}
	return out
}

// kwDict is the real dict of keyword arguments, whose values are given in their order.
func kwDict(s *py.Scope, kwargs []Kw, values []py.Object) (py.Object, error) {
	pairs := make([][2]py.Object, len(kwargs))
	for i, kw := range kwargs {
		pairs[i] = [2]py.Object{s.Name(kw.Name), values[i]}
	}
	return s.Dict(pairs...)
}

// onlyStored: how many leading arguments a builtin looks at; the others it hands on or stores.
var onlyStored = map[string]int{"setattr": 2, "getattr": 2, "next": 1, "slice": 0}

// looksAtOpaque recognizes calls of a builtin that Python does, since the builtin looks at an object of which nothing
// is known.
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

// lookedAt recognizes objects that may still be looked at after a Python call: they cannot change, or only their
// identity counts.
func lookedAt(tx Translator, obj py.Object) bool {
	switch obj.Kind() {
	case py.List, py.Dict, py.DictSub, py.SetKind, py.Module, py.Exception:
		return false
	case py.TypeKind, py.TypeSub:
		return !py.Is(obj, py.HeapType)
	case py.Other:
		w := tx.World()
		return w.IsTensor(obj) || w.IsTorchConstant(obj.Type()) || w.IsEnum(tx.Scope(), obj)
	}
	return true
}

// SetOutside makes v the object that a node of the graph has built: from then on it is known as that alone.
func SetOutside(v VariableTracker, o *OpaqueVariable) { v.base().outside = o }

// Outside is the object v has become for the graph, nil when it is known by itself.
func Outside(v VariableTracker) *OpaqueVariable { return v.base().outside }

// BuildsAnew names the operation that rebuilds a container of the program in the graph, and its operands; "" for other
// values.
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
