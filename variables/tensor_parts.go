package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// This file captures what autograd and memory management know about a tensor. is_leaf follows from the tensor's
// history. The version, the address of the data and similar numbers are read at run time, where the program reads them.
// grad_fn and the storage are objects that torch makes when they are read. The program may pass them on, and call a few
// methods that return numbers.

// partNumbers maps attributes and methods of a tensor to the kind of number that they are at run time.
var partNumbers = map[string]number{"_version": intNumber, "output_nr": intNumber, "retains_grad": boolNumber}

// partCalls has methods without arguments that return an int at run time, by what they are called on.
var partCalls = map[string]map[string]number{
	"tensor":  {"data_ptr": intNumber, "storage_offset": intNumber},
	"storage": {"data_ptr": intNumber, "nbytes": intNumber, "size": intNumber},
}

// readsParts reports whether the graph may read such values: it runs operation by operation.
func readsParts(tx Translator) bool {
	return !tx.Output().WholeGraph() && captures(tx, intNumber) && tx.World().FixesSizes == 0 && tx.World().Calls == 0
}

// part returns an attribute that this file captures. ok is false for others.
func (t *TensorVariable) part(tx Translator, name string) (v VariableTracker, ok bool, err error) {
	kind, isNumber := partNumbers[name]
	if !isNumber && name != "grad_fn" {
		return nil, false, nil
	}
	// an inference tensor has no version, and the example need not be one of them
	if !readsParts(tx) || !t.plain(tx) || !mayRaiseHere(tx) {
		return nil, false, nil
	}
	node, err := tx.Output().CallFunction(tx, tx.World().GetAttrBuiltin, "builtins.getattr",
		[]VariableTracker{t, StrConst(tx, name)}, nil)
	if err != nil {
		return nil, true, err
	}
	if isNumber {
		v, err = numberFrom(tx, node, kind)
		return v, true, err
	}
	return &OpaqueVariable{Node: node, name: "." + name, part: name}, true, nil
}

// partMethod calls a method that this file captures. ok is false for others.
func (t *TensorVariable) partMethod(tx Translator, name string) (v VariableTracker, ok bool, err error) {
	kind, isNumber := partCalls["tensor"][name]
	if !isNumber && name != "untyped_storage" || !readsParts(tx) || !t.plain(tx) || !mayRaiseHere(tx) {
		return nil, false, nil
	}
	node, err := tx.Output().CallMethod(tx, name, []VariableTracker{t}, nil)
	if err != nil {
		return nil, true, err
	}
	if isNumber {
		v, err = numberFrom(tx, node, kind)
		return v, true, err
	}
	return &OpaqueVariable{Node: node, name: "untyped_storage()", part: "storage"}, true, nil
}

// partMethod calls a method of an object that torch has made for a tensor. ok is false for other objects and methods.
func (o *OpaqueVariable) partMethod(tx Translator, name string) (v VariableTracker, ok bool, err error) {
	kind, isNumber := partCalls[o.part][name]
	text := o.part == "grad_fn" && name == "name"
	if !isNumber && !text || !readsParts(tx) || !mayRaiseHere(tx) {
		return nil, false, nil
	}
	node, err := tx.Output().CallMethod(tx, name, []VariableTracker{o}, nil)
	if err != nil {
		return nil, true, err
	}
	if isNumber {
		v, err = numberFrom(tx, node, kind)
		return v, true, err
	}
	result := NewTensor(node) // only to load the node's result
	v, err = compute(tx, tx.World().Builtin("str"), nil, func(e Emitter) error { return e.Load(result) })
	return v, true, err
}

// isLeaf returns is_leaf.
func (t *TensorVariable) isLeaf(tx Translator) (bool, error) {
	refused := unsupported(exc.AttrUnsupported, "is_leaf of a tensor")
	if tx.World().Calls > 0 || !t.plain(tx) {
		return false, refused
	}
	if real := t.real(); !real.IsNull() {
		if leaf, err := t.wasLeaf(tx, real); err != nil || !t.Changed {
			return leaf, err
		}
	}
	flag, err := t.gradFlag(tx)
	if err != nil {
		return false, err
	}
	if needs, err := Truth(tx, flag); err != nil || !needs {
		return true, err
	}
	if t.Src == nil && !t.isNew(tx) {
		return false, refused // it may be an operand
	}
	return tx.Output().IsLeaf(t)
}

// wasLeaf reports whether an input is a leaf when the frame starts, and guards that.
func (t *TensorVariable) wasLeaf(tx Translator, real py.Object) (bool, error) {
	tx.Output().NeedField(t, uint16(guards.TensorRequiresGrad))
	s := tx.Scope()
	leaf, err := s.GetAttr(real, "is_leaf")
	if err != nil {
		return false, err
	}
	if needs, err := s.GetAttr(real, "requires_grad"); err != nil || needs != py.True() {
		return true, err
	}
	if leaf != py.True() {
		check, err := checkOf(tx, "has_history")
		if err != nil {
			return false, err
		}
		tx.Output().AddGuards(guards.PyCheck(t.Src, tx.Output().Const(check), "has a grad_fn"))
		return false, nil
	}
	if _, ok := s.TensorGrad(real); !ok {
		return false, unsupported(exc.AttrUnsupported, "is_leaf of a tensor")
	}
	tx.Output().Reads(guards.NewGradSource(t.Src))
	return true, nil
}
