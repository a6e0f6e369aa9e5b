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

// askRegion lets the innermost region around a break decide whether the break is an error. An exception raised
// by the user's code propagates unchanged; explain shows every break.
func (tx *InstructionTranslator) askRegion(u *exc.Unsupported) {
	if n := len(tx.regions); n > 0 && !u.Asked && !tx.out.opts.Explain {
		u.Asked, u.Forbidden = true, tx.regions[n-1] && u.Code != exc.ProgramRaises
	}
}
