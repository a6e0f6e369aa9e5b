package variables

import (
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// TensorSequence represents a tuple, list or named tuple of tensors that one operation returned. Its items are getitem
// nodes.
type TensorSequence struct {
	Base
	Node  *fxgraph.Node
	Class py.Object // class of the items; zero means torch.Tensor
	n     int
	items []VariableTracker
}

// Kind implements VariableTracker.
func (*TensorSequence) Kind() string { return "TensorSequence" }

// PythonType implements Typed.
func (s *TensorSequence) PythonType(tx Translator) (py.Object, error) {
	return tx.Output().NodeType(s.Node)
}

// Items implements Sequence.
func (s *TensorSequence) Items(tx Translator) ([]VariableTracker, error) {
	if s.items == nil {
		for i := 0; i < s.n; i++ {
			v, err := graphCall(tx, tx.World().Operator("getitem"), "operator.getitem",
				[]VariableTracker{s, IntConst(tx, i)}, nil, result{kind: givesTensor})
			if err != nil {
				return nil, err
			}
			if !s.Class.IsNull() {
				v.(*TensorVariable).become(tx, s.Class)
			}
			s.items = append(s.items, v)
		}
	}
	return s.items, nil
}

// Len implements Lener.
func (s *TensorSequence) Len(Translator) (int, error) { return s.n, nil }

// Truth implements Truther.
func (s *TensorSequence) Truth(Translator) (bool, error) { return s.n > 0, nil }

// AsProxy implements Proxy.
func (s *TensorSequence) AsProxy(Translator) (fxgraph.Arg, error) { return s.Node, nil }

// GetItem implements ItemGetter.
func (s *TensorSequence) GetItem(tx Translator, key VariableTracker) (VariableTracker, error) {
	items, err := s.Items(tx)
	if err != nil {
		return nil, err
	}
	t := NewTuple(items, nil)
	return sequenceItem(tx, t, t, key)
}

// GetAttr implements AttrGetter for the fields of torch's named results (values, indices, ...).
func (s *TensorSequence) GetAttr(tx Translator, name string) (VariableTracker, error) {
	if strings.HasPrefix(name, "_") || name == "count" || name == "index" || name == "append" {
		return nil, unsupported(exc.AttrUnsupported, "%s of an operation's results", name)
	}
	v, err := graphCall(tx, tx.World().GetAttrBuiltin, "builtins.getattr", []VariableTracker{s, StrConst(tx, name)},
		nil, result{kind: givesTensor})
	if err == nil && !s.Class.IsNull() {
		v.(*TensorVariable).become(tx, s.Class)
	}
	return v, err
}
