package variables

import (
	"strings"

	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// TransformVariable is what torch.vmap, torch.func.grad and their like give for a function. Its call is one operation of the graph, whose
// target makes the function anew from a template (python/godynamo/_higher.py) and calls it, so that torch's own transform runs the
// user's own code. That code is translated once, for what it rests on: one that does something that can be seen is CPython's.
type TransformVariable struct {
	Base
	maker  *TorchVariable
	name   string // vmap, grad, ...
	args   []VariableTracker
	kwargs []Kw
}

// makeTransform is the call of torch.vmap and its like.
func makeTransform(tx Translator, t *TorchVariable, name string, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if len(args) == 0 {
		return nil, unsupported(exc.CallUnsupported, "%s without a function", name)
	}
	for _, a := range append(kwValues(kwargs), args[1:]...) {
		if _, known := AsConstant(tx, mustRealize(tx, a)); !known {
			return nil, unsupported(exc.CallUnsupported, "%s with %s", name, Describe(tx, a))
		}
	}
	f, err := Realize(tx, args[0])
	if err != nil {
		return nil, err
	}
	switch f.(type) {
	case *FunctionVariable, *TransformVariable, *TorchVariable, *PartialVariable:
	default:
		return nil, unsupported(exc.CallUnsupported, "%s of %s", name, Describe(tx, f))
	}
	made := append([]VariableTracker{f}, args[1:]...)
	return &TransformVariable{maker: t, name: name[strings.LastIndexByte(name, '.')+1:], args: made, kwargs: kwargs}, nil
}

// Kind implements VariableTracker.
func (*TransformVariable) Kind() string { return "FunctorchHigherOrderVariable" }

// Children implements Container.
func (v *TransformVariable) Children() []VariableTracker {
	return append(kwValues(v.kwargs), v.args...)
}

// PythonType implements Typed.
func (*TransformVariable) PythonType(tx Translator) (py.Object, error) {
	return tx.World().FunctionType, nil
}

// Truth implements Truther.
func (*TransformVariable) Truth(Translator) (bool, error) { return true, nil }

// Reconstruct implements Reconstructer.
func (v *TransformVariable) Reconstruct(e Emitter) error {
	e.PushNull()
	e.LoadConst(v.maker.Fn)
	if err := loadAll(e, v.args); err != nil {
		return err
	}
	names := kwNames(v.kwargs)
	for _, kw := range v.kwargs {
		if err := e.Load(kw.Value); err != nil {
			return err
		}
	}
	e.Call(len(v.args)+len(names), names)
	return nil
}

// Call implements Caller.
func (v *TransformVariable) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	refused := unsupported(exc.CallUnsupported, "the function that torch's %s has made", v.name)
	w, s := tx.World(), tx.Scope()
	if len(kwargs) > 0 || len(args) == 0 || w.Effects > 0 || w.Calls > 0 {
		return nil, refused
	}
	for i, a := range args {
		t, err := Realize(tx, a)
		if err != nil {
			return nil, err
		}
		if !isTensor(t) {
			return nil, refused
		}
		args[i] = t
	}
	lift := &lifting{tx: tx, refused: refused}
	var err error
	if lift.module, err = s.Import("godynamo._higher"); err != nil {
		return nil, err
	}
	template, err := lift.template(v)
	if err != nil {
		return nil, err
	}
	seen, err := tx.Output().Tentative(func() error {
		samples, err := v.samples(tx, lift, args)
		if err != nil {
			return err
		}
		_, err = Call(tx, v.args[0], samples, nil)
		return err
	})
	if isObserved(err) || err == nil && seen {
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	target, err := s.CallMethod(lift.module, "operation", template, s.Str("torch_func_"+v.name))
	if err != nil {
		return nil, err
	}
	operands := append([]VariableTracker{NewTuple(lift.operands, nil)}, args...)
	return callAllowed(tx, target, "torch.func."+v.name, operands, nil)
}

// samples are tensors that look like those the function is called with: under vmap one of each.
func (v *TransformVariable) samples(tx Translator, lift *lifting, args []VariableTracker) ([]VariableTracker, error) {
	if v.name != "vmap" {
		return args, nil
	}
	s := tx.Scope()
	along := s.Int(0)
	var given VariableTracker
	if len(v.args) > 1 {
		given = v.args[1]
	}
	for _, kw := range v.kwargs {
		if kw.Name == "in_dims" {
			given = kw.Value
		}
	}
	if given != nil {
		along, _ = AsConstant(tx, mustRealize(tx, given))
	}
	dims, err := s.CallMethod(lift.module, "dimensions", along, s.Int(int64(len(args))))
	if err != nil || dims == py.None() {
		return nil, lift.refused
	}
	out := append([]VariableTracker(nil), args...)
	for i, d := range s.Items(dims) {
		if d == py.None() {
			continue
		}
		dim, _ := py.AsInt(d)
		node, err := tx.Output().CallMethod(tx, "select", []VariableTracker{args[i], IntConst(tx, int(dim)), IntConst(tx, 0)}, nil)
		if err != nil {
			return nil, err
		}
		out[i] = NewTensor(node)
	}
	return out, nil
}

// lifting turns a function into a template, and the tensors it holds into operands.
type lifting struct {
	tx       Translator
	module   py.Object
	operands []VariableTracker
	refused  error
	depth    int
}

// maxLifted bounds functions in functions in functions.
const maxLifted = 20

func (l *lifting) template(v VariableTracker) (py.Object, error) {
	l.depth++
	defer func() { l.depth-- }()
	if l.depth > maxLifted {
		return py.Object{}, l.refused
	}
	v, err := Realize(l.tx, v)
	if err != nil {
		return py.Object{}, err
	}
	s := l.tx.Scope()
	switch x := v.(type) {
	case *TensorVariable:
		l.operands = append(l.operands, x)
		return s.CallMethod(l.module, "operand", s.Int(int64(len(l.operands)-1)))
	case *TupleVariable:
		items, err := l.templates(x.Children())
		if err != nil {
			return py.Object{}, err
		}
		return s.CallMethod(l.module, "together", items)
	case *FunctionVariable:
		return l.function(x)
	case *TransformVariable:
		return l.called(x.maker.Fn, x.args, x.kwargs)
	case *PartialVariable:
		return l.called(l.tx.World().PartialType, append([]VariableTracker{x.Fn}, x.Args...), x.Kwargs)
	}
	if c, known := AsConstant(l.tx, v); known {
		return s.CallMethod(l.module, "constant", c)
	}
	return py.Object{}, l.refused
}

func (l *lifting) templates(vs []VariableTracker) (py.Object, error) {
	out := make([]py.Object, len(vs))
	for i, v := range vs {
		var err error
		if out[i], err = l.template(v); err != nil {
			return py.Object{}, err
		}
	}
	return l.tx.Scope().Tuple(out...), nil
}

func (l *lifting) named(kws []Kw) (py.Object, error) {
	pairs := make([][2]py.Object, len(kws))
	for i, kw := range kws {
		t, err := l.template(kw.Value)
		if err != nil {
			return py.Object{}, err
		}
		pairs[i] = [2]py.Object{l.tx.Scope().Name(kw.Name), t}
	}
	return l.tx.Scope().Dict(pairs...)
}

func (l *lifting) called(maker py.Object, args []VariableTracker, kwargs []Kw) (py.Object, error) {
	a, err := l.templates(args)
	if err != nil {
		return py.Object{}, err
	}
	k, err := l.named(kwargs)
	if err != nil {
		return py.Object{}, err
	}
	return l.tx.Scope().CallMethod(l.module, "called", maker, a, k)
}

// function lifts a function that the frame made, or one that holds nothing of its own.
func (l *lifting) function(f *FunctionVariable) (py.Object, error) {
	s := l.tx.Scope()
	if !f.Fn.IsNull() {
		for _, name := range []string{"__closure__", "__defaults__", "__kwdefaults__"} {
			if v, err := s.GetAttr(f.Fn, name); err != nil || v != py.None() {
				return py.Object{}, l.refused
			}
		}
		code, err := s.GetAttr(f.Fn, "__code__")
		if err != nil {
			return py.Object{}, err
		}
		globals, err := s.GetAttr(f.Fn, "__globals__")
		if err != nil {
			return py.Object{}, err
		}
		none, err := s.Dict()
		if err != nil {
			return py.Object{}, err
		}
		return s.CallMethod(l.module, "rebuilt", code, globals, s.Tuple(), none, s.Tuple())
	}
	if len(f.attrs) > 0 {
		return py.Object{}, l.refused
	}
	cells := make([]py.Object, len(f.Closure))
	for i, c := range f.Closure {
		contents, err := c.Get(l.tx)
		if err != nil {
			return py.Object{}, err
		}
		if contents == nil {
			cells[i] = py.None()
		} else if cells[i], err = l.template(contents); err != nil {
			return py.Object{}, err
		}
	}
	defaults, err := l.templates(f.Defaults)
	if err != nil {
		return py.Object{}, err
	}
	keywords, err := l.named(f.KwDefaults)
	if err != nil {
		return py.Object{}, err
	}
	return s.CallMethod(l.module, "rebuilt", f.Code, f.GlobalsDict, defaults, keywords, s.Tuple(cells...))
}
