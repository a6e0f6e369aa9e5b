package guards

// Eval runs the program as pyhook/core/guards/eval.c does. It returns the index of the first node that fails
// and false, or -1 and true. The program has been verified. C may start the program again after a node that
// called Python. Eval never does so, because no code can change an abstract heap while Eval runs.
func (p *Program) Eval(h Heap, slots []Value) (failedNode int, ok bool) {
	if len(slots) != p.NumSlots {
		return 0, false
	}
	regs := make([]Value, p.NumRegs)
	copy(regs, slots)
	regs[p.NumSlots], regs[p.NumSlots+1] = h.Globals(), h.Builtins()
	e := evaluation{p, h, regs}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if !n.Op.IsAccess() {
			if !e.holds(n) {
				return i, false
			}
			continue
		}
		v, found := e.fetch(n)
		if !found {
			return i, false
		}
		regs[n.Dst] = v
	}
	return -1, true
}

// FailedPart returns the text of a node's part.
func (p *Program) FailedPart(node int) string {
	if node < 0 || node >= len(p.Nodes) {
		return ""
	}
	return p.Parts[p.Nodes[node].Part]
}

type evaluation struct {
	p    *Program
	h    Heap
	regs []Value
}

func (e *evaluation) konst(i uint32) Value {
	v, ok := e.h.Const(int(i))
	if !ok {
		return nil
	}
	return v
}

// fetch returns the value that an access node loads.
func (e *evaluation) fetch(n *Node) (Value, bool) {
	v := e.regs[n.Src]
	switch n.Op {
	case OpMove:
		return v, true
	case OpConst:
		return e.h.Const(int(n.A))
	case OpDictGet:
		found, ok, _ := e.h.DictGet(v, e.konst(n.A))
		return found, ok
	case OpDictItem:
		found, ok, _ := e.h.DictGet(v, e.regs[n.A])
		return found, ok
	case OpAttr:
		return e.h.InstanceAttr(v, e.konst(n.A))
	case OpModuleAttr:
		dict, ok := e.h.ModuleDict(v)
		if !ok {
			return nil, false
		}
		found, ok, _ := e.h.DictGet(dict, e.konst(n.A))
		return found, ok
	case OpSlot:
		return e.h.Slot(v, e.konst(n.A), int(n.B))
	case OpInstanceDict:
		return e.h.InstanceDict(v)
	case OpType:
		return e.h.Type(v), true
	case OpTypeAttr:
		found, ok, _ := e.h.TypeLookup(v, e.konst(n.A))
		return found, ok
	case OpMroAttr:
		dict, ok := e.h.MroDict(v, int(n.B))
		if !ok {
			return nil, false
		}
		found, ok, _ := e.h.DictGet(dict, e.konst(n.A))
		return found, ok
	case OpMroClass:
		return e.h.MroClass(v, int(n.A))
	case OpIndex:
		items, _ := e.h.Items(v)
		i := int(int32(n.A))
		if i < 0 {
			i += len(items)
		}
		return at(items, i)
	case OpDictKey:
		keys, _ := e.h.DictKeys(v)
		return at(keys, int(int32(n.A)))
	case OpDictValue:
		keys, _ := e.h.DictKeys(v)
		key, ok := at(keys, int(int32(n.A)))
		if !ok {
			return nil, false
		}
		found, ok, _ := e.h.DictGet(v, key)
		return found, ok
	case OpFuncField:
		return e.h.FuncField(v, FuncField(n.A))
	case OpCell:
		contents, empty, isCell := e.h.Cell(v)
		return contents, isCell && !empty
	case OpWeakref:
		return e.h.Referent(v)
	case OpGrad:
		return e.h.Grad(v)
	case OpTupleIterItem:
		items, _ := e.h.TupleIter(v)
		return at(items, int(n.A))
	case OpIterPart, OpIterItem, OpIterValue, OpIterNumber:
		return e.ofIterator(n.Op, v, int(n.A))
	case OpTensorSize:
		return e.dim(v, TensorSize, int(n.A))
	case OpTensorStride:
		return e.dim(v, TensorStride, int(n.A))
	}
	return nil, false
}

// ofIterator returns what is read from an iterator.
func (e *evaluation) ofIterator(op Op, v Value, i int) (Value, bool) {
	switch op {
	case OpIterPart:
		return e.h.IterPart(v, i)
	case OpIterItem:
		return e.h.IterItem(v, i)
	case OpIterValue:
		return e.h.IterValue(v, i)
	}
	number, ok := e.h.IterNumber(v, i)
	if !ok {
		return nil, false
	}
	return e.h.NewInt(number), true
}

func (e *evaluation) dim(v Value, property TensorProperty, dim int) (Value, bool) {
	n, ok := e.h.Dim(v, property, dim)
	if !ok {
		return nil, false
	}
	return e.h.NewInt(n), true
}

func at(items []Value, i int) (Value, bool) {
	if i < 0 || i >= len(items) {
		return nil, false
	}
	return items[i], true
}

