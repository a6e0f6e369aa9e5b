package sym

import "slices"

// Answer is the result of Ask.
type Answer byte

const (
	Undecided Answer = iota
	True
	False
)

func (a Answer) not() Answer {
	switch a {
	case True:
		return False
	case False:
		return True
	}
	return Undecided
}

// Ask returns True if c follows from the facts, False if c contradicts them, and Undecided if neither can be proved. It
// adds no fact and reads no hint. Its work is bounded: it looks at each fact once.
func (env *Env) Ask(c Cond) Answer {
	if c.e.IsUnknown() {
		return Undecided
	}
	got := env.askForm(c.rel, c.e)
	if got == Undecided { // a fact may be stored for the simplified expression only
		if e := env.Simplify(c.e); e != c.e {
			got = env.askForm(c.rel, e)
		}
	}
	return got
}

func (env *Env) askForm(rel relation, e Size) Answer {
	switch {
	case e.IsUnknown():
		return Undecided
	case rel == relZero:
		return env.askZero(e)
	case rel == relNotZero:
		return env.askZero(e).not()
	}
	return env.askNotNegative(e)
}

func answer(holds bool) Answer {
	if holds {
		return True
	}
	return False
}

func (env *Env) askNotNegative(e Size) Answer {
	if e.t == nil {
		return answer(e.c >= 0)
	}
	v := env.simpleBounds(e)
	if v.lo < 0 && v.hi >= 0 {
		v = env.bounds(e)
	}
	switch {
	case v.lo >= 0:
		return True
	case v.hi < 0:
		return False
	}
	if common, rest, ok := env.factor(e); ok {
		sign := env.simpleBounds(common)
		switch {
		case sign.lo > 0:
			return env.askNotNegative(rest)
		case sign.hi < 0:
			return env.askNotNegative(env.Neg(rest))
		case sign.lo >= 0 && env.askNotNegative(rest) == True:
			return True
		}
	}
	return Undecided
}

func (env *Env) askZero(e Size) Answer {
	if e.t == nil {
		return answer(e.c == 0)
	}
	v := env.simpleBounds(e)
	if !v.has(0) {
		return False
	}
	if mod, rem := env.residue(e); mod == 0 && rem != 0 || mod > 1 && rem%mod != 0 {
		return False
	}
	if p, sign := env.canonical(e.t); sign != 0 {
		if n, ok := mulInt(sign, -e.c); ok && slices.Contains(p.not, n) { // e == 0 means sign*p == -c
			return False
		}
	}
	if v = env.bounds(e); !v.has(0) {
		return False
	}
	if v.lo == 0 && v.hi == 0 {
		return True
	}
	if common, rest, ok := env.factor(e); ok {
		if env.askZero(rest) == True {
			return True
		}
		if env.askZero(common) == False {
			return env.askZero(rest)
		}
	}
	return Undecided
}

// factor splits e into the atoms that all its terms share, and the rest. ok is false if e has a constant part or no
// shared atoms.
func (env *Env) factor(e Size) (common, rest Size, ok bool) {
	if e.t == nil || e.c != 0 || len(e.t.terms) == 1 && len(e.t.terms[0].m.atoms) == 1 {
		return e, e, false
	}
	if len(e.t.terms) == 1 { // a product is 0 if one factor is; its sign was read from the intervals
		atoms := e.t.terms[0].m.atoms
		common = env.intern([]term{{1, env.mono(atoms[:1])}}, 0)
		return common, env.intern([]term{{e.t.terms[0].coef, env.mono(atoms[1:])}}, 0), true
	}
	shared := slices.Clone(e.t.terms[0].m.atoms)
	for _, t := range e.t.terms[1:] {
		left := slices.Clone(t.m.atoms)
		shared = slices.DeleteFunc(shared, func(x *atom) bool {
			i := slices.Index(left, x)
			if i >= 0 {
				left = slices.Delete(left, i, i+1)
			}
			return i < 0
		})
	}
	if len(shared) == 0 {
		return e, e, false
	}
	common = env.intern([]term{{1, env.mono(shared)}}, 0)
	var terms []term
	c := int64(0)
	for _, t := range e.t.terms {
		coef, atoms, ok := divideTerm(t.coef, t.m.atoms, common)
		switch {
		case !ok:
			return e, e, false
		case len(atoms) == 0:
			c += coef
		default:
			terms = append(terms, term{coef, env.mono(atoms)})
		}
	}
	return common, env.collect(terms, c), true
}

