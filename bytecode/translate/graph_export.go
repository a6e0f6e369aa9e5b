package translate

import (
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
)

// A translation for export (python/godynamo/_user/program.py) is called again with FakeTensors, by torch.export. The
// record of the translation says how to call the transformed function, and which sizes its graph holds for.

// Exported is the record of a translation for export. Its texts are Python expressions with the names of the guards'
// text.
type Exported struct {
	Extras  []string       // the parameters of the transformed function that follow the slots
	Tensors []StaticTensor // the tensors outside of modules
	Fixed   []FixedValue   // the sizes and ints that are constants
}

// StaticTensor is a tensor of the frame. Dims is the mask of the dimensions whose sizes are constants.
type StaticTensor struct {
	Text string
	Dims uint64
}

// FixedValue is a size or an int that the translation compares with a constant, and the line that needs the constant.
type FixedValue struct {
	Text  string
	Value int64
	Line  guards.UserLine
}

// mayExport returns a graph break if other code can see an effect of a translation for export. Its exported program has
// the graph's effects only.
func (o *OutputGraph) mayExport() error {
	if !o.opts.Exporting {
		return nil
	}
	for _, e := range o.events {
		if e.effect() {
			return &exc.Unsupported{Code: exc.StoreUnsupported, Stack: e.chain.stack(),
				Context: "an effect that other code can see, which an exported program cannot have"}
		}
	}
	return nil
}

// exported returns the record of a translation for export. order is that of extraOrder.
func (o *OutputGraph) exported(m *guards.CheckFunctionManager, extras []guards.Source, order []int) *Exported {
	if !o.opts.Exporting {
		return nil
	}
	out := &Exported{}
	for _, e := range order {
		out.Extras = append(out.Extras, m.TextOf(extras[e]))
	}
	for _, t := range o.inputs {
		if !t.Source().GuardSource().IsNNModule() {
			out.Tensors = append(out.Tensors, StaticTensor{m.TextOf(t.Source()), o.tensorArgs[t].StaticSizes})
		}
	}
	env := o.world.Env()
	for s, at := range o.symbols.dims {
		if at.src == nil {
			continue
		}
		if r, ok := env.FixedBy(sym.Symbol(s)); ok {
			v := FixedValue{Text: m.TextOf(at.src), Value: env.Info(sym.Symbol(s)).Hint}
			v.Line, _ = r.Why.(guards.UserLine)
			out.Fixed = append(out.Fixed, v)
		}
	}
	return out
}
