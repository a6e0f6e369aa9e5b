package lint

import (
	"bufio"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	root     = "../.."
	maxLines = 900
	// maxFunction is the maximum number of lines of a function. Tables are exempt.
	maxFunction = 80
)

func packages(t *testing.T) []*Package {
	t.Helper()
	found, err := list(root, "")
	require.NoError(t, err)
	require.NotEmpty(t, found)
	return found
}

func TestImportsFollowTheArrows(t *testing.T) {
	assert.Empty(t, wrongImports(packages(t)), "docs/style.md, Who may import whom")
}

// Package variables calls variables/higher through a table, which variables/higher fills when it is imported.
func TestTheTranslatorImportsWhatTakesFunctions(t *testing.T) {
	for _, p := range packages(t) {
		if p.Path() == "bytecode/translate" {
			assert.Contains(t, p.Imports, module+"/variables/higher")
		}
	}
}

func TestAnImportAgainstTheArrowsIsFound(t *testing.T) {
	made := func(path string, imports ...string) *Package {
		for i := range imports {
			imports[i] = module + "/" + imports[i]
		}
		return &Package{ImportPath: module + "/" + path, Imports: imports}
	}
	cases := []struct {
		name string
		pkg  *Package
		want []string
	}{
		{"guards may not see the trackers", made("guards", "variables"), []string{"guards imports variables"}},
		{"bytecode is not translate", made("bytecode", "bytecode/translate"),
			[]string{"bytecode imports bytecode/translate"}},
		{"a folder below a package is the package's", made("guards/gen", "guards"), nil},
		{"variables may not turn back to the translator", made("variables", "bytecode/translate"),
			[]string{"variables imports bytecode/translate"}},
		{"variables may not turn back to what it dispatches to", made("variables", "variables/higher"),
			[]string{"variables imports variables/higher"}},
		{"pyhook reaches the translator", made("pyhook", "bytecode/translate", "bytecode/opcode"), nil},
		{"handles know of nothing above them", made("pyhook/py", "pyhook"), []string{"pyhook/py imports pyhook"}},
		{"translations on disk know of no entries", made("cache/disk", "cache"), []string{"cache/disk imports cache"}},
		{"everyone has the errors", made("fxgraph", "internal/exc"), nil},
		{"a package without a row says so", made("elsewhere"),
			[]string{"elsewhere: no row in arrows says what it may import"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, wrongImports([]*Package{c.pkg}))
		})
	}
}

func TestCIsWrittenBelowPyhookOnly(t *testing.T) {
	assert.Empty(t, strayC(packages(t)))

	outside := &Package{ImportPath: module + "/guards", CgoFiles: []string{"fast.go"}, CFiles: []string{"fast.c"}}
	assert.Equal(t, []string{"guards/fast.c", "guards/fast.go"}, strayC([]*Package{outside}))
}

func TestCIncludesAreNotWrittenElsewhere(t *testing.T) {
	// No Go package lists the .c files of a folder without Go files.
	for _, file := range sources(t, ".c", ".h") {
		assert.True(t, strings.HasPrefix(file, "pyhook/"), "%s: C is written under pyhook/ only", file)
	}
}

func TestGoPython3IsImportedByPyhookPyOnly(t *testing.T) {
	embedded, err := list(root, "pyembed")
	require.NoError(t, err)
	for _, found := range [][]*Package{packages(t), embedded} {
		for _, user := range bindingUsers(found) {
			assert.Equal(t, "pyhook/py", user)
		}
	}
}

func TestPurePackagesImportNothingOfCPython(t *testing.T) {
	byPath := map[string]*Package{}
	for _, p := range packages(t) {
		byPath[p.ImportPath] = p
	}
	var visit func(p *Package, seen map[string]bool) []string
	visit = func(p *Package, seen map[string]bool) []string {
		var found []string
		for _, imported := range p.Imports {
			if imported == "C" || imported == bindings || strings.HasPrefix(imported, module+"/pyhook") {
				found = append(found, p.Path()+" imports "+imported)
			}
			if next := byPath[imported]; next != nil && !seen[imported] {
				seen[imported] = true
				found = append(found, visit(next, seen)...)
			}
		}
		return found
	}
	for _, p := range byPath {
		if pure(p.Path()) {
			assert.Empty(t, visit(p, map[string]bool{}), p.Path())
		}
	}
}

