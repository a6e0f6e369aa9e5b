package translate

import (
	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// backward() of a graph with calls of an autograd.Function runs the program's own backward pass of the function. The
// graph may contain the call if that code has no side effects. To find out, the code is translated where the function
// is called, and what it has captured is removed (Tentative). This is only done in a frame that calls backward():
// the first attempt that finds such a call requests another one.

// customs has the calls of functions with a backward pass of their own.
type customs struct {
	calls map[*fxgraph.Node]*customCall
}

// customCall is such a call.
type customCall struct {
	looked bool // whether its backward pass has been translated, and has no side effects
	writes int  // the program's changes of values that other code may read, before the call
	codes  int  // those of them that may have changed code
	steady func() (bool, error)
}

// customLog is what the attempts to translate a frame know about these calls.
type customLog struct {
	wanted  bool         // whether their backward passes are translated
	effects map[any]bool // the functions, or steps of calls, whose backward pass may have side effects
}

// Custom implements variables.Output.
func (o *OutputGraph) Custom(n *fxgraph.Node, of py.Object, run func() error, steady func() (bool, error)) error {
	c := &customCall{writes: o.visibleWrites(), codes: o.codeWrites(), steady: steady}
	if o.customs.calls == nil {
		o.customs.calls = map[*fxgraph.Node]*customCall{}
	}
	o.customs.calls[n] = c
	log, key := &o.log.customs, any(of)
	if of.IsNull() {
		key = o.steps
	}
	if !log.wanted || log.effects[key] || !o.backend.Inline() || o.bodies > 0 || o.tentative > 0 {
		return nil
	}
	_, seen, _, err := o.Tentative(func() (variables.VariableTracker, error) { return variables.NoneConst(), run() })
	switch err.(type) {
	case nil:
	case *exc.Unsupported, *exc.SkipFrame, *exc.Observed:
		seen = true
	default:
		return err
	}
	if !seen {
		c.looked = true
		return nil
	}
	if log.effects == nil {
		log.effects = map[any]bool{}
	}
	log.effects[key] = true // one attempt for a function, however often it is called
	return &exc.RestartAnalysis{Reason: n.Target.Text + ": its backward pass may have side effects"}
}

// visibleWrites counts the program's changes that code outside of the frames may see.
func (o *OutputGraph) visibleWrites() int { return o.world.Writes - o.world.Own }

// codeWrites counts those that may have changed which code runs.
func (o *OutputGraph) codeWrites() int { return o.visibleWrites() - o.world.Constants }

// withoutEffects reports whether the backward pass of a custom function has no side effects.
func (o *OutputGraph) withoutEffects(n *fxgraph.Node) (bool, error) {
	c, log := o.customs.calls[n], &o.log.customs
	if !log.wanted && o.backend.Inline() {
		log.wanted = true
		return false, &exc.RestartAnalysis{Reason: "backward() after " + n.Target.Text}
	}
	if !c.looked || c.writes == o.visibleWrites() {
		return c.looked, nil
	}
	if c.steady == nil || c.codes != o.codeWrites() {
		return false, nil
	}
	return c.steady()
}
