package variables

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// GeneratorVariable represents a torch.Generator that was passed to the frame, or that the frame makes. Nothing is
// known about its state. It can be an operand of an operation, which draws from it, and be seeded.
type GeneratorVariable struct {
	Base
	obj  py.Object
	Node *fxgraph.Node // the operation that makes it; nil if it was passed
}

// newGenerator handles torch.Generator(device). It returns nil if the class is another one.
func (c *ClassVariable) newGenerator(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if c.Class != tx.World().generatorType {
		return nil, nil
	}
	refused := unsupported(exc.CallUnsupported, "instance of class %s", py.TypeName(c.Class))
	w := tx.World()
	if tx.Output().WholeGraph() || w.Calls > 0 {
		return nil, refused
	}
	if w.Transparent && w.optimized == 0 {
		// Where a whole program is served, most generators are made to draw its data. Graphs of that would run once.
		return nil, refused
	}
	for _, v := range append(KwValues(kwargs), args...) {
		v, err := Realize(tx, v)
		if err != nil {
			return nil, err
		}
		if _, known := AsConstant(tx, v); !known {
			return nil, refused
		}
	}
	node, err := tx.Output().CallFunction(tx, c.Class, "torch.Generator", args, kwargs)
	if err != nil {
		return nil, err
	}
	return &GeneratorVariable{Node: node}, nil
}

// Kind implements VariableTracker.
func (*GeneratorVariable) Kind() string { return "TorchGeneratorVariable" }

// PythonType implements Typed.
func (*GeneratorVariable) PythonType(tx Translator) (py.Object, error) {
	return tx.World().generatorType, nil
}

// Truth implements Truther.
func (*GeneratorVariable) Truth(Translator) (bool, error) { return true, nil }

// AsProxy implements Proxy. A generator that was passed is an input of the graph.
func (g *GeneratorVariable) AsProxy(tx Translator) (fxgraph.Arg, error) {
	if g.Node != nil {
		return g.Node, nil
	}
	if tx.Output().WholeGraph() {
		return nil, unsupported(exc.CallUnsupported, "a torch.Generator with a backend that takes whole graphs")
	}
	return tx.Output().ObjectInput(g)
}

// CallMethod implements MethodCaller. Seeding runs once, in its place.
func (g *GeneratorVariable) CallMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if name != "manual_seed" {
		return nil, unsupported(exc.CallUnsupported, "torch.Generator.%s", name)
	}
	node, err := tx.Output().CallForeign(tx, py.Object{}, name, append([]VariableTracker{g}, args...), kwargs)
	if err != nil {
		return nil, err
	}
	node.Inplace = true
	return g, nil
}

// GetAttr implements AttrGetter.
func (g *GeneratorVariable) GetAttr(_ Translator, name string) (VariableTracker, error) {
	if name == "manual_seed" {
		return &BoundBuiltin{obj: g, name: name}, nil
	}
	return nil, unsupported(exc.AttrUnsupported, "%s of a torch.Generator", name)
}

func wrapGenerator(w *wrapping) (VariableTracker, []guards.Guard, error) {
	if w.obj.Type() != w.tx.World().generatorType {
		return nil, nil, nil
	}
	return &GeneratorVariable{Base: Base{Src: w.src}, obj: w.obj}, w.ofType(), nil
}
