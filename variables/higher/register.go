package higher

import "github.com/godynamo/godynamo/variables"

func init() {
	variables.RegisterHigherCalls(variables.HigherCalls{
		Transform: makeTransform, Transformed: transformed, Operator: hop, Take: take, ApplyFunction: applyFunction,
		GraphFunction: callGraphFunction,
	})
}
