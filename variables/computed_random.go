package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// Python's random numbers. A call of a method of random.Random stays at its place in the transformed function; its
// result is a ComputedVariable. To find the result's type, the translator calls the method on a generator of its own.

// drawing is the kind of result of a method of random.Random.
type drawing int

const (
	drawsPlain drawing = iota // returns a plain value
	drawsItem                 // returns one of the given items
	drawsItems                // returns a new list of given items
	shuffles                  // changes the given list and returns None
	keepsState                // reads or sets the generator's state
)

var drawings = map[string]drawing{
	"random": drawsPlain, "uniform": drawsPlain, "triangular": drawsPlain, "gauss": drawsPlain,
	"normalvariate":  drawsPlain,
	"lognormvariate": drawsPlain, "expovariate": drawsPlain, "vonmisesvariate": drawsPlain, "gammavariate": drawsPlain,
	"betavariate": drawsPlain, "paretovariate": drawsPlain, "weibullvariate": drawsPlain, "randint": drawsPlain,
	"randrange":   drawsPlain,
	"getrandbits": drawsPlain, "randbytes": drawsPlain, "choice": drawsItem, "choices": drawsItems,
	"sample": drawsItems, "shuffle": shuffles,
	"seed": keepsState, "getstate": keepsState, "setstate": keepsState,
}

// maxDrawn bounds the number of items of a list whose items are computed.
const maxDrawn = 256

// isRandom reports whether class is random.Random or random.SystemRandom.
func (w *World) isRandom(class py.Object) bool {
	return class == w.randomType || class == w.systemRandom
}

// drawn calls `method` on a generator. `class` has the method under this name. It returns false for methods that are
// not in drawings.
func drawn(tx Translator, generator VariableTracker, class, method py.Object, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, bool, error) {
	how, known := drawings[name]
	if !known || method.IsNull() || class == tx.World().systemRandom && how == keepsState {
		return nil, false, nil
	}
	tx.Output().Const(method)
	d := &draw{tx: tx, generator: generator, method: method, name: name, kwargs: kwargs}
	for _, a := range append(append([]VariableTracker(nil), args...), KwValues(kwargs)...) {
		v, err := Realize(tx, a)
		if err != nil {
			return nil, true, err
		}
		d.args = append(d.args, v)
	}
	v, err := d.call(how)
	if err == nil {
		tx.World().drew = true
	}
	return v, true, err
}

// drawingFunction calls a method of random.Random that is written in Python. It returns false for other functions.
func drawingFunction(tx Translator, f *FunctionVariable, args []VariableTracker,
	kwargs []Kw) (VariableTracker, bool, error) {
	if len(args) == 0 || f.Fn.IsNull() {
		return nil, false, nil
	}
	w := tx.World()
	name, known := tx.Scope().DictGet(w.drawingFunctions, f.Fn)
	if !known {
		return nil, false, nil
	}
	self, err := Realize(tx, args[0])
	if err != nil {
		return nil, true, err
	}
	o, ok := self.(*ObjectVariable)
	if !ok || !w.isRandom(o.Class) {
		return nil, false, nil
	}
	return drawn(tx, o, o.Class, f.Fn, py.GoString(name), args[1:], kwargs)
}

// draw is one call of a generator's method.
type draw struct {
	tx        Translator
	generator VariableTracker
	method    py.Object
	name      string
	args      []VariableTracker // positional arguments, then keyword arguments
	kwargs    []Kw
}

func (d *draw) no(why string) error {
	return unsupported(exc.CallUnsupported, "random.%s %s", d.name, why)
}

func (d *draw) call(how drawing) (VariableTracker, error) {
	if how == shuffles {
		return d.shuffle()
	}
	operands, known, err := d.operands()
	if err != nil {
		return nil, err
	}
	if how == keepsState {
		return d.state(operands, known)
	}
	if len(known) != len(operands) { // a method may raise for a computed argument
		return nil, d.no("with what is computed")
	}
	example := d.tryOut(known)
	if example.IsNull() {
		return nil, d.no("that raises")
	}
	if how == drawsItems {
		return d.several(example, operands, known)
	}
	class, limit := oneType(d.tx, []py.Object{example})
	if how == drawsItem {
		population, err := d.population(known)
		if err != nil {
			return nil, err
		}
		class, limit = oneType(d.tx, population)
	} else if class == d.tx.World().Builtin("int") {
		limit = d.largest(limit, known)
	}
	if class.IsNull() {
		return nil, d.no("of items of several types")
	}
	v, err := d.event(class, operands)
	if err == nil {
		v.limit = limit
	}
	return v, err
}

// state implements getstate, setstate and seed.
func (d *draw) state(operands []VariableTracker, known []py.Object) (VariableTracker, error) {
	if d.name == "getstate" {
		v, err := d.event(d.tx.Scope().Tuple().Type(), operands)
		return v, err
	}
	if d.name == "setstate" && (len(operands) != 1 || !isComputed(operands[0])) {
		return nil, d.no("with a state that the function did not ask for")
	}
	if d.name == "seed" && (len(known) != len(operands) || d.tryOut(known).IsNull()) {
		return nil, d.no("of what is not known")
	}
	if _, err := d.event(pyNone.Type(), operands); err != nil {
		return nil, err
	}
	return NoneConst(), nil
}

