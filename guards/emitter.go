package guards

import "fmt"

// emitter writes a program. It numbers registers, constants and caches. The value at a place is fetched once, for the
// first part that needs it.
//
// The values passed to the transformed function get the registers right after that of the builtins dict, in order.
// These registers ascend, although parts may fetch the values in any order. If a value is a slot or is listed twice, a
// node copies it into its register.
type emitter struct {
	program  *Program
	regs     map[string]uint32 // place → register that holds it
	reserved map[string]uint32 // place of a value that is passed to the function → register kept for the value
	consts   map[constKey]uint32
	nextReg  int
}

// constKey identifies a constant. If one use needs a strong reference to the constant and another use only
// its address, the strong reference serves both.
type constKey struct {
	index int
	name  string
}

// newEmitter returns an emitter with room for about `parts` parts.
func newEmitter(numSlots int, values []Source, parts int) *emitter {
	e := &emitter{
		program: &Program{NumSlots: numSlots, Parts: make([]string, 0, parts), PartLines: make([]UserLine, 0, parts),
			Nodes: make([]Node, 0, 2*parts)},
		regs:     make(map[string]uint32, parts),
		reserved: map[string]uint32{},
		consts:   map[constKey]uint32{},
		nextReg:  numSlots + 2 + len(values),
	}
	for i, v := range values {
		if _, twice := e.reserved[v.Name()]; !twice && !isRoot(v) {
			e.reserved[v.Name()] = uint32(numSlots + 2 + i)
		}
	}
	return e
}

// isRoot reports whether the caller fills a register with the place's value before the program runs.
func isRoot(s Source) bool {
	switch s := s.(type) {
	case *LocalSource, *GlobalsSource:
		return true
	case *NNModuleSource:
		return isRoot(s.base)
	case *NotNNModuleSource:
		return isRoot(s.base)
	}
	return false
}

func (e *emitter) beginPart(text string, line UserLine) {
	e.program.Parts = append(e.program.Parts, text)
	e.program.PartLines = append(e.program.PartLines, line)
}

// node appends a node to the current part.
func (e *emitter) node(n Node) {
	n.Part = uint32(len(e.program.Parts) - 1)
	e.program.Nodes = append(e.program.Nodes, n)
}

// part writes the nodes that fetch the part's value, then its check.
func (e *emitter) part(p *part) error {
	var src uint32
	if p.guard.Origin != nil {
		reg, err := e.register(p.guard.Origin)
		if err != nil {
			return err
		}
		src = reg
	}
	c := &p.check
	a, err := e.operand(c.a)
	if err != nil {
		return err
	}
	b, err := e.operand(c.b)
	if err != nil {
		return err
	}
	e.node(Node{Op: c.op, Flags: c.flags, Src: src, A: a, B: b})
	return nil
}

// register returns the register that holds the place, after writing the nodes that fetch it.
func (e *emitter) register(s Source) (uint32, error) {
	if reg, ok := e.regs[s.Name()]; ok {
		return reg, nil
	}
	var base uint32
	if s.Base() != nil {
		reg, err := e.register(s.Base())
		if err != nil {
			return 0, err
		}
		base = reg
	}
	reg, err := s.fetch(e, base)
	if err != nil {
		return 0, err
	}
	e.regs[s.Name()] = reg
	return reg, nil
}

// slot returns a register that the caller fills before the program runs: a slot, the globals or the builtins.
func (e *emitter) slot(n int) (uint32, error) {
	if n < 0 || n >= e.program.NumSlots+2 {
		return 0, fmt.Errorf("guards: slot %d of a frame with %d", n, e.program.NumSlots)
	}
	return uint32(n), nil
}

// access appends the node that fetches s from register src and returns the register it writes.
func (e *emitter) access(s Source, op Op, src uint32, a, b operand) (uint32, error) {
	na, err := e.operand(a)
	if err != nil {
		return 0, err
	}
	nb, err := e.operand(b)
	if err != nil {
		return 0, err
	}
	dst, ok := e.reserved[s.Name()]
	if !ok {
		if e.nextReg >= maxRegs {
			return 0, errTooLarge("values", e.nextReg)
		}
		dst = uint32(e.nextReg)
		e.nextReg++
	}
	e.node(Node{Op: op, Dst: dst, Src: src, A: na, B: nb})
	return dst, nil
}

