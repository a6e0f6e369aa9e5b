package variables

import (
	"cmp"

	"slices"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// ArrayVariable is an array or a scalar of numpy that is known only at run time: it was passed to the frame, or a call
// of numpy in the graph returns it. Only the inline backend has such values. The graph's operations call numpy itself,
// in program order with torch's operations, since arrays and tensors may share memory.
//
// What the translation knows of the value is Sample: an object of the same type, dtype, shape, strides and flags, with
// other contents. No two trackers have the same sample.
type ArrayVariable struct {
	Base
	Node   *fxgraph.Node // computes the value, or represents the array that was passed to the frame
	Sample py.Object
}

// Kind implements VariableTracker.
func (*ArrayVariable) Kind() string { return "NumpyNdarrayVariable" }

// PythonType implements Typed.
func (a *ArrayVariable) PythonType(Translator) (py.Object, error) { return a.Sample.Type(), nil }

// Truth implements Truther. It breaks the graph, since control flow would depend on the array's contents.
func (a *ArrayVariable) Truth(Translator) (bool, error) {
	return false, &exc.Unsupported{Code: exc.DataDependentBranch, Context: a.describe(), DataDependent: true}
}

func (a *ArrayVariable) describe() string {
	if a.Src != nil {
		return "array " + a.Src.Name()
	}
	return "result of " + a.Node.Target.Text
}

// Len implements Lener.
func (a *ArrayVariable) Len(tx Translator) (int, error) {
	n, err := tx.Scope().Len(a.Sample)
	return n, observed(err)
}

// GetAttr implements AttrGetter.
func (a *ArrayVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	m, err := arrayModule(tx)
	if err != nil {
		return nil, err
	}
	s := tx.Scope()
	r, err := s.CallMethod(m, "attribute", a.Sample, s.Name(name))
	if err != nil {
		return nil, err
	}
	if r != pyNone {
		return arrayOutcome(tx, r, []*ArrayVariable{a}, func() (*fxgraph.Node, error) {
			return tx.Output().CallNumpy(tx, tx.World().GetAttrBuiltin, "builtins.getattr",
				[]VariableTracker{arrayNode(a.Node), StrConst(tx, name)}, nil)
		})
	}
	if d, ok := s.TypeLookup(a.Sample.Type(), name); ok {
		switch d.Kind() {
		case py.MethodDescr, py.WrapperDescr, py.Function:
			return &BoundBuiltin{obj: a, name: name}, nil
		}
	}
	return nil, unsupported(exc.AttrUnsupported, "%s of the %s", name, a.describe())
}

// CallMethod implements MethodCaller.
func (a *ArrayVariable) CallMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if len(args)+len(kwargs) == 0 {
		switch name {
		case "item":
			return a.number(tx, name, py.Object{})
		case "tolist":
			return a.listed(tx)
		case "__len__":
			n, err := a.Len(tx)
			return IntConst(tx, n), err
		}
	}
	if name == "__getitem__" && len(args) == 1 && len(kwargs) == 0 {
		return a.GetItem(tx, args[0])
	}
	c := arrayCall{name: name, method: true, args: append([]VariableTracker{a}, args...), kwargs: kwargs}
	m, err := arrayModule(tx)
	if err != nil {
		return nil, err
	}
	for table, inPlace := range map[string]bool{"METHODS": false, "CHANGING": true} {
		d, err := tx.Scope().GetAttr(m, table)
		if err != nil {
			return nil, err
		}
		if n, ok := tx.Scope().DictGetName(d, name); ok {
			data, _ := py.AsInt(n)
			c.data, c.inPlace = int(data)+1, inPlace
			return c.run(tx)
		}
	}
	return nil, unsupported(exc.CallUnsupported, "%s of the %s", name, a.describe())
}

// GetItem implements ItemGetter.
func (a *ArrayVariable) GetItem(tx Translator, key VariableTracker) (VariableTracker, error) {
	c := arrayCall{fn: tx.World().Operator("getitem"), name: "operator.getitem", args: []VariableTracker{a, key},
		data: 2, key: true, varying: true}
	return c.run(tx)
}

// SetItem implements ItemSetter.
func (a *ArrayVariable) SetItem(tx Translator, key, value VariableTracker) error {
	if value == nil || a.Sample.Type() != tx.World().arrayType {
		return unsupported(exc.StoreUnsupported, "item of the %s", a.describe())
	}
	c := arrayCall{fn: tx.World().Operator("setitem"), name: "operator.setitem",
		args: []VariableTracker{a, key, value}, data: 3, inPlace: true, varying: true}
	_, err := c.run(tx)
	return err
}

// numberKinds are the kinds of the names that _translator/arrays.number returns.
var numberKinds = map[string]number{"int": intNumber, "float": floatNumber, "bool": boolNumber}

// number captures a conversion of one element to a Python number: item(), int or float. fn is the builtin, if any.
func (a *ArrayVariable) number(tx Translator, of string, fn py.Object) (VariableTracker, error) {
	m, err := arrayModule(tx)
	if err != nil {
		return nil, err
	}
	r, err := tx.Scope().CallMethod(m, "number", a.Sample, tx.Scope().Name(of))
	if err != nil {
		return nil, err
	}
	if r == pyNone {
		return nil, unsupported(exc.CallUnsupported, "%s of the %s", of, a.describe())
	}
	kind := numberKinds[py.GoString(r)]
	if !captures(tx, kind) {
		return nil, unsupported(exc.CallUnsupported, "%s of the %s", of, a.describe())
	}
	name := of
	if !fn.IsNull() {
		name = "builtins." + of
	}
	node, err := tx.Output().CallNumpy(tx, fn, name, []VariableTracker{arrayNode(a.Node)}, nil)
	if err != nil {
		return nil, err
	}
	node.Foreign = false // what is computed from the number has metadata
	return numberFrom(tx, node, kind)
}

