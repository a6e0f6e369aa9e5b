package variables

import (
	"cmp"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// A tensor of a user's class with a `__torch_dispatch__` (quantized weights and the like) is an input of the inline
// backend's graph. An operation on it runs once, as in eager mode: torch calls the class's code, which is not
// translated. So that nothing else that the translation knows changes, this code must change no object that it has not
// made (python/godynamo/_translator/dispatchers.py). The result is predicted to be a plain tensor that looks as if the
// operands were plain. A second operation checks this. If it is wrong, the frames go on in CPython after the call.

// AsDispatched is the operation that checks such a result.
const AsDispatched = "godynamo.as_dispatched"

// MakeWrapper is the operation that makes a tensor whose class dispatches operators in Python.
const MakeWrapper = "torch.Tensor._make_wrapper_subclass"

// dispatching is what one translation knows about tensors that dispatch operators in Python.
type dispatching struct {
	dispatchers map[*fxgraph.Node]py.Object // their nodes and classes
	predicting  int                         // whether the result of the operation that is being added is predicted
}

// DispatchedExample returns a plain tensor that looks like obj, a tensor of a class that dispatches operators in
// Python. It returns the zero Object for other tensors, and for those that cannot be captured.
func (w *World) DispatchedExample(s *py.Scope, obj py.Object) py.Object {
	if !w.truth(s, w.dispatchedClass, obj.Type()) {
		return py.Object{}
	}
	if example, ok := py.Answered(s.Call(w.dispatchedExample, obj)); ok && example != pyNone {
		return example
	}
	return py.Object{}
}

// ViewOfDispatched reports whether the tensor is a view of one of a class that dispatches operators in Python.
func (w *World) ViewOfDispatched(s *py.Scope, obj py.Object) bool {
	return w.truth(s, w.viewOfDispatched, obj)
}

// Dispatches records that a node's tensor is of a class that dispatches operators in Python.
func (w *World) Dispatches(n *fxgraph.Node, class py.Object) {
	if w.dispatchers == nil {
		w.dispatchers = map[*fxgraph.Node]py.Object{}
	}
	w.dispatchers[n] = class
}

// IsDispatched reports whether Dispatches was called for the node.
func (w *World) IsDispatched(n *fxgraph.Node) bool { return !w.dispatchers[n].IsNull() }

// Predicts reports whether the operation that is being added may have operands that dispatch operators in Python.
func (w *World) Predicts() bool { return w.predicting > 0 }

// dispatches reports whether the tensor's class dispatches operators in Python.
func (t *TensorVariable) dispatches(tx Translator) bool {
	return t.Node != nil && tx.World().IsDispatched(t.Node)
}

// dispatched returns the result of an operation with an operand that dispatches operators in Python, and adds the
// check of the result.
func dispatched(tx Translator, node *fxgraph.Node, gives result) (VariableTracker, error) {
	name := node.Target.Text
	refused := func(why string) error {
		return unsupported(exc.TensorSubclass, "%s of a tensor that dispatches operators in Python: %s", name, why)
	}
	if mode, err := activeMode(tx); err != nil || mode != nil {
		return nil, cmp.Or(err, refused("a function mode is active"))
	}
	if gives.kind != givesTensor || node.Foreign {
		return nil, refused("its result is no tensor")
	}
	s, w, out := tx.Scope(), tx.World(), tx.Output()
	question, given := name+" of", NewTuple(nil, nil)
	var failed error
	node.EachInput(func(in *fxgraph.Node) {
		if class := w.dispatchers[in]; !class.IsNull() && failed == nil {
			question += " " + py.TypeName(class)
			failed = handlersWithoutEffects(tx, class, refused)
		}
		given.items = append(given.items, NewForeign(in, ""))
	})
	if failed != nil {
		return nil, failed
	}
	w.Local = "code that a class calls for an operator may be edited"
	r := NewTensor(node)
	m, err := r.Sizes(tx)
	if err != nil {
		return nil, err
	}
	r.Need(tx, "shape")
	r.Need(tx, "dtype")
	grad, err := r.requiresGrad(tx)
	if err != nil {
		return nil, err
	}
	r.Need(tx, "requires_grad")
	if flat, err := out.IsContiguous(r); err != nil || !flat {
		return nil, cmp.Or(err, refused("its result is not contiguous"))
	}
	predictions, err := s.Import("godynamo._called.predictions")
	if err != nil {
		return nil, err
	}
	key, err := s.CallMethod(predictions, "declare", s.Str(question), s.Str("plain"))
	if err != nil || key == pyNone {
		return nil, cmp.Or(err, refused("its results change"))
	}
	src := guards.NewModuleAttrSource(guards.NewConstSource(out.Const(predictions), "___predictions"), "refuted")
	out.AddGuards(guards.DictContains(src, out.Const(key), false))
	module, err := s.Import("godynamo._called.dispatched")
	if err != nil {
		return nil, err
	}
	check, err := s.CallMethod(module, "as_dispatched", s.Str(question), key, m.Dtype, m.Device, py.Bool(grad))
	if err != nil {
		return nil, err
	}
	sizes := sizeTuple(tx, m.Shape, py.Object{})
	w.predicting++ // the check runs no operation on the tensors
	defer func() { w.predicting-- }()
	_, err = out.CallLeaving(tx, check, AsDispatched, []VariableTracker{NewForeign(node, ""), given, sizes},
		Leaving{Result: r, Node: node, Why: name})
	return r, err
}

// handlersWithoutEffects guards that a class's code has no effects on other objects. It returns a graph break if this
// code may have some.
func handlersWithoutEffects(tx Translator, class py.Object, refused func(string) error) error {
	why, err := tx.Scope().Call(tx.World().dispatchRefusal, class)
	if err != nil {
		return err
	}
	if text := py.GoString(why); text != "" {
		return refused(py.TypeName(class) + " may change other objects: " + text)
	}
	for _, name := range []string{"__torch_dispatch__", "__torch_function__"} {
		if d, ok := tx.Scope().TypeLookup(class, name); ok {
			src := guards.NewTypeAttrSource(classSource(tx, class), name)
			tx.Output().AddGuards(guards.IDMatch(src, tx.Output().Const(d), guards.KeepStrong))
		}
	}
	return nil
}

// madeWrapper handles torch.Tensor._make_wrapper_subclass(cls, size, strides=, dtype=, device=). It calls no handler.
// The tensor has no data and no attributes yet.
func madeWrapper(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	w, s := tx.World(), tx.Scope()
	class, ok := AsConstant(tx, MustRealize(tx, arg(args, 0)))
	if !ok || len(args) != 2 || tx.Output().WholeGraph() || tx.Output().InBody() ||
		!w.truth(s, w.dispatchedClass, class) {
		return nil, unsupported(exc.TensorSubclass, "%s", MakeWrapper)
	}
	looks := kwargs[:0:0]
	for _, kw := range kwargs {
		c, known := AsConstant(tx, MustRealize(tx, kw.Value))
		switch kw.Name {
		case "dtype", "device", "strides":
		case "requires_grad":
			if known && c == py.False() {
				continue
			}
			known = false
		case "layout":
			known = known && s.Repr(c) == "torch.strided"
		default:
			known = false
		}
		if !known && kw.Name != "strides" {
			return nil, unsupported(exc.TensorSubclass, "%s with %s", MakeWrapper, kw.Name)
		}
		looks = append(looks, kw)
	}
	operands := []VariableTracker{NewConstant(class, nil), args[1]}
	node, err := tx.Output().CallForeign(tx, w.makeWrapper, MakeWrapper, operands, looks)
	if err != nil {
		return nil, err
	}
	r := NewTensor(node)
	r.become(tx, class)
	w.Dispatches(node, class)
	_, err = r.Sizes(tx) // they are known, or the graph breaks here
	return r, err
}
