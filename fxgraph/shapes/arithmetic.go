package shapes

import "github.com/godynamo/godynamo/fxgraph/sym"

var one = sym.Const(1)

// Constant returns an int as an operand.
func Constant(n int) Int { return Int{sym.Const(int64(n))} }

// Sizes returns constants as sizes.
func Sizes(ns ...int) []Size {
	out := make([]Size, len(ns))
	for i, n := range ns {
		out[i] = sym.Const(int64(n))
	}
	return out
}

// Constants returns constant sizes as ints; ok is false if one of them is not a constant.
func Constants(sizes []Size) (ns []int, ok bool) {
	ns = make([]int, len(sizes))
	for i, s := range sizes {
		n, ok := s.Const()
		if !ok {
			return nil, false
		}
		ns[i] = int(n)
	}
	return ns, true
}

// constant returns a constant size as an int. For any other size, the rule has no answer, since this operand determines
// what is computed.
func (c *call) constant(s Size) int {
	n, ok := s.Const()
	if !ok {
		c.bad = true
	}
	return int(n)
}

// fixed returns the value of a size in the call that is translated, and records that the result depends on it.
func (c *call) fixed(s Size) int {
	if n, ok := s.Const(); ok {
		return int(n)
	}
	n, ok := c.Env.Hint(s)
	if !ok || !c.eq(s, sym.Const(n)) {
		c.bad = true
	}
	return int(n)
}

// decide reports whether a condition holds. If the known facts do not decide it, the sizes of the call that is
// translated do, and the condition is recorded.
func (c *call) decide(cond sym.Cond) bool {
	holds, ok := c.Env.Decide(cond, c.Why)
	if !ok {
		c.bad = true
	}
	return holds
}

func (c *call) eq(a, b Size) bool { return a == b && !a.IsUnknown() || c.decide(c.Env.Eq(a, b)) }

func (c *call) lt(a, b Size) bool { return c.decide(c.Env.Lt(a, b)) }

func (c *call) gt(a, b Size) bool { return c.decide(c.Env.Gt(a, b)) }

func (c *call) positive(s Size) bool { return c.gt(s, Size{}) }

// required reports whether s >= 0, for a size that the operation rejects if it is negative. If s is known only at run
// time, s >= 0 becomes a fact, since otherwise there is no result.
func (c *call) required(s Size) bool {
	holds, ok := c.Env.Decide(sym.NotNegative(s), c.Why)
	if !ok && c.Fresh && !s.IsUnknown() {
		c.Env.Assume(sym.NotNegative(s))
		return true
	}
	c.bad = c.bad || !ok
	return holds
}

// requireEqual is like required, for a == b: the operation rejects sizes that differ.
func (c *call) requireEqual(a, b Size) bool {
	cond := c.Env.Eq(a, b)
	holds, ok := c.Env.Decide(cond, c.Why)
	if !ok && c.Fresh && !a.IsUnknown() && !b.IsUnknown() {
		c.Env.Assume(cond)
		return true
	}
	c.bad = c.bad || !ok
	return holds
}

// requireSame is like requireEqual, for all sizes of two shapes.
func (c *call) requireSame(a, b []Size) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !c.requireEqual(a[i], b[i]) {
			return false
		}
	}
	return true
}

func (c *call) notNegative(s Size) bool { return c.decide(sym.NotNegative(s)) }

// equal reports whether two shapes have the same sizes.
func (c *call) equal(a, b []Size) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !c.eq(a[i], b[i]) {
			return false
		}
	}
	return true
}

func (c *call) add(a Size, n int) Size { return c.Env.Add(a, sym.Const(int64(n))) }

func (c *call) times(a Size, n int) Size { return c.Env.Mul(a, sym.Const(int64(n))) }

// quotient returns a // b, rounded down. The known facts must show that b is not 0.
func (c *call) quotient(a, b Size) Size { return c.Env.FloorDiv(a, b) }

// divides reports whether b, which is not 0, divides a.
func (c *call) divides(b, a Size) bool { return c.decide(sym.Zero(c.Env.Mod(a, b))) }

// numel returns the number of elements of a tensor with this shape.
func (c *call) numel(shape []Size) Size {
	n := one
	for _, s := range shape {
		n = c.Env.Mul(n, s)
	}
	return n
}
