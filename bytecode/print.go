package bytecode

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/godynamo/godynamo/bytecode/opcode"
)

// Print writes a listing of the code, one instruction a line:
//
//	line  >> index  OPCODE  arg (name or value)  ! handler
//
// The line is shown when it changes. The mark >> is shown at targets of jumps and at handlers. Targets are list
// indexes, so a listing is the same before and after lowering. consts returns the text of a constant. If consts is
// nil, no constants are shown.
func Print(w io.Writer, code *Code, consts func(int) string) {
	out := bufio.NewWriter(w)
	defer out.Flush()
	number(code.Instructions)
	marked := make(map[*Instruction]bool)
	for _, inst := range code.Instructions {
		marked[inst.Target] = true
		if inst.Handler != nil {
			marked[inst.Handler.Target] = true
		}
	}
	fmt.Fprintf(out, "%s (%s:%d) args %d stack %d\n", code.QualName, code.Filename, code.FirstLine, code.NumArgSlots(),
		code.StackSize)
	line := int32(-1)
	for i, inst := range code.Instructions {
		var lineText, mark, arg string
		if inst.Pos.Known() && inst.Pos.Line != line {
			line = inst.Pos.Line
			lineText = fmt.Sprint(line)
		}
		if marked[inst] {
			mark = ">>"
		}
		if inst.showsArg() {
			arg = fmt.Sprint(inst.Arg)
		}
		row := fmt.Sprintf("%5s %2s %4d %-22v %5s %s", lineText, mark, i, inst.Op, arg, argText(code, inst, consts))
		if r := inst.Handler; r != nil {
			row = fmt.Sprintf("%-60s ! %s", row, regionText(code, r))
		}
		fmt.Fprintln(out, strings.TrimRight(row, " "))
	}
}

// Text returns one instruction as Print shows it, but without line and index: "LOAD_FAST 0 (x)".
func Text(code *Code, inst *Instruction, consts func(int) string) string {
	text := inst.Op.String()
	if inst.showsArg() {
		text += " " + fmt.Sprint(inst.Arg)
	}
	if arg := argText(code, inst, consts); arg != "" {
		text += " " + arg
	}
	return text
}

// showsArg reports whether texts show the argument. Some opcodes have one in later versions only: YIELD_VALUE, whose
// argument is never 0 in some of them, and those of `with`.
func (inst *Instruction) showsArg() bool {
	switch inst.Op {
	case opcode.YIELD_VALUE, opcode.BEFORE_WITH, opcode.WITH_EXCEPT_START:
		return inst.Arg != 0
	}
	return inst.Op.ArgKind() != opcode.ArgNone && inst.Target == nil
}

// targetText returns the index of an instruction as text.
func targetText(code *Code, target *Instruction) string {
	if target == nil || !isNumbered(code.Instructions, target) {
		return "nowhere"
	}
	return fmt.Sprint(target.index)
}

func regionText(code *Code, r *ExceptionRegion) string {
	text := fmt.Sprintf("%s depth %d", targetText(code, r.Target), r.Depth)
	if r.Lasti {
		text += " lasti"
	}
	return text
}

// argText returns what an instruction's argument means: the name or value in parentheses, "to INDEX" for a jump, or
// "" for a plain number.
func argText(code *Code, inst *Instruction, consts func(int) string) string {
	text := ""
	switch inst.Op.ArgKind() {
	case opcode.ArgConst:
		if consts != nil {
			text = consts(inst.Arg)
		}
	case opcode.ArgName:
		text = nameText(code, inst)
	case opcode.ArgLocal, opcode.ArgFree:
		if inst.Arg >= 0 && inst.Arg < len(code.Locals) {
			text = code.Locals[inst.Arg].Name
		}
	case opcode.ArgCompare:
		text = opcode.CompareOp(inst.Arg).Symbol()
	case opcode.ArgJump:
		text = "to " + targetText(code, inst.Target)
		if inst.NoInterrupt {
			text += ", no interrupt"
		}
		return text
	case opcode.ArgNumber:
		if inst.Op == opcode.BINARY_OP {
			text = opcode.BinaryOp(inst.Arg).Symbol()
		}
	}
	if text == "" {
		return ""
	}
	return "(" + text + ")"
}

func nameText(code *Code, inst *Instruction) string {
	index, prefix := inst.Arg>>nameShift(inst.Op), ""
	if nameShift(inst.Op) > 0 && inst.Arg&1 != 0 {
		prefix = "NULL + "
	}
	if index < 0 || index >= len(code.Names) {
		return ""
	}
	return prefix + code.Names[index]
}
