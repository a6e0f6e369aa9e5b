package variables

import (
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// RealIterator represents an iterator of a builtin type that was passed to the frame, such as that of a loop in which
// the graph has broken. Each step is an effect that advances the real iterator. Its items are read from its memory
// (pyhook/core/guards/iterators.h), relative to its position at the frame's start. So one translation serves each turn
// of a loop whose items are alike.
type RealIterator struct {
	Base
	obj      py.Object
	kind     iteratorKind
	left     int // what C's gd_iterator_left returned at the frame's start
	taken    int // how many items the program has taken
	ended    bool
	strict   bool              // zip(strict=True)
	over     py.Object         // the container, if its items are read
	recorded bool              // whether World.iterated has it
	fn       VariableTracker   // the function of a map or filter
	subs     []VariableTracker // the iterators from which a zip, enumerate, map or filter takes its items
}

// maxTaken is the number of items after which the graph breaks. A long loop that breaks only in its first turn would
// otherwise be unrolled to its end, into a piece that is too large to translate.
const maxTaken = 64

// strictZip is C's GD_STRICT, which gd_iterator_left adds to the number of iterators of a zip(strict=True).
const strictZip = 1 << 16

// iteratorKind says how an iterator's items are found (_translator/facts.py).
type iteratorKind string

const (
	iteratesItems   iteratorKind = "items"   // a list's or a tuple's, forward or backward, a dict's keys or values
	iteratesPairs   iteratorKind = "pairs"   // a dict's items
	iteratesNumbers iteratorKind = "numbers" // a range's
	iteratesCounted iteratorKind = "enumerate"
	iteratesZip     iteratorKind = "zip"
	iteratesMap     iteratorKind = "map"
	iteratesFilter  iteratorKind = "filter"
)

// wrapRealIterator wraps an iterator of a builtin type. It returns no tracker for one whose memory cannot be read.
func wrapRealIterator(w *wrapping) (VariableTracker, []guards.Guard, error) {
	tx, s := w.tx, w.tx.Scope()
	word, ok := s.DictGet(tx.World().iteratorKinds, w.obj.Type())
	if !ok || w.src.GuardSource() == guards.SourcePolyfill || ofServedComprehension(tx, w.src) {
		return nil, nil, nil
	}
	it := &RealIterator{Base: Base{Src: w.src}, obj: w.obj, kind: iteratorKind(py.GoString(word))}
	n, err := s.Call(tx.World().iteratorLeft, w.obj)
	if err != nil {
		return nil, nil, observed(err)
	}
	left, _ := py.AsInt(n)
	it.left = int(left)
	first := 0
	switch it.kind {
	case iteratesMap, iteratesFilter:
		if it.fn, err = it.part(tx, 0); err != nil || it.fn == nil {
			return nil, nil, err
		}
		first = 1
	case iteratesItems, iteratesPairs, iteratesNumbers:
		if left < -1 {
			return nil, nil, nil
		}
		if it.kind != iteratesNumbers && left >= 0 {
			it.over, _ = py.Answered(s.Call(tx.World().iteratorPart, w.obj, s.Int(0)))
		}
		return it, w.ofType(), nil
	}
	subs := 1
	if it.kind == iteratesZip || it.kind == iteratesMap {
		subs = it.left
	}
	if it.kind == iteratesZip && subs >= strictZip {
		it.strict, subs = true, subs-strictZip
	}
	for i := range max(subs, 0) {
		sub, err := it.part(tx, first+i)
		if err != nil || sub == nil {
			return nil, nil, err
		}
		it.subs = append(it.subs, sub)
	}
	if subs < 0 {
		return nil, nil, nil
	}
	return it, w.ofType(), nil
}

// ofServedComprehension reports whether src is the iterator of a comprehension that has a frame of its own, where a
// whole program is served. Each length of its list would be another translation, and most run once.
func ofServedComprehension(tx Translator, src guards.Source) bool {
	w := tx.World()
	local, ok := src.(*guards.LocalSource)
	return ok && local.Local == ".0" && w.Transparent && w.optimized == 0
}

// part returns the tracker of a part of the iterator, or nil if it has no such part.
func (r *RealIterator) part(tx Translator, i int) (VariableTracker, error) {
	obj, ok := py.Answered(tx.Scope().Call(tx.World().iteratorPart, r.obj, tx.Scope().Int(int64(i))))
	if !ok {
		return nil, nil
	}
	return Realize(tx, tx.Build(obj, guards.NewIteratorSource(r.Src, guards.IteratorPart, i)))
}

// Kind implements VariableTracker.
func (*RealIterator) Kind() string { return "RealIterator" }

// PythonType implements Typed.
func (r *RealIterator) PythonType(Translator) (py.Object, error) { return r.obj.Type(), nil }

// Truth implements Truther.
func (*RealIterator) Truth(Translator) (bool, error) { return true, nil }

// Next implements Iterator.
func (r *RealIterator) Next(tx Translator) (VariableTracker, bool, error) {
	switch {
	case tx.World().Calls > 0:
		return nil, false, unsupported(exc.IterUnsupported, "an iterator that a Python call may have advanced")
	case r.taken == maxTaken:
		return nil, false, unsupported(exc.IterUnsupported, "more than %d items in a row of an iterator", maxTaken)
	case r.whole():
		v, ok, err := r.peek(tx)
		if err != nil {
			return nil, false, err
		}
		return v, ok, r.advance(tx)
	case r.kind == iteratesCounted:
		return nil, false, unsupported(exc.IterUnsupported, "enumerate of an iterator that runs code")
	case r.strict:
		return nil, false, unsupported(exc.IterUnsupported, "a strict zip of an iterator that runs code")
	}
	tx.Output().AddGuards(r.parts()...)
	switch r.kind {
	case iteratesFilter:
		return r.filtered(tx)
	case iteratesMap:
		items, _, err := r.each(tx, next)
		if err != nil || len(items) == 0 {
			return nil, false, err
		}
		v, err := Call(tx, r.fn, items, nil)
		return v, err == nil, err
	}
	items, _, err := r.each(tx, next)
	if err != nil || len(items) == 0 {
		return nil, false, err
	}
	return NewTuple(items, nil), true, nil
}

// parts guards the number of iterators of a zip or map.
func (r *RealIterator) parts() []guards.Guard {
	if r.kind == iteratesZip || r.kind == iteratesMap {
		return []guards.Guard{guards.IteratorLeft(r.Src, r.left, false)}
	}
	return nil
}

func (r *RealIterator) filtered(tx Translator) (VariableTracker, bool, error) {
	for {
		v, ok, err := next(tx, r.subs[0])
		if err != nil || !ok {
			return nil, false, err
		}
		test := v
		if c, ok := r.fn.(*ConstantVariable); !ok || c.Value != pyNone {
			if test, err = Call(tx, r.fn, []VariableTracker{v}, nil); err != nil {
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
}

// whole reports whether CPython advances the iterator without running code of the program: then one step of the real
// iterator advances those below it as well.
func (r *RealIterator) whole() bool {
	if r.kind == iteratesMap || r.kind == iteratesFilter {
		return false
	}
	for _, sub := range r.subs {
		if x, ok := sub.(*RealIterator); !ok || !x.whole() {
			return false
		}
	}
	return true
}

// advance records the effect that advances the real iterator.
func (r *RealIterator) advance(tx Translator) error {
	step := tx.World().Builtin("next")
	tx.Output().Const(step)
	return writeThrough(tx, r, nil, func(e Emitter, _ []VariableTracker) error {
		e.PushNull()
		e.LoadConst(step)
		if err := e.Load(r); err != nil {
			return err
		}
		e.LoadConst(pyNone)
		e.Call(2, nil)
		e.PopTop()
		return nil
	})
}

// peek returns the next item and counts it as taken.
func (r *RealIterator) peek(tx Translator) (VariableTracker, bool, error) {
	tx.Output().AddGuards(r.parts()...)
	r.mutated = true
	switch r.kind {
	case iteratesZip:
		items, ended, err := r.each(tx, peekInto)
		switch {
		case err == nil && ended >= 0 && r.strict:
			return nil, false, r.strictEnd(tx, ended)
		case err != nil || len(items) == 0:
			return nil, false, err
		}
		return NewTuple(items, nil), true, nil
	case iteratesCounted:
		v, ok, err := r.subs[0].(*RealIterator).peek(tx)
		if err != nil || !ok {
			return nil, false, err
		}
		r.taken++
		n, err := r.read(tx, guards.IteratorNumber, tx.World().iteratorNumber)
		return NewTuple([]VariableTracker{n, v}, nil), err == nil, err
	}
	if r.ended {
		return nil, false, nil
	}
	if err := r.unchanged(tx); err != nil {
		return nil, false, err
	}
	if r.taken >= r.left {
		tx.Output().AddGuards(guards.IteratorLeft(r.Src, r.left, false))
		r.ended = true
		return nil, false, nil
	}
	tx.Output().AddGuards(guards.IteratorLeft(r.Src, r.taken+1, true))
	r.taken++
	switch r.kind {
	case iteratesNumbers:
		n, err := r.read(tx, guards.IteratorNumber, tx.World().iteratorNumber)
		return n, err == nil, err
	case iteratesPairs:
		k, err := r.read(tx, guards.IteratorItem, tx.World().iteratorItem)
		if err != nil {
			return nil, false, err
		}
		v, err := r.read(tx, guards.IteratorValue, tx.World().iteratorValue)
		return NewTuple([]VariableTracker{k, v}, nil), err == nil, err
	}
	v, err := r.read(tx, guards.IteratorItem, tx.World().iteratorItem)
	return v, err == nil, err
}

// read reads what the iterator yields in the step that was counted last.
func (r *RealIterator) read(tx Translator, what guards.IteratorRead, fn py.Object) (VariableTracker, error) {
	obj, ok := py.Answered(tx.Scope().Call(fn, r.obj, tx.Scope().Int(int64(r.taken-1))))
	if !ok {
		return nil, unsupported(exc.IterUnsupported, "an iterator whose next step raises")
	}
	return tx.Build(obj, guards.NewIteratorSource(r.Src, what, r.taken-1)), nil
}

// each takes one item from each iterator, in order. If one of them has ended, it returns no items and its number, else
// -1.
func (r *RealIterator) each(tx Translator, take func(Translator, VariableTracker) (VariableTracker, bool, error)) (
	items []VariableTracker, ended int, err error) {
	items = make([]VariableTracker, len(r.subs))
	for i, sub := range r.subs {
		v, ok, err := take(tx, sub)
		if err != nil || !ok {
			return nil, i, err
		}
		items[i] = v
	}
	return items, -1, nil
}

// strictEnd breaks the graph at the end of a strict zip, unless all iterators end together. The i-th one has ended.
func (r *RealIterator) strictEnd(tx Translator, i int) error {
	uneven := i > 0
	for _, sub := range r.subs[i+1:] {
		_, more, err := peekInto(tx, sub)
		if err != nil {
			return err
		}
		uneven = uneven || more
	}
	if uneven {
		return unsupported(exc.IterUnsupported, "a strict zip of iterators that do not end together")
	}
	return nil
}

func peekInto(tx Translator, sub VariableTracker) (VariableTracker, bool, error) {
	return sub.(*RealIterator).peek(tx)
}

// unchanged breaks the graph if the program has changed the container in this frame: the guards have read the items at
// the frame's start. If the program changes another container, World.Iterated guards that it is another one.
func (r *RealIterator) unchanged(tx Translator) error {
	w := tx.World()
	if r.over.IsNull() || r.over.Kind() == py.Tuple {
		return nil
	}
	v, tracked := w.objects[r.over]
	_, added := w.unseen[r.over]
	if added || tracked && Mutated(v) || r.over.Kind() == py.Dict && storesAttributes(tx) {
		return unsupported(exc.IterUnsupported, "an iterator over a %s that was changed", py.TypeName(r.over.Type()))
	}
	if !r.recorded {
		r.recorded = true
		w.iterated = append(w.iterated, r)
	}
	return nil
}

// storesAttributes reports whether the program has stored an attribute or a global variable in this frame: a dict that
// is iterated may be the one that holds it.
func storesAttributes(tx Translator) bool {
	if tx.StoredInto(tx.Globals()) {
		return true
	}
	for _, v := range tx.World().objects {
		switch v.(type) {
		case *ObjectVariable, *ModuleVariable, *ClassVariable, *FunctionVariable:
			if Mutated(v) {
				return true
			}
		}
	}
	return false
}

// Iterated calls f for each list and dict whose items were read through a RealIterator.
func (w *World) Iterated(f func(obj py.Object, src guards.Source)) {
	for _, r := range w.iterated {
		f(r.over, guards.NewIteratorSource(r.Src, guards.IteratorPart, 0))
	}
}
