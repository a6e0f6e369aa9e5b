package translate

import (
	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
)

// handler holds the method that the step loop calls for an opcode. breaks is true if the graph may break at the
// instruction.
type handler struct {
	run    func(tx *InstructionTranslator, inst *bytecode.Instruction) error
	breaks bool
}

var handlers [opcode.NumOps]handler

// noHandler lists the opcodes that are not translated, each with the reason. At such an instruction the graph breaks,
// or the frame is left to CPython.
var noHandler = map[opcode.Op]string{
	opcode.ASYNC_GEN_WRAP:             "async code runs in CPython",
	opcode.BEFORE_ASYNC_WITH:          "async code runs in CPython",
	opcode.END_ASYNC_FOR:              "async code runs in CPython",
	opcode.GET_AITER:                  "async code runs in CPython",
	opcode.GET_ANEXT:                  "async code runs in CPython",
	opcode.GET_AWAITABLE:              "async code runs in CPython",
	opcode.IMPORT_STAR:                "module and class bodies run in CPython",
	opcode.SETUP_ANNOTATIONS:          "module and class bodies run in CPython",
	opcode.LOAD_NAME:                  "module and class bodies run in CPython",
	opcode.STORE_NAME:                 "module and class bodies run in CPython",
	opcode.DELETE_NAME:                "module and class bodies run in CPython",
	opcode.LOAD_CLASSDEREF:            "module and class bodies run in CPython",
	opcode.PRINT_EXPR:                 "interactive code runs in CPython",
	opcode.DELETE_GLOBAL:              "CPython removes globals",
	opcode.CACHE:                      "gone after decoding",
	opcode.EXTENDED_ARG:               "gone after decoding",
	opcode.PRECALL:                    "gone after decoding",
	opcode.JUMP_BACKWARD:              "decoded to JUMP",
	opcode.JUMP_BACKWARD_NO_INTERRUPT: "decoded to JUMP",
	opcode.JUMP_FORWARD:               "decoded to JUMP",
}

