package sym

import (
	"slices"
	"sort"
)

// Add returns a + b.
func (env *Env) Add(a, b Size) Size { return env.addScaled(a, 1, b) }

// Sub returns a - b.
func (env *Env) Sub(a, b Size) Size { return env.addScaled(a, -1, b) }

// Neg returns -a.
func (env *Env) Neg(a Size) Size { return env.addScaled(Size{}, -1, a) }

// addScaled returns a + k*b.
func (env *Env) addScaled(a Size, k int64, b Size) Size {
	if a.IsUnknown() || b.IsUnknown() {
		return Unknown()
	}
	kc, ok := mulInt(k, b.c)
	c, ok2 := addInt(a.c, kc)
	if !ok || !ok2 {
		return Unknown()
	}
	if b.t == nil {
		return Size{t: a.t, c: c}
	}
	if a.t == nil && k == 1 {
		return Size{t: b.t, c: c}
	}
	var terms []term
	if a.t != nil {
		terms = make([]term, 0, len(a.t.terms)+len(b.t.terms))
		terms = append(terms, a.t.terms...)
	}
	for _, t := range b.t.terms {
		coef, ok := mulInt(t.coef, k)
		if !ok {
			return Unknown()
		}
		terms = append(terms, term{coef, t.m})
	}
	return env.whole(env.collect(terms, c))
}

// Mul returns a * b.
func (env *Env) Mul(a, b Size) Size {
	if a.IsUnknown() || b.IsUnknown() {
		return Unknown()
	}
	if a.t == nil {
		a, b = b, a
	}
	if b.t == nil {
		if b.c == 0 {
			return Size{}
		}
		if b.c == 1 {
			return a
		}
		return env.addScaled(Size{}, b.c, a)
	}
	if (len(a.t.terms)+1)*(len(b.t.terms)+1) > 4*maxTerms {
		return Unknown()
	}
	c, ok := mulInt(a.c, b.c)
	if !ok {
		return Unknown()
	}
	terms := make([]term, 0, (len(a.t.terms)+1)*(len(b.t.terms)+1))
	for _, x := range a.t.terms {
		for _, y := range b.t.terms {
			coef, ok := mulInt(x.coef, y.coef)
			if !ok || len(x.m.atoms)+len(y.m.atoms) > maxDegree {
				return Unknown()
			}
			atoms := append(slices.Clone(x.m.atoms), y.m.atoms...)
			sort.Slice(atoms, func(i, j int) bool { return atoms[i].id < atoms[j].id })
			terms = append(terms, term{coef, env.mono(atoms)})
		}
		coef, ok := mulInt(x.coef, b.c)
		if !ok {
			return Unknown()
		}
		terms = append(terms, term{coef, x.m})
	}
	for _, y := range b.t.terms {
		coef, ok := mulInt(y.coef, a.c)
		if !ok {
			return Unknown()
		}
		terms = append(terms, term{coef, y.m})
	}
	return env.whole(env.collect(terms, c))
}

// whole rewrites b * (a // b) in the terms of s to a - a % b. If the facts show that b divides a, this is just a.
func (env *Env) whole(s Size) Size {
	if s.t == nil || s.t == unknown || env.depth > maxDepth {
		return s
	}
	for i, t := range s.t.terms {
		for j, x := range t.m.atoms {
			if x.op != opFloorDiv {
				continue
			}
			coef, rest, ok := divideTerm(t.coef, slices.Delete(slices.Clone(t.m.atoms), j, j+1), x.b)
			if !ok {
				continue
			}
			env.depth++
			others := slices.Delete(slices.Clone(s.t.terms), i, i+1)
			part := Const(coef)
			if len(rest) > 0 {
				part = env.intern([]term{{coef, env.mono(rest)}}, 0)
			}
			part = env.Mul(part, env.Sub(x.a, env.Mod(x.a, x.b)))
			out := env.Add(env.intern(others, s.c), part)
			env.depth--
			return out
		}
	}
	return s
}

