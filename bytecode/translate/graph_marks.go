package translate

import (
	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// marks holds what the user has said about the dimensions of a tensor: godynamo.mark_dynamic and its kin, which set
// torch's own attributes (python/godynamo/_user/dims.py).
type marks struct {
	static, dynamic, maybe, unbacked map[int]bool
	ranges                           map[int][2]int64
}

// marksOf reads the marks of an input.
func (o *OutputGraph) marksOf(t *variables.TensorVariable) (m marks) {
	s := o.scope
	for name, at := range map[string]*map[int]bool{"_dynamo_static_indices": &m.static,
		"_dynamo_dynamic_indices": &m.dynamic, "_dynamo_weak_dynamic_indices": &m.maybe,
		"_dynamo_unbacked_indices": &m.unbacked} {
		set, ok := s.InstanceAttr(t.Example, name)
		if !ok || set.Kind() != py.SetKind {
			continue
		}
		list, ok := py.Answered(s.Call(o.world.ListType, set))
		if !ok {
			continue
		}
		*at = map[int]bool{}
		for _, it := range s.Items(list) {
			if n, ok := py.AsInt(it); ok {
				(*at)[int(n)] = true
			}
		}
	}
	ranges, ok := s.InstanceAttr(t.Example, "_godynamo_dim_ranges")
	if !ok || ranges.Kind() != py.Dict {
		return m
	}
	keys, values := s.DictItems(ranges)
	m.ranges = map[int][2]int64{}
	for i, k := range keys {
		pair := s.Items(values[i])
		dim, ok := py.AsInt(k)
		lo, ok2 := py.AsInt(pair[0])
		hi, ok3 := py.AsInt(pair[1])
		if ok && ok2 && ok3 {
			m.ranges[int(dim)] = [2]int64{lo, hi}
		}
	}
	return m
}

// inRange records the conditions that a size is in the range that the user has given.
func (o *OutputGraph) inRange(s sym.Size, given [2]int64) {
	if given == [2]int64{} {
		return
	}
	env := o.world.Env()
	env.Decide(env.Ge(s, sym.Const(given[0])), o.userLine())
	env.Decide(env.Le(s, sym.Const(given[1])), o.userLine())
}

// markViolated returns the error for a dimension that mark_dynamic has marked and that the program makes a constant.
func (o *OutputGraph) markViolated(s sym.Symbol, at dimension, value int64) error {
	line := guards.UserLine{}
	if r, ok := o.world.Env().FixedBy(s); ok {
		line, _ = r.Why.(guards.UserLine)
	}
	m, err := o.scope.Import("godynamo._user.dims")
	if err != nil {
		return err
	}
	_, err = o.scope.CallMethod(m, "violated", o.scope.Str(at.src.Name()), o.scope.Int(value), o.scope.Str(line.File),
		o.scope.Int(int64(line.Line)))
	return err
}
