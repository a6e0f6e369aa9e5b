package bytecode

import (
	"math/bits"

	op "github.com/godynamo/godynamo/bytecode/opcode"
)

// stackUse describes an opcode's use of the value stack: how many values it needs on top, and how many values replace
// them. A value that the opcode only reads is counted in both numbers. popArg and pushArg are multiplied by the
// argument.
type stackUse struct {
	known                      bool
	pop, popArg, push, pushArg int8
	jumpPush                   int8 // if jumps is set: number of values left when the opcode jumps
	jumps                      bool // jumpPush differs from push
	popMore, pushMore          func(arg int) int
}

func fixed(pop, push int8) stackUse { return stackUse{known: true, pop: pop, push: push} }

// counted returns the use of an opcode whose number of operands depends on its argument. The opcode takes pop values
// from the top, and popArg*arg values below them.
func counted(pop, popArg, push, pushArg int8) stackUse {
	return stackUse{known: true, pop: pop, popArg: popArg, push: push, pushArg: pushArg}
}

func jumping(pop, push, jumpPush int8) stackUse {
	return stackUse{known: true, pop: pop, push: push, jumpPush: jumpPush, jumps: true}
}

// stackUses covers the opcodes of the dialect. CALL includes the effect of PRECALL. TestStackEffect compares the
// table with dis.stack_effect.
var stackUses = [op.NumOps]stackUse{
	op.NOP:    fixed(0, 0),
	op.RESUME: fixed(0, 0),
	op.JUMP:   fixed(0, 0),

	op.POP_TOP:   fixed(1, 0),
	op.POP_ITER:  fixed(1, 0),
	op.NOT_TAKEN: fixed(0, 0),
	op.PUSH_NULL: fixed(0, 1),
	op.COPY:      counted(0, 1, 1, 1),
	op.SWAP:      counted(0, 1, 0, 1),

	op.UNARY_POSITIVE: fixed(1, 1),
	op.UNARY_NEGATIVE: fixed(1, 1),
	op.UNARY_NOT:      fixed(1, 1),
	op.TO_BOOL:        fixed(1, 1),
	op.UNARY_INVERT:   fixed(1, 1),
	op.BINARY_OP:      fixed(2, 1),
	op.BINARY_SUBSCR:  fixed(2, 1),
	op.STORE_SUBSCR:   fixed(3, 0),
	op.DELETE_SUBSCR:  fixed(2, 0),
	op.COMPARE_OP:     fixed(2, 1),
	op.IS_OP:          fixed(2, 1),
	op.CONTAINS_OP:    fixed(2, 1),

	op.BINARY_SLICE: fixed(3, 1),
	op.STORE_SLICE:  fixed(4, 0),

	op.LOAD_CONST:           fixed(0, 1),
	op.LOAD_SMALL_INT:       fixed(0, 1),
	op.LOAD_COMMON_CONSTANT: fixed(0, 1),
	op.LOAD_FAST:            fixed(0, 1),
	op.LOAD_FAST_CHECK:      fixed(0, 1),
	op.LOAD_FAST_AND_CLEAR:  fixed(0, 1),
	op.STORE_FAST:           fixed(1, 0),
	op.DELETE_FAST:          fixed(0, 0),
	op.LOAD_NAME:            fixed(0, 1),
	op.STORE_NAME:           fixed(1, 0),
	op.DELETE_NAME:          fixed(0, 0),
	op.LOAD_GLOBAL:          {known: true, push: 1, pushMore: func(arg int) int { return arg & 1 }},
	op.STORE_GLOBAL:         fixed(1, 0),
	op.DELETE_GLOBAL:        fixed(0, 0),
	op.LOAD_ATTR:            fixed(1, 1),
	op.STORE_ATTR:           fixed(2, 0),
	op.DELETE_ATTR:          fixed(1, 0),
	op.LOAD_METHOD:          fixed(1, 2),
	op.LOAD_SUPER_ATTR:      {known: true, pop: 3, push: 1, pushMore: func(arg int) int { return arg & 1 }},
	op.LOAD_CLOSURE:         fixed(0, 1),
	op.LOAD_DEREF:           fixed(0, 1),
	op.LOAD_CLASSDEREF:      fixed(0, 1),
	op.LOAD_LOCALS:          fixed(0, 1),

	op.LOAD_FROM_DICT_OR_GLOBALS: fixed(1, 1),
	op.LOAD_FROM_DICT_OR_DEREF:   fixed(1, 1),

	op.STORE_DEREF:          fixed(1, 0),
	op.DELETE_DEREF:         fixed(0, 0),
	op.MAKE_CELL:            fixed(0, 0),
	op.COPY_FREE_VARS:       fixed(0, 0),
	op.LOAD_BUILD_CLASS:     fixed(0, 1),
	op.LOAD_ASSERTION_ERROR: fixed(0, 1),
	op.SETUP_ANNOTATIONS:    fixed(0, 0),
	op.PRINT_EXPR:           fixed(1, 0),
	op.IMPORT_NAME:          fixed(2, 1),
	op.IMPORT_FROM:          fixed(1, 2),
	op.IMPORT_STAR:          fixed(1, 0),

	op.BUILD_TUPLE:         counted(0, 1, 1, 0),
	op.BUILD_LIST:          counted(0, 1, 1, 0),
	op.BUILD_SET:           counted(0, 1, 1, 0),
	op.BUILD_STRING:        counted(0, 1, 1, 0),
	op.BUILD_MAP:           counted(0, 2, 1, 0),
	op.BUILD_CONST_KEY_MAP: counted(1, 1, 1, 0),
	op.BUILD_SLICE:         counted(0, 1, 1, 0),
	op.LIST_TO_TUPLE:       fixed(1, 1),
	op.LIST_APPEND:         counted(1, 1, 0, 1),
	op.LIST_EXTEND:         counted(1, 1, 0, 1),
	op.SET_ADD:             counted(1, 1, 0, 1),
	op.SET_UPDATE:          counted(1, 1, 0, 1),
	op.MAP_ADD:             counted(2, 1, 0, 1),
	op.DICT_UPDATE:         counted(1, 1, 0, 1),
	op.DICT_MERGE:          counted(1, 1, 0, 1),
	op.FORMAT_VALUE:        {known: true, pop: 1, push: 1, popMore: func(arg int) int { return arg >> 2 & 1 }},
	op.CONVERT_VALUE:       fixed(1, 1),
	op.FORMAT_SIMPLE:       fixed(1, 1),
	op.FORMAT_WITH_SPEC:    fixed(2, 1),
	op.UNPACK_SEQUENCE:     counted(1, 0, 0, 1),
	op.UNPACK_EX:           {known: true, pop: 1, push: 1, pushMore: func(arg int) int { return arg&0xff + arg>>8 }},

	op.KW_NAMES:         fixed(0, 0),
	op.CALL:             counted(2, 1, 1, 0), // below the arguments are NULL and the callable, or the method and self
	op.CALL_KW:          counted(3, 1, 1, 0), // the names are above the arguments
	op.CALL_FUNCTION_EX: {known: true, pop: 3, push: 1, popMore: func(arg int) int { return arg & 1 }},
	op.MAKE_FUNCTION: {known: true, pop: 1, push: 1,
		popMore: func(arg int) int { return bits.OnesCount(uint(arg & 15)) }},
	op.SET_FUNCTION_ATTRIBUTE: fixed(2, 1),
	op.BUILD_TEMPLATE:         fixed(2, 1),
	op.BUILD_INTERPOLATION:    {known: true, pop: 2, push: 1, popMore: func(arg int) int { return arg & 1 }},

	op.RETURN_VALUE: fixed(1, 0),
	op.RETURN_CONST: fixed(0, 0),

	op.POP_JUMP_IF_FALSE:    fixed(1, 0),
	op.POP_JUMP_IF_TRUE:     fixed(1, 0),
	op.POP_JUMP_IF_NONE:     fixed(1, 0),
	op.POP_JUMP_IF_NOT_NONE: fixed(1, 0),
	op.JUMP_IF_FALSE_OR_POP: jumping(1, 0, 1),
	op.JUMP_IF_TRUE_OR_POP:  jumping(1, 0, 1),
	op.GET_ITER:             fixed(1, 1),
	op.FOR_ITER:             jumping(1, 2, 0),
	op.END_FOR:              fixed(0, 0), // never reached: FOR_ITER jumps to the next instruction

	op.GET_LEN:        fixed(1, 2),
	op.MATCH_MAPPING:  fixed(1, 2),
	op.MATCH_SEQUENCE: fixed(1, 2),
	op.MATCH_KEYS:     fixed(2, 3),
	op.MATCH_CLASS:    fixed(3, 1),

	op.RAISE_VARARGS:     counted(0, 1, 0, 0),
	op.RERAISE:           counted(1, 1, 0, 1), // if arg is 1, it reads the saved offset below the exception
	op.PUSH_EXC_INFO:     fixed(1, 2),
	op.CHECK_EXC_MATCH:   fixed(2, 2),
	op.CHECK_EG_MATCH:    fixed(2, 2),
	op.PREP_RERAISE_STAR: fixed(2, 1),
	op.POP_EXCEPT:        fixed(1, 0),
	// Reads __exit__, saved offset, previous exception, this exception. With 1 as its argument, __exit__ has its self
	// or NULL above it.
	op.WITH_EXCEPT_START: counted(4, 1, 5, 1),
	op.BEFORE_WITH:       counted(1, 0, 2, 1),
	op.LOAD_SPECIAL:      fixed(1, 2),
	op.BEFORE_ASYNC_WITH: fixed(1, 2),

	// The sent value is pushed when a generator resumes. dis counts it at the start of the frame instead.
	op.RETURN_GENERATOR:    fixed(0, 1),
	op.YIELD_VALUE:         fixed(1, 1),
	op.ASYNC_GEN_WRAP:      fixed(1, 1),
	op.SEND:                jumping(2, 2, 1),
	op.SEND_KEEP:           fixed(2, 2),
	op.END_SEND:            fixed(2, 1),
	op.CLEANUP_THROW:       fixed(3, 2),
	op.GET_AWAITABLE:       fixed(1, 1),
	op.GET_AITER:           fixed(1, 1),
	op.GET_ANEXT:           fixed(1, 2),
	op.GET_YIELD_FROM_ITER: fixed(1, 1),
	op.END_ASYNC_FOR:       fixed(2, 0),

	op.INTRINSIC_PRINT:                    fixed(1, 1),
	op.INTRINSIC_IMPORT_STAR:              fixed(1, 1),
	op.INTRINSIC_STOPITERATION_ERROR:      fixed(1, 1),
	op.INTRINSIC_TYPEVAR:                  fixed(1, 1),
	op.INTRINSIC_PARAMSPEC:                fixed(1, 1),
	op.INTRINSIC_TYPEVARTUPLE:             fixed(1, 1),
	op.INTRINSIC_SUBSCRIPT_GENERIC:        fixed(1, 1),
	op.INTRINSIC_TYPEALIAS:                fixed(1, 1),
	op.INTRINSIC_TYPEVAR_WITH_BOUND:       fixed(2, 1),
	op.INTRINSIC_TYPEVAR_WITH_CONSTRAINTS: fixed(2, 1),
	op.INTRINSIC_SET_FUNCTION_TYPE_PARAMS: fixed(2, 1),
	op.INTRINSIC_SET_TYPEPARAM_DEFAULT:    fixed(2, 1),
}

// StackUse returns how many values the instruction needs on top of the stack, and how many values replace them. If jump
// is true, the result is for an instruction that jumps, else for one that falls through. Instructions outside the
// dialect use no values.
func StackUse(inst *Instruction, jump bool) (pops, pushes int) {
	use := &stackUses[inst.Op]
	pops = int(use.pop) + int(use.popArg)*inst.Arg
	pushes = int(use.push) + int(use.pushArg)*inst.Arg
	if use.popMore != nil {
		pops += use.popMore(inst.Arg)
	}
	if use.pushMore != nil {
		pushes += use.pushMore(inst.Arg)
	}
	if jump && use.jumps {
		pushes = int(use.jumpPush)
	}
	return pops, pushes
}

// StackEffect returns by how much the instruction grows the stack. If jump is true, the instruction jumps, else it
// falls through. The result equals dis.stack_effect except for CALL, which includes PRECALL, and RETURN_GENERATOR,
// which is +1.
func StackEffect(inst *Instruction, jump bool) int {
	pops, pushes := StackUse(inst, jump)
	return pushes - pops
}
