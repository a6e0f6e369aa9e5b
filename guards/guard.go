// Package guards records what a translation assumed about the frame from which it was made. It turns those
// assumptions into a program that is checked before every later call.
//
//	Source        a place from which a value is read: x, x.weight, G['torch'], x[0]  source*.go
//	Guard         one assumption about one Source: its type, its identity, ...       guard.go, constructors.go
//	Set           the guards of a value or of a whole translation                    set.go
//	GuardBuilder  one method for each kind: Guard → parts (text and operations)      builder.go
//	CheckFunctionManager  all guards → one Program and one text                      check_function.go
//	Program       16-byte nodes over registers; verified, then run by C              program.go, eval.go
//	SizeCond      a condition on sizes, strides and ints                             sizes.go
//
// The kinds and operations are rows of kinds.table. The package is pure: it uses neither C nor Python, and
// refers to Python objects by their index in the translation's constant pool. It never evaluates a program
// on real objects. eval.go is the reference against which pyhook/core/guards/eval.c is tested.
package guards

//go:generate go run ./gen

import (
	"cmp"
	"strings"
)

// Const names an object of the translation's constant pool.
type Const struct {
	Index int    // index in the pool
	Text  string // repr of a literal value, or another printed form; a shortened repr must not look like a literal
	ID    uint64 // address, as returned by id()
}

// UserLine is the line of the user's program that was being translated when a guard was made. The zero value
// means that the line is unknown.
type UserLine struct {
	File string
	Line int
}

// GuardSource is a family of places from which guarded values are read.
type GuardSource int

// The families. The NN_MODULE ones may be left unguarded (Options.GuardNNModules).
const (
	SourceLocal GuardSource = iota
	SourceGlobal
	SourceLocalNNModule
	SourceGlobalNNModule
	SourceConstant
	SourceRandomValue
	// inside a polyfill, godynamo's Python code in place of C code; polyfills never change, so no guard checks them
	SourcePolyfill
)

var guardSourceNames = [...]string{"LOCAL", "GLOBAL", "LOCAL_NN_MODULE", "GLOBAL_NN_MODULE", "CONSTANT",
	"RANDOM_VALUE", "POLYFILL"}

// String returns Dynamo's name of the family.
func (s GuardSource) String() string {
	if s < 0 || int(s) >= len(guardSourceNames) {
		return "UNKNOWN"
	}
	return guardSourceNames[s]
}

// IsNNModule reports whether the value is read from inside an nn.Module.
func (s GuardSource) IsNNModule() bool { return s == SourceLocalNNModule || s == SourceGlobalNNModule }

// FamilyInNNModule does the same as IsNNModule for a family given by its name.
func FamilyInNNModule(name string) bool {
	return name == SourceLocalNNModule.String() || name == SourceGlobalNNModule.String()
}

// IsLocal reports whether the value is reached from the frame's locals.
func (s GuardSource) IsLocal() bool { return s == SourceLocal || s == SourceLocalNNModule }

// Keep says how an entry keeps an object to which its program refers.
type Keep uint8

// The values of Keep; golib.h has the same numbers. If a weakly kept object dies, the entry becomes invalid. An
// object that does not support weak references is held strongly. KeepOwner is for an object that stays alive
// because an earlier check refers to its owner.
const (
	KeepStrong Keep = iota
	KeepWeak
	KeepOwner
)

// CreateFn is a kind of guard. Each kind has a method of GuardBuilder. The zero value is no kind.
type CreateFn int

type kindInfo struct {
	name   string
	rank   int
	create func(*GuardBuilder, *Guard) error
}

// two reports whether guards of this kind are about two places.
func (c CreateFn) two() bool {
	return c == CreateDuplicateInput || c == CreateNoAlias || c == CreateHoldsObject
}

// String returns Dynamo's name of the kind, such as TYPE_MATCH.
func (c CreateFn) String() string {
	if c <= 0 || c >= numCreateFns {
		return "UNKNOWN"
	}
	return kindTable[c].name
}

// TensorFields selects the fields of a tensor that are compared: the Tensor* bits of kinds.table.
type TensorFields = uint16

// TensorArgs are the operands of TENSOR_MATCH. The expected metadata is read from Example when the entry is
// made.
type TensorArgs struct {
	Example       Const
	Fields        TensorFields
	StaticSizes   uint64 // bit i: size of dimension i is compared; needs TensorSizes
	StaticStrides uint64 // bit i: stride of dimension i is compared; needs TensorStrides
}

// Args are a guard's operands; its kind decides which of them are used.
type Args struct {
	Obj, Obj2 Const
	Keep      Keep
	N         int
	Str       string
	Flag      bool
	Tensor    *TensorArgs
	Other     Source
	Cond      *SizeCond
}

// Guard is one assumption about one place. Two guards with the same ID are the same guard.
type Guard struct {
	Name     string      // name of the place: Origin.Name(), or "" for the whole process
	Source   GuardSource // family of the place
	CreateFn CreateFn
	Key      string // distinguishes guards of one kind on one place, such as the attribute of HASATTR
	Origin   Source // nil for guards of the whole process
	Args     Args
	Line     UserLine
}

// GuardID is a guard's identity, usable as a map key.
type GuardID struct {
	Name     string
	Source   GuardSource
	CreateFn CreateFn
	Key      string
}

// ID returns the guard's identity.
func (g Guard) ID() GuardID { return g.id() }

func (g *Guard) id() GuardID { return GuardID{g.Name, g.Source, g.CreateFn, g.Key} }

// IsNNModule reports whether the guard is about the inside of an nn.Module.
func (g Guard) IsNNModule() bool { return g.Source.IsNNModule() }

// At returns a copy of the guard whose Line is line.
func (g Guard) At(line UserLine) Guard {
	g.Line = line
	return g
}

// Compare orders guards by family, length of the name, name, kind and key. The order in which they were made
// does not matter.
func (g Guard) Compare(other Guard) int { return g.compare(&other) }

func (g *Guard) compare(other *Guard) int {
	switch {
	case g.Source != other.Source:
		return cmp.Compare(g.Source, other.Source)
	case len(g.Name) != len(other.Name):
		return len(g.Name) - len(other.Name)
	case g.Name != other.Name:
		return strings.Compare(g.Name, other.Name)
	case g.CreateFn != other.CreateFn:
		return cmp.Compare(g.CreateFn, other.CreateFn)
	}
	return strings.Compare(g.Key, other.Key)
}

// Create calls the builder method for the guard's kind, on the builder of its family. The parts refer to g.
func (g *Guard) Create(local, global *GuardBuilder) error {
	builder := global
	if g.Source.IsLocal() {
		builder = local
	}
	return builder.create(g)
}
