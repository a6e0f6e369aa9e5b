package variables

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// What takes functions (torch.vmap, torch.cond, torch.utils.checkpoint, ...) is one operation of the graph. Each function that it is given is
// translated once, on tensors that stand for those it will be called with, to a graph of its own (Output.Body). The operation's target
// (python/godynamo/_translator/higher.py) gives torch a function that runs that graph; tensors that the function reads from outside are operands of
// the operation, so that autograd and every backend see them.

// Body is what a function captures that an operation is given, as a graph of its own.
type Body struct {
	Rows        py.Object         // the nodes, as _backends.build_graph_module takes them: placeholders for the arguments, then for Free
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
	m, err := tx.Scope().Import("godynamo._translator.higher")
	if err != nil {
		return nil, err
	}
	called, err := tx.Scope().GetAttr(m, "called_function")
	if err != nil {
		return nil, err
	}
	h := &higher{tx: tx, module: m, name: "a function that the graph makes"}
	arguments, tensors, err := h.arguments(args, kwargs)
	if err != nil {
		return nil, err
	}
	target, err := tx.Scope().Call(called, arguments[0], arguments[1])
	if err != nil {
		return nil, err
	}
	return callAllowed(tx, target, "torch.func.called_function", append([]VariableTracker{v}, tensors...), nil)
}

// mapLeaves copies a value of lists, tuples and dicts with f's answers in the place of what is in them, in the order of
// torch.utils._pytree. false: it is of another kind.
func mapLeaves(tx Translator, v VariableTracker, f func(leaf VariableTracker) (VariableTracker, bool, error)) (VariableTracker, bool, error) {
	v, err := Realize(tx, v)
	if err != nil {
		return nil, false, err
	}
	if err := tx.World().enter(); err != nil {
		return nil, false, err
	}
	defer tx.World().leave()
	all := func(vs []VariableTracker) ([]VariableTracker, bool, error) {
		out := make([]VariableTracker, len(vs))
		for i, it := range vs {
			r, ok, err := mapLeaves(tx, it, f)
			if !ok || err != nil {
				return nil, false, err
			}
			out[i] = r
		}
		return out, true, nil
	}
	if v.base().holder != nil {
		return nil, false, nil
	}
	switch x := v.(type) {
	case *ListVariable:
		items, ok, err := all(x.items)
		return NewList(items, nil), ok, err
	case *TupleVariable:
		if !x.class.IsNull() {
			if _, named := tx.World().NamedTupleFields(tx.Scope(), x.class); !named {
				return nil, false, nil
			}
		}
		items, ok, err := all(x.items)
		return NewTupleOf(items, x.class, nil), ok, err
	case *DictVariable:
		if !x.class.IsNull() || x.factory != nil {
			return nil, false, nil
		}
		values, ok, err := all(x.values)
		if !ok || err != nil {
			return nil, false, err
		}
		d := NewDict(nil)
		for i, k := range x.keys {
			if err := d.put(tx, k, values[i]); err != nil {
				return nil, false, err
			}
		}
		return d, true, nil
	}
	return f(v)
}

// function is one that an operation is given, on its way to one that runs its graph.
type function struct {
	body     *Body
	template py.Object // _higher.function
	results  VariableTracker
	tensors  []VariableTracker // of the arguments, in the order of the body's placeholders
	plain    bool              // tensors alone come out of it
}

// higher is a call of what takes functions, under way.
type higher struct {
	tx     Translator
	module py.Object // godynamo._translator.higher
	name   string
	fresh  bool // functions return tensors of their own: no argument, no view of one, none twice
}

func newHigher(tx Translator, name string) (*higher, error) {
	m, err := tx.Scope().Import("godynamo._translator.higher")
	return &higher{tx: tx, module: m, name: name}, err
}

func (h *higher) refused(what string) error {
	return unsupported(exc.CallUnsupported, "%s %s", h.name, what)
}

// function translates f for a call with these arguments. sample gives the stand-in for the i-th leaf of the arguments, a tensor.
func (h *higher) function(f VariableTracker, args []VariableTracker, kwargs []Kw, sample func(i int, t *TensorVariable) (*TensorVariable, error)) (*function, error) {
	tx, s := h.tx, h.tx.Scope()
	out := &function{}
	var positions []py.Object
	var sampled []VariableTracker
	var sampledKw []Kw
	samples := func() ([]VariableTracker, error) {
		var places []VariableTracker
		leaves := 0
		replaced := func(v VariableTracker) (VariableTracker, error) {
			r, ok, err := mapLeaves(tx, v, func(leaf VariableTracker) (VariableTracker, bool, error) {
				leaves++
				t, isT := leaf.(*TensorVariable)
				if !isT {
					_, known := AsConstant(tx, leaf)
					return leaf, known, nil
				}
				if !t.Class.IsNull() && t.Class != tx.World().ParameterType {
					return nil, false, nil
				}
				p, err := sample(leaves-1, t)
				if err != nil {
					return nil, false, err
				}
				out.tensors = append(out.tensors, t)
				positions = append(positions, s.Int(int64(leaves-1)))
				places = append(places, p)
				return p, true, nil
			})
			if err == nil && !ok {
				err = h.refused("with " + Describe(tx, v))
			}
			return r, err
		}
		for _, a := range args {
			r, err := replaced(a)
			if err != nil {
				return nil, err
			}
			sampled = append(sampled, r)
		}
		for _, kw := range kwargs {
			r, err := replaced(kw.Value)
			if err != nil {
				return nil, err
			}
			sampledKw = append(sampledKw, Kw{kw.Name, r})
		}
		return places, nil
	}
	var result py.Object
	run := func() ([]VariableTracker, error) {
		r, err := Call(tx, f, sampled, sampledKw)
		if isObserved(err) {
			return nil, h.refused("of a function that raises")
		}
		if err != nil {
			return nil, err
		}
		out.results, out.plain = r, true
		var ends []VariableTracker
		result, err = h.result(r, &ends, &out.plain)
		return ends, err
	}
	var err error
	if out.body, err = tx.Output().Body(tx, h.fresh, samples, run); err != nil {
		if u, ok := err.(*exc.Unsupported); ok && u.DataDependent {
			return nil, h.refused("of a function whose control flow depends on data")
		}
		return nil, err
	}
	out.template, err = s.CallMethod(h.module, "function", out.body.Rows, s.Tuple(positions...), result, boolObject(len(kwargs) == 0 && plainTensors(tx, args)))
	return out, err
}

