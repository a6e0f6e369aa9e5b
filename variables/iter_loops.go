package variables

import (
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// The iterator of a `for` statement over a sequence, or over enumerate or zip of sequences, is on the stack of its
// frame only. So a frame that leaves the transformed code in the middle of the loop (translate/resume_side_exit.go) can
// go on with another iterator at the same position, and the captured loop keeps its own.

// OnlyLooped records that only a `for` statement over iterable holds the iterator it.
func OnlyLooped(tx Translator, it, iterable VariableTracker) {
	if s, ok := it.(*SequenceIterator); ok && iteratesAnew(tx, iterable) {
		s.looped = true
	}
}

// OnlyLoopedCall does the same for the result of a call that a `for` statement iterates over.
func OnlyLoopedCall(tx Translator, it, fn VariableTracker, args []VariableTracker) {
	c, ok := it.(*CallIterator)
	if l, lazy := fn.(*LazyVariable); lazy {
		fn = l.Real()
	}
	b, builtin := fn.(*BuiltinVariable)
	if !ok || !builtin || b.name != "enumerate" && b.name != "zip" || len(args) < len(c.subs) {
		return
	}
	c.looped = true
	for i, sub := range c.subs {
		OnlyLooped(tx, sub.(VariableTracker), args[i])
	}
}

// iteratesAnew reports whether each iteration over v has an iterator of its own, which nothing else can hold.
func iteratesAnew(tx Translator, v VariableTracker) bool {
	if l, ok := v.(*LazyVariable); ok {
		v = l.Real()
	}
	if o, ok := v.(*ObjectVariable); ok {
		s, w := tx.Scope(), tx.World()
		iter, found := s.TypeLookup(o.Class, "__iter__")
		for _, torchs := range []py.Object{w.ModuleList, w.Sequential} {
			if theirs, _ := s.TypeLookup(torchs, "__iter__"); found && iter == theirs {
				return true
			}
		}
		return false
	}
	_, iterator := v.(Iterator)
	_, sequence := v.(Sequence)
	return sequence && !iterator
}

// LoopCopy returns an iterator at the same position, and the containers over which it iterates. It fails unless only a
// `for` statement holds the iterator.
func LoopCopy(tx Translator, it Iterator) (copied VariableTracker, over []VariableTracker, err error) {
	switch x := it.(type) {
	case *SequenceIterator:
		if c := *x; x.looped && !Materialized(x) {
			c.Base = Base{}
			err := c.Settle(tx)
			return &c, c.Children(), err
		}
	case *CallIterator:
		if c := *x; x.looped && !Materialized(x) {
			c.Base, c.subs = Base{}, make([]Iterator, len(x.subs))
			for i, sub := range x.subs {
				own, children, err := LoopCopy(tx, sub)
				if err != nil {
					return nil, nil, err
				}
				c.subs[i], over = own.(Iterator), append(over, children...)
			}
			return &c, append(over, c.args...), nil
		}
	}
	return nil, nil, unsupported(exc.Reconstruct, "an iterator in the middle of a loop")
}

// LoopsAnew reports whether a copy by LoopCopy still stands for the iterator: its containers have not changed since.
func LoopsAnew(copied VariableTracker) bool {
	switch x := copied.(type) {
	case *SequenceIterator:
		c, watches := x.owner.(watched)
		if !watches {
			return true
		}
		size, version, _ := c.changes()
		return size == x.size && version == x.version
	case *CallIterator:
		for _, sub := range x.subs {
			if !LoopsAnew(sub.(VariableTracker)) {
				return false
			}
		}
	}
	return true
}
