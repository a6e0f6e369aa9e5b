package opcode

import "strings"

// operatorNames has the name of each operator as it occurs in special methods: "and" in __and__, __rand__, __iand__.
var operatorNames = [...]string{
	NB_ADD: "add", NB_AND: "and", NB_FLOOR_DIVIDE: "floordiv", NB_LSHIFT: "lshift", NB_MATRIX_MULTIPLY: "matmul",
	NB_MULTIPLY:  "mul",
	NB_REMAINDER: "mod", NB_OR: "or", NB_POWER: "pow", NB_RSHIFT: "rshift", NB_SUBTRACT: "sub",
	NB_TRUE_DIVIDE: "truediv", NB_XOR: "xor",
}

// comparisonNames has the name of each comparison in special methods and in the module `operator`.
var comparisonNames = [...]string{CMP_LT: "lt", CMP_LE: "le", CMP_EQ: "eq", CMP_NE: "ne", CMP_GT: "gt", CMP_GE: "ge"}

// swapped has, for each comparison, the equal comparison with exchanged operands: a < b is b > a.
var swapped = [...]CompareOp{CMP_LT: CMP_GT, CMP_LE: CMP_GE, CMP_EQ: CMP_EQ, CMP_NE: CMP_NE, CMP_GT: CMP_LT,
	CMP_GE: CMP_LE}

// Name returns the operator's name in special methods, such as "and". It leaves out the "i" of an augmented
// assignment.
func (b BinaryOp) Name() string { return operatorNames[b.Plain()] }

// Method returns the special method of the left operand, such as "__and__". It is the same for an augmented
// assignment.
func (b BinaryOp) Method() string { return "__" + b.Name() + "__" }

// Reflected returns the special method of the right operand, such as "__rand__".
func (b BinaryOp) Reflected() string { return "__r" + b.Name() + "__" }

// InplaceMethod returns the special method of the augmented assignment, such as "__iand__".
func (b BinaryOp) InplaceMethod() string { return "__i" + b.Name() + "__" }

// InplaceOp returns the operator of the augmented assignment: NB_INPLACE_ADD for NB_ADD.
func (b BinaryOp) InplaceOp() BinaryOp { return b.Plain() - NB_ADD + NB_INPLACE_ADD }

// Function returns the name of the operator's function in the module `operator`: "and_", "iand", "add".
func (b BinaryOp) Function() string {
	switch name := b.Name(); {
	case b.Inplace():
		return "i" + name
	case b == NB_AND || b == NB_OR: // `and` and `or` are keywords
		return name + "_"
	default:
		return name
	}
}

// InMessages returns the operator as CPython's TypeErrors show it: "+", "+=", "** or pow()".
func (b BinaryOp) InMessages() string {
	if b == NB_POWER {
		return "** or pow()"
	}
	return b.Symbol()
}

// BinaryOpOf returns the operator for the name of a function in the module `operator`. The name may have underscores:
// "and_", "__and__", "iand".
func BinaryOpOf(function string) (BinaryOp, bool) {
	b, ok := binaryOps[strings.Trim(function, "_")]
	return b, ok
}

// Name returns the name of the comparison's function in the module `operator`, such as "lt".
func (c CompareOp) Name() string { return comparisonNames[c] }

// Method returns the comparison's special method, such as "__lt__".
func (c CompareOp) Method() string { return "__" + c.Name() + "__" }

// Swapped returns the equal comparison with exchanged operands: > for <.
func (c CompareOp) Swapped() CompareOp { return swapped[c] }

// CompareOpOf returns the comparison for the name of a function in the module `operator`. The name may have
// underscores.
func CompareOpOf(function string) (CompareOp, bool) {
	c, ok := compareOps[strings.Trim(function, "_")]
	return c, ok
}

// binaryOps and compareOps map the names of functions in the module `operator`, without underscores, to operators.
var binaryOps, compareOps = map[string]BinaryOp{}, map[string]CompareOp{}

func init() {
	for b := NB_ADD; b.Valid(); b++ {
		binaryOps[strings.Trim(b.Function(), "_")] = b
	}
	for c := CMP_LT; c.Valid(); c++ {
		compareOps[c.Name()] = c
	}
}
