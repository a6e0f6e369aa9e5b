package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// OptimizedVariable represents a callable made by godynamo or torch.jit.script. A call of it calls the wrapped
// function, but the callable is an object of its own.
type OptimizedVariable struct {
	Base
	Obj   py.Object
	wraps VariableTracker // a function, or a method if the callable is bound
}

// wrapOptimized returns the tracker of a callable that wraps function fn.
func wrapOptimized(tx Translator, obj, fn py.Object, src guards.Source) (VariableTracker, []guards.Guard, error) {
	out := tx.Output()
	v := &OptimizedVariable{Base: Base{Src: src}, Obj: obj,
		wraps: NewFunction(fn, guards.NewConstSource(out.Const(fn), "___wrapped"))}
	if self, ok := tx.World().CallableSelf(obj); ok {
		v.wraps = NewMethod(v.wraps, tx.Build(self, guards.NewConstSource(out.Const(self), "___wrapped_self")), nil)
	}
	return v, []guards.Guard{guards.IDMatch(src, out.Const(obj), guards.KeepWeak)}, nil
}

// Kind implements VariableTracker.
func (*OptimizedVariable) Kind() string { return "OptimizedVariable" }

// Children implements Container.
func (v *OptimizedVariable) Children() []VariableTracker { return []VariableTracker{v.wraps} }

// AsConstant implements Constant.
func (v *OptimizedVariable) AsConstant(Translator) (py.Object, bool) { return v.Obj, true }

// PythonType implements Typed.
func (v *OptimizedVariable) PythonType(Translator) (py.Object, error) { return v.Obj.Type(), nil }

// Truth implements Truther.
func (*OptimizedVariable) Truth(Translator) (bool, error) { return true, nil }

// Call implements Caller.
func (v *OptimizedVariable) Call(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	tx.World().optimized++
	defer func() { tx.World().optimized-- }()
	return Call(tx, v.wraps, args, kwargs)
}

// GetAttr implements AttrGetter for the function itself (`function`) and its name, module and docstring. CPython reads
// other attributes.
func (v *OptimizedVariable) GetAttr(tx Translator, name string) (VariableTracker, error) {
	switch name {
	case "__name__", "__qualname__", "__module__", "__doc__":
		text, err := tx.Scope().GetAttr(v.Obj, name)
		if err != nil {
			return nil, observed(err)
		}
		return immutableResult(tx, text)
	case "function":
		fn := tx.World().CallableFunction(v.Obj)
		return tx.Build(fn, guards.NewConstSource(tx.Output().Const(fn), "___wrapped")), nil
	}
	return nil, unsupported(exc.AttrUnsupported, "%s of an optimized function", name)
}

// callWrapped calls the function that a wrapper made by godynamo.run or torch.compile calls. It is captured like any
// other function: the caller's backend gets its operations. In a program that requested no compilation, torch.compile
// compiles the function, so the call breaks the graph.
func (t *TorchVariable) callWrapped(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	w, s := tx.World(), tx.Scope()
	if t.Src == nil || t.detail == "compile" && w.Transparent && w.optimized == 0 {
		return nil, nil
	}
	code, _ := s.FunctionField(t.Fn, py.FuncCode)
	names, err := s.GetAttr(code, "co_freevars")
	if err != nil {
		return nil, observed(err)
	}
	closure, _ := s.FunctionField(t.Fn, py.FuncClosure)
	cells := guards.NewFunctionFieldSource(t.Src, guards.FuncClosure)
	for i, name := range s.Items(names) {
		if py.GoString(name) != "fn" {
			continue
		}
		fn, ok := s.CellContents(s.Items(closure)[i])
		if !ok {
			break
		}
		return Call(tx, tx.Build(fn, guards.NewCellSource(guards.NewIndexSource(cells, i))), args, kwargs)
	}
	return nil, nil
}

// Reconstruct implements Reconstructer.
func (v *OptimizedVariable) Reconstruct(e Emitter) error {
	e.LoadConst(v.Obj)
	return nil
}
