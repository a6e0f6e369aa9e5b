// Package lint contains tests for the house rules that a program can check: which imports are allowed, where C may be
// written, how long a file may be. docs/style.md gives the reasons.
//
// The package reads the repository through `go list` and the file system, and imports nothing from the project.
package lint

import (
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path"
	"sort"
	"strings"
)

const module = "github.com/godynamo/godynamo"

// bindings is the path of the package that makes handles on Python objects.
const bindings = "github.com/DataDog/go-python3"

// Package holds the fields of `go list -json` that the rules use.
type Package struct {
	ImportPath   string
	Dir          string
	Imports      []string
	TestImports  []string
	XTestImports []string
	GoFiles      []string
	CgoFiles     []string
	CFiles       []string
	HFiles       []string
}

// Path returns the import path within the module, which is "." for the root.
func (p *Package) Path() string {
	if p.ImportPath == module {
		return "."
	}
	return strings.TrimPrefix(p.ImportPath, module+"/")
}

// list returns the module's packages below dir. tags are the build tags.
func list(dir string, tags string) ([]*Package, error) {
	// With the profile, packages would have the name of the main package in their import paths.
	cmd := exec.Command("go", "list", "-e", "-json", "-pgo=off", "-tags", tags, "./...")
	cmd.Dir = dir
	// Listing needs no compiler. Without cgo, files with `import "C"` would count as excluded.
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=1")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []*Package
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		p := new(Package)
		if err := decoder.Decode(p); err == io.EOF {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		packages = append(packages, p)
	}
}

// arrows lists the allowed imports. The row of a package is the one whose key is the longest prefix of the package's
// path. The package may import the packages in its row, all packages below the prefix, and those in everyones.
var arrows = map[string][]string{
	"cmd/godynamo-ext": {"pyhook"},
	// The command line tool does not use CPython or the translator: a Python process does that work.
	"cmd/godynamo": {"internal"},
	"pyhook": {"bytecode", "bytecode/translate", "bytecode/opcode", "variables", "guards", "fxgraph", "cache",
		"cache/disk", "cache/record", "backends", "pyhook/py"},
	"pyhook/py": {"bytecode", "bytecode/opcode"},
	// A backend implements an interface of bytecode/translate. It gets a translation, finishes it and emits
	// instructions into it.
	"backends": {"bytecode", "bytecode/opcode", "bytecode/translate", "guards", "fxgraph", "variables",
		"pyhook/py"},
	"cache": {"guards", "pyhook/py"},
	// The command line tool lists and clears the folder, so this package does not use CPython.
	"cache/disk":   {},
	"cache/record": {"bytecode", "guards"},
	"bytecode/translate": {"bytecode", "bytecode/opcode", "variables", "variables/higher", "guards", "fxgraph",
		"pyhook/py"},
	"variables":        {"bytecode", "bytecode/opcode", "guards", "fxgraph", "pyhook/py"},
	"variables/higher": {"variables", "guards", "fxgraph", "pyhook/py"},
	"bytecode":         {"bytecode/opcode"},
	"bytecode/opcode":  {},
	"guards":           {},
	"fxgraph":          {},
	"internal":         {},
	"internal/cli":     {"internal", "cache/disk"},
}

// nested lists packages that have their own row although their path is below the prefix of another row. They are not
// part of that other row.
var nested = []string{"bytecode/translate", "bytecode/opcode", "cache/disk", "cache/record", "pyhook/py",
	"variables/higher"}

var everyones = []string{"internal/exc"}

// covers reports whether pkg is prefix or below it. Packages in `nested` that are below prefix do not count.
func covers(prefix, pkg string) bool {
	if pkg != prefix && !strings.HasPrefix(pkg, prefix+"/") {
		return false
	}
	for _, n := range nested {
		if n != prefix && strings.HasPrefix(n, prefix+"/") && covers(n, pkg) {
			return false
		}
	}
	return true
}

// rowOf returns the key of pkg's row in arrows. ok is false if there is no row.
func rowOf(pkg string) (row string, ok bool) {
	for p := pkg; p != "."; p = path.Dir(p) {
		if _, found := arrows[p]; found {
			return p, true
		}
	}
	return "", false
}

// wrongImports returns one text for each import that no arrow allows, sorted. It skips test files, which may compare
// two unrelated packages.
func wrongImports(packages []*Package) []string {
	var wrong []string
	for _, p := range packages {
		row, ok := rowOf(p.Path())
		if !ok {
			wrong = append(wrong, fmt.Sprintf("%s: no row in arrows says what it may import", p.Path()))
			continue
		}
		for _, imported := range p.Imports {
			if !strings.HasPrefix(imported, module+"/") {
				continue
			}
			target := strings.TrimPrefix(imported, module+"/")
			if !allowed(row, target) {
				wrong = append(wrong, fmt.Sprintf("%s imports %s", p.Path(), target))
			}
		}
	}
	sort.Strings(wrong)
	return wrong
}

func allowed(row, target string) bool {
	if covers(row, target) {
		return true
	}
	for _, candidates := range [][]string{arrows[row], everyones} {
		for _, prefix := range candidates {
			if covers(prefix, target) {
				return true
			}
		}
	}
	return false
}

// strayC returns the path of each file that contains C outside pyhook, sorted.
func strayC(packages []*Package) []string {
	var stray []string
	for _, p := range packages {
		if p.Path() == "pyhook" || strings.HasPrefix(p.Path(), "pyhook/") {
			continue
		}
		for _, files := range [][]string{p.CgoFiles, p.CFiles, p.HFiles} {
			for _, file := range files {
				stray = append(stray, p.Path()+"/"+file)
			}
		}
	}
	sort.Strings(stray)
	return stray
}

// bindingUsers returns the paths of the packages that import go-python3, sorted. A package whose tests import it is
// included.
func bindingUsers(packages []*Package) []string {
	var users []string
	for _, p := range packages {
		for _, imports := range [][]string{p.Imports, p.TestImports, p.XTestImports} {
			for _, imported := range imports {
				if imported == bindings {
					users = append(users, p.Path())
				}
			}
		}
	}
	sort.Strings(users)
	return users
}

// pure reports whether a package must build without CPython's headers.
func pure(pkg string) bool {
	for _, prefix := range []string{"bytecode", "bytecode/opcode", "guards", "fxgraph", "cache/disk", "cache/record",
		"internal"} {
		if covers(prefix, pkg) {
			return true
		}
	}
	return false
}
