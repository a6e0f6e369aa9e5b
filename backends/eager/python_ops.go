package eager

import (
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/bytecode/translate"
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/pyhook/py"
)

// instructions maps a Python operation to a function that loads its operands and writes its instructions. Other
// operations are written as calls of their function.
var instructions = map[string]func(e translate.NodeEmitter, n *fxgraph.Node) error{
	"getattr": func(e translate.NodeEmitter, n *fxgraph.Node) error { return operator(e, n, "getattr") },
	"setattr": func(e translate.NodeEmitter, n *fxgraph.Node) error {
		return effect(e, func() { e.StoreAttr(text(e, n.Args[1])) }, n.Args[2], n.Args[0])
	},
	"delattr": func(e translate.NodeEmitter, n *fxgraph.Node) error {
		return effect(e, func() { e.DeleteAttr(text(e, n.Args[1])) }, n.Args[0])
	},
	"delitem": func(e translate.NodeEmitter, n *fxgraph.Node) error { return effect(e, e.DeleteSubscr, n.Args...) },
	"is_": func(e translate.NodeEmitter, n *fxgraph.Node) error {
		return value(e, func() { e.IsOp(0) }, n.Args...)
	},
	"is_not": func(e translate.NodeEmitter, n *fxgraph.Node) error {
		return value(e, func() { e.IsOp(1) }, n.Args...)
	},
	"contains": func(e translate.NodeEmitter, n *fxgraph.Node) error {
		return value(e, func() { e.ContainsOp(0) }, n.Args[1], n.Args[0])
	},
	"not_": func(e translate.NodeEmitter, n *fxgraph.Node) error { return value(e, e.UnaryNot, n.Args...) },
	"iter": func(e translate.NodeEmitter, n *fxgraph.Node) error { return value(e, e.GetIter, n.Args...) },
	"load_global": func(e translate.NodeEmitter, n *fxgraph.Node) error {
		e.LoadGlobal(text(e, n.Args[1]))
		return nil
	},
	"import_name": func(e translate.NodeEmitter, n *fxgraph.Node) error {
		return value(e, func() { e.ImportName(text(e, n.Args[0])) }, n.Args[4], n.Args[3])
	},
	"extend_list": display(translate.NodeEmitter.BuildList, translate.NodeEmitter.ListExtend),
	"extend_set":  display(translate.NodeEmitter.BuildSet, translate.NodeEmitter.SetUpdate),
	"extend_dict": display(translate.NodeEmitter.BuildMap, translate.NodeEmitter.DictUpdate),
	// For its error messages, DICT_MERGE reads the callable: two positions below the dict, or three where a NULL is
	// above the callable.
	"merge_keywords": func(e translate.NodeEmitter, n *fxgraph.Node) error {
		if err := e.LoadArg(n.Args[0]); err != nil {
			return err
		}
		e.Copy(1)
		e.LoadConst(py.None())
		e.BuildMap(0)
		if err := e.LoadArg(n.Args[1]); err != nil {
			return err
		}
		e.DictUpdate(1)
		if err := e.LoadArg(n.Args[2]); err != nil {
			return err
		}
		e.DictMerge(1)
		e.Swap(4)
		e.PopTop()
		e.PopTop()
		e.PopTop()
		return nil
	},
	"unpack": unpack,
	"call_ex": func(e translate.NodeEmitter, n *fxgraph.Node) error {
		e.PushNull()
		return value(e, func() { e.CallFunctionEx(len(n.Args) == 3) }, n.Args...)
	},
}

func init() {
	names := []string{"getitem", "setitem"}
	for op := opcode.NB_ADD; op.Valid(); op++ {
		names = append(names, op.Function())
	}
	for op := opcode.CMP_LT; op.Valid(); op++ {
		names = append(names, op.Name())
	}
	for name := range unary {
		names = append(names, name)
	}
	for _, name := range names {
		instructions[name] = func(e translate.NodeEmitter, n *fxgraph.Node) error { return operator(e, n, name) }
	}
}

// display writes the instructions that build an empty container and extend it with the items of each operand.
func display(build func(e translate.NodeEmitter, n int),
	add func(e translate.NodeEmitter, i int)) func(translate.NodeEmitter, *fxgraph.Node) error {
	return func(e translate.NodeEmitter, node *fxgraph.Node) error {
		build(e, 0)
		for _, a := range node.Args {
			if err := e.LoadArg(a); err != nil {
				return err
			}
			add(e, 1)
		}
		return nil
	}
}

// text returns the value of a str operand.
func text(e translate.NodeEmitter, a fxgraph.Arg) string {
	return py.GoString(e.PoolObject(a.(fxgraph.Lit).Pool))
}

func value(e translate.NodeEmitter, emit func(), args ...fxgraph.Arg) error {
	if err := all(e, args...); err != nil {
		return err
	}
	emit()
	return nil
}

// effect writes an instruction without a result. The node's value is then None.
func effect(e translate.NodeEmitter, emit func(), args ...fxgraph.Arg) error {
	err := value(e, emit, args...)
	e.LoadConst(py.None())
	return err
}

// unpack writes UNPACK_SEQUENCE, which leaves the first item on top, and collects the items into a tuple.
func unpack(e translate.NodeEmitter, n *fxgraph.Node) error {
	if err := e.LoadArg(n.Args[0]); err != nil {
		return err
	}
	count, _ := py.AsInt(e.PoolObject(n.Args[1].(fxgraph.Lit).Pool))
	k := int(count)
	e.UnpackSequence(k)
	for i, j := 1, k; i < j; i, j = i+1, j-1 {
		swap(e, i)
		swap(e, j)
		swap(e, i)
	}
	e.BuildTuple(k)
	return nil
}

// swap exchanges the top of the stack and its i-th value.
func swap(e translate.NodeEmitter, i int) {
	if i > 1 {
		e.Swap(i)
	}
}

// pythonOp writes a node whose target is the Python operation `name` of _backends/python_ops.
func pythonOp(e translate.NodeEmitter, n *fxgraph.Node, name string) error {
	if emit, ok := instructions[name]; ok {
		return emit(e, n)
	}
	args := n.Args
	e.PushNull()
	if name == "<PyObjectCall>" {
		if err := e.LoadArg(args[0]); err != nil {
			return err
		}
		args = args[1:]
	} else {
		e.LoadPool(n.Target.Pool)
	}
	names, err := arguments(e, args, n.Kwargs)
	if err != nil {
		return err
	}
	e.Call(len(args)+len(names), names)
	return nil
}
