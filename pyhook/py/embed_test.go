//go:build pyembed

package py

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/godynamo/godynamo/internal/embedtest"
)

func TestMain(m *testing.M) { embedtest.Main(m, Embed) }

// with runs a test's body on the interpreter's thread. The body gets a function `get`, which reads a name
// from the namespace that the Python source has filled.
func with(t *testing.T, source string, body func(t *testing.T, s *Scope, get func(name string) Object)) {
	t.Helper()
	embedtest.On(func() {
		s := OpenScope()
		defer s.Close()
		ns, err := s.Run(source)
		require.NoError(t, err)
		body(t, s, func(name string) Object {
			o, ok := s.DictGetName(ns, name)
			require.True(t, ok, name)
			return o
		})
	})
}

func TestAScopeReleasesWhatItTook(t *testing.T) {
	with(t, `
import sys, weakref
class C: pass
held = C()
ref = weakref.ref(held)
count = lambda: sys.getrefcount(held)
`, func(t *testing.T, s *Scope, get func(string) Object) {
		count := func() int64 {
			r, err := s.Call(get("count"))
			require.NoError(t, err)
			n, _ := AsInt(r)
			return n
		}
		held := get("held")
		before := count()
		inner := OpenScope()
		const many = 2*ownedAtOnce + 3
		for range many {
			inner.Hold(held)
		}
		inner.Tuple(held, held)
		assert.Equal(t, before+many+2, count())
		kept := inner.Keep(held)
		inner.Close()
		inner.Close() // closing twice is harmless
		assert.Equal(t, before+1, count())
		kept.Release()
		assert.Equal(t, before, count())
	})
}

// From 3.12 on, None is immortal: its count of references does not change.
func TestAScopeCountsReferencesAsCPythonDoes(t *testing.T) {
	with(t, `
import sys
count = lambda: sys.getrefcount(None)
def grown():
    before = count()
    held = [None] * 10
    return count() - before
`, func(t *testing.T, s *Scope, get func(string) Object) {
		number := func(name string) int64 {
			r, err := s.Call(get(name))
			require.NoError(t, err)
			n, _ := AsInt(r)
			return n
		}
		want, before := number("grown"), number("count")
		inner := OpenScope()
		for range 10 {
			inner.Hold(None())
		}
		assert.Equal(t, want, number("count")-before)
		inner.Close()
	})
}

func TestAnExceptionIsAnErrorAndIsTakenAway(t *testing.T) {
	with(t, `
class Mine(ValueError): pass
def fails(x): raise Mine("no", x)
class Unprintable(Exception):
    def __str__(self): raise RuntimeError
def unprintable(): raise Unprintable
`, func(t *testing.T, s *Scope, get func(string) Object) {
		_, err := s.Call(get("fails"), s.Int(3))
		var raised *Error
		require.ErrorAs(t, err, &raised)
		assert.Equal(t, "Mine: ('no', 3)", err.Error())
		assert.Equal(t, get("Mine"), raised.Type)
		r, err := s.Call(get("__builtins__"))
		assert.Error(t, err, "a module is not callable")
		assert.True(t, r.IsNull())
		_, err = s.Call(get("unprintable"))
		assert.Equal(t, "Unprintable: ", err.Error())
		_, err = s.Len(s.Str("abc")) // no exception is left set
		assert.NoError(t, err)
	})
}

func TestALookupByStorageRunsNoCode(t *testing.T) {
	with(t, `
asked = []
class D(dict):
    def __getitem__(self, key): asked.append(key)
    def __iter__(self): asked.append("iter"); return iter(())
    def __len__(self): asked.append("len"); return 9
class L(list):
    def __iter__(self): asked.append("iter"); return iter(())
class O:
    def __getattribute__(self, name): asked.append(name)
d, l, o = D(a=1, b=2), L([4, 5]), O()
object.__getattribute__(o, "__dict__")["x"] = 7
asked.clear()
`, func(t *testing.T, s *Scope, get func(string) Object) {
		keys, values := s.DictItems(get("d"))
		assert.Len(t, keys, 2)
		assert.Equal(t, "b", GoString(keys[1]))
		two, _ := AsInt(values[1])
		assert.Equal(t, int64(2), two)
		assert.Equal(t, 2, DictLen(get("d")))
		assert.Len(t, s.Items(get("l")), 2)
		x, ok := s.InstanceAttr(get("o"), "x")
		assert.True(t, ok)
		seven, _ := AsInt(x)
		assert.Equal(t, int64(7), seven)
		_, ok = s.DictGetName(get("d"), "absent")
		assert.False(t, ok)
		assert.Equal(t, 0, SeqLen(get("asked")))
	})
}

func TestNumbersThatDoNotFitSayIt(t *testing.T) {
	with(t, "big, small, text = 1 << 63, -(1 << 63), 'é€'", func(t *testing.T, s *Scope, get func(string) Object) {
		_, fits := AsInt(get("big"))
		assert.False(t, fits)
		n, fits := AsInt(get("small"))
		assert.True(t, fits && n == -1<<63)
		assert.Equal(t, "é€", GoString(get("text")))
		assert.Equal(t, "", GoString(get("big")))
		assert.Equal(t, "", GoString(Object{}))
	})
}

func TestKindsAreOfTheExactType(t *testing.T) {
	with(t, `
class MyInt(int): pass
values = (None, True, 1, 1.5, "s", b"b", [], (), {}, int, lambda: 0, MyInt(1))
`, func(t *testing.T, s *Scope, get func(string) Object) {
		want := []Kind{NoneKind, BoolKind, Int, Float, Str, Bytes, List, Tuple, Dict, TypeKind, Function, Other}
		for i, o := range s.Items(get("values")) {
			assert.Equal(t, want[i], o.Kind(), "values[%d]", i)
		}
	})
}

func TestATypesNameIsFoundInItsMro(t *testing.T) {
	with(t, `
class A: x = 1
class B(A): pass
class C(B): y = 2
`, func(t *testing.T, s *Scope, get func(string) Object) {
		c := get("C")
		assert.Equal(t, 2, s.MroIndex(c, "x"))
		assert.Equal(t, 0, s.MroIndex(c, "y"))
		assert.Equal(t, -1, s.MroIndex(c, "z"))
		var told []string
		s.OnTypeLookup = func(_ Object, name string, found Object) {
			if found.IsNull() {
				name = "no " + name
			}
			told = append(told, name)
		}
		_, ok := s.TypeLookup(c, "x")
		assert.True(t, ok)
		_, ok = s.TypeLookup(c, "z")
		assert.False(t, ok)
		assert.Equal(t, []string{"x", "no z"}, told)
		assert.True(t, IsSubtype(c, get("A")) && !IsSubtype(get("A"), c))
	})
}

func TestReprOfTheProgramsObjectsRunsNoCode(t *testing.T) {
	with(t, `
asked = []
class C:
    def __repr__(self): asked.append(1); return "mine"
c = C()
`, func(t *testing.T, s *Scope, get func(string) Object) {
		assert.Contains(t, s.Repr(get("c")), "C")
		assert.Equal(t, "[1, 'a']", s.Repr(s.List(s.Int(1), s.Str("a"))))
		assert.Equal(t, 0, SeqLen(get("asked")))
	})
}
