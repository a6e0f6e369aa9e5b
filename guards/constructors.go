package guards

import "strconv"

// on returns a guard of the given kind on a place.
func on(src Source, kind CreateFn, key string, args Args) Guard {
	return Guard{Name: src.Name(), Source: src.GuardSource(), CreateFn: kind, Key: key, Origin: src, Args: args}
}

// process returns a guard of the given kind on the state of the whole process.
func process(kind CreateFn, key string, args Args) Guard {
	return Guard{Source: SourceGlobal, CreateFn: kind, Key: key, Args: args}
}

// Each comment below says when the guard that the constructor returns holds. v is the value of src.

// TypeMatch holds when type(v) is typ. A v whose type is a subclass of typ fails. The type is kept weakly.
func TypeMatch(src Source, typ Const) Guard {
	return on(src, CreateTypeMatch, "", Args{Obj: typ, Keep: KeepWeak})
}

// IDMatch holds when the value of src is the object obj.
func IDMatch(src Source, obj Const, keep Keep) Guard {
	return on(src, CreateIDMatch, "", Args{Obj: obj, Keep: keep})
}

// EqualsMatch holds when v, the value of src, has exactly type typ and equals val, part by part: 2, 2.0 and
// True differ, 0.0 and -0.0 differ, nan equals nan. val must be an exact None, bool, int, float, complex, str,
// bytes, Ellipsis, range, or a tuple, frozenset or slice of these. The check never runs the user's code.
func EqualsMatch(src Source, typ, val Const) []Guard {
	return []Guard{TypeMatch(src, typ), on(src, CreateEqualsMatch, "", Args{Obj: val})}
}

// ConstantMatch holds when the value of src is val, if val is None, True, False or Ellipsis. For other
// constants it holds when EqualsMatch does.
func ConstantMatch(src Source, typ, val Const) []Guard {
	if isSingleton(val) {
		return []Guard{on(src, CreateConstantMatch, "", Args{Obj: val, Flag: true})}
	}
	return []Guard{TypeMatch(src, typ), on(src, CreateConstantMatch, "", Args{Obj: val})}
}

func isSingleton(val Const) bool {
	switch val.Text {
	case "None", "True", "False", "Ellipsis":
		return true
	}
	return false
}

// NameMatch holds when the value of src is a function, class or module whose __name__ is name.
func NameMatch(src Source, name string) Guard {
	return on(src, CreateNameMatch, name, Args{Str: name})
}

// HasAttr holds when the instance itself has the attribute (or lacks it, if present is false). Its class is
// ignored, and no descriptor or __getattr__ runs.
func HasAttr(src Source, name string, present bool) Guard {
	return on(src, CreateHasAttr, name, Args{Str: name, Flag: present})
}

// TypeHasAttr holds when a class in the type's MRO has the attribute (or no class has it, if present is
// false). The value of src is a type.
func TypeHasAttr(src Source, name string, present bool) Guard {
	return on(src, CreateTypeHasAttr, name, Args{Str: name, Flag: present})
}

// ListLength holds for an object of exactly typ (list, tuple, set, str, deque, ...) with n items.
func ListLength(src Source, typ Const, n int) Guard {
	return on(src, CreateListLength, "", Args{Obj: typ, Keep: KeepWeak, N: n})
}

// TupleIteratorLen holds for a tuple iterator with n items left.
func TupleIteratorLen(src Source, n int) Guard {
	return on(src, CreateTupleIteratorLen, "", Args{N: n})
}

// IteratorLeft holds for an iterator of a builtin type with n items left; with more, also for one with more items. n is
// -1 for one that has ended, and the number of iterators for a zip or map.
func IteratorLeft(src Source, n int, more bool) Guard {
	key := strconv.Itoa(n)
	if more {
		key += "+"
	}
	return on(src, CreateIteratorLeft, key, Args{N: n, Flag: more})
}

