// Package eager implements the inline backend `eager`. It writes every operation of the graph into the transformed
// function, with the instructions that the user's code has for it. There is no GraphModule and no extra call.
package eager

import (
	"strings"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/bytecode/translate"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Backend implements translate.Backend.
type Backend struct{}

// Inline implements translate.Backend.
func (Backend) Inline() bool { return true }

// Name implements translate.Backend.
func (Backend) Name() string { return "eager" }

// TakesApart implements translate.Backend.
func (Backend) TakesApart(*py.Scope) (bool, error) { return false, nil }

// FixesSizes implements translate.Backend.
func (Backend) FixesSizes(*py.Scope) (bool, error) { return false, nil }

// Compile implements translate.Backend. It is never called, since this is an inline backend.
func (Backend) Compile(*py.Scope, *fxgraph.Graph, []py.Object, translate.Inputs) (py.Object, error) {
	return py.Object{}, exc.Break(exc.Reconstruct, "the inline backend takes no whole graph")
}

var unary = map[string]int{"pos": 0, "neg": 1, "invert": 2}

// EmitNode implements translate.Backend.
func (Backend) EmitNode(e translate.NodeEmitter, n *fxgraph.Node) error {
	if n.Op == fxgraph.CallMethod {
		if err := e.LoadArg(n.Args[0]); err != nil {
			return err
		}
		e.LoadMethod(n.Target.Text)
		names, err := arguments(e, n.Args[1:], n.Kwargs)
		if err != nil {
			return err
		}
		e.CallMethod(len(n.Args)-1+len(names), names)
		return nil
	}
	if name, ok := strings.CutPrefix(n.Target.Text, "^"); ok {
		return pythonOp(e, n, strings.TrimSuffix(name, "()"))
	}
	if n.Target.Text == "prim::PyConstant" {
		e.LoadPool(n.Args[0].(fxgraph.Lit).Pool)
		return nil
	}
	if name, ok := strings.CutPrefix(n.Target.Text, "operator."); ok && name != "abs" {
		return operator(e, n, name)
	}
	if n.Target.Text == "builtins.getattr" {
		return operator(e, n, "getattr")
	}
	if written, err := slice(e, n); written || err != nil {
		return err
	}
	e.PushNull()
	e.LoadPool(n.Target.Pool)
	names, err := arguments(e, n.Args, n.Kwargs)
	if err != nil {
		return err
	}
	e.Call(len(n.Args)+len(names), names)
	return nil
}

// slice writes torch.ops.aten.slice along the first dimension as a subscription, which returns the same view much
// faster. It writes nothing if the slice may be the whole tensor: a subscription would then return an alias, and
// autograd names the node of an alias differently.
func slice(e translate.NodeEmitter, n *fxgraph.Node) (written bool, err error) {
	if n.Target.Text != "torch.slice" || len(n.Args) < 3 || len(n.Kwargs) > 0 {
		return false, nil
	}
	given := []py.Object{py.None(), py.None(), py.None(), py.None()} // dim, start, end, step
	bounds := make([]int64, 4)
	for i, a := range n.Args[1:] {
		l, known := a.(fxgraph.Lit)
		if !known {
			return false, nil
		}
		given[i] = e.PoolObject(l.Pool)
		if given[i].Kind() == py.Int {
			bounds[i], _ = py.AsInt(given[i])
		} else if given[i].Kind() != py.NoneKind || i == 0 || i == 3 {
			return false, nil
		}
	}
	if bounds[0] != 0 || bounds[3] < 0 || len(n.Args) == 5 && bounds[3] == 0 || bounds[3] <= 1 && bounds[1] <= 0 &&
		bounds[2] >= 0 {
		return false, nil
	}
	if err := e.LoadArg(n.Args[0]); err != nil {
		return false, err
	}
	for _, g := range given[1:] {
		e.LoadConst(g)
	}
	e.BuildSlice(3)
	e.BinarySubscr()
	return true, nil
}

func arguments(e translate.NodeEmitter, args []fxgraph.Arg, kwargs []fxgraph.Kwarg) ([]string, error) {
	for _, a := range args {
		if err := e.LoadArg(a); err != nil {
			return nil, err
		}
	}
	var names []string
	for _, kw := range kwargs {
		if err := e.LoadArg(kw.Value); err != nil {
			return nil, err
		}
		names = append(names, kw.Name)
	}
	return names, nil
}

// operator writes a node whose target is getattr or a function of the operator module as the equivalent instruction.
func operator(e translate.NodeEmitter, n *fxgraph.Node, name string) error {
	if name == "setitem" { // order on the stack: value, object, key
		if err := all(e, n.Args[2], n.Args[0], n.Args[1]); err != nil {
			return err
		}
		e.StoreSubscr()
		e.LoadConst(py.None())
		return nil
	}
	if name == "getattr" {
		if err := e.LoadArg(n.Args[0]); err != nil {
			return err
		}
		e.LoadAttr(py.GoString(e.PoolObject(n.Args[1].(fxgraph.Lit).Pool)))
		return nil
	}
	if err := all(e, n.Args...); err != nil {
		return err
	}
	if name == "getitem" {
		e.BinarySubscr()
	} else if op, ok := opcode.BinaryOpOf(name); ok {
		e.BinaryOp(op)
	} else if op, ok := opcode.CompareOpOf(name); ok {
		e.CompareOp(op)
	} else if op, ok := unary[name]; ok {
		e.UnaryOp(op)
	} else {
		return exc.Break(exc.Reconstruct, "operator %s", name)
	}
	return nil
}

func all(e translate.NodeEmitter, args ...fxgraph.Arg) error {
	for _, a := range args {
		if err := e.LoadArg(a); err != nil {
			return err
		}
	}
	return nil
}
