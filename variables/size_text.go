package variables

import (
	"strconv"
	"strings"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/pyhook/py"
)

// The text of a size, or of a torch.Size, tuple, list or dict with sizes in it, is computed at run time. CPython writes
// the text once, with numbers that represent the sizes. Each of these numbers becomes a field of a % format.

// firstNumber is the first of the numbers that represent sizes. maxNumbers bounds their count.
const (
	firstNumber = 7_310_458_862_090_417_000
	maxNumbers  = 1000
)

// textOfSizes returns str(v) or repr(v) as a text computed at run time. It returns nil if no size in v has an unknown
// value, or if something else in v has no known text.
func textOfSizes(tx Translator, v VariableTracker, name string) (VariableTracker, error) {
	w := tx.World()
	switch peek(v).(type) {
	case *SymNodeVariable, *TupleVariable, *ListVariable, *DictVariable:
	default:
		return nil, nil
	}
	if w.FixesOpaque || w.FixesSizes > 0 {
		return nil, nil
	}
	var sizes []VariableTracker
	looks := w.SizeLooks
	o, ok := copyForText(tx, v, &sizes)
	if !ok || len(sizes) == 0 || w.printable(tx, o) != nil {
		w.SizeLooks = looks
		return nil, nil
	}
	text, ok := py.Answered(tx.Scope().Call(w.Builtin(name), o))
	if !ok {
		return nil, nil
	}
	format := strings.ReplaceAll(py.GoString(text), "%", "%%")
	for i := range sizes {
		number := strconv.Itoa(firstNumber + i)
		if strings.Count(format, number) != 1 {
			return nil, nil
		}
		format = strings.Replace(format, number, "%s", 1)
	}
	return formatted(tx, tx.Scope().Str(format), sizes)
}

// formatOfSizes does the same as Format, for a size or a container with sizes in it. It returns nil for other values
// and for a spec that is not empty.
func formatOfSizes(tx Translator, v VariableTracker, conversion string, spec VariableTracker) (VariableTracker, error) {
	if empty, ok := ConstStr(tx, MustRealize(tx, spec)); !ok || empty != "" || conversion == "ascii" {
		return nil, nil
	}
	if conversion == "" {
		conversion = "str"
	}
	return textOfSizes(tx, v, conversion)
}

// percentOfSizes does the same as percentFormat, for operands with sizes in them. fields has the key and the conversion
// of each field. It returns nil for other operands, and for formats with keys or computed widths.
func percentOfSizes(tx Translator, format py.Object, fields []py.Object, items []VariableTracker) (VariableTracker,
	error) {
	w, s := tx.World(), tx.Scope()
	if len(fields) != 2*len(items) || w.FixesOpaque || strings.Contains(py.GoString(format), "*") ||
		format.Type() != w.Builtin("str") {
		return nil, nil
	}
	operands, sample, found := make([]VariableTracker, len(items)), make([]py.Object, len(items)), false
	for i, it := range items {
		conversion := py.GoString(fields[2*i+1])
		if fields[2*i] != py.None() {
			return nil, nil
		}
		if x := asSymNode(tx, it); x != nil && conversion != "c" {
			operands[i], sample[i], found = x, s.Int(1), true
			continue
		}
		if conversion == "s" {
			text, err := textOfSizes(tx, it, "str")
			if err != nil {
				return nil, err
			}
			if text != nil {
				operands[i], sample[i], found = text, s.Str(""), true
				continue
			}
		}
		var ok bool
		if sample[i], ok = knownCopy(tx, it); !ok || w.printable(tx, sample[i]) != nil {
			return nil, nil
		}
		operands[i] = NewConstant(sample[i], nil)
	}
	if !found {
		return nil, nil
	}
	if _, ok := py.Answered(s.Binary(opcode.NB_REMAINDER, format, s.Tuple(sample...))); !ok {
		return nil, nil // the operation raises, also with constants in place of the sizes
	}
	return formatted(tx, format, operands)
}

// formatted computes `format % operands`, which must not raise.
func formatted(tx Translator, format py.Object, operands []VariableTracker) (VariableTracker, error) {
	for i, v := range operands {
		if err := tx.Output().Freeze(tx, v); err != nil {
			return nil, err
		}
		operands[i] = settled(tx, v)
	}
	tx.World().Opaque++
	tx.Output().Const(format)
	return computeText(tx, operands, func(e Emitter) error {
		e.LoadConst(format)
		if err := LoadAll(e, operands); err != nil {
			return err
		}
		e.BuildTuple(len(operands))
		e.BinaryOp(opcode.NB_REMAINDER)
		return nil
	})
}

// computeText does the same as compute, for a text. A text that no code loads is not computed. So the code that emit
// writes must neither raise nor have effects.
func computeText(tx Translator, operands []VariableTracker, emit func(e Emitter) error) (*ComputedVariable, error) {
	v, err := compute(tx, tx.World().Builtin("str"), operands, emit)
	if err == nil {
		tx.Output().OnlyIfLoaded(v.slot)
	}
	return v, err
}
