package translate

import (
	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// kwNames implements KW_NAMES. The next CALL uses the names.
//
//	stack: --      arg: index of the constant
func (tx *InstructionTranslator) kwNames(inst *bytecode.Instruction) error {
	tx.kwargs = nil
	for _, n := range tx.Scope().Items(tx.d.consts[inst.Arg]) {
		tx.kwargs = append(tx.kwargs, py.GoString(n))
	}
	return nil
}

// popCall pops the callable and the operands of a call.
func (tx *InstructionTranslator) popCall(nargs int) (fn variables.VariableTracker, args []variables.VariableTracker,
	kwargs []variables.Kw) {
	args = tx.popn(nargs)
	fn, self := callee(tx.popn(2))
	if self != nil {
		args = append([]variables.VariableTracker{self}, args...)
	}
	names := tx.kwargs
	tx.kwargs = nil
	npos := len(args) - len(names)
	kwargs = make([]variables.Kw, len(names))
	for i, n := range names {
		kwargs[i] = variables.Kw{Name: n, Value: args[npos+i]}
	}
	return fn, args[:npos:npos], kwargs
}

// callee returns the callable of a call and the object of a method, if it is on the stack, from the two values below
// the arguments. A NULL, nil here, is on either side of the callable, depending on the version.
func callee(pair []variables.VariableTracker) (fn, self variables.VariableTracker) {
	if pair[0] == nil {
		return pair[1], nil
	}
	return pair[0], pair[1]
}

// pushCallee pushes a callable with the NULL of a call without an object.
func (tx *InstructionTranslator) pushCallee(fn variables.VariableTracker) {
	if tx.d.code.NullAbove {
		tx.push(fn)
		tx.push(nil)
		return
	}
	tx.push(nil)
	tx.push(fn)
}

// call implements CALL.
//
//	stack: NULL callable args -- result      arg: number of args, those by keyword last; 3.13: callable NULL args
//	stack: function object args -- result
//	breaks: GD0201, and the callee's codes
func (tx *InstructionTranslator) call(inst *bytecode.Instruction) error {
	if tx.kwargs == nil {
		if err := tx.settle(inst.Arg, false); err != nil {
			return err
		}
		if r, err := tx.predictedCall(inst); err != nil {
			return notBranch(err)
		} else if r != nil {
			tx.popCall(inst.Arg)
			tx.pushResult(r)
			return nil
		}
	}
	fn, args, kwargs := tx.popCall(inst.Arg)
	r, err := variables.Call(tx, fn, args, kwargs)
	if err != nil {
		return notBranch(err)
	}
	if tx.d.code.Instructions[tx.ip].Op == opcode.GET_ITER {
		variables.OnlyLoopedCall(tx, r, fn, args)
	}
	tx.pushResult(r)
	return nil
}

// callFunctionEx implements CALL_FUNCTION_EX.
//
//	stack: NULL callable args [kwargs] -- result      arg: 1 with kwargs; args is one iterable; 3.13: callable NULL
//	breaks: GD0201, GD0210, GD0502, and the callee's codes
func (tx *InstructionTranslator) callFunctionEx(inst *bytecode.Instruction) error {
	var kwargs []variables.Kw
	if inst.Arg&1 != 0 {
		v, err := variables.Realize(tx, tx.pop())
		if err != nil {
			return err
		}
		d, ok := v.(*variables.DictVariable)
		if !ok {
			return exc.Break(exc.CallUnsupported, "keywords from %s", variables.Describe(tx, v))
		}
		keys, err := d.Items(tx)
		if err != nil {
			return err
		}
		for _, k := range keys {
			name, ok := variables.ConstStr(tx, k)
			if !ok {
				return &exc.Observed{TypeName: "TypeError", Text: "keywords must be strings"}
			}
			val, err := d.GetItem(tx, k)
			if err != nil {
				return err
			}
			kwargs = append(kwargs, variables.Kw{Name: name, Value: val})
		}
	}
	args, err := variables.UnpackTuple(tx, tx.pop())
	if err != nil {
		return err
	}
	fn, _ := callee(tx.popn(2))
	r, err := variables.Call(tx, fn, args, kwargs)
	if err != nil {
		return notBranch(err)
	}
	tx.pushResult(r)
	return nil
}

// makeFunction implements MAKE_FUNCTION.
//
//	stack: [defaults] [kwdefaults] [annotations] [closure] code -- function      arg: one bit per option
func (tx *InstructionTranslator) makeFunction(inst *bytecode.Instruction) error {
	code, ok := variables.AsConstant(tx, tx.pop())
	if !ok || code.Kind() != py.Code {
		return &exc.SkipFrame{Reason: "function made of no code object"}
	}
	d, err := tx.out.decode(code)
	if err != nil {
		return err
	}
	f := &variables.FunctionVariable{Code: code, GlobalsDict: tx.globals, GlobalsSrc: tx.globalsSrc, Name: d.code.Name,
		QualName: d.code.QualName}
	for flag := 8; flag > 0; flag >>= 1 {
		if inst.Arg&flag != 0 {
			if err := tx.setFunctionAttribute(f, flag, tx.pop()); err != nil {
				return err
			}
		}
	}
	if tx.globals != tx.out.frame.Globals {
		f.Foreign = true // MAKE_FUNCTION in the transformed code would give the function other globals
	}
	tx.push(f)
	return nil
}

// setAttribute implements SET_FUNCTION_ATTRIBUTE.
//
//	stack: value function -- function      arg: the bit of MAKE_FUNCTION's argument
func (tx *InstructionTranslator) setAttribute(inst *bytecode.Instruction) error {
	f, ok := tx.pop().(*variables.FunctionVariable)
	if !ok {
		return &exc.SkipFrame{Reason: "an attribute of no new function"}
	}
	if err := tx.setFunctionAttribute(f, inst.Arg, tx.pop()); err != nil {
		return err
	}
	tx.push(f)
	return nil
}

// setFunctionAttribute sets what a new function gets besides its code. flag: a bit of MAKE_FUNCTION's argument.
func (tx *InstructionTranslator) setFunctionAttribute(f *variables.FunctionVariable, flag int,
	v variables.VariableTracker) error {
	switch flag {
	case 16: // of 3.14: the function that computes the annotations
		f.SetAnnotate(v)
	case 8:
		cells, err := variables.Unpack(tx, v)
		if err != nil {
			return err
		}
		for _, c := range cells {
			v, err := variables.Realize(tx, c)
			if err != nil {
				return err
			}
			cell, ok := v.(*variables.CellVariable)
			if !ok {
				return &exc.SkipFrame{Reason: "closure of no cells"}
			}
			f.Closure = append(f.Closure, cell)
		}
	case 4:
		f.Annotations = v
	case 2:
		f.KwDefaults = v
	case 1:
		f.Defaults = v
	}
	return nil
}
