package translate

import (
	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// If an instruction cannot be captured and python_ops is on, the translation restarts. At that step, the new attempt
// uses the Python form of the instruction: one operation of the graph that performs the instruction on the real
// objects. As with a graph break, the restart discards the failed attempt's changes to trackers, so no work is done
// twice.
//
// The instruction of the innermost frame is tried first. If it has no Python form, the call that inlined that frame is
// tried next, and so on. In the outermost frame the graph breaks.

type pythonFormOf func(tx *InstructionTranslator, inst *bytecode.Instruction) error

// pythonForms holds the Python forms of instructions that could not be captured. afterPythonCalls holds forms that
// are always used after a Python call, which may have changed what the instruction reads. Both tables are filled in
// init, since the forms refer to the handlers.
var pythonForms, afterPythonCalls [opcode.NumOps]pythonFormOf

// maxPythonRestarts bounds the restarts of one frame with python_ops. Each instruction in Python form costs one
// restart.
const maxPythonRestarts = 500

func init() {
	type tx = InstructionTranslator
	for op, form := range map[opcode.Op]pythonFormOf{
		opcode.CALL:             (*tx).pythonCall,
		opcode.CALL_FUNCTION_EX: (*tx).pythonCallEx,
		opcode.LOAD_ATTR:        (*tx).pythonLoadAttr,
		opcode.LOAD_METHOD:      (*tx).pythonLoadMethod,
		opcode.STORE_ATTR:       (*tx).pythonStoreAttr,
		opcode.DELETE_ATTR:      (*tx).pythonDeleteAttr,
		opcode.BINARY_SUBSCR:    pythonOperator("getitem", 2), opcode.DELETE_SUBSCR: (*tx).pythonDeleteSubscr,
		opcode.STORE_SUBSCR:   (*tx).pythonStoreSubscr,
		opcode.BINARY_SLICE:   (*tx).pythonBinarySlice,
		opcode.STORE_SLICE:    (*tx).pythonStoreSlice,
		opcode.BINARY_OP:      (*tx).pythonBinaryOp,
		opcode.COMPARE_OP:     (*tx).pythonCompareOp,
		opcode.IS_OP:          (*tx).pythonIsOp,
		opcode.CONTAINS_OP:    (*tx).pythonContainsOp,
		opcode.UNARY_POSITIVE: pythonOperator("pos", 1),
		opcode.UNARY_NEGATIVE: pythonOperator("neg", 1), opcode.UNARY_INVERT: pythonOperator("invert", 1),
		opcode.UNARY_NOT: pythonOperator("not_", 1), opcode.GET_ITER: pythonOperator("iter", 1),
		opcode.UNPACK_SEQUENCE: (*tx).pythonUnpack,
		opcode.GET_LEN:         (*tx).pythonGetLen,
		opcode.FORMAT_VALUE:    (*tx).pythonFormat,
		opcode.CONVERT_VALUE:   (*tx).pythonConvert,
		opcode.BUILD_STRING:    (*tx).pythonBuildString,
		opcode.STORE_GLOBAL:    (*tx).pythonStoreGlobal,
		opcode.LIST_EXTEND:     pythonExtend("extend_list"),
		opcode.SET_UPDATE:      pythonExtend("extend_set"), opcode.DICT_UPDATE: pythonExtend("extend_dict"),
		opcode.LIST_TO_TUPLE: pythonOperator("tuple", 1), opcode.IMPORT_NAME: (*tx).pythonImport,
		opcode.DICT_MERGE: (*tx).pythonDictMerge,
	} {
		pythonForms[op] = form
	}
	afterPythonCalls[opcode.LOAD_GLOBAL] = (*tx).pythonLoadGlobal
	afterPythonCalls[opcode.LOAD_DEREF] = (*tx).pythonLoadDeref
	afterPythonCalls[opcode.IMPORT_NAME] = (*tx).pythonImport
	afterPythonCalls[opcode.IMPORT_FROM] = (*tx).pythonImportFrom
}

// pythonForm returns the Python form that runs an instruction at this step. It returns nil if the handler of the
// instruction runs it.
func (tx *InstructionTranslator) pythonForm(step int, inst *bytecode.Instruction) pythonFormOf {
	o := tx.out
	if !o.opts.PythonOps {
		return nil
	}
	if o.log.python[step] {
		return pythonForms[inst.Op]
	}
	if o.world.Calls > 0 {
		if o.opts.CheckTypes && checkedAt[inst.Op] {
			return (*InstructionTranslator).checkTypes
		}
		return afterPythonCalls[inst.Op]
	}
	return nil
}

// leftToPython decides whether an instruction that cannot be captured becomes a Python operation. If it returns true,
// the translation must restart.
func (tx *InstructionTranslator) leftToPython(step int, inst *bytecode.Instruction, u *exc.Unsupported) bool {
	o := tx.out
	if !o.opts.PythonOps || pythonForms[inst.Op] == nil || u.Before || u.Frame || o.log.python[step] || tx.InsideTry() {
		return false
	}
	switch u.Code {
	case exc.ExplicitBreak, exc.ProgramRaises:
		return false
	}
	if o.log.python == nil {
		o.log.python = map[int]bool{}
	}
	o.log.python[step] = true
	return true
}

func (tx *InstructionTranslator) pushPython(op string, args ...variables.VariableTracker) error {
	v, err := tx.out.PythonOp(tx, op, args, nil)
	if err != nil {
		return err
	}
	tx.push(v)
	return nil
}

func (tx *InstructionTranslator) doPython(op string, args ...variables.VariableTracker) error {
	_, err := tx.out.PythonOp(tx, op, args, nil)
	return err
}

// pythonOperator returns the form of an instruction that replaces its n operands with a result.
func pythonOperator(op string, n int) pythonFormOf {
	return func(tx *InstructionTranslator, _ *bytecode.Instruction) error {
		return tx.pushPython(op, tx.popn(n)...)
	}
}

// pythonExtend returns the form of an instruction that pops a value and adds it to the display (a list, set or dict
// under construction) at stack depth arg.
func pythonExtend(op string) pythonFormOf {
	return func(tx *InstructionTranslator, inst *bytecode.Instruction) error {
		more := tx.pop()
		v, err := tx.out.PythonOp(tx, op, []variables.VariableTracker{tx.top(inst.Arg), more}, nil)
		if err != nil {
			return err
		}
		tx.stack[len(tx.stack)-inst.Arg] = v
		return nil
	}
}

// pythonDictMerge is the Python form of DICT_MERGE, which adds the keywords of a mapping to those of a call. Its
// errors name the callee.
//
//	stack: NULL callable args dict mapping -- NULL callable args dict      arg: how far below the mapping the dict is
func (tx *InstructionTranslator) pythonDictMerge(inst *bytecode.Instruction) error {
	more := tx.pop()
	fn, _ := callee([]variables.VariableTracker{tx.top(inst.Arg + 3), tx.top(inst.Arg + 2)})
	v, err := tx.out.PythonOp(tx, "merge_keywords", []variables.VariableTracker{fn, tx.top(inst.Arg), more}, nil)
	if err != nil {
		return err
	}
	tx.stack[len(tx.stack)-inst.Arg] = v
	return nil
}

func (tx *InstructionTranslator) pythonCall(inst *bytecode.Instruction) error {
	fn, args, kwargs := tx.popCall(inst.Arg)
	v, err := variables.PythonCall(tx, fn, args, kwargs)
	if err != nil {
		return err
	}
	tx.push(v)
	return nil
}

func (tx *InstructionTranslator) pythonCallEx(inst *bytecode.Instruction) error {
	operands := tx.popn(3 + inst.Arg&1)
	fn, _ := callee(operands)
	return tx.pushPython("call_ex", append([]variables.VariableTracker{fn}, operands[2:]...)...)
}

func (tx *InstructionTranslator) pythonLoadAttr(inst *bytecode.Instruction) error {
	v, err := variables.PythonAttr(tx, tx.pop(), tx.d.code.Names[inst.Arg])
	if err != nil {
		return err
	}
	tx.push(v)
	return nil
}

func (tx *InstructionTranslator) pythonLoadMethod(inst *bytecode.Instruction) error {
	if err := tx.pythonLoadAttr(inst); err != nil {
		return err
	}
	tx.pushCallee(tx.pop())
	return nil
}

func (tx *InstructionTranslator) nameConst(i int) variables.VariableTracker {
	return variables.StrConst(tx, tx.d.code.Names[i])
}

func (tx *InstructionTranslator) pythonStoreAttr(inst *bytecode.Instruction) error {
	obj, v := tx.pop(), tx.pop()
	return tx.doPython("setattr", obj, tx.nameConst(inst.Arg), v)
}

func (tx *InstructionTranslator) pythonDeleteAttr(inst *bytecode.Instruction) error {
	return tx.doPython("delattr", tx.pop(), tx.nameConst(inst.Arg))
}

func (tx *InstructionTranslator) pythonStoreSubscr(*bytecode.Instruction) error {
	key, obj, v := tx.pop(), tx.pop(), tx.pop()
	return tx.doPython("setitem", obj, key, v)
}

func (tx *InstructionTranslator) pythonDeleteSubscr(*bytecode.Instruction) error {
	key, obj := tx.pop(), tx.pop()
	return tx.doPython("delitem", obj, key)
}

func (tx *InstructionTranslator) pythonBinaryOp(inst *bytecode.Instruction) error {
	b, a := tx.pop(), tx.pop()
	v, err := variables.PythonBinary(tx, opcode.BinaryOp(inst.Arg), a, b)
	if err != nil {
		return err
	}
	tx.push(v)
	return nil
}

func (tx *InstructionTranslator) pythonCompareOp(inst *bytecode.Instruction) error {
	b, a := tx.pop(), tx.pop()
	v, err := variables.PythonCompare(tx, opcode.CompareOp(inst.Arg), a, b)
	if err != nil {
		return err
	}
	tx.push(v)
	return nil
}

func (tx *InstructionTranslator) pythonIsOp(inst *bytecode.Instruction) error {
	return tx.pushPython([]string{"is_", "is_not"}[inst.Arg&1], tx.popn(2)...)
}

func (tx *InstructionTranslator) pythonContainsOp(inst *bytecode.Instruction) error {
	container, v := tx.pop(), tx.pop()
	if err := tx.pushPython("contains", container, v); err != nil || inst.Arg == 0 {
		return err
	}
	return tx.pushPython("not_", tx.pop())
}

func (tx *InstructionTranslator) pythonUnpack(inst *bytecode.Instruction) error {
	t, err := tx.out.PythonOp(tx, "unpack", []variables.VariableTracker{tx.pop(), variables.IntConst(tx, inst.Arg)},
		nil)
	if err != nil {
		return err
	}
	for i := inst.Arg - 1; i >= 0; i-- {
		v, err := tx.out.pythonNode(tx, "getitem", []variables.VariableTracker{t, variables.IntConst(tx, i)}, nil)
		if err != nil {
			return err
		}
		tx.push(v)
	}
	return nil
}

func (tx *InstructionTranslator) pythonGetLen(*bytecode.Instruction) error {
	return tx.pushPython("len", tx.top(1))
}

func (tx *InstructionTranslator) pythonFormat(inst *bytecode.Instruction) error {
	spec := variables.VariableTracker(variables.StrConst(tx, ""))
	if inst.Arg&4 != 0 {
		spec = tx.pop()
	}
	v := tx.pop()
	if conv := conversions[inst.Arg&3]; conv != "" {
		text, err := tx.out.PythonOp(tx, conv, []variables.VariableTracker{v}, nil)
		if err != nil {
			return err
		}
		v = text
	}
	return tx.pushPython("format", v, spec)
}

func (tx *InstructionTranslator) pythonConvert(inst *bytecode.Instruction) error {
	return tx.pushPython(conversions[inst.Arg&3], tx.pop())
}

func (tx *InstructionTranslator) pythonBuildString(inst *bytecode.Instruction) error {
	return tx.pushPython("build_string", tx.popn(inst.Arg)...)
}

func (tx *InstructionTranslator) pythonStoreGlobal(inst *bytecode.Instruction) error {
	globals, err := tx.globalsNode()
	if err != nil {
		return err
	}
	return tx.doPython("setitem", globals, tx.nameConst(inst.Arg), tx.pop())
}

func (tx *InstructionTranslator) globalsNode() (variables.VariableTracker, error) {
	n, err := tx.out.pyConstant(tx.globals)
	if err != nil {
		return nil, err
	}
	return n, nil
}

// pythonLoadGlobal is the Python form of LOAD_GLOBAL. It reads a global that a Python call may have replaced.
// Builtins that keep their meaning (keptBuiltin) are loaded as usual if no global shadows them.
func (tx *InstructionTranslator) pythonLoadGlobal(inst *bytecode.Instruction) error {
	name := tx.d.code.Names[inst.Arg>>1]
	if tx.InsideTry() {
		return exc.Break(exc.AttrUnsupported, "global %s, which a Python call may have changed", name)
	}
	if _, own := tx.Scope().DictGetName(tx.globals, name); !own {
		if v, ok := tx.Scope().DictGetName(tx.builtins, name); ok && tx.keptBuiltin(name, v) {
			return tx.loadGlobal(inst)
		}
	}
	globals, err := tx.globalsNode()
	if err != nil {
		return err
	}
	op := "load_global"
	if tx.globals != tx.out.frame.Globals {
		op = "load_global_of"
	}
	v, err := tx.out.pythonNode(tx, op, []variables.VariableTracker{globals, variables.StrConst(tx, name)}, nil)
	if err != nil {
		return err
	}
	v.Node.Inplace = true
	if inst.Arg&1 != 0 {
		tx.pushCallee(variables.NewOpaque(v.Node, name))
	} else {
		tx.push(variables.NewOpaque(v.Node, name))
	}
	return nil
}

// keptBuiltin reports whether a builtin keeps its meaning after a Python call. This holds for exception classes, for
// builtins that the translator itself implements (except print), and for builtins whose calls have no effect.
func (tx *InstructionTranslator) keptBuiltin(name string, v py.Object) bool {
	if name == "print" {
		return false
	}
	if k := v.Kind(); (k == py.TypeKind || k == py.TypeSub) && py.IsSubtype(v, tx.World().BaseException) {
		return true
	}
	if variables.HandledBuiltin(name) {
		return true
	}
	pure, err := tx.World().IsPure(tx.Scope(), v)
	return err == nil && pure
}

// pythonLoadDeref is the Python form of LOAD_DEREF. It reads a cell that other code can reach.
func (tx *InstructionTranslator) pythonLoadDeref(inst *bytecode.Instruction) error {
	c, err := tx.cell(inst)
	if err != nil {
		return err
	}
	if !variables.Materialized(c) {
		return tx.loadDeref(inst)
	}
	l := tx.d.code.Locals[inst.Arg]
	free := l.Kind&opcode.CO_FAST_FREE != 0
	v, err := tx.out.PythonOp(tx, "load_cell", []variables.VariableTracker{c, variables.StrConst(tx, l.Name),
		variables.BoolConst(free)}, nil)
	if err != nil {
		return err
	}
	tx.push(v)
	return nil
}

// pythonImport is the Python form of IMPORT_NAME. It calls `__import__`, as IMPORT_NAME does by default.
//
//	stack: level fromlist -- module
func (tx *InstructionTranslator) pythonImport(inst *bytecode.Instruction) error {
	fromlist, level := tx.pop(), tx.pop()
	globals, err := tx.globalsNode()
	if err != nil {
		return err
	}
	op := "import_name"
	if tx.globals != tx.out.frame.Globals {
		op = "import_name_of"
	}
	return tx.pushPython(op, tx.nameConst(inst.Arg), globals, variables.NoneConst(), fromlist, level)
}

// pythonImportFrom implements IMPORT_FROM after Python calls. If the module is unknown, the graph breaks, and CPython
// reads its attributes.
func (tx *InstructionTranslator) pythonImportFrom(inst *bytecode.Instruction) error {
	if _, ok := tx.top(1).(*variables.OpaqueVariable); ok {
		return exc.Break(exc.AttrUnsupported, "from import after a Python call")
	}
	return tx.importFrom(inst)
}