// DictKeys holds for an object of exactly typ, a dict class, with the same keys in the same order. keys is a
// tuple of n keys. Keys of exact builtin types are compared part by part, all others by identity.
func DictKeys(src Source, typ, keys Const, n int) Guard {
	return on(src, CreateDictKeys, "", Args{Obj: typ, Keep: KeepWeak, Obj2: keys, N: n})
}

// ODictKeys does the same as DictKeys for an OrderedDict, which keeps its own order.
func ODictKeys(src Source, typ, keys Const, n int) Guard {
	return on(src, CreateODictKeys, "", Args{Obj: typ, Keep: KeepWeak, Obj2: keys, N: n})
}

// DictContains holds when the dict's own storage contains key (or lacks it, if present is false).
func DictContains(src Source, key Const, present bool) Guard {
	return on(src, CreateDictContains, "#"+strconv.Itoa(key.Index), Args{Obj: key, Flag: present})
}

// HoldsObject holds when the dict or set at src has the object at key as a key or member (or lacks it, if present is
// false). The object equals only itself.
func HoldsObject(src, key Source, present bool) Guard {
	return on(src, CreateHoldsObject, key.Name(), Args{Other: key, Flag: present})
}

// DictLength holds for a dict with n items.
func DictLength(src Source, n int) Guard {
	return on(src, CreateDictLength, "", Args{N: n})
}

// WeakrefAlive holds when the referent read by a GlobalWeakRefSource is alive.
func WeakrefAlive(src Source) Guard { return on(src, CreateWeakrefAlive, "", Args{}) }

// NNModule holds when the value of src is the nn.Module obj.
func NNModule(src Source, obj Const) Guard {
	return on(src, CreateNNModule, "", Args{Obj: obj, Keep: KeepWeak})
}

// FunctionMatch holds when the value of src is the function obj.
func FunctionMatch(src Source, obj Const) Guard {
	return on(src, CreateFunctionMatch, "", Args{Obj: obj, Keep: KeepWeak})
}

// BuiltinMatch holds when the value of src is the builtin obj.
func BuiltinMatch(src Source, obj Const) Guard {
	return on(src, CreateBuiltinMatch, "", Args{Obj: obj, Keep: KeepWeak})
}

// PyModuleMatch holds when the value of src is the Python module obj.
func PyModuleMatch(src Source, obj Const) Guard {
	return on(src, CreatePyModuleMatch, "", Args{Obj: obj, Keep: KeepWeak})
}

// NNModuleParamNames holds for an nn.Module whose named_parameters() have exactly the names in keys, a tuple
// of str, in that order.
func NNModuleParamNames(src Source, keys Const) Guard {
	return on(src, CreateNNModuleParamNames, "", Args{Obj: keys})
}

// ObjectMutation holds when the value of src is obj and no attribute of obj was set or deleted since the entry
// was made. obj must have a __dict__, as an nn.Module does; otherwise making the entry fails.
func ObjectMutation(src Source, obj Const) Guard {
	return on(src, CreateObjectMutation, "", Args{Obj: obj, Keep: KeepWeak})
}

// GradMode holds when torch.is_grad_enabled() returns enabled.
func GradMode(enabled bool) Guard {
	return process(CreateGradMode, "", Args{Flag: enabled})
}

// FloatRel is a comparison of two floats. Its number is the one that CPython uses.
type FloatRel int

// The comparisons.
const (
	FloatLT FloatRel = iota
	FloatLE
	FloatEQ
	FloatNE
	FloatGT
	FloatGE
)

var floatRels = [...]string{"<", "<=", "==", "!=", ">", ">="}

// FloatCompare holds when the value of src is a float and its comparison with bound, a finite float, has the result
// `holds`. Every comparison with NaN is false, so a false `<` does not imply `>=`.
func FloatCompare(src Source, rel FloatRel, bound Const, holds bool) Guard {
	return on(src, CreateFloatCompare, floatRels[rel]+bound.Text, Args{N: int(rel), Obj: bound, Flag: holds})
}

