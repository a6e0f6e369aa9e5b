package sym

// Bounds on the conditions of a translation. Beyond them, sizes become constants, and the conditions on them vanish.
const (
	MaxOfSymbol = 32  // on one symbol, unless it is Marked
	MaxInAll    = 128 // on all symbols
)

// limitEvery is the number of new records after which Decide counts the conditions again.
const limitEvery = 8

// form identifies conditions that bound or exclude values of one poly in the same way. Of two such conditions, one
// implies the other.
type form struct {
	p   *poly
	rel relation
	n   int64 // the sign of a bound, or the excluded value
}

// tally counts conditions.
type tally struct {
	all   int
	on    map[Symbol]int
	whys  map[Symbol]map[any]int // number of conditions on a symbol, by Record.Why
	order []Symbol               // by first use
}

// limit makes symbols constants until the records are within the bounds.
func (env *Env) limit() {
	for {
		t := env.count()
		s, ok := t.mostAsked(env)
		if !ok {
			return
		}
		c := Zero(env.Sub(env.Symbol(s), Const(env.symbols[s].Hint)))
		env.recorded = append(env.recorded, Record{Cond: c, Why: t.mostFrequent(env, s), Limit: true})
		env.Assume(c)
	}
}

// count counts the conditions among the records. It counts several bounds of one expression as one.
func (env *Env) count() *tally {
	t := &tally{on: map[Symbol]int{}, whys: map[Symbol]map[any]int{}}
	seen := map[form]bool{}
	for _, r := range env.recorded {
		e := env.Simplify(r.Cond.e)
		if e.t == nil || e.IsUnknown() {
			continue
		}
		p, sign := env.canonical(e.t)
		f := form{p: p, rel: r.Cond.rel}
		switch f.rel {
		case relNotNegative:
			f.n = sign
		case relNotZero:
			f.n = sign * e.c
		}
		if seen[f] {
			continue
		}
		seen[f] = true
		t.all++
		in := map[Symbol]bool{}
		symbolsOf(p, in)
		for s := range env.symbols {
			if s := Symbol(s); in[s] {
				t.add(s, r.Why)
			}
		}
	}
	return t
}

func (t *tally) add(s Symbol, why any) {
	if t.whys[s] == nil {
		t.whys[s] = map[any]int{}
		t.order = append(t.order, s)
	}
	t.on[s]++
	t.whys[s][why]++
}

func symbolsOf(p *poly, in map[Symbol]bool) {
	for _, t := range p.terms {
		for _, x := range t.m.atoms {
			if x.op == opSymbol {
				in[x.sym] = true
				continue
			}
			for _, s := range [...]Size{x.a, x.b} {
				if s.t != nil {
					symbolsOf(s.t, in)
				}
			}
		}
	}
}

// mostAsked returns the symbol that has to become a constant next. ok is false if the records are within the bounds.
func (t *tally) mostAsked(env *Env) (most Symbol, ok bool) {
	for _, s := range t.order {
		marked := env.symbols[s].Marked
		if !env.symbols[s].Hinted || t.all <= MaxInAll && (marked || t.on[s] <= MaxOfSymbol) {
			continue
		}
		if !ok || !marked && env.symbols[most].Marked || marked == env.symbols[most].Marked && t.on[s] > t.on[most] {
			most, ok = s, true
		}
	}
	return most, ok
}

// mostFrequent returns the reason for most of the conditions on a symbol; of equally frequent ones, the earliest.
func (t *tally) mostFrequent(env *Env, s Symbol) any {
	var why any
	for _, r := range env.recorded {
		if t.whys[s][r.Why] > t.whys[s][why] {
			why = r.Why
		}
	}
	return why
}
