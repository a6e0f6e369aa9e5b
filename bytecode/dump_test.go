package bytecode

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// py311 is the Python version of the dumps.
var py311 = Version{3, 11}

const dumpMagic = "godynamo code dump 1\n"

// sampleFile is the committed dump; testdata/dump_code.py --sample makes it.
const sampleFile = "../testdata/code_py311.bin.gz"

// dumped is one code object of a dump, with the results of CPython's dis if the dump has them.
type dumped struct {
	Raw
	Dis []DisInstruction
}

// String returns the name of the code object for failure messages.
func (d *dumped) String() string { return d.Filename + ":" + d.QualName }

// dumpReader reads a file that testdata/dump_code.py wrote. All strings and slices point into data.
type dumpReader struct {
	t    testing.TB
	data []byte
}

func openDump(t testing.TB, path string) *dumpReader {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	if strings.HasSuffix(path, ".gz") {
		zr, err := gzip.NewReader(bytes.NewReader(data))
		require.NoError(t, err)
		data, err = io.ReadAll(zr)
		require.NoError(t, err)
	}
	require.True(t, bytes.HasPrefix(data, []byte(dumpMagic)), "%s is no code dump", path)
	return &dumpReader{t, data[len(dumpMagic):]}
}

func (r *dumpReader) int() int {
	value, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.t.Fatal("code dump is cut off")
	}
	r.data = r.data[n:]
	return int(value)
}

// optional reads a number that may be absent. It returns -1 in that case.
func (r *dumpReader) optional() int { return r.int() - 1 }

func (r *dumpReader) take(n int) []byte {
	if n > len(r.data) {
		r.t.Fatal("code dump is cut off")
	}
	part := r.data[:n:n]
	r.data = r.data[n:]
	return part
}

func (r *dumpReader) bytes() []byte  { return r.take(r.int()) }
func (r *dumpReader) string() string { return string(r.bytes()) }

func (r *dumpReader) strings() []string {
	list := make([]string, r.int())
	for i := range list {
		list[i] = r.string()
	}
	return list
}

// next returns the next code object, or nil at the end of the dump.
func (r *dumpReader) next() *dumped {
	if len(r.data) == 0 {
		return nil
	}
	d := &dumped{}
	d.Name, d.QualName, d.Filename = r.string(), r.string(), r.string()
	d.Code, d.LineTable, d.ExceptionTable = r.bytes(), r.bytes(), r.bytes()
	for _, field := range []*int{
		&d.Flags, &d.FirstLine, &d.ArgCount, &d.PosOnlyArgCount, &d.KwOnlyArgCount, &d.StackSize, &d.NumConsts,
	} {
		*field = r.int()
	}
	d.Names, d.LocalsPlusNames = r.strings(), r.strings()
	d.LocalsPlusKinds = r.take(len(d.LocalsPlusNames))
	d.Dis = make([]DisInstruction, r.int())
	for i := range d.Dis {
		row := &d.Dis[i]
		row.Opcode, row.OpName = r.int(), r.string()
		row.Arg = r.optional()
		row.HasArg = row.Arg >= 0
		row.Arg = max(row.Arg, 0)
		row.Offset, row.StartsLine = r.int(), r.optional()
		row.IsJumpTarget = r.int() != 0
		for _, field := range []*int32{&row.Pos.Line, &row.Pos.EndLine, &row.Pos.Col, &row.Pos.EndCol} {
			*field = int32(r.optional())
		}
	}
	return d
}

// readDump returns all code objects of a dump.
func readDump(t testing.TB, path string) []*dumped {
	r := openDump(t, path)
	var list []*dumped
	for d := r.next(); d != nil; d = r.next() {
		list = append(list, d)
	}
	require.NotEmpty(t, list)
	return list
}

// sample returns the committed sample.
func sample(t testing.TB) []*dumped { return readDump(t, filepath.FromSlash(sampleFile)) }

// sampleCode returns the decoded code object with this qualified name from sample_constructs.py.
func sampleCode(t testing.TB, qualName string) *Code {
	for _, d := range sample(t) {
		if d.QualName == qualName && d.Filename == "sample_constructs.py" {
			code, err := Decode(&d.Raw, py311)
			require.NoError(t, err)
			return code
		}
	}
	t.Fatalf("%s is not in the sample", qualName)
	return nil
}