// keptFunction is function for an operation that keeps it and calls it again later. In it, checkpoint splits: which of the two functions
// runs again first is torch's.
func (h *higher) keptFunction(f VariableTracker, args []VariableTracker, kwargs []Kw, sample func(i int, t *TensorVariable) (*TensorVariable, error)) (*function, error) {
	h.tx.World().Kept++
	defer func() { h.tx.World().Kept-- }()
	return h.function(f, args, kwargs, sample)
}

func boolObject(b bool) py.Object {
	if b {
		return py.True()
	}
	return py.False()
}

func plainTensors(tx Translator, vs []VariableTracker) bool {
	for _, v := range vs {
		if !isTensor(mustRealize(tx, v)) {
			return false
		}
	}
	return true
}

// result is the template of a value: what a function returns, whose tensors are the ends of its body.
func (h *higher) result(v VariableTracker, ends *[]VariableTracker, plain *bool) (py.Object, error) {
	tx, s := h.tx, h.tx.Scope()
	v, err := Realize(tx, v)
	if err != nil {
		return py.Object{}, err
	}
	if err := tx.World().enter(); err != nil {
		return py.Object{}, err
	}
	defer tx.World().leave()
	all := func(vs []VariableTracker) (py.Object, error) {
		out := make([]py.Object, len(vs))
		for i, it := range vs {
			var err error
			if out[i], err = h.result(it, ends, plain); err != nil {
				return py.Object{}, err
			}
		}
		return s.Tuple(out...), nil
	}
	switch x := v.(type) {
	case *TensorVariable:
		if !x.Class.IsNull() && x.Class != tx.World().ParameterType {
			return py.Object{}, h.refused("with a " + py.TypeName(x.Class))
		}
		*ends = append(*ends, x)
		return s.CallMethod(h.module, "operand", s.Int(int64(len(*ends)-1)))
	case *ListVariable, *TensorSequence:
		items, err := Unpack(tx, v)
		if err != nil {
			return py.Object{}, err
		}
		class, err := PythonType(tx, v)
		if err != nil {
			return py.Object{}, err
		}
		parts, err := all(items)
		if err != nil {
			return py.Object{}, err
		}
		return s.CallMethod(h.module, "together", class, parts)
	case *TupleVariable:
		class := tx.World().TupleType
		if !x.class.IsNull() {
			class = x.class
			if _, named := tx.World().NamedTupleFields(s, class); !named {
				break
			}
		}
		parts, err := all(x.items)
		if err != nil {
			return py.Object{}, err
		}
		return s.CallMethod(h.module, "together", class, parts)
	case *DictVariable:
		if !x.class.IsNull() || x.factory != nil {
			break
		}
		parts, err := all(x.values)
		if err != nil {
			return py.Object{}, err
		}
		keys := make([]py.Object, len(x.keys))
		for i, k := range x.keys {
			c, known := AsConstant(tx, mustRealize(tx, k))
			if !known {
				return py.Object{}, h.refused("with a dict whose keys are not known")
			}
			keys[i] = c
		}
		return s.CallMethod(h.module, "mapping", s.Tuple(keys...), parts)
	}
	if c, known := AsConstant(tx, v); known {
		*plain = false
		return s.CallMethod(h.module, "constant", c)
	}
	return py.Object{}, h.refused("with " + Describe(tx, v))
}

// arguments are the templates of a tuple and a dict, and the tensors in them.
func (h *higher) arguments(args []VariableTracker, kwargs []Kw) (templates [2]py.Object, tensors []VariableTracker, err error) {
	plain := true
	if templates[0], err = h.result(NewTuple(args, nil), &tensors, &plain); err != nil {
		return templates, nil, err
	}
	named := NewDict(nil)
	for _, kw := range kwargs {
		if err := named.put(h.tx, StrConst(h.tx, kw.Name), kw.Value); err != nil {
			return templates, nil, err
		}
	}
	templates[1], err = h.result(named, &tensors, &plain)
	return templates, tensors, err
}

// skeleton is a value with small integers in the place of its leaves.
func (h *higher) skeleton(vs []VariableTracker) (py.Object, error) {
	r, ok, err := mapLeaves(h.tx, NewTuple(vs, nil), func(VariableTracker) (VariableTracker, bool, error) { return IntConst(h.tx, 0), true, nil })
	if err == nil && ok {
		if o, known := plainOption(h.tx, r); known {
			return o, nil
		}
	}
	if err == nil {
		err = h.refused("with these arguments")
	}
	return py.Object{}, err
}

// like makes the stand-in of a tensor: a function of _higher's that gives one with the same metadata.
func (h *higher) like(t *TensorVariable, how string, args ...VariableTracker) (*TensorVariable, error) {
	fn, err := h.tx.Scope().GetAttr(h.module, how)
	if err != nil {
		return nil, err
	}
	node, err := h.tx.Output().CallFunction(h.tx, fn, "torch.func."+how, append([]VariableTracker{t}, args...), nil)
	if err != nil {
		return nil, err
	}
	return NewTensor(node), nil
}
