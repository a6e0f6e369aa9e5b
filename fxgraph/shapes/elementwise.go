package shapes

// elementwise lists the operations whose result elements depend only on the operands' elements at the same
// position, whatever the tensors' sizes.
var elementwise = map[string]bool{}

func init() {
	for _, name := range []string{"add", "sub", "mul", "multiply", "subtract", "div", "divide", "true_divide", "neg",
		"negative", "abs", "absolute",
		"exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sigmoid", "tanh", "sin", "cos",
		"tan", "sinh", "cosh", "asin",
		"acos", "atan", "asinh", "acosh", "atanh", "erf", "erfc", "reciprocal", "relu", "square", "sign", "floor",
		"ceil", "trunc", "maximum",
		"minimum", "where", "pow", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor",
		"logical_not", "isnan", "isinf",
		"isfinite"} {
		elementwise["torch."+name], elementwise["."+name] = true, true
	}
	for _, name := range []string{"add", "sub", "mul", "truediv", "neg", "pow", "eq", "ne", "lt", "le", "gt", "ge",
		"abs", "and_", "or_", "xor", "invert"} {
		elementwise["operator."+name] = true
	}
}

// Elementwise reports whether an operation, given by its printed name, has the same result for a batch as for each
// tensor of the batch alone. The answer is valid for operands of equal rank.
func Elementwise(method bool, name string) bool {
	if method {
		name = "." + name
	}
	return elementwise[name]
}
