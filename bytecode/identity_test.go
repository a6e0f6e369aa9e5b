package bytecode

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dumpEnv names the environment variable with the path of a large dump (the standard library, torch) for
// TestIdentityDump. `make roundtrip` sets it.
const dumpEnv = "GODYNAMO_CODE_DUMP"

// checkIdentity decodes and lowers one code object and compares the result with the original.
func checkIdentity(t testing.TB, d *dumped) bool {
	code, err := Decode(&d.Raw, d.Version)
	if !assert.NoError(t, err, "%v: decode", d) {
		return false
	}
	offsets := make([]int, len(code.Instructions))
	for i, inst := range code.Instructions {
		offsets[i] = inst.Offset
	}
	raw, err := Lower(code, d.Version)
	if !assert.NoError(t, err, "%v: lower", d) {
		return false
	}
	ok := assert.Equal(t, d.Raw.Code, raw.Code, "%v: code", d)
	ok = assert.Equal(t, d.Raw.ExceptionTable, append([]byte{}, raw.ExceptionTable...), "%v: exception table", d) && ok
	ok = assert.Equal(t, d.Raw.LineTable, raw.LineTable, "%v: line table", d) && ok
	ok = checkStackSize(t, d, code, raw.StackSize) && ok
	for i, inst := range code.Instructions {
		if inst.Offset != offsets[i] {
			ok = assert.Equal(t, offsets[i], inst.Offset, "%v: offset of instruction %d", d, i)
			break
		}
	}
	raw.Code, raw.ExceptionTable, raw.LineTable, raw.StackSize = d.Raw.Code, d.Raw.ExceptionTable, d.Raw.LineTable,
		d.Raw.StackSize
	return assert.Equal(t, &d.Raw, raw, "%v: header", d) && ok
}

// checkStackSize compares a stack size with CPython's. If the body of a `try` became empty (`try: pass`), CPython's
// compiler still counts the stack that the handlers need, although no row of the exception table leads to them. Lower
// does not count this. In all other cases the two sizes are equal.
func checkStackSize(t testing.TB, d *dumped, code *Code, size int) bool {
	if size == d.Raw.StackSize {
		return true
	}
	depths, err := StackDepths(code)
	return assert.NoError(t, err) &&
		assert.Less(t, size, d.Raw.StackSize, "%v: stack size", d) &&
		assert.Contains(t, depths, -1, "%v: stack size differs although all instructions are reached", d)
}

// Row: S002-36
// Row: S002-39
// Row: S002-41
func TestIdentitySample(t *testing.T) {
	for _, d := range samples(t) {
		checkIdentity(t, d)
	}
}

// Row: S002-36
func TestIdentityDump(t *testing.T) {
	path := os.Getenv(dumpEnv)
	if path == "" {
		t.Skip(dumpEnv + " names no dump; testdata/dump_code.py writes one")
	}
	r := openDump(t, path)
	total, bad := 0, 0
	for d := r.next(); d != nil; d = r.next() {
		total++
		if !checkIdentity(t, d) {
			if bad++; bad > 20 {
				t.FailNow()
			}
		}
	}
	require.Positive(t, total)
	t.Logf("%d code objects, %d differ: %.4g %% come back as they were", total, bad,
		100*float64(total-bad)/float64(total))
}
