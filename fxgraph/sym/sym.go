// Package sym computes with sizes that are unknown while translating. Such a size is an integer expression over
// symbols. The package stores facts about sizes and answers whether a condition follows from the facts.
//
// All values are mathematical integers. A conclusion is drawn only if it is proved. The work for a proof is bounded: it
// uses interval and residue arithmetic and the differences between an expression and the known facts, but no search.
// The package is pure Go and has no notion of tensors or Python. An Env belongs to one translation and to one
// goroutine.
package sym

import "math"

// Symbol numbers the symbols of an Env from 0.
type Symbol int32

// Size is an integer: a constant, or an expression over the symbols of one Env. The zero value is the constant 0. Two
// Sizes are equal in Go if their normal forms are the same; Env.Ask also finds equalities that follow from facts.
type Size struct {
	t *poly // nil: a constant
	c int64 // added to t
}

// Const is the constant n.
func Const(n int64) Size { return Size{c: n} }

// Unknown is the result of arithmetic that overflows int64, divides by a value that may be 0, or exceeds the bounds of
// a normal form. Arithmetic on it yields Unknown, and no condition on it is ever decided.
func Unknown() Size { return Size{t: unknown} }

var unknown = &poly{}

// Const returns the value of a constant; ok is false for any other Size.
func (s Size) Const() (n int64, ok bool) { return s.c, s.t == nil }

// IsUnknown reports whether s is Unknown.
func (s Size) IsUnknown() bool { return s.t == unknown }

// Is reports whether s is the constant n.
func (s Size) Is(n int64) bool { return s.t == nil && s.c == n }

// Symbol returns the symbol of a Size that consists of one symbol. ok is false for any other Size.
func (s Size) Symbol() (sym Symbol, ok bool) {
	if a := s.atom(); a != nil && s.c == 0 && a.op == opSymbol {
		return a.sym, true
	}
	return 0, false
}

// atom returns x if the terms of s are just 1 * x.
func (s Size) atom() *atom {
	if s.t == nil || len(s.t.terms) != 1 || s.t.terms[0].coef != 1 || len(s.t.terms[0].m.atoms) != 1 {
		return nil
	}
	return s.t.terms[0].m.atoms[0]
}

// Info describes a new symbol.
type Info struct {
	Name   string // as printed, such as "s0"
	Hint   int64  // its value in the translated call
	Hinted bool   // false for a value known only at run time
	Marked bool   // becomes a constant last, if there are too many conditions
	Lo, Hi int64  // inclusive bounds of its values; math.MinInt64 and math.MaxInt64 mean no bound
}

// Env owns the symbols, the expressions and the facts of a translation.
type Env struct {
	symbols []Info
	leaves  []*atom // the symbols as atoms

	polys map[string]*poly
	monos map[string]*mono
	atoms map[string]*atom
	key   []byte
	natom int

	facts      []*poly // the polys with recorded bounds, excluded values or residues
	recorded   []Record
	essential  []Record                 // the records when Essential was called
	trail      []func()                 // functions that undo the facts, newest last
	generation int                      // number of substitutions; a result of Simplify is valid for one generation
	depth      int                      // depth of nested calls; beyond maxDepth nothing is concluded
	splits     int                      // nested case distinctions of max and min
	version    int                      // number of changes of the facts
	undone     int                      // number of times that facts were undone
	asked      map[[2]Size]withinAnswer // the answers of within

	// Power returns x ** y as Python computes it, for x > 0. Unless it is set, such powers have no value.
	Power func(x, y float64) (r float64, ok bool)
	// OnFixed, unless nil, is called when a new fact leaves a symbol with one value. If that fact is undone, the next
	// such fact is reported as well. Essential ends the calls.
	OnFixed func(s Symbol)
	// OnAssume, unless nil, is called with the Size of each condition that is passed to Assume.
	OnAssume func(e Size)
	reported map[Symbol]bool
}

// NewEnv returns an Env without symbols.
func NewEnv() *Env {
	return &Env{polys: map[string]*poly{}, monos: map[string]*mono{}, atoms: map[string]*atom{}}
}

// NewSymbol returns a new symbol as a Size.
func (env *Env) NewSymbol(info Info) Size {
	a := &atom{id: env.natom, op: opSymbol, sym: Symbol(len(env.symbols)), own: interval{info.Lo, info.Hi}, mod: 1}
	env.natom++
	env.symbols = append(env.symbols, info)
	env.leaves = append(env.leaves, a)
	return env.fromAtom(a)
}

// Symbol returns a symbol as a Size.
func (env *Env) Symbol(s Symbol) Size { return env.fromAtom(env.leaves[s]) }

// Len returns the number of symbols.
func (env *Env) Len() int { return len(env.symbols) }

// Info returns the description with which the symbol was made.
func (env *Env) Info(s Symbol) Info { return env.symbols[s] }

// Bounds returns the smallest and the largest value that s may have. math.MinInt64 and math.MaxInt64 mean that no bound
// is known.
func (env *Env) Bounds(s Size) (lo, hi int64) {
	s = env.Simplify(s)
	if s.IsUnknown() {
		return math.MinInt64, math.MaxInt64
	}
	v := env.bounds(s)
	return v.lo, v.hi
}

// Hint returns the value of s in the translated call. ok is false if s depends on a symbol without a hint, or if a step
// overflows int64.
func (env *Env) Hint(s Size) (n int64, ok bool) {
	return env.Eval(s, func(sym Symbol) (int64, bool) { return env.symbols[sym].Hint, env.symbols[sym].Hinted })
}
