package guards

// Rebase rewrites sources and guards from one place to another: sources read from `from` become sources read
// from `to`. Each source is made once.
type Rebase struct {
	from string
	to   Source
	done map[Source]Source
}

// NewRebase returns the Rebase that replaces `from` by `to`.
func NewRebase(from, to Source) *Rebase {
	return &Rebase{from: from.Name(), to: to, done: map[Source]Source{}}
}

// Source returns s with `from` replaced by `to`, or s itself if s is not read from `from`.
func (r *Rebase) Source(s Source) Source {
	if s == nil {
		return nil
	}
	if out, ok := r.done[s]; ok {
		return out
	}
	out := s
	switch base := s.Base(); {
	case isObjectKey(s):
		out = r.objectKey(s.(*ObjectKeySource))
	case isFamily(s): // such a source has the name of its base
		if b := r.Source(base); b != base {
			out = onBase(s, b)
		}
	case s.Name() == r.from:
		out = r.to
	case base != nil:
		if b := r.Source(base); b != base {
			out = onBase(s, b)
		}
	}
	r.done[s] = out
	return out
}

// Guard returns g with its places rewritten, or false if sources of that kind cannot be rewritten (see onBase).
func (r *Rebase) Guard(g Guard) (Guard, bool) {
	if g.Origin == nil {
		return g, true
	}
	if g.Args.Cond != nil {
		cond, ok := g.Args.Cond.rewritten(func(inst SizeInst) (SizeInst, bool) {
			inst.Src = r.Source(inst.Src)
			return inst, inst.Src != nil
		})
		if !ok {
			return g, false
		}
		return ShapeEnv(cond).At(g.Line), true
	}
	g.Origin = r.Source(g.Origin)
	if other := g.Args.Other; other != nil {
		g.Args.Other = r.Source(other)
		if g.Args.Other == nil {
			return g, false
		}
		if g.Key == other.Name() {
			g.Key = g.Args.Other.Name()
		}
	}
	if g.Origin == nil {
		return g, false
	}
	g.Name, g.Source = g.Origin.Name(), g.Origin.GuardSource()
	return g, true
}

func isObjectKey(s Source) bool {
	_, ok := s.(*ObjectKeySource)
	return ok
}

// objectKey returns s with both places rewritten.
func (r *Rebase) objectKey(s *ObjectKeySource) Source {
	base, key := r.Source(s.base), r.Source(s.Key)
	switch {
	case base == s.base && key == s.Key:
		return s
	case base == nil || key == nil:
		return nil
	}
	return NewObjectKeySource(base, key)
}

// Renewed returns s with each constant replaced by what f returns for it. Constants have a place in one translation
// only, so a source that another one takes over needs its constants.
func Renewed(s Source, f func(Const) Const) Source {
	switch s := s.(type) {
	case *ConstSource:
		c := *s
		c.Const = f(s.Const)
		return &c
	case *GetItemSource:
		return NewDictGetItemSource(Renewed(s.base, f), f(s.Key))
	case *ODictGetItemSource:
		return NewODictGetItemSource(Renewed(s.base, f), f(s.Key))
	case *ObjectKeySource:
		return NewObjectKeySource(Renewed(s.base, f), Renewed(s.Key, f))
	}
	base := s.Base()
	if base == nil {
		return s
	}
	if b := Renewed(base, f); b != base {
		return onBase(s, b)
	}
	return s
}

func isFamily(s Source) bool {
	switch s.(type) {
	case *NNModuleSource, *NotNNModuleSource:
		return true
	}
	return false
}

// onBase returns a source like s that is read from base. It returns nil if sources of this kind have a fixed
// base or no base.
func onBase(s, base Source) Source {
	if base == nil {
		return nil
	}
	switch s := s.(type) {
	case *NNModuleSource:
		return NewNNModuleSource(base)
	case *NotNNModuleSource:
		return NewNotNNModuleSource(base)
	case *CellSource:
		return NewCellSource(base)
	case *GradSource:
		return NewGradSource(base)
	case *AttrSource:
		return newAttrSource(base, s.Attr, s.shadows)
	case *ModuleAttrSource:
		return NewModuleAttrSource(base, s.Attr)
	case *SlotSource:
		return newSlotSource(base, s.Attr, s.Offset, s.raw)
	case *InstanceDictSource:
		return NewInstanceDictSource(base)
	case *TypeSource:
		return NewTypeSource(base)
	case *TypeAttrSource:
		return NewTypeAttrSource(base, s.Attr)
	case *MroSource:
		return NewMroSource(base, s.Index, s.Attr)
	case *MroClassSource:
		return NewMroClassSource(base, s.Index)
	case *FunctionFieldSource:
		return NewFunctionFieldSource(base, s.Field)
	case *GetItemSource:
		return NewDictGetItemSource(base, s.Key)
	case *ODictGetItemSource:
		return NewODictGetItemSource(base, s.Key)
	case *IndexSource:
		return NewIndexSource(base, s.Index)
	case *DictKeySource:
		return NewDictKeySource(base, s.Index)
	case *DictValueSource:
		return NewDictValueSource(base, s.Index)
	case *TupleIteratorGetItemSource:
		return NewTupleIteratorGetItemSource(base, s.Index)
	case *IteratorSource:
		return NewIteratorSource(base, s.Read, s.Index)
	case *ReferentSource:
		return NewReferentSource(base)
	case *TensorPropertySource:
		return NewTensorPropertySource(base, s.Property, s.Dim)
	}
	return nil
}
