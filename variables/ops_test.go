//go:build pyembed

package variables

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
)

// plainly is Python code that computes the expected outcome of each case in CPython: the repr of the result, or the
// exception.
const plainly = `
import operator

samples = [
    "None", "True", "0", "7", "-2", "2.5", "float('nan')", "1j", "''", "'ab'", "b'x'", "()", "(3,)", "(1, 'a')", "[]", "[1, 2]",
    "[[1], 2]", "{}", "{1: 2}", "{'a': [1]}", "set()", "{1, 2}", "frozenset({2})", "range(3)", "slice(1)", "...",
]
keys = ["0", "-1", "5", "True", "slice(1)", "slice(None, None, -1)", "slice(0, 5, 2)", "slice(0, 1, 0)", "'a'", "1.5", "None", "(1,)", "[1]"]
builtins = """abs all any ascii bin bool bytes callable chr complex dict divmod enumerate float format frozenset hex int
    isinstance issubclass iter len list max min next oct ord pow range repr reversed round set slice sorted str sum tuple
    type zip""".split()
operators = [name + kind for kind in ("", "=") for name in "+ & // << @ * % | ** >> - / ^".split()]

def value(text):
    return eval(text)

def outcome(f, *args):
    try:
        r = f(*args)
    except Exception as e:
        return type(e).__name__ + ": " + str(e)
    return shown(r)

def shown(r):
    """As repr prints it; what iterators and views yield as lists, and sets in the order of their items' texts."""
    if type(r) in (set, frozenset):
        return type(r).__name__ + str(sorted(map(shown, r)))
    if hasattr(r, "__next__") or type(r) in (type({}.keys()), type({}.values()), type({}.items())):
        r = list(r)
    return str([type(r), *map(shown, r)]) if type(r) in (list, tuple) else repr(r)

def statement(text):
    names = {}
    exec("def f(a, b):\n    " + text, names)
    return names["f"]

binary = {name: statement(f"a {name} b; return a" if name.endswith("=") else f"return a {name} b") for name in operators}
compare = {name: statement(f"return a {name} b") for name in "< <= == != > >=".split()}

def operated(name, a, b):
    return outcome(binary[name], value(a), value(b))

def compared(name, a, b):
    return outcome(compare[name], value(a), value(b))

def contained(a, b):
    return outcome(operator.contains, value(a), value(b))

def subscript(a, b):
    return outcome(operator.getitem, value(a), value(b))

def method(of, name, args):
    of = value(of)
    return outcome(lambda: (getattr(of, name)(*value(args)), of))

def methods(of):
    """Its methods in the order of dir(), without those that every object has."""
    return [n for n in dir(value(of)) if n not in dir(object) and callable(getattr(value(of), n)) and n != "__class_getitem__"]

def called(name, args):
    return outcome(eval(name), *value(args))
`

// theirs returns CPython's outcome. It calls a function of plainly with texts as arguments.
func theirs(t *testing.T, tx *frameless, ns py.Object, function string, texts ...string) string {
	t.Helper()
	f, ok := tx.s.DictGetName(ns, function)
	require.True(t, ok, function)
	args := make([]py.Object, len(texts))
	for i, text := range texts {
		args[i] = tx.s.Str(text)
	}
	r, err := tx.s.Call(f, args...)
	require.NoError(t, err)
	return py.GoString(r)
}

// of returns the tracker of the sample with this text.
func of(t *testing.T, tx *frameless, ns py.Object, text string) VariableTracker {
	t.Helper()
	f, _ := tx.s.DictGetName(ns, "value")
	o, err := tx.s.Call(f, tx.s.Str(text))
	require.NoError(t, err)
	return made(t, tx, o)
}

func textsOf(t *testing.T, tx *frameless, ns py.Object, name string) (out []string) {
	t.Helper()
	list, ok := tx.s.DictGetName(ns, name)
	require.True(t, ok)
	for _, o := range tx.s.Items(list) {
		out = append(out, py.GoString(o))
	}
	return out
}

// cases compares outcomes computed by trackers with those of CPython.
type cases struct {
	t      *testing.T
	tx     *frameless
	ns     py.Object
	shown  py.Object // plainly's function that prints a result
	known  int
	breaks int // a graph break is never wrong, but their number is bounded
}

