package variables

import (
	"cmp"
	"errors"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// This file handles attributes of tensors that torch does not define: attributes of a subclass, and those that programs
// store on a tensor.

// ownAttr returns an attribute that torch does not define. It returns false if torch.Tensor defines the name and the
// tensor's class does not override it.
func (t *TensorVariable) ownAttr(tx Translator, name string) (VariableTracker, bool, error) {
	s, class := tx.Scope(), t.class(tx)
	d, inClass := s.TypeLookup(class, name)
	base, inBase := s.TypeLookup(tx.World().TensorType, name)
	if inClass && inBase && d == base || class == tx.World().ParameterType && inClass {
		return nil, false, nil
	}
	read, _ := s.TypeLookup(class, "__getattribute__")
	if theirs, _ := s.TypeLookup(tx.World().TensorType, "__getattribute__"); read != theirs {
		return nil, true, unsupported(exc.AttrUnsupported, "%s of a %s: __getattribute__ is overridden", name,
			py.TypeName(class))
	}
	data := false
	if inClass {
		_, data = isDescriptor(tx, d)
	}
	if !data {
		if v, err := t.instanceAttr(tx, name); v != nil || err != nil {
			return v, true, err
		}
	}
	if inClass {
		v, err := bindClassAttr(tx, t, class, name, d, guards.NewTypeAttrSource(classSource(tx, class), name))
		return v, true, err
	}
	if hook, ok := s.TypeLookup(class, "__getattr__"); ok {
		if hook.Kind() != py.Function {
			return nil, true, unsupported(exc.AttrUnsupported, "%s of a %s: __getattr__", name, py.TypeName(class))
		}
		fn := tx.Build(hook, guards.NewTypeAttrSource(classSource(tx, class), "__getattr__"))
		v, err := Call(tx, fn, []VariableTracker{t, StrConst(tx, name)}, nil)
		return v, true, err
	}
	return nil, true, noAttribute(tx, class, name)
}

// instanceAttr returns an attribute that is stored on the tensor object, or nil if there is none.
func (t *TensorVariable) instanceAttr(tx Translator, name string) (VariableTracker, error) {
	if tx.World().Calls > 0 {
		return nil, unsupported(exc.AttrUnsupported, "%s of a tensor that a Python call may have changed", name)
	}
	if v := t.attrs[name]; v != nil {
		return v, nil
	}
	for _, o := range tx.World().tensorStores[name] {
		if o == t {
			continue
		}
		if same, err := t.sameTensor(tx, o); err != nil {
			return nil, err
		} else if same {
			return o.attrs[name], nil
		}
	}
	if v := t.known[name]; v != nil {
		return v, nil
	}
	real := t.real()
	if real.IsNull() {
		if !t.isNew(tx) && !operandsLack(tx, t.Node, name) {
			return nil, unsupported(exc.AttrUnsupported, "%s of %s, which may be an operand", name, t.describe())
		}
		return nil, nil
	}
	v, has := tx.Scope().InstanceAttr(real, name)
	tx.Output().AddGuards(guards.HasAttr(t.Src, name, has))
	if !has {
		return nil, nil
	}
	if t.known == nil {
		t.known = map[string]VariableTracker{}
	}
	t.known[name] = tx.Build(v, guards.NewAttrSource(t.Src, name))
	return t.known[name], nil
}

// real returns the real object of an input, or the zero Object for a computed tensor.
func (t *TensorVariable) real() py.Object {
	switch {
	case t.Src == nil:
		return py.Object{}
	case !t.Real.IsNull():
		return t.Real
	}
	return t.Example
}

// classes returns the possible types of the tensor. An operation that calls no handler may return an operand itself,
// which may be of a subclass.
func (t *TensorVariable) classes(tx Translator) []py.Object {
	out := []py.Object{t.class(tx)}
	w := tx.World()
	if len(w.nodeClass) == 0 || t.Src != nil || !t.Class.IsNull() {
		return out
	}
	seen := map[*fxgraph.Node]bool{}
	var visit func(n *fxgraph.Node)
	visit = func(n *fxgraph.Node) {
		if seen[n] || w.GivesNew(tx.Scope(), n.Target.Text) && n.Op != fxgraph.Placeholder {
			return
		}
		seen[n] = true
		for _, a := range n.Args {
			if from, ok := a.(*fxgraph.Node); ok {
				if c, ok := w.nodeClass[from]; ok {
					out = append(out, c)
				}
				visit(from)
			}
		}
	}
	visit(t.Node)
	return out
}

// parameters returns the inputs of type nn.Parameter that a computed tensor may be. Operations such as x.contiguous()
// and x.to(dtype) may return their operand itself.
func (t *TensorVariable) parameters(tx Translator) []*TensorVariable {
	w := tx.World()
	if t.Src != nil || !t.Class.IsNull() || t.Node == nil {
		return nil
	}
	var out []*TensorVariable
	seen := map[*fxgraph.Node]bool{}
	var visit func(n *fxgraph.Node)
	visit = func(n *fxgraph.Node) {
		if seen[n] {
			return
		}
		seen[n] = true
		if n.Op == fxgraph.Placeholder {
			if in := tx.Output().InputOf(n); in != nil && in.Class == w.ParameterType {
				out = append(out, in)
			}
			return
		}
		if n.Inplace || !w.GivesNew(tx.Scope(), n.Target.Text) {
			n.EachInput(visit)
		}
	}
	visit(t.Node)
	for _, p := range w.gathered {
		if seen[p.Node] {
			out = append(out, p)
		}
	}
	return out
}

// exactType returns the type of a computed tensor. It is torch.Tensor, or nn.Parameter if the tensor is an operand of
// that type.
func (t *TensorVariable) exactType(tx Translator) (py.Object, error) {
	class, err := t.PythonType(tx)
	if err != nil {
		return class, err
	}
	for _, p := range t.parameters(tx) {
		same, err := tx.Output().SameTensor(t.Node, p.Node)
		if err != nil {
			return class, unsupported(exc.TensorSubclass, "type of %s, which may be an operand", t.describe())
		}
		if same {
			return tx.World().ParameterType, nil
		}
	}
	return class, nil
}

// Becomes records that a node's tensor is of a subclass.
func (w *World) Becomes(n *fxgraph.Node, class py.Object) {
	if w.nodeClass == nil {
		w.nodeClass = map[*fxgraph.Node]py.Object{}
	}
	w.nodeClass[n] = class
}

// operandsLack reports whether the attribute is missing from all tensors that a node may return unchanged (x.to(dtype)
// returns x or a new tensor). It guards that.
func operandsLack(tx Translator, n *fxgraph.Node, name string) bool {
	tx.World().Asked.Origin++
	inputs := map[*TensorVariable]bool{}
	seen := map[*fxgraph.Node]bool{}
	known := true
	var visit func(n *fxgraph.Node)
	visit = func(n *fxgraph.Node) {
		if seen[n] || n.Op != fxgraph.Placeholder && !n.Inplace && tx.World().GivesNew(tx.Scope(), n.Target.Text) {
			return
		}
		seen[n] = true
		if n.Op != fxgraph.Placeholder {
			known = known && (n.Op == fxgraph.CallFunction || n.Op == fxgraph.CallMethod)
			n.EachInput(visit)
			return
		}
		in := tx.Output().InputOf(n)
		if in == nil || in.Src == nil {
			known = false
			return
		}
		if _, has := tx.Scope().InstanceAttr(in.real(), name); has {
			known = false
		}
		inputs[in] = true
	}
	visit(n)
	if !known {
		return false
	}
	for in := range inputs {
		tx.Output().AddGuards(guards.HasAttr(in.Src, name, false))
	}
	return true
}

// isNew reports whether an operation has created the tensor, so that it has no Python attributes yet.
func (t *TensorVariable) isNew(tx Translator) bool {
	tx.World().Asked.Origin++
	if t.Src != nil || t.Node.Inplace || t.Node.RunsOnce() && !t.dispatches(tx) {
		return false
	}
	if t.made != nil {
		return t.made.isNew(tx)
	}
	return tx.World().GivesNew(tx.Scope(), t.Node.Target.Text)
}

// SetAttr implements AttrSetter. A store of a Python attribute is replayed in program order.
func (t *TensorVariable) SetAttr(tx Translator, name string, value VariableTracker) error {
	s, class := tx.Scope(), t.class(tx)
	set, _ := s.TypeLookup(class, "__setattr__")
	theirs, _ := s.TypeLookup(tx.World().TensorType, "__setattr__")
	d, inClass := s.TypeLookup(class, name)
	data := false
	if inClass {
		_, data = isDescriptor(tx, d)
	}
	if name == "grad" && inClass && set == theirs && value != nil {
		return t.setGrad(tx, value)
	}
	if Stores[storeTarget(name)] != "" && inClass && set == theirs && value != nil {
		return t.setField(tx, name, d, value)
	}
	if data || set != theirs || value == nil || tx.World().Calls > 0 {
		return unsupported(exc.StoreUnsupported, "%s of a tensor", name)
	}
	if t.Src == nil && !t.isNew(tx) {
		return unsupported(exc.StoreUnsupported, "%s of %s, which may be an operand", name, t.describe())
	}
	if old := t.attrs[name]; old != nil {
		if err := lettingGo(tx, old); err != nil {
			return err
		}
	} else if real := t.real(); !real.IsNull() {
		if t.Src != nil {
			tx.Output().AddGuards(guards.QuietName(t.Src, name))
		}
		if v, ok := s.InstanceAttr(real, name); ok {
			if err := lettingGo(tx, NewLazy(v, nil)); err != nil {
				return err
			}
		}
	}
	if t.attrs == nil {
		t.attrs = map[string]VariableTracker{}
	}
	t.attrs[name] = value
	w := tx.World()
	if w.tensorStores == nil {
		w.tensorStores = map[string][]*TensorVariable{}
	}
	w.tensorStores[name] = append(w.tensorStores[name], t)
	w.Writes++
	w.Stored(value)
	return tx.Output().Effect(tx, []VariableTracker{t, value}, func(e Emitter) error {
		if err := LoadAll(e, []VariableTracker{value, t}); err != nil {
			return err
		}
		e.StoreAttr(name)
		return nil
	})
}

// changesItself lists methods that change more than a tensor's data. Called on an alias of a tensor, they leave the
// tensor itself unchanged.
var changesItself = map[string]bool{
	"t_": true, "transpose_": true, "swapaxes_": true, "swapdims_": true, "squeeze_": true, "unsqueeze_": true,
	"as_strided_": true,
	"resize_":     true, "resize_as_": true, "resize_as_sparse_": true, "set_": true, "requires_grad_": true,
	"detach_": true, "rename_": true,
	"share_memory_": true, "movedim_": true,
}

// mayChange breaks the graph at an in-place change that a compiled graph would not make as eager mode does. For
// example, a graph of plain tensors would change an alias instead of the tensor itself.
func (t *TensorVariable) mayChange(tx Translator, name string) error {
	if t.foreign() && (t.dispatches(tx) || !isDunder(name) && !shapes.KeepsSizes(name)) {
		return unsupported(exc.TensorSubclass, "%s of a tensor whose class computes it", name)
	}
	if leaf, err := t.changedAsLeaf(tx); err != nil || leaf {
		return cmp.Or(err, unsupported(exc.CallUnsupported,
			"%s of a leaf that requires gradients, in a graph that is compiled", name))
	}
	if err := t.hidesChange(tx, name); err != nil {
		return err
	}
	if !tx.Output().WholeGraph() || t.Class.IsNull() || t.Class == tx.World().ParameterType {
		return nil
	}
	refused := unsupported(exc.TensorSubclass, "%s of a %s, in a graph of plain tensors", name, py.TypeName(t.Class))
	if changesItself[name] {
		return refused
	}
	if on, err := tx.World().Recording(tx.Scope()); err != nil || !on {
		return err
	}
	if m, err := t.Meta(tx); err != nil || m.RequiresGrad {
		return refused
	}
	return nil
}

// hidesChange breaks the graph at an in-place change that autograd would see differently under AOTAutograd than in
// eager mode.
func (t *TensorVariable) hidesChange(tx Translator, name string) error {
	if !tx.Output().WholeGraph() {
		return nil
	}
	hidden, err := tx.Output().HidesChange(tx, t)
	if err == nil && hidden {
		err = unsupported(exc.CallUnsupported,
			"%s of a tensor that autograd has recorded, hidden from autograd, in a graph that is compiled", name)
	}
	return err
}

// changedAsLeaf reports whether eager mode raises for an in-place change because the tensor is a leaf that requires
// gradients, or a view of one. Under AOTAutograd the change would not raise, since the graph is functionalized first. A
// computed tensor may be a leaf that was passed to the frame: contiguous(), to() and similar operations may return
// their argument.
func (t *TensorVariable) changedAsLeaf(tx Translator) (bool, error) {
	if !tx.Output().WholeGraph() {
		return false, nil
	}
	if on, err := tx.World().Recording(tx.Scope()); err != nil || !on {
		return false, err
	}
	sample := t.Example // a leaf stays a leaf after in-place changes
	if sample.IsNull() {
		if tx.Output().IsOwn(t) || !tx.Output().TakesApart() {
			return false, nil
		}
		var err error
		if sample, err = tx.Output().Sample(t); err != nil {
			var unknown *exc.Unsupported
			if errors.As(err, &unknown) {
				err = nil // the tensor's size depends on data, so an operation created it
			}
			return false, err
		}
	}
	m, err := tx.Scope().Import("godynamo._backends.aot")
	if err != nil {
		return false, err
	}
	raises, err := tx.Scope().CallMethod(m, "of_a_leaf", sample)
	return err == nil && raises == py.True() && tx.Output().TakesApart(), err
}

// mayRequireGrad breaks the graph at a change of requires_grad if the backend decomposes operators. A compiler that
// differentiates the graph reads at the graph's start which inputs require gradients. A tensor that requires them later
// would be missed: results computed from it would have no history.
func (t *TensorVariable) mayRequireGrad(tx Translator, args []VariableTracker, kwargs []Kw) error {
	if !tx.Output().WholeGraph() {
		return nil
	}
	wanted := py.True()
	for _, v := range append(KwValues(kwargs), args...) {
		if c, ok := AsConstant(tx, MustRealize(tx, v)); ok {
			wanted = c
		}
	}
	m, err := t.Meta(tx)
	if _, unknown := err.(*exc.Unsupported); err != nil && !unknown {
		return err
	}
	if (err != nil || m.RequiresGrad != (wanted == py.True())) && tx.Output().TakesApart() {
		return unsupported(exc.CallUnsupported,
			"Tensor.requires_grad_ of a tensor that it changes, in a graph that is compiled")
	}
	return nil
}

// mayMakeLeaf breaks the graph at a call such as torch.ones(3, requires_grad=True), for the same reason as
// mayRequireGrad.
func mayMakeLeaf(tx Translator, name string, kwargs []Kw) error {
	for _, kw := range kwargs {
		if kw.Name != "requires_grad" || name == "Tensor.requires_grad_" || !tx.Output().WholeGraph() {
			continue
		}
		if c, ok := AsConstant(tx, MustRealize(tx, kw.Value)); (!ok || c != py.False() && c != pyNone) &&
			tx.Output().TakesApart() {
			return unsupported(exc.CallUnsupported, "%s with requires_grad=True, in a graph that is compiled", name)
		}
	}
	return nil
}

// hasAttr returns hasattr(t, name) for a name that torch.Tensor lacks.
func (t *TensorVariable) hasAttr(tx Translator, name string) (VariableTracker, error) {
	_, _, err := t.ownAttr(tx, name)
	if o, ok := err.(*exc.Observed); ok && o.TypeName == "AttributeError" {
		return BoolConst(false), nil
	}
	return BoolConst(true), err
}
