//lint:file-ignore SA1019 local variables are told apart well enough without type information, which would need CPython's headers

package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

// scopes matches expressions that are a py.Scope. It recognizes them by the names that the project uses for scopes.
var scopes = regexp.MustCompile(`(^|\.)(s|scope|Scope\(\))$`)

// fallible returns the names of the methods of py.Scope that return an error. It reads them from the source in dir.
func fallible(dir string) (map[string]bool, error) {
	found := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return nil, err
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Type.Results == nil || types.ExprString(f.Recv.List[0].Type) != "*Scope" {
				continue
			}
			results := f.Type.Results.List
			if types.ExprString(results[len(results)-1].Type) == "error" {
				found[f.Name.Name] = true
			}
		}
	}
	return found, nil
}

// droppedErrors lists the calls of these methods in a source text that drop the error: they assign it to _ or to
// nothing.
func droppedErrors(name string, text any, methods map[string]bool) ([]string, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, 0)
	if err != nil {
		return nil, err
	}
	var found []string
	look := func(e ast.Expr) {
		if call := intoPython(e, methods); call != nil {
			at := set.Position(call.Pos())
			what := call.Fun.(*ast.SelectorExpr).Sel.Name
			where := fmt.Sprintf("%s:%d", filepath.ToSlash(at.Filename), at.Line)
			found = append(found, fmt.Sprintf("%s: the error of %s is dropped", where, what))
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ExprStmt:
			look(n.X)
		case *ast.AssignStmt:
			if last, ok := n.Lhs[len(n.Lhs)-1].(*ast.Ident); ok && last.Name == "_" && len(n.Rhs) == 1 {
				look(n.Rhs[0])
			}
		}
		return true
	})
	sort.Strings(found)
	return found, nil
}

// callsPython reports whether a package uses py.Scope.
func callsPython(p *Package) bool {
	return p.Path() == "pyhook/py" || strings.Contains(strings.Join(p.Imports, " ")+" ", module+"/pyhook/py ")
}

// answeredErrors lists the calls of these methods in a source text whose error is only compared with nil. Such code
// treats an exception like the answer false. Code that intends this calls py.Answered.
func answeredErrors(name string, text any, methods map[string]bool) ([]string, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, 0)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, call := range answersOnly(file, methods) {
		at := set.Position(call.Pos())
		where := fmt.Sprintf("%s:%d", filepath.ToSlash(at.Filename), at.Line)
		found = append(found, where+": the error becomes an answer; return it, or write py.Answered")
	}
	sort.Strings(found)
	return found, nil
}

// use is one mention of an error variable.
type use struct {
	at       token.Pos
	call     *ast.CallExpr // the call into Python whose error is assigned here; nil for other values
	assigned bool
	compared bool
	success  *ast.BlockStmt // the block that runs only if the comparison finds no error
}

// answersOnly lists a file's calls into Python whose error is only compared with nil: the variable is assigned again
// before any other use.
func answersOnly(file *ast.File, methods map[string]bool) []*ast.CallExpr {
	var found []*ast.CallExpr
	ast.Inspect(file, func(n ast.Node) bool {
		// for example, if s.SetAttr(...) != nil
		if b, ok := n.(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) {
			if call := intoPython(b.X, methods); call != nil && types.ExprString(b.Y) == "nil" {
				found = append(found, call)
			}
		}
		return true
	})
	for _, list := range errorUses(file, methods) {
		for i, u := range list {
			if u.call != nil && onlyCompared(list[i+1:]) {
				found = append(found, u.call)
			}
		}
	}
	return found
}

// errorUses lists the mentions of each error variable of a file, in the order of the text.
func errorUses(file *ast.File, methods map[string]bool) map[*ast.Object][]use {
	uses := map[*ast.Object][]use{}
	seen := map[*ast.Ident]bool{}
	success := map[*ast.BinaryExpr]*ast.BlockStmt{}
	add := func(e ast.Expr, u use) {
		if id, ok := e.(*ast.Ident); ok && id.Obj != nil && id.Obj.Kind == ast.Var && id.Name != "_" {
			u.at, seen[id] = id.Pos(), true
			uses[id.Obj] = append(uses[id.Obj], u)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			for _, c := range conjuncts(n.Cond) {
				success[c] = n.Body
			}
		case *ast.AssignStmt:
			for i, e := range n.Lhs {
				u := use{assigned: true}
				if len(n.Rhs) == 1 && i == len(n.Lhs)-1 {
					u.call = intoPython(n.Rhs[0], methods)
				}
				add(e, u)
			}
		case *ast.BinaryExpr:
			if y, ok := n.Y.(*ast.Ident); ok && y.Name == "nil" {
				u := use{compared: true}
				if n.Op == token.EQL {
					u.success = success[n]
				}
				add(n.X, u)
			}
		case *ast.Ident:
			if !seen[n] {
				add(n, use{})
			}
		}
		return true
	})
	return uses
}

// onlyCompared reports whether an error variable, after an assignment and up to the next one, is only compared with
// nil. Mentions in blocks that run only without an error do not count.
func onlyCompared(list []use) bool {
	compared, skipped := false, token.NoPos
	for _, u := range list {
		switch {
		case u.at < skipped: // in a block that runs only without an error
		case u.compared:
			compared = true
			if u.success != nil {
				skipped = u.success.End()
			}
		default:
			return compared && u.assigned
		}
	}
	return compared
}

// conjuncts lists the comparisons that are joined by && in a condition.
func conjuncts(e ast.Expr) []*ast.BinaryExpr {
	switch b := ast.Unparen(e).(type) {
	case *ast.BinaryExpr:
		if b.Op == token.LAND {
			return append(conjuncts(b.X), conjuncts(b.Y)...)
		}
		return []*ast.BinaryExpr{b}
	}
	return nil
}

// intoPython returns e as a call if e calls one of `methods` on a py.Scope, else nil.
func intoPython(e ast.Expr, methods map[string]bool) *ast.CallExpr {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return nil
	}
	if f, ok := call.Fun.(*ast.SelectorExpr); ok && methods[f.Sel.Name] && scopes.MatchString(types.ExprString(f.X)) {
		return call
	}
	return nil
}
