package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Embed replaces this process with one that starts CPython inside the Go library (pyhook/launcher), and runs `python -m
// godynamo._tools args...` there. If there is no libpython, Embed reports that on stderr and runs the same command in
// the plain interpreter. It also does so without a Go library for this Python, which the command itself reports. It
// returns only on failure.
func (app *App) Embed(p *Python, args ...string) error {
	facts, err := p.Facts()
	if err != nil {
		return err
	}
	launcher := filepath.Join(facts.Package, "godynamo-embed")
	switch _, missing := os.Stat(facts.GoLibrary()); {
	case missing != nil:
	case facts.LibPython == "":
		fmt.Fprintf(app.Stderr,
			"godynamo: %s has no shared libpython%s to embed (Debian: libpython%s; pyenv: --enable-shared); using "+
				"it as it is\n",
			p.Path, facts.Minor(), facts.Minor())
	case !isExecutable(launcher):
		return Problemf("%s is missing: install godynamo again", launcher)
	default:
		line := append([]string{launcher, facts.LibPython, facts.GoLibrary()},
			p.entry(args)...)
		return Problemf("cannot start %s: %v", launcher, syscall.Exec(launcher, line, os.Environ()))
	}
	return Problemf("cannot start %s: %v", p.Path, syscall.Exec(p.Path, p.entry(args), os.Environ()))
}
