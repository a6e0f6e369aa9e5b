package bench

import (
	"io"
	"os"
	"path/filepath"
)

// Writable reports whether a file can be written at path. It is called before anything is measured. The path "-" is
// stdout.
func Writable(path string) error {
	if path == "-" {
		return nil
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return problemf("%s is a directory, a file is wanted", path)
	}
	if folder, err := os.Stat(filepath.Dir(path)); err != nil || !folder.IsDir() {
		return problemf("%s: there is no directory %s", path, filepath.Dir(path))
	}
	return nil
}

// WriteFile writes a file completely or not at all. A reader never sees a partial file, and only a complete file
// replaces an older one.
func WriteFile(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // for example, /dev/stdout or a pipe
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer file.Close()
		return write(file)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // the link stays; its target is replaced
	} else if target, err := os.Readlink(path); err == nil { // the link's target does not exist yet
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if err := write(file); err != nil {
		file.Close()
		return err
	}
	if err := file.Chmod(0o644); err != nil {
		file.Close()
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
