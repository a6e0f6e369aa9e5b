package translate

import "github.com/godynamo/godynamo/internal/exc"

// BeginRegion implements variables.Translator.
func (tx *InstructionTranslator) BeginRegion(up int, errors bool) {
	if t := tx.outward(up); t != nil {
		t.regions = append(t.regions, errors)
	}
}

// EndRegion implements variables.Translator.
func (tx *InstructionTranslator) EndRegion(up int) {
	if t := tx.outward(up); t != nil && len(t.regions) > 0 {
		t.regions = t.regions[:len(t.regions)-1]
	}
}

func (tx *InstructionTranslator) outward(up int) *InstructionTranslator {
	for ; up > 0 && tx != nil; up-- {
		tx = tx.parent
	}
	return tx
}

// askRegion lets the innermost error_on_graph_break region around a graph break decide whether the break is an error.
// The break is never an error if the user's code raises an exception, or if `explain` runs, which shows every break.
func (tx *InstructionTranslator) askRegion(u *exc.Unsupported) {
	if n := len(tx.regions); n > 0 && !u.Asked && !tx.out.opts.Explain {
		u.Asked, u.Forbidden = true, tx.regions[n-1] && u.Code != exc.ProgramRaises
	}
}