// internalHeader matches an include of one of CPython's internal headers.
var internalHeader = regexp.MustCompile(`#\s*include\s*[<"]internal/`)

// perVersion matches the files that may depend on CPython's version: those in the core's folders for versions, and
// pycompat_ files in Go packages.
var perVersion = regexp.MustCompile(`/py3\d+/|/pycompat_\w+\.c$`)

func TestInternalHeadersAreIncludedForOneVersionOnly(t *testing.T) {
	for _, file := range sources(t, ".c", ".h") {
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		if internalHeader.Match(text) {
			assert.Regexp(t, perVersion, file, "an internal header of CPython's is included")
		}
	}
}

// rooms maps each folder of pyhook/core to the folders whose headers it may include. All folders may include the
// headers in pyhook/core itself.
var rooms = map[string]string{
	"calls":    "cache guards torch pycommon",
	"cache":    "guards torch pycommon",
	"guards":   "torch pycommon",
	"torch":    "",
	"pycommon": "guards",
	"py311":    "pycommon",
	"py312":    "pycommon",
	"py313":    "pycommon",
	"py314":    "pycommon",
}

var included = regexp.MustCompile(`(?m)^#include "(([a-z0-9]+)/[^"]+)"`)

func TestRoomsOfTheCoreIncludeOneWay(t *testing.T) {
	for _, file := range sources(t, ".c", ".h") {
		below, ok := strings.CutPrefix(file, "pyhook/core/")
		room, _, nested := strings.Cut(below, "/")
		if !ok || !nested {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		may, known := rooms[room]
		assert.True(t, known, "%s is in no room", file)
		for _, m := range included.FindAllStringSubmatch(string(text), -1) {
			if m[2] != room {
				assert.Contains(t, strings.Fields(may), m[2], "%s includes %s", file, m[1])
			}
		}
	}
}

// circles lists the C units that include each other in a cycle. A unit is a .c file with its header. includes maps a
// unit to the units that it includes.
func circles(includes map[string][]string) (found []string) {
	const open, closed = 1, 2
	state := map[string]int{}
	var walk func(unit string, path []string)
	walk = func(unit string, path []string) {
		path = append(path, unit)
		switch state[unit] {
		case open:
			found = append(found, strings.Join(path[slices.Index(path, unit):], " -> "))
		case 0:
			state[unit] = open
			for _, next := range includes[unit] {
				if next != unit {
					walk(next, path)
				}
			}
			state[unit] = closed
		}
	}
	for _, unit := range slices.Sorted(maps.Keys(includes)) {
		walk(unit, nil)
	}
	return found
}

var quoted = regexp.MustCompile(`(?m)^#include "([^"]+)\.h"`)

func TestNoCircleOfCFiles(t *testing.T) {
	includes := map[string][]string{}
	for _, file := range sources(t, ".c", ".h") {
		below, ok := strings.CutPrefix(file, "pyhook/core/")
		if !ok {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		unit := strings.TrimSuffix(below, filepath.Ext(below))
		for _, m := range quoted.FindAllStringSubmatch(string(text), -1) {
			includes[unit] = append(includes[unit], m[1])
		}
	}
	assert.Empty(t, circles(includes))
	made := map[string][]string{"a": {"a", "b"}, "b": {"c"}, "c": {"b", "d"}}
	assert.Equal(t, []string{"b -> c -> b"}, circles(made))
}

// maxColumn is the last column of a line of Go or C. Raw strings are exempt, since they contain texts and programs.
const maxColumn = 120

func TestLinesOfCodeEndAtTheColumn(t *testing.T) {
	for _, file := range sources(t, ".go", ".c", ".h") {
		if strings.Contains(filepath.Base(file), "_gen.") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		raw := false
		for i, line := range strings.Split(string(text), "\n") {
			quotes := strings.Count(line, "`")
			if column := len([]rune(strings.ReplaceAll(line, "\t", "    "))); column > maxColumn && !raw && quotes == 0 {
				assert.True(t, slices.Contains(longLines, file), "%s:%d ends at column %d", file, i+1, column)
			}
			raw = raw != (filepath.Ext(file) == ".go" && quotes%2 == 1)
		}
	}
}

// longLines are files with a line that cannot be broken, such as a row of a table with long strings, or a linter's
// directive.
var longLines = []string{"fxgraph/parse_test.go", "internal/lint/errors.go", "variables/gen/main_test.go"}

func TestFilesHaveOneTopic(t *testing.T) {
	for _, file := range sources(t, ".go", ".c", ".h", ".py", ".pyi", ".sh") {
		base := filepath.Base(file)
		if strings.Contains(base, "_gen.") {
			continue
		}
		lines := countLines(t, filepath.Join(root, file))
		assert.LessOrEqual(t, lines, maxLines, "%s has %d lines: a file with two topics is two files", file, lines)
	}
}

// Folders of scripts and tests are put on sys.path, so the names of their modules must be unique. pytest imports all
// test modules into one process, and each import of a name yields the first module of that name.
func TestModulesOutsidePackagesHaveOneNameEach(t *testing.T) {
	places := map[string][]string{}
	for _, file := range sources(t, ".py") {
		top, _, _ := strings.Cut(file, "/")
		_, err := os.Stat(filepath.Join(root, path.Dir(file), "__init__.py"))
		onPath := slices.Contains([]string{"bench", "build_backend", "scripts"}, top) || strings.HasPrefix(file, "python/tests/")
		if onPath && err != nil && path.Base(file) != "conftest.py" {
			places[path.Base(file)] = append(places[path.Base(file)], file)
		}
	}
	require.Greater(t, len(places), 200)
	for _, files := range places {
		assert.Len(t, files, 1, "import finds only one of %s", strings.Join(files, ", "))
	}
}

// tables are files with functions that only fill tables. These functions may be long.
var tables = []string{"bytecode/translate/handlers.go", "fxgraph/shapes/table.go", "variables/torch_calls.go"}

func TestFunctionsAreShort(t *testing.T) {
	for _, file := range sources(t, ".go") {
		if strings.Contains(file, "_gen.") || strings.HasSuffix(file, "_test.go") || slices.Contains(tables, file) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		begins, name := 0, ""
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "func ") {
				begins, name = i, line
			} else if line == "}" && name != "" {
				assert.LessOrEqual(t, i-begins+1, maxFunction, "%s:%d: %s: write it as the steps it takes", file,
					begins+1, name)
				name = ""
			}
		}
	}
}

