package record

import (
	"errors"
	"strconv"
	"strings"

	"github.com/godynamo/godynamo/guards"
)

// Program is a guards.Program. Its texts name objects by number: \x00, the number, \x01. In a guards.Program they name
// them by address.
type Program struct {
	_                                     struct{} `cbor:",toarray"`
	NumSlots, NumRegs, NumCaches, NumKept int
	Nodes                                 Nodes
	Consts                                []Const
	Tensors                               []Tensor
	Sizes                                 []Step
	Parts                                 Texts
	Files                                 []string
	Lines                                 Lines
	Kinds                                 string
	Extra                                 []uint32
}

// Node is a guards.Node.
type Node struct {
	Op, Flags            uint8
	Dst, Src, Part, A, B uint32
}

// Step is a guards.SizeStep.
type Step struct {
	_       struct{} `cbor:",toarray"`
	Op, Dim uint8
	Reg     uint32
	N       int64
}

// Const is a guards.ConstUse. Name counts only if Object is -1.
type Const struct {
	_      struct{} `cbor:",toarray"`
	Object int
	Keep   uint8
	Name   string
}

// Line is a guards.UserLine. File is an index of Program.Files.
type Line struct {
	File uint32
	Line int
}

// Tensor is a guards.TensorSpec with the metadata of its example. Type is the object that is the example's type. Marks
// describes what torch.compiler's functions have marked on the example, such as dimensions that vary. No guard compares
// it, but it decides what the translator makes symbols.
type Tensor struct {
	_                          struct{} `cbor:",toarray"`
	Reg                        uint32
	Fields                     guards.TensorFields
	StaticSizes, StaticStrides uint64
	Type                       uint32
	Meta                       Meta
	Marks                      string
}

// Meta is the metadata of a tensor that guards compare (gd_tensor_view in core/golib.h).
type Meta struct {
	_                                   struct{} `cbor:",toarray"`
	KeySet                              uint64
	ScalarType, DeviceType, DeviceIndex int32
	RequiresGrad                        bool
	Sizes, Strides                      []int64
	// Texts are the key set, the dtype and the device of a tensor that C cannot read, such as a DTensor. KeySet to
	// DeviceIndex are 0 then.
	Texts []string
}

var textFields = [...]guards.TensorFields{guards.TensorKeySet, guards.TensorDType, guards.TensorDevice}

// Fits reports whether a tensor with the metadata m passes a check of t, apart from its type.
func (t *Tensor) Fits(m *Meta) bool {
	has := func(f guards.TensorFields) bool { return t.Fields&f != 0 }
	same := func(f guards.TensorFields, static uint64, a, b []int64) bool {
		if !has(f) {
			return true
		}
		for i := range min(len(a), len(b)) {
			if static&(1<<i) != 0 && a[i] != b[i] {
				return false
			}
		}
		return len(a) == len(b)
	}
	w := &t.Meta
	if len(w.Texts) != len(m.Texts) {
		return false
	}
	for i, text := range w.Texts {
		if has(textFields[i]) && text != m.Texts[i] {
			return false
		}
	}
	return (!has(guards.TensorKeySet) || w.KeySet == m.KeySet) &&
		(!has(guards.TensorDType) || w.ScalarType == m.ScalarType) &&
		(!has(guards.TensorDevice) || w.DeviceType == m.DeviceType && w.DeviceIndex == m.DeviceIndex) &&
		(!has(guards.TensorRequiresGrad) || w.RequiresGrad == m.RequiresGrad) &&
		(!has(guards.TensorNDim) || len(w.Sizes) == len(m.Sizes)) &&
		same(guards.TensorSizes, t.StaticSizes, w.Sizes, m.Sizes) &&
		same(guards.TensorStrides, t.StaticStrides, w.Strides, m.Strides)
}

// Names converts texts between addresses and numbers of objects.
type Names struct {
	Numbers map[uint64]uint32 // by address
	IDs     []uint64          // addresses, by number
}

// leastDigits is the length of the shortest address in a text. Shorter numbers are never taken for one.
const leastDigits = 7

// Mark replaces the addresses in a text by marks.
func (n *Names) Mark(text string) string {
	var b strings.Builder
	last := 0
	for i := 0; i < len(text); i++ {
		start := i
		for i < len(text) && text[i] >= '0' && text[i] <= '9' {
			i++
		}
		if i-start < leastDigits {
			continue
		}
		id, err := strconv.ParseUint(text[start:i], 10, 64)
		if err != nil {
			continue
		}
		if k, ok := n.Numbers[id]; ok {
			b.WriteString(text[last:start] + "\x00" + strconv.Itoa(int(k)) + "\x01")
			last = i
		}
	}
	if last == 0 {
		return text
	}
	return b.String() + text[last:]
}