func (e *emitter) operand(o operand) (uint32, error) {
	switch o.class {
	case operandObject, operandHeld:
		return e.constant(constKey{index: o.konst.Index}, o.keep), nil
	case operandLiteral:
		return e.constant(constKey{index: o.konst.Index}, KeepStrong), nil
	case operandName:
		return e.constant(constKey{-1, o.name}, KeepStrong), nil
	case operandCache:
		e.program.NumCaches++
		return uint32(e.program.NumCaches - 1), nil
	case operandReg:
		return e.register(o.src)
	}
	return o.number, nil
}

// constant returns the number of a constant. For a repeated request, the stronger Keep wins.
func (e *emitter) constant(key constKey, keep Keep) uint32 {
	if i, ok := e.consts[key]; ok {
		if use := &e.program.Consts[i]; keep < use.Keep {
			use.Keep = keep
		}
		return i
	}
	i := uint32(len(e.program.Consts))
	e.consts[key] = i
	e.program.Consts = append(e.program.Consts, ConstUse{Index: key.index, Keep: keep, Name: key.name})
	return i
}

// values puts the values into their registers. It fetches a value that no guard has fetched, and copies a
// value that is in another register.
func (e *emitter) values(values []Source, p *printer) error {
	for i, v := range values {
		want := uint32(e.program.NumSlots + 2 + i)
		e.program.Extra = append(e.program.Extra, want)
		if property(v) != nil {
			continue // e.sizes fetches it after the tensor check
		}
		reg, known := e.regs[v.Name()]
		if !known {
			e.beginPart("___loads("+printed(v, p)+")", UserLine{})
			var err error
			if reg, err = e.register(v); err != nil {
				return err
			}
		}
		if reg != want {
			e.node(Node{Op: OpMove, Dst: want, Src: reg})
		}
	}
	return nil
}

// sizes fetches the sizes and strides among the values. Their registers are in Program.Extra, where e.values has listed
// them.
func (e *emitter) sizes(values []Source, p *printer) error {
	for i, v := range values {
		s := property(v)
		if s == nil {
			continue
		}
		e.beginPart("___loads("+printed(v, p)+")", UserLine{})
		if err := e.size(s, e.program.Extra[i]); err != nil {
			return err
		}
	}
	return nil
}

// size writes the node that fetches a size or stride into the register dst.
func (e *emitter) size(s *TensorPropertySource, dst uint32) error {
	tensor, ok := e.regs[s.base.Name()]
	if !ok {
		return fmt.Errorf("guards: %s is read, but no guard compares the tensor", s.name)
	}
	if s.Dim < 0 || s.Dim >= maxTensorDims {
		return fmt.Errorf("guards: %s: no such dimension", s.name)
	}
	op := OpTensorSize
	if s.Property == TensorStride {
		op = OpTensorStride
	}
	e.node(Node{Op: op, Dst: dst, Src: tensor, A: uint32(s.Dim), B: uint32(e.program.NumKept)})
	e.program.NumKept++
	return nil
}

// finish checks the limits and returns the program.
func (e *emitter) finish() (*Program, error) {
	p := e.program
	p.NumRegs = e.nextReg
	if p.NumRegs > maxRegs {
		return nil, errTooLarge("values", p.NumRegs)
	}
	if n := len(p.Nodes) - p.end(); n > maxTail {
		return nil, errTooLarge("conditions on sizes", n)
	}
	if len(p.Parts) > maxParts {
		return nil, errTooLarge("parts", len(p.Parts))
	}
	return p, nil
}

func (s *LocalSource) fetch(e *emitter, _ uint32) (uint32, error) {
	if s.Slot >= e.program.NumSlots {
		return 0, fmt.Errorf("guards: %q is slot %d of a frame with %d", s.Local, s.Slot, e.program.NumSlots)
	}
	return e.slot(s.Slot)
}

func (s *GlobalsSource) fetch(e *emitter, _ uint32) (uint32, error) {
	return e.slot(e.program.NumSlots)
}

func (s *GlobalSource) fetch(e *emitter, _ uint32) (uint32, error) {
	return e.access(s, OpDictGet, uint32(e.program.NumSlots), named(s.Global), cached())
}

func (s *BuiltinSource) fetch(e *emitter, _ uint32) (uint32, error) {
	globals := uint32(e.program.NumSlots)
	name, _ := e.operand(named(s.Builtin))
	cache, _ := e.operand(cached())
	e.node(Node{Op: OpDictLacks, Src: globals, A: name, B: cache})
	return e.access(s, OpDictGet, globals+1, named(s.Builtin), cached())
}

