package sym

import "slices"

// Record is a condition on which a translation depends.
type Record struct {
	Cond  Cond
	Why   any  // the caller's reason, such as the place in the user's code that needed the condition; comparable
	Limit bool // recorded because a symbol had too many conditions; Why is the reason of most of them
}

// Mark is a state of an Env to which Undo can return.
type Mark struct{ trail, recorded, facts int }

// Mark returns the present state.
func (env *Env) Mark() Mark { return Mark{len(env.trail), len(env.recorded), len(env.facts)} }

// Undo removes all facts and records that were added since the mark. Symbols and expressions stay valid.
func (env *Env) Undo(m Mark) {
	for i := len(env.trail) - 1; i >= m.trail; i-- {
		env.trail[i]()
	}
	if len(env.trail) > m.trail {
		env.generation++
		env.version++
		env.undone++
	}
	env.trail = env.trail[:m.trail]
	env.recorded = env.recorded[:m.recorded]
	env.facts = env.facts[:m.facts]
}

// undoBy is called with each change of a fact. Undo calls undo.
func (env *Env) undoBy(undo func()) {
	env.trail = append(env.trail, undo)
	env.version++
}

// Records returns the conditions that Decide recorded, oldest first. The slice belongs to the Env.
func (env *Env) Records() []Record { return env.recorded }

// Decide reports whether c holds for the call that is translated. If the facts do not decide c, the hints do. Decide
// then records c or its opposite and makes it a fact. If c depends on a value that is known only at run time, the hints
// cannot decide it, but c may follow if other sizes are positive. That is then recorded (decidePositive). If nothing
// decides c, ok is false.
func (env *Env) Decide(c Cond, why any) (holds, ok bool) {
	switch env.Ask(c) {
	case True:
		return true, true
	case False:
		return false, true
	}
	holds, ok = env.EvalCond(c, func(s Symbol) (int64, bool) { return env.symbols[s].Hint, env.symbols[s].Hinted })
	if !ok {
		return env.decidePositive(c, why)
	}
	if !holds {
		c = env.Not(c)
	}
	env.recorded = append(env.recorded, Record{Cond: c, Why: why})
	env.assume(c)
	if n := len(env.recorded); n > MaxOfSymbol && n%limitEvery == 0 {
		env.limit()
	}
	return holds, true
}

// Require records c and makes it a fact, for a condition that the user has given. The hints must satisfy it.
func (env *Env) Require(c Cond, why any) {
	if env.Ask(c) != True {
		env.recorded = append(env.recorded, Record{Cond: c, Why: why})
		env.assume(c)
	}
}

// Assume makes c a fact without recording it. It is for conditions that other code guarantees, such as torch._check. A
// fact that contradicts the others makes later answers arbitrary.
func (env *Env) Assume(c Cond) {
	if env.OnAssume != nil {
		env.OnAssume(c.e)
	}
	env.assume(c)
}

func (env *Env) assume(c Cond) {
	e := env.Simplify(c.e)
	if e.IsUnknown() || e.t == nil {
		return
	}
	generation := env.generation
	switch c.rel {
	case relNotNegative:
		env.assumeBounds(e, interval{0, plusInf})
	case relZero:
		env.assumeZero(e)
	case relNotZero:
		env.assumeNot(e)
	}
	if env.OnFixed != nil && env.generation != generation {
		env.reportFixed()
	}
}

// reportFixed calls OnFixed for each symbol to which the newest fact leaves one value.
func (env *Env) reportFixed() {
	for i := range env.symbols {
		s := Symbol(i)
		if _, fixed := env.Simplify(env.Symbol(s)).Const(); !fixed || env.reported[s] {
			continue
		}
		if env.reported == nil {
			env.reported = map[Symbol]bool{}
		}
		env.reported[s] = true
		env.undoBy(func() { delete(env.reported, s) })
		env.OnFixed(s)
	}
}

// fact returns the canonical poly p of e and the sign for which e = sign*p + e.c. It adds p to the list of polys with
// facts.
func (env *Env) fact(e Size) (p *poly, sign int64) {
	p, sign = env.canonical(e.t)
	if sign != 0 && !slices.Contains(env.facts, p) {
		env.facts = append(env.facts, p)
	}
	return p, sign
}

// setKnown sets the bounds of p. If p consists of one atom, it narrows the atom's bounds as well.
func (env *Env) setKnown(p *poly, v interval) {
	for slices.Contains(p.not, v.lo) && v.lo < v.hi {
		v.lo++
	}
	for slices.Contains(p.not, v.hi) && v.lo < v.hi {
		v.hi--
	}
	old := p.known
	if v == old {
		return
	}
	p.known = v
	env.undoBy(func() { p.known = old })
	if len(p.terms) != 1 {
		return
	}
	if x := p.terms[0].m.atoms[0]; len(p.terms[0].m.atoms) == 1 {
		was := x.own
		x.own = x.own.intersect(divided(v, p.terms[0].coef))
		env.undoBy(func() { x.own = was })
	}
}

