package variables

import (
	"reflect"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Body is the graph of a function that is an operand of an operation.
type Body struct {
	// the nodes, as _backends/graph_modules takes them: placeholders for the arguments, then for Free
	Rows        py.Object
	Free        []VariableTracker // tensors that it reads from outside
	Draws       bool              // random numbers
	Uses        []bool            // which arguments it looks at
	Elementwise bool              // see fxgraph/shapes.Elementwise
	// Replay captures the same operations on other tensors, outside.
	Replay func(places []VariableTracker) ([]VariableTracker, error)
}

// GraphFunction is a function that an operation of the graph has made, and that the program can only call.
type GraphFunction struct {
	Base
	Node *fxgraph.Node
}

// Kind implements VariableTracker.
func (*GraphFunction) Kind() string { return "GraphFunction" }

// AsProxy implements Proxy.
func (v *GraphFunction) AsProxy(Translator) (fxgraph.Arg, error) { return v.Node, nil }

// PythonType implements Typed.
func (*GraphFunction) PythonType(tx Translator) (py.Object, error) {
	return tx.World().FunctionType, nil
}

// Truth implements Truther.
func (*GraphFunction) Truth(Translator) (bool, error) { return true, nil }

// Call implements Caller.
func (v *GraphFunction) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	return higherCalls.GraphFunction(tx, v, args, kwargs)
}

// HigherCalls handle calls that take functions. The package variables/higher implements and registers them.
type HigherCalls struct {
	// Transform is the call of torch.vmap, torch.func.grad or their like.
	Transform func(tx Translator, t *TorchVariable, name string, args []VariableTracker,
		kwargs []Kw) (VariableTracker, error)
	// Transformed is the call of a function of the frame that one of these calls has made.
	Transformed func(tx Translator, t *TorchVariable, args []VariableTracker, kwargs []Kw) (VariableTracker, error)
	// Operator is the call of a higher-order operator: torch.cond, scan, ...
	Operator func(tx Translator, t *TorchVariable, args []VariableTracker, kwargs []Kw) (VariableTracker, error)
	// Take is the call of a function that takes a function and calls it; what: vjp, jvp, checkpoint or functional_call.
	Take func(tx Translator, t *TorchVariable, what string, args []VariableTracker,
		kwargs []Kw) (VariableTracker, error)
	// ApplyFunction is the call of the apply of a torch.autograd.Function.
	ApplyFunction func(tx Translator, class *ClassVariable, args []VariableTracker) (VariableTracker, error)
	// GraphFunction is the call of a function that an operation of the graph has made.
	GraphFunction func(tx Translator, f *GraphFunction, args []VariableTracker, kwargs []Kw) (VariableTracker, error)
}

var higherCalls HigherCalls // set once, at start

// RegisterHigherCalls sets the calls, before the first translation. It panics if one is missing.
func RegisterHigherCalls(calls HigherCalls) {
	fields := reflect.ValueOf(calls)
	for i := range fields.NumField() {
		if fields.Field(i).IsNil() {
			panic("variables: HigherCalls lacks " + fields.Type().Field(i).Name)
		}
	}
	higherCalls = calls
}
