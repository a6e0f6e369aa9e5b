package lint

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// cFunction is a definition of a function in C source text, or its declaration in a header.
type cFunction struct {
	file, name, params, body string
	line                     int
	returns                  bool // whether it returns a Python object
	static                   bool
	// whether it is static and used as a value, as the functions in CPython's tables of slots are
	slot    bool
	comment string // the comment above it; for a declaration, also the one after it
	group   string // the comment of its section; for a slot, also the one at the head of the file
}

var (
	// The types of objects are CPython's structs (PyObject, PyCodeObject, ...) and the core's own (gd_Root), whose
	// names have a capital after gd_.
	cObject = `(?:Py\w*Object|gd_[A-Z]\w*)`

	// clang-format puts the name in a definition into the first column, below a line with the return type.
	definition  = regexp.MustCompile(`(?m)^([A-Za-z_][^\n;{}#]*)\n(\w+)\(([^{};]*?)\)\n\{\n`)
	declaration = regexp.MustCompile(`(?m)^([A-Za-z_][^\n;{}#=()]*[ *])(\w+)\(([^;{}]*)\);([^\n]*)`)
	section     = regexp.MustCompile(`(?ms)^/\* ----.*?\*/`)
	notCode     = regexp.MustCompile(`(?s)/\*.*?\*/|"(?:\\.|[^"\\\n])*"`)

	isObject   = regexp.MustCompile(`\b` + cObject + ` \*$`)
	objectArg  = regexp.MustCompile(`\b` + cObject + ` \*(\w+)`)
	throughArg = regexp.MustCompile(`\b` + cObject + ` \*\*(\w+)`)

	owner = regexp.MustCompile(`(?i)\b(new|borrowed|immortal|steals|stolen)\b`)
	steal = regexp.MustCompile(`(?i)\b(steals|stolen)\b`)
	group = regexp.MustCompile(`(?i)\bnew references?\b`) // in a comment about several functions
)

// cFunctions lists the functions of a C file.
func cFunctions(file, text string) []cFunction {
	var found []cFunction
	lineOf := func(at int) int { return 1 + strings.Count(text[:at], "\n") }
	code := notCode.ReplaceAllString(text, "")
	for _, m := range definition.FindAllStringSubmatchIndex(text, -1) {
		result, name := text[m[2]:m[3]], text[m[4]:m[5]]
		body, _, _ := strings.Cut(text[m[1]:], "\n}")
		f := cFunction{
			file: file, line: lineOf(m[4]), name: name, params: text[m[6]:m[7]], body: body,
			returns: isObject.MatchString(result), static: strings.Contains(result, "static") ||
				strings.Contains(result, "ONCE_PER"),
			comment: commentAbove(text[:m[0]], false), group: headComment(text) + sectionComment(text[:m[0]]),
		}
		value := regexp.MustCompile(`\b` + name + `\b\s*[^\s(]`)
		f.slot = f.static && value.MatchString(code)
		found = append(found, f)
	}
	for _, m := range declaration.FindAllStringSubmatchIndex(text, -1) {
		result := text[m[2]:m[3]]
		f := cFunction{
			file: file, line: lineOf(m[4]), name: text[m[4]:m[5]], params: text[m[6]:m[7]],
			returns: isObject.MatchString(result), static: strings.Contains(result, "static"),
			comment: text[m[8]:m[9]], group: sectionComment(text[:m[0]]),
		}
		f.comment += commentAbove(text[:m[0]], !strings.Contains(f.comment, "/*"))
		found = append(found, f)
	}
	return found
}

// commentAbove returns the comment at the end of a text. If shared is true, declarations may follow the comment.
func commentAbove(text string, shared bool) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	end := len(lines)
	for end > 0 && !strings.HasPrefix(lines[end-1], "/*") && !strings.HasPrefix(lines[end-1], " *") {
		if !shared || !strings.Contains(lines[end-1], ");") && !strings.HasSuffix(lines[end-1], ",") {
			return ""
		}
		end--
	}
	start := end
	for start > 0 && strings.HasPrefix(lines[start-1], " *") {
		start--
	}
	if start > 0 && strings.HasPrefix(lines[start-1], "/*") {
		start--
	}
	return strings.Join(lines[start:end], "\n")
}

// headComment returns the comment at the head of a file.
func headComment(text string) string {
	if !strings.HasPrefix(text, "/*") || strings.HasPrefix(text, "/* ----") {
		return ""
	}
	head, _, _ := strings.Cut(text, "*/")
	return head
}

// sectionComment returns the last comment of the form "/* ---- ... */" in a text.
func sectionComment(text string) string {
	sections := section.FindAllString(text, -1)
	if len(sections) == 0 {
		return ""
	}
	return sections[len(sections)-1]
}

// decrefs reports whether a function's body releases a parameter without taking a reference to it.
func decrefs(body, param string) bool {
	does := func(what string) bool {
		return regexp.MustCompile(`\b(?:` + what + `)\(` + param + `\)`).MatchString(body)
	}
	return does("Py_X?DECREF|Py_CLEAR") && !does("Py_X?INCREF|Py_X?NewRef")
}

// unowned lists functions that return objects, return them through a pointer, or release them, and whose comments do
// not state who owns these objects. The word may be in the comment of the definition or of the declaration.
func unowned(files map[string]string) []string {
	said := map[string]string{}
	key := func(f *cFunction) string {
		if f.static {
			return f.file + " " + f.name
		}
		return f.name
	}
	var all []cFunction
	for file, text := range files {
		all = append(all, cFunctions(file, text)...)
	}
	for i := range all {
		f := &all[i]
		said[key(f)] += f.comment
		if (f.slot || f.body == "") && group.MatchString(f.group) {
			said[key(f)] += f.group
		}
	}
	var found []string
	for i := range all {
		f := &all[i]
		words := said[key(f)]
		wrong := func(what string) {
			found = append(found, fmt.Sprintf("%s:%d: %s: %s", f.file, f.line, f.name, what))
		}
		if f.body == "" {
			continue
		}
		if f.returns && !owner.MatchString(words) {
			wrong("no comment says who owns the result: new, borrowed or immortal")
		}
		for _, m := range throughArg.FindAllStringSubmatch(f.params, -1) {
			if !slices.Contains(understood, m[1]) && !owner.MatchString(words) {
				wrong("no comment says who owns " + m[1])
			}
		}
		for _, m := range objectArg.FindAllStringSubmatch(f.params, -1) {
			if decrefs(f.body, m[1]) && !steal.MatchString(words) {
				wrong("releases " + m[1] + ", and no comment says that it is stolen")
			}
		}
	}
	sort.Strings(found)
	return found
}

// understood lists parameters that have the same ownership in all functions. All but `result` are arrays of borrowed
// references (guards/eval.h). `result` is that of a call with GD_SERVED, which is new, as the comment on that enum
// states (calls/miss.h).
var understood = []string{"regs", "slots", "args", "sp", "result"}
