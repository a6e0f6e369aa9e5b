package guards

import (
	"fmt"
	"strconv"
	"strings"
)

// GuardBuilder turns guards into parts (conditions of the guard text, with their checks). As in TorchDynamo,
// a frame has two builders, one for the guards on locals and one for all others. Both add their parts to one
// CheckFunctionManager.
type GuardBuilder struct {
	manager *CheckFunctionManager
}

// create calls the builder method for the guard's kind. A guard whose kind is not in the table is malformed.
// The error ends this translation; otherwise the guard would fail at the next call.
func (b *GuardBuilder) create(g *Guard) error {
	if g.CreateFn <= 0 || g.CreateFn >= numCreateFns {
		return fmt.Errorf("guards: %q has no GuardBuilder method (kind %d)", g.Name, g.CreateFn)
	}
	processWide := g.CreateFn == CreateGradMode || g.CreateFn == CreateGlobalState || g.CreateFn == CreateNumThreads
	if g.Origin == nil && !processWide {
		return fmt.Errorf("guards: %v has no source", g.CreateFn)
	}
	if g.Args.Other == nil && g.CreateFn.two() {
		return fmt.Errorf("guards: %v on %q has no other source", g.CreateFn, g.Name)
	}
	return kindTable[g.CreateFn].create(b, g)
}

// check describes a check node whose registers and constants have no numbers yet.
type check struct {
	op    Op
	flags uint8
	a, b  operand
}

// operand is a number, or an object, name or place that gets its number later.
type operand struct {
	class  operandClass
	keep   Keep
	number uint32
	konst  Const
	name   string
	src    Source
}

func object(c Const, keep Keep) operand { return operand{class: operandObject, konst: c, keep: keep} }
func held(c Const) operand              { return operand{class: operandHeld, konst: c, keep: KeepStrong} }
func literal(c Const) operand           { return operand{class: operandLiteral, konst: c} }
func named(s string) operand            { return operand{class: operandName, name: s} }
func number(n int) operand              { return operand{class: operandInt, number: uint32(int32(n))} }
func cached() operand                   { return operand{class: operandCache} }
func register(s Source) operand         { return operand{class: operandReg, src: s} }

// ref returns the text of the guarded place.
func (b *GuardBuilder) ref(g *Guard) string { return printed(g.Origin, b.manager.printer) }

// add appends a part. `stage` orders the parts on one place: a type is checked before the conditions that
// depend on the type.
func (b *GuardBuilder) add(g *Guard, stage int, text string, c check) error {
	m := b.manager
	if len(m.room) == cap(m.room) {
		m.room = make([]part, 0, min(max(8, 2*cap(m.room)), 128))
	}
	m.room = append(m.room, part{guard: g, stage: stage, text: text, check: c})
	m.parts = append(m.parts, &m.room[len(m.room)-1])
	return nil
}

func present(flag bool) uint8 {
	if flag {
		return FlagPresent
	}
	return 0
}

// negated returns a condition, or its negation if want is false.
func negated(want bool, text string) string {
	if want {
		return text
	}
	return "not " + text
}

func (b *GuardBuilder) typeID(g *Guard) error {
	text := "___check_type_id(" + b.ref(g) + ", " + strconv.FormatUint(g.Args.Obj.ID, 10) + ")"
	return b.add(g, 0, text, check{op: OpTypeMatch, a: object(g.Args.Obj, g.Args.Keep)})
}

func (b *GuardBuilder) objID(g *Guard) error {
	text := "___check_obj_id(" + b.ref(g) + ", " + strconv.FormatUint(g.Args.Obj.ID, 10) + ")"
	return b.add(g, 0, text, check{op: OpIDMatch, a: object(g.Args.Obj, g.Args.Keep)})
}

// TypeMatch builds a TYPE_MATCH guard.
func (b *GuardBuilder) TypeMatch(g *Guard) error { return b.typeID(g) }

// IDMatch builds an ID_MATCH guard.
func (b *GuardBuilder) IDMatch(g *Guard) error { return b.objID(g) }

// NNModule builds an NN_MODULE guard.
func (b *GuardBuilder) NNModule(g *Guard) error { return b.objID(g) }

// FunctionMatch builds a FUNCTION_MATCH guard.
func (b *GuardBuilder) FunctionMatch(g *Guard) error { return b.objID(g) }