// holds evaluates a check node.
func (e *evaluation) holds(n *Node) bool {
	v := e.regs[n.Src]
	want := n.Flags&FlagPresent != 0
	switch n.Op {
	case OpValid:
		return e.h.Valid()
	case OpDictLacks:
		_, found, isDict := e.h.DictGet(v, e.konst(n.A))
		return isDict && !found
	case OpTypeMatch:
		return e.h.Type(v) == e.konst(n.A)
	case OpIDMatch:
		return v == e.konst(n.A)
	case OpNotNone:
		return v != e.h.None()
	case OpEquals:
		return e.h.Equal(v, e.konst(n.A))
	case OpNameMatch:
		return e.h.IsName(v, e.konst(n.A))
	case OpHasAttr:
		_, found := e.h.InstanceAttr(v, e.konst(n.A))
		return found == want
	case OpTypeHasAttr:
		_, found, isType := e.h.TypeLookup(v, e.konst(n.A))
		return isType && found == want
	case OpFloatCompare:
		holds, ok := e.floatHolds(v, e.konst(n.A), FloatRel(n.B))
		return ok && holds == want
	case OpLength:
		length, ok := e.h.Length(v)
		return ok && length == int(n.A)
	case OpTupleIterLen:
		items, ok := e.h.TupleIter(v)
		return ok && len(items) == int(n.A)
	case OpIterLeft:
		left, ok := e.h.IterLeft(v)
		return ok && (left == int(int32(n.A)) || want && left > int(int32(n.A)))
	case OpDictKeys:
		keys, ok := e.h.DictKeys(v)
		return ok && e.same(keys, n.A)
	case OpDictContains:
		_, found, isDict := e.h.DictGet(v, e.konst(n.A))
		return isDict && found == want
	case OpHolds:
		_, found, isDict := e.h.DictGet(v, e.regs[n.A])
		return isDict && found == want
	case OpParamNames:
		names, ok := e.h.ParamNames(v)
		return ok && e.same(names, n.A)
	case OpObjectMutation:
		return v == e.konst(n.A) && e.h.Unchanged(v)
	case OpGradMode:
		return e.h.GradEnabled() == want
	case OpCellEmpty:
		_, empty, isCell := e.h.Cell(v)
		return isCell && empty
	case OpQuiet:
		return !e.h.Watched(v)
	case OpQuietName, OpQuietKey, OpQuietSlot:
		return !e.h.EndsInCode(v, e.konst(n.A))
	case OpQuietIndex:
		return !e.h.EndsInCode(v, int(int32(n.A)))
	case OpSame:
		return v == e.regs[n.A]
	case OpDifferent:
		return v != e.regs[n.A]
	case OpPyCheck:
		return e.h.Call(e.konst(n.A), v)
	case OpTensors:
		return e.tensors(n)
	case OpShapeEnv:
		return e.sizes(e.p.Sizes[n.A : n.A+n.B])
	}
	return false
}

// floatHolds compares two floats. ok is false if v is no float.
func (e *evaluation) floatHolds(v, bound Value, rel FloatRel) (holds, ok bool) {
	x, ok := e.h.Float(v)
	y, ok2 := e.h.Float(bound)
	switch rel {
	case FloatLT:
		holds = x < y
	case FloatLE:
		holds = x <= y
	case FloatEQ:
		holds = x == y
	case FloatNE:
		holds = x != y
	case FloatGT:
		holds = x > y
	case FloatGE:
		holds = x >= y
	}
	return holds, ok && ok2
}

// same reports whether the values equal the items of a constant tuple.
func (e *evaluation) same(values []Value, konst uint32) bool {
	wanted, ok := e.h.Items(e.konst(konst))
	if !ok || len(wanted) != len(values) {
		return false
	}
	for i := range wanted {
		if !e.h.Equal(values[i], wanted[i]) {
			return false
		}
	}
	return true
}

func (e *evaluation) tensors(n *Node) bool {
	if n.Flags&FlagState != 0 && !e.h.StateEqual() {
		return false
	}
	for i := n.A; i < n.A+n.B; i++ {
		if !e.h.Tensor(e.regs[e.p.Tensors[i].Reg], int(i)) {
			return false
		}
	}
	return true
}

// sizes evaluates a condition on sizes.
func (e *evaluation) sizes(steps []SizeStep) bool {
	var stack []int64
	for _, step := range steps {
		n := len(stack)
		if rel, ok := step.relation(); ok {
			return rel.holds(stack[n-2], stack[n-1])
		}
		value, ok := step.N, true
		switch step.Op {
		case SizeConst:
		case SizeLoad:
			value, ok = e.h.Int(e.regs[step.Reg])
		case sizeLoadSize:
			value, ok = e.h.Dim(e.regs[step.Reg], TensorSize, int(step.Dim))
		case sizeLoadStride:
			value, ok = e.h.Dim(e.regs[step.Reg], TensorStride, int(step.Dim))
		default:
			n -= step.Op.arity()
			value, ok = step.Op.apply(stack[n], stack[len(stack)-1])
			stack = stack[:n]
		}
		if !ok {
			return false
		}
		stack = append(stack, value)
	}
	return false
}
