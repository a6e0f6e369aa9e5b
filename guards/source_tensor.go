package guards

import "strconv"

// TensorProperty is a property of a tensor that has one int for each dimension.
type TensorProperty uint8

// The properties.
const (
	TensorSize TensorProperty = iota
	TensorStride
)

// String returns the name of the tensor's method that returns the property.
func (p TensorProperty) String() string {
	if p == TensorStride {
		return "stride"
	}
	return "size"
}

// GradSource is the gradient of a leaf tensor: a tensor or None. Reading it in a guard runs no code of the program.
type GradSource struct{ origin }

// NewGradSource returns the source of base.grad.
func NewGradSource(base Source) *GradSource {
	s := &GradSource{from(base)}
	s.name = s.text(nil)
	return s
}

func (s *GradSource) text(p *printer) string { return member(s.base, "grad", p) }

// TensorPropertySource is a tensor's size or stride in one dimension, an int. It is read after the guards have
// compared the tensor, whose TENSOR_MATCH guard must have TensorNDim.
type TensorPropertySource struct {
	origin
	Property TensorProperty
	Dim      int // not negative
}

// NewTensorPropertySource returns the source of base.size()[dim] or base.stride()[dim].
func NewTensorPropertySource(base Source, property TensorProperty, dim int) *TensorPropertySource {
	s := &TensorPropertySource{from(base), property, dim}
	s.name = s.text(nil)
	return s
}

func (s *TensorPropertySource) text(p *printer) string {
	return printed(s.base, p) + "." + s.Property.String() + "()[" + strconv.Itoa(s.Dim) + "]"
}