func (s *GradSource) fetch(e *emitter, base uint32) (uint32, error) {
	return e.access(s, OpGrad, base, operand{}, operand{})
}

func (s *CellSource) fetch(e *emitter, base uint32) (uint32, error) {
	return e.access(s, OpCell, base, operand{}, operand{})
}

func (s *ConstSource) fetch(e *emitter, _ uint32) (uint32, error) {
	return e.access(s, OpConst, 0, operand{class: operandHeld, konst: s.Const, keep: KeepWeak}, operand{})
}

func (s *RandomValueSource) fetch(*emitter, uint32) (uint32, error) {
	return 0, fmt.Errorf("guards: %s is made by the call itself and cannot be guarded", s.name)
}

func (s *familySource) fetch(_ *emitter, base uint32) (uint32, error) { return base, nil }

func (s *AttrSource) fetch(e *emitter, base uint32) (uint32, error) {
	return e.access(s, OpAttr, base, named(s.Attr), cached())
}

func (s *ModuleAttrSource) fetch(e *emitter, base uint32) (uint32, error) {
	return e.access(s, OpModuleAttr, base, named(s.Attr), cached())
}

func (s *SlotSource) fetch(e *emitter, base uint32) (uint32, error) {
	return e.access(s, OpSlot, base, named(s.Attr), number(s.Offset))
}

func (s *InstanceDictSource) fetch(e *emitter, base uint32) (uint32, error) {
	return e.access(s, OpInstanceDict, base, operand{}, operand{})
}

func (s *TypeSource) fetch(e *emitter, base uint32) (uint32, error) {
	return e.access(s, OpType, base, operand{}, operand{})
}

func (s *TypeAttrSource) fetch(e *emitter, base uint32) (uint32, error) {
	return e.access(s, OpTypeAttr, base, named(s.Attr), operand{})
}

func (s *MroSource) fetch(e *emitter, base uint32) (uint32, error) {
	return e.access(s, OpMroAttr, base, named(s.Attr), number(s.Index))
}

func (s *MroClassSource) fetch(e *emitter, base uint32) (uint32, error) {
	return e.access(s, OpMroClass, base, number(s.Index), operand{})
}

func (s *FunctionFieldSource) fetch(e *emitter, base uint32) (uint32, error) {
	return e.access(s, OpFuncField, base, number(int(s.Field)), operand{})
}

func (s *GetItemSource) fetch(e *emitter, base uint32) (uint32, error) {
	return e.access(s, OpDictGet, base, literal(s.Key), cached())
}

func (s *ObjectKeySource) fetch(e *emitter, base uint32) (uint32, error) {
	return e.access(s, OpDictItem, base, register(s.Key), operand{})
}

func (s *ODictGetItemSource) fetch(e *emitter, base uint32) (uint32, error) {
	return e.access(s, OpDictGet, base, literal(s.Key), cached())
}

func (s *IndexSource) fetch(e *emitter, base uint32) (uint32, error) {
	return e.access(s, OpIndex, base, number(s.Index), operand{})
}

func (s *DictKeySource) fetch(e *emitter, base uint32) (uint32, error) {
	return e.access(s, OpDictKey, base, number(s.Index), operand{})
}

func (s *DictValueSource) fetch(e *emitter, base uint32) (uint32, error) {
	return e.access(s, OpDictValue, base, number(s.Index), operand{})
}

func (s *TupleIteratorGetItemSource) fetch(e *emitter, base uint32) (uint32, error) {
	return e.access(s, OpTupleIterItem, base, number(s.Index), operand{})
}

func (s *IteratorSource) fetch(e *emitter, base uint32) (uint32, error) {
	kept := operand{}
	if s.Read == IteratorNumber {
		kept = number(e.program.NumKept)
		e.program.NumKept++
	}
	return e.access(s, iteratorReads[s.Read].op, base, number(s.Index), kept)
}

func (s *ReferentSource) fetch(e *emitter, base uint32) (uint32, error) {
	return e.access(s, OpWeakref, base, operand{}, operand{})
}

func (s *GlobalWeakRefSource) fetch(e *emitter, base uint32) (uint32, error) {
	return e.access(s, OpWeakref, base, operand{}, operand{})
}

func (s *TensorPropertySource) fetch(*emitter, uint32) (uint32, error) {
	return 0, fmt.Errorf("guards: %s is read after the tensors are compared; only SHAPE_ENV guards it", s.name)
}