// several implements a method that returns a new list. The list has as many items as the example result.
func (d *draw) several(example py.Object, operands []VariableTracker, known []py.Object) (VariableTracker, error) {
	n, ok := py.Answered(d.tx.Scope().Len(example))
	if !ok || n > maxDrawn {
		return nil, d.no("of many items")
	}
	population, err := d.population(known)
	if err != nil {
		return nil, err
	}
	class, limit := oneType(d.tx, population)
	if class.IsNull() {
		return nil, d.no("of items of several types")
	}
	list, err := d.event(example.Type(), operands)
	if err != nil {
		return nil, err
	}
	return d.items(list, n, class, limit)
}

// largest returns the largest absolute value that an int result can have for these arguments, or 0 if it exceeds
// exactInt. `limit` is the bound for the example result.
func (d *draw) largest(limit int64, known []py.Object) int64 {
	for _, k := range known {
		i, ok := py.AsInt(k)
		switch {
		case !ok || i < -exactInt || i > exactInt || limit == 0:
			limit = 0
		case d.name != "getrandbits":
			limit = max(limit, i, -i)
		case i <= 53:
			limit = exactInt
		default:
			limit = 0
		}
	}
	return limit
}

// operands returns the arguments as the event loads them, and the real objects of the known ones.
func (d *draw) operands() (operands []VariableTracker, known []py.Object, err error) {
	for _, a := range d.args {
		if isComputed(a) {
			operands = append(operands, a)
			continue
		}
		o, ok := copyOf(d.tx, a)
		if !ok {
			return nil, nil, d.no("of " + Describe(d.tx, a))
		}
		// The event gets a copy of the list. The generator only reads the list, so a copy is enough.
		if o.Kind() == py.List {
			o = d.tx.Scope().Tuple(d.tx.Scope().Items(o)...)
		}
		if !isImmutable(d.tx, o) && o.Kind() != py.Range {
			return nil, nil, d.no("of " + Describe(d.tx, a))
		}
		operands, known = append(operands, NewConstant(o, nil)), append(known, o)
	}
	return operands, known, nil
}

// tryOut calls the method on the translator's own generator. It returns the zero Object if the method raises.
func (d *draw) tryOut(known []py.Object) py.Object {
	s := d.tx.Scope()
	generator, ok := py.Answered(s.Call(d.tx.World().randomType))
	if !ok {
		return py.Object{}
	}
	r, ok := py.Answered(callWatched(d.tx, d.tx.World().computed, d.method, append([]py.Object{generator}, known...),
		KwNames(d.kwargs)))
	if !ok {
		return py.Object{}
	}
	return r
}

// event adds an event that calls the method and returns its computed result.
func (d *draw) event(class py.Object, operands []VariableTracker) (*ComputedVariable, error) {
	names := KwNames(d.kwargs)
	v := &ComputedVariable{Type: class}
	slot, err := d.tx.Output().Compute(d.tx, append([]VariableTracker{d.generator}, operands...), true,
		func(e Emitter) error {
			e.PushNull()
			e.LoadConst(d.method)
			if err := LoadAll(e, append([]VariableTracker{d.generator}, operands...)); err != nil {
				return err
			}
			e.Call(1+len(operands), names)
			return nil
		})
	if err != nil {
		return nil, err
	}
	SetSlot(v, slot)
	return v, nil
}

// items returns a list of n computed values, which are the items of a list that an event computes.
func (d *draw) items(list *ComputedVariable, n int, class py.Object, limit int64) (VariableTracker, error) {
	out := make([]VariableTracker, n)
	for i := range out {
		v, err := compute(d.tx, class, []VariableTracker{list}, func(e Emitter) error {
			if err := e.Load(list); err != nil {
				return err
			}
			e.LoadInt(i)
			e.Subscript()
			return nil
		})
		if err != nil {
			return nil, err
		}
		v.limit = limit
		out[i] = v
	}
	return NewList(out, nil), nil
}

// shuffle implements random.shuffle for a list of constants that the translated code made and that other code does not
// see.
func (d *draw) shuffle() (VariableTracker, error) {
	if len(d.args) != 1 {
		return nil, d.no("with other arguments")
	}
	l, ok := d.args[0].(*ListVariable)
	if !ok || Materialized(l) || Holder(l) != nil || len(l.items) > maxDrawn {
		return nil, d.no("of a list that others see")
	}
	objs := make([]py.Object, len(l.items))
	for i, it := range l.items {
		it, err := Realize(d.tx, it)
		if err != nil {
			return nil, err
		}
		c, ok := it.(*ConstantVariable)
		if !ok {
			return nil, d.no("of " + Describe(d.tx, it))
		}
		objs[i] = c.Value
	}
	class, limit := oneType(d.tx, objs)
	if class.IsNull() {
		return nil, d.no("of items of several types")
	}
	tuple := NewConstant(d.tx.Scope().Tuple(objs...), nil)
	fn, _, err := computedModule(d.tx, "shuffled", d.tx.Scope().Tuple().Type())
	if err != nil {
		return nil, err
	}
	list := &ComputedVariable{Type: d.tx.World().ListType}
	slot, err := d.tx.Output().Compute(d.tx, []VariableTracker{d.generator, tuple}, true, func(e Emitter) error {
		e.PushNull()
		e.LoadConst(fn)
		if err := LoadAll(e, []VariableTracker{tuple, d.generator}); err != nil {
			return err
		}
		e.LoadConst(d.method)
		e.Call(3, nil)
		return nil
	})
	if err != nil {
		return nil, err
	}
	SetSlot(list, slot)
	items, err := d.items(list, len(objs), class, limit)
	if err != nil {
		return nil, err
	}
	d.tx.World().Writes++
	l.items = items.(*ListVariable).items
	return NoneConst(), nil
}

