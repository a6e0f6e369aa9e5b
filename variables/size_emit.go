package variables

import (
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/fxgraph/sym"
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
	sym.Mul: opcode.NB_MULTIPLY, sym.FloorDiv: opcode.NB_FLOOR_DIVIDE, sym.Mod: opcode.NB_REMAINDER}

// extremes maps the operators that are calls to the name of the builtin.
var extremes = map[sym.Op]string{sym.Max: "max", sym.Min: "min"}

func (w *sizeWriter) Begin(op sym.Op) {
	if name, ok := extremes[op]; ok {
		w.e.PushNull()
		w.e.LoadConst(w.world.Builtin(name))
	}
}

func (w *sizeWriter) Const(n int64) { w.e.LoadInt(int(n)) }

func (w *sizeWriter) Symbol(s sym.Symbol) {
	if err := w.e.Load(w.world.SymbolOf(s)); err != nil && w.err == nil {
		w.err = err
	}
}

func (w *sizeWriter) Apply(op sym.Op) {
	if _, ok := extremes[op]; ok {
		w.e.Call(2, nil)
		return
	}
	w.e.BinaryOp(sizeOps[op])
}
