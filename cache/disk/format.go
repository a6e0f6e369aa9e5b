package disk

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/zeebo/blake3"
)

// A file, with little-endian integers:
//
//	8 bytes    GDTRANSL
//	4          format
//	32         key
//	4, n       length of the Meta; the Meta in CBOR
//	4, m       length of the payload; the payload
//	8          time of creation, in nanoseconds since 1970
//	32         BLAKE3 of all bytes above
//
// The file's name has the first 16 bytes of the BLAKE3 of all bytes above the time of creation. So two processes that
// translate the same write the same file, and one pass over the bytes computes both hashes.
const (
	magic    = "GDTRANSL"
	format   = 1
	headSize = len(magic) + 4 + len(Key{})
	tailSize = 8 + sumSize
	sumSize  = 32

	// MaxMeta and MaxFile are the largest sizes of an encoded Meta and of a file, in bytes.
	MaxMeta = 64 << 10
	MaxFile = 64 << 20

	maxParts = 4096
)

// Meta describes a translation to people. Nothing that runs depends on it.
type Meta struct {
	Function string    `cbor:"function"` // qualified name
	File     string    `cbor:"file"`
	Line     int       `cbor:"line"`
	Python   string    `cbor:"python"`
	Torch    string    `cbor:"torch"`
	Godynamo string    `cbor:"godynamo"`
	Backend  string    `cbor:"backend"`
	Parts    []Part    `cbor:"parts"` // what the key was made of, sorted
	Created  time.Time `cbor:"-"`     // Put sets it if it is zero
}

// Part is one of the values that a key was made of.
type Part struct {
	_     struct{} `cbor:",toarray"`
	Name  string   `json:"name"`
	Value string   `json:"value"`
}

func compareParts(a, b Part) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Value, b.Value))
}

// contents are the parts of a file.
type contents struct {
	key     Key
	meta    Meta
	payload []byte
	name    string // the name that the file should have
}

var (
	encoding = must(cbor.CoreDetEncOptions().EncMode())
	// decoding accepts what encoding writes, and not much more.
	decoding = must(cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		UTF8:              cbor.UTF8RejectInvalid,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		MaxNestedLevels:   4,
		MaxArrayElements:  maxParts,
		MaxMapPairs:       16,
	}.DecMode())
)

// must is for options that are constant.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

// encode returns the bytes of a file and its name.
func encode(key Key, meta Meta, payload []byte) (data []byte, name string, err error) {
	encoded, err := encoding.Marshal(meta.plain())
	if err != nil {
		return nil, "", err
	}
	size := headSize + 4 + len(encoded) + 4 + len(payload) + tailSize
	if len(encoded) > MaxMeta || len(meta.Parts) > maxParts || size > MaxFile {
		return nil, "", fmt.Errorf("%w: %d bytes, description %d, %d parts of the key", ErrTooLarge, size, len(encoded),
			len(meta.Parts))
	}
	if meta.Created.IsZero() {
		meta.Created = time.Now()
	}
	data = append(make([]byte, 0, size), magic...)
	data = binary.LittleEndian.AppendUint32(data, format)
	data = append(data, key[:]...)
	for _, section := range [][]byte{encoded, payload} {
		data = binary.LittleEndian.AppendUint32(data, uint32(len(section)))
		data = append(data, section...)
	}
	body := len(data)
	data = binary.LittleEndian.AppendUint64(data, uint64(meta.Created.UnixNano()))
	name, sum := sums(data, body)
	return append(data, sum[:]...), name, nil
}

// plain returns the Meta as it is encoded: parts sorted, text in UTF-8. Names in Python may have lone surrogates.
func (m Meta) plain() Meta {
	for _, text := range []*string{&m.Function, &m.File, &m.Python, &m.Torch, &m.Godynamo, &m.Backend} {
		*text = strings.ToValidUTF8(*text, "\uFFFD")
	}
	parts := make([]Part, len(m.Parts))
	for i, p := range m.Parts {
		parts[i].Name = strings.ToValidUTF8(p.Name, "\uFFFD")
		parts[i].Value = strings.ToValidUTF8(p.Value, "\uFFFD")
	}
	slices.SortFunc(parts, compareParts)
	m.Parts = parts
	return m
}

// sums returns the name of a file and its checksum. data ends before the checksum, body is the length of what the name
// depends on.
func sums(data []byte, body int) (name string, sum [sumSize]byte) {
	h := blake3.New()
	h.Write(data[:body])
	h.Sum(sum[:0])
	name = hex.EncodeToString(sum[:16]) + suffix
	h.Write(data[body:])
	h.Sum(sum[:0])
	return name, sum
}

// decode verifies the bytes of a file. It looks at the checksum before it interprets anything. The payload is a part of
// data.
func decode(data []byte) (*contents, error) {
	if len(data) < headSize+8+tailSize || len(data) > MaxFile {
		return nil, corrupt("it has %d bytes", len(data))
	}
	end := len(data) - tailSize
	name, sum := sums(data[:end+8], end)
	if !bytes.Equal(sum[:], data[end+8:]) {
		return nil, corrupt("its checksum does not match")
	}
	if string(data[:len(magic)]) != magic {
		return nil, corrupt("it is no translation")
	}
	if found := binary.LittleEndian.Uint32(data[len(magic):]); found != format {
		return nil, corrupt("it has format %d, not %d", found, format)
	}
	c := &contents{name: name}
	copy(c.key[:], data[len(magic)+4:])
	encoded, rest, err := section(data[headSize:end], MaxMeta)
	if err != nil {
		return nil, err
	}
	if c.payload, rest, err = section(rest, MaxFile); err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, corrupt("%d bytes follow the payload", len(rest))
	}
	if err := decoding.Unmarshal(encoded, &c.meta); err != nil {
		return nil, corrupt("its description cannot be read: %v", err)
	}
	if !slices.IsSortedFunc(c.meta.Parts, compareParts) {
		return nil, corrupt("the parts of its key are not sorted")
	}
	c.meta.Created = time.Unix(0, int64(binary.LittleEndian.Uint64(data[end:])))
	return c, nil
}

// section splits data after its first section.
func section(data []byte, limit int) (section, rest []byte, err error) {
	if len(data) < 4 {
		return nil, nil, corrupt("a length is missing")
	}
	n := uint64(binary.LittleEndian.Uint32(data))
	data = data[4:]
	if n > uint64(limit) || n > uint64(len(data)) {
		return nil, nil, corrupt("a section has %d bytes", n)
	}
	return data[:n:n], data[n:], nil
}
