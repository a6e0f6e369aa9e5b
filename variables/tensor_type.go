package variables

import (
	"strings"

	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// typeName returns x.type(): the name of torch's legacy class for the dtype and device, such as "torch.FloatTensor".
func (t *TensorVariable) typeName(tx Translator) (VariableTracker, error) {
	m, err := t.Sizes(tx)
	if err != nil {
		return nil, err
	}
	layout, err := t.plainAttr(tx, "layout")
	if err != nil {
		return nil, err
	}
	t.Need(tx, "dtype")
	t.Need(tx, "device")
	known, ok := AsConstant(tx, layout)
	if !ok {
		return nil, unsupported(exc.UnknownResult, "Tensor.type of an unknown layout")
	}
	r, err := tx.Scope().Call(tx.World().tensorTypeName, m.Dtype, m.Device, known)
	if err != nil {
		return nil, observed(err)
	}
	return NewConstant(r, nil), nil
}

// typeAsked returns the argument of x.type() that goes into the graph. For torch.FloatTensor and similar classes it is
// the class's name, which torch accepts also. Other values are unchanged.
func typeAsked(tx Translator, v VariableTracker) (VariableTracker, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return nil, err
	}
	class, ok := AsConstant(tx, v)
	if !ok || !strings.HasSuffix(py.TypeName(class.Type()), "tensortype") {
		return v, nil
	}
	return StrConst(tx, py.TypeName(class)), nil
}
