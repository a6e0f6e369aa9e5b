package variables

import (
	"github.com/godynamo/godynamo/internal/exc"
)

// maxRows is the largest number of items over which a loop over an array is captured. Each item is an operation.
const maxRows = 1000

// ArrayIterator iterates over an array: it reads an item when the loop reaches it, as CPython's iterator does. The loop
// may change items that it has not reached.
type ArrayIterator struct {
	Base
	array    *ArrayVariable
	index, n int
}

// iter returns iter(a).
func (a *ArrayVariable) iter(tx Translator) (VariableTracker, error) {
	n, err := a.Len(tx)
	if err != nil {
		return nil, unsupported(exc.IterUnsupported, "iteration over the %s", a.describe())
	}
	if n > maxRows {
		return nil, unsupported(exc.TooLarge, "an array of more than %d rows", maxRows)
	}
	return &ArrayIterator{array: a, n: n}, nil
}

// Kind implements VariableTracker.
func (*ArrayIterator) Kind() string { return "ArrayIterator" }

// Children implements Container.
func (i *ArrayIterator) Children() []VariableTracker { return []VariableTracker{i.array} }

// Next implements Iterator.
func (i *ArrayIterator) Next(tx Translator) (VariableTracker, bool, error) {
	if Materialized(i) {
		return nil, false, unsupported(exc.IterUnsupported, "an iterator that other code holds")
	}
	if i.index >= i.n {
		return nil, false, nil
	}
	i.index++
	v, err := i.array.GetItem(tx, IntConst(tx, i.index-1))
	return v, err == nil, err
}

// Snapshot implements Snapshotter.
func (i *ArrayIterator) Snapshot() VariableTracker {
	return &ArrayIterator{array: i.array, index: i.index, n: i.n}
}

// Reconstruct implements Reconstructer. An iterator at the end of an array is like an exhausted one, since no array
// grows.
func (i *ArrayIterator) Reconstruct(e Emitter) error {
	if err := e.Load(i.array); err != nil {
		return err
	}
	e.GetIter()
	e.Copy(1)
	e.LoadMethod("__setstate__")
	e.LoadInt(i.index)
	e.CallMethod(1, nil)
	e.PopTop()
	return nil
}
