package bytecode

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// py311 is the Python version of the tests that write code by hand.
var py311, py312, py313, py314 = Version{3, 11}, Version{3, 12}, Version{3, 13}, Version{3, 14}

const dumpMagic = "godynamo code dump 2\n"

// sampleFiles are the committed dumps; testdata/dump_code.py --sample makes one with each Python.
var sampleFiles = map[Version]string{
	py311: "../testdata/code_py311.bin.gz",
	py312: "../testdata/code_py312.bin.gz",
	py313: "../testdata/code_py313.bin.gz",
	py314: "../testdata/code_py314.bin.gz",
}

// dumped is one code object of a dump, with the results of CPython's dis if the dump has them.
type dumped struct {
	Raw
	Version Version
	Dis     []DisInstruction
}

// String returns the name of the code object for failure messages.
func (d *dumped) String() string { return d.Filename + ":" + d.QualName }

// dumpReader reads a file that testdata/dump_code.py wrote. All strings and slices point into data.
type dumpReader struct {
	t       testing.TB
	data    []byte
	version Version
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
	r := &dumpReader{t: t, data: data[len(dumpMagic):]}
	r.version = Version{r.int(), r.int()}
	return r
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
	d := &dumped{Version: r.version}
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

// sample returns the committed sample of 3.11.
func sample(t testing.TB) []*dumped { return sampleOf(t, py311) }

// sampleOf returns the committed sample of a version.
func sampleOf(t testing.TB, v Version) []*dumped {
	return readDump(t, filepath.FromSlash(sampleFiles[v]))
}

// samples returns the committed samples of all versions, in one list.
func samples(t testing.TB) []*dumped {
	return slices.Concat(sampleOf(t, py311), sampleOf(t, py312), sampleOf(t, py313), sampleOf(t, py314))
}

// sampleCode returns the decoded code object of 3.11 with this qualified name from sample_constructs.py.
func sampleCode(t testing.TB, qualName string) *Code { return sampleCodeOf(t, py311, qualName) }

func sampleCodeOf(t testing.TB, v Version, qualName string) *Code {
	for _, d := range sampleOf(t, v) {
		if d.QualName == qualName && d.Filename == "sample_constructs.py" {
			code, err := Decode(&d.Raw, v)
			require.NoError(t, err)
			return code
		}
	}
	t.Fatalf("%s is not in the sample", qualName)
	return nil
}
