package translate

import (
	"maps"
	"slices"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// A graph break passes ints that were computed from sizes on: to the resume functions, to the function that the native
// instruction calls, and with a result to the caller. They are often inside lists, tuples, dicts and objects. Such ints
// are symbols there from the first translation on, not from the second value of each place on. So a translation lists
// the places in which other frames find them. This only selects what becomes a symbol: what is read is guarded as
// usual.

// SizePlaces has the places where the frames of one function find ints computed from sizes.
type SizePlaces struct {
	Of    py.Object // the code object, or the resume callable
	Names []string  // of places, as in guards.Source.Name; those of the result begin with ReturnedPlace
	// Result is the name of a parameter that holds the result of a call of the code object From, or "".
	Result string
	From   py.Object
}

// ReturnedPlace is the name of a function's result. No variable can have it.
const ReturnedPlace = "return"

// passedPlaces is what an OutputGraph has found.
type passedPlaces struct {
	list   []SizePlaces
	callee py.Object // the code object of the function that the native instruction calls; may be null
}

// fromSizes reports whether the int at a place was computed from sizes by the code that passed it to this frame.
func (o *OutputGraph) fromSizes(src guards.Source) bool {
	return o.frame.FromSizes[src.Name()] && !o.frame.fixesPassed && !o.forCompiler()
}

func (o *OutputGraph) addPlaces(p SizePlaces, found *variables.SizePlaces) {
	if len(found.Found) > 0 {
		p.Names = slices.Sorted(maps.Keys(found.Found))
	}
	if len(p.Names) > 0 || p.Result != "" {
		o.places.list = append(o.places.list, p)
	}
}

func (o *OutputGraph) findsPlaces() bool {
	return o.symbolizes() && !o.opts.Exporting && !o.forCompiler()
}

// placesOfResume lists the places for a resume function. stack has the values of its stack.
func (tx *InstructionTranslator) placesOfResume(fn py.Object, params []int, stack []item) {
	o := tx.out
	if !o.findsPlaces() {
		return
	}
	locals, _, _ := resumeLocals(tx.d.code, params, stack)
	found, next := &variables.SizePlaces{Known: o.frame.FromSizes}, 0
	param := func() guards.Source {
		next++
		return guards.NewLocalSource(locals[next-1].Name, next-1)
	}
	for _, slot := range params {
		if at := param(); slot >= 0 {
			found.Find(tx, tx.locals[slot], at)
		}
	}
	result := ""
	for _, it := range stack {
		if !it.isParam() {
			continue
		}
		at := param()
		switch {
		case it.rest != nil:
		case it.v != nil:
			found.Find(tx, it.v, at)
		case !o.places.callee.IsNull() && !it.marked:
			result = at.Name()
		}
	}
	o.addPlaces(SizePlaces{Of: fn, Result: result, From: o.places.callee}, found)
}

// placesOfResult lists the places within the value that the frame returns.
func (tx *InstructionTranslator) placesOfResult(v variables.VariableTracker) {
	o := tx.out
	if !o.findsPlaces() {
		return
	}
	found := &variables.SizePlaces{Known: o.frame.FromSizes}
	found.Find(tx, v, guards.NewLocalSource(ReturnedPlace, 0))
	o.addPlaces(SizePlaces{Of: tx.d.object}, found)
}

// placesOfCallee lists the places within the arguments of the native instruction, if it calls a Python function. It
// records the function's code object, for its result.
func (tx *InstructionTranslator) placesOfCallee(inst *bytecode.Instruction, operands []variables.VariableTracker) {
	if !tx.out.findsPlaces() || inst.Op != opcode.CALL && inst.Op != opcode.CALL_FUNCTION_EX {
		return
	}
	fn, self := callee(operands)
	args := operands[2:]
	if self != nil {
		args = operands[1:]
	}
	var kwargs []variables.Kw
	if inst.Op == opcode.CALL_FUNCTION_EX {
		if inst.Arg&1 != 0 {
			kwargs = tx.unreadKeywords(args[1])
		}
		args = tx.unreadItems(args[0])
	} else {
		n := len(args) - len(tx.kwargs)
		for i, name := range tx.kwargs {
			kwargs = append(kwargs, variables.Kw{Name: name, Value: args[n+i]})
		}
		args = args[:n]
	}
	call := &brokenCall{args: args, kwargs: kwargs}
	if call.of(tx, fn); call.code.IsNull() {
		return
	}
	tx.out.places.callee = call.code
	found := &variables.SizePlaces{Known: tx.out.frame.FromSizes}
	call.find(tx, found)
	tx.out.addPlaces(SizePlaces{Of: call.code}, found)
}

// unreadItems returns the items of a tuple or list without adding guards.
func (tx *InstructionTranslator) unreadItems(v variables.VariableTracker) []variables.VariableTracker {
	l, ok := v.(*variables.LazyVariable)
	if !ok || l.Realized() {
		return variables.KnownItems(v)
	}
	var out []variables.VariableTracker
	if l.Peek().Kind() == py.Tuple {
		for i, it := range tx.Scope().Items(l.Peek()) {
			out = append(out, variables.NewLazy(it, guards.NewIndexSource(l.Src, i)))
		}
	}
	return out
}

// unreadKeywords returns the items of a dict without adding guards.
func (tx *InstructionTranslator) unreadKeywords(v variables.VariableTracker) (out []variables.Kw) {
	l, ok := v.(*variables.LazyVariable)
	if !ok || l.Realized() {
		return variables.KnownKeywords(tx, v)
	}
	if l.Peek().Kind() == py.Dict {
		keys, values := tx.Scope().DictItems(l.Peek())
		for i, k := range keys {
			if k.Kind() == py.Str {
				out = append(out, variables.Kw{Name: py.GoString(k), Value: variables.NewLazy(values[i],
					guards.NewDictGetItemSource(l.Src, tx.out.Const(k)))})
			}
		}
	}
	return out
}

// brokenCall is the call of a Python function by a native instruction.
type brokenCall struct {
	code    py.Object                   // of the function; null if there is none
	args    []variables.VariableTracker // with the object of a method; nil if it has no tracker
	kwargs  []variables.Kw
	closure []*variables.CellVariable // of a function that the frame made
}

// of finds the function that a call of fn runs first.
func (b *brokenCall) of(tx *InstructionTranslator, fn variables.VariableTracker) {
	s := tx.Scope()
	bind := func(self variables.VariableTracker) {
		b.args = append([]variables.VariableTracker{self}, b.args...)
	}
	runs := func(f py.Object) {
		if f.Kind() == py.Function {
			b.code, _ = s.FunctionField(f, py.FuncCode)
		}
	}
	callsObject := func(v variables.VariableTracker, class py.Object) {
		if call, ok := s.TypeLookupQuietly(class, "__call__"); ok {
			bind(v)
			runs(call)
		}
	}
	if l, ok := fn.(*variables.LazyVariable); ok {
		if l.Realized() {
			b.of(tx, l.Real())
			return
		}
		switch obj := l.Peek(); obj.Kind() {
		case py.Function:
			runs(obj)
		case py.Method:
			f, _ := s.MethodParts(obj)
			bind(nil)
			runs(f)
		default:
			callsObject(l, obj.Type())
		}
		return
	}
	switch x := fn.(type) {
	case *variables.FunctionVariable:
		if x.Fn.IsNull() {
			b.code, b.closure = x.Code, x.Closure
		} else {
			runs(x.Fn)
		}
	case *variables.MethodVariable:
		bind(x.Self)
		b.of(tx, x.Fn)
	case *variables.ObjectVariable:
		callsObject(x, x.Class)
	}
}

// find finds the places in the parameters and the closure of the function.
func (b *brokenCall) find(tx *InstructionTranslator, found *variables.SizePlaces) {
	if len(found.Known) == 0 && len(tx.out.symbols.dims) == 0 {
		return // there are none, so the code object need not be read
	}
	d, err := tx.out.decode(b.code)
	if err != nil {
		return
	}
	c := d.code
	locals := make([]variables.VariableTracker, c.ArgCount+c.KwOnlyArgCount)
	rest, extra, ok := placeArguments(c, locals, b.args, b.kwargs)
	if !ok {
		return
	}
	local := func(i int) guards.Source { return guards.NewLocalSource(c.Locals[i].Name, i) }
	for i, v := range locals {
		found.Find(tx, v, local(i))
	}
	varargs, varkw := variadicSlots(c)
	for i, v := range rest {
		found.Find(tx, v, guards.NewIndexSource(local(varargs), i))
	}
	for _, kw := range extra {
		key := tx.out.Const(tx.Scope().Name(kw.Name))
		found.Find(tx, kw.Value, guards.NewDictGetItemSource(local(varkw), key))
	}
	for i, cell := range b.closure {
		found.Find(tx, cell, local(len(c.Locals)-len(b.closure)+i))
	}
}
