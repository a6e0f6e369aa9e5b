package sym

// Op is an operator of an expression.
type Op byte

// The operators. FloorDiv and Mod round as Python's // and %. Floor, Ceil, Trunc and Round take a float and return an
// int; the comparisons return 1 or 0. The operators from ToFloat to Round have one operand, the others two.
const (
	Add Op = iota
	Sub
	Mul
	FloorDiv
	Mod
	Max
	Min
	ToFloat
	Sqrt
	Floor
	Ceil
	Trunc
	Round
	FloatAdd
	FloatSub
	FloatMul
	FloatDiv
	FloatMax
	FloatMin
	FloatPow
	FloatLt
	FloatLe
	FloatEq
)

// Unary reports whether the operator has one operand.
func (op Op) Unary() bool { return op >= ToFloat && op <= Round }

// Writer receives an expression in postfix order: operands before their operator. Begin is called before the first
// operand of each operator, for targets in which a function precedes its arguments.
type Writer interface {
	Begin(op Op)
	Const(n int64)
	FloatConst(f float64)
	Symbol(s Symbol)
	Apply(op Op)
}

// RoundingWriter is a Writer that may write a float rounded to an int as one operand. Rounded returns false if s must
// be written as an expression.
type RoundingWriter interface {
	Writer
	Rounded(s Size) bool
}

// Write passes s to w. It must not be called for Unknown. Terms with a negative coefficient are subtracted, and the
// first term is a positive one if there is one.
func (env *Env) Write(s Size, w Writer) {
	if s.t == nil {
		w.Const(s.c)
		return
	}
	terms := make([]term, 0, len(s.t.terms))
	for _, t := range s.t.terms {
		if t.coef > 0 {
			terms = append(terms, t)
		}
	}
	positive := len(terms)
	for _, t := range s.t.terms {
		if t.coef < 0 {
			terms = append(terms, t)
		}
	}
	// Sums are left-associative, so each operator begins before the terms to its left.
	tail := make([]Op, 0, len(terms))
	for i := range terms {
		switch {
		case i == 0:
		case i < positive:
			tail = append(tail, Add)
		default:
			tail = append(tail, Sub)
		}
	}
	if s.c > 0 {
		tail = append(tail, Add)
	} else if s.c < 0 {
		tail = append(tail, Sub)
	}
	for i := len(tail) - 1; i >= 0; i-- {
		w.Begin(tail[i])
	}
	for i, t := range terms {
		if i > 0 && i >= positive {
			t.coef = -t.coef // subtracted; math.MinInt64 has no negation in int64, so it wraps to itself
		}
		env.writeTerm(t, w)
		if i > 0 {
			w.Apply(tail[i-1])
		}
	}
	if s.c != 0 {
		w.Const(max(s.c, -s.c))
		w.Apply(tail[len(tail)-1])
	}
}

func (env *Env) writeTerm(t term, w Writer) {
	factors := len(t.m.atoms)
	if t.coef != 1 {
		factors++
	}
	for range factors - 1 {
		w.Begin(Mul)
	}
	n := 0
	factor := func() {
		if n++; n > 1 {
			w.Apply(Mul)
		}
	}
	for _, x := range t.m.atoms {
		env.writeAtom(x, w)
		factor()
	}
	if t.coef != 1 {
		w.Const(t.coef)
		factor()
	}
}

var opOfAtom = map[operation]Op{opFloorDiv: FloorDiv, opMod: Mod, opMax: Max, opMin: Min, opToFloat: ToFloat,
	opSqrt: Sqrt, opFloor: Floor, opCeil: Ceil, opTrunc: Trunc, opRound: Round, opFloatAdd: FloatAdd,
	opFloatSub: FloatSub, opFloatMul: FloatMul, opFloatDiv: FloatDiv, opFloatMax: FloatMax, opFloatMin: FloatMin,
	opFloatPow: FloatPow, opFloatLt: FloatLt, opFloatLe: FloatLe, opFloatEq: FloatEq}

// operationOf is the inverse of opOfAtom.
var operationOf = map[Op]operation{}

func init() {
	for atom, op := range opOfAtom {
		operationOf[op] = atom
	}
}

