package bytecode

import "math"

// Since 3.11 the line table (Objects/locations.md) is a sequence of entries, each for one to eight code units. An
// entry begins with a byte 0x80 | form<<3 | units-1. The rest depends on the form:
//
//	0..9   one byte:  column = form*8 + bits 4..6, end column = column + bits 0..3; same line, ends on it
//	10..12 two bytes: column, end column; line + (form-10), ends on it
//	13     svarint line delta; no columns
//	14     svarint line delta, varint lines to the end line, varint column+1, varint end column+1 (0: unknown)
//	15     nothing: no location; the entry does not change the line to which the next one is relative
//
// The line of an entry is relative to that of the previous entry. The line of the first entry is relative to
// co_firstlineno. A varint has six bits in each byte, lowest bits first; bit 6 means that more bytes follow. An
// svarint has its sign in bit 0.
const (
	formShortLast = 9
	formOneLine   = 10
	formOneLast   = 12
	formNoColumn  = 13
	formLong      = 14
	formNone      = 15

	maxEntryUnits = 8
	// These are the limits of the short forms in CPython's writer. A written table equals CPython's only if the same
	// forms are chosen.
	shortColumns    = 80
	shortWidth      = 16
	oneLineColumns  = 128
	oneLineMaxDelta = 2
)

// LineEntry is a run of code units that share a position.
type LineEntry struct {
	Units int
	Pos   Position
}

// lineReader reads a line table entry by entry.
type lineReader struct {
	table []byte
	at    int
	line  int64
}

// next reads one entry. ok is false at the end of the table.
func (r *lineReader) next() (entry LineEntry, ok bool, err error) {
	if r.at >= len(r.table) {
		return LineEntry{}, false, nil
	}
	head := r.table[r.at]
	if head&0x80 == 0 {
		return LineEntry{}, false, malformed("line table: byte %d does not start an entry", r.at)
	}
	r.at++
	entry.Units = int(head&7) + 1
	form := int(head >> 3 & 15)
	good := true
	switch {
	case form == formNone:
		entry.Pos = NoPosition
		return entry, true, nil
	case form <= formShortLast:
		var b byte
		b, good = r.byte()
		col := int32(form)<<3 | int32(b>>4)
		entry.Pos.Col, entry.Pos.EndCol = col, col+int32(b&15)
	case form <= formOneLast:
		r.line += int64(form - formOneLine)
		col, good1 := r.byte()
		end, good2 := r.byte()
		good = good1 && good2
		entry.Pos.Col, entry.Pos.EndCol = int32(col), int32(end)
	case form == formNoColumn:
		good = r.moveLine()
		entry.Pos.Col, entry.Pos.EndCol = -1, -1
	default:
		good1 := r.moveLine()
		lines, good2 := r.varint()
		col, good3 := r.varint()
		end, good4 := r.varint()
		good = good1 && good2 && good3 && good4
		entry.Pos.Col, entry.Pos.EndCol = int32(col-1), int32(end-1)
		if r.line+lines > math.MaxInt32 {
			good = false
		}
		entry.Pos.EndLine = int32(lines)
	}
	if !good || r.line < 0 || r.line > math.MaxInt32 {
		return LineEntry{}, false, malformed("line table: bad entry before byte %d", r.at)
	}
	entry.Pos.Line = int32(r.line)
	entry.Pos.EndLine += int32(r.line)
	return entry, true, nil
}

// byte reads a byte inside an entry. It returns false at a byte with bit 7, which starts the next entry.
func (r *lineReader) byte() (byte, bool) {
	if r.at >= len(r.table) || r.table[r.at]&0x80 != 0 {
		return 0, false
	}
	r.at++
	return r.table[r.at-1], true
}

func (r *lineReader) varint() (int64, bool) {
	var value int64
	for n := range maxVarBytes {
		b, ok := r.byte()
		if !ok {
			return 0, false
		}
		value |= int64(b&varintMask) << (varintBits * n)
		if b&varintMore == 0 {
			return value, value <= math.MaxInt32
		}
	}
	return 0, false
}

