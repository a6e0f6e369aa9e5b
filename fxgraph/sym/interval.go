package sym

import "math"

// interval is the values lo to hi, both included. math.MinInt64 and math.MaxInt64 are minus and plus infinity.
type interval struct{ lo, hi int64 }

const (
	minusInf = math.MinInt64
	plusInf  = math.MaxInt64
)

var everything = interval{minusInf, plusInf}

func (v interval) intersect(w interval) interval {
	return interval{max(v.lo, w.lo), min(v.hi, w.hi)}
}

func (v interval) empty() bool { return v.lo > v.hi }

func (v interval) has(n int64) bool { return v.lo <= n && n <= v.hi }

// addLow adds two lower bounds. A result below the range of int64 becomes minus infinity, a result above it the largest
// finite value.
func addLow(a, b int64) int64 {
	if a == minusInf || b == minusInf {
		return minusInf
	}
	c, ok := addInt(a, b)
	if !ok {
		if a > 0 {
			return plusInf - 1
		}
		return minusInf
	}
	return min(c, plusInf-1)
}

func negBound(a int64) int64 {
	switch a {
	case minusInf:
		return plusInf
	case plusInf:
		return minusInf
	}
	return -a
}

func addHigh(a, b int64) int64 { return negBound(addLow(negBound(a), negBound(b))) }

func (v interval) add(w interval) interval {
	return interval{addLow(v.lo, w.lo), addHigh(v.hi, w.hi)}
}

func (v interval) neg() interval { return interval{negBound(v.hi), negBound(v.lo)} }

// mulBound multiplies two bounds. Either may be infinite. Zero times infinity is zero, since an infinite bound only
// says that there is no bound.
func mulBound(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	c, ok := mulInt(a, b)
	infinite := a == minusInf || a == plusInf || b == minusInf || b == plusInf
	if ok && !infinite {
		return c
	}
	if (a < 0) == (b < 0) {
		return plusInf
	}
	return minusInf
}

func (v interval) mul(w interval) interval {
	a, b, c, d := mulBound(v.lo, w.lo), mulBound(v.lo, w.hi), mulBound(v.hi, w.lo), mulBound(v.hi, w.hi)
	return interval{min(a, b, c, d), max(a, b, c, d)}
}

func (v interval) scale(k int64) interval { return v.mul(interval{k, k}) }

// power is the interval of x**n for x in v.
func (v interval) power(n int) interval {
	out := interval{1, 1}
	for range n {
		out = out.mul(v)
	}
	if n%2 == 0 && out.lo < 0 {
		out.lo = 0
	}
	return out
}

// floorDiv is the interval of x // y for x in v and y in w, where y is not 0.
func (v interval) floorDiv(w interval) interval {
	if w.lo == 0 {
		w.lo = 1
	}
	if w.hi == 0 {
		w.hi = -1
	}
	if w.lo < 0 && w.hi > 0 || w.empty() {
		m := max(absBound(v.lo), absBound(v.hi)) // |x // y| <= |x|, as |y| >= 1
		return interval{negBound(m), m}
	}
	out := interval{plusInf, minusInf}
	for _, x := range [...]int64{v.lo, v.hi} {
		for _, y := range [...]int64{w.lo, w.hi} {
			q := divBound(x, y)
			out = interval{min(out.lo, q), max(out.hi, q)}
		}
	}
	return out
}

func absBound(a int64) int64 {
	if a < 0 {
		return negBound(a)
	}
	return a
}

// divBound is x // y for bounds. A finite x divided by infinity is 0, or -1 if the signs differ.
func divBound(x, y int64) int64 {
	switch {
	case x == minusInf || x == plusInf:
		if (x < 0) == (y < 0) {
			return plusInf
		}
		return minusInf
	case y == minusInf || y == plusInf:
		if x == 0 || (x < 0) == (y < 0) {
			return 0
		}
		return -1
	}
	q, _, ok := floorDivMod(x, y)
	if !ok {
		return plusInf
	}
	return q
}

// mod is the interval of x % y, with the sign of y, for x in v and y in w.
func (v interval) mod(w interval) interval {
	out := interval{0, 0}
	if w.hi > 0 {
		out.hi = max(w.hi-1, 0)
		if w.hi == plusInf {
			out.hi = plusInf
		}
		if v.lo >= 0 && w.lo > 0 {
			out.hi = min(out.hi, v.hi) // 0 <= x % y <= x
		}
	}
	if w.lo < 0 {
		out.lo = min(w.lo+1, 0)
		if w.lo == minusInf {
			out.lo = minusInf
		}
	}
	return out
}

// atomBounds returns the values that x may have.
func (env *Env) atomBounds(x *atom) interval {
	v := x.own
	switch x.op {
	case opFloorDiv:
		v = v.intersect(env.simpleBounds(x.a).floorDiv(env.simpleBounds(x.b)))
	case opMod:
		v = v.intersect(env.simpleBounds(x.a).mod(env.simpleBounds(x.b)))
	case opMax:
		a, b := env.simpleBounds(x.a), env.simpleBounds(x.b)
		v = v.intersect(interval{max(a.lo, b.lo), max(a.hi, b.hi)})
	case opMin:
		a, b := env.simpleBounds(x.a), env.simpleBounds(x.b)
		v = v.intersect(interval{min(a.lo, b.lo), min(a.hi, b.hi)})
	case opFloatLt, opFloatLe, opFloatEq:
		v = v.intersect(interval{0, 1})
	}
	return v
}

// monoBounds returns the values that a product of atoms may have.
func (env *Env) monoBounds(m *mono) interval {
	v := interval{1, 1}
	for i := 0; i < len(m.atoms); {
		n := 1
		for i+n < len(m.atoms) && m.atoms[i+n] == m.atoms[i] {
			n++
		}
		v = v.mul(env.atomBounds(m.atoms[i]).power(n))
		i += n
	}
	return v
}

// simpleBounds returns the values that s may have, according to its terms and to the facts about this very sum.
func (env *Env) simpleBounds(s Size) interval {
	v := interval{s.c, s.c}
	if s.t == nil {
		return v
	}
	if s.t == unknown {
		return everything
	}
	sum := interval{0, 0}
	for _, t := range s.t.terms {
		sum = sum.add(env.monoBounds(t.m).scale(t.coef))
	}
	return v.add(sum.intersect(env.knownOf(s.t)))
}

// knownOf returns the facts about the value of p.
func (env *Env) knownOf(p *poly) interval {
	if p.terms[0].coef > 0 {
		return p.known
	}
	if q, sign := env.canonical(p); sign < 0 {
		return q.known.neg()
	}
	return everything
}
