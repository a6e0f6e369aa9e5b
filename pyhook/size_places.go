package pyhook

import (
	"github.com/godynamo/godynamo/bytecode/translate"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// Root.size_places maps a code object to a dict. Its keys are names of places (translate.SizePlaces.Names), and pairs
// of a parameter's name and the code object whose result the parameter holds.

// keepSizePlaces adds the places that a translation has found.
func (i *installer) keepSizePlaces(s *py.Scope, list []translate.SizePlaces) error {
	if len(list) == 0 {
		return nil
	}
	table, err := s.GetAttr(i.root(s), "size_places")
	if err != nil {
		return err
	}
	for _, p := range list {
		code := p.Of
		if code.Kind() != py.Code {
			if code, err = s.GetAttr(code, "__code__"); err != nil {
				return err
			}
		}
		var pairs [][2]py.Object
		for _, n := range p.Names {
			pairs = append(pairs, [2]py.Object{s.Str(n), py.None()})
		}
		if p.Result != "" {
			pairs = append(pairs, [2]py.Object{s.Tuple(s.Str(p.Result), p.From), py.None()})
		}
		found, err := s.Dict(pairs...)
		if err != nil {
			return err
		}
		if known, ok := s.DictGet(table, code); ok {
			_, err = s.CallMethod(known, "update", found)
		} else {
			_, err = s.CallMethod(table, "__setitem__", code, found)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readSizePlaces returns the places of a frame that hold ints computed from sizes.
func (i *installer) readSizePlaces(s *py.Scope, f *translate.Frame) (map[string]bool, error) {
	table, err := s.GetAttr(i.root(s), "size_places")
	if err != nil {
		return nil, err
	}
	keys := func(code py.Object) []py.Object {
		d, ok := s.DictGet(table, code)
		if !ok {
			return nil
		}
		names, _ := s.DictItems(d)
		return names
	}
	out := map[string]bool{}
	for _, k := range keys(f.Code) {
		if k.Kind() == py.Str {
			out[py.GoString(k)] = true
			continue
		}
		pair := s.Items(k)
		for _, r := range keys(pair[1]) {
			if r.Kind() != py.Str {
				continue
			}
			if rest, ok := variables.Below(py.GoString(r), translate.ReturnedPlace); ok {
				out[py.GoString(pair[0])+rest] = true
			}
		}
	}
	return out, nil
}
