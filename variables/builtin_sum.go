package variables

import (
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/pyhook/py"
)

// builtinSum implements sum().
func builtinSum(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if len(args) == 0 || len(args) > 2 || len(kwargs) > 1 {
		return nil, nil
	}
	var acc VariableTracker = IntConst(tx, 0)
	if len(args) == 2 {
		acc = args[1]
	}
	for _, kw := range kwargs {
		if kw.Name != "start" {
			return nil, nil
		}
		acc = kw.Value
	}
	if o, ok := AsConstant(tx, MustRealize(tx, acc)); ok && (o.Kind() == py.Str || o.Kind() == py.Bytes ||
		o.Kind() == py.ByteArray) {
		return nil, nil // sum rejects a str, bytes or bytearray as start
	}
	sum := summation{acc: acc, numbers: tx.World().sumCompensates == py.Bool(true)}
	if err := each(tx, args[0], func(it VariableTracker) (bool, error) { return true, sum.add(tx, it) }); err != nil {
		return nil, err
	}
	err := sum.end(tx)
	return sum.acc, err
}

// summation is the state of sum(). Since 3.12, sum() carries the rounding errors of floats along, until an item is not
// a float or an int. So these items are summed at once.
type summation struct {
	acc     VariableTracker
	first   []VariableTracker // numbers that are not yet in acc
	numbers bool              // all items so far are numbers, and sum() treats them differently
}

func (s *summation) add(tx Translator, it VariableTracker) error {
	if s.numbers {
		if isSummed(tx, MustRealize(tx, s.acc)) && isSummed(tx, MustRealize(tx, it)) {
			s.first = append(s.first, it)
			return nil
		}
		if err := s.end(tx); err != nil {
			return err
		}
	}
	var err error
	s.acc, err = Binary(tx, opcode.NB_ADD, s.acc, it)
	return err
}

// isSummed reports whether v is a float, int or bool that sum() adds without calling its methods.
func isSummed(tx Translator, v VariableTracker) bool {
	if _, ok := numberLetter(tx, v); !ok {
		return false
	}
	if c, ok := v.(*ConstantVariable); ok && c.Value.Kind() == py.Int {
		_, fits := py.AsInt(c.Value)
		return fits
	}
	return true
}

// end adds the numbers to acc.
func (s *summation) end(tx Translator) error {
	first := s.first
	s.first, s.numbers = nil, false
	if carriesErrors(tx, append([]VariableTracker{s.acc}, first...)) {
		return s.atOnce(tx, first)
	}
	for _, it := range first {
		var err error
		if s.acc, err = Binary(tx, opcode.NB_ADD, s.acc, it); err != nil {
			return err
		}
	}
	return nil
}

// carriesErrors reports whether the errors of a sum can differ from those of additions: only if at least two numbers
// follow the first float, since the error of one addition rounds to nothing.
func carriesErrors(tx Translator, numbers []VariableTracker) bool {
	for i, v := range numbers {
		if letter, _ := numberLetter(tx, MustRealize(tx, v)); letter == 'f' {
			return len(numbers)-i > 2
		}
	}
	return false
}

// atOnce lets CPython sum the numbers: now if all are known, otherwise at run time.
func (s *summation) atOnce(tx Translator, numbers []VariableTracker) error {
	fn := tx.World().Builtin("sum")
	operands := append([]VariableTracker{s.acc}, numbers...)
	known := make([]py.Object, len(operands))
	all := true
	for i, v := range operands {
		operands[i] = MustRealize(tx, v)
		if c, ok := AsConstant(tx, operands[i]); ok && all {
			known[i] = c
		} else {
			all = false
		}
	}
	if all {
		r, err := tx.Scope().Call(fn, tx.Scope().Tuple(known[1:]...), known[0])
		if err != nil {
			return observed(err)
		}
		s.acc = NewConstant(r, nil)
		return nil
	}
	tx.Output().Const(fn)
	r, err := compute(tx, tx.World().Builtin("float"), operands, func(e Emitter) error {
		return EmitCall(e, fn, []VariableTracker{NewTuple(operands[1:], nil), operands[0]})
	})
	if err == nil {
		s.acc = r
	}
	return err
}
