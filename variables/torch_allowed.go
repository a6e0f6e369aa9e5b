package variables

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// CallAllowed adds a call of a function that the user has passed to allow_in_graph. python/godynamo/_translator/fake.py
// describes the result and reports whether the call changes an argument in place.
func CallAllowed(tx Translator, fn py.Object, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	return callAllowed(tx, fn, name, args, kwargs, func(*fxgraph.Node) {}, false)
}

// CallMarked is CallAllowed for an operation whose node `mark` changes before its result is described.
func CallMarked(tx Translator, fn py.Object, name string, args []VariableTracker,
	mark func(n *fxgraph.Node)) (VariableTracker, error) {
	return callAllowed(tx, fn, name, args, nil, mark, false)
}

// CallBodies is CallAllowed for an operation that calls functions captured by Output.Body.
func CallBodies(tx Translator, fn py.Object, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	return callAllowed(tx, fn, name, args, kwargs, func(*fxgraph.Node) {}, true)
}

func callAllowed(tx Translator, fn py.Object, name string, args []VariableTracker, kwargs []Kw,
	mark func(n *fxgraph.Node), bodies bool) (VariableTracker, error) {
	node, err := tx.Output().CallFunction(tx, fn, name, args, kwargs)
	if err != nil {
		return nil, err
	}
	mark(node)
	r, err := tx.Output().NodeResult(tx, node, bodies)
	if err != nil {
		return nil, err
	}
	parts := tx.Scope().Items(r)
	if parts[0] == py.True() {
		node.Inplace = true
		for _, a := range args {
			forgetMeta(a)
		}
		for _, kw := range kwargs {
			forgetMeta(kw.Value)
		}
	}
	return described(tx, node, parts[1])
}

// forgetMeta drops the metadata of the tensors in v, which an operation may have changed.
func forgetMeta(v VariableTracker) { forgetWithin(v, map[VariableTracker]bool{}) }

func forgetWithin(v VariableTracker, seen map[VariableTracker]bool) {
	if l, ok := v.(*LazyVariable); ok && l.real != nil {
		v = l.real
	}
	if seen[v] {
		return
	}
	seen[v] = true
	if t, ok := v.(*TensorVariable); ok {
		t.change()
	} else if c, ok := v.(Container); ok {
		for _, child := range c.Children() {
			forgetWithin(child, seen)
		}
	}
}

// described returns the tracker of a node's result from its description (_translator/fake.Session.result).
func described(tx Translator, node *fxgraph.Node, description py.Object) (VariableTracker, error) {
	s := tx.Scope()
	d := s.Items(description)
	all := func(keys []VariableTracker, parts []py.Object) ([]VariableTracker, error) {
		out := make([]VariableTracker, len(parts))
		for i, part := range parts {
			kind := py.GoString(s.Items(part)[0])
			if kind == "value" {
				v, err := described(tx, node, part)
				if err != nil {
					return nil, err
				}
				out[i] = v
				continue
			}
			item, err := tx.Output().CallFunction(tx, tx.World().Operator("getitem"), "operator.getitem",
				[]VariableTracker{&TensorSequence{Node: node}, keys[i]}, nil)
			if err != nil {
				return nil, err
			}
			if out[i], err = described(tx, item, part); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	switch py.GoString(d[0]) {
	case "tensor":
		return NewTensor(node), nil
	case "function":
		return &GraphFunction{Node: node}, nil
	case "value":
		if d[1] == py.None() {
			node.Inplace = true // the call may have an effect, so it must stay in the graph
		}
		return immutableResult(tx, d[1])
	case "list", "tuple":
		parts := s.Items(d[2])
		keys := make([]VariableTracker, len(parts))
		for i := range parts {
			keys[i] = IntConst(tx, i)
		}
		items, err := all(keys, parts)
		if err != nil {
			return nil, err
		}
		switch {
		case d[1] == tx.World().ListType:
			return NewList(items, nil), nil
		case d[1] == tx.World().TupleType:
			return NewTuple(items, nil), nil
		}
		if _, named := tx.World().NamedTupleFields(s, d[1]); named {
			return NewTupleOf(items, d[1], nil), nil
		}
	case "dict":
		var keys []VariableTracker
		for _, k := range s.Items(d[2]) {
			keys = append(keys, NewConstant(k, nil))
		}
		items, err := all(keys, s.Items(d[3]))
		if err != nil {
			return nil, err
		}
		r, err := NewDictOf(tx, keys, items)
		if err != nil {
			return nil, err
		}
		return r, nil
	}
	return nil, unsupported(exc.UnknownResult, "%s returns %s", node.Target.Text, s.Repr(description))
}
