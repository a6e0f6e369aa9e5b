package pyhook

// #include "bridge.h"
import "C"

import (
	"strconv"
	"strings"

	"github.com/godynamo/godynamo/bytecode/translate"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
)

// readVaried returns the places whose values have differed between the calls of this frame. It adds those for which
// entries did not serve this call (gd_request.varied) to the set that the FrameCache keeps.
func readVaried(s *py.Scope, req *C.gd_request, f *translate.Frame) (translate.Varied, error) {
	out := translate.Varied{Numbers: map[string]bool{}, Dims: map[string]uint64{}}
	if req.varied == nil {
		return out, nil
	}
	cache := object(req.cache)
	var found []py.Object
	for _, row := range s.Items(object(req.varied)) {
		places, err := variedPlaces(s, s.Items(row), req.last != 0, f)
		if err != nil {
			return out, err
		}
		found = append(found, places...)
	}
	if len(found) > 0 {
		if _, err := s.CallMethod(cache, "vary", s.Tuple(found...)); err != nil {
			return out, err
		}
	}
	kept, err := s.GetAttr(cache, "varied")
	if err != nil {
		return out, err
	}
	for _, it := range s.Items(kept) {
		if it.Kind() == py.Str {
			out.Numbers[py.GoString(it)] = true
			continue
		}
		pair := s.Items(it)
		dim, _ := py.AsInt(pair[1])
		out.Dims[py.GoString(pair[0])] |= 1 << dim
	}
	return out, nil
}

// variedPlaces returns the members of FrameCache.varied for one row of gd_request.varied, (entry, parts, tensors,
// moved): the place of each number, and (place, dimension) for sizes of tensors. `any` is set if the entry may
// also have failed for other reasons.
//
// If `any` is not set, the row counts only if the values differ between the calls of one nn.Module. Modules of one
// class whose attributes or parameters differ have one entry each.
func variedPlaces(s *py.Scope, row []py.Object, any bool, f *translate.Frame) ([]py.Object, error) {
	info, err := s.GetAttr(row[0], "info")
	if err != nil {
		return nil, err
	}
	kinds, ok := s.DictGetName(info, "guard_kinds")
	if !ok || kinds.Kind() != py.Str {
		return nil, nil
	}
	differ := map[int]bool{}
	for _, p := range s.Items(row[1]) {
		n, _ := py.AsInt(p)
		differ[int(n)] = true
	}
	sizes := map[int]uint64{}
	for _, t := range s.Items(row[2]) {
		pair := s.Items(t)
		at, _ := py.AsInt(pair[0])
		mask, _ := py.AsInt(pair[1])
		sizes[int(at)] = uint64(mask)
	}
	moved, err := slotNames(s, f, s.Items(row[3]))
	if err != nil {
		return nil, err
	}
	var found []py.Object
	tensors := 0
	for line := range strings.Lines(py.GoString(kinds)) {
		part, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		columns := strings.Split(rest, "\t")
		if len(columns) < 3 {
			continue
		}
		kind, inModule, name := columns[0], guards.FamilyInNNModule(columns[1]), columns[2]
		switch kind {
		case guards.CreateTensorMatch.String():
			mask, differs := sizes[tensors]
			tensors++
			another := inModule && moved[rootName(name)]
			if differs && another && !any {
				return nil, nil // another module, whose parameters have other sizes
			}
			for dim := 0; !another && mask>>dim != 0; dim++ {
				if mask>>dim&1 != 0 {
					found = append(found, s.Tuple(s.Str(name), s.Int(int64(dim))))
				}
			}
		case guards.CreateEqualsMatch.String(), guards.CreateConstantMatch.String(),
			guards.CreatePyCheck.String(): // numbers of numpy; other checks concern no number
			n, _ := strconv.Atoi(part)
			if !differ[n] {
				continue
			}
			if inModule && !any && moved[rootName(name)] {
				return nil, nil // another module
			}
			found = append(found, s.Str(name))
		}
	}
	return found, nil
}

// slotNames returns the names of slots of the frame.
func slotNames(s *py.Scope, f *translate.Frame, slots []py.Object) (map[string]bool, error) {
	arguments, err := s.GetAttr(f.Code, "co_varnames")
	if err != nil {
		return nil, err
	}
	cells, err := s.GetAttr(f.Code, "co_freevars")
	if err != nil {
		return nil, err
	}
	names := append(append([]py.Object{}, s.Items(arguments)[:f.NumArgs]...), s.Items(cells)...)
	out := map[string]bool{}
	for _, i := range slots {
		if n, _ := py.AsInt(i); int(n) < len(names) {
			out[py.GoString(names[n])] = true
		}
	}
	return out, nil
}

// rootName returns the name of the variable from which a place is read, such as x for x.y[0].
func rootName(place string) string {
	if i := strings.IndexAny(place, ".["); i > 0 {
		return place[:i]
	}
	return place
}

// fixed lists the ints, floats and sizes that the last entry of a frame compares with constants although they have
// differed between calls. Each is listed with the user's line that needs the constant. The list is empty for other
// entries.
func (t *translation) fixed() []string {
	r, v := t.result, t.frame.Varied
	if t.request.last == 0 || r == nil || r.Program == nil {
		return nil
	}
	var out []string
	add := func(place string, at guards.UserLine) {
		out = append(out, place+" ("+at.File+":"+strconv.Itoa(at.Line)+")")
	}
	for line := range strings.Lines(r.Program.Kinds) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(columns) < 4 || !v.Numbers[columns[3]] {
			continue
		}
		switch columns[1] {
		case guards.CreateEqualsMatch.String(), guards.CreateConstantMatch.String():
			part, _ := strconv.Atoi(columns[0])
			add(columns[3], r.Program.PartLines[part])
		}
	}
	for _, f := range r.Fixed {
		add(f.Place, f.Line)
	}
	return out
}
