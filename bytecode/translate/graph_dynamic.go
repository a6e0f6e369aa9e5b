package translate

import (
	"strings"

	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/guards"
)

// dynamicText is the text of the log artifact `dynamic`: the symbols of a finished translation, the reasons why some of
// them are constants, and the conditions that the translation recorded, with the user's lines. Conditions that others
// imply are included.
func (o *OutputGraph) dynamicText() string {
	env := o.world.Env()
	var lines []string
	for s, at := range o.symbols.dims {
		info := env.Info(sym.Symbol(s))
		switch {
		case at.src == nil:
			lines = append(lines, info.Name+": known at run time only")
		case info.Hinted:
			lines = append(lines, info.Name+" = "+itoa(int(info.Hint))+": "+at.src.Name())
		default:
			lines = append(lines, info.Name+": "+at.src.Name())
		}
	}
	lines = append(lines, o.fixersText()...)
	for _, r := range env.All() {
		at := "an unknown line"
		line, known := r.Why.(guards.UserLine)
		if known = known && line.File != ""; known {
			at = line.File + ":" + itoa(line.Line)
		}
		text := o.comparison(r.Cond)
		switch {
		case r.Limit:
			text = "too many conditions (" + itoa(sym.MaxOfSymbol) + " on one symbol or " + itoa(sym.MaxInAll) +
				" in all), so " + text + "; most of them from " + at
		case known:
			text += " (" + at + ")"
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}

var relTexts = map[sym.Relation]string{sym.EQ: " == ", sym.NE: " != ", sym.GE: " >= ", sym.LE: " <= "}

// comparison is a condition as text, such as s0 >= 2.
func (o *OutputGraph) comparison(c sym.Cond) string {
	env := o.world.Env()
	left, rel, right, ok := env.Sides(c)
	if !ok {
		return env.CondText(c)
	}
	return env.Text(left) + relTexts[rel] + env.Text(right)
}
