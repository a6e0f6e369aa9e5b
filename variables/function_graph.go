package variables

import (
	"reflect"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Body is the captured graph of a function that is passed to an operation such as torch.cond.
type Body struct {
	// Foreign is set if the function runs foreign operations. Ends then says what each result is like.
	Foreign bool
	Ends    []ForeignResult
	// Rows are the nodes in the form that _backends/graph_modules expects. The placeholders are the arguments,
	// followed by Free.
	Rows        py.Object
	Free        []VariableTracker // tensors and sizes from outside the function that it reads
	Draws       bool              // whether the function draws random numbers
	Uses        []bool            // which arguments the function reads
	Sizes       []ResultSizes     // the sizes of each result; nil if the rules yield none
	Elementwise bool              // see fxgraph/shapes.Elementwise
	// Replay captures the same operations in the outer graph, on other tensors.
	Replay func(places []VariableTracker) ([]VariableTracker, error)
}

// BodyRules says what an operation demands of its functions.
type BodyRules struct {
	Fresh   bool // results share no memory with one another or with an outer tensor
	Foreign bool // foreign operations are allowed; the operation then is foreign itself
	Grad    bool // the operation switches grad mode on before it calls them
	Sizes   bool // the operation takes the sizes that the functions read as operands
}

// ForeignResult has what an Output knows about a result of foreign operations. It is passed to Output.GiveForeign.
type ForeignResult any

// GraphFunction represents a function that an operation of the graph returned. The program can only call it.
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

// HigherCalls holds handlers for calls of torch's functions that take a function as an argument. The package
// variables/higher implements and registers them.
type HigherCalls struct {
	// Transform handles a call of torch.vmap, torch.func.grad or a similar transform.
	Transform func(tx Translator, t *TorchVariable, name string, args []VariableTracker,
		kwargs []Kw) (VariableTracker, error)
	// Transformed handles a call of the function that a transform returned.
	Transformed func(tx Translator, t *TorchVariable, args []VariableTracker, kwargs []Kw) (VariableTracker, error)
	// Operator handles a call of a higher-order operator: torch.cond, scan, ...
	Operator func(tx Translator, t *TorchVariable, args []VariableTracker, kwargs []Kw) (VariableTracker, error)
	// Take handles a call of a torch function that takes a function and calls it. The parameter `what` names it: vjp,
	// jvp, checkpoint or functional_call.
	Take func(tx Translator, t *TorchVariable, what string, args []VariableTracker,
		kwargs []Kw) (VariableTracker, error)
	// ApplyFunction handles a call of a torch.autograd.Function's apply.
	ApplyFunction func(tx Translator, class *ClassVariable, args []VariableTracker) (VariableTracker, error)
	// GraphFunction handles a call of a function that an operation of the graph returned.
	GraphFunction func(tx Translator, f *GraphFunction, args []VariableTracker, kwargs []Kw) (VariableTracker, error)
}

var higherCalls HigherCalls // set once at startup

// RegisterHigherCalls sets the handlers. It is called before the first translation, and panics if a handler is
// missing.
func RegisterHigherCalls(calls HigherCalls) {
	fields := reflect.ValueOf(calls)
	for i := range fields.NumField() {
		if fields.Field(i).IsNil() {
			panic("variables: HigherCalls lacks " + fields.Type().Field(i).Name)
		}
	}
	higherCalls = calls
}
