package variables

import "github.com/godynamo/godynamo/pyhook/py"

// sizesText returns str(v) or repr(v) as a text computed at run time, for a tuple, a torch.Size or a list with sizes
// among its items. It returns nil for other values.
func sizesText(tx Translator, v VariableTracker) (VariableTracker, error) {
	w := tx.World()
	if w.FixesSizes > 0 || w.FixesOpaque {
		return nil, nil
	}
	t := &sizesWithin{tx: tx}
	if _, container := t.items(peek(v)); !container || !t.add(v, 0) || !t.varies {
		return nil, nil
	}
	for i, leaf := range t.leaves {
		if err := tx.Output().Freeze(tx, leaf); err != nil {
			return nil, err
		}
		t.leaves[i] = settled(tx, leaf)
	}
	w.Opaque++
	return compute(tx, w.Builtin("str"), t.leaves, func(e Emitter) error {
		e.PushNull()
		e.LoadConst(w.Builtin("repr"))
		if err := t.emit(e); err != nil {
			return err
		}
		e.Call(1, nil)
		return nil
	})
}

// sizesWithin is the present contents of a container: its numbers and texts, and the steps that build an equal one.
type sizesWithin struct {
	tx     Translator
	leaves []VariableTracker
	steps  []func(e Emitter)
	varies bool
}

// maxTextDepth bounds the nesting of containers whose text is computed at run time.
const maxTextDepth = 8

func (t *sizesWithin) items(v VariableTracker) (items []VariableTracker, ok bool) {
	switch x := v.(type) {
	case *TupleVariable:
		return x.items, x.class.IsNull() || x.class == t.tx.World().SizeType
	case *ListVariable:
		return x.items, true
	}
	return nil, false
}

func (t *sizesWithin) step(do func(e Emitter)) { t.steps = append(t.steps, do) }

// add adds v. It returns false if v has a part of another kind.
func (t *sizesWithin) add(v VariableTracker, depth int) bool {
	if l, lazy := v.(*LazyVariable); lazy {
		v = MustRealize(t.tx, l)
	}
	switch x := v.(type) {
	case *ConstantVariable:
		switch x.Value.Kind() {
		case py.Int:
			if _, small := py.AsInt(x.Value); !small {
				return false
			}
		case py.Float, py.Str, py.BoolKind, py.NoneKind:
		default:
			return false
		}
	case *SymNodeVariable:
		t.varies = t.varies || asSymNode(t.tx, x) != nil
	default:
		return t.addContainer(v, depth)
	}
	t.leaves = append(t.leaves, v)
	t.steps = append(t.steps, nil)
	return true
}

func (t *sizesWithin) addContainer(v VariableTracker, depth int) bool {
	items, ok := t.items(v)
	if !ok || depth == maxTextDepth {
		return false
	}
	tuple, _ := v.(*TupleVariable)
	isSize := tuple != nil && !tuple.class.IsNull()
	if isSize {
		t.step(func(e Emitter) { e.PushNull(); e.LoadConst(tuple.class) })
	}
	for _, it := range items {
		if !t.add(it, depth+1) {
			return false
		}
	}
	n := len(items)
	switch {
	case tuple == nil:
		t.step(func(e Emitter) { e.BuildList(n) })
	case isSize:
		t.step(func(e Emitter) { e.BuildTuple(n); e.Call(1, nil) })
	default:
		t.step(func(e Emitter) { e.BuildTuple(n) })
	}
	return true
}

// emit writes the code that builds the container.
func (t *sizesWithin) emit(e Emitter) error {
	leaf := 0
	for _, do := range t.steps {
		if do != nil {
			do(e)
			continue
		}
		if err := e.Load(t.leaves[leaf]); err != nil {
			return err
		}
		leaf++
	}
	return nil
}
