package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// stackUse returns how many values an opcode takes from the stack and how many it leaves. If jumps is true, it returns
// these numbers for the case in which the opcode jumps.
type stackUse func(op string, arg int, jumps bool) (takes, leaves int)

// maxArg bounds the arguments that are tried. An effect that is the same for all of them does not depend on the
// argument.
const maxArg = 16

// pictures checks the comments above the handlers of opcodes. The section "One opcode handler" of docs/style.md has an
// example.
type pictures struct {
	use   stackUse
	codes map[string]string // maps a constant of package exc to its break code

	set     *token.FileSet
	found   []string
	counted int // number of pictures that have been compared with the stack effect
}

// picture is one line of a comment that shows the stack: "stack: lhs rhs -- result      a note". A line "jumps:" shows
// the stack after a jump.
type picture struct {
	text        string
	jumps       bool
	left, right []string
}

// parseDir parses the Go files of a folder except its tests.
func parseDir(set *token.FileSet, dir string) ([]*ast.File, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// handlerOps maps the name of each function in a handler table to its opcodes. The table's rows read `opcode.NOP:
// {run: (*tx).nop}`.
func handlerOps(files []*ast.File) map[string][]string {
	ops := map[string][]string{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			row, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			op, ok := row.Key.(*ast.SelectorExpr)
			fields, ok2 := row.Value.(*ast.CompositeLit)
			if !ok || !ok2 {
				return true
			}
			for _, e := range fields.Elts {
				field, ok := e.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				key, _ := field.Key.(*ast.Ident)
				if run, ok := field.Value.(*ast.SelectorExpr); ok && key != nil && key.Name == "run" {
					ops[run.Sel.Name] = append(ops[run.Sel.Name], op.Sel.Name)
				}
			}
			return true
		})
	}
	return ops
}

// breakCodes maps each constant in the catalog to its break code. The catalog's rows read `Generator: {"GD0302",
// ...}`.
func breakCodes(files []*ast.File) map[string]string {
	codes := map[string]string{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if row, ok := n.(*ast.KeyValueExpr); ok {
				name, ok := row.Key.(*ast.Ident)
				entry, ok2 := row.Value.(*ast.CompositeLit)
				if ok && ok2 && len(entry.Elts) > 0 {
					if id, ok := entry.Elts[0].(*ast.BasicLit); ok && strings.HasPrefix(id.Value, `"GD`) {
						codes[name.Name], _ = strconv.Unquote(id.Value)
					}
				}
			}
			return true
		})
	}
	return codes
}

// check compares the comment above each function of the handler table with the function's opcodes, their stack effects
// and the break codes.
func (p *pictures) check(files []*ast.File) {
	ops := handlerOps(files)
	for _, file := range files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || ops[f.Name.Name] == nil {
				continue
			}
			p.function(f, ops[f.Name.Name])
			delete(ops, f.Name.Name)
		}
	}
	for name := range ops {
		p.found = append(p.found, name+": no such handler")
	}
	sort.Strings(p.found)
}

func (p *pictures) wrong(f *ast.FuncDecl, format string, args ...any) {
	at := p.set.Position(f.Pos())
	where := fmt.Sprintf("%s:%d: %s: ", filepath.ToSlash(at.Filename), at.Line, f.Name.Name)
	p.found = append(p.found, where+fmt.Sprintf(format, args...))
}

func (p *pictures) function(f *ast.FuncDecl, ops []string) {
	doc := f.Doc.Text()
	first, _, _ := strings.Cut(doc, "\n\n")
	if !strings.HasPrefix(first, f.Name.Name+" implements ") {
		p.wrong(f, "the comment does not begin with %q", f.Name.Name+" implements")
	}
	for _, op := range ops {
		if !regexp.MustCompile(`\b` + op + `\b`).MatchString(first) {
			p.wrong(f, "the comment does not name %s", op)
		}
	}
	drawn := map[bool]bool{}
	for _, line := range strings.Split(doc, "\n") {
		pic, ok := parsePicture(line)
		if !ok {
			continue
		}
		drawn[pic.jumps] = true
		if pic.left == nil {
			p.wrong(f, "%q has not one --", pic.text)
		} else {
			p.compare(f, pic, ops)
		}
	}
	if !drawn[false] {
		p.wrong(f, "no stack: line")
	}
	if p.differs(ops) != drawn[true] {
		p.wrong(f, "a jumps: line is there where the stack differs after a jump, and only there")
	}
	p.breaks(f, doc)
}