// TensorMatch compares a tensor's metadata. Two TENSOR_MATCH guards on one place are merged.
func TensorMatch(src Source, t *TensorArgs) Guard {
	return on(src, CreateTensorMatch, "", Args{Tensor: t})
}

// GlobalState compares torch's global state (grad mode, dispatch keys, modes, autocast, ...), even if no
// tensor is checked.
func GlobalState() Guard { return process(CreateGlobalState, "", Args{}) }

// NumThreads compares torch.get_num_threads(), besides the rest of torch's global state. Reading this number takes a
// call into libtorch. So only translations that depend on it have this guard: a compiler made their code, or the
// program asks for the number.
func NumThreads() Guard { return process(CreateNumThreads, "", Args{}) }

// quietFamily is the set of the QUIET_* kinds: guards on values that a frame drops.
var quietFamily = map[CreateFn]struct{}{CreateQuiet: {}, CreateQuietName: {}, CreateQuietKey: {}, CreateQuietSlot: {},
	CreateQuietIndex: {}}

// QuietName holds when dropping the value that v stores under `name` runs none of the user's code. v, the value of src,
// is a dict, or an instance whose own storage is read. The guard holds if there is no value, if other references keep
// the value alive, or if neither the value nor any object that only the value holds has a __del__ or a weak reference
// with a callback. Other references count only if there are more of them than the entry has QUIET_* guards, since the
// frame may drop that many.
func QuietName(src Source, name string) Guard {
	return on(src, CreateQuietName, name, Args{Str: name})
}

// QuietKey does the same as QuietName for the value at a key of a dict.
func QuietKey(src Source, key Const) Guard {
	return on(src, CreateQuietKey, "#"+strconv.Itoa(key.Index), Args{Obj: key})
}

// Quiet does the same as QuietName for the value of a variable.
func Quiet(src *LocalSource) Guard { return on(src, CreateQuiet, "", Args{}) }

// QuietSlot does the same as QuietName for a __slots__ member at a byte offset.
func QuietSlot(src Source, name string, offset int) Guard {
	return on(src, CreateQuietSlot, name, Args{Str: name, N: offset})
}

// QuietIndex does the same as QuietName for an item of a list or deque. The contents of a cell count as its
// item 0.
func QuietIndex(src Source, i int) Guard {
	return on(src, CreateQuietIndex, strconv.Itoa(i), Args{N: i})
}

// QuietAt returns the QUIET_* guard for the place that src reads, or false if places of that kind cannot be
// assigned individually.
func QuietAt(src Source) (Guard, bool) {
	switch s := src.(type) {
	case *AttrSource:
		return QuietName(s.Base(), s.Attr), true
	case *SlotSource:
		return QuietSlot(s.Base(), s.Attr, s.Offset), true
	case *GetItemSource:
		return QuietKey(s.Base(), s.Key), true
	case *CellSource:
		return QuietIndex(s.Base(), 0), true
	case *IndexSource:
		return QuietIndex(s.Base(), s.Index), true
	}
	return Guard{}, false
}

// CellEmpty holds when the cell has no contents. src is the place of the cell itself.
func CellEmpty(src Source) Guard { return on(src, CreateCellEmpty, "", Args{}) }

// DuplicateInput holds when the two places hold one object.
func DuplicateInput(a, b Source) Guard {
	return on(a, CreateDuplicateInput, b.Name(), Args{Other: b})
}

// NoAlias holds when the two places hold different objects.
func NoAlias(a, b Source) Guard {
	return on(a, CreateNoAlias, b.Name(), Args{Other: b})
}

// PyCheck calls one of godynamo's Python predicates with the value. It is slow, so it is used only for
// conditions that no other kind expresses. text describes the predicate in the guard text. Of several predicates on src
// with one text, a translation keeps the first, unless they are about different objects. about has their IDs.
func PyCheck(src Source, callable Const, text string, about ...uint64) Guard {
	key := text
	for _, id := range about {
		key += " " + strconv.FormatUint(id, 10)
	}
	return on(src, CreatePyCheck, key, Args{Obj: callable, Str: text})
}
