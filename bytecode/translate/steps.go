package translate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/variables"
)

// Steps holds functions, for logs, that a translation calls for the code that it runs. If the translation restarts,
// they are called again for the same code. A function may be nil. No function may read a value of the frame, since the
// value would then be guarded.
type Steps struct {
	Line        func(depth int, function, file string, line int) // called when another line starts
	Instruction func(depth int, text, stack string)              // called before the instruction runs
	Node        func(node, function, file string, at bytecode.Position)
	// Expression returns the text at a position. If it is set, the translation notes what makes sizes constants.
	Expression func(file string, at bytecode.Position) string

	frame *InstructionTranslator // frame of the last reported line
	line  int32
}

func (s *Steps) step(tx *InstructionTranslator, inst *bytecode.Instruction) {
	if tx.hidden {
		return
	}
	if s.Line != nil && inst.Pos.Known() && (tx != s.frame || inst.Pos.Line != s.line) {
		s.frame, s.line = tx, inst.Pos.Line
		s.Line(tx.depth, tx.d.code.Name, tx.d.code.Filename, int(inst.Pos.Line))
	}
	if s.Instruction != nil {
		consts := func(i int) string {
			if i < len(tx.d.consts) {
				return tx.out.constText(tx.d.consts[i])
			}
			return ""
		}
		stack := make([]string, len(tx.stack))
		for i, v := range tx.stack {
			stack[i] = tx.out.glance(v)
		}
		s.Instruction(tx.depth, bytecode.Text(tx.d.code, inst, consts), "["+strings.Join(stack, ", ")+"]")
	}
}

// longestGlance is the length to which the text of a constant is cut.
const longestGlance = 60

// glance describes a tracker without realizing a lazy value.
func (o *OutputGraph) glance(v variables.VariableTracker) string {
	switch x := v.(type) {
	case nil:
		return "NULL"
	case *variables.LazyVariable:
		if x.Realized() {
			return o.glance(x.Real())
		}
	case *variables.ConstantVariable:
		text := o.constText(x.Value)
		if len(text) > longestGlance {
			text = text[:longestGlance] + "..."
		}
		return x.Kind() + "(" + text + ")"
	case *variables.TensorVariable:
		return x.Kind() + "(" + x.Node.Name + ")"
	}
	if src := v.Source(); src != nil {
		return v.Kind() + "(" + src.Name() + ")"
	}
	return v.Kind()
}

// graphSizes returns a text with one line for each value of the graph: its sizes, dtype and device, if the rules for
// sizes yield them. Lines for the symbols in these sizes follow. graphSizes may start a new sizeSession, so it must be
// called only when the result is complete.
func (o *OutputGraph) graphSizes() string {
	var out strings.Builder
	env, shown := o.world.Env(), &symbolLister{}
	for _, n := range o.graph.Nodes() {
		switch v := o.byRule(n).(type) {
		case *shapes.Tensor:
			var sizes []string
			for _, d := range v.Shape {
				d = env.Simplify(d)
				env.Write(d, shown)
				sizes = append(sizes, env.Text(d))
			}
			text := strings.Join(sizes, ", ")
			if len(sizes) == 1 {
				text += ","
			}
			fmt.Fprintf(&out, "%s: (%s) %s %s\n", n.Name, text, v.Dtype, v.Device)
		case shapes.Int:
			s := env.Simplify(v.Size)
			env.Write(s, shown)
			fmt.Fprintf(&out, "%s: int %s\n", n.Name, env.Text(s))
		default:
			fmt.Fprintf(&out, "%s: not known\n", n.Name)
		}
	}
	slices.Sort(shown.found)
	for _, s := range slices.Compact(shown.found) {
		fmt.Fprintf(&out, "%s = %s\n", env.Info(s).Name, o.symbolText(s))
	}
	return out.String()
}

// symbolText describes what a symbol represents and its value in the call that is translated.
func (o *OutputGraph) symbolText(s sym.Symbol) string {
	at := o.symbols.dims[s]
	value := "computed at run time"
	if n, ok := o.world.Env().Hint(o.world.Env().Symbol(s)); ok {
		value = fmt.Sprintf("%d in this call", n)
	}
	switch {
	case at.src != nil:
		return at.src.Name() + ", " + value
	case at.node == nil:
		return value
	case o.world.SymbolOf(s).Node == at.node:
		return at.node.Name + ", " + value
	case at.item >= 0:
		return fmt.Sprintf("%s[%d].size()[%d], %s", at.node.Name, at.item, at.dim, value)
	}
	return fmt.Sprintf("%s.size()[%d], %s", at.node.Name, at.dim, value)
}