// BuiltinMatch builds a BUILTIN_MATCH guard.
func (b *GuardBuilder) BuiltinMatch(g *Guard) error { return b.objID(g) }

// PyModuleMatch builds a PYMODULE_MATCH guard.
func (b *GuardBuilder) PyModuleMatch(g *Guard) error { return b.objID(g) }

// NameMatch builds a NAME_MATCH guard.
func (b *GuardBuilder) NameMatch(g *Guard) error {
	text := b.ref(g) + ".__name__ == " + quote(g.Args.Str)
	return b.add(g, 1, text, check{op: OpNameMatch, a: named(g.Args.Str)})
}

// HasAttr builds a HASATTR guard.
func (b *GuardBuilder) HasAttr(g *Guard) error {
	text := "___hasattr(" + b.ref(g) + ", " + quote(g.Args.Str) + ")"
	return b.add(g, 1, negated(g.Args.Flag, text),
		check{op: OpHasAttr, flags: present(g.Args.Flag), a: named(g.Args.Str), b: cached()})
}

// TypeHasAttr builds a TYPE_HASATTR guard.
func (b *GuardBuilder) TypeHasAttr(g *Guard) error {
	text := "___type_hasattr(" + b.ref(g) + ", " + quote(g.Args.Str) + ")"
	return b.add(g, 1, negated(g.Args.Flag, text),
		check{op: OpTypeHasAttr, flags: present(g.Args.Flag), a: named(g.Args.Str)})
}

// EqualsMatch builds an EQUALS_MATCH guard. Its text is an equality such as `y == 2`, or a call of a helper if Python's
// == would accept a value that differs.
func (b *GuardBuilder) EqualsMatch(g *Guard) error {
	return b.add(g, 1, equalsText(b.ref(g), g.Args.Obj), check{op: OpEquals, a: literal(g.Args.Obj)})
}

// ConstantMatch builds a CONSTANT_MATCH guard.
func (b *GuardBuilder) ConstantMatch(g *Guard) error {
	if g.Args.Flag {
		return b.objID(g)
	}
	return b.EqualsMatch(g)
}

// equalsText returns the text of an equality. An earlier part checks the type. The text uses `==` for values for which
// == returns what the EQUALS node does. For other values (nan, the two zeros, complex, containers whose items could
// have other types) it calls ___equals, which compares part by part.
func equalsText(ref string, c Const) string {
	text := c.Text
	if !isLiteral(text) {
		return fmt.Sprintf("___equals(%s, %s)", ref, constText(c))
	}
	if args, isRange := strings.CutPrefix(text, "range("); isRange {
		fields := strings.Split(strings.TrimSuffix(args, ")"), ", ")
		if len(fields) == 2 {
			fields = append(fields, "1")
		}
		// Ranges are equal when they yield the same numbers. The bounds are compared as well, since the
		// user's code may read them.
		return fmt.Sprintf("%[1]s == %[2]s and (%[1]s.start, %[1]s.stop, %[1]s.step) == (%[3]s)", ref, text,
			strings.Join(fields, ", "))
	}
	number, err := strconv.ParseFloat(text, 64)
	isZero := err == nil && number == 0 && strings.ContainsAny(text, ".e")
	container := strings.HasSuffix(text, ")") // a tuple, frozenset, slice or complex
	if text == "nan" || text == "-nan" || isZero || container || strings.HasSuffix(text, "j") {
		return fmt.Sprintf("___equals(%s, %s)", ref, text)
	}
	return ref + " == " + text
}

// FloatCompare builds a FLOAT_COMPARE guard.
func (b *GuardBuilder) FloatCompare(g *Guard) error {
	text := fmt.Sprintf("%s %s %s", b.ref(g), floatRels[g.Args.N], constText(g.Args.Obj))
	return b.add(g, 1, negated(g.Args.Flag, text),
		check{op: OpFloatCompare, flags: present(g.Args.Flag), a: literal(g.Args.Obj), b: number(g.Args.N)})
}

// ListLength builds a LIST_LENGTH guard, with a check of the type.
func (b *GuardBuilder) ListLength(g *Guard) error {
	if err := b.typeID(g); err != nil {
		return err
	}
	text := "len(" + b.ref(g) + ") == " + strconv.Itoa(g.Args.N)
	return b.add(g, 1, text, check{op: OpLength, a: number(g.Args.N)})
}

