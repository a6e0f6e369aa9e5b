package translate

import "github.com/godynamo/godynamo/bytecode/opcode"

// Methods of NodeEmitter that write instructions for Python operations in the graph.

func (c *Codegen) IsOp(invert int)        { c.emit(opcode.IS_OP, invert) }
func (c *Codegen) ContainsOp(invert int)  { c.emit(opcode.CONTAINS_OP, invert) }
func (c *Codegen) UnaryNot()              { c.emit(opcode.UNARY_NOT, 0) }
func (c *Codegen) LoadGlobal(name string) { c.emit(opcode.LOAD_GLOBAL, c.name(name)<<1) }
func (c *Codegen) ImportName(name string) { c.emit(opcode.IMPORT_NAME, c.name(name)) }
func (c *Codegen) UnpackSequence(n int)   { c.emit(opcode.UNPACK_SEQUENCE, n) }
func (c *Codegen) ListExtend(i int)       { c.emit(opcode.LIST_EXTEND, i) }
func (c *Codegen) SetUpdate(i int)        { c.emit(opcode.SET_UPDATE, i) }
func (c *Codegen) DictUpdate(i int)       { c.emit(opcode.DICT_UPDATE, i) }
func (c *Codegen) DictMerge(i int)        { c.emit(opcode.DICT_MERGE, i) }

// CallFunctionEx writes a call. The stack holds the callable, an iterable of arguments and, if keywords is true, a
// mapping of keyword arguments on top.
func (c *Codegen) CallFunctionEx(keywords bool) {
	flags := 0
	if keywords {
		flags = 1
	}
	c.emit(opcode.CALL_FUNCTION_EX, flags)
}