// divideTerm divides coef * atoms by b and returns the coefficient and the atoms of the quotient. ok is false unless b
// is a constant or one term and divides the product exactly.
func divideTerm(coef int64, atoms []*atom, b Size) (int64, []*atom, bool) {
	if b.t == nil {
		if b.c == 0 || b.c == -1 || coef%b.c != 0 {
			return 0, nil, false
		}
		return coef / b.c, atoms, true
	}
	if b.c != 0 || len(b.t.terms) != 1 || b.t.terms[0].coef == -1 || coef%b.t.terms[0].coef != 0 {
		return 0, nil, false
	}
	rest := slices.Clone(atoms)
	for _, x := range b.t.terms[0].m.atoms {
		i := slices.Index(rest, x)
		if i < 0 {
			return 0, nil, false
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return coef / b.t.terms[0].coef, rest, true
}

// split writes a as b*q + r, where q has all terms of a that are exact multiples of b. b must not be 0, and a constant
// b must be positive. If b is constant, the constant part of r is between 0 and b-1.
func (env *Env) split(a, b Size) (q, r Size) {
	if a == b {
		return Const(1), Size{}
	}
	if a.t == nil {
		if b.t == nil {
			x, y, _ := floorDivMod(a.c, b.c)
			return Const(x), Const(y)
		}
		return Size{}, a
	}
	var whole, rest []term
	for _, t := range a.t.terms {
		coef, atoms, ok := divideTerm(t.coef, t.m.atoms, b)
		switch {
		case !ok:
			rest = append(rest, t)
		case len(atoms) == 0:
			q = env.Add(q, Const(coef))
		default:
			whole = append(whole, term{coef, env.mono(atoms)})
		}
	}
	q = env.Add(q, env.collect(whole, 0))
	c := a.c
	if b.t == nil {
		x, y, _ := floorDivMod(c, b.c)
		q, c = env.Add(q, Const(x)), y
	}
	r = env.intern(rest, c)
	// b is a sum of several terms: a may be a constant multiple of b plus a constant.
	if b.t != nil && len(b.t.terms) > 1 && len(rest) == len(a.t.terms) && a.t.terms[0].coef%b.t.terms[0].coef == 0 {
		k := a.t.terms[0].coef / b.t.terms[0].coef
		if d := env.addScaled(a, -k, b); d.t == nil {
			return Const(k), d
		}
	}
	return q, r
}

// FloorDiv returns a // b, rounded down as in Python. It returns Unknown if b may be 0.
func (env *Env) FloorDiv(a, b Size) Size {
	q, r, b, ok := env.prepare(a, b)
	if !ok {
		return Unknown()
	}
	if env.within(r, b) {
		return q
	}
	if b.t == nil {
		// (g*x + c) // (g*d) is (x + c//g) // d, and (x // m + c) // d is (x + c*m) // (m*d).
		g := b.c
		for _, t := range r.t.terms {
			g = gcd(g, t.coef)
		}
		if g > 1 {
			terms := slices.Clone(r.t.terms)
			for i := range terms {
				terms[i].coef /= g
			}
			c, _, _ := floorDivMod(r.c, g)
			return env.Add(q, env.FloorDiv(env.intern(terms, c), Const(b.c/g)))
		}
		if x := r.atom(); x != nil && x.op == opFloorDiv && x.b.t == nil && x.b.c > 0 {
			d, ok := mulInt(x.b.c, b.c)
			c, ok2 := mulInt(x.b.c, r.c)
			if a := env.Add(x.a, Const(c)); ok && ok2 && !a.IsUnknown() {
				return env.Add(q, env.FloorDiv(a, Const(d)))
			}
		}
	}
	return env.Add(q, env.operand(opFloorDiv, r, b))
}

// Mod returns a % b, which has the sign of b, as in Python. It returns Unknown if b may be 0.
func (env *Env) Mod(a, b Size) Size {
	if n, ok := b.Const(); ok && n < 0 {
		return env.Neg(env.Mod(env.Neg(a), env.Neg(b)))
	}
	_, r, b, ok := env.prepare(a, b)
	if !ok {
		return Unknown()
	}
	if env.within(r, b) {
		return r
	}
	if b.t == nil {
		terms := slices.Clone(r.t.terms)
		for i, t := range terms {
			_, terms[i].coef, _ = floorDivMod(t.coef, b.c)
		}
		r = env.intern(terms, r.c) // no coefficient is a multiple of b, since split has moved such terms to q
		if n, ok := env.residueModulo(r, b.c); ok {
			return Const(n)
		}
		if env.within(r, b) {
			return r
		}
	}
	return env.operand(opMod, r, b)
}

// prepare splits a division: a // b is q + r // divisor. The divisor is b or, for a negative constant b, -b. ok is
// false if b may be 0, if calls are nested too deeply, or if q or r is Unknown.
func (env *Env) prepare(a, b Size) (q, r, divisor Size, ok bool) {
	if a.IsUnknown() || b.IsUnknown() || env.depth > maxDepth {
		return a, a, b, false
	}
	if b.t == nil && b.c < 0 {
		a, b = env.Neg(a), env.Neg(b)
		if a.IsUnknown() || b.Is(minusInf) {
			return a, a, b, false
		}
	}
	if b.Is(0) || b.t != nil && env.Ask(NotZero(b)) != True {
		return a, a, b, false
	}
	q, r = env.split(a, b)
	return q, r, b, !q.IsUnknown() && !r.IsUnknown()
}

// within reports whether 0 <= r < b or b < r <= 0 is known. Then r // b is 0 and r % b is r.
//
// Answers are cached, because simplifying a sum with nested quotients asks the same question many times (`make
// first-calls MODELS=timm.edgenext_xx_small`). A question that comes up again while it is being answered counts as
// unproved.
func (env *Env) within(r, b Size) bool {
	if r.Is(0) {
		return true
	}
	if env.depth >= maxDepth {
		return false
	}
	key := [2]Size{r, b}
	old, ok := env.asked[key]
	switch {
	case ok && old.holds && old.undone == env.undone: // more facts do not make it false
		return true
	case ok && !old.holds && old.version == env.version && old.depth <= env.depth && old.splits <= env.splits:
		return false
	}
	if env.asked == nil {
		env.asked = map[[2]Size]withinAnswer{}
	}
	now := withinAnswer{depth: env.depth, splits: env.splits, version: env.version, undone: env.undone}
	env.asked[key] = now
	env.depth++
	now.holds = env.askWithin(r, b)
	env.depth--
	env.asked[key] = now
	return now.holds
}

// withinAnswer is an answer of within, and the state in which it was given. A proof that failed at some depth of nested
// calls may succeed at a smaller one.
type withinAnswer struct {
	holds                          bool
	depth, splits, version, undone int
}

func (env *Env) askWithin(r, b Size) bool {
	return env.Ask(NotNegative(r)) == True && env.Ask(NotNegative(env.Sub(env.Sub(b, r), Const(1)))) == True ||
		env.Ask(NotNegative(env.Neg(r))) == True && env.Ask(NotNegative(env.Sub(env.Sub(r, b), Const(1)))) == True
}

// Max returns the larger of a and b.
func (env *Env) Max(a, b Size) Size { return env.choose(opMax, a, b) }

// Min returns the smaller of a and b.
func (env *Env) Min(a, b Size) Size { return env.choose(opMin, a, b) }

func (env *Env) choose(op operation, a, b Size) Size {
	d := env.Sub(a, b)
	if d.IsUnknown() {
		return Unknown()
	}
	env.depth++
	defer func() { env.depth-- }()
	if env.depth <= maxDepth {
		if env.Ask(NotNegative(d)) == True { // a >= b
			if op == opMax {
				return a
			}
			return b
		}
		if env.Ask(NotNegative(env.Neg(d))) == True {
			if op == opMax {
				return b
			}
			return a
		}
	}
	if order(b) < order(a) || order(b) == order(a) && b.c < a.c {
		a, b = b, a
	}
	return env.operand(op, a, b)
}

func order(s Size) int {
	if s.t == nil {
		return 0
	}
	return s.t.id
}

// Eval computes s from the values of its symbols. ok is false if `value` has no value for a symbol, if a divisor is 0,
// or if a step overflows int64.
func (env *Env) Eval(s Size, value func(Symbol) (int64, bool)) (n int64, ok bool) {
	if s.IsUnknown() {
		return 0, false
	}
	n = s.c
	if s.t == nil {
		return n, true
	}
	if x := s.atom(); x != nil && n == 0 {
		return env.evalAtom(x, value) // no overflow check: the bits of a float may be any int64
	}
	for _, t := range s.t.terms {
		product := t.coef
		for _, x := range t.m.atoms {
			v, ok := env.evalAtom(x, value)
			if !ok {
				return 0, false
			}
			if product, ok = mulInt(product, v); !ok {
				return 0, false
			}
		}
		if n, ok = addInt(n, product); !ok {
			return 0, false
		}
	}
	return n, true
}

func (env *Env) evalAtom(x *atom, value func(Symbol) (int64, bool)) (int64, bool) {
	if x.op == opSymbol {
		return value(x.sym)
	}
	a, ok := env.Eval(x.a, value)
	b, ok2 := env.Eval(x.b, value)
	if !ok || !ok2 {
		return 0, false
	}
	switch {
	case x.op == opMax:
		return max(a, b), true
	case x.op == opMin:
		return min(a, b), true
	case x.op.onFloats():
		return env.floatValue(x.op, a, b)
	}
	if b == 0 {
		return 0, false
	}
	q, r, ok := floorDivMod(a, b)
	if x.op == opFloorDiv {
		return q, ok
	}
	return r, ok
}