// listed captures tolist of a short vector.
func (a *ArrayVariable) listed(tx Translator) (VariableTracker, error) {
	refused := unsupported(exc.CallUnsupported, "tolist of the %s", a.describe())
	m, err := arrayModule(tx)
	if err != nil {
		return nil, err
	}
	r, err := tx.Scope().CallMethod(m, "listed", a.Sample, tx.Scope().Int(maxListed))
	if err != nil || r == pyNone {
		return nil, cmp.Or(err, refused)
	}
	parts := tx.Scope().Items(r)
	kind := numberKinds[py.GoString(parts[0])]
	if !captures(tx, kind) {
		return nil, refused
	}
	list, err := tx.Output().CallNumpy(tx, py.Object{}, "tolist", []VariableTracker{arrayNode(a.Node)}, nil)
	if err != nil {
		return nil, err
	}
	n, _ := py.AsInt(parts[1])
	items := make([]VariableTracker, n)
	for i := range items {
		item, err := tx.Output().CallFunction(tx, tx.World().Operator("getitem"), "operator.getitem",
			[]VariableTracker{&TensorSequence{Node: list, n: int(n)}, IntConst(tx, i)}, nil)
		if err != nil {
			return nil, err
		}
		item.Foreign = false // what is computed from the number has metadata
		if items[i], err = numberFrom(tx, item, kind); err != nil {
			return nil, err
		}
	}
	return NewList(items, nil), nil
}

// wrapArray returns the tracker of an array that was passed to the frame. The layout is guarded, the contents are not.
func wrapArray(w *wrapping) (VariableTracker, []guards.Guard, error) {
	tx, world := w.tx, w.tx.World()
	if w.obj.Type() != world.arrayType || !capturesArrays(tx) {
		return nil, nil, nil
	}
	m, err := arrayModule(tx)
	if err != nil {
		return nil, nil, err
	}
	r, err := tx.Scope().CallMethod(m, "sample", w.obj)
	if err != nil || r == pyNone {
		world.Local = notCaptured
		return nil, nil, err
	}
	parts := tx.Scope().Items(r)
	a := &ArrayVariable{Base: Base{Src: w.src}, Sample: parts[0]}
	a.Node = tx.Output().ArrayInput(a)
	return a, append(w.ofType(), guards.PyCheck(w.src, tx.Output().Const(parts[1]), py.GoString(parts[2]))), nil
}

// NewPassedScalar returns the tracker of a number of numpy that was passed to the frame and differs between calls. It
// returns nil for other values, and where numpy is not captured.
func NewPassedScalar(tx Translator, obj py.Object, src guards.Source) (VariableTracker, error) {
	if !tx.World().isNumpy(obj) || !capturesArrays(tx) {
		return nil, nil
	}
	m, err := arrayModule(tx)
	if err != nil {
		return nil, err
	}
	sample, err := tx.Scope().CallMethod(m, "passed_number", obj)
	if err != nil || sample == pyNone {
		return nil, err
	}
	a := &ArrayVariable{Base: Base{Src: src}, Sample: sample}
	a.Node = tx.Output().ArrayInput(a)
	tx.Output().AddGuards(guards.TypeMatch(src, tx.Output().Const(obj.Type())))
	return a, nil
}

// capturesArrays reports whether values of numpy may be in the graph.
func capturesArrays(tx Translator) bool {
	return !tx.World().PythonOps && (!tx.Output().WholeGraph() || tx.Output().RunsUnchanged())
}

// arrayModule returns the module godynamo._translator.arrays.
func arrayModule(tx Translator) (py.Object, error) {
	return tx.Scope().Import("godynamo._translator.arrays")
}

// asArray returns v if it is an ArrayVariable, and nil otherwise. It makes no lazy value known, unless it is an array.
func asArray(tx Translator, v VariableTracker) *ArrayVariable {
	if l, ok := v.(*LazyVariable); ok && !l.Realized() && l.obj.Type() == tx.World().arrayType {
		v = MustRealize(tx, v)
	}
	a, _ := Chosen(v).(*ArrayVariable)
	return a
}

// holdsArray reports whether v is an ArrayVariable, or a list or tuple with one among its items.
func holdsArray(tx Translator, v VariableTracker, depth int) bool {
	if asArray(tx, v) != nil {
		return true
	}
	var items []VariableTracker
	switch x := Chosen(v).(type) {
	case *ListVariable:
		items = x.items
	case *TupleVariable:
		items = x.items
	}
	return depth < maxNested && slices.ContainsFunc(items,
		func(it VariableTracker) bool { return holdsArray(tx, it, depth+1) })
}

// anyArray reports whether one of the values is an ArrayVariable.
func anyArray(tx Translator, vs ...VariableTracker) bool {
	for _, v := range vs {
		if asArray(tx, v) != nil {
			return true
		}
	}
	return false
}

// numpyDtype returns np.dtype(x) for a known x. It returns nil for other classes, and for dtypes that captured arrays
// do not have.
func numpyDtype(tx Translator, class py.Object, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if len(args) != 1 || len(kwargs) > 0 || py.TypeName(class) != "numpy.dtype" {
		return nil, nil
	}
	o, ok := AsConstant(tx, MustRealize(tx, args[0]))
	if !ok {
		return nil, nil
	}
	m, err := arrayModule(tx)
	if err != nil {
		return nil, err
	}
	dtype, err := tx.Scope().CallMethod(m, "dtype", class, o)
	if err != nil || dtype == pyNone {
		return nil, err
	}
	return NewConstant(dtype, nil), nil
}
