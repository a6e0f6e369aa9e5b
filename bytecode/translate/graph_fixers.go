package translate

import (
	"runtime"
	"slices"
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/fxgraph/shapes"
	"github.com/godynamo/godynamo/fxgraph/sym"
)

// The log `dynamic` shows what made a size a constant: the user's expression, and the translator's functions that
// needed the value. Both are noted while the fact is recorded, since a record has only the user's line.

// noteFixers makes the translation note what makes sizes constants, if the log is on.
func (o *OutputGraph) noteFixers() {
	if o.opts.Steps == nil || o.opts.Steps.Expression == nil {
		return
	}
	o.symbols.fixers = map[sym.Symbol]string{}
	o.world.Env().OnFixed = func(s sym.Symbol) { o.symbols.fixers[s] = o.fixer() }
}

// fixer describes the place that needs the value of a size.
func (o *OutputGraph) fixer() string {
	text := "the end of the translation"
	if at := o.position(); at != nil && at.inst != nil && at.inst.Pos.Known() {
		file := at.d.code.Filename
		text = file + ":" + itoa(int(at.inst.Pos.Line))
		if code := o.opts.Steps.Expression(file, at.inst.Pos); code != "" {
			text = code + " (" + text + ")"
		}
	}
	switch {
	case o.log.fixed[o.steps]:
		text += ", since with a symbol the graph breaks there: " + o.log.because.Error()
	case o.log.fixesOpaque:
		text += ", in an attempt without values computed from sizes, since the graph broke: " + o.log.because.Error()
	}
	names := callers()
	if o.sizes != nil && o.sizes.follows != nil {
		text += ", by the rule for " + o.sizes.follows.Target.Text
	} else if n := o.withoutRule(); n != nil && slices.Contains(names, "needOf") {
		text += ", since " + n.Target.Text + " has no rule for these operands"
	}
	return text + ", in " + strings.Join(names, " < ")
}

// withoutRule returns the first operation of the graph whose result's sizes are unknown.
func (o *OutputGraph) withoutRule() *fxgraph.Node {
	if o.sizes == nil {
		return nil
	}
	for _, n := range o.graph.Nodes()[:o.sizes.done] {
		if n.Target.Text == "operator.setitem" { // it has no result
			continue
		}
		_, unknown := o.sizes.values[n].(shapes.Unknown)
		if unknown && !n.State && !o.isNumber(n) && (n.Op == fxgraph.CallFunction || n.Op == fxgraph.CallMethod) {
			return n
		}
	}
	return nil
}

// conduits lists functions that only pass on another function's request for the value of a size. The log leaves them
// out.
var conduits = []string{"Decide", "Fixed", "Realize", "RealizeAll", "MustRealize", "Specialise", "SpecialiseAll",
	"decide", "fixer", "fixSizes", "fixWithin"}

// longestCallers is the number of the translator's functions that the log names.
const longestCallers = 6

// callers returns the names of the translator's functions that are running, innermost first, without conduits.
func callers() []string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	var out []string
	for len(out) < longestCallers {
		f, more := frames.Next()
		_, name, _ := strings.Cut(f.Function[strings.LastIndexByte(f.Function, '/')+1:], ".")
		if i := strings.LastIndexByte(name, ')'); i >= 0 {
			name = name[i+2:]
		}
		if !strings.Contains(f.Function, "/fxgraph/sym.") && !strings.HasPrefix(name, "noteFixers") &&
			!slices.Contains(conduits, name) {
			out = append(out, name)
		}
		if !more {
			break
		}
	}
	return out
}

// fixersText returns a line for each symbol that is a constant.
func (o *OutputGraph) fixersText() []string {
	var lines []string
	env := o.world.Env()
	for i := range env.Len() {
		s := sym.Symbol(i)
		value, fixed := env.Simplify(env.Symbol(s)).Const()
		by, noted := o.symbols.fixers[s]
		if !fixed || !noted {
			continue
		}
		place := "an int"
		if src := o.symbols.dims[s].src; src != nil {
			place = src.Name()
		}
		lines = append(lines, place+" is the constant "+itoa(int(value))+", needed by "+by)
	}
	return lines
}
