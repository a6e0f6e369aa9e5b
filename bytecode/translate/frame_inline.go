package translate

import (
	"slices"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// Inline implements variables.Translator. A child translator runs the callee.
func (tx *InstructionTranslator) Inline(fn *variables.FunctionVariable, args []variables.VariableTracker,
	kwargs []variables.Kw) (variables.VariableTracker, error) {
	if tx.depth+1 > tx.out.opts.InlineDepth {
		return nil, exc.Break(exc.InlineTooDeep, "%d levels", tx.depth+1)
	}
	if !fn.Fn.IsNull() && !py.RunsItsCode(fn.Fn) {
		return nil, exc.Break(exc.CallUnsupported, "%s: a C extension has replaced what a call of it runs",
			variables.Describe(tx, fn))
	}
	codeObj, globals, globalsSrc, err := tx.functionParts(fn)
	if err != nil {
		return nil, err
	}
	d, err := tx.out.decode(codeObj)
	if err != nil {
		return nil, err
	}
	if d.code.Flags&(opcode.CO_COROUTINE|opcode.CO_ASYNC_GENERATOR|opcode.CO_ITERABLE_COROUTINE) != 0 {
		return nil, exc.Break(exc.Generator, "%s", variables.Describe(tx, fn))
	}
	hidden := tx.World().IsPolyfill(tx.Scope(), globals)
	if !hidden {
		if ok, err := tx.out.opts.allowed(tx.Scope(), codeObj); err != nil {
			return nil, err
		} else if !ok {
			return nil, exc.Break(exc.LeftOut, "%s", variables.Describe(tx, fn))
		}
	}
	child := &InstructionTranslator{
		out: tx.out, hidden: hidden, parent: tx, depth: tx.depth + 1, d: d, globals: globals,
		builtins: tx.builtinsOf(fn, globals), made: fn.Fn.IsNull(),
		globalsSrc: globalsSrc, locals: make([]variables.VariableTracker, len(d.code.Locals)),
	}
	if globals == tx.globals {
		child.globalsSrc = tx.globalsSrc
	}
	if err := bindArguments(tx, fn, d.code, child.locals, args, kwargs); err != nil {
		// The C function that this polyfill replaces raises the error with another text.
		if o, ok := err.(*exc.Observed); ok && hidden {
			err = exc.Break(exc.ProgramRaises, "%s: %s", o.TypeName, o.Text)
		}
		return nil, err
	}
	if err := bindClosure(tx, fn, d.code, child.locals); err != nil {
		return nil, err
	}
	if !hidden {
		tx.out.inlined = append(tx.out.inlined, d.code.QualName)
	}
	if d.code.Flags&opcode.CO_GENERATOR != 0 && child.watchesInterpreter() {
		// The generator's frame would run in several parts, and the frame hook would see none of these parts. So the
		// frame that makes the generator is left to CPython.
		u := exc.Break(exc.Generator, "%s inspects the interpreter", variables.Describe(tx, fn)).(*exc.Unsupported)
		u.Stack = tx.out.position().stack()
		return nil, child.unbreakable(u, "a generator that it runs examines the interpreter")
	}
	if err := child.run(); err != nil {
		return nil, err
	}
	if g, ok := child.result.(*GeneratorVariable); ok && g.frame == child {
		g.fn, g.args, g.kwargs = fn, args, kwargs
	} else {
		tx.out.letsFrame(child)
	}
	return child.result, nil
}

// builtinsOf returns a function's builtins dict. For a function that the captured code makes, this is `__builtins__`
// of the function's globals.
func (tx *InstructionTranslator) builtinsOf(fn *variables.FunctionVariable, globals py.Object) py.Object {
	s := tx.Scope()
	if !fn.Fn.IsNull() {
		if b, ok := py.Answered(s.GetAttr(fn.Fn, "__builtins__")); ok {
			return b
		}
		return tx.builtins
	}
	b, ok := s.DictGetName(globals, "__builtins__")
	if !ok {
		return tx.builtins
	}
	if b.Kind() == py.Module {
		if d, ok := s.InstanceDict(b); ok {
			return d
		}
	}
	return b
}

// guardsMade adds a guard on `__builtins__` if the frame runs a function that the captured code made.
func (tx *InstructionTranslator) guardsMade() {
	b, ok := tx.Scope().DictGetName(tx.globals, "__builtins__")
	if tx.made && ok && tx.globals == tx.out.frame.Globals {
		tx.out.AddGuards(guards.IDMatch(guards.NewGlobalSource("__builtins__"), tx.out.Const(b), guards.KeepStrong))
	}
}

func (tx *InstructionTranslator) functionParts(fn *variables.FunctionVariable) (code, globals py.Object,
	src guards.Source, err error) {
	if fn.Fn.IsNull() {
		return fn.Code, fn.GlobalsDict, fn.GlobalsSrc, nil
	}
	code, _ = tx.Scope().FunctionField(fn.Fn, py.FuncCode)
	globals, _ = tx.Scope().FunctionField(fn.Fn, py.FuncGlobals)
	if globals == tx.out.frame.Globals {
		return code, globals, nil, nil
	}
	if fn.Source() == nil {
		if tx.World().IsPolyfill(tx.Scope(), globals) {
			return code, globals, guards.NewPolyfillSource(tx.out.Const(globals)), nil
		}
		return code, globals, guards.NewConstSource(tx.out.Const(globals), "___globals"), nil
	}
	return code, globals, guards.NewFunctionFieldSource(fn.Source(), guards.FuncGlobals), nil
}

// bindArguments binds the parameters by CPython's calling convention. If CPython would reject the call, it raises
// CPython's TypeError.
func bindArguments(tx *InstructionTranslator, fn *variables.FunctionVariable, c *bytecode.Code,
	locals []variables.VariableTracker, args []variables.VariableTracker, kwargs []variables.Kw) error {
	wrong := func() error { return bindingError(tx, fn, c, len(args), kwargs) }
	rest, extra, ok := placeArguments(c, locals, args, kwargs)
	if !ok {
		return wrong()
	}
	varargs, varkw := variadicSlots(c)
	if varargs >= 0 {
		locals[varargs] = variables.NewTuple(rest, nil)
	}
	if varkw >= 0 {
		d, err := variables.Call(tx, variables.NewBuiltin(tx.World().DictType, "dict", nil), nil, extra)
		if err != nil {
			return err
		}
		locals[varkw] = d
	}
	for i := range c.ArgCount + c.KwOnlyArgCount {
		if locals[i] != nil {
			continue
		}
		v, err := defaultOf(tx, fn, c, i)
		if err != nil {
			return err
		}
		if v == nil {
			return wrong()
		}
		locals[i] = v
	}
	return nil
}

// placeArguments stores a call's arguments in the slots of their parameters. rest and extra are the arguments for *args
// and **kwargs. ok is false if CPython would reject the call. Missing arguments stay nil.
func placeArguments(c *bytecode.Code, locals, args []variables.VariableTracker, kwargs []variables.Kw) (
	rest []variables.VariableTracker, extra []variables.Kw, ok bool) {
	varargs, varkw := variadicSlots(c)
	if n := copy(locals[:c.ArgCount], args); n < len(args) {
		if varargs < 0 {
			return nil, nil, false
		}
		rest = slices.Clone(args[n:])
	}
	named := c.Locals[:c.ArgCount+c.KwOnlyArgCount]
next:
	for _, kw := range kwargs {
		for i := c.PosOnlyArgCount; i < len(named); i++ {
			if named[i].Name == kw.Name {
				if locals[i] != nil {
					return nil, nil, false
				}
				locals[i] = kw.Value
				continue next
			}
		}
		if varkw < 0 {
			return nil, nil, false
		}
		extra = append(extra, kw)
	}
	return rest, extra, true
}

// variadicSlots returns the slots of *args and **kwargs, or -1.
func variadicSlots(c *bytecode.Code) (varargs, varkw int) {
	varargs, varkw = -1, -1
	next := c.ArgCount + c.KwOnlyArgCount
	if c.Flags&opcode.CO_VARARGS != 0 {
		varargs = next
		next++
	}
	if c.Flags&opcode.CO_VARKEYWORDS != 0 {
		varkw = next
	}
	return varargs, varkw
}

// bindingError returns the TypeError that CPython raises for a call. To get its text, bindingError makes CPython call
// an empty function of the same signature with as many arguments.
func bindingError(tx *InstructionTranslator, fn *variables.FunctionVariable, c *bytecode.Code, nargs int,
	kwargs []variables.Kw) error {
	s := tx.Scope()
	code, _, _, err := tx.functionParts(fn)
	if err != nil {
		return err
	}
	name, err := fn.QualifiedName(tx)
	if err != nil {
		return err
	}
	defaults, keywords := 0, []py.Object{}
	for i := 0; i < c.ArgCount+c.KwOnlyArgCount; i++ {
		v, err := defaultOf(tx, fn, c, i)
		if err != nil {
			return err
		}
		switch {
		case v == nil:
		case i < c.ArgCount:
			defaults++
		default:
			keywords = append(keywords, s.Str(c.Locals[i].Name))
		}
	}
	var names []py.Object
	for _, kw := range kwargs {
		names = append(names, s.Str(kw.Name))
	}
	text, err := s.Call(tx.World().BindingError, code, name, s.Int(int64(defaults)), s.Tuple(keywords...),
		s.Int(int64(nargs)), s.Tuple(names...))
	if err != nil {
		return err
	}
	return variables.RaiseText(tx, "TypeError", py.GoString(text))
}

// defaultOf returns the default of parameter i, or nil if the parameter has no default.
func defaultOf(tx *InstructionTranslator, fn *variables.FunctionVariable, c *bytecode.Code,
	i int) (variables.VariableTracker, error) {
	name := c.Locals[i].Name
	if fn.Fn.IsNull() {
		if i < c.ArgCount {
			defaults, err := fn.DefaultItems(tx)
			if k := i - (c.ArgCount - len(defaults)); k >= 0 && err == nil {
				return defaults[k], nil
			}
			return nil, err
		}
		return fn.KwDefault(tx, name)
	}
	s := tx.Scope()
	src := fn.Source()
	if src == nil {
		src = guards.NewConstSource(tx.out.Const(fn.Fn), "___function_"+c.Name)
	}
	if i < c.ArgCount {
		field := guards.NewFunctionFieldSource(src, guards.FuncDefaults)
		d, ok := s.FunctionField(fn.Fn, py.FuncDefaults)
		if !ok {
			tx.out.AddGuards(guards.IDMatch(field, tx.out.Const(py.None()), guards.KeepStrong))
			return nil, nil
		}
		items := s.Items(d)
		tx.out.AddGuards(guards.ListLength(field, tx.out.Const(d.Type()), len(items)))
		k := i - (c.ArgCount - len(items))
		if k < 0 {
			return nil, nil
		}
		return tx.Build(items[k], guards.NewIndexSource(field, k)), nil
	}
	field := guards.NewFunctionFieldSource(src, guards.FuncKwDefaults)
	d, ok := s.FunctionField(fn.Fn, py.FuncKwDefaults)
	if !ok {
		tx.out.AddGuards(guards.IDMatch(field, tx.out.Const(py.None()), guards.KeepStrong))
		return nil, nil
	}
	key := tx.out.Const(s.Name(name))
	v, ok := s.DictGetName(d, name)
	if !ok {
		tx.out.AddGuards(guards.DictContains(field, key, false))
		return nil, nil
	}
	item := guards.NewDictGetItemSource(field, key)
	tx.out.Reads(item)
	return tx.Build(v, item), nil
}

// bindClosure stores the function's cells in the slots of the free variables.
func bindClosure(tx *InstructionTranslator, fn *variables.FunctionVariable, c *bytecode.Code,
	locals []variables.VariableTracker) error {
	first := len(c.Locals)
	for first > 0 && c.Locals[first-1].Kind&opcode.CO_FAST_FREE != 0 {
		first--
	}
	n := len(c.Locals) - first
	if n == 0 {
		return nil
	}
	if fn.Fn.IsNull() {
		for i, cell := range fn.Closure {
			locals[first+i] = cell
		}
		return nil
	}
	closure, ok := tx.Scope().FunctionField(fn.Fn, py.FuncClosure)
	if !ok {
		return &exc.SkipFrame{Reason: "function without its closure"}
	}
	src := fn.Source()
	if src == nil {
		src = guards.NewConstSource(tx.out.Const(fn.Fn), "___function_"+c.Name)
	}
	field := guards.NewFunctionFieldSource(src, guards.FuncClosure)
	for i, cell := range tx.Scope().Items(closure) {
		locals[first+i] = tx.Build(cell, guards.NewIndexSource(field, i))
	}
	return nil
}
