package variables

import (
	"sort"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// The builtins below read their caller's frame. The translator knows that frame's contents. If CPython must run such a
// builtin, exc.Unsupported.Frame requests that it runs in the user's own frame, not in a transformed one.

func init() { // runs after builtin.go's init, which makes the map
	for name, h := range map[string]builtinHandler{
		"locals":  positional(0, 0, builtinLocals),
		"vars":    positional(0, 1, builtinVars),
		"dir":     positional(0, 1, builtinDir),
		"globals": positional(0, 0, builtinGlobals),
		"eval":    evaluates("eval"),
		"exec":    evaluates("exec"),
		"breakpoint": func(Translator, []VariableTracker, []Kw) (VariableTracker, error) {
			return nil, inOwnFrame("breakpoint")
		},
	} {
		builtinHandlers[name] = h
	}
}

func inOwnFrame(name string) error {
	return &exc.Unsupported{Code: exc.CallUnsupported, Context: name + "() in the frame that calls it", Frame: true}
}

// evaluates returns the handler of eval or exec. Without a namespace argument, they use the frame's namespaces.
func evaluates(name string) builtinHandler {
	return func(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
		if len(args) < 2 {
			if name == "eval" && len(args) == 1 && len(kwargs) == 0 {
				if r, err := evaluated(tx, args[0]); r != nil || err != nil {
					return r, err
				}
			}
			return nil, inOwnFrame(name)
		}
		if c, ok := AsConstant(tx, MustRealize(tx, args[1])); ok && c == py.None() {
			return nil, inOwnFrame(name)
		}
		return nil, unsupported(exc.CallUnsupported, "%s", name)
	}
}

// evaluated inlines an expression that eval() evaluates in its caller's namespaces. It returns nil if the text is
// unknown, or if CPython must evaluate it.
func evaluated(tx Translator, text VariableTracker) (VariableTracker, error) {
	text, err := Realize(tx, text)
	if err != nil {
		return nil, err
	}
	source, known := AsConstant(tx, text)
	locals, ok, err := tx.FrameLocals()
	if err != nil || !ok || !known || source.Kind() != py.Str {
		return nil, err
	}
	s := tx.Scope()
	names := make([]string, len(locals))
	values := map[string]VariableTracker{}
	for i, l := range locals {
		names[i], values[l.Name] = l.Name, l.Value
	}
	r, err := s.Call(tx.World().evaluated, source, tx.World().names(s, names))
	if err != nil || r == pyNone {
		return nil, observed(err)
	}
	var args []VariableTracker
	for _, name := range s.Items(s.Items(r)[1]) {
		args = append(args, values[py.GoString(name)])
	}
	fn := &FunctionVariable{Code: s.Items(r)[0], GlobalsDict: tx.Globals(), GlobalsSrc: tx.GlobalSource("").Base(),
		Name: "<module>", QualName: "<module>"}
	return tx.Inline(fn, args, nil)
}

// builtinLocals returns a dict of the frame's variables. It breaks the graph if the function may call locals() more
// than once, since every call returns the same dict and updates it.
func builtinLocals(tx Translator, _ []VariableTracker) (VariableTracker, error) {
	locals, ok, err := tx.FrameLocals()
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, inOwnFrame("locals")
	}
	d := NewDict(nil)
	for _, l := range locals {
		if err := d.put(tx, StrConst(tx, l.Name), l.Value); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func builtinVars(tx Translator, a []VariableTracker) (VariableTracker, error) {
	if len(a) == 0 {
		return builtinLocals(tx, nil)
	}
	v, err := Realize(tx, a[0])
	if err != nil {
		return nil, err
	}
	if _, ok := v.(*ObjectVariable); ok {
		d, err := GetAttr(tx, v, "__dict__")
		if e, ok := err.(*exc.Observed); ok && raises(tx, e, "AttributeError") {
			err = RaiseText(tx, "TypeError", "vars() argument must have __dict__ attribute")
		}
		return d, err
	}
	return nil, nil
}

// builtinDir implements dir(). Without an argument, it lists the frame's names. For an instance, it returns the result
// of __dir__. For a value of a builtin type, it lists the type's attributes.
func builtinDir(tx Translator, a []VariableTracker) (VariableTracker, error) {
	s := tx.Scope()
	if len(a) == 0 {
		locals, ok, err := tx.FrameLocals()
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, inOwnFrame("dir")
		}
		names := make([]string, len(locals))
		for i, l := range locals {
			names[i] = l.Name
		}
		sort.Strings(names) // Go orders UTF-8 text by code point, as CPython does
		items := make([]VariableTracker, len(names))
		for i, n := range names {
			items[i] = StrConst(tx, n)
		}
		return NewList(items, nil), nil
	}
	v, err := Realize(tx, a[0])
	if err != nil {
		return nil, err
	}
	if o, ok := v.(*ObjectVariable); ok {
		m, err := o.lookupSpecial(tx, "__dir__")
		if err != nil || m == nil {
			return nil, err
		}
		r, err := Call(tx, m, nil, nil)
		if err != nil {
			return nil, err
		}
		return builtinSorted(tx, []VariableTracker{r}, nil)
	}
	if c, ok := v.(*ClassVariable); ok {
		return dirOfClass(tx, c)
	}
	if !ofBuiltinType(v) {
		return nil, nil
	}
	t, err := PythonType(tx, v)
	if err != nil || t.Kind() == py.TypeSub {
		return nil, err
	}
	names, err := s.Call(tx.World().Builtin("dir"), t)
	if err != nil {
		return nil, observed(err)
	}
	return immutableResult(tx, names)
}

// dirOfClass implements dir(cls) of a class whose metaclass does not define __dir__. It guards that the class lists the
// same names. It returns nil for other classes, and if the program has set attributes of a class in this frame.
func dirOfClass(tx Translator, c *ClassVariable) (VariableTracker, error) {
	s, w := tx.Scope(), tx.World()
	own, _ := s.TypeLookup(w.TypeType, "__dir__")
	if d, _ := s.TypeLookup(c.Class.Type(), "__dir__"); d != own || w.Calls > 0 || w.Effects > 0 {
		return nil, nil
	}
	r, err := s.Call(w.listed, c.Class)
	if err != nil || r == pyNone {
		return nil, observed(err)
	}
	names, holds := s.Items(r)[0], s.Items(r)[1]
	tx.Output().AddGuards(guards.PyCheck(classSource(tx, c.Class), tx.Output().Const(holds), "lists the same names"))
	return immutableResult(tx, names)
}

// ofBuiltinType reports whether v is an instance of one of Python's builtin data types.
func ofBuiltinType(v VariableTracker) bool {
	switch x := v.(type) {
	case *ListVariable, *DictVariable, *SetVariable, *RangeVariable, *DequeVariable:
		return true
	case *TupleVariable:
		return x.class.IsNull()
	case *ConstantVariable:
		switch x.Value.Kind() {
		case py.NoneKind, py.BoolKind, py.Int, py.Float, py.Complex, py.Str, py.Bytes, py.EllipsisKind, py.Tuple,
			py.FrozenSet:
			return true
		}
	}
	return false
}

// GlobalsVariable is the module's dict that globals() returns. Its names are read one by one.
type GlobalsVariable struct {
	Base
	dict py.Object
}

func builtinGlobals(tx Translator, _ []VariableTracker) (VariableTracker, error) {
	if tx.StoredInto(tx.Globals()) {
		return nil, unsupported(exc.CallUnsupported, "globals() after a store")
	}
	return &GlobalsVariable{dict: tx.Globals()}, nil
}

// Kind implements VariableTracker.
func (*GlobalsVariable) Kind() string { return "GlobalsVariable" }

// PythonType implements Typed.
func (*GlobalsVariable) PythonType(tx Translator) (py.Object, error) { return tx.World().DictType, nil }

// Truth implements Truther.
func (g *GlobalsVariable) Truth(Translator) (bool, error) { return true, nil } // globals() always contains __builtins__

// GetItem implements ItemGetter.
func (g *GlobalsVariable) GetItem(tx Translator, key VariableTracker) (VariableTracker, error) {
	name, ok := ConstStr(tx, key)
	if !ok || tx.StoredInto(g.dict) {
		return nil, unsupported(exc.SubscriptUnsupported, "globals()[%s]", Describe(tx, key))
	}
	v, ok := tx.Scope().DictGetName(g.dict, name)
	if !ok {
		return nil, unsupported(exc.ProgramRaises, "no global %s", name)
	}
	return tx.Build(v, tx.GlobalSource(name)), nil
}

// contains implements `key in globals()`.
func (g *GlobalsVariable) contains(tx Translator, key VariableTracker) (bool, error) {
	name, ok := ConstStr(tx, key)
	if !ok || tx.StoredInto(g.dict) {
		return false, unsupported(exc.OperatorUnsupported, "%s in globals()", Describe(tx, key))
	}
	if _, ok := tx.Scope().DictGetName(g.dict, name); !ok {
		return false, unsupported(exc.OperatorUnsupported, "no global %s", name)
	}
	tx.Output().Reads(tx.GlobalSource(name))
	return true, nil
}

// Reconstruct implements Reconstructer.
func (g *GlobalsVariable) Reconstruct(e Emitter) error {
	e.LoadConst(g.dict)
	return nil
}
