package sym

// relation is how a Cond compares its Size with 0.
type relation byte

const (
	relNotNegative relation = iota
	relZero
	relNotZero
)

// Cond is a condition on sizes, in the form e >= 0, e == 0 or e != 0.
type Cond struct {
	rel relation
	e   Size
}

// NotNegative is e >= 0.
func NotNegative(e Size) Cond { return Cond{relNotNegative, e} }

// Zero is e == 0.
func Zero(e Size) Cond { return Cond{relZero, e} }

// NotZero is e != 0.
func NotZero(e Size) Cond { return Cond{relNotZero, e} }

// Eq is a == b.
func (env *Env) Eq(a, b Size) Cond { return Zero(env.Sub(a, b)) }

// Ne is a != b.
func (env *Env) Ne(a, b Size) Cond { return NotZero(env.Sub(a, b)) }

// Ge is a >= b.
func (env *Env) Ge(a, b Size) Cond { return NotNegative(env.Sub(a, b)) }

// Gt is a > b.
func (env *Env) Gt(a, b Size) Cond { return NotNegative(env.Sub(env.Sub(a, b), Const(1))) }

// Le is a <= b.
func (env *Env) Le(a, b Size) Cond { return env.Ge(b, a) }

// Lt is a < b.
func (env *Env) Lt(a, b Size) Cond { return env.Gt(b, a) }

// Not is the opposite of c.
func (env *Env) Not(c Cond) Cond {
	switch c.rel {
	case relZero:
		return NotZero(c.e)
	case relNotZero:
		return Zero(c.e)
	}
	return NotNegative(env.Sub(env.Neg(c.e), Const(1)))
}

// holds reports whether c holds if its expression has the value n.
func (c Cond) holds(n int64) bool {
	switch c.rel {
	case relZero:
		return n == 0
	case relNotZero:
		return n != 0
	}
	return n >= 0
}

// EvalCond reports whether c holds for the given values of the symbols. ok is false if Env.Eval cannot compute the
// expression of c.
func (env *Env) EvalCond(c Cond, value func(Symbol) (int64, bool)) (holds, ok bool) {
	n, ok := env.Eval(c.e, value)
	return ok && c.holds(n), ok
}