// DictLength builds a DICT_LENGTH guard.
func (b *GuardBuilder) DictLength(g *Guard) error {
	text := "len(" + b.ref(g) + ") == " + strconv.Itoa(g.Args.N)
	return b.add(g, 1, text, check{op: OpLength, a: number(g.Args.N)})
}

// TupleIteratorLen builds a TUPLE_ITERATOR_LEN guard.
func (b *GuardBuilder) TupleIteratorLen(g *Guard) error {
	text := fmt.Sprintf("___tuple_iterator_len(%s) == %d", b.ref(g), g.Args.N)
	return b.add(g, 1, text, check{op: OpTupleIterLen, a: number(g.Args.N)})
}

// IteratorLeft builds an ITERATOR_LEFT guard.
func (b *GuardBuilder) IteratorLeft(g *Guard) error {
	relation := "=="
	if g.Args.Flag {
		relation = ">="
	}
	text := fmt.Sprintf("___iterator_left(%s) %s %d", b.ref(g), relation, g.Args.N)
	return b.add(g, 1, text, check{op: OpIterLeft, flags: present(g.Args.Flag), a: number(g.Args.N)})
}

// DictKeys builds a DICT_KEYS guard, with a check of the type.
func (b *GuardBuilder) DictKeys(g *Guard) error {
	if err := b.typeID(g); err != nil {
		return err
	}
	text := "___dict_keys(" + b.ref(g) + ") == " + constText(g.Args.Obj2)
	return b.add(g, 1, text, check{op: OpDictKeys, a: literal(g.Args.Obj2), b: cached()})
}

// ODictKeys builds an ODICT_KEYS guard.
func (b *GuardBuilder) ODictKeys(g *Guard) error { return b.DictKeys(g) }

// DictContains builds a DICT_CONTAINS guard.
func (b *GuardBuilder) DictContains(g *Guard) error {
	text := "___dict_contains(" + constText(g.Args.Obj) + ", " + b.ref(g) + ")"
	return b.add(g, 1, negated(g.Args.Flag, text),
		check{op: OpDictContains, flags: present(g.Args.Flag), a: literal(g.Args.Obj), b: cached()})
}

// HoldsObject builds a HOLDS_OBJECT guard.
func (b *GuardBuilder) HoldsObject(g *Guard) error {
	text := "___holds(" + b.ref(g) + ", " + g.Args.Other.text(b.manager.printer) + ")"
	return b.add(g, 1, negated(g.Args.Flag, text),
		check{op: OpHolds, flags: present(g.Args.Flag), a: register(g.Args.Other)})
}

// WeakrefAlive builds a WEAKREF_ALIVE guard.
func (b *GuardBuilder) WeakrefAlive(g *Guard) error {
	return b.add(g, 0, b.ref(g)+" is not None", check{op: OpNotNone})
}

// NNModuleParamNames builds an NN_MODULE_PARAM_NAMES guard.
func (b *GuardBuilder) NNModuleParamNames(g *Guard) error {
	text := fmt.Sprintf("___param_names(%s) == %s", b.ref(g), constText(g.Args.Obj))
	return b.add(g, 1, text, check{op: OpParamNames, a: literal(g.Args.Obj)})
}

// ObjectMutation builds an OBJECT_MUTATION guard.
func (b *GuardBuilder) ObjectMutation(g *Guard) error {
	text := "___check_mutation(" + b.ref(g) + ", " + strconv.FormatUint(g.Args.Obj.ID, 10) + ")"
	return b.add(g, 0, text, check{op: OpObjectMutation, a: object(g.Args.Obj, g.Args.Keep), b: cached()})
}

// GradMode builds a GRAD_MODE guard.
func (b *GuardBuilder) GradMode(g *Guard) error {
	return b.add(g, 0, negated(g.Args.Flag, "___is_grad_enabled()"),
		check{op: OpGradMode, flags: present(g.Args.Flag)})
}

// quiet builds a QUIET_* guard (see QuietAt). The node's flags and the guard text hold the number of such
// guards in the entry.
func (b *GuardBuilder) quiet(g *Guard, at, slot string, c check) error {
	c.flags = b.manager.places
	return b.add(g, 1, fmt.Sprintf("not ___ends_in_code(%s, %s, %d%s)", b.ref(g), at, c.flags, slot), c)
}

