package bytecode

// Since 3.11 the exception table (Objects/exception_handling_notes.txt) is a sequence of entries, sorted by start.
// Each entry has four numbers, in code units:
//
//	start  length  target  depth<<1 | lasti
//
// A number is written in groups of six bits, highest group first. In each byte, bit 6 means that more bytes of the
// number follow. Bit 7 is set only in the first byte of an entry, so that CPython can bisect the table.

const (
	varintBits  = 6
	varintMask  = 1<<varintBits - 1
	varintMore  = 1 << varintBits
	entryStart  = 0x80
	maxUnits    = 1 << 30 // CPython's own bound on the numbers in an exception table
	maxVarBytes = 6
)

// ExceptionEntry is one row of an exception table. If an exception is raised in the code units [Start, End), CPython
// pops the stack down to Depth and jumps to Target.
type ExceptionEntry struct {
	Start, End, Target, Depth int
	Lasti                     bool
}

// DecodeExceptionTable reads a table. It checks the encoding, and that rows are sorted and do not overlap. It does
// not check that offsets are those of instructions; Decode does.
func DecodeExceptionTable(table []byte) ([]ExceptionEntry, error) {
	if len(table) == 0 {
		return nil, nil
	}
	// An entry has at least four bytes.
	entries := make([]ExceptionEntry, 0, len(table)/4)
	for at, previous := 0, 0; at < len(table); {
		if table[at]&entryStart == 0 {
			return nil, malformed("exception table: byte %d does not start an entry", at)
		}
		var fields [4]int
		for i := range fields {
			value, next, ok := exceptionVarint(table, at, i == 0)
			if !ok {
				return nil, malformed("exception table: bad number at byte %d", at)
			}
			fields[i], at = value, next
		}
		start, end := fields[0], fields[0]+fields[1]
		if start < previous || end <= start {
			return nil, malformed("exception table: entry %d (%d to %d) is empty or out of order",
				len(entries), start, end)
		}
		previous = end
		entries = append(entries, ExceptionEntry{start, end, fields[2], fields[3] >> 1, fields[3]&1 != 0})
	}
	return entries, nil
}

// exceptionVarint reads the number that begins at table[at]. It returns the number and the index of the byte after
// it.
func exceptionVarint(table []byte, at int, first bool) (value, next int, ok bool) {
	for n := 0; n < maxVarBytes && at < len(table); n++ {
		b := table[at]
		at++
		if b&entryStart != 0 && !(first && n == 0) {
			return 0, 0, false
		}
		value = value<<varintBits | int(b&varintMask)
		if value >= maxUnits {
			return 0, 0, false
		}
		if b&varintMore == 0 {
			return value, at, true
		}
	}
	return 0, 0, false
}

// EncodeExceptionTable writes a table. Rows must be sorted by start and must not overlap. Empty rows are omitted. All
// numbers must be below 2^30.
func EncodeExceptionTable(entries []ExceptionEntry) []byte {
	var table []byte
	for _, e := range entries {
		if e.End <= e.Start {
			continue
		}
		last := e.Depth << 1
		if e.Lasti {
			last |= 1
		}
		table = appendExceptionVarint(table, e.Start, entryStart)
		table = appendExceptionVarint(table, e.End-e.Start, 0)
		table = appendExceptionVarint(table, e.Target, 0)
		table = appendExceptionVarint(table, last, 0)
	}
	return table
}

// appendExceptionVarint appends value to the table. The bits of mark are set in the first byte.
func appendExceptionVarint(table []byte, value int, mark byte) []byte {
	shift := 0
	for value>>(shift+varintBits) != 0 {
		shift += varintBits
	}
	for ; shift > 0; shift -= varintBits {
		table = append(table, mark|varintMore|byte(value>>shift&varintMask))
		mark = 0
	}
	return append(table, mark|byte(value&varintMask))
}