// parsePicture reads a line of a comment. ok is false if the line is not a picture. left is nil unless the picture has
// exactly one "--".
func parsePicture(line string) (pic picture, ok bool) {
	body, ok := strings.CutPrefix(line, "\tstack:")
	if !ok {
		if body, ok = strings.CutPrefix(line, "\tjumps:"); !ok {
			return pic, false
		}
		pic.jumps = true
	}
	pic.text, _, _ = strings.Cut(strings.TrimSpace(body), "  ")
	names := strings.Fields(pic.text)
	at := slices.Index(names, "--")
	if at >= 0 && !slices.Contains(names[at+1:], "--") {
		pic.left, pic.right = names[:at:at], names[at+1:]
	}
	return pic, true
}

// differs reports whether a jump of one of the opcodes leaves another stack than no jump.
func (p *pictures) differs(ops []string) bool {
	for _, op := range ops {
		_, leaves := p.use(op, 0, false)
		if _, jumped := p.use(op, 0, true); jumped != leaves {
			return true
		}
	}
	return false
}

// compare checks the number of names in a picture against the stack use of each opcode. If the numbers depend on the
// argument but their difference does not (LIST_APPEND), it checks only the difference. If the difference depends on the
// argument too, it checks nothing.
func (p *pictures) compare(f *ast.FuncDecl, pic picture, ops []string) {
	left, right := len(pic.left), len(pic.right)
	for _, op := range ops {
		takes, leaves := p.use(op, 0, pic.jumps)
		same, effect := true, true
		for arg := 1; arg < maxArg; arg++ {
			t, l := p.use(op, arg, pic.jumps)
			same = same && t == takes && l == leaves
			effect = effect && l-t == leaves-takes
		}
		switch {
		case !effect:
			return
		case strings.Contains(pic.text, "["):
			p.wrong(f, "%q has a name in brackets, but %s always has the same effect", pic.text, op)
		case right-left != leaves-takes:
			p.wrong(f, "%q changes the height by %d, %s by %d", pic.text, right-left, op, leaves-takes)
		case same && left != takes:
			p.wrong(f, "%q takes %d, %s takes %d", pic.text, left, op, takes)
		}
	}
	p.counted++
}

// breakCode matches a break code in a comment.
var breakCode = regexp.MustCompile(`\bGD\d+\b`)

// breaks checks that all codes in the `breaks:` line are in the catalog, and that the line has the codes with which
// the handler itself breaks the graph.
func (p *pictures) breaks(f *ast.FuncDecl, doc string) {
	var named []string
	for _, line := range strings.Split(doc, "\n") {
		if body, ok := strings.CutPrefix(line, "\tbreaks:"); ok {
			named = breakCode.FindAllString(body, -1)
			if !slices.IsSorted(named) || len(slices.Compact(slices.Clone(named))) != len(named) || len(named) == 0 {
				p.wrong(f, "breaks:%s: the codes are sorted, each once", body)
			}
		}
	}
	known := map[string]bool{}
	for _, code := range p.codes {
		known[code] = true
	}
	for _, code := range named {
		if !known[code] {
			p.wrong(f, "%s is not in the catalog", code)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !isSelector(call.Fun, "exc", "Break") || len(call.Args) == 0 {
			return true
		}
		if code, ok := call.Args[0].(*ast.SelectorExpr); ok && !slices.Contains(named, p.codes[code.Sel.Name]) {
			p.wrong(f, "breaks: lacks %s, which is exc.%s", p.codes[code.Sel.Name], code.Sel.Name)
		}
		return true
	})
}

// isSelector reports whether an expression is pkg.name.
func isSelector(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}
