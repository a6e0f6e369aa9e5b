package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOwnershipIsStatedAboveFunctionsInC(t *testing.T) {
	files := map[string]string{}
	seen := 0
	for _, file := range sources(t, ".c", ".h") {
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		files[file] = string(text)
		for _, f := range cFunctions(file, string(text)) {
			if f.returns && f.body != "" {
				seen++
			}
		}
	}
	assert.Empty(t, unowned(files), "docs/style.md, Who owns a Python object")
	assert.Greater(t, seen, 250)
	t.Logf("%d functions return objects", seen)
}

func TestAMissingOwnerIsFound(t *testing.T) {
	const noResult = "f: no comment says who owns the result: new, borrowed or immortal"
	cases := []struct {
		name, header, code string
		want               []string
	}{
		{"no comment", "", "static PyObject *\nf(int n)\n{\n}\n", []string{noResult}},
		{"a comment about another thing", "", "/* The n-th. */\nPyObject *\nf(int n)\n{\n}\n", []string{noResult}},
		{"a comment that is further away", "", "/* new */\n\nPyCodeObject *\nf(int n)\n{\n}\n", []string{noResult}},
		{"new", "", "/* The n-th. new, or NULL */\nstatic PyObject *\nf(int n)\n{\n}\n", nil},
		{"borrowed, with attributes", "",
			"/* borrowed */\nstatic inline __attribute__((noinline)) gd_Root *\nf(int n,\n  int m)\n{\n}\n", nil},
		{"no object", "", "static const char *\nf(int n)\n{\n}\n", nil},
		{"said in the header", "/* The n-th; borrowed. */\nPyObject *f(int n);\n", "PyObject *\nf(int n)\n{\n}\n", nil},
		{"said behind the declaration", "PyObject *f(int n); /* new */\n", "PyObject *\nf(int n)\n{\n}\n", nil},
		{"said above declarations in a row",
			"/* new */\nPyObject *g(int n,\n            int m);\nPyObject *f(int n);\n",
			"PyObject *\nf(int n)\n{\n}\n", nil},
		{"another comment behind the declaration",
			"/* new */\nPyObject *g(int n);\nPyObject *f(int n); /* the n-th */\n",
			"PyObject *\nf(int n)\n{\n}\n", []string{noResult}},
		{"said above a section of the header", "/* ---- reading: new references ---- */\n\nPyObject *f(int n);\n",
			"PyObject *\nf(int n)\n{\n}\n", nil},
		{"a static function of that name elsewhere", "/* new */\nstatic PyObject *f(int n);\n",
			"PyObject *\nf(int n)\n{\n}\n", []string{noResult}},
		{"a slot of a section", "",
			"/* ---- for Python: new references ---- */\n\nstatic PyObject *\nf(PyObject *m)\n{\n}\n" +
				"static PyMethodDef functions[] = {{\"f\", f, METH_O, NULL}};\n", nil},
		{"a slot, said at the head of the file", "",
			"/* Getters return a new reference. */\n#define X 1\n\nstatic PyObject *\nf(PyObject *m)\n{\n}\n" +
				"PyGetSetDef getset[] = {{\"f\", f, NULL, NULL, NULL}};\n", nil},
		{"the section of another slot", "",
			"/* ---- a: new references ---- */\n\n/* ---- b ---- */\n\nstatic PyObject *\nf(PyObject *m)\n{\n}\n" +
				"static PyMethodDef functions[] = {{\"f\", f, METH_O, NULL}};\n", []string{noResult}},
		{"a section speaks for slots alone", "",
			"/* ---- for Python: new references ---- */\n\nstatic PyObject *\nf(PyObject *m)\n{\n}\n" +
				"int g(void) { return f(NULL) != NULL; } /* f */\n", []string{noResult}},
		{"a place for a result", "", "/* Finds it. */\nint\nf(PyObject *v, PyObject **out)\n{\n}\n",
			[]string{"f: no comment says who owns out"}},
		{"registers", "", "int\nf(PyObject **regs)\n{\n}\n", nil},
		{"a reference that is released", "", "/* Ends it. */\nvoid\nf(PyObject *v)\n{\n    Py_XDECREF(v);\n}\n",
			[]string{"f: releases v, and no comment says that it is stolen"}},
		{"a reference that is released, as it says", "",
			"/* Ends it. v: stolen. */\nvoid\nf(PyObject *v)\n{\n    Py_DECREF(v);\n}\n", nil},
		{"a reference that it has taken", "", "void\nf(PyObject *v)\n{\n    Py_INCREF(v);\n    Py_DECREF(v);\n}\n",
			nil},
		{"what a parameter holds", "", "void\nf(gd_Root *v)\n{\n    Py_DECREF(v->inner);\n}\n", nil},
	}
	place := regexp.MustCompile(`^f\.c:\d+: `)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var found []string
			for _, text := range unowned(map[string]string{"f.h": c.header, "f.c": c.code}) {
				found = append(found, place.ReplaceAllString(text, ""))
			}
			assert.Equal(t, c.want, found)
		})
	}
}
