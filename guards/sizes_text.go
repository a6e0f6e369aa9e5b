package guards

import (
	"fmt"
	"strconv"
)

// The operators of conditions on sizes, as Python writes them.
var (
	sizeOpTexts = [numSizeOps]string{SizeAdd: " + ", SizeSub: " - ", SizeMul: " * ", SizeFloorDiv: " // ",
		SizeMod: " % ", SizeMax: "max", SizeMin: "min", SizeFloatAdd: " + ", SizeFloatSub: " - ", SizeFloatMul: " * ",
		SizeFloatDiv: " / ", SizeFloatMax: "max", SizeFloatMin: "min", SizeFloatPow: " ** ", SizeFloatLT: " < ",
		SizeFloatLE: " <= ", SizeFloatEQ: " == ", SizeFloat: "float", SizeSqrt: "math.sqrt", SizeFloor: "math.floor",
		SizeCeil: "math.ceil", SizeTrunc: "int", SizeRound: "round"}
	sizeRelTexts = [numSizeRels]string{" == ", " != ", " >= ", " > ", " <= ", " < "}
)

// How tightly an operator binds. The text of an operand needs parentheses if its operator binds more loosely.
const (
	bindsSum = iota
	bindsProduct
	bindsPower
	bindsPlace // a place, a number or a call
)

func (o SizeOp) binds() int {
	switch o {
	case SizeAdd, SizeSub, SizeFloatAdd, SizeFloatSub:
		return bindsSum
	case SizeMul, SizeFloorDiv, SizeMod, SizeFloatMul, SizeFloatDiv:
		return bindsProduct
	case SizeFloatPow:
		return bindsPower
	}
	return bindsPlace
}

// text returns the condition as a Python expression, or an error if it is malformed. Its parentheses keep the
// order of the operations, since that order decides whether an operation overflows.
func (c *SizeCond) text(p *printer) (string, error) {
	if c.Rel >= numSizeRels {
		return "", fmt.Errorf("guards: relation %d", c.Rel)
	}
	left, err := sideText(c.Left, p, 0)
	if err != nil {
		return "", err
	}
	right, err := sideText(c.Right, p, 1)
	if err != nil {
		return "", err
	}
	return left + sizeRelTexts[c.Rel] + right, nil
}

// sideText returns the text of one side. below is the number of values on the stack when the side begins.
func sideText(side []SizeInst, p *printer, below int) (string, error) {
	type operand struct {
		text  string
		binds int
	}
	var stack []operand
	in := func(o operand, binds int) string {
		if o.binds < binds {
			return "(" + o.text + ")"
		}
		return o.text
	}
	for _, inst := range side {
		switch {
		case inst.Op == SizeConst && inst.Float:
			stack = append(stack, operand{floatText(inst.N), bindsPlace})
		case inst.Op == SizeConst:
			stack = append(stack, operand{strconv.FormatInt(inst.N, 10), bindsPlace})
		case inst.Op == SizeLoad && inst.Src != nil:
			stack = append(stack, operand{printed(inst.Src, p), bindsPlace})
		case inst.Op < SizeAdd || inst.Op >= numSizeOps || len(stack) < inst.Op.arity():
			return "", fmt.Errorf("guards: malformed condition on sizes: step %d of %d values", inst.Op, len(stack))
		case inst.Op.arity() == 1:
			a := &stack[len(stack)-1]
			a.text, a.binds = sizeOpTexts[inst.Op]+"("+a.text+")", bindsPlace
		case inst.Op >= SizeFloatLT && inst.Op <= SizeFloatEQ:
			a, b := stack[len(stack)-2], stack[len(stack)-1]
			stack = append(stack[:len(stack)-2],
				operand{"int(" + a.text + sizeOpTexts[inst.Op] + b.text + ")", bindsPlace})
		default:
			a, b, op := stack[len(stack)-2], stack[len(stack)-1], sizeOpTexts[inst.Op]
			text, binds := op+"("+a.text+", "+b.text+")", inst.Op.binds()
			switch {
			case binds == bindsPower: // the only operator that groups from the right
				text = in(a, bindsPlace) + op + in(b, bindsPlace)
			case binds < bindsPlace:
				text = in(a, binds) + op + in(b, binds+1)
			}
			stack = append(stack[:len(stack)-2], operand{text, binds})
		}
		if below+len(stack) > maxSizeStack {
			return "", errTooLarge("values of a condition on sizes", below+len(stack))
		}
	}
	if len(stack) != 1 {
		return "", fmt.Errorf("guards: malformed condition on sizes: %d values on one side", len(stack))
	}
	return stack[0].text, nil
}
