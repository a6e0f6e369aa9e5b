package translate

import (
	"slices"

	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/variables"
)

// An int rounded from a float of sizes, such as int(math.sqrt(x.shape[0])), is an input of a compiler's graph, with a
// symbol of its own in torch's ShapeEnv. Each call computes its value in Python, in the code before the graph. If the
// graph computed it, compiled code would have to round as Python does, and conditions on SymFloats could not be read
// back. A condition that torch records on such a symbol becomes a guard on the expression, which guards compute.

// roundedNumber returns the number of a rounded float. If it has none yet, it gets one if `add` is set.
func (o *OutputGraph) roundedNumber(s sym.Size, add bool) (number int, ok bool) {
	if i := slices.Index(o.symbols.rounded, s); i >= 0 {
		return i, true
	}
	if !add {
		return 0, false
	}
	o.symbols.rounded = append(o.symbols.rounded, s)
	return len(o.symbols.rounded) - 1, true
}

// Rounded implements sym.RoundingWriter.
func (w *nodeWriter) Rounded(s sym.Size) bool {
	o := w.out
	if _, hinted := o.world.Env().Hint(s); !hinted || !o.forCompiler() {
		return false
	}
	if n := o.symbols.nodeOf[s]; n != nil {
		w.stack = append(w.stack, n)
		return true
	}
	v := variables.NewSize(w.tx, s)
	if _, varies := v.(*variables.SymNodeVariable); !varies {
		return false
	}
	a, err := o.sizeInput(w.tx, v.(*variables.SymNodeVariable))
	if err != nil && w.err == nil {
		w.err = err
	}
	w.stack = append(w.stack, a)
	return true
}

// Rounded implements sym.RoundingWriter.
func (w *expressionWriter) Rounded(s sym.Size) bool {
	number, ok := w.out.roundedNumber(s, w.input)
	if ok {
		w.stack = append(w.stack, w.s.Tuple(w.s.Str("r"), w.s.Int(int64(number))))
	}
	return ok
}

// roundedIn returns the rounded floats in an expression.
func (o *OutputGraph) roundedIn(s sym.Size) []sym.Size {
	w := &roundedLister{}
	o.world.Env().Write(s, w)
	return w.rounded
}

// roundedLister implements sym.RoundingWriter.
type roundedLister struct {
	symbolLister
	rounded []sym.Size
}

func (w *roundedLister) Rounded(s sym.Size) bool {
	w.rounded = append(w.rounded, s)
	return true
}