// divided returns the interval of x if k*x is in v. k must be positive.
func divided(v interval, k int64) interval {
	if v.lo != minusInf {
		q, r, _ := floorDivMod(v.lo, k)
		if r != 0 {
			q++
		}
		v.lo = q
	}
	if v.hi != plusInf {
		v.hi, _, _ = floorDivMod(v.hi, k)
	}
	return v
}

// assumeBounds makes it a fact that e lies in v.
func (env *Env) assumeBounds(e Size, v interval) {
	if e.t == nil {
		return
	}
	p, sign := env.fact(e)
	if sign == 0 {
		return
	}
	v = v.add(interval{e.c, e.c}.neg()).scale(sign)
	v = v.intersect(p.known)
	env.setKnown(p, v)
	if v.lo == v.hi {
		env.assumeZero(env.Simplify(env.Sub(Size{t: p}, Const(v.lo))))
		return
	}
	// The sum divided by the greatest common divisor of its coefficients is bounded as well.
	if g := content(p); g > 1 {
		env.assumeBounds(env.quotient(p, g), divided(v, g))
	}
}

// content returns the greatest common divisor of p's coefficients.
func content(p *poly) int64 {
	g := int64(0)
	for _, t := range p.terms {
		g = gcd(g, t.coef)
	}
	return g
}

func (env *Env) quotient(p *poly, g int64) Size {
	terms := slices.Clone(p.terms)
	for i := range terms {
		terms[i].coef /= g
	}
	return env.intern(terms, 0)
}

func (env *Env) assumeNot(e Size) {
	p, sign := env.fact(e)
	n, ok := mulInt(sign, -e.c)
	if sign == 0 || !ok || slices.Contains(p.not, n) {
		return
	}
	old := p.not
	p.not = append(slices.Clone(old), n)
	env.undoBy(func() { p.not = old })
	env.setKnown(p, p.known.intersect(env.simpleBounds(Size{t: p})))
}

// assumeZero makes e == 0 a fact. If one term of e is an atom with the coefficient 1 or -1, the other terms replace
// that atom from now on.
func (env *Env) assumeZero(e Size) {
	if e.t == nil || e.IsUnknown() {
		return
	}
	p, sign := env.fact(e)
	n, ok := mulInt(sign, -e.c)
	if sign == 0 || !ok {
		return
	}
	env.setKnown(p, interval{n, n})
	if g := content(p); g > 1 && n%g == 0 {
		env.assumeZero(env.Simplify(env.Sub(env.quotient(p, g), Const(n/g))))
		return
	}
	if x := e.atom(); x != nil && x.op == opMod && x.b.t == nil && x.b.c > 1 {
		env.setResidue(x.a, x.b.c, -e.c)
	}
	env.divisible(p, n)
	if x, value := env.solve(e); x != nil {
		env.substitute(x, value)
	}
}

// divisible derives residues from p == n: if all coefficients but one share a divisor g, the remaining term has a known
// residue modulo g. For example, 8*a + b == 3 implies that b is 3 modulo 8.
func (env *Env) divisible(p *poly, n int64) {
	for i, t := range p.terms {
		g := int64(0)
		for j, u := range p.terms {
			if i != j {
				g = gcd(g, u.coef)
			}
		}
		if g > 1 && (t.coef == 1 || t.coef == -1) {
			if r, ok := mulInt(t.coef, n); ok {
				env.setResidue(env.intern([]term{{1, t.m}}, 0), g, r)
			}
		}
	}
}

// setResidue makes it a fact that s is rem modulo mod.
func (env *Env) setResidue(s Size, mod, rem int64) {
	if s.t == nil || s.IsUnknown() {
		return
	}
	p, sign := env.fact(s)
	r, ok := addInt(rem, -s.c)
	r, ok2 := mulInt(sign, r)
	if sign == 0 || !ok || !ok2 {
		return
	}
	_, r, _ = floorDivMod(r, mod)
	oldMod, oldRem := p.mod, p.rem
	if p.mod, p.rem, ok = joinResidues(p.mod, p.rem, mod, r); !ok {
		p.mod, p.rem = oldMod, oldRem
		return
	}
	env.undoBy(func() { p.mod, p.rem = oldMod, oldRem })
	env.generation++ // in expressions that were built before, s % mod is now a constant
	if x := (Size{t: p}).atom(); x != nil {
		oldMod, oldRem := x.mod, x.rem
		x.mod, x.rem = p.mod, p.rem
		env.undoBy(func() { x.mod, x.rem = oldMod, oldRem })
	}
}