func (env *Env) writeAtom(x *atom, w Writer) {
	if x.op == opSymbol {
		w.Symbol(x.sym)
		return
	}
	if r, ok := w.(RoundingWriter); ok && x.op.rounds() && r.Rounded(env.fromAtom(x)) {
		return
	}
	op := opOfAtom[x.op]
	w.Begin(op)
	env.writeOperand(x, x.a, w)
	if !x.op.unary() {
		env.writeOperand(x, x.b, w)
	}
	w.Apply(op)
}

// writeOperand writes an operand of x: a Size or, for an operation on floats, the bits of a float.
func (env *Env) writeOperand(x *atom, s Size, w Writer) {
	if f, ok := (Float{s}).Const(); ok && x.op.takesFloats() {
		w.FloatConst(f)
		return
	}
	env.Write(s, w)
}

// WriteFloat passes f to w.
func (env *Env) WriteFloat(f Float, w Writer) {
	if x, ok := f.Const(); ok {
		w.FloatConst(x)
		return
	}
	env.Write(f.bits, w)
}

// Relation compares the two sides of a condition.
type Relation byte

// The relations.
const (
	EQ Relation = iota
	NE
	GE
	LE
)

// Sides returns c as a comparison in which no side has a negative term, such as s0 >= 2 for s0 - 2 >= 0. If only one
// side is a constant, it is the right one. ok is false if c is on Unknown, or if negating a term overflows.
func (env *Env) Sides(c Cond) (left Size, rel Relation, right Size, ok bool) {
	switch {
	case c.e.IsUnknown():
		return left, rel, right, false
	case c.e.t != nil:
		var l, r []term
		for _, t := range c.e.t.terms {
			if t.coef > 0 {
				l = append(l, t)
			} else if t.coef = -t.coef; t.coef > 0 {
				r = append(r, t)
			} else {
				return left, rel, right, false
			}
		}
		left, right = env.intern(l, 0), env.intern(r, 0)
	}
	switch {
	case c.e.c > 0:
		left.c = c.e.c
	case c.e.c == minusInf:
		return left, rel, right, false
	default:
		right.c = -c.e.c
	}
	rel = map[relation]Relation{relNotNegative: GE, relZero: EQ, relNotZero: NE}[c.rel]
	if left.t == nil && right.t != nil {
		left, right = right, left
		if rel == GE {
			rel = LE
		}
	}
	return left, rel, right, true
}

// Essential forgets all facts and returns conditions that imply all records. fixed has the symbols whose value the
// records determine, with that value. records has the other conditions, oldest first, without those that fixed or later
// records imply.
func (env *Env) Essential() (fixed map[Symbol]int64, records []Record) {
	if len(env.recorded) > MaxOfSymbol {
		env.limit()
	}
	all := append([]Record(nil), env.recorded...)
	env.essential, env.OnFixed = all, nil
	fixed = map[Symbol]int64{}
	for s := range env.symbols {
		if n, ok := env.Simplify(env.fromAtom(env.leaves[s])).Const(); ok {
			fixed[Symbol(s)] = n
		}
	}
	env.Undo(Mark{})
	for s := range env.symbols {
		if n, ok := fixed[Symbol(s)]; ok {
			env.Assume(Zero(env.Sub(env.fromAtom(env.leaves[s]), Const(n))))
		}
	}
	for i := len(all) - 1; i >= 0; i-- {
		if env.Ask(all[i].Cond) == True {
			continue
		}
		records = append(records, all[i])
		env.Assume(all[i].Cond)
	}
	for i, j := 0, len(records)-1; i < j; i, j = i+1, j-1 {
		records[i], records[j] = records[j], records[i]
	}
	return fixed, records
}

// All returns the records from which Essential has chosen.
func (env *Env) All() []Record { return env.essential }

// FixedBy returns the record that fixes the value of a symbol: with it and all earlier records, the symbol is a
// constant. It is called after Essential, and forgets all facts.
func (env *Env) FixedBy(s Symbol) (r Record, ok bool) {
	env.Undo(Mark{})
	for _, r := range env.essential {
		env.Assume(r.Cond)
		if _, known := env.Simplify(env.Symbol(s)).Const(); known {
			return r, true
		}
	}
	return r, false
}
