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

// scopes matches expressions that are a py.Scope, by the names the project gives them.
var scopes = regexp.MustCompile(`(^|\.)(s|scope|Scope\(\))$`)

// fallible lists the methods of py.Scope that return an error, read from its source.
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

// droppedErrors lists the calls of those methods in a source text whose error nothing looks at: assigned to _, or not assigned.
func droppedErrors(name string, text any, methods map[string]bool) ([]string, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, 0)
	if err != nil {
		return nil, err
	}
	var found []string
	look := func(e ast.Expr) {
		call, ok := e.(*ast.CallExpr)
		if !ok {
			return
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if ok && methods[f.Sel.Name] && scopes.MatchString(types.ExprString(f.X)) {
			at := set.Position(call.Pos())
			found = append(found, fmt.Sprintf("%s:%d: the error of %s is dropped", filepath.ToSlash(at.Filename), at.Line, f.Sel.Name))
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

// callsPython reports whether a package has scopes.
func callsPython(p *Package) bool {
	return p.Path() == "pyhook/py" || strings.Contains(strings.Join(p.Imports, " ")+" ", module+"/pyhook/py ")
}