// population returns the items from which choice, choices and sample choose. For a long range, it returns only the
// first and the last item.
func (d *draw) population(known []py.Object) ([]py.Object, error) {
	if len(d.kwargs) >= len(d.args) || known[0].Kind() == py.Dict {
		return nil, d.no("with other arguments")
	}
	s := d.tx.Scope()
	if known[0].Kind() == py.Range {
		if n, ok := py.Answered(s.Len(known[0])); ok && n > maxDrawn {
			first, err := s.CallMethod(known[0], "__getitem__", s.Int(0))
			if err != nil {
				return nil, observed(err)
			}
			last, err := s.CallMethod(known[0], "__getitem__", s.Int(-1))
			return []py.Object{first, last}, observed(err)
		}
	}
	list, err := s.Call(d.tx.World().Builtin("list"), known[0])
	if err != nil {
		return nil, observed(err)
	}
	return s.Items(list), nil
}

// oneType returns the plain type that all values share, and a bound of the absolute values of the ints among them. It
// returns the zero Object if the types differ or are not plain.
func oneType(tx Translator, values []py.Object) (class py.Object, limit int64) {
	limit = 1
	for _, v := range values {
		t := v.Type()
		if !class.IsNull() && t != class {
			return py.Object{}, 0
		}
		switch v.Kind() {
		case py.Int, py.Float, py.BoolKind, py.Str, py.Bytes:
		default:
			return py.Object{}, 0
		}
		class = t
		if t == tx.World().Builtin("int") {
			if i := limitOf(NewConstant(v, nil)); i == 0 || limit == 0 {
				limit = 0
			} else {
				limit = max(limit, i)
			}
		}
	}
	return class, limit
}

// newRandom implements random.Random(seed).
func newRandom(tx Translator, class py.Object, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	no := unsupported(exc.CallUnsupported, "instance of class %s", py.TypeName(class))
	if len(args) > 1 || len(kwargs) > 0 {
		return nil, no
	}
	operands := make([]VariableTracker, len(args))
	for i, a := range args {
		v, err := Realize(tx, a)
		if err != nil {
			return nil, err
		}
		c, ok := v.(*ConstantVariable)
		if !ok {
			return nil, no
		}
		switch c.Value.Kind() {
		case py.Int, py.Float, py.Str, py.Bytes, py.NoneKind:
		default:
			return nil, no
		}
		operands[i] = c
	}
	tx.Output().Const(class)
	return compute(tx, class, operands, func(e Emitter) error {
		return EmitCall(e, class, operands)
	})
}

// CallMethod implements MethodCaller for the methods of a random.Random that the translated code made.
func (v *ComputedVariable) CallMethod(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	if tx.World().isRandom(v.Type) {
		method, _ := tx.Scope().TypeLookup(v.Type, name)
		if r, ok, err := drawn(tx, v, v.Type, method, name, args, kwargs); ok || err != nil {
			return r, err
		}
	}
	return nil, unsupported(exc.CallUnsupported, "%s.%s of %s", py.TypeName(v.Type), name, Describe(tx, v))
}

// wrapBoundMethod wraps a C method that is bound to a generator, such as random.random, or to a constant, such as
// keyword.iskeyword. It returns nil for other objects.
func wrapBoundMethod(tx Translator, obj, self py.Object, src guards.Source) (VariableTracker, []guards.Guard) {
	random := tx.World().isRandom(self.Type())
	if !random && !isImmutable(tx, self) {
		return nil, nil
	}
	name, ok := py.Answered(tx.Scope().GetAttr(obj, "__name__"))
	if !ok {
		return nil, nil
	}
	// The bound method equals the method of the object's class, unless the class has changed.
	method, _ := tx.Scope().TypeLookup(self.Type(), py.GoString(name))
	if method.Kind() != py.MethodDescr {
		return nil, nil
	}
	var to VariableTracker = NewConstant(self, nil)
	if random {
		to = tx.Build(self, guards.NewConstSource(tx.Output().Const(self), "___generator"))
	}
	return &BoundBuiltin{Base: Base{Src: src}, obj: to, name: py.GoString(name)},
		[]guards.Guard{guards.IDMatch(src, tx.Output().Const(obj), guards.KeepStrong)}
}
