package variables

import (
	"strings"

	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
)

// maxSizePlaces bounds the places that SizePlaces finds.
const maxSizePlaces = 256

// SizePlaces finds the ints computed from sizes within values that leave a frame, in lists, tuples, dicts and objects
// as well. The code that gets such a value reads these ints as symbols.
type SizePlaces struct {
	// Known has the names of such places in this frame, for values that the frame passes on unread.
	Known map[string]bool
	Found map[string]bool // names of the places
	seen  map[VariableTracker]bool
}

// Find adds the places within v. The code that gets v reads it from at.
func (p *SizePlaces) Find(tx Translator, v VariableTracker, at guards.Source) {
	if l, ok := v.(*LazyVariable); ok {
		if l.real == nil {
			p.passedOn(l.Src, at)
			return
		}
		v = l.real
	}
	if x, ok := v.(*SymNodeVariable); ok {
		if x.Settled(tx.World()) == nil {
			p.add(at.Name())
		}
		return
	}
	if v == nil || p.seen[v] || len(p.Found) >= maxSizePlaces {
		return
	}
	if p.seen == nil {
		p.seen = map[VariableTracker]bool{}
	}
	p.seen[v] = true
	defer delete(p.seen, v) // another place may hold the same list
	switch x := v.(type) {
	case *ListVariable:
		p.items(tx, x.items, at)
	case *TupleVariable:
		p.items(tx, x.items, at)
	case *DictVariable:
		for i, k := range x.keys {
			if key, ok := AsConstant(tx, k); ok && (key.Kind() == py.Str || key.Kind() == py.Int) {
				p.Find(tx, x.values[i], guards.NewDictGetItemSource(at, tx.Output().Const(key)))
			}
		}
	case *CellVariable:
		if x.contents != nil {
			p.Find(tx, x.contents, guards.NewCellSource(at))
		}
	case *FunctionVariable:
		cells := guards.NewFunctionFieldSource(at, guards.FuncClosure)
		for i, c := range x.Closure {
			p.Find(tx, c, guards.NewIndexSource(cells, i))
		}
	case *ObjectVariable:
		p.passedOn(x.Src, at)
		for _, kw := range x.Stored() {
			p.Find(tx, kw.Value, guards.NewAttrSource(at, kw.Name))
		}
		if x.value != nil {
			p.Find(tx, x.value, at)
		}
	}
}

func (p *SizePlaces) items(tx Translator, items []VariableTracker, at guards.Source) {
	for i, it := range items {
		p.Find(tx, it, guards.NewIndexSource(at, i))
	}
}

// passedOn adds the places within a value that the frame read from src.
func (p *SizePlaces) passedOn(src, at guards.Source) {
	if src == nil {
		return
	}
	for name := range p.Known {
		if rest, ok := Below(name, src.Name()); ok {
			p.add(at.Name() + rest)
		}
	}
}

func (p *SizePlaces) add(name string) {
	if len(p.Found) < maxSizePlaces {
		if p.Found == nil {
			p.Found = map[string]bool{}
		}
		p.Found[name] = true
	}
}

// Below returns the path from a place to another place within it, such as [0].y from x to x[0].y.
func Below(name, place string) (string, bool) {
	rest, ok := strings.CutPrefix(name, place)
	return rest, ok && (rest == "" || rest[0] == '[' || rest[0] == '.')
}

// KnownItems returns the items of a list or tuple that the translation tracks.
func KnownItems(v VariableTracker) []VariableTracker {
	if l, ok := v.(*LazyVariable); ok && l.real != nil {
		v = l.real
	}
	switch x := v.(type) {
	case *ListVariable:
		return x.items
	case *TupleVariable:
		return x.items
	}
	return nil
}

// KnownKeywords returns the items of a dict with the text keys that the translation tracks.
func KnownKeywords(tx Translator, v VariableTracker) (out []Kw) {
	if l, ok := v.(*LazyVariable); ok && l.real != nil {
		v = l.real
	}
	d, ok := v.(*DictVariable)
	if !ok {
		return nil
	}
	for i, k := range d.keys {
		if name, ok := ConstStr(tx, k); ok {
			out = append(out, Kw{Name: name, Value: d.values[i]})
		}
	}
	return out
}
