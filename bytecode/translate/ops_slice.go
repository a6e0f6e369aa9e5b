package translate

import (
	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/variables"
)

// popSlice pops the bounds of a slice and returns the slice.
//
//	stack: start stop --
func (tx *InstructionTranslator) popSlice() (variables.VariableTracker, error) {
	bounds := tx.popn(2)
	for i := range bounds {
		v, err := variables.Argument(tx, bounds[i])
		if err != nil {
			return nil, err
		}
		bounds[i] = v
	}
	return variables.NewSlice(bounds[0], bounds[1], variables.NoneConst()), nil
}

// binarySlice implements BINARY_SLICE.
//
//	stack: object start stop -- value
//	breaks: GD0208
func (tx *InstructionTranslator) binarySlice(*bytecode.Instruction) error {
	key, err := tx.popSlice()
	if err != nil {
		return err
	}
	v, err := variables.GetItem(tx, tx.pop(), key)
	if err != nil {
		return err
	}
	tx.push(v)
	return nil
}

// storeSlice implements STORE_SLICE.
//
//	stack: value object start stop --
//	breaks: GD0209
func (tx *InstructionTranslator) storeSlice(*bytecode.Instruction) error {
	key, err := tx.popSlice()
	if err != nil {
		return err
	}
	obj, v := tx.pop(), tx.pop()
	return variables.SetItem(tx, obj, key, v)
}

func (tx *InstructionTranslator) pythonBinarySlice(*bytecode.Instruction) error {
	key, err := tx.popSlice()
	if err != nil {
		return err
	}
	return tx.pushPython("getitem", tx.pop(), key)
}

func (tx *InstructionTranslator) pythonStoreSlice(*bytecode.Instruction) error {
	key, err := tx.popSlice()
	if err != nil {
		return err
	}
	obj, v := tx.pop(), tx.pop()
	return tx.doPython("setitem", obj, key, v)
}