// bounds returns the values that e may have: those of simpleBounds, narrowed once by each fact. The bounds of a fact f
// also bound e = k*f + (e - k*f). Only values of k are tried for which e - k*f lacks one of the terms of e.
func (env *Env) bounds(e Size) interval {
	v := env.simpleBounds(e)
	if e.t == nil || env.depth > maxDepth {
		return v
	}
	env.depth++
	defer func() { env.depth-- }()
	for _, f := range env.facts {
		if f.known == everything {
			continue
		}
		for _, t := range f.terms {
			i := slices.IndexFunc(e.t.terms, func(x term) bool { return x.m == t.m })
			if i < 0 || e.t.terms[i].coef%t.coef != 0 {
				continue
			}
			k := e.t.terms[i].coef / t.coef
			rest := env.addScaled(e, -k, Size{t: f})
			if rest.IsUnknown() {
				continue
			}
			v = v.intersect(env.simpleBounds(rest).add(f.known.scale(k)))
		}
	}
	for _, t := range e.t.terms {
		x := t.m.atoms[0]
		if len(t.m.atoms) != 1 {
			continue
		}
		switch {
		case x.op == opFloorDiv && x.b.t == nil:
			v = v.intersect(env.quotientBounds(e, t.coef, x))
		case x.op == opMod && x.b.t != nil && env.simpleBounds(x.b).lo > 0:
			v = v.intersect(env.remainderBounds(e, t.coef, x))
		case (x.op == opMax || x.op == opMin) && env.splits < maxSplits:
			env.splits++
			v = v.intersect(env.choiceBounds(e, t.coef, x))
			env.splits--
		}
	}
	return v
}

// choiceBounds bounds e, which has the term coef * max(a, b) or coef * min(a, b). It replaces the max or min by a, then
// by b, and combines the bounds of the two sums.
func (env *Env) choiceBounds(e Size, coef int64, x *atom) interval {
	rest := env.addScaled(e, -coef, env.fromAtom(x))
	a, b := env.addScaled(rest, coef, x.a), env.addScaled(rest, coef, x.b)
	if rest.IsUnknown() || a.IsUnknown() || b.IsUnknown() {
		return everything
	}
	va, vb := env.bounds(a), env.bounds(b)
	v := interval{min(va.lo, vb.lo), max(va.hi, vb.hi)}
	// A maximum is at least both arguments, and a minimum is at most both.
	if (x.op == opMax) == (coef > 0) {
		v.lo = max(v.lo, va.lo, vb.lo)
	} else {
		v.hi = min(v.hi, va.hi, vb.hi)
	}
	return v
}

// remainderBounds bounds e, which has the term coef * (a % b) with b > 0, by 0 <= a % b <= b - 1.
func (env *Env) remainderBounds(e Size, coef int64, x *atom) interval {
	least := env.addScaled(e, -coef, env.fromAtom(x))
	most := env.addScaled(least, coef, env.Sub(x.b, Const(1)))
	if least.IsUnknown() || most.IsUnknown() {
		return everything
	}
	a, b := env.simpleBounds(least), env.simpleBounds(most)
	if coef < 0 {
		a, b = b, a
	}
	return interval{a.lo, b.hi}
}

// quotientBounds bounds e, which has the term coef * (a // b) with a constant b > 0. It bounds b*e, where b*(a // b) is
// a - a % b, and divides these bounds by b.
func (env *Env) quotientBounds(e Size, coef int64, x *atom) interval {
	b := x.b.c
	rest := env.addScaled(e, -coef, env.fromAtom(x)) // without the quotient
	scaled := env.addScaled(Size{}, b, rest)
	scaled = env.addScaled(scaled, coef, x.a)
	if rest.IsUnknown() || scaled.IsUnknown() || b <= 0 {
		return everything
	}
	return divided(env.simpleBounds(scaled).add(interval{0, b - 1}.scale(-coef)), b)
}

// ---- residues ----

// residue returns mod and rem such that s is rem modulo mod. mod is 0 for a constant, and 1 if nothing is known.
func (env *Env) residue(s Size) (mod, rem int64) {
	mod, rem = 0, s.c
	if s.t == nil {
		return mod, rem
	}
	if s.t == unknown {
		return 1, 0
	}
	for _, t := range s.t.terms {
		m, r := int64(0), t.coef
		for _, x := range t.m.atoms {
			m, r = mulResidue(m, r, x.mod, x.rem)
		}
		mod, rem = addResidue(mod, rem, m, r)
	}
	p, sign := env.canonical(s.t)
	if sign == 0 || p.mod == 1 {
		return mod, rem
	}
	r, ok := mulInt(sign, p.rem)
	r, ok2 := addInt(r, s.c)
	if !ok || !ok2 || mod != 0 && p.mod%mod != 0 {
		return mod, rem
	}
	return p.mod, r
}

// residueModulo returns s % n if the residues determine it. n must be positive.
func (env *Env) residueModulo(s Size, n int64) (int64, bool) {
	mod, rem := env.residue(s)
	if mod%n != 0 {
		return 0, false
	}
	_, r, _ := floorDivMod(rem, n)
	return r, true
}

func addResidue(m1, r1, m2, r2 int64) (mod, rem int64) {
	r, ok := addInt(r1, r2)
	if !ok {
		return 1, 0
	}
	return gcd(m1, m2), r
}

func mulResidue(m1, r1, m2, r2 int64) (mod, rem int64) {
	a, ok1 := mulInt(m1, m2)
	b, ok2 := mulInt(m1, r2)
	c, ok3 := mulInt(m2, r1)
	r, ok4 := mulInt(r1, r2)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return 1, 0
	}
	return gcd(a, gcd(b, c)), r
}