// joinResidues returns mod and rem such that a value that is r1 modulo m1 and r2 modulo m2 is rem modulo mod. It
// handles small moduli that have no common divisor, and moduli of which one divides the other. For others, ok is false.
func joinResidues(m1, r1, m2, r2 int64) (mod, rem int64, ok bool) {
	if m1 < m2 {
		m1, r1, m2, r2 = m2, r2, m1, r1
	}
	if m2 < 1 || m2 > 4096 {
		return m1, r1, m2 >= 1 && m1%m2 == 0
	}
	if m1%m2 == 0 {
		return m1, r1, true
	}
	if gcd(m1, m2) != 1 {
		return 0, 0, false
	}
	mod, ok = mulInt(m1, m2)
	for r := r1; ok; {
		if _, s, _ := floorDivMod(r, m2); s == r2 {
			return mod, r, true
		}
		if r, ok = addInt(r, m1); r >= mod {
			break
		}
	}
	return 0, 0, false
}

// preferred ranks the atoms that an equality may replace. A symbol without a hint comes first, so that no expression
// loses its hint; then other symbols, then other atoms.
func (env *Env) preferred(x *atom) int {
	switch {
	case x.op != opSymbol:
		return 0
	case env.symbols[x.sym].Hinted:
		return 1
	}
	return 2
}

// solve returns an atom that e == 0 determines, and the expression that it equals. It prefers the newest of the atoms
// that `preferred` ranks highest. It returns nil if there is none.
func (env *Env) solve(e Size) (x *atom, value Size) {
	var coef int64
	for i, t := range e.t.terms {
		y := t.m.atoms[0]
		if len(t.m.atoms) != 1 || t.coef != 1 && t.coef != -1 {
			continue
		}
		rest := env.intern(slices.Delete(slices.Clone(e.t.terms), i, i+1), e.c)
		if y.occursIn(rest) {
			continue
		}
		if x == nil || env.preferred(y) > env.preferred(x) || env.preferred(y) == env.preferred(x) && y.id > x.id {
			x, coef, value = y, t.coef, rest
		}
	}
	if x == nil {
		return nil, Size{}
	}
	return x, env.addScaled(Size{}, -coef, value)
}

// substitute replaces x by value from now on. It transfers the facts about x, and about sums with x, to the expressions
// that replace them.
func (env *Env) substitute(x *atom, value Size) {
	if value.IsUnknown() || x.to != nil {
		return
	}
	bounds, mod, rem := env.atomBounds(x), x.mod, x.rem
	x.to = &value
	env.generation++
	env.undoBy(func() { x.to = nil })
	env.assumeBounds(env.Simplify(value), bounds)
	if mod > 1 {
		env.setResidue(env.Simplify(value), mod, rem)
	}
	for _, p := range slices.Clone(env.facts) {
		if !x.occursIn(Size{t: p}) {
			continue
		}
		now := env.Simplify(Size{t: p})
		if now.IsUnknown() || now.t == nil || now.t == p {
			continue
		}
		if p.known != everything {
			env.assumeBounds(now, p.known)
		}
		for _, n := range p.not {
			if d := env.Sub(now, Const(n)); d.t != nil && !d.IsUnknown() {
				env.assumeNot(d)
			}
		}
		if p.mod > 1 {
			env.setResidue(now, p.mod, p.rem)
		}
	}
}

// Simplify rewrites s by the equalities that are known.
func (env *Env) Simplify(s Size) Size {
	if s.t == nil || s.t == unknown || env.generation == 0 {
		return s
	}
	if s.t.simplified != env.generation+1 {
		s.t.simple, s.t.simplified = env.rewrite(s.t), env.generation+1
	}
	return env.Add(s.t.simple, Const(s.c))
}

// rewrite is Simplify for the sum p.
func (env *Env) rewrite(p *poly) Size {
	if env.depth > maxDepth {
		return Size{t: p}
	}
	env.depth++
	defer func() { env.depth-- }()
	out := Size{}
	for _, t := range p.terms {
		product := Const(t.coef)
		for _, x := range t.m.atoms {
			product = env.Mul(product, env.rewriteAtom(x))
		}
		out = env.Add(out, product)
	}
	if out.IsUnknown() { // the result exceeds the bounds of a normal form, so p stays as it is
		return Size{t: p}
	}
	return out
}

func (env *Env) rewriteAtom(x *atom) Size {
	if x.to != nil {
		return env.Simplify(*x.to)
	}
	if x.op == opSymbol {
		return env.fromAtom(x)
	}
	a, b := env.Simplify(x.a), env.Simplify(x.b)
	var s Size
	switch x.op {
	case opFloorDiv:
		s = env.FloorDiv(a, b)
	case opMod:
		s = env.Mod(a, b)
	case opMax:
		s = env.Max(a, b)
	case opMin:
		s = env.Min(a, b)
	default:
		s = env.apply(x.op, a, b)
	}
	if s.IsUnknown() {
		return env.fromAtom(x)
	}
	return s
}