func init() {
	for op, reason := range map[opcode.Op]string{
		opcode.POP_JUMP_BACKWARD_IF_FALSE:    "",
		opcode.POP_JUMP_BACKWARD_IF_NONE:     "",
		opcode.POP_JUMP_BACKWARD_IF_NOT_NONE: "",
		opcode.POP_JUMP_BACKWARD_IF_TRUE:     "",
		opcode.POP_JUMP_FORWARD_IF_FALSE:     "",
		opcode.POP_JUMP_FORWARD_IF_NONE:      "",
		opcode.POP_JUMP_FORWARD_IF_NOT_NONE:  "",
		opcode.POP_JUMP_FORWARD_IF_TRUE:      "",
	} {
		_ = reason
		noHandler[op] = "decoded to the form without direction"
	}
	type tx = InstructionTranslator
	rows := map[opcode.Op]handler{
		opcode.NOP:                  {run: (*tx).nop},
		opcode.RESUME:               {run: (*tx).nop},
		opcode.COPY_FREE_VARS:       {run: (*tx).nop},
		opcode.POP_TOP:              {run: (*tx).popTop},
		opcode.PUSH_NULL:            {run: (*tx).pushNull},
		opcode.COPY:                 {run: (*tx).copyTop},
		opcode.SWAP:                 {run: (*tx).swap},
		opcode.RETURN_VALUE:         {run: (*tx).returnValue},
		opcode.LOAD_CONST:           {run: (*tx).loadConst},
		opcode.LOAD_FAST:            {run: (*tx).loadFast},
		opcode.STORE_FAST:           {run: (*tx).storeFast},
		opcode.DELETE_FAST:          {run: (*tx).deleteFast},
		opcode.LOAD_GLOBAL:          {run: (*tx).loadGlobal, breaks: true},
		opcode.STORE_GLOBAL:         {run: (*tx).storeGlobal, breaks: true},
		opcode.DELETE_GLOBAL:        {run: nil, breaks: true},
		opcode.MAKE_CELL:            {run: (*tx).makeCell},
		opcode.LOAD_CLOSURE:         {run: (*tx).loadClosure},
		opcode.LOAD_DEREF:           {run: (*tx).loadDeref},
		opcode.STORE_DEREF:          {run: (*tx).storeDeref},
		opcode.DELETE_DEREF:         {run: (*tx).deleteDeref},
		opcode.LOAD_ATTR:            {run: (*tx).loadAttr, breaks: true},
		opcode.LOAD_METHOD:          {run: (*tx).loadMethod, breaks: true},
		opcode.STORE_ATTR:           {run: (*tx).storeAttr, breaks: true},
		opcode.DELETE_ATTR:          {run: (*tx).deleteAttr, breaks: true},
		opcode.BINARY_SUBSCR:        {run: (*tx).binarySubscr, breaks: true},
		opcode.STORE_SUBSCR:         {run: (*tx).storeSubscr, breaks: true},
		opcode.DELETE_SUBSCR:        {run: (*tx).deleteSubscr, breaks: true},
		opcode.BINARY_OP:            {run: (*tx).binaryOp, breaks: true},
		opcode.COMPARE_OP:           {run: (*tx).compareOp, breaks: true},
		opcode.IS_OP:                {run: (*tx).isOp, breaks: true},
		opcode.CONTAINS_OP:          {run: (*tx).containsOp, breaks: true},
		opcode.UNARY_POSITIVE:       {run: (*tx).unary, breaks: true},
		opcode.UNARY_NEGATIVE:       {run: (*tx).unary, breaks: true},
		opcode.UNARY_INVERT:         {run: (*tx).unary, breaks: true},
		opcode.UNARY_NOT:            {run: (*tx).unary, breaks: true},
		opcode.KW_NAMES:             {run: (*tx).kwNames},
		opcode.CALL:                 {run: (*tx).call, breaks: true},
		opcode.CALL_FUNCTION_EX:     {run: (*tx).callFunctionEx, breaks: true},
		opcode.MAKE_FUNCTION:        {run: (*tx).makeFunction},
		opcode.BUILD_TUPLE:          {run: (*tx).buildTuple},
		opcode.BUILD_LIST:           {run: (*tx).buildList},
		opcode.BUILD_SET:            {run: (*tx).buildSet, breaks: true},
		opcode.BUILD_MAP:            {run: (*tx).buildMap, breaks: true},
		opcode.BUILD_CONST_KEY_MAP:  {run: (*tx).buildConstKeyMap, breaks: true},
		opcode.BUILD_SLICE:          {run: (*tx).buildSlice},
		opcode.BUILD_STRING:         {run: (*tx).buildString, breaks: true},
		opcode.FORMAT_VALUE:         {run: (*tx).formatValue, breaks: true},
		opcode.LIST_APPEND:          {run: (*tx).listAppend, breaks: true},
		opcode.LIST_EXTEND:          {run: (*tx).listExtend, breaks: true},
		opcode.LIST_TO_TUPLE:        {run: (*tx).listToTuple, breaks: true},
		opcode.SET_ADD:              {run: (*tx).setAdd, breaks: true},
		opcode.SET_UPDATE:           {run: (*tx).setUpdate, breaks: true},
		opcode.MAP_ADD:              {run: (*tx).mapAdd, breaks: true},
		opcode.DICT_UPDATE:          {run: (*tx).dictUpdate, breaks: true},
		opcode.DICT_MERGE:           {run: (*tx).dictMerge, breaks: true},
		opcode.UNPACK_SEQUENCE:      {run: (*tx).unpackSequence, breaks: true},
		opcode.UNPACK_EX:            {run: (*tx).unpackEx, breaks: true},
		opcode.GET_ITER:             {run: (*tx).getIter, breaks: true},
		opcode.GET_LEN:              {run: (*tx).getLen, breaks: true},
		opcode.FOR_ITER:             {run: (*tx).forIter, breaks: true},
		opcode.JUMP:                 {run: (*tx).jumpTo},
		opcode.POP_JUMP_IF_FALSE:    {run: (*tx).popJumpIf, breaks: true},
		opcode.POP_JUMP_IF_TRUE:     {run: (*tx).popJumpIf, breaks: true},
		opcode.JUMP_IF_FALSE_OR_POP: {run: (*tx).jumpIfOrPop, breaks: true},
		opcode.JUMP_IF_TRUE_OR_POP:  {run: (*tx).jumpIfOrPop, breaks: true},
		opcode.POP_JUMP_IF_NONE:     {run: (*tx).popJumpIfNone, breaks: true},
		opcode.POP_JUMP_IF_NOT_NONE: {run: (*tx).popJumpIfNone, breaks: true},
		opcode.LOAD_ASSERTION_ERROR: {run: (*tx).loadAssertionError},
		opcode.IMPORT_NAME:          {run: (*tx).importName, breaks: true},
		opcode.IMPORT_FROM:          {run: (*tx).importFrom, breaks: true},
		opcode.MATCH_SEQUENCE:       {run: (*tx).matchKind, breaks: true},
		opcode.MATCH_MAPPING:        {run: (*tx).matchKind, breaks: true},
		opcode.RAISE_VARARGS:        {run: (*tx).raiseVarargs, breaks: true},
		opcode.LOAD_BUILD_CLASS:     {run: (*tx).loadBuildClass, breaks: true},
		opcode.RERAISE:              {run: (*tx).reraise, breaks: true},
		opcode.PUSH_EXC_INFO:        {run: (*tx).pushExcInfo},
		opcode.RETURN_GENERATOR:     {run: (*tx).returnGenerator},
		opcode.YIELD_VALUE:          {run: (*tx).yieldValue},
		opcode.SEND:                 {run: (*tx).send},
		opcode.GET_YIELD_FROM_ITER:  {run: (*tx).getYieldFromIter},
		opcode.POP_EXCEPT:           {run: (*tx).popExcept},
		opcode.CHECK_EXC_MATCH:      {run: (*tx).checkExcMatch, breaks: true},
		opcode.BEFORE_WITH:          {run: (*tx).beforeWith, breaks: true},
		opcode.WITH_EXCEPT_START:    {run: (*tx).withExceptStart, breaks: true},
		opcode.CHECK_EG_MATCH:       {run: (*tx).checkEgMatch, breaks: true},
		opcode.PREP_RERAISE_STAR:    {run: (*tx).prepReraiseStar, breaks: true},
		opcode.MATCH_CLASS:          {run: (*tx).matchClass, breaks: true},
		opcode.MATCH_KEYS:           {run: (*tx).matchKeys, breaks: true},
	}
	for op, h := range rows {
		handlers[op] = h
	}
}
