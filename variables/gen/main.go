// Command gen generates Go files of package variables from Python files. So each name in them is defined once, in
// Python:
//
//   - facts_gen.go has a field of factObjects for each key of a dict. The function facts() of
//     python/godynamo/_translator/facts.py returns this dict.
//   - torch_kinds_gen.go has a constant for each row of CallableKind in python/godynamo/_user/callable_kinds.py.
//   - torch_results_gen.go has a constant for each row of ResultKind in python/godynamo/_translator/kinds.py.
//
// `go generate ./variables` runs this command in the folder of package variables.
package main

import (
	"go/format"
	"log"
	"os"
)

// generated is a Go file and the Python file from which it is generated.
type generated struct {
	source, file string
	code         func(python string) ([]byte, error)
}

var files = []generated{
	{"../python/godynamo/_translator/facts.py", "facts_gen.go", factsFile},
	{"../python/godynamo/_user/callable_kinds.py", "torch_kinds_gen.go", callableKinds.file},
	{"../python/godynamo/_translator/kinds.py", "torch_results_gen.go", resultKinds.file},
}

func main() {
	log.SetFlags(0)
	for _, f := range files {
		text, err := os.ReadFile(f.source)
		if err != nil {
			log.Fatal(err)
		}
		code, err := f.formatted(string(text))
		if err != nil {
			log.Fatalf("%s: %v", f.source, err)
		}
		if err := os.WriteFile(f.file, code, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

func (f generated) formatted(python string) ([]byte, error) {
	code, err := f.code(python)
	if err != nil {
		return nil, err
	}
	return format.Source(code)
}