func (r *lineReader) moveLine() bool {
	value, ok := r.varint()
	if value&1 != 0 {
		r.line -= value >> 1
	} else {
		r.line += value >> 1
	}
	return ok
}

// DecodeLineTable reads a whole table. Lines in the table are relative to firstLine (co_firstlineno).
func DecodeLineTable(table []byte, firstLine int) ([]LineEntry, error) {
	r := lineReader{table: table, line: int64(firstLine)}
	var entries []LineEntry
	for {
		entry, ok, err := r.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return entries, nil
		}
		entries = append(entries, entry)
	}
}

// EncodeLineTable writes entries as CPython's compiler does. A LineEntry becomes one table entry, or several if it
// has more than eight code units.
func EncodeLineTable(entries []LineEntry, firstLine int) []byte {
	w := newLineWriter(firstLine, len(entries))
	for _, e := range entries {
		w.add(e.Units, e.Pos)
	}
	return w.table
}

// lineWriter builds a line table.
type lineWriter struct {
	table []byte
	line  int32
	// If merges is set, neighbours with the same position share entries, as 3.12 writes them. The last position is
	// then held back until finish.
	merges bool
	units  int // held back
	pos    Position
}

// newLineWriter returns a writer with room for about n entries. Most entries take three bytes.
func newLineWriter(firstLine, n int) lineWriter {
	return lineWriter{table: make([]byte, 0, 3*n), line: int32(firstLine)}
}

// add sets the position of the next `units` code units.
func (w *lineWriter) add(units int, pos Position) {
	if !w.merges {
		w.write(units, pos)
		return
	}
	if !pos.Known() {
		pos = NoPosition
	}
	if pos != w.pos {
		w.finish()
		w.pos = pos
	}
	w.units += units
}

// finish writes what add has held back.
func (w *lineWriter) finish() {
	w.write(w.units, w.pos)
	w.units = 0
}

// write writes the position of the next `units` code units.
func (w *lineWriter) write(units int, pos Position) {
	for ; units > maxEntryUnits; units -= maxEntryUnits {
		w.entry(maxEntryUnits, pos)
	}
	if units > 0 {
		w.entry(units, pos)
	}
}

func (w *lineWriter) entry(units int, pos Position) {
	if !pos.Known() {
		w.head(formNone, units)
		return
	}
	delta := pos.Line - w.line
	w.line = pos.Line
	// If the end line is before the start line, it cannot be written, and only the start line is kept.
	oneLine := pos.EndLine <= pos.Line
	if oneLine && (pos.Col < 0 || pos.EndCol < 0 || pos.EndLine < pos.Line) {
		w.head(formNoColumn, units)
		w.svarint(delta)
		return
	}
	if oneLine && delta == 0 && pos.Col < shortColumns && pos.EndCol >= pos.Col && pos.EndCol-pos.Col < shortWidth {
		w.head(int(pos.Col>>3), units)
		w.table = append(w.table, byte(pos.Col&7)<<4|byte(pos.EndCol-pos.Col))
		return
	}
	if oneLine && delta >= 0 && delta <= oneLineMaxDelta && pos.Col < oneLineColumns && pos.EndCol < oneLineColumns {
		w.head(formOneLine+int(delta), units)
		w.table = append(w.table, byte(pos.Col), byte(pos.EndCol))
		return
	}
	w.head(formLong, units)
	w.svarint(delta)
	w.varint(uint32(pos.EndLine - pos.Line))
	w.varint(uint32(max(pos.Col, -1) + 1))
	w.varint(uint32(max(pos.EndCol, -1) + 1))
}

func (w *lineWriter) head(form, units int) {
	w.table = append(w.table, 0x80|byte(form)<<3|byte(units-1))
}

func (w *lineWriter) varint(value uint32) {
	for ; value > varintMask; value >>= varintBits {
		w.table = append(w.table, varintMore|byte(value&varintMask))
	}
	w.table = append(w.table, byte(value))
}

func (w *lineWriter) svarint(value int32) {
	if value < 0 {
		w.varint(uint32(-value)<<1 | 1)
	} else {
		w.varint(uint32(value) << 1)
	}
}
