package record

import (
	"fmt"
	"strings"

	"github.com/fxamacker/cbor/v2"
)

// Limits of a record: the items of one array, and the depth of arrays.
const (
	maxItems = 1 << 20
	maxDepth = 16
)

var encoding, decoding = modes()

func modes() (cbor.EncMode, cbor.DecMode) {
	enc, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		panic(err)
	}
	dec, err := cbor.DecOptions{MaxArrayElements: maxItems, MaxMapPairs: 16, MaxNestedLevels: maxDepth,
		IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden, DupMapKey: cbor.DupMapKeyEnforcedAPF,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField}.DecMode()
	if err != nil {
		panic(err)
	}
	return enc, dec
}

// Encode returns the record as bytes.
func (r *Record) Encode() ([]byte, error) { return encoding.Marshal(r) }

// Decode returns the record that the bytes hold. Its numbers are in range, and its texts are UTF-8. The guard program
// and the code have not been verified.
func Decode(data []byte) (*Record, error) {
	r := &Record{}
	if err := decoding.Unmarshal(data, r); err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return r, nil
}

// checker notes the first number that is out of range or does not fit another one.
type checker struct{ err error }

func (c *checker) below(what string, n, limit int) {
	if c.err == nil && (n < 0 || n >= limit) {
		c.err = fmt.Errorf("record: %s %d of %d", what, n, limit)
	}
}

func (c *checker) objects(what string, list []uint32, limit int) {
	for _, n := range list {
		c.below(what, int(n), limit)
	}
}

func (c *checker) function(f *Function, limit int) {
	c.objects("cell", f.Closure, limit)
	c.objects("constant", f.Code.Consts, limit)
}

// cells checks that a function has a cell for each free variable: COPY_FREE_VARS copies as many without a check. A
// resume function has none: it gets them as arguments, and its code has no such instruction.
func (c *checker) cells(f *Function) {
	c.equal("cells", len(f.Closure), f.Code.Raw("").NumFree())
}

// resume checks that the callable has a parameter for each value that it is passed.
func (c *checker) resume(r *Resume) {
	values := len(r.Params)
	for _, kind := range r.Stack {
		c.below("kind of a stack item", strings.IndexRune("NLvXR", kind), 5)
		if strings.ContainsRune("vXR", kind) {
			values++
		}
	}
	c.equal("parameters of a resume function", r.Function.Code.ArgCount, values)
	for _, list := range [][]int{r.Computed, r.Sizes} {
		for _, n := range list {
			c.below("parameter", n, values)
		}
	}
}

func (c *checker) equal(what string, n, wanted int) {
	if c.err == nil && n != wanted {
		c.err = fmt.Errorf("record: %d %s, not %d", n, what, wanted)
	}
}

// program checks the objects and the guard program.
func (c *checker) program(r *Record) {
	n := len(r.Objects)
	for i, o := range r.Objects {
		c.objects("item of an object", o.Items, i)
		switch o.Kind {
		case KindRegister, KindType:
			c.below("register", int(o.Number), r.Program.NumRegs)
		case KindResume:
			c.below("resume function", int(o.Number), len(r.Resumes))
		case KindGraph:
			c.below("graph", int(o.Number), len(r.Graphs))
		case KindPython:
		default:
			c.below("kind", int(o.Kind), 0)
		}
	}
	for _, k := range r.Program.Consts {
		c.below("constant of the guards", k.Object+1, n+1)
	}
	for _, t := range r.Program.Tensors {
		c.below("type of a tensor", int(t.Type), n)
		c.below("register of a tensor", int(t.Reg), r.Program.NumRegs)
		c.below("texts of a tensor", len(t.Meta.Texts), len(textFields)+1)
	}
}

// check returns an error if a number in the record is out of range.
func (r *Record) check() error {
	c, n := &checker{}, len(r.Objects)
	c.program(r)
	for i := range r.Resumes {
		c.below("code", int(r.Resumes[i].Of), n)
		c.function(&r.Resumes[i].Function, n)
		c.equal("cells of a resume function", len(r.Resumes[i].Function.Closure), 0)
		c.resume(&r.Resumes[i])
		c.objects("globals", r.Resumes[i].Inlined, n)
		if len(r.Resumes[i].Inlined) != 0 {
			c.equal("dicts of an inlined frame", len(r.Resumes[i].Inlined), 2)
		}
	}
	for _, g := range r.Graphs {
		c.objects("part of a graph", []uint32{g.Rows, g.Several, g.Changed, g.OfModules, g.Sizes, g.Assumed}, n)
		for _, reg := range g.Inputs {
			c.below("register of an input", reg+1, r.Program.NumRegs+1)
		}
	}
	if r.Function != nil {
		c.function(r.Function, n)
		c.cells(r.Function)
	}
	for _, l := range r.Levels {
		c.below("code of a level", int(l.Code), n)
		c.below("globals of a level", int(l.Globals), n)
	}
	for _, ch := range r.Chains {
		c.objects("level", ch.Levels, len(r.Levels))
		for _, s := range ch.Shown {
			c.below("variable", int(s.Value), n)
		}
	}
	for _, row := range r.Rows {
		c.below("place", row.Place, len(r.Chains))
	}
	for _, s := range r.Sizes {
		c.below("code of a place", int(s.Of), n)
		c.below("code of a place", int(s.From), n)
	}
	for _, pair := range r.Registered {
		c.objects("class", pair[:], n)
	}
	for _, call := range r.Folded {
		c.objects("folded call", call[:], n)
	}
	for _, f := range r.Files {
		c.below("code of a file", int(f.Of), n)
	}
	c.below("info", int(r.Info), n)
	if r.Break != nil {
		c.program(r.Break)
	}
	return c.err
}
