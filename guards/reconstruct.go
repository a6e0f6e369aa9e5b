package guards

import "fmt"

// Reconstructor emits instructions that load a value. The comment of each method is its stack effect, as
// `inputs -- result`. Names are from the user's code.
type Reconstructor interface {
	LoadSlot(slot int, name string) error // -- value
	LoadGlobal(name string) error         // -- value of the frame's globals
	LoadBuiltin(name string) error        // -- value
	LoadGlobals() error                   // -- globals dict
	LoadConst(c Const) error              // -- value
	LoadInt(i int) error                  // -- int
	LoadStr(s string) error               // -- str
	LoadAttr(name string) error           // obj -- obj.name
	LoadCellContents() error              // cell -- contents
	Subscript() error                     // container key -- container[key]
	Call(nargs int) error                 // callable arg... -- result
	// LoadHelper loads a function of godynamo._called.guard_env by its name: type_lookup, instance_dict, ...
	LoadHelper(name string) error // -- function
	LoadRandomValue(i int) error  // -- i-th random value of the call
}

// Reconstruct emits the instructions that load the value at s.
func Reconstruct(s Source, r Reconstructor) error {
	if s == nil {
		return fmt.Errorf("guards: a value without a source cannot be loaded again")
	}
	return s.reconstruct(r)
}

// steps runs the calls, which emit instructions, up to the first error.
func steps(calls ...func() error) error {
	for _, call := range calls {
		if err := call(); err != nil {
			return err
		}
	}
	return nil
}

// baseThen emits the load of base, then runs the calls.
func baseThen(r Reconstructor, base Source, calls ...func() error) error {
	if err := base.reconstruct(r); err != nil {
		return err
	}
	return steps(calls...)
}

// helper emits a call of a helper function, with base as the first argument, followed by args.
func helper(r Reconstructor, name string, base Source, args ...func() error) error {
	if err := r.LoadHelper(name); err != nil {
		return err
	}
	if err := base.reconstruct(r); err != nil {
		return err
	}
	if err := steps(args...); err != nil {
		return err
	}
	return r.Call(1 + len(args))
}

func (s *LocalSource) reconstruct(r Reconstructor) error       { return r.LoadSlot(s.Slot, s.Local) }
func (s *GlobalSource) reconstruct(r Reconstructor) error      { return r.LoadGlobal(s.Global) }
func (s *GlobalsSource) reconstruct(r Reconstructor) error     { return r.LoadGlobals() }
func (s *BuiltinSource) reconstruct(r Reconstructor) error     { return r.LoadBuiltin(s.Builtin) }
func (s *ConstSource) reconstruct(r Reconstructor) error       { return r.LoadConst(s.Const) }
func (s *RandomValueSource) reconstruct(r Reconstructor) error { return r.LoadRandomValue(s.Index) }
func (s *familySource) reconstruct(r Reconstructor) error      { return s.base.reconstruct(r) }

func (s *CellSource) reconstruct(r Reconstructor) error {
	return baseThen(r, s.base, r.LoadCellContents)
}

func (s *GradSource) reconstruct(r Reconstructor) error {
	return baseThen(r, s.base, func() error { return r.LoadAttr("grad") })
}

func (s *AttrSource) reconstruct(r Reconstructor) error {
	return baseThen(r, s.base, func() error { return r.LoadAttr(s.Attr) })
}

func (s *ModuleAttrSource) reconstruct(r Reconstructor) error {
	return baseThen(r, s.base, func() error { return r.LoadAttr(s.Attr) })
}

func (s *SlotSource) reconstruct(r Reconstructor) error {
	return baseThen(r, s.base, func() error { return r.LoadAttr(s.Attr) })
}

func (s *FunctionFieldSource) reconstruct(r Reconstructor) error {
	return baseThen(r, s.base, func() error { return r.LoadAttr(s.Field.String()) })
}

func (s *InstanceDictSource) reconstruct(r Reconstructor) error {
	return helper(r, "instance_dict", s.base)
}

func (s *TypeSource) reconstruct(r Reconstructor) error {
	return steps(func() error { return r.LoadBuiltin("type") },
		func() error { return s.base.reconstruct(r) },
		func() error { return r.Call(1) })
}

func (s *TypeAttrSource) reconstruct(r Reconstructor) error {
	return helper(r, "type_lookup", s.base, func() error { return r.LoadStr(s.Attr) })
}

func (s *MroClassSource) reconstruct(r Reconstructor) error {
	return helper(r, "mro_class", s.base, func() error { return r.LoadInt(s.Index) })
}

func (s *MroSource) reconstruct(r Reconstructor) error {
	return baseThen(r, s.base,
		func() error { return r.LoadAttr("__mro__") },
		func() error { return r.LoadInt(s.Index) },
		r.Subscript,
		func() error { return r.LoadAttr("__dict__") },
		func() error { return r.LoadStr(s.Attr) },
		r.Subscript)
}

func (s *GetItemSource) reconstruct(r Reconstructor) error {
	return baseThen(r, s.base, func() error { return r.LoadConst(s.Key) }, r.Subscript)
}

func (s *ObjectKeySource) reconstruct(r Reconstructor) error {
	return baseThen(r, s.base, func() error { return s.Key.reconstruct(r) }, r.Subscript)
}

func (s *ODictGetItemSource) reconstruct(r Reconstructor) error {
	return helper(r, "dict_getitem", s.base, func() error { return r.LoadConst(s.Key) })
}

func (s *IndexSource) reconstruct(r Reconstructor) error {
	return baseThen(r, s.base, func() error { return r.LoadInt(s.Index) }, r.Subscript)
}

func (s *DictKeySource) reconstruct(r Reconstructor) error {
	return helper(r, "dict_key", s.base, func() error { return r.LoadInt(s.Index) })
}

func (s *DictValueSource) reconstruct(r Reconstructor) error {
	return helper(r, "dict_value", s.base, func() error { return r.LoadInt(s.Index) })
}

func (s *TupleIteratorGetItemSource) reconstruct(r Reconstructor) error {
	return helper(r, "tuple_iterator_getitem", s.base, func() error { return r.LoadInt(s.Index) })
}

func (s *IteratorSource) reconstruct(r Reconstructor) error {
	return helper(r, iteratorReads[s.Read].name, s.base, func() error { return r.LoadInt(s.Index) })
}

func (s *TensorPropertySource) reconstruct(r Reconstructor) error {
	return baseThen(r, s.base,
		func() error { return r.LoadAttr(s.Property.String()) },
		func() error { return r.LoadInt(s.Dim) },
		func() error { return r.Call(1) })
}

func (s *ReferentSource) reconstruct(r Reconstructor) error {
	return helper(r, "referent", s.base)
}

func (s *GlobalWeakRefSource) reconstruct(r Reconstructor) error {
	return baseThen(r, s.base, func() error { return r.Call(0) })
}
