package sym

import (
	"encoding/binary"
	"math"
	"slices"
	"sort"
)

// Bounds of a normal form; beyond them arithmetic yields Unknown.
const (
	maxTerms  = 48
	maxDegree = 12
	maxDepth  = 24
	maxSplits = 3
)

// poly is a sum of terms without a constant part. It is interned: equal polys of an Env are the same pointer. Only
// unknown has no terms.
type poly struct {
	id    int
	terms []term // by the id of their mono

	// Facts about the value. A poly and its negation share them; the one with a positive first coefficient stores them.
	known    interval
	not      []int64 // excluded values
	mod, rem int64   // the value is rem modulo mod; 1 as modulus means that no residue is known

	simple     Size // the result of Env.Simplify
	simplified int  // one more than Env.generation when `simple` was computed
}

type term struct {
	coef int64 // never 0
	m    *mono
}

// mono is an interned product of atoms, sorted by id. An atom may occur several times.
type mono struct {
	id    int
	atoms []*atom
}

type operation byte

const (
	opSymbol operation = iota
	opFloorDiv
	opMod
	opMax
	opMin
	// Operations on floats, which are stored as their bits; see Float. The first ones have one operand.
	opToFloat
	opSqrt
	opFloor
	opCeil
	opTrunc
	opRound
	opFloatAdd
	opFloatSub
	opFloatMul
	opFloatDiv
	opFloatMax
	opFloatMin
	opFloatPow
	opFloatLt
	opFloatLe
	opFloatEq
)

// atom is an indivisible factor of the normal form. Atoms that are not symbols are interned.
type atom struct {
	id   int
	op   operation
	sym  Symbol // the symbol, if op is opSymbol
	a, b Size   // arguments of the other operations

	own      interval // facts about the atom itself
	mod, rem int64    // the value is rem modulo mod; 1 as modulus means that no residue is known
	to       *Size    // if not nil, a fact says that the atom equals this, which replaces it
}

// occursIn reports whether x is an atom of s, or inside one.
func (x *atom) occursIn(s Size) bool {
	if s.t == nil {
		return false
	}
	for _, t := range s.t.terms {
		for _, y := range t.m.atoms {
			if x == y || y.op != opSymbol && (x.occursIn(y.a) || x.occursIn(y.b)) {
				return true
			}
		}
	}
	return false
}

func (env *Env) fromAtom(a *atom) Size {
	return env.intern([]term{{1, env.mono([]*atom{a})}}, 0)
}

// mono interns a product of atoms that are sorted by id. It copies the slice.
func (env *Env) mono(atoms []*atom) *mono {
	key := env.key[:0]
	for _, a := range atoms {
		key = binary.AppendUvarint(key, uint64(a.id))
	}
	env.key = key
	m := env.monos[string(key)]
	if m == nil {
		m = &mono{id: len(env.monos), atoms: slices.Clone(atoms)}
		env.monos[string(key)] = m
	}
	return m
}

// intern returns terms + c as a Size. The terms must be sorted, with one term for each mono and no zero coefficient.
// intern copies the slice.
func (env *Env) intern(terms []term, c int64) Size {
	if len(terms) == 0 {
		return Const(c)
	}
	if len(terms) > maxTerms {
		return Unknown()
	}
	key := env.key[:0]
	for _, t := range terms {
		key = binary.AppendUvarint(binary.AppendVarint(key, t.coef), uint64(t.m.id))
	}
	env.key = key
	p := env.polys[string(key)]
	if p == nil {
		p = &poly{id: len(env.polys) + 1, terms: slices.Clone(terms), known: everything, mod: 1}
		env.polys[string(key)] = p
	}
	return Size{t: p, c: c}
}

// operand interns the atom op(a, b).
func (env *Env) operand(op operation, a, b Size) Size {
	key := append(env.key[:0], byte(op))
	for _, s := range [...]Size{a, b} {
		id := 0
		if s.t != nil {
			id = s.t.id
		}
		key = binary.AppendVarint(binary.AppendUvarint(key, uint64(id)), s.c)
	}
	env.key = key
	x := env.atoms[string(key)]
	if x == nil {
		x = &atom{id: env.natom, op: op, a: a, b: b, own: everything, mod: 1}
		env.natom++
		env.atoms[string(key)] = x
	}
	if x.to != nil {
		return *x.to
	}
	return env.fromAtom(x)
}

// collect sorts terms, adds up those with the same mono, and returns the sum with c. The result is Unknown if a
// coefficient overflows int64.
func (env *Env) collect(terms []term, c int64) Size {
	sort.Slice(terms, func(i, j int) bool { return terms[i].m.id < terms[j].m.id })
	out := terms[:0]
	for _, t := range terms {
		if n := len(out); n > 0 && out[n-1].m == t.m {
			coef, ok := addInt(out[n-1].coef, t.coef)
			if !ok {
				return Unknown()
			}
			if out[n-1].coef = coef; coef == 0 {
				out = out[:n-1]
			}
			continue
		}
		if t.coef != 0 {
			out = append(out, t)
		}
	}
	return env.intern(out, c)
}

// canonical returns p or -p, whichever has a positive first coefficient, and the sign. The sign is 0 if -p overflows.
func (env *Env) canonical(p *poly) (*poly, int64) {
	if p.terms[0].coef > 0 {
		return p, 1
	}
	n := env.Neg(Size{t: p})
	if n.IsUnknown() {
		return p, 0
	}
	return n.t, -1
}

// ---- int64, checked ----

func addInt(a, b int64) (int64, bool) {
	c := a + b
	return c, (c > a) == (b > 0)
}

func mulInt(a, b int64) (int64, bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	if a == math.MinInt64 || b == math.MinInt64 {
		return 0, false
	}
	c := a * b
	return c, c/b == a
}

// floorDivMod returns Python's divmod(a, b). b must not be 0.
func floorDivMod(a, b int64) (q, r int64, ok bool) {
	if a == math.MinInt64 && b == -1 {
		return 0, 0, false
	}
	q, r = a/b, a%b
	if r != 0 && (r < 0) != (b < 0) {
		q, r = q-1, r+b
	}
	return q, r, true
}

// gcd returns the greatest common divisor, which is never negative; gcd(0, b) is |b|. It returns 1 for math.MinInt64.
func gcd(a, b int64) int64 {
	if a == math.MinInt64 || b == math.MinInt64 {
		return 1
	}
	for b != 0 {
		a, b = b, a%b
	}
	if a < 0 {
		return -a
	}
	return a
}
