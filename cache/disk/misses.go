package disk

import (
	"bytes"
	"encoding/json"
	"time"

	"golang.org/x/sys/unix"
)

const (
	missesName    = "misses.jsonl"
	oldMissesName = "misses.old.jsonl"
	// maxMisses is the size after which a file of misses is renamed. Two files are kept, so about 1 MB.
	maxMisses = 512 << 10
	// maxMissParts and maxMissText bound a record, and so a line: lines are appended by one write each.
	maxMissParts = 64
	maxMissText  = 512
)

// Record is a miss: a translation that was not found.
type Record struct {
	Time     time.Time `json:"time"` // Miss sets it if it is zero
	Function string    `json:"function"`
	File     string    `json:"file"`
	Line     int       `json:"line"`
	Parts    []Part    `json:"parts"`            // what the key was made of
	Reason   string    `json:"reason,omitempty"` // what else is known about it
}

// Miss adds a record to the file of misses. Long texts are cut.
func (s *Store) Miss(r Record) error {
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	r.Function, r.File, r.Reason = clip(r.Function, maxMissText), clip(r.File, maxMissText), clip(r.Reason, maxMissText)
	parts := make([]Part, 0, min(len(r.Parts), maxMissParts))
	for _, p := range r.Parts[:min(len(r.Parts), maxMissParts)] {
		parts = append(parts, Part{Name: clip(p.Name, maxMissText), Value: clip(p.Value, maxMissText)})
	}
	r.Parts = parts
	line, err := json.Marshal(r)
	if err != nil {
		return err // a year after 9999
	}
	line = append(line, '\n')
	return s.within([]string{version}, func(f *folder) error {
		fd, err := f.open(missesName, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT, 0o600)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		var opened, named unix.Stat_t
		if err := again(func() error { return unix.Fstat(fd, &opened) }); err != nil {
			return err
		}
		if err := private(&opened); err != nil {
			return err
		}
		if !regular(&opened) {
			return corrupt("%s is not a regular file", missesName)
		}
		if err := writeAll(fd, line); err != nil {
			return err
		}
		// Another process may have renamed the file already. The new one is short then.
		if opened.Size > maxMisses && f.stat(missesName, &named) == nil && named.Ino == opened.Ino {
			return again(func() error { return unix.Renameat(f.fd(), missesName, f.fd(), oldMissesName) })
		}
		return nil
	})
}

// Misses returns the latest misses, the latest last. It leaves out lines that it cannot read: a full disk cuts lines.
func (s *Store) Misses() []Record {
	f, err := s.open(version)
	if err != nil {
		return nil
	}
	defer f.Close()
	var found []Record
	for _, name := range []string{oldMissesName, missesName} {
		data, _, err := f.read(name, 8*maxMisses) // many processes may have appended before one of them renamed it
		if err != nil {
			continue
		}
		for line := range bytes.Lines(data) {
			var r Record
			if json.Unmarshal(line, &r) == nil {
				found = append(found, r)
			}
		}
	}
	return found
}