// Quiet builds a QUIET guard. It adds nothing if another guard checks that the value is a tensor or equals a
// constant.
func (b *GuardBuilder) Quiet(g *Guard) error {
	if b.manager.pinned[g.Name] {
		return nil
	}
	flags := b.manager.places
	return b.add(g, 1, fmt.Sprintf("not ___ends(%s, %d)", b.ref(g), flags), check{op: OpQuiet, flags: flags})
}

// QuietName builds a QUIET_NAME guard.
func (b *GuardBuilder) QuietName(g *Guard) error {
	return b.quiet(g, quote(g.Args.Str), "", check{op: OpQuietName, a: named(g.Args.Str), b: cached()})
}

// QuietKey builds a QUIET_KEY guard.
func (b *GuardBuilder) QuietKey(g *Guard) error {
	return b.quiet(g, constText(g.Args.Obj), "", check{op: OpQuietKey, a: literal(g.Args.Obj), b: cached()})
}

// QuietSlot builds a QUIET_SLOT guard.
func (b *GuardBuilder) QuietSlot(g *Guard) error {
	return b.quiet(g, quote(g.Args.Str), ", True", check{op: OpQuietSlot, a: named(g.Args.Str), b: number(g.Args.N)})
}

// QuietIndex builds a QUIET_INDEX guard.
func (b *GuardBuilder) QuietIndex(g *Guard) error {
	return b.quiet(g, strconv.Itoa(g.Args.N), "", check{op: OpQuietIndex, a: number(g.Args.N)})
}

// CellEmpty builds a CELL_EMPTY guard.
func (b *GuardBuilder) CellEmpty(g *Guard) error {
	return b.add(g, 1, "___cell_empty("+b.ref(g)+")", check{op: OpCellEmpty})
}

// DuplicateInput builds a DUPLICATE_INPUT guard.
func (b *GuardBuilder) DuplicateInput(g *Guard) error {
	text := b.ref(g) + " is " + g.Args.Other.text(b.manager.printer)
	return b.add(g, 1, text, check{op: OpSame, a: register(g.Args.Other)})
}

// NoAlias builds a NO_ALIAS guard.
func (b *GuardBuilder) NoAlias(g *Guard) error {
	text := b.ref(g) + " is not " + g.Args.Other.text(b.manager.printer)
	return b.add(g, 1, text, check{op: OpDifferent, a: register(g.Args.Other)})
}

// PyCheck builds a PY_CHECK guard.
func (b *GuardBuilder) PyCheck(g *Guard) error {
	text := fmt.Sprintf("___object(%d, %s)(%s)", g.Args.Obj.ID, quote(g.Args.Str), b.ref(g))
	return b.add(g, 2, text, check{op: OpPyCheck, a: held(g.Args.Obj)})
}

// TensorMatch records a TENSOR_MATCH guard. One final check compares all tensors.
func (b *GuardBuilder) TensorMatch(g *Guard) error {
	if g.Args.Tensor == nil {
		return fmt.Errorf("guards: TENSOR_MATCH on %q without a tensor", g.Name)
	}
	b.manager.tensors = append(b.manager.tensors, g)
	return nil
}

// ShapeEnv records a SHAPE_ENV guard. It is checked after all tensors. If modules are not guarded, a value inside an
// nn.Module counts as a constant.
func (b *GuardBuilder) ShapeEnv(g *Guard) error {
	m := b.manager
	if g.Args.Cond == nil {
		return fmt.Errorf("guards: SHAPE_ENV on %q without a condition", g.Name)
	}
	cond, _ := g.Args.Cond.rewritten(func(inst SizeInst) (SizeInst, bool) {
		if inst.Src != nil && m.unguarded(inst.Src.GuardSource()) {
			return SizeInst{Op: SizeConst, N: inst.Hint}, true
		}
		return inst, true
	})
	text, err := cond.text(m.printer)
	if err != nil {
		return err
	}
	own := *g
	own.Args.Cond = cond
	m.conditions = append(m.conditions, &part{guard: &own, text: text})
	return nil
}

// GlobalState records a GLOBAL_STATE guard. The final check always compares torch's global state.
func (b *GuardBuilder) GlobalState(g *Guard) error {
	b.manager.stateLine = g.Line
	b.manager.needsState = true
	return nil
}

// NumThreads records a NUM_THREADS guard. With it, the check of torch's global state compares the number of threads.
func (b *GuardBuilder) NumThreads(g *Guard) error {
	b.manager.threads = true
	return b.GlobalState(g)
}
