package shapes

// Dtype is the name of a torch.dtype, such as "float32".
type Dtype string

// The dtypes that the rules support. For other dtypes, a rule has no answer.
const (
	torchBool       Dtype = "bool"
	torchUint8      Dtype = "uint8"
	torchInt8       Dtype = "int8"
	torchInt16      Dtype = "int16"
	torchInt32      Dtype = "int32"
	torchInt64      Dtype = "int64"
	torchFloat16    Dtype = "float16"
	torchBfloat16   Dtype = "bfloat16"
	torchFloat32    Dtype = "float32"
	torchFloat64    Dtype = "float64"
	torchComplex32  Dtype = "complex32"
	torchComplex64  Dtype = "complex64"
	torchComplex128 Dtype = "complex128"
)

type category uint8

const (
	unknownKind category = iota
	boolKind
	intKind
	floatKind
	complexKind
)

var kinds = map[Dtype]category{
	torchBool: boolKind, torchUint8: intKind, torchInt8: intKind, torchInt16: intKind, torchInt32: intKind,
	torchInt64:   intKind,
	torchFloat16: floatKind, torchBfloat16: floatKind, torchFloat32: floatKind, torchFloat64: floatKind,
	torchComplex32: complexKind, torchComplex64: complexKind, torchComplex128: complexKind,
}

// Known reports whether the rules support a dtype.
func (d Dtype) Known() bool { return kinds[d] != unknownKind }

func (d Dtype) floating() bool { return kinds[d] == floatKind || kinds[d] == complexKind }

// rank orders the dtypes of one kind. torchFloat16 and torchBfloat16 are not ordered.
var rank = map[Dtype]int{
	torchUint8: 0, torchInt8: 0, torchInt16: 1, torchInt32: 2, torchInt64: 3,
	torchFloat16: 0, torchBfloat16: 0, torchFloat32: 1, torchFloat64: 2,
	torchComplex32: 0, torchComplex64: 1, torchComplex128: 2,
}

var complexOf = map[Dtype]Dtype{torchFloat16: torchComplex32, torchBfloat16: torchComplex64,
	torchFloat32: torchComplex64, torchFloat64: torchComplex128}

var realOf = map[Dtype]Dtype{torchComplex32: torchFloat16, torchComplex64: torchFloat32, torchComplex128: torchFloat64}

// promote implements torch.promote_types. The dtype "" means that there is no operand.
func promote(a, b Dtype) Dtype {
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	}
	if kinds[a] < kinds[b] {
		a, b = b, a
	}
	if kinds[a] == complexKind && kinds[b] == floatKind {
		return promote(a, complexOf[b])
	}
	switch {
	case kinds[a] != kinds[b]:
		return a
	case rank[a] > rank[b]:
		return a
	case rank[a] < rank[b]:
		return b
	case kinds[a] == intKind:
		return torchInt16 // promoted from torchUint8 and torchInt8
	}
	return torchFloat32 // promoted from torchFloat16 and torchBfloat16
}

// combine returns the dtype of the operand with the higher priority, unless the other operand's dtype is of a
// higher kind: see torch.result_type.
func combine(higher, lower Dtype) Dtype {
	switch {
	case kinds[higher] == complexKind:
		return higher
	case kinds[higher] == floatKind:
		if kinds[lower] == complexKind {
			return complexOf[higher]
		}
		return higher
	case higher == "" || higher == torchBool || lower.floating():
		return promote(higher, lower)
	}
	return higher
}

// resultType implements torch.result_type for tensors and numbers.
func (c *call) resultType(operands ...Value) Dtype {
	var dims, zero, number Dtype
	for _, v := range operands {
		switch v := v.(type) {
		case *Tensor:
			if !v.Dtype.Known() {
				c.bad = true
			}
			if len(v.Shape) > 0 {
				dims = promote(dims, v.Dtype)
			} else {
				zero = promote(zero, v.Dtype)
			}
		case Bool:
			number = promote(number, torchBool)
		case Int:
			number = promote(number, torchInt64)
		case Float:
			number = promote(number, c.DefaultDtype)
		default:
			c.bad = true
		}
	}
	return combine(dims, combine(zero, number))
}

// dtype reads an operand that must be a dtype. It returns `fallback` if the operand is absent or None.
func (c *call) dtype(v Value, fallback Dtype) Dtype {
	if none(v) {
		return fallback
	}
	if d, ok := v.(Dtype); ok && d.Known() {
		return d
	}
	c.bad = true
	return fallback
}

// device returns the common device of the tensor operands. Tensors without dimensions may be on the CPU instead, if
// another tensor has dimensions.
func (c *call) device(operands ...Value) Device {
	var found, zero Device
	for _, v := range operands {
		t, ok := v.(*Tensor)
		if !ok {
			continue
		}
		at := &found
		if len(t.Shape) == 0 {
			at = &zero
		}
		if *at != "" && *at != t.Device {
			c.bad = true
		}
		*at = t.Device
	}
	if found != "" && zero != "" && zero != found && zero != "cpu" {
		c.bad = true
	}
	if found == "" {
		return zero
	}
	return found
}

// oneDtype fails if the tensors differ in dtype.
func (c *call) oneDtype(tensors ...*Tensor) {
	for _, t := range tensors[1:] {
		if t.Dtype != tensors[0].Dtype {
			c.bad = true
		}
	}
}

// oneDevice fails if the tensors differ in device.
func (c *call) oneDevice(tensors ...*Tensor) {
	for _, t := range tensors[1:] {
		if t.Device != tensors[0].Device {
			c.bad = true
		}
	}
}

// real returns the dtype of the absolute value.
func (d Dtype) real() Dtype {
	if kinds[d] == complexKind {
		return realOf[d]
	}
	return d
}
