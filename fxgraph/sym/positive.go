package sym

// decidePositive decides a condition on values that are known only at run time. It assumes that the sizes which are
// positive in this call always are. If the condition then follows, these assumptions are recorded. Otherwise they are
// undone.
func (env *Env) decidePositive(c Cond, why any) (holds, ok bool) {
	e := env.Simplify(c.e)
	if e.t == nil || e.IsUnknown() {
		return false, false
	}
	m, w := env.Mark(), &symbolLister{}
	env.Write(e, w)
	for _, s := range w.found {
		if info := env.symbols[s]; !info.Hinted || info.Hint < 1 {
			continue
		}
		if positive := NotNegative(env.Sub(env.Symbol(s), Const(1))); env.Ask(positive) == Undecided {
			env.recorded = append(env.recorded, Record{Cond: positive, Why: why})
			env.Assume(positive)
		}
	}
	if got := env.Ask(c); got != Undecided {
		return got == True, true
	}
	env.Undo(m)
	return false, false
}

// symbolLister implements Writer. It collects the symbols of an expression.
type symbolLister struct{ found []Symbol }

func (*symbolLister) Begin(Op)           {}
func (*symbolLister) Const(int64)        {}
func (*symbolLister) FloatConst(float64) {}
func (*symbolLister) Apply(Op)           {}
func (w *symbolLister) Symbol(s Symbol)  { w.found = append(w.found, s) }
