package variables

import (
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// CallIterator represents a zip, enumerate, map or filter object. Each step advances its argument iterators.
type CallIterator struct {
	Base
	fn   VariableTracker // the builtin, which Reconstruct calls
	args []VariableTracker
	subs []Iterator
	kws  []Kw
	next func(tx Translator, it *CallIterator) (VariableTracker, bool, error)
	n    int // enumerate's counter
	// looped is set if only a `for` statement holds the iterator; see LoopCopy.
	looped bool
}

// Kind implements VariableTracker.
func (*CallIterator) Kind() string { return "IteratorVariable" }

// Children implements Container.
func (c *CallIterator) Children() []VariableTracker {
	out := append([]VariableTracker(nil), c.args...)
	for _, s := range c.subs {
		out = append(out, s.(VariableTracker))
	}
	return out
}

// PythonType implements Typed. The class is the builtin that made the iterator.
func (c *CallIterator) PythonType(tx Translator) (py.Object, error) {
	if b, ok := c.fn.(*BuiltinVariable); ok && py.IsSubtype(b.Fn.Type(), tx.World().TypeType) {
		return b.Fn, nil
	}
	return py.Object{}, unsupported(exc.CallUnsupported, "type of %s", c.Kind())
}

// Next implements Iterator.
func (c *CallIterator) Next(tx Translator) (VariableTracker, bool, error) {
	if Materialized(c) {
		return nil, false, unsupported(exc.IterUnsupported, "an iterator that other code holds")
	}
	return c.next(tx, c)
}

// Snapshot implements Snapshotter.
func (c *CallIterator) Snapshot() VariableTracker {
	s := *c
	s.Base = Base{}
	return &s
}

// Reconstruct implements Reconstructer: it calls the builtin with the partly consumed iterators.
func (c *CallIterator) Reconstruct(e Emitter) error {
	e.PushNull()
	if err := e.Load(c.fn); err != nil {
		return err
	}
	n := 0
	for _, a := range c.args {
		if err := e.Load(a); err != nil {
			return err
		}
		n++
	}
	for _, s := range c.subs {
		if err := e.Load(s.(VariableTracker)); err != nil {
			return err
		}
		n++
	}
	var names []string
	if c.n != 0 {
		e.LoadInt(c.n)
		names = []string{"start"}
		n++
	}
	for _, kw := range c.kws {
		if err := e.Load(kw.Value); err != nil {
			return err
		}
		names = append(names, kw.Name)
		n++
	}
	e.Call(n, names)
	return nil
}

func iterators(tx Translator, vs []VariableTracker) ([]Iterator, error) {
	out := make([]Iterator, len(vs))
	for i, v := range vs {
		it, err := Iter(tx, v)
		if err != nil {
			return nil, err
		}
		sub, ok := it.(Iterator)
		if !ok {
			return nil, unsupported(exc.IterUnsupported, "iteration over %s", Describe(tx, v))
		}
		out[i] = sub
	}
	return out, nil
}

func builtinOf(tx Translator, name string) VariableTracker {
	return NewBuiltin(tx.World().Builtin(name), name, nil)
}

func builtinEnumerate(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	start := 0
	switch {
	case len(args) == 2 && len(kwargs) == 0:
		n, ok := ConstInt(tx, MustRealize(tx, args[1]))
		if !ok {
			return nil, unsupported(exc.CallUnsupported, "enumerate from an unknown start")
		}
		start = n
	case len(args) == 1 && len(kwargs) == 1 && kwargs[0].Name == "start":
		n, ok := ConstInt(tx, MustRealize(tx, kwargs[0].Value))
		if !ok {
			return nil, unsupported(exc.CallUnsupported, "enumerate from an unknown start")
		}
		start = n
	case len(args) != 1 || len(kwargs) > 0:
		return nil, unsupported(exc.CallUnsupported, "enumerate")
	}
	subs, err := iterators(tx, args[:1])
	if err != nil {
		return nil, err
	}
	return &CallIterator{fn: builtinOf(tx, "enumerate"), subs: subs, n: start,
		next: func(tx Translator, it *CallIterator) (VariableTracker, bool, error) {
			v, ok, err := it.subs[0].Next(tx)
			if err != nil || !ok {
				return nil, false, err
			}
			it.n++
			return NewTuple([]VariableTracker{IntConst(tx, it.n-1), v}, nil), true, nil
		}}, nil
}

func builtinZip(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if it := zipOfSizes(tx, args, kwargs); it != nil {
		return it, nil
	}
	return constantZip(tx, args, kwargs)
}

// constantZip returns zip(*args). The numbers of rows of tensors become constants.
func constantZip(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	strict, err := isStrict(tx, "zip", kwargs)
	if err != nil {
		return nil, err
	}
	subs, err := iterators(tx, args)
	if err != nil {
		return nil, err
	}
	return &CallIterator{fn: builtinOf(tx, "zip"), subs: subs, kws: kwargs,
		next: func(tx Translator, it *CallIterator) (VariableTracker, bool, error) {
			if len(it.subs) == 0 {
				return nil, false, nil
			}
			items := make([]VariableTracker, len(it.subs))
			for i, s := range it.subs {
				v, ok, err := s.Next(tx)
				if err != nil {
					return nil, false, err
				}
				if !ok {
					if strict {
						return nil, false, strictEnd(tx, "zip", it.subs, i)
					}
					return nil, false, nil
				}
				items[i] = v
			}
			return NewTuple(items, nil), true, nil
		}}, nil
}

// isStrict returns the keyword strict of zip or map.
func isStrict(tx Translator, name string, kwargs []Kw) (bool, error) {
	strict := false
	for _, kw := range kwargs {
		t, err := Truth(tx, kw.Value)
		if err != nil || kw.Name != "strict" {
			return false, unsupported(exc.CallUnsupported, "%s", name)
		}
		strict = t
	}
	return strict, nil
}

// unevenEnd raises the ValueError of zip or map with strict=True if the i-th iterator is shorter or longer than
// the ones before it.
func unevenEnd(tx Translator, name string, i int, how string) error {
	others := " "
	if i > 1 {
		others = "s 1-"
	}
	return RaiseText(tx, "ValueError", name+"() argument "+itoa(i+1)+" is "+how+" than argument"+others+itoa(i))
}

// strictEnd checks the other iterators of zip(strict=True) or map(strict=True) when the i-th iterator has ended.
func strictEnd(tx Translator, name string, subs []Iterator, i int) error {
	if i > 0 {
		return unevenEnd(tx, name, i, "shorter")
	}
	for i, s := range subs[1:] {
		_, more, err := s.Next(tx)
		if err != nil {
			return err
		}
		if more {
			return unevenEnd(tx, name, i+1, "longer")
		}
	}
	return nil
}

func builtinMap(tx Translator, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	if len(args) < 2 || len(kwargs) > 0 && tx.World().mapIsStrict != py.Bool(true) {
		return nil, nil
	}
	strict, err := isStrict(tx, "map", kwargs)
	if err != nil {
		return nil, err
	}
	fn, err := Realize(tx, args[0])
	if err != nil {
		return nil, err
	}
	subs, err := iterators(tx, args[1:])
	if err != nil {
		return nil, err
	}
	return &CallIterator{fn: builtinOf(tx, "map"), args: []VariableTracker{fn}, subs: subs, kws: kwargs,
		next: func(tx Translator, it *CallIterator) (VariableTracker, bool, error) {
			items := make([]VariableTracker, len(it.subs))
			for i, s := range it.subs {
				v, ok, err := s.Next(tx)
				if err != nil {
					return nil, false, err
				}
				if !ok && strict {
					return nil, false, strictEnd(tx, "map", it.subs, i)
				}
				if !ok {
					return nil, false, nil
				}
				items[i] = v
			}
			r, err := Call(tx, fn, items, nil)
			return r, err == nil, err
		}}, nil
}

func builtinFilter(tx Translator, a []VariableTracker) (VariableTracker, error) {
	fn, err := Realize(tx, a[0])
	if err != nil {
		return nil, err
	}
	subs, err := iterators(tx, a[1:])
	if err != nil {
		return nil, err
	}
	return &CallIterator{fn: builtinOf(tx, "filter"), args: []VariableTracker{fn}, subs: subs,
		next: func(tx Translator, it *CallIterator) (VariableTracker, bool, error) {
			for {
				v, ok, err := it.subs[0].Next(tx)
				if err != nil || !ok {
					return nil, false, err
				}
				test := v
				if c, ok := fn.(*ConstantVariable); !ok || c.Value != pyNone {
					if test, err = Call(tx, fn, []VariableTracker{v}, nil); err != nil {
						return nil, false, err
					}
				}
				t, err := Truth(tx, test)
				if err != nil {
					return nil, false, asCallBreak(err, "filter")
				}
				if t {
					return v, true, nil
				}
			}
		}}, nil
}
