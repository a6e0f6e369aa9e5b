package shapes

// elementwise are operations each element of whose result rests on the elements at its place alone, whatever the tensors' sizes.
var elementwise = map[string]bool{}

func init() {
	for _, name := range []string{"add", "sub", "mul", "multiply", "subtract", "div", "divide", "true_divide", "neg", "negative", "abs", "absolute",
		"exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sigmoid", "tanh", "sin", "cos", "tan", "sinh", "cosh", "asin",
		"acos", "atan", "asinh", "acosh", "atanh", "erf", "erfc", "reciprocal", "relu", "square", "sign", "floor", "ceil", "trunc", "maximum",
		"minimum", "where", "pow", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isinf",
		"isfinite"} {
		elementwise["torch."+name], elementwise["."+name] = true, true
	}
	for _, name := range []string{"add", "sub", "mul", "truediv", "neg", "pow", "eq", "ne", "lt", "le", "gt", "ge", "abs", "and_", "or_", "xor", "invert"} {
		elementwise["operator."+name] = true
	}
}

// Elementwise tells whether an operation, by the name that a graph prints, does the same to a batch of tensors of one rank as to each alone.
func Elementwise(method bool, name string) bool {
	if method {
		name = "." + name
	}
	return elementwise[name]
}
