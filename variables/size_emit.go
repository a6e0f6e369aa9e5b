package variables

import (
	"strings"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/pyhook/py"
)

// EmitSize writes the code that computes a size from its symbols.
func EmitSize(w *World, e Emitter, s sym.Size) error {
	out := &sizeWriter{world: w, e: e}
	w.Env().Write(s, out)
	return out.err
}

// sizeWriter implements sym.Writer.
type sizeWriter struct {
	world *World
	e     Emitter
	err   error
}

var sizeOps = map[sym.Op]opcode.BinaryOp{sym.Add: opcode.NB_ADD, sym.Sub: opcode.NB_SUBTRACT,
	sym.Mul: opcode.NB_MULTIPLY, sym.FloorDiv: opcode.NB_FLOOR_DIVIDE, sym.Mod: opcode.NB_REMAINDER,
	sym.FloatAdd: opcode.NB_ADD, sym.FloatSub: opcode.NB_SUBTRACT, sym.FloatMul: opcode.NB_MULTIPLY,
	sym.FloatDiv: opcode.NB_TRUE_DIVIDE, sym.FloatPow: opcode.NB_POWER}

var sizeComparisons = map[sym.Op]opcode.CompareOp{sym.FloatLt: opcode.CMP_LT, sym.FloatLe: opcode.CMP_LE,
	sym.FloatEq: opcode.CMP_EQ}

// SizeFunctions maps each operator that is a function call to its function: a builtin or a function of math.
var SizeFunctions = map[sym.Op]string{sym.Max: "max", sym.Min: "min", sym.FloatMax: "max", sym.FloatMin: "min",
	sym.ToFloat: "float", sym.Sqrt: "math.sqrt", sym.Floor: "math.floor", sym.Ceil: "math.ceil", sym.Trunc: "int",
	sym.Round: "round"}

// SizeFunction returns the function of an operator in SizeFunctions.
func SizeFunction(w *World, op sym.Op) (py.Object, error) {
	name, math := strings.CutPrefix(SizeFunctions[op], "math.")
	if !math {
		return w.Builtin(name), nil
	}
	m, err := w.scope.Import("math")
	if err != nil {
		return m, err
	}
	return w.scope.GetAttr(m, name)
}

func (w *sizeWriter) Begin(op sym.Op) {
	if _, ok := SizeFunctions[op]; ok {
		fn, err := SizeFunction(w.world, op)
		if err != nil {
			w.err = err
			return
		}
		w.e.PushNull()
		w.e.LoadConst(fn)
	}
}

func (w *sizeWriter) Const(n int64) { w.e.LoadInt(int(n)) }

func (w *sizeWriter) FloatConst(f float64) { w.e.LoadConst(w.world.scope.Float(f)) }

func (w *sizeWriter) Symbol(s sym.Symbol) {
	if err := w.e.Load(w.world.SymbolOf(s)); err != nil && w.err == nil {
		w.err = err
	}
}

func (w *sizeWriter) Apply(op sym.Op) {
	if _, ok := SizeFunctions[op]; ok {
		n := 2
		if op.Unary() {
			n = 1
		}
		w.e.Call(n, nil)
		return
	}
	if compare, ok := sizeComparisons[op]; ok {
		w.e.CompareOp(compare)
		return
	}
	w.e.BinaryOp(sizeOps[op])
}
