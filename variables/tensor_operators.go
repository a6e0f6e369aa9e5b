package variables

import (
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// tensorOperator adds the node of an operator with at least one tensor operand.
func tensorOperator(tx Translator, name string, inplace bool, operands ...VariableTracker) (VariableTracker, error) {
	operands = append([]VariableTracker(nil), operands...)
	for i, v := range operands {
		// With a numpy scalar on the left, torch runs the operator, not numpy. torch reads a numpy.bool as a float. The
		// text of torch's error for a matrix product with a scalar contains the scalar's type.
		if c, ok := v.(*ConstantVariable); ok && (tx.World().isNumpyBool(c.Value) || tx.World().isNumpy(c.Value) &&
			name == "matmul") {
			return nil, unsupported(exc.OperatorUnsupported, "%s of %s and a tensor", name, Describe(tx, c))
		}
		if plain := plainNumber(tx, v); plain != v {
			class, err := PythonType(tx, v)
			if err != nil {
				return nil, err
			}
			c, known := AsConstant(tx, plain)
			if !known {
				return nil, unsupported(exc.OperatorUnsupported, "%s of %s and a tensor", name, Describe(tx, v))
			}
			k := c.Kind()
			if mayHandle(tx, class) || name == "matmul" || !isReal(c) && k != py.Complex {
				return nil, unsupported(exc.OperatorUnsupported, "%s of %s and a tensor", name, Describe(tx, v))
			}
			operands[i] = plain
		}
	}
	if r, ok, err := handledOperator(tx, name, inplace, operands); ok || err != nil {
		return r, err
	}
	return plainOperator(tx, name, inplace, operands)
}

// handledOperator runs an operator whose operands' classes define special methods or handlers.
func handledOperator(tx Translator, name string, inplace bool,
	operands []VariableTracker) (VariableTracker, bool, error) {
	if r, ok, err := overriddenOperator(tx, name, inplace, operands); ok || err != nil {
		return r, ok, err
	}
	asked := name
	if _, ok := operands[0].(*TensorVariable); ok && inplace {
		asked = "i" + strings.TrimSuffix(name, "_")
	}
	fn := tx.World().operatorIfAny(asked)
	if fn.IsNull() {
		return nil, false, nil
	}
	again := func() (VariableTracker, error) { return plainOperator(tx, name, inplace, operands) }
	return dispatchTorch(tx, fn, operands, nil, again)
}

// unlikeTensor reports whether one operand of a comparison is a text or None. torch's operator returns NotImplemented
// for it, and so does the text's, so CPython compares identities.
func unlikeTensor(operands []VariableTracker) bool {
	tensors, others := 0, 0
	for _, v := range operands {
		if t, ok := v.(*TensorVariable); ok && !t.foreign() {
			tensors++
		} else if c, ok := v.(*ConstantVariable); ok && (c.Value.Kind() == py.Str || c.Value.Kind() == py.NoneKind) {
			others++
		}
	}
	return tensors == 1 && others == 1
}

// plainOperator runs an operator on tensors and numbers without calling a __torch_function__ handler.
func plainOperator(tx Translator, name string, inplace bool, operands []VariableTracker) (VariableTracker, error) {
	if (name == "eq" || name == "ne") && unlikeTensor(operands) {
		return BoolConst(name == "ne"), nil
	}
	for _, v := range operands {
		x, computed := v.(*ComputedVariable)
		if !IsTensor(v) && !isNumber(tx, v) && !isComputedNumber(tx, v) && !(computed && x.mixed) {
			return nil, unsupported(exc.OperatorUnsupported, "%s of a tensor and %s", name, Describe(tx, v))
		}
	}
	// the text of CPython's error contains @=
	if inplace && name == "matmul" && !(IsTensor(operands[0]) && IsTensor(operands[1])) {
		return nil, unsupported(exc.OperatorUnsupported, "@= of %s and %s", Describe(tx, operands[0]),
			Describe(tx, operands[1]))
	}
	t, self := operands[0].(*TensorVariable)
	if inplace && self {
		own := "i" + strings.TrimSuffix(name, "_")
		// torch.Tensor has no __imatmul__
		if _, inplace = tx.Scope().TypeLookup(tx.World().TensorType, "__"+own+"__"); inplace {
			name = own
			if err := t.mayChange(tx, "__"+own+"__"); err != nil {
				return nil, err
			}
		}
	}
	if err := flagOperands(tx, name, operands); err != nil {
		return nil, err
	}
	if err := numberOperands(tx, name, operands); err != nil {
		return nil, err
	}
	if inplace && self {
		node, err := tx.Output().CallFunction(tx, tx.World().Operator(name), "operator."+name, operands, nil)
		if err != nil {
			return nil, err
		}
		t.change()
		node.Inplace = true
		return t, nil
	}
	return graphCall(tx, tx.World().Operator(name), "operator."+name, operands, nil, result{kind: givesTensor})
}

// plainNumber returns the number that torch reads from v if v is an instance of a subclass of int or float, a member
// of an enum that extends int or float, or a numpy scalar. It returns other values unchanged.
func plainNumber(tx Translator, v VariableTracker) VariableTracker {
	v = valueOf(v)
	c, ok := v.(*ConstantVariable)
	if ok && tx.World().isNumpy(c.Value) {
		if o, ok := py.Answered(tx.Scope().CallMethod(c.Value, "item")); ok {
			return AddGuards(NewConstant(o, nil), c.Guards())
		}
	}
	if !ok || !tx.World().IsEnum(tx.Scope(), c.Value) {
		return v
	}
	for _, name := range []string{"int", "float"} {
		t := tx.World().Builtin(name)
		if py.IsSubtype(c.Value.Type(), t) {
			if o, ok := py.Answered(tx.Scope().Call(tx.World().plainValue, t, c.Value)); ok {
				return AddGuards(NewConstant(o, nil), c.Guards())
			}
		}
	}
	return v
}

func isNumber(tx Translator, v VariableTracker) bool {
	o, ok := AsConstant(tx, v)
	if !ok {
		return false
	}
	switch o.Kind() {
	case py.Int, py.Float, py.BoolKind, py.Complex:
		return true
	case py.Other:
		return py.IsSubtype(o.Type(), tx.World().Builtin("int"))
	}
	return false
}

// graphCall adds a call_function node and wraps its result.
func graphCall(tx Translator, fn py.Object, name string, args []VariableTracker, kwargs []Kw,
	gives result) (VariableTracker, error) {
	return wrapped(tx, gives, func() (*fxgraph.Node, error) {
		return tx.Output().CallFunction(tx, fn, name, args, kwargs)
	})
}

// wrapped adds an operation and returns the tracker of its result.
func wrapped(tx Translator, gives result, add func() (*fxgraph.Node, error)) (VariableTracker, error) {
	w := tx.World()
	w.predicting++
	node, err := add()
	w.predicting--
	if err != nil {
		return nil, err
	}
	if node.Dispatched {
		return dispatched(tx, node, gives)
	}
	return wrapNode(tx, node, gives)
}

// wrapNode returns the tracker of a node's result.
func wrapNode(tx Translator, node *fxgraph.Node, gives result) (VariableTracker, error) {
	switch gives.kind {
	case givesTensor:
		return NewTensor(node), nil
	case givesNone:
		node.Inplace = true
		return NoneConst(), nil
	case givesList:
		n, err := tx.Output().NodeValue(tx, node)
		if err != nil {
			return nil, err
		}
		count, _ := py.AsInt(n)
		return &TensorSequence{Node: node, n: int(count)}, nil
	case givesTensors:
		return &TensorSequence{Node: node, n: gives.n}, nil
	}
	return nil, unsupported(exc.UnknownResult, "%s returns %s", node.Target.Text, gives)
}
