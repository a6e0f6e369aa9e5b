package translate

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// An int or a float is a constant at first. Once its place has held a second value, it becomes a symbol (an int) or a
// value computed at run time (a float, or a number of numpy). Its guard then checks only the type and the conditions
// that the translation records. An int becomes a constant again where the program, or a part of the translator that
// supports no symbols, needs its value. A float or a number of numpy becomes a constant for the whole translation if an
// attempt breaks the graph at it.

// Varied has the places whose values have differed between the calls of a frame, by the names of their Sources.
type Varied struct {
	Numbers map[string]bool   // ints, floats and numbers of numpy
	Dims    map[string]uint64 // masks of the dimensions of tensors
}

// varies reports whether the int or float at a place is not a constant.
func (o *OutputGraph) varies(obj py.Object, src guards.Source) bool {
	switch src.GuardSource() {
	case guards.SourceConstant, guards.SourceRandomValue, guards.SourcePolyfill:
		return false
	}
	if !o.symbolizes() {
		return false
	}
	if n, ok := py.AsInt(obj); ok && obj.Kind() == py.Int {
		if rules := o.rules(src, []int64{n}, false); rules != nil && (rules[0].static || rules[0].symbolic()) {
			return !rules[0].static
		}
	}
	if o.opts.Listed.Only {
		return false
	}
	_, argument := src.(*guards.LocalSource)
	argument = argument || o.opts.Exporting && src.GuardSource() == guards.SourceLocal
	return argument && o.opts.Dynamic || o.frame.Varied.Numbers[src.Name()] || obj.Kind() == py.Int && o.fromSizes(src)
}

// varied returns the tracker of an int or a float that is not a constant, or nil for all other values.
func (o *OutputGraph) varied(obj py.Object, src guards.Source) variables.VariableTracker {
	kind := obj.Kind()
	if kind != py.Int && kind != py.Float || !o.varies(obj, src) {
		return nil
	}
	v, known := o.symbols.passed[src.Name()]
	if known { // guards may have been undone since; see Tentative
		o.AddGuards(guards.TypeMatch(src, o.Const(obj.Type())))
		return v
	}
	if v = o.newVaried(obj, src); v == nil {
		return nil
	}
	if o.symbols.passed == nil {
		o.symbols.passed = map[string]variables.VariableTracker{}
	}
	o.symbols.passed[src.Name()] = v
	if o.frame.hasPassed = o.frame.hasPassed || o.fromSizes(src); !o.fromSizes(src) {
		o.frame.hasVaried = true
	}
	return v
}

// variedScalar returns the tracker of a number of numpy that is not a constant, or nil for all other values.
func (tx *InstructionTranslator) variedScalar(obj py.Object, src guards.Source) variables.VariableTracker {
	o := tx.out
	if obj.Kind() != py.Other || o.opts.FixInts || o.opts.FixFloats || !o.frame.Varied.Numbers[src.Name()] {
		return nil
	}
	if v, known := o.symbols.passed[src.Name()]; known {
		o.AddGuards(guards.TypeMatch(src, o.Const(obj.Type()))) // guards may have been undone since; see Tentative
		return v
	}
	v, ok := py.Answered(variables.NewPassedScalar(tx, obj, src))
	if !ok || v == nil {
		return nil
	}
	if o.symbols.passed == nil {
		o.symbols.passed = map[string]variables.VariableTracker{}
	}
	o.symbols.passed[src.Name()] = v
	o.frame.hasVaried = true
	return v
}

func (o *OutputGraph) newVaried(obj py.Object, src guards.Source) variables.VariableTracker {
	switch {
	case obj.Kind() == py.Int && o.opts.FixInts || obj.Kind() == py.Float && o.opts.FixFloats:
	case obj.Kind() == py.Int && o.forCompiler():
		if n, _ := py.AsInt(obj); n == 0 || n == 1 || !o.takesSymbols() && !o.opts.Dynamic {
			return nil
		}
		return o.intSymbol(obj, src)
	case obj.Kind() == py.Int && (o.backend.Inline() || o.opts.AnySize):
		return o.intSymbol(obj, src)
	case obj.Kind() == py.Float && o.TakesNumbers() && !o.log.floats.constant[src.Name()]:
		o.AddGuards(guards.TypeMatch(src, o.Const(obj.Type())))
		return variables.NewPassed(obj, src)
	}
	return nil
}

// floatLog records which floats are constants, since an earlier attempt broke the graph at them.
type floatLog struct {
	constant map[string]bool
	// tried has, for each step at which an attempt broke the graph, the places that became constants for it.
	tried map[int][]string
}

// maxFloatTries bounds the attempts with floats as constants.
const maxFloatTries = 8

// withConstantFloats reports whether another attempt with constants in place of floats may get past the graph break at
// this step. looks is the length of World.FloatLooks before the step. If the constants of an earlier attempt for this
// step did not help, they are floats again in the next attempt.
func (o *OutputGraph) withConstantFloats(step, looks int) bool {
	l := &o.log.floats
	if places, again := l.tried[step]; again {
		for _, p := range places {
			delete(l.constant, p)
		}
		return false
	}
	if len(l.tried) >= maxFloatTries {
		return false
	}
	var places []string
	for _, p := range o.world.FloatLooks[looks:] {
		if !l.constant[p] {
			places = append(places, p)
		}
	}
	if len(places) == 0 {
		return false
	}
	if l.tried == nil {
		l.constant, l.tried = map[string]bool{}, map[int][]string{}
	}
	l.tried[step] = places
	for _, p := range places {
		l.constant[p] = true
	}
	return true
}

// broken is a translation with a graph break, and the step of the break.
type broken struct {
	result *Result
	step   int
}

// mayBeBetter reports whether constants in place of ints and floats that differ between calls may lead to a better
// translation: one without the error, or without the graph break. A graph that is compiled as a whole is not compiled
// a second time for that.
func (f *Frame) mayBeBetter(r *Result, err error, b Backend) bool {
	if !f.hasVaried && !f.hasPassed {
		return false
	}
	switch e := err.(type) {
	case nil:
		return f.hasVaried && len(r.Breaks) > 0 && b.Inline()
	case *exc.Unsupported, *unbreakable:
		return true
	case *exc.SkipFrame:
		return !e.Later
	}
	return false
}

// orBetter returns the translation with constants if it has no graph break, or breaks later than b. log has no break if
// the program raises first.
func (b *broken) orBetter(r *Result, err error, log *SpeculationLog) *Result {
	step := log.earliest()
	if err == nil && (len(r.Breaks) == 0 || step < 0 || step > b.step) {
		return r
	}
	return b.result
}

// earliest returns the first step at which an attempt broke the graph, or -1.
func (l *SpeculationLog) earliest() int {
	first := -1
	for step := range l.entries {
		if first < 0 || step < first {
			first = step
		}
	}
	return first
}
