package record

import (
	"encoding/binary"
	"errors"
	"unicode/utf8"
)

// The long lists of a program are byte strings in a file, with entries of a fixed size: a large model has thousands of
// nodes, parts and lines, and reflection would read them field by field.

var errFlat = errors.New("record: malformed list")

// flat returns the bytes of a list of n entries, each of which put appends to its argument.
func flat(n, size int, put func(to []byte, i int) []byte) ([]byte, error) {
	out := make([]byte, 0, n*size)
	for i := range n {
		out = put(out, i)
	}
	return encoding.Marshal(out)
}

// entries returns the number of entries of a list, and its bytes.
func entries(data []byte, size int) (int, []byte, error) {
	var b []byte
	if err := decoding.Unmarshal(data, &b); err != nil {
		return 0, nil, err
	}
	if len(b)%size != 0 || len(b)/size > maxItems {
		return 0, nil, errFlat
	}
	return len(b) / size, b, nil
}

// Nodes are the nodes of a program.
type Nodes []Node

const nodeSize = 2 + 5*4

// MarshalCBOR implements cbor.Marshaler.
func (l Nodes) MarshalCBOR() ([]byte, error) {
	return flat(len(l), nodeSize, func(to []byte, i int) []byte {
		n := &l[i]
		to = append(to, n.Op, n.Flags)
		for _, v := range [...]uint32{n.Dst, n.Src, n.Part, n.A, n.B} {
			to = binary.LittleEndian.AppendUint32(to, v)
		}
		return to
	})
}

// UnmarshalCBOR implements cbor.Unmarshaler.
func (l *Nodes) UnmarshalCBOR(data []byte) error {
	n, b, err := entries(data, nodeSize)
	if err != nil {
		return err
	}
	*l = make(Nodes, n)
	for i := range *l {
		at := b[i*nodeSize : (i+1)*nodeSize]
		word := func(k int) uint32 { return binary.LittleEndian.Uint32(at[2+4*k:]) }
		(*l)[i] = Node{Op: at[0], Flags: at[1], Dst: word(0), Src: word(1), Part: word(2), A: word(3), B: word(4)}
	}
	return nil
}

// Lines are the lines of a program's parts.
type Lines []Line

const lineSize = 4 + 8

// MarshalCBOR implements cbor.Marshaler.
func (l Lines) MarshalCBOR() ([]byte, error) {
	return flat(len(l), lineSize, func(to []byte, i int) []byte {
		to = binary.LittleEndian.AppendUint32(to, l[i].File)
		return binary.LittleEndian.AppendUint64(to, uint64(l[i].Line))
	})
}

// UnmarshalCBOR implements cbor.Unmarshaler.
func (l *Lines) UnmarshalCBOR(data []byte) error {
	n, b, err := entries(data, lineSize)
	if err != nil {
		return err
	}
	*l = make(Lines, n)
	for i := range *l {
		at := b[i*lineSize:]
		(*l)[i] = Line{File: binary.LittleEndian.Uint32(at), Line: int(binary.LittleEndian.Uint64(at[4:]))}
	}
	return nil
}

// Texts are the texts of a program's parts. In a file they are one text, after the list of their lengths.
type Texts []string

type joined struct {
	_       struct{} `cbor:",toarray"`
	Lengths []byte
	Text    string
}

// MarshalCBOR implements cbor.Marshaler.
func (l Texts) MarshalCBOR() ([]byte, error) {
	var out joined
	var text []byte
	for _, t := range l {
		out.Lengths = binary.LittleEndian.AppendUint32(out.Lengths, uint32(len(t)))
		text = append(text, t...)
	}
	out.Text = string(text)
	return encoding.Marshal(out)
}

// UnmarshalCBOR implements cbor.Unmarshaler.
func (l *Texts) UnmarshalCBOR(data []byte) error {
	var in joined
	if err := decoding.Unmarshal(data, &in); err != nil {
		return err
	}
	if len(in.Lengths)%4 != 0 || len(in.Lengths)/4 > maxItems {
		return errFlat
	}
	*l = make(Texts, len(in.Lengths)/4)
	for i := range *l {
		n := int64(binary.LittleEndian.Uint32(in.Lengths[4*i:]))
		if n > int64(len(in.Text)) || n < int64(len(in.Text)) && !utf8.RuneStart(in.Text[n]) {
			return errFlat
		}
		(*l)[i], in.Text = in.Text[:n], in.Text[n:]
	}
	if in.Text != "" {
		return errFlat
	}
	return nil
}
