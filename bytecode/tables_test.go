package bytecode

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Row: S002-39
func TestExceptionTableBothDirections(t *testing.T) {
	cases := map[string]struct {
		entries []ExceptionEntry
		bytes   []byte
	}{
		"no entry": {nil, nil},
		// This is the example in CPython's Objects/exception_handling_notes.txt.
		"two-byte numbers": {[]ExceptionEntry{{20, 28, 100, 3, false}}, []byte{0x80 | 20, 8, 65, 36, 6}},
		"lasti":            {[]ExceptionEntry{{0, 1, 0, 0, true}}, []byte{0x80, 1, 0, 1}},
		"four-byte numbers": {[]ExceptionEntry{{1<<24 - 1, 1 << 24, 1 << 18, 31, true}},
			[]byte{0xff, 0x7f, 0x7f, 63, 1, 65, 64, 64, 0, 63}},
		"six bits exactly": {[]ExceptionEntry{{63, 64, 64, 0, false}}, []byte{0x80 | 63, 1, 65, 0, 0}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.bytes, EncodeExceptionTable(c.entries))
			again, err := DecodeExceptionTable(EncodeExceptionTable(c.entries))
			require.NoError(t, err)
			assert.Equal(t, c.entries, again)
		})
	}
	assert.Empty(t, EncodeExceptionTable([]ExceptionEntry{{3, 3, 0, 0, false}}),
		"an entry that covers nothing is left out")
}

func TestExceptionTableRefuses(t *testing.T) {
	for name, table := range map[string][]byte{
		"no start bit":         {1, 1, 1, 1},
		"cut off":              {0x81, 1, 1},
		"cut off in a number":  {0x81, 1, 1, 0x41},
		"start bit inside":     {0x81, 0x81, 1, 1},
		"start bit in a group": {0xc1, 0x81, 1, 1, 1},
		"number above 2^30":    {0xff, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 1, 1, 1},
		"empty region":         {0x81, 0, 1, 1},
		"out of order":         {0x85, 1, 1, 1, 0x81, 1, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeExceptionTable(table)
			assert.ErrorIs(t, err, ErrMalformed)
		})
	}
}

// Row: S002-39
func TestLineTableForms(t *testing.T) {
	cases := map[string]struct {
		pos   Position // the previous line is 10
		units int
		bytes []byte
		read  Position // the position that is read back, if the table loses a part of pos
	}{
		"short form": {pos: Position{10, 10, 79, 94}, units: 1, bytes: []byte{0x80 | 9<<3, 0x7f}},
		"wide: one line form": {pos: Position{10, 10, 5, 21}, units: 2,
			bytes: []byte{0x80 | 10<<3 | 1, 5, 21}},
		"next line": {pos: Position{11, 11, 0, 127}, units: 8,
			bytes: []byte{0x80 | 11<<3 | 7, 0, 127}},
		"end column before the column": {pos: Position{10, 10, 9, 3}, units: 1, bytes: []byte{0x80 | 10<<3, 9, 3}},
		"two lines on":                 {pos: Position{12, 12, 4, 5}, units: 1, bytes: []byte{0x80 | 12<<3, 4, 5}},
		"three lines on: long form": {pos: Position{13, 13, 4, 5}, units: 1,
			bytes: []byte{0x80 | 14<<3, 6, 0, 5, 6}},
		"line back: long form": {pos: Position{9, 9, 4, 5}, units: 1, bytes: []byte{0x80 | 14<<3, 3, 0, 5, 6}},
		"column above 127": {pos: Position{10, 10, 128, 130}, units: 1,
			bytes: []byte{0x80 | 14<<3, 0, 0, 0x41, 2, 0x43, 2}},
		"several lines": {pos: Position{10, 12, 4, 1}, units: 1,
			bytes: []byte{0x80 | 14<<3, 0, 2, 5, 2}},
		"several lines, no columns": {pos: Position{10, 12, -1, -1}, units: 1,
			bytes: []byte{0x80 | 14<<3, 0, 2, 0, 0}},
		"line alone":    {pos: LinePosition(5), units: 1, bytes: []byte{0x80 | 13<<3, 11}},
		"no location":   {pos: NoPosition, units: 3, bytes: []byte{0x80 | 15<<3 | 2}},
		"zero Position": {units: 1, bytes: []byte{0x80 | 15<<3}, read: NoPosition},
		"end line before the line": {pos: Position{10, -1, 3, 4}, units: 1, bytes: []byte{0x80 | 13<<3, 0},
			read: LinePosition(10)},
		"one column unknown": {pos: Position{10, 10, 3, -1}, units: 1, bytes: []byte{0x80 | 13<<3, 0},
			read: LinePosition(10)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			table := EncodeLineTable([]LineEntry{{c.units, c.pos}}, 10)
			assert.Equal(t, c.bytes, table)
			entries, err := DecodeLineTable(table, 10)
			require.NoError(t, err)
			want := c.pos
			if c.read != (Position{}) {
				want = c.read
			}
			assert.Equal(t, []LineEntry{{c.units, want}}, entries)
		})
	}
}

func TestLineTableSplitsLongEntries(t *testing.T) {
	table := EncodeLineTable([]LineEntry{{17, LinePosition(3)}}, 1)
	entries, err := DecodeLineTable(table, 1)
	require.NoError(t, err)
	assert.Equal(t, []LineEntry{{8, LinePosition(3)}, {8, LinePosition(3)}, {1, LinePosition(3)}}, entries)
}

func TestLineTableRefuses(t *testing.T) {
	for name, table := range map[string][]byte{
		"no start bit":        {1},
		"short form cut off":  {0x80},
		"payload starts one":  {0x80, 0x80},
		"long form cut off":   {0x80 | 14<<3, 0, 0, 0},
		"endless number":      {0x80 | 13<<3, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40},
		"number above 2^31":   {0x80 | 14<<3, 0, 0, 0x40, 0x40, 0x40, 0x40, 0x40, 2, 0},
		"line below zero":     {0x80 | 13<<3, 5},
		"end line above 2^31": {0x80 | 14<<3, 0, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeLineTable(table, 1)
			assert.ErrorIs(t, err, ErrMalformed)
		})
	}
}
