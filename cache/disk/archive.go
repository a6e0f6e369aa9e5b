package disk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// An archive, with little-endian integers, has whole files of translations and no names:
//
//	8 bytes    GDEXPORT
//	4          format
//	4, n       length of a file; the file; for each file
//	4          0: no files follow
//
// A file is stored under the key and the name that its content says, so an archive cannot write anywhere else.
const archiveMagic = "GDEXPORT"

// Export writes an archive of the files that choose accepts, or of all files if it is nil, and returns their number.
// Files that are bad, or are removed in the meantime, are left out.
func (s *Store) Export(w io.Writer, choose func(Listed) bool) (int, error) {
	if _, err := w.Write(binary.LittleEndian.AppendUint32([]byte(archiveMagic), format)); err != nil {
		return 0, err
	}
	n := 0
	for _, file := range s.List() {
		if choose != nil && !choose(file) {
			continue
		}
		data, err := s.raw(file.File)
		if err != nil {
			continue
		}
		if _, err := w.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(data)))); err != nil {
			return n, err
		}
		if _, err := w.Write(data); err != nil {
			return n, err
		}
		n++
	}
	_, err := w.Write(make([]byte, 4))
	return n, err
}

// raw returns the verified bytes of a file.
func (s *Store) raw(file File) ([]byte, error) {
	f, err := s.open(below(file.Key)...)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, _, err := f.read(file.Name, MaxFile)
	if err == nil {
		_, err = decode(data)
	}
	return data, err
}

// Import stores the files of an archive and returns their number. It verifies each file. It stops at the first one that
// is bad, and at a truncated archive, with ErrCorrupt; the files before it are stored.
func (s *Store) Import(r io.Reader) (int, error) {
	head := make([]byte, len(archiveMagic)+4)
	if _, err := io.ReadFull(r, head); err != nil || string(head[:len(archiveMagic)]) != archiveMagic {
		return 0, readError(err, "it is no export of translations")
	}
	if found := binary.LittleEndian.Uint32(head[len(archiveMagic):]); found != format {
		return 0, corrupt("it has format %d, not %d", found, format)
	}
	for n := 0; ; n++ {
		var length [4]byte
		if _, err := io.ReadFull(r, length[:]); err != nil {
			return n, readError(err, "it ends before its last file")
		}
		size := int64(binary.LittleEndian.Uint32(length[:]))
		if size == 0 {
			return n, nil
		}
		if size > MaxFile {
			return n, corrupt("file %d has %d bytes", n+1, size)
		}
		var data bytes.Buffer // grows as bytes arrive: the length may be a lie
		if _, err := io.CopyN(&data, r, size); err != nil {
			return n, readError(err, "it ends before its last file")
		}
		c, err := decode(data.Bytes())
		if err != nil {
			return n, fmt.Errorf("file %d: %w", n+1, err)
		}
		if err := s.put(c.key, c.name, data.Bytes()); err != nil {
			return n, err
		}
	}
}

// readError returns the error of a reader, or ErrCorrupt with this text if the reader has reached its end.
func readError(err error, text string) error {
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	}
	return corrupt("%s", text)
}
