// Package record holds a translation as data that another process can read: what cache.GuardedCode holds, with
// descriptions in place of Python objects. It encodes and decodes records and checks them. It contains no C and needs
// no CPython; pyhook converts between records and translations.
package record

import "github.com/godynamo/godynamo/bytecode"

// Kind says how an Object is found again.
type Kind uint8

// The kinds. godynamo._stored.objects has the same numbers and describes them.
const (
	// KindRegister is what the guard program reads into the register Number.
	KindRegister Kind = iota + 1
	// KindType is the type of what the guard program reads into the register Number.
	KindType
	// KindResume is the callable for the rest of a frame, Record.Resumes[Number].
	KindResume
	// KindGraph is a compiled graph, Record.Graphs[Number].
	KindGraph
	// KindPython is found by Python: godynamo._stored.objects.find has the ways, which Text names.
	KindPython
)

// Object describes one Python object. Its Items are the numbers of other objects, all smaller than its own.
type Object struct {
	_      struct{} `cbor:",toarray"`
	Kind   Kind
	Number uint32
	Text   string
	Data   []byte
	Items  []uint32
	// Print is a fingerprint of what the translation relied on and no guard checks, such as the code of a function.
	// It is empty if there is nothing of that kind.
	Print []byte
	// Own is set if the object is found by what it is, and not by its value: two such objects are never the same one.
	Own bool
}

// Record is a translation. Numbers of objects are indexes of Objects.
type Record struct {
	_       struct{} `cbor:",toarray"`
	Objects []Object
	Resumes []Resume
	Graphs  []Graph
	// Facts is what was known about the backend if there are graphs.
	Facts      string
	Program    Program
	Function   *Function // nil if the user's code runs
	Extra      []uint32
	Rows       []Row
	Levels     []Level
	Chains     []Chain
	Operations []Operation
	Flags      Flags
	Info       uint32 // the object that explain() shows
	// State describes torch's global state if the guards compare it with that of the first call; otherwise it is empty.
	State string
	// Seed is the hash seed's mark if the translation is valid only with that seed; otherwise it is empty.
	Seed []byte
	// Devices says which devices the machine had, if the translation depends on that; otherwise it is empty.
	Devices string
	// Registered has pairs of classes of which the first must be a subclass of the second, which may be a tuple.
	Registered [][2]uint32
	// Folded has calls that must have the same result again: function, tuple of arguments, result.
	Folded [][3]uint32
	// Sizes are the places that the translation has found to hold ints computed from sizes.
	Sizes []SizePlace
	// Files are the source files of the code objects and functions among the Objects.
	Files []File
	// Break is nil or the guards of translate.Abandoned: a record of which only Objects and Program count.
	Break *Record
}

// Flags are the flags of a cache.GuardedCode. Breaks is set if the graph breaks or the frame is left to CPython.
type Flags struct {
	_                                                     struct{} `cbor:",toarray"`
	NeedsHook, Rerun, HandsOver, Catches, Watches, Breaks bool
}

// Function is a function made for a translation. Closure has the contents of its cells.
type Function struct {
	_              struct{} `cbor:",toarray"`
	Name, QualName string
	Code           Code
	Closure        []uint32
}

// Code describes a code object without its file name. When it is loaded, it gets the file name of the user's code.
type Code struct {
	_                                                    struct{} `cbor:",toarray"`
	Name, QualName                                       string
	Code, LineTable, ExceptionTable                      []byte
	Flags, FirstLine                                     int
	ArgCount, PosOnlyArgCount, KwOnlyArgCount, StackSize int
	Names, LocalsPlusNames                               []string
	LocalsPlusKinds                                      []byte
	Consts                                               []uint32
}

// Resume is the callable for the rest of a frame, as translate.Origin and its function.
type Resume struct {
	_                       struct{} `cbor:",toarray"`
	Of                      uint32   // the user's code object
	Target                  int
	Params, Computed, Sizes []int
	Stack                   string
	Function                Function
	// Inlined has the globals and the builtins of a frame that was inlined. It is empty for the translated frame.
	Inlined []uint32
}

// Graph is a graph that the backend compiles again: fx.Made. Inputs are the registers of the examples that are tensors,
// and -1 for each int that is computed from sizes.
type Graph struct {
	_                                                 struct{} `cbor:",toarray"`
	Rows, Several, Changed, OfModules, Sizes, Assumed uint32
	Inputs                                            []int
	Whole                                             bool
}

// Row is a cache.TracebackRow.
type Row struct {
	_                      struct{} `cbor:",toarray"`
	Start, End, Chain      int
	Drop, Graph, Protected bool
	Place                  int
}

// Level is a cache.Level.
type Level struct {
	_             struct{} `cbor:",toarray"`
	Code, Globals uint32
	Lasti, Line   int
}

// Chain is one chain of a cache.GuardedCode. Levels are indexes of Record.Levels.
type Chain struct {
	_      struct{} `cbor:",toarray"`
	Levels []uint32
	Shown  []Shown
	Nth    int
	Done   bool
}

// Shown is a cache.ShownLocal. Value counts only if Place is -1.
type Shown struct {
	_            struct{} `cbor:",toarray"`
	Index, Place int
	Value        uint32
}

// Operation is a cache.Operation.
type Operation struct {
	_              struct{} `cbor:",toarray"`
	Name           string
	Chain, Outside int
}

// File is the source file of a code object or a function in the first process. It may have moved since.
type File struct {
	_    struct{} `cbor:",toarray"`
	Of   uint32
	Name string
}

// SizePlace is a translate.SizePlaces. From counts only if Result is not empty.
type SizePlace struct {
	_        struct{} `cbor:",toarray"`
	Of, From uint32
	Names    []string
	Result   string
}

// CodeOf returns a code object as data.
func CodeOf(raw *bytecode.Raw, consts []uint32) Code {
	return Code{Name: raw.Name, QualName: raw.QualName, Code: raw.Code, LineTable: raw.LineTable,
		ExceptionTable: raw.ExceptionTable, Flags: raw.Flags, FirstLine: raw.FirstLine, ArgCount: raw.ArgCount,
		PosOnlyArgCount: raw.PosOnlyArgCount, KwOnlyArgCount: raw.KwOnlyArgCount, StackSize: raw.StackSize,
		Names: raw.Names, LocalsPlusNames: raw.LocalsPlusNames, LocalsPlusKinds: raw.LocalsPlusKinds, Consts: consts}
}

// Raw returns the code object in CPython's form.
func (c *Code) Raw(filename string) *bytecode.Raw {
	return &bytecode.Raw{Name: c.Name, QualName: c.QualName, Filename: filename, Code: c.Code, LineTable: c.LineTable,
		ExceptionTable: c.ExceptionTable, Flags: c.Flags, FirstLine: c.FirstLine, ArgCount: c.ArgCount,
		PosOnlyArgCount: c.PosOnlyArgCount, KwOnlyArgCount: c.KwOnlyArgCount, StackSize: c.StackSize,
		NumConsts: len(c.Consts), Names: c.Names, LocalsPlusNames: c.LocalsPlusNames,
		LocalsPlusKinds: c.LocalsPlusKinds}
}