// families are the prefixes that the names of Go files in a package may have, and the files that belong to no family.
// docs/architecture.md lists the contents of each family.
var families = map[string]string{
	"variables": "array builtin class computed constant container effects exception function iter object operator size tensor " +
		"torch builder facts lazy ops tracker world",
	"bytecode/translate": "codegen frame graph ops resume undo account clock convert embed handlers output " +
		"speculation steps trackers translator",
}

func TestFilesComeInFamilies(t *testing.T) {
	for _, file := range sources(t, ".go") {
		names, ok := families[path.Dir(file)]
		if !ok {
			continue
		}
		name := strings.TrimSuffix(strings.TrimSuffix(path.Base(file), ".go"), "_test")
		family, _, _ := strings.Cut(name, "_")
		assert.Contains(t, strings.Fields(names), family, "%s belongs to no family", file)
	}
}

// sources returns the repository's files whose names end in one of the suffixes, as paths from the root with slashes.
func sources(t *testing.T, suffixes ...string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "build" || name == "dist" ||
				name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		for _, suffix := range suffixes {
			if strings.HasSuffix(name, suffix) {
				relative, err := filepath.Rel(root, path)
				if err != nil {
					return err
				}
				found = append(found, filepath.ToSlash(relative))
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, found)
	return found
}

func countLines(t *testing.T, path string) int {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	lines := 0
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		lines++
	}
	require.NoError(t, scanner.Err())
	return lines
}
