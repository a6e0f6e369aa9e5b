package translate

import (
	"slices"

	"github.com/godynamo/godynamo/fxgraph/sym"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// The user's statements about a size or an int come from two places: the marks on a tensor (set by
// godynamo.mark_dynamic and similar functions as torch's own attributes; python/godynamo/_user/dims.py), and the lists
// of sources (config.dynamic_sources and similar settings, and the dynamic_shapes of compile;
// python/godynamo/_user/sources.py).

// dimMark is what the user has said about one size or int.
type dimMark struct {
	static   bool
	dynamic  bool // a symbol, and an error if the program makes it a constant
	weak     bool // a symbol
	unbacked bool // a symbol whose value is known at run time only
	lo, hi   int64
	bounded  bool   // lo and hi are bounds of the value
	same     string // if not empty, the name of sizes that are equal
}

// symbolic reports whether the user wants a symbol.
func (m dimMark) symbolic() bool { return m.dynamic || m.weak || m.unbacked }

// Listed holds the user's lists of sources and settings about them.
type Listed struct {
	Rules  py.Object // godynamo._user.sources.rules; null if the user has listed nothing
	Shapes py.Object // the dynamic_shapes of compile, or None
	// Only makes a constant of every size and int that the user has neither marked nor listed. NoMarks ignores marks.
	Only, NoMarks bool
	// With IgnoreMarks, a size that mark_dynamic has marked may become a constant.
	IgnoreMarks bool
	// Parameters and Modules allow symbols for the sizes of parameters, and of tensors of modules.
	Parameters, Modules bool
}

// The kinds of rules; python/godynamo/_user/sources.py has the same numbers.
const (
	ruleNone = iota
	ruleDynamic
	ruleUnbacked
	ruleStatic
)

// rules returns what the user's lists say about the sizes of a tensor, or about an int. It returns nil if they say
// nothing.
func (o *OutputGraph) rules(src guards.Source, values []int64, tensor bool) []dimMark {
	l := &o.opts.Listed
	if l.Rules.IsNull() || src == nil || o.symbols.failed != nil {
		return nil
	}
	s, f := o.scope, o.frame
	code, first := f.Code, py.None()
	if f.Origin != nil {
		code = f.Origin.Code
	}
	if len(f.Slots) > 0 && !f.Slots[0].IsNull() {
		first = f.Slots[0].Type()
	}
	items := make([]py.Object, len(values))
	for i, n := range values {
		items[i] = s.Int(n)
	}
	rows, err := s.Call(l.Rules, l.Shapes, code, first, s.Str(src.Name()), py.Bool(src.GuardSource().IsLocal()),
		s.Tuple(items...), py.Bool(tensor))
	if err != nil {
		o.symbols.failed = err
		return nil
	}
	if rows == py.None() {
		return nil
	}
	out := make([]dimMark, len(values))
	for i, row := range s.Items(rows) {
		parts := s.Items(row)
		kind, _ := py.AsInt(parts[0])
		m := &out[i]
		m.static, m.weak, m.unbacked = kind == ruleStatic, kind == ruleDynamic, kind == ruleUnbacked
		m.setBounds(parts[1], parts[2])
		m.same = py.GoString(parts[3])
	}
	return out
}

// setBounds stores bounds given as ints or None.
func (m *dimMark) setBounds(lo, hi py.Object) {
	low, isLow := py.AsInt(lo)
	high, isHigh := py.AsInt(hi)
	if m.bounded = isLow || isHigh; !m.bounded {
		return
	}
	m.lo, m.hi = 0, 1<<63-1
	if isLow {
		m.lo = low
	}
	if isHigh {
		m.hi = high
	}
}

// marksOf returns what the user has said about the sizes of an input.
func (o *OutputGraph) marksOf(t *variables.TensorVariable, sizes []sym.Size) []dimMark {
	if known, ok := o.symbols.marks[t]; ok {
		return known
	}
	out := o.rules(t.Source(), constants64(sizes), true)
	if out == nil {
		out = make([]dimMark, len(sizes))
	}
	if !o.opts.Listed.NoMarks && !o.opts.Exporting {
		o.attributeMarks(t.Example, out)
	}
	if o.symbols.marks == nil {
		o.symbols.marks = map[*variables.TensorVariable][]dimMark{}
	}
	o.symbols.marks[t] = out
	return out
}

// marksOfInput is marksOf with the sizes of the example.
func (o *OutputGraph) marksOfInput(t *variables.TensorVariable) []dimMark {
	m, err := o.readMeta(t.Example)
	if err != nil {
		return nil
	}
	return o.marksOf(t, m.Shape)
}

func constants64(sizes []sym.Size) []int64 {
	out := make([]int64, len(sizes))
	for i, s := range sizes {
		out[i], _ = s.Const()
	}
	return out
}

// attributeMarks adds the marks on a tensor. mark_dynamic and mark_unbacked win over a list of static sources, and
// every mark of a symbol wins over mark_static.
func (o *OutputGraph) attributeMarks(example py.Object, out []dimMark) {
	if _, ok := o.scope.InstanceDict(example); !ok {
		return
	}
	static := o.dimSet(example, "_dynamo_static_indices")
	weak := o.dimSet(example, "_dynamo_weak_dynamic_indices")
	dynamic := o.dimSet(example, "_dynamo_dynamic_indices")
	unbacked := o.dimSet(example, "_dynamo_unbacked_indices")
	strict := o.dimSet(example, "_dynamo_strict_unbacked_indices")
	for i := range out {
		m := &out[i]
		m.weak = m.weak || weak[i] && !m.static
		m.dynamic = (dynamic[i] || strict[i]) && !o.opts.Listed.IgnoreMarks
		m.weak = m.weak || dynamic[i] || strict[i]
		m.unbacked = m.unbacked && !m.static || unbacked[i] || strict[i]
		m.static = (m.static || static[i]) && !m.symbolic()
	}
	if ranges, ok := o.scope.InstanceAttr(example, "_dynamo_dynamic_range"); ok {
		o.readRanges(ranges, out)
	}
	o.byDim(example, "_dynamo_unbacked_bounds", out, func(m *dimMark, v py.Object) {
		if pair := o.scope.Items(v); len(pair) == 2 {
			m.setBounds(pair[0], pair[1])
		}
	})
	o.byDim(example, "_dynamo_shape_ids", out, func(m *dimMark, v py.Object) {
		if v.Kind() == py.Str {
			m.same = py.GoString(v)
		}
	})
}

// byDim calls f for each item of an attribute of a tensor that is a dict by dimension.
func (o *OutputGraph) byDim(example py.Object, name string, out []dimMark, f func(m *dimMark, v py.Object)) {
	d, ok := o.scope.InstanceAttr(example, name)
	if !ok || d.Kind() != py.Dict {
		return
	}
	keys, values := o.scope.DictItems(d)
	for i, k := range keys {
		if dim, ok := py.AsInt(k); ok && dim >= 0 && int(dim) < len(out) {
			f(&out[dim], values[i])
		}
	}
}

// readRanges reads torch's set of ranges: objects with the attributes dim, min and max.
func (o *OutputGraph) readRanges(ranges py.Object, out []dimMark) {
	s := o.scope
	for _, r := range o.items(ranges) {
		parts := make([]py.Object, 3)
		for i, name := range [...]string{"dim", "min", "max"} {
			v, ok := py.Answered(s.GetAttr(r, name))
			if !ok {
				return
			}
			parts[i] = v
		}
		if dim, ok := py.AsInt(parts[0]); ok && dim >= 0 && int(dim) < len(out) {
			out[dim].setBounds(parts[1], parts[2])
		}
	}
}

// items returns the items of a set, in any order, or nothing for other objects.
func (o *OutputGraph) items(set py.Object) []py.Object {
	if set.Kind() != py.SetKind {
		return nil
	}
	list, ok := py.Answered(o.scope.Call(o.world.ListType, set))
	if !ok {
		return nil
	}
	return o.scope.Items(list)
}

// dimSet reads an attribute of a tensor that is a set of dimensions.
func (o *OutputGraph) dimSet(example py.Object, name string) map[int]bool {
	set, ok := o.scope.InstanceAttr(example, name)
	if !ok {
		return nil
	}
	out := map[int]bool{}
	for _, it := range o.items(set) {
		if n, ok := py.AsInt(it); ok {
			out[int(n)] = true
		}
	}
	return out
}

// apply records the user's bounds for a size or an int, and its equality with the sizes of the same name.
func (o *OutputGraph) apply(m dimMark, s sym.Size, hint int64) {
	env := o.world.Env()
	if m.bounded {
		env.Require(env.Ge(s, sym.Const(m.lo)), o.userLine())
		env.Require(env.Le(s, sym.Const(m.hi)), o.userLine())
	}
	if m.same == "" {
		return
	}
	first, known := o.symbols.same[m.same]
	if !known {
		if o.symbols.same == nil {
			o.symbols.same = map[string]sameSize{}
		}
		o.symbols.same[m.same] = sameSize{s, hint}
		return
	}
	if first.hint != hint {
		o.symbols.failed = o.unequal(m.same, first.hint, hint)
		return
	}
	env.Require(env.Eq(first.size, s), o.userLine())
}

// sameSize is the first size with a name that several sizes share.
type sameSize struct {
	size sym.Size
	hint int64
}

// unequal returns the error for two sizes that have the same name but different values.
func (o *OutputGraph) unequal(name string, first, second int64) error {
	m, err := o.scope.Import("godynamo._user.dims")
	if err == nil {
		_, err = o.scope.CallMethod(m, "unequal", o.scope.Str(name), o.scope.Int(first), o.scope.Int(second))
	}
	return err
}

// isConstant reports whether a size is a constant because of what the user has said.
func (o *OutputGraph) isConstant(m dimMark) bool {
	return m.static || o.opts.Listed.Only && !m.symbolic()
}

// mayVary reports whether the sizes of a parameter, or of a tensor of a module, may be symbols. Those of a tensor that
// is no parameter may be once they have differed in one module: a cache that grows. Layers with such a tensor are not
// known to be equal.
func (o *OutputGraph) mayVary(t *variables.TensorVariable) bool {
	l := &o.opts.Listed
	parameter, module := !t.Class.IsNull(), t.Source().GuardSource().IsNNModule()
	if parameter && t.Class != o.world.ParameterType {
		return false
	}
	if (!parameter || l.Parameters) && (!module || l.Modules) {
		return true
	}
	if !parameter && o.frame.Varied.Dims[t.Source().Name()] != 0 {
		o.opts.ReuseLayers = false
		return true
	}
	if l.Rules.IsNull() {
		return false
	}
	m, err := o.readMeta(t.Example)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(o.rules(t.Source(), constants64(m.Shape), true), dimMark.symbolic)
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