// check runs one case. It compares the outcome of f, which uses trackers, with that of plainly's function, called with
// the same texts.
func (c *cases) check(f func() (VariableTracker, error), function string, texts ...string) {
	c.t.Helper()
	v, err := f()
	if _, breaks := err.(*exc.Unsupported); breaks {
		c.breaks++
		return
	}
	c.known++
	assert.Equal(c.t, theirs(c.t, c.tx, c.ns, function, texts...), outcome(c.t, c.tx, c.shown, v, err), "%s%q",
		function, texts)
}

// compare runs all cases of a test.
func compare(t *testing.T, run func(c *cases, samples []string)) {
	withPython(t, plainly, func(t *testing.T, tx *frameless, ns py.Object) {
		shown, _ := tx.s.DictGetName(ns, "shown")
		c := &cases{t: t, tx: tx, ns: ns, shown: shown}
		run(c, textsOf(t, tx, ns, "samples"))
		assert.Less(t, c.breaks, c.known/2, "graph breaks, of %d cases", c.known+c.breaks)
	})
}

func (c *cases) of(text string) VariableTracker { return of(c.t, c.tx, c.ns, text) }

func TestOperatorsAreCPythons(t *testing.T) {
	compare(t, func(c *cases, samples []string) {
		for op, name := range textsOf(t, c.tx, c.ns, "operators") {
			for _, a := range samples {
				for _, b := range samples {
					c.check(func() (VariableTracker, error) {
						return Binary(c.tx, opcode.BinaryOp(op), c.of(a), c.of(b))
					},
						"operated", name, a, b)
				}
			}
		}
	})
}

func TestComparisonsAreCPythons(t *testing.T) {
	compare(t, func(c *cases, samples []string) {
		for _, a := range samples {
			for _, b := range samples {
				for op, name := range []string{"<", "<=", "==", "!=", ">", ">="} {
					c.check(func() (VariableTracker, error) {
						return Compare(c.tx, opcode.CompareOp(op), c.of(a), c.of(b))
					},
						"compared", name, a, b)
				}
				c.check(func() (VariableTracker, error) {
					found, err := Contains(c.tx, c.of(a), c.of(b))
					return BoolConst(found), err
				}, "contained", a, b)
			}
		}
	})
}

func TestSubscriptsAreCPythons(t *testing.T) {
	compare(t, func(c *cases, samples []string) {
		for _, a := range samples {
			for _, key := range textsOf(t, c.tx, c.ns, "keys") {
				c.check(func() (VariableTracker, error) { return GetItem(c.tx, c.of(a), c.of(key)) },
					"subscript", a, key)
			}
		}
	})
}

// TestMethodsAreCPythons calls each method of builtin containers, strings and numbers with sample arguments.
func TestMethodsAreCPythons(t *testing.T) {
	compare(t, func(c *cases, samples []string) {
		for _, a := range samples {
			for _, name := range methodsOf(c, a) {
				for _, args := range []string{"()", "(0,)", "(1,)", "('a',)", "([2, 1],)", "({1, 3},)", "({1: 5},)",
					"(1, 2)", "('a', 'b')", "(None,)"} {
					c.check(func() (VariableTracker, error) {
						v := c.of(a)
						items, err := Unpack(c.tx, c.of(args))
						require.NoError(t, err)
						r, err := CallMethod(c.tx, v, name, items, nil)
						if err != nil {
							return nil, err
						}
						return NewTuple([]VariableTracker{r, v}, nil), nil
					}, "method", a, name, args)
				}
			}
		}
	})
}

func methodsOf(c *cases, text string) []string {
	f, _ := c.tx.s.DictGetName(c.ns, "methods")
	r, err := c.tx.s.Call(f, c.tx.s.Str(text))
	require.NoError(c.t, err)
	var out []string
	for _, o := range c.tx.s.Items(r) {
		out = append(out, py.GoString(o))
	}
	return out
}

// TestBuiltinsAreCPythons calls each builtin function with each sample, alone and with a second argument.
func TestBuiltinsAreCPythons(t *testing.T) {
	compare(t, func(c *cases, samples []string) {
		for _, name := range textsOf(t, c.tx, c.ns, "builtins") {
			fn := NewBuiltin(c.tx.w.Builtin(name), name, nil)
			for _, a := range samples {
				for _, second := range []string{"", "2", "'a'", "[3]", "None"} {
					args := "(" + a + ", " + second + ")"
					c.check(func() (VariableTracker, error) {
						items, err := Unpack(c.tx, c.of(args))
						require.NoError(t, err)
						return Call(c.tx, fn, items, nil)
					}, "called", name, args)
				}
			}
		}
	})
}
