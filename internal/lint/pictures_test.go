package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
)

// useOf returns a function that returns the stack use of an opcode, given by its name.
func useOf(t *testing.T) stackUse {
	ops := map[string]opcode.Op{}
	for i := 0; i < opcode.NumOps; i++ {
		ops[opcode.Op(i).String()] = opcode.Op(i)
	}
	return func(name string, arg int, jumps bool) (takes, leaves int) {
		op, ok := ops[name]
		require.True(t, ok, name)
		return bytecode.StackUse(&bytecode.Instruction{Op: op, Arg: arg}, jumps)
	}
}

func TestTheStackIsDrawnAboveEveryHandler(t *testing.T) {
	set := token.NewFileSet()
	files, err := parseDir(set, filepath.Join(root, "bytecode", "translate"))
	require.NoError(t, err)
	catalog, err := parseDir(set, filepath.Join(root, "internal", "exc"))
	require.NoError(t, err)
	codes := breakCodes(catalog)
	require.Equal(t, "GD0302", codes["Generator"])
	require.Greater(t, len(handlerOps(files)), 70)

	p := &pictures{use: useOf(t), codes: codes, set: set}
	p.check(files)
	assert.Empty(t, p.found, "docs/style.md, One opcode handler")
	assert.Greater(t, p.counted, 60)
	t.Logf("%d handlers, %d pictures counted", len(handlerOps(files)), p.counted)
}

func TestAWrongPictureIsFound(t *testing.T) {
	cases := []struct {
		name, rows, code string
		want             []string
	}{
		{"right", "BINARY_OP: {run: (*tx).h, breaks: true}",
			"// h implements BINARY_OP.\n//\n//\tstack: lhs rhs -- result      arg: index of the " +
				"operator\n//\tbreaks: GD0207\n", nil},
		{"another effect", "BINARY_OP: {run: (*tx).h}",
			"// h implements BINARY_OP.\n//\n//\tstack: lhs rhs -- lhs result\n",
			[]string{`"lhs rhs -- lhs result" changes the height by 0, BINARY_OP by -1`}},
		{"the effect, of other operands", "BINARY_OP: {run: (*tx).h}",
			"// h implements BINARY_OP.\n//\n//\tstack: lhs --\n",
			[]string{`"lhs --" takes 1, BINARY_OP takes 2`}},
		{"one variant of two", "CHECK_EG_MATCH: {run: (*tx).h}",
			"// h implements CHECK_EG_MATCH.\n//\n//\tstack: exc classes -- rest match\n" +
				"//\tstack: exc classes -- exc\n",
			[]string{`"exc classes -- exc" changes the height by -1, CHECK_EG_MATCH by 0`}},
		{"below the operands", "LIST_APPEND: {run: (*tx).h}",
			"// h implements LIST_APPEND.\n//\n//\tstack: list ... item -- ...\n",
			[]string{`"list ... item -- ..." changes the height by -2, LIST_APPEND by -1`}},
		{"depends on the argument", "CALL: {run: (*tx).h}",
			"// h implements CALL.\n//\n//\tstack: NULL callable args -- result\n", nil},
		{"brackets", "POP_TOP: {run: (*tx).h}", "// h implements POP_TOP.\n//\n//\tstack: [value] --\n",
			[]string{`"[value] --" has a name in brackets, but POP_TOP always has the same effect`}},
		{"no picture", "NOP: {run: (*tx).h}", "// h implements NOP.\n", []string{"no stack: line"}},
		{"no comment", "NOP: {run: (*tx).h}", "",
			[]string{"no stack: line", `the comment does not begin with "h implements"`,
				"the comment does not name NOP"}},
		{"no --", "NOP: {run: (*tx).h}", "// h implements NOP.\n//\n//\tstack: nothing\n",
			[]string{`"nothing" has not one --`}},
		{"an opcode is not named", "UNARY_NOT: {run: (*tx).h}, opcode.UNARY_INVERT: {run: (*tx).h}",
			"// h implements UNARY_NOT.\n//\n//\tstack: value -- result\n",
			[]string{"the comment does not name UNARY_INVERT"}},
		{"a jump", "FOR_ITER: {run: (*tx).h}",
			"// h implements FOR_ITER.\n//\n//\tstack: iterator -- iterator value\n//\tjumps: iterator --\n", nil},
		{"a jump is not drawn", "FOR_ITER: {run: (*tx).h}",
			"// h implements FOR_ITER.\n//\n//\tstack: iterator -- iterator value\n",
			[]string{"a jumps: line is there where the stack differs after a jump, and only there"}},
		{"a wrong jump", "FOR_ITER: {run: (*tx).h}",
			"// h implements FOR_ITER.\n//\n//\tstack: iterator -- iterator value\n//\tjumps: iterator -- iterator\n",
			[]string{`"iterator -- iterator" changes the height by 0, FOR_ITER by -1`}},
		{"a code that is none", "NOP: {run: (*tx).h}",
			"// h implements NOP.\n//\n//\tstack: --\n//\tbreaks: GD0207, GD9999\n",
			[]string{"GD9999 is not in the catalog"}},
		{"another function", "NOP: {run: (*tx).other}", "", []string{"other: no such handler"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, checkedPictures(t, c.rows, c.code+"func (tx *T) h() error { return nil }\n"))
		})
	}

	t.Run("its own code is missing", func(t *testing.T) {
		code := "// h implements NOP.\n//\n//\tstack: --\nfunc (tx *T) h() error { return " +
			"exc.Break(exc.OperatorUnsupported, \"\") }\n"
		want := []string{"breaks: lacks GD0207, which is exc.OperatorUnsupported"}
		assert.Equal(t, want, checkedPictures(t, "NOP: {run: (*tx).h}", code))
	})
}

// place matches the place at the start of a report of the rule.
var place = regexp.MustCompile(`^p\.go:\d+: h: `)

// checkedPictures returns the rule's reports for one handler, without their places.
func checkedPictures(t *testing.T, rows, code string) []string {
	t.Helper()
	set := token.NewFileSet()
	text := "package p\n\nvar rows = map[opcode.Op]handler{opcode." + rows + "}\n\n" + code
	file, err := parser.ParseFile(set, "p.go", text, parser.ParseComments)
	require.NoError(t, err)
	p := &pictures{use: useOf(t), codes: map[string]string{"OperatorUnsupported": "GD0207"}, set: set}
	p.check([]*ast.File{file})
	var found []string
	for _, f := range p.found {
		found = append(found, place.ReplaceAllString(f, ""))
	}
	return found
}