var errMark = errors.New("record: malformed mark in a text")

// Text replaces the marks in a text by addresses.
func (n *Names) Text(text string) (string, error) {
	if strings.IndexByte(text, 0) < 0 {
		return text, nil
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "\x00")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		number, after, found := strings.Cut(rest, "\x01")
		k, err := strconv.Atoi(number)
		if !found || err != nil || k < 0 || k >= len(n.IDs) {
			return "", errMark
		}
		b.WriteString(strconv.FormatUint(n.IDs[k], 10))
		text = after
	}
}

// FromProgram returns p as data. object returns the number of the object at an index of the pool. Tensors get neither
// type nor metadata.
func FromProgram(p *guards.Program, names *Names, object func(pool int) uint32) Program {
	out := Program{NumSlots: p.NumSlots, NumRegs: p.NumRegs, NumCaches: p.NumCaches, NumKept: p.NumKept,
		Nodes: make([]Node, len(p.Nodes)), Consts: make([]Const, len(p.Consts)),
		Tensors: make([]Tensor, len(p.Tensors)), Sizes: make([]Step, len(p.Sizes)),
		Parts: make([]string, len(p.Parts)), Lines: make([]Line, len(p.PartLines)),
		Kinds: names.Mark(p.Kinds), Extra: p.Extra}
	for i, n := range p.Nodes {
		out.Nodes[i] = Node{Op: uint8(n.Op), Flags: n.Flags, Dst: n.Dst, Src: n.Src, Part: n.Part, A: n.A, B: n.B}
	}
	for i, c := range p.Consts {
		out.Consts[i] = Const{Object: -1, Keep: uint8(c.Keep), Name: c.Name}
		if c.Index >= 0 {
			out.Consts[i].Object = int(object(c.Index))
		}
	}
	for i, t := range p.Tensors {
		out.Tensors[i] = Tensor{Reg: t.Reg, Fields: t.Fields, StaticSizes: t.StaticSizes,
			StaticStrides: t.StaticStrides}
	}
	for i, s := range p.Sizes {
		out.Sizes[i] = Step{Op: uint8(s.Op), Dim: s.Dim, Reg: s.Reg, N: s.N}
	}
	for i, text := range p.Parts {
		out.Parts[i] = names.Mark(text)
	}
	files := map[string]uint32{}
	for i, l := range p.PartLines {
		k, ok := files[l.File]
		if !ok {
			k = uint32(len(out.Files))
			files[l.File] = k
			out.Files = append(out.Files, l.File)
		}
		out.Lines[i] = Line{File: k, Line: l.Line}
	}
	return out
}

// Program returns the program. Its constants refer to Record.Objects as the pool. Each tensor's example is the object
// whose number examples returns for the tensor's index.
func (p *Program) Program(names *Names, examples func(tensor int) int) (*guards.Program, error) {
	out := &guards.Program{NumSlots: p.NumSlots, NumRegs: p.NumRegs, NumCaches: p.NumCaches, NumKept: p.NumKept,
		Nodes: make([]guards.Node, len(p.Nodes)), Consts: make([]guards.ConstUse, len(p.Consts)),
		Tensors: make([]guards.TensorSpec, len(p.Tensors)), Sizes: make([]guards.SizeStep, len(p.Sizes)),
		Parts: make([]string, len(p.Parts)), PartLines: make([]guards.UserLine, len(p.Lines)), Extra: p.Extra}
	for i, n := range p.Nodes {
		out.Nodes[i] = guards.Node{Op: guards.Op(n.Op), Flags: n.Flags, Dst: n.Dst, Src: n.Src, Part: n.Part, A: n.A,
			B: n.B}
	}
	for i, c := range p.Consts {
		out.Consts[i] = guards.ConstUse{Index: c.Object, Keep: guards.Keep(c.Keep), Name: c.Name}
	}
	for i, t := range p.Tensors {
		out.Tensors[i] = guards.TensorSpec{Reg: t.Reg, Fields: t.Fields, StaticSizes: t.StaticSizes,
			StaticStrides: t.StaticStrides, Example: guards.Const{Index: examples(i)}}
	}
	for i, s := range p.Sizes {
		out.Sizes[i] = guards.SizeStep{Op: guards.SizeOp(s.Op), Dim: s.Dim, Reg: s.Reg, N: s.N}
	}
	var err error
	for i, text := range p.Parts {
		if out.Parts[i], err = names.Text(text); err != nil {
			return nil, err
		}
	}
	for i, l := range p.Lines {
		if int(l.File) >= len(p.Files) {
			return nil, errLine
		}
		out.PartLines[i] = guards.UserLine{File: p.Files[l.File], Line: l.Line}
	}
	out.Kinds, err = names.Text(p.Kinds)
	return out, err
}

var errLine = errors.New("record: a line of no file")
