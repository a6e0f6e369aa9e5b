package variables

import (
	"slices"

	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// comptime implements godynamo.comptime and its shorthands. The user's function runs while translating, receives a
// snapshot of the frames, and adds nothing to the graph. It may request a graph break. Exceptions that it raises
// propagate to the user.
func (t *TorchVariable) comptime(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	name := t.detail
	s := tx.Scope()
	tx.World().Local = "a function runs while translating (comptime)"
	module, err := s.Import("godynamo._translator.comptime")
	if err != nil {
		return nil, err
	}
	views := make([]py.Object, len(args))
	for i, a := range args {
		if views[i], err = comptimeArgument(tx, a); err != nil {
			return nil, err
		}
	}
	var named [][2]py.Object
	for _, kw := range kwargs {
		v, err := comptimeArgument(tx, kw.Value)
		if err != nil {
			return nil, err
		}
		named = append(named, [2]py.Object{s.Name(kw.Name), v})
	}
	given, err := s.Dict(named...)
	if err != nil {
		return nil, err
	}
	snapshot, err := tx.Snapshot()
	if err != nil {
		return nil, err
	}
	answer, err := s.CallMethod(module, "call", s.Str(name), s.Tuple(views...), given, snapshot)
	if err != nil {
		return nil, err
	}
	if answer != pyNone {
		return nil, unsupported(exc.ExplicitBreak, "%s", py.GoString(answer))
	}
	if name == "print_value_stack_and_return" {
		return arg(args, 0), nil
	}
	return NoneConst(), nil
}

// plainKinds are the kinds of immutable values that a snapshot shows even if the program has not read them.
var plainKinds = []py.Kind{py.NoneKind, py.BoolKind, py.Int, py.Float, py.Str, py.Bytes}

// comptimeArgument returns the object that the user's function receives for v. For a function this is the function
// itself or, if it does not exist as a real object, its parts: code, globals, name, and the views of its closure and
// defaults. For any other v it is View(v).
func comptimeArgument(tx Translator, v VariableTracker) (py.Object, error) {
	s := tx.Scope()
	if l, ok := v.(*LazyVariable); ok && !l.Realized() {
		switch l.obj.Kind() {
		case py.Function, py.Builtin, py.Method, py.TypeKind:
			return s.Tuple(s.Name("function"), l.obj), nil
		}
	}
	if l, ok := v.(*LazyVariable); ok && l.Realized() {
		v = l.Real()
	}
	f, ok := v.(*FunctionVariable)
	if !ok {
		return View(tx, v)
	}
	if !f.Fn.IsNull() {
		return s.Tuple(s.Name("function"), f.Fn), nil
	}
	if f.KwDefaults != nil {
		return py.Object{}, unsupported(exc.CallUnsupported, "comptime of a function with keyword-only defaults")
	}
	cells := make([]py.Object, len(f.Closure))
	for i, c := range f.Closure {
		var err error
		if cells[i], err = View(tx, c.peek()); err != nil {
			return py.Object{}, err
		}
	}
	given, err := f.DefaultItems(tx)
	if err != nil {
		return py.Object{}, err
	}
	defaults := make([]py.Object, len(given))
	for i, d := range given {
		if defaults[i], err = View(tx, d); err != nil {
			return py.Object{}, err
		}
	}
	return s.Tuple(s.Name("code"), f.Code, f.GlobalsDict, s.Str(f.Name), s.Tuple(cells...), s.Tuple(defaults...)), nil
}

// peek returns the contents of a cell, or nil if the cell is empty. For a cell that the program has not read, it
// returns the cell itself. It adds no guard.
func (c *CellVariable) peek() VariableTracker {
	if c.loaded {
		return c.contents
	}
	return c
}

// View returns the fields of a _translator/comptime.ComptimeVar for v: (kind, text, type or None, known, value or None,
// node or -1, example or None). It adds no guard.
func View(tx Translator, v VariableTracker) (py.Object, error) {
	s := tx.Scope()
	kind, text, known, node := "NULL", "NULL", py.False(), int64(-1)
	class, value, example := py.None(), py.None(), py.None()
	if c, ok := v.(*CellVariable); ok {
		if v = c.peek(); v == c {
			if obj, full := s.CellContents(c.Real); full {
				v = NewLazy(obj, c.Src)
			} else {
				v = nil
			}
		}
	}
	if l, ok := v.(*LazyVariable); ok {
		if l.Realized() {
			v = l.Real()
		} else {
			class = l.obj.Type()
			switch k := l.obj.Kind(); {
			case tx.World().IsTensor(l.obj):
				example = l.obj
			case slices.Contains(plainKinds, k):
				known, value = py.True(), l.obj
			}
		}
	}
	if v != nil {
		kind, text = v.Kind(), Describe(tx, v)
	}
	switch x := v.(type) {
	case nil, *LazyVariable, *OpaqueVariable, *ComputedVariable:
	case *TensorVariable:
		class = x.Class
		if class.IsNull() {
			class = tx.World().TensorType
		}
		if x.Node != nil {
			node = int64(x.Node.Index)
		}
		if !x.Example.IsNull() && !x.Changed {
			example = x.Example
		}
	default:
		if c, ok := AsConstant(tx, v); ok {
			known, value, class = py.True(), c, c.Type()
		} else if t, err := PythonType(tx, v); err == nil {
			class = t
		} else if _, ok := err.(*exc.Unsupported); !ok {
			return py.Object{}, err
		}
	}
	return s.Tuple(s.Str(kind), s.Str(text), class, known, value, s.Int(node), example), nil
}
