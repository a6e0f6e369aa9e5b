package variables

import (
	"math"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// SymNodeVariable is an int that may differ between the calls that a translation serves: a tensor's size, or an int
// computed from sizes. Size is its value as an expression over the symbols of the translation.
//
// Realize fixes the value: it returns a constant and records the condition that the size has this value. So code that
// does not support symbols gets constants only. Code that supports symbols checks for a SymNodeVariable first.
type SymNodeVariable struct {
	Base
	Size  sym.Size
	Node  *fxgraph.Node     // computes the value, if it is known only at run time
	fixed *ConstantVariable // the value, after Fixed
}

// symbolic is the part of a translation's state that concerns sizes.
type symbolic struct {
	env     *sym.Env
	nodes   map[sym.Size]*SymNodeVariable
	symbols []*SymNodeVariable // by number
	// FixesSizes is positive while sizes are constants. It counts the running bodies of operations (inBody) and the
	// running steps at which an earlier attempt broke the graph (execute).
	FixesSizes int
	// SizeLooks counts how often code found a size whose value was not fixed. Opaque counts the values known only at
	// run time that were computed from sizes. If FixesOpaque is set, sizes are fixed instead.
	SizeLooks, Opaque int
	FixesOpaque       bool
	// FloatLooks lists the places of floats that code has used without knowing their values.
	FloatLooks []string
	// floatConditions maps the place of a float to the number of its comparisons that guards check.
	floatConditions map[string]int
}

// Env returns the symbols, and the facts about them.
func (w *World) Env() *sym.Env {
	if w.env == nil {
		w.env, w.nodes = sym.NewEnv(), map[sym.Size]*SymNodeVariable{}
		w.env.Power = w.power
	}
	return w.env
}

// NewSymbol returns a new symbol for the int at a place.
func (w *World) NewSymbol(src guards.Source, info sym.Info) *SymNodeVariable {
	s := w.Env().NewSymbol(info)
	v := &SymNodeVariable{Base: Base{Src: src}, Size: s}
	w.nodes[s] = v
	w.symbols = append(w.symbols, v)
	return v
}

// passedInts reports whether a size is computed only from ints passed to the frame.
func (w *World) passedInts(s sym.Size) bool {
	l := &sizeLeaves{world: w, ints: true}
	w.Env().Write(s, l)
	return l.ints
}

// sizeLeaves implements sym.Writer. ints becomes false at a symbol that is not an int passed to the frame.
type sizeLeaves struct {
	world *World
	ints  bool
}

func (*sizeLeaves) Begin(sym.Op)       {}
func (*sizeLeaves) Const(int64)        {}
func (*sizeLeaves) FloatConst(float64) {}
func (*sizeLeaves) Apply(sym.Op)       {}
func (l *sizeLeaves) Symbol(s sym.Symbol) {
	src := l.world.SymbolOf(s).Src
	_, size := src.(*guards.TensorPropertySource)
	l.ints = l.ints && src != nil && !size
}

// Adopt makes the tracker of a symbol that a rule for sizes has made.
func (w *World) Adopt(s sym.Size) {
	v := &SymNodeVariable{Size: s}
	w.nodes[s] = v
	w.symbols = append(w.symbols, v)
}

// SymbolOf returns the tracker of a symbol.
func (w *World) SymbolOf(s sym.Symbol) *SymNodeVariable { return w.symbols[s] }

// NewSize returns the tracker of an int: a constant if the known facts fix its value, else a SymNodeVariable. s must
// not be Unknown. Equal expressions have one tracker.
func NewSize(tx Translator, s sym.Size) VariableTracker {
	if n, ok := s.Const(); ok {
		return NewConstant(tx.Scope().Int(n), nil)
	}
	w := tx.World()
	if s = w.Env().Simplify(s); s.IsUnknown() {
		panic("variables: the tracker of an unknown size")
	}
	if n, ok := s.Const(); ok {
		return NewConstant(tx.Scope().Int(n), nil)
	}
	v := w.nodes[s]
	if v == nil {
		v = &SymNodeVariable{Size: s}
		w.nodes[s] = v
	}
	return v
}

// Kind implements VariableTracker.
func (*SymNodeVariable) Kind() string { return "SymNodeVariable" }

// PythonType implements Typed.
func (*SymNodeVariable) PythonType(tx Translator) (py.Object, error) {
	return tx.World().Builtin("int"), nil
}

// AsProxy implements Proxy.
func (v *SymNodeVariable) AsProxy(tx Translator) (fxgraph.Arg, error) {
	return tx.Output().SizeOperand(tx, v)
}

// AsConstant implements Constant. It does not fix the value.
func (v *SymNodeVariable) AsConstant(Translator) (py.Object, bool) {
	if v.fixed == nil {
		return py.Object{}, false
	}
	return v.fixed.Value, true
}

// Truth implements Truther.
func (v *SymNodeVariable) Truth(tx Translator) (bool, error) {
	return tx.Output().Decide(tx, sym.NotZero(v.Size))
}

// Settled returns the constant that v equals, or nil if its value may still differ between calls.
func (v *SymNodeVariable) Settled(w *World) *ConstantVariable {
	if v.fixed == nil {
		if n, ok := w.Env().Simplify(v.Size).Const(); ok {
			v.fixed = NewConstant(w.scope.Int(n), nil)
		}
	}
	return v.fixed
}

// Fixed returns v as a constant: its value in the translated call, with the condition that it has this value. For a
// value known only at run time it breaks the graph.
func (v *SymNodeVariable) Fixed(tx Translator) (*ConstantVariable, error) {
	if c := v.Settled(tx.World()); c != nil {
		return c, nil
	}

	n, err := Specialise(tx, v.Size)
	if err != nil {
		return nil, err
	}
	v.fixed = NewConstant(tx.Scope().Int(n), nil)
	return v.fixed, nil
}

// Specialise returns the value of a size in the translated call, and records the condition that the size has this
// value. Only this function turns a size into a Go int.
func Specialise(tx Translator, s sym.Size) (int64, error) {
	if n, ok := s.Const(); ok {
		return n, nil
	}
	env := tx.World().Env()
	n, ok := env.Hint(s)
	if !ok {
		return 0, DataDependent(env.Text(s))
	}
	_, err := tx.Output().Decide(tx, env.Eq(s, sym.Const(n)))
	return n, err
}

// SpecialiseAll returns the values of a shape. It does the same as Specialise for each size.
func SpecialiseAll(tx Translator, sizes []sym.Size) ([]int, error) {
	out := make([]int, len(sizes))
	for i, s := range sizes {
		n, err := Specialise(tx, s)
		if err != nil {
			return nil, err
		}
		out[i] = int(n)
	}
	return out, nil
}

// DataDependent returns the graph break for a size, given as text, that the translator cannot know.
func DataDependent(text string) error {
	return &exc.Unsupported{Code: exc.DataDependentBranch, Context: text + ", which is known at run time only",
		DataDependent: true}
}

// asSymNode returns v as a SymNodeVariable whose value is not fixed, or nil.
func asSymNode(tx Translator, v VariableTracker) *SymNodeVariable {
	x, ok := v.(*SymNodeVariable)
	if w := tx.World(); !ok || w.FixesSizes > 0 || x.Settled(w) != nil {
		return nil
	}
	tx.World().SizeLooks++
	return x
}

// Argument does the same as Realize, but leaves a size as it is. It is for operands of the graph.
func Argument(tx Translator, v VariableTracker) (VariableTracker, error) {
	if x := asSymNode(tx, v); x != nil {
		return x, nil
	}
	return Realize(tx, v)
}

// sizeOf returns the value of an int as a Size. An int passed to the frame counts as read. ok is false for other
// values.
func sizeOf(tx Translator, v VariableTracker) (s sym.Size, ok bool) {
	if l, lazy := v.(*LazyVariable); lazy {
		if l.real == nil && l.obj.Kind() != py.Int {
			return s, false
		}
		v = MustRealize(tx, v)
	}
	switch x := v.(type) {
	case *SymNodeVariable:
		return tx.World().Env().Simplify(x.Size), true
	case *ConstantVariable:
		if x.Value.Kind() == py.Int {
			n, ok := py.AsInt(x.Value)
			return sym.Const(n), ok
		}
	}
	return s, false
}

// decide is short for Output.Decide.
func decide(tx Translator, c sym.Cond) (bool, error) { return tx.Output().Decide(tx, c) }

// computed returns v as a plain value computed at run time, of which only the type and a bound are known.
func (v *SymNodeVariable) computed(tx Translator) (*ComputedVariable, error) {
	if err := tx.Output().Freeze(tx, v); err != nil {
		return nil, err
	}
	tx.World().Opaque++
	c := &ComputedVariable{Base: Base{Src: v.Src, slot: v.slot}, Type: tx.World().Builtin("int"),
		passed: passedFloats(tx, []VariableTracker{v})}
	if v.Node != nil {
		var err error
		if c, err = compute(tx, c.Type, []VariableTracker{v}, func(e Emitter) error { return e.Load(v) }); err != nil {
			return nil, err
		}
	}
	if tx.Output().TakesNumbers() { // the bound matters only where a tensor represents the number
		c.limit = exactInt
		return c, nil
	}
	env := tx.World().Env()
	for _, cond := range []sym.Cond{env.Le(v.Size, sym.Const(exactInt)), env.Ge(v.Size, sym.Const(-exactInt))} {
		if small, err := decide(tx, cond); err != nil || !small {
			return c, err
		}
	}
	lo, hi := env.Bounds(v.Size)
	c.limit = exactInt
	if lo > -exactInt && hi < exactInt {
		c.limit = max(-lo, hi, 1)
	}
	return c, nil
}

// fixSizes fixes the value of each size within v, for an operation that needs known values.
func fixSizes(tx Translator, v VariableTracker) error {
	return eachSize(tx, v, map[VariableTracker]bool{}, func(x *SymNodeVariable) error {
		_, err := x.Fixed(tx)
		return err
	})
}

// holdsSize reports whether there is a size that may differ between calls within v.
func holdsSize(tx Translator, v VariableTracker) bool {
	found := false
	err := eachSize(tx, v, map[VariableTracker]bool{}, func(*SymNodeVariable) error {
		found = true
		return nil
	})
	return found && err == nil
}

func eachSize(tx Translator, v VariableTracker, seen map[VariableTracker]bool,
	visit func(*SymNodeVariable) error) error {
	if v = peek(v); v == nil || seen[v] {
		return nil
	}
	seen[v] = true
	if x := asSymNode(tx, v); x != nil {
		return visit(x)
	}
	c, ok := v.(Container)
	if !ok || v.Source() != nil {
		return nil
	}
	for _, child := range c.Children() {
		if err := eachSize(tx, child, seen, visit); err != nil {
			return err
		}
	}
	return nil
}

// unbounded is the largest value of a size.
const unbounded = math.MaxInt64

// SizeInfo describes the symbol of a tensor's size.
func SizeInfo(name string, hint int64) sym.Info {
	return sym.Info{Name: name, Hint: hint, Hinted: true, Lo: 0, Hi: unbounded}
}

// IntInfo describes the symbol of an int that was passed to the frame.
func IntInfo(name string, hint int64) sym.Info {
	return sym.Info{Name: name, Hint: hint, Hinted: true, Lo: math.MinInt64, Hi: unbounded}
}

// IsEmpty reports whether a size is 0. It counts a size known only at run time as not empty.
func IsEmpty(tx Translator, s sym.Size) bool {
	empty, err := decide(tx, sym.Zero(s))
	return err == nil && empty
}
