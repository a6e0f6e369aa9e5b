package translate

import (
	"slices"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// Equal layers. When a module is called, its code runs symbolically. The captured operations, the result and the
// guards made on the module so far are kept as a layer. The translation guards everything that it learns about an
// object of the frame. So these guards, evaluated on another module of the class, decide whether the code of that
// module would do the same. They are compiled once into a check, which the C core runs like the guards of an entry.
// If the check passes, the operations are added again on the other module's tensors, the guards are added for that
// module, and its code does not run.
//
// Guards do not cover everything. The following are compared or excluded separately:
//   - the operands, and metadata that was read from computed operands (variables.Pairing);
//   - objects that the user's code has changed: they must be the same for both modules, and no part of the module;
//   - torch's modes, and exception handlers around the call;
//   - tensors that the frame also reaches by another name.

// layers holds the module calls captured so far.
type layers struct {
	byClass map[py.Object]*classLayers
	places  guards.Places
	apart   int // number of guards so far that require different objects at two places
	reused  int
}

// classLayers holds the layers whose modules have one class. Once there are enough, they are sorted into kinds:
// modules of one kind look alike (World.KindOf).
type classLayers struct {
	met     int // number of module calls
	large   bool
	calls   []*layer // layers that are not sorted into kinds yet
	kinds   map[int]*equalLayers
	useless int // number of checks compiled, minus the number of checks that have passed once
}

// equalLayers holds the layers whose modules are of one kind, most recent first.
type equalLayers struct {
	met  int
	list []*layer
}

// A check is a guard program, which takes time to build and to run. So it is compiled only when the third module of a
// kind is called. For a layer with few operations, it is compiled only when the sixteenth module is called, since a
// larger layer usually contains such a small one. Each kind keeps at most maxLayers layers, which differ in their
// operands. After maxUselessChecks checks that no module has passed, no more checks are compiled for modules of that
// class.
const (
	checkFrom        = 3
	smallLayer       = 4
	checkSmallFrom   = 16
	maxLayers        = 3
	maxUselessChecks = 4
)

// met counts a call of a module of this class, and returns the layers of the class.
func (l *layers) met(class py.Object) *classLayers {
	c := l.byClass[class]
	if c == nil {
		c = &classLayers{}
		if l.byClass == nil {
			l.byClass = map[py.Object]*classLayers{}
		}
		l.byClass[class] = c
	}
	c.met++
	return c
}

// like returns the layers whose modules are of m's kind. It returns nil while the class has too few modules, and
// after the class has had too many useless checks.
func (c *classLayers) like(o *OutputGraph, m *variables.ObjectVariable) *equalLayers {
	if c.useless >= maxUselessChecks || c.met < checkFrom || !c.large && c.met < checkSmallFrom {
		return nil
	}
	if c.kinds == nil {
		c.kinds = map[int]*equalLayers{}
	}
	for _, l := range c.calls {
		if e := c.kind(o, l.module); e != nil {
			e.add(l)
		}
	}
	c.calls = nil
	return c.kind(o, m)
}

// kind counts m as a module of its kind and returns the layers of that kind. It returns nil if m looks like no earlier
// module.
func (c *classLayers) kind(o *OutputGraph, m *variables.ObjectVariable) *equalLayers {
	kind := o.world.KindOf(o.scope, m.Obj)
	if kind < 0 {
		return nil
	}
	e := c.kinds[kind]
	if e == nil {
		e = &equalLayers{}
		c.kinds[kind] = e
	}
	e.met++
	return e
}

func (e *equalLayers) add(l *layer) {
	if len(e.list) == maxLayers {
		e.list = e.list[:maxLayers-1]
	}
	e.list = append([]*layer{l}, e.list...)
}

// layer is one captured call of a module.
type layer struct {
	module   *variables.ObjectVariable
	args     []variables.VariableTracker
	kwargs   []variables.Kw
	result   variables.VariableTracker
	from, to int // its operations are events[from:to]
	inlined  []string
	asked    variables.Asked
	apart    bool // the module's code has checked whether two places hold the same object
	modes    py.Object
	at       *chain // the user's stack at the call
	// State at the call: the number of writes to the frame's objects so far, the result of InsideTry, and both
	// results of protection.
	writes  int
	inside  bool
	handled bool
	state   py.Object
	check   *layerCheck
	served  bool
	differs bool // the layer cannot be compared with other modules
}

// layerCheck is the condition under which a layer applies to another module.
type layerCheck struct {
	Check
	guards  []*guards.Guard
	reads   []guards.Source
	tensors []*variables.TensorVariable // tensors of the layer's module
	changed map[*fxgraph.Node]bool      // operands of the layer's in-place operations
}

// CallModule implements variables.Output.
func (o *OutputGraph) CallModule(tx variables.Translator, m *variables.ObjectVariable, args []variables.VariableTracker,
	kwargs []variables.Kw, call func() (variables.VariableTracker, error)) (variables.VariableTracker, error) {
	t, ok := tx.(*InstructionTranslator)
	if !ok || !o.layersMayBeEqual(t) {
		return call()
	}
	class := o.layers.met(m.Class)
	equal := class.like(o, m)
	if equal != nil {
		for _, l := range equal.list {
			if equal.met < checkFrom || !l.large() && equal.met < checkSmallFrom {
				continue
			}
			if result, done, err := o.again(t, class, l, m, args, kwargs); done || err != nil {
				return result, err
			}
		}
	}
	l, result, err := o.captureLayer(t, m, args, kwargs, call)
	switch {
	case l == nil:
	case equal != nil:
		equal.add(l)
	case len(class.calls) < checkSmallFrom && class.useless < maxUselessChecks:
		class.calls = append(class.calls, l)
		class.large = class.large || l.large()
	}
	return result, err
}

// layersMayBeEqual reports whether the effect of a module's code depends only on its operands and on guarded
// properties. In other states no layer is captured or repeated.
func (o *OutputGraph) layersMayBeEqual(tx *InstructionTranslator) bool {
	w := o.world
	return o.opts.ReuseLayers && o.opts.GuardNNModules && !o.opts.PythonOps && o.account == nil && o.bodies == 0 &&
		o.tentative == 0 &&
		w.Calls == 0 && w.Casts == 0 && w.PlainTensors() && !tx.hidden
}

// captureLayer runs a module's code and returns its result. The layer is nil if the effect of the code cannot be
// repeated.
func (o *OutputGraph) captureLayer(tx *InstructionTranslator, m *variables.ObjectVariable,
	args []variables.VariableTracker, kwargs []variables.Kw, call func() (variables.VariableTracker, error)) (*layer,
	variables.VariableTracker, error) {
	above, ok := o.above(m.Source())
	if !ok {
		result, err := call()
		return nil, result, err
	}
	variables.Above(above, 1)
	defer variables.Above(above, -1)
	w := o.world
	l := &layer{module: m, args: slices.Clone(args), kwargs: slices.Clone(kwargs), from: len(o.events),
		modes: o.state.now, at: tx.chainHere(), writes: w.Writes - w.Own,
		inside: tx.InsideTry()}
	l.handled, l.state = tx.protection()
	apart, asked, bodies, inlined, until, drew := o.layers.apart, w.Asked, o.numBodies, len(o.inlined),
		len(o.log.until), w.Drew()
	result, err := call()
	if err != nil {
		return nil, nil, err
	}
	l.result, l.to, l.inlined, l.apart = result, len(o.events), o.inlined[inlined:], o.layers.apart != apart
	l.asked = w.Asked.Since(asked)
	if l.to == l.from || !o.layersMayBeEqual(tx) || l.asked.Origin > 0 || o.numBodies != bodies ||
		len(o.log.until) != until || w.Drew() != drew || o.state.now != l.modes ||
		w.Writes-w.Own != l.writes {
		return nil, result, nil
	}
	return l, result, nil
}

// large reports whether a layer's code is long enough to be worth skipping.
func (l *layer) large() bool { return l.to-l.from > smallLayer }

// capturedAgain reports whether the operation of an event can be added again with other operands.
func (o *OutputGraph) capturedAgain(e *event, l *layer) bool {
	n := e.node
	if e.size {
		return true
	}
	if n == nil || e.protected != l.handled || e.state != l.state || e.modes != l.modes || n.State || isPythonNode(n) ||
		n.Op != fxgraph.CallFunction && n.Op != fxgraph.CallMethod {
		return false
	}
	if _, special := o.classOf[n]; special {
		return false
	}
	for ch := e.chain; ch != l.at; ch = ch.parent {
		if ch == nil {
			return false
		}
	}
	return true
}

// again repeats the operations of layer l for the module m, if m's code would do the same. done reports whether the
// operations were repeated.
func (o *OutputGraph) again(tx *InstructionTranslator, class *classLayers, l *layer, m *variables.ObjectVariable,
	args []variables.VariableTracker, kwargs []variables.Kw) (result variables.VariableTracker, done bool, err error) {
	if l.differs || l.modes != o.state.now || m == l.module || l.writes != o.world.Writes-o.world.Own ||
		l.inside != tx.InsideTry() {
		return nil, false, nil
	}
	if handled, _ := tx.protection(); handled != l.handled {
		return nil, false, nil
	}
	if l.asked.Changes > 0 && o.ChangesTensors() || o.changesMetadata(l.from) || o.world.AlsoStored(args, kwargs) {
		return nil, false, nil
	}
	p := variables.NewPairing()
	if !p.Operands(tx, l.args, args) || !p.Keywords(tx, l.kwargs, kwargs) {
		return nil, false, nil
	}
	if l.check == nil {
		class.useless++
		if l.check, err = o.checkOf(tx, l); err != nil {
			return nil, false, err
		}
		if l.check == nil {
			l.differs = true
			return nil, false, nil
		}
	}
	if ok, err := l.check.Holds(o.scope, append(append([]py.Object(nil), o.frame.Slots...), m.Obj),
		o.frame.Globals); !ok {
		return nil, false, err
	}
	rebase := guards.NewRebase(l.module.Source(), m.Source())
	objects, ok := o.tensorsOf(l.check, rebase, m)
	if !ok || !p.SameMetadata(tx, l.asked) {
		return nil, false, nil
	}
	if !l.served {
		l.served = true
		class.useless--
	}
	for _, g := range l.check.guards {
		if g.CreateFn == guards.CreateTensorMatch {
			continue // the guard is added with the input, in the loop over tensors
		}
		g, _ := rebase.Guard(*g)
		o.guards.Add(g)
	}
	for _, src := range l.check.reads {
		o.Reads(rebase.Source(src))
	}
	for i, t := range l.check.tensors {
		v, err := variables.Realize(tx, tx.Build(objects[i], rebase.Source(t.Source())))
		if err != nil {
			return nil, false, err
		}
		now := v.(*variables.TensorVariable)
		o.tensorArgs[now].Fields |= o.tensorArgs[t].Fields
		p.Stands(t, now)
	}
	if err := o.repeat(tx, l, p); err != nil {
		return nil, false, err
	}
	o.layers.reused++
	p.Changed(l.check.changed)
	result, ok = p.Result(l.result)
	if !ok {
		panic("translate: a layer whose result cannot be given again")
	}
	return result, true, nil
}

// repeat adds a layer's operations to the graph again, at another place in the user's code.
func (o *OutputGraph) repeat(tx *InstructionTranslator, l *layer, p *variables.Pairing) error {
	places := map[*chain]*chain{l.at: tx.chainHere()}
	var place func(c *chain) *chain
	place = func(c *chain) *chain {
		to, ok := places[c]
		if !ok {
			moved := *c
			moved.parent, moved.step = place(c.parent), o.rootStep
			moved.depth = moved.parent.depth + 1
			to = &moved
			places[c] = to
		}
		return to
	}
	for _, e := range o.events[l.from:l.to] {
		if e.size {
			continue // computed already
		}
		if o.isNumber(e.node) && !hasOtherInputs(e.node, p) {
			p.Nodes[e.node] = e.node // an int that the first layer has computed from the same sizes
			continue
		}
		if err := o.protect(tx); err != nil {
			return err
		}
		n := o.graph.Copy(e.node, func(in *fxgraph.Node) *fxgraph.Node {
			if to, ok := p.Nodes[in]; ok {
				return to
			}
			return in
		})
		p.Nodes[e.node] = n
		o.addedAt(n, place(e.chain))
	}
	o.inlined = append(o.inlined, l.inlined...)
	return nil
}

// hasOtherInputs reports whether an input of a node is replaced by another one.
func hasOtherInputs(n *fxgraph.Node, p *variables.Pairing) bool {
	other := false
	n.EachInput(func(in *fxgraph.Node) {
		to, ok := p.Nodes[in]
		other = other || ok && to != in
	})
	return other
}

// checkOf compiles the guards made on a layer's module into a check of other modules. The other module is passed in a
// slot that follows those of the frame. checkOf returns nil if the guards cannot be applied to other modules.
func (o *OutputGraph) checkOf(tx variables.Translator, l *layer) (*layerCheck, error) {
	c := &layerCheck{}
	for _, e := range o.events[l.from:l.to] {
		if !o.capturedAgain(e, l) {
			return nil, nil
		}
	}
	if !o.givesAgain(tx, l) {
		return nil, nil
	}
	src, slots := l.module.Source(), len(o.frame.Slots)
	other := guards.NewRebase(src, guards.NewLocalSource("___layer", slots))
	below := func(s guards.Source) bool { return other.Source(s) != s }
	if o.world.ReadFrom(l.args, l.kwargs, below) || o.world.AlsoStored(l.args, l.kwargs) {
		return nil, nil // a repeated layer would use this module's parts or this call's operands
	}
	c.guards, c.reads = o.layers.places.Below(src, o.guards.Said(), o.reads)
	if !l.apart { // the caller distinguished the modules; the layer's code did not
		c.guards = slices.DeleteFunc(c.guards,
			func(g *guards.Guard) bool { return g.CreateFn == guards.CreateNoAlias })
	}
	apart, ok := o.apartFromChanged(below, c.guards)
	if !ok {
		return nil, nil
	}
	c.guards = append(c.guards, apart...)
	all := make([]guards.Guard, 0, len(c.guards))
	for _, g := range c.guards {
		moved, ok := other.Guard(*g)
		if !ok {
			return nil, nil
		}
		if g.CreateFn == guards.CreateTensorMatch {
			example := *g.Args.Tensor
			example.Fields, example.StaticSizes, example.StaticStrides = guards.TensorAll, ^uint64(0), ^uint64(0)
			moved.Args.Tensor = &example
		}
		all = append(all, moved)
	}
	var reads []guards.Source
	for _, r := range c.reads {
		moved := other.Source(r)
		if moved == nil {
			return nil, nil
		}
		reads = append(reads, moved)
	}
	for _, v := range o.symbols.passed {
		if below(v.Source()) {
			return nil, nil // a repeated layer would use this module's ints and floats
		}
	}
	for _, t := range o.inputs {
		if t.Source() == nil || !below(t.Source()) {
			continue
		}
		if !t.Real.IsNull() {
			return nil, nil
		}
		c.tensors = append(c.tensors, t)
	}
	if c.changed, ok = o.changedIn(l, c.tensors); !ok {
		return nil, nil
	}
	m, err := guards.NewCheckFunctionManager(slots+1, guards.NewSet(all...), nil,
		guards.Options{GuardNNModules: true, Reads: reads, Anonymous: true})
	if err != nil {
		return nil, nil // there are too many guards for one program, or the places form a cycle
	}
	c.Check, err = o.installer.NewCheck(o.scope, m.Program(), o.pool)
	return c, err
}

// changedIn returns the operands of a layer's in-place operations. It returns false if an operation before the layer
// may have changed one of the module's tensors, since the metadata of that tensor may then differ from its guard.
func (o *OutputGraph) changedIn(l *layer,
	tensors []*variables.TensorVariable) (changed map[*fxgraph.Node]bool, ok bool) {
	ok = true
	for i, e := range o.events[:l.to] {
		if e.node == nil || !e.node.Inplace {
			continue
		}
		e.node.EachInput(func(in *fxgraph.Node) {
			if i >= l.from {
				if changed == nil {
					changed = map[*fxgraph.Node]bool{}
				}
				changed[in] = true
				return
			}
			ok = ok && !slices.ContainsFunc(tensors, func(t *variables.TensorVariable) bool { return t.Node == in })
		})
	}
	return changed, ok
}

// apartFromChanged returns guards that distinguish each guarded object below a module from the objects that the user's
// code has changed, since changed objects no longer match their guards. It returns false if a changed object is below
// the layer's own module.
func (o *OutputGraph) apartFromChanged(below func(s guards.Source) bool,
	gs []*guards.Guard) (apart []*guards.Guard, ok bool) {
	ok = true
	keep := func(obj py.Object, changed guards.Source) {
		if below(changed) {
			ok = false
			return
		}
		typ := obj.Type().ID()
		for _, g := range gs {
			if g.Origin != nil && g.Args.Obj.ID == typ && below(g.Origin) {
				alias := guards.NoAlias(g.Origin, changed)
				apart = append(apart, &alias)
			}
		}
	}
	o.world.Tracked(func(obj py.Object, v variables.VariableTracker) {
		if variables.Mutated(v) && v.Source() != nil {
			keep(obj, v.Source())
		}
	})
	o.world.Unseen(keep)
	return apart, ok
}

// givesAgain tests whether the layer's result can be rebuilt from other operands. The test uses the layer's own
// operands.
func (o *OutputGraph) givesAgain(tx variables.Translator, l *layer) bool {
	p := variables.NewPairing()
	if !p.Operands(tx, l.args, l.args) || !p.Keywords(tx, l.kwargs, l.kwargs) {
		return false
	}
	for _, e := range o.events[l.from:l.to] {
		if e.node != nil && e.node.RunsOnce() {
			return false
		}
		if e.node != nil {
			p.Nodes[e.node] = e.node
		}
	}
	_, ok := p.Result(l.result)
	return ok
}

// tensorsOf reads the tensors of m that are at the same places as the layer's tensors in the layer's module. It returns
// false if the translation already knows one of them from another place, or if one occurs twice.
func (o *OutputGraph) tensorsOf(c *layerCheck, rebase *guards.Rebase, m *variables.ObjectVariable) ([]py.Object, bool) {
	objects := make([]py.Object, len(c.tensors))
	seen := map[py.Object]bool{}
	for i, t := range c.tensors {
		src := rebase.Source(t.Source())
		if src == nil {
			return nil, false
		}
		obj, ok := o.valueAt(src, m)
		if !ok || seen[obj] || o.world.Tracker(obj) != nil || !o.world.IsTensor(obj) {
			return nil, false
		}
		objects[i], seen[obj] = obj, true
	}
	return objects, true
}

// valueAt reads the value at src, a place on a path that starts at module m.
func (o *OutputGraph) valueAt(src guards.Source, m *variables.ObjectVariable) (py.Object, bool) {
	if src.Name() == m.Source().Name() {
		return m.Obj, true
	}
	base, ok := o.valueAt(src.Base(), m)
	if !ok {
		return py.Object{}, false
	}
	return o.read(src, base)
}

// above returns the trackers of the values on the path to src, such as those of x and x.y for x.y.z. Values without a
// tracker are left out. ok is false if called code can read src by name (as a global, for example), or if the path
// cannot be followed.
func (o *OutputGraph) above(src guards.Source) (vs []variables.VariableTracker, ok bool) {
	base := src.Base()
	for base != nil && base.Name() == src.Name() {
		base = base.Base()
	}
	if base == nil {
		_, local := src.(*guards.LocalSource)
		return nil, local
	}
	var value func(s guards.Source) (py.Object, bool)
	value = func(s guards.Source) (obj py.Object, ok bool) {
		switch s := s.(type) {
		case *guards.LocalSource:
			obj, ok = o.frame.Slots[s.Slot], true
		case *guards.GlobalSource:
			obj, ok = o.scope.DictGetName(o.frame.Globals, s.Global)
		case *guards.ConstSource:
			obj, ok = o.pool[s.Const.Index], true
		default:
			if s.Base() == nil {
				return obj, false
			}
			if obj, ok = value(s.Base()); ok {
				obj, ok = o.read(s, obj)
			}
		}
		if ok {
			if v := o.world.Tracker(obj); v != nil {
				vs = append(vs, v)
			}
		}
		return obj, ok
	}
	_, ok = value(base)
	return vs, ok
}

// read returns the value that a source reads from base. It can read attributes, items of dicts, lists and tuples, and
// the contents of cells.
func (o *OutputGraph) read(src guards.Source, base py.Object) (py.Object, bool) {
	switch s := src.(type) {
	case *guards.NNModuleSource, *guards.NotNNModuleSource:
		return base, true
	case *guards.AttrSource:
		return o.scope.InstanceAttr(base, s.Attr)
	case *guards.GetItemSource:
		if s.Key.Index >= 0 {
			return o.scope.DictGet(base, o.pool[s.Key.Index])
		}
	case *guards.IndexSource:
		if s.Index >= 0 && (base.Kind() == py.List || base.Kind() == py.Tuple) {
			if items := o.scope.Items(base); s.Index < len(items) {
				return items[s.Index], true
			}
		}
	case *guards.GradSource:
		return o.scope.TensorGrad(base)
	case *guards.CellSource:
		if base.Kind() == py.Cell {
			return o.scope.CellContents(base)
		}
	case *guards.FunctionFieldSource:
		if s.Field == guards.FuncClosure && base.Kind() == py.Function {
			return o.scope.FunctionField(base, py.FuncClosure)
		}
	}
	return py.Object{}, false
}
