package guards

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// quote returns s as a Python string literal, as repr() would for plain ASCII text.
func quote(s string) string {
	if isPlain(s) {
		return "'" + s + "'"
	}
	var b strings.Builder
	b.WriteByte('\'')
	for i, w := 0, 0; i < len(s); i += w {
		var r rune
		r, w = utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < ' ' || r == 0x7f || r == utf8.RuneError && w == 1:
			b.WriteString(`\x` + hex2(s[i]))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// isPlain reports whether s is printable ASCII that needs no backslash.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '\'' || c == '\\' {
			return false
		}
	}
	return true
}

func hex2(c byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[c>>4], digits[c&15]})
}

// isIdentifier reports whether s can be used as a bare name in the guard text.
func isIdentifier(s string) bool {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return s != "" && !keywords[s]
}

var keywords = nameSet(`False None True and as assert async await break class continue def del elif else except finally for
	from global if import in is lambda nonlocal not or pass raise return try while with yield`)

// reserved is the set of the names that the guard text itself uses. A variable with such a name is printed
// as L['name'] or G['name'].
var reserved = nameSet(`G L inf nan range slice frozenset type list len max min Ellipsis`)

func nameSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// isReserved reports whether the guard text uses the name for its own purposes.
func isReserved(name string) bool { return reserved[name] || strings.HasPrefix(name, "___") }

// member returns the text of an attribute.
func member(base Source, name string, p *printer) string {
	if isIdentifier(name) {
		return printed(base, p) + "." + name
	}
	return instanceAttr(base, name, p)
}

// instanceAttr returns the text of an attribute of the instance itself.
func instanceAttr(base Source, name string, p *printer) string {
	return "___instance_attr(" + printed(base, p) + ", " + quote(name) + ")"
}

// constText returns a constant as executable text: its literal, or a look-up in the entry's pool.
func constText(c Const) string {
	if isLiteral(c.Text) {
		return c.Text
	}
	return "___object(" + strconv.FormatUint(c.ID, 10) + ")"
}

// isLiteral reports whether text is a repr that reads back as the value: numbers, strings, bytes, None, True,
// False, Ellipsis, inf, nan, and tuples, frozensets, ranges and slices of these. Any other text, such as
// `<object at ...>` or a shortened repr, is not a literal.
func isLiteral(text string) bool {
	s := literalScanner{text: text}
	return s.value(0) && s.at == len(text)
}

// literalScanner reads one literal by recursive descent. The depth is bounded, since the texts come from the
// user's values.
type literalScanner struct {
	text string
	at   int
}

const maxLiteralDepth = 50

func (s *literalScanner) peek(prefix string) bool { return strings.HasPrefix(s.text[s.at:], prefix) }

func (s *literalScanner) take(prefix string) bool {
	if !s.peek(prefix) {
		return false
	}
	s.at += len(prefix)
	return true
}

func (s *literalScanner) value(depth int) bool {
	if depth > maxLiteralDepth {
		return false
	}
	for _, word := range []string{"None", "True", "False", "Ellipsis"} {
		if s.take(word) {
			return true
		}
	}
	switch {
	case s.take("frozenset({"):
		return s.items(depth, "})", false)
	case s.take("frozenset("):
		return s.take(")")
	case s.take("range("), s.take("slice("):
		return s.items(depth, ")", false)
	case s.match(sumText), s.take("()"):
		return true
	case s.take("("):
		return s.items(depth, ")", true)
	case s.peek("'"), s.peek(`"`), s.peek("b'"), s.peek(`b"`):
		return s.str()
	}
	return s.match(numberText)
}

// items reads values up to the closing text. A tuple of one item must have a comma after the item.
func (s *literalScanner) items(depth int, closing string, tuple bool) bool {
	for n := 1; ; n++ {
		if !s.value(depth + 1) {
			return false
		}
		if tuple && n == 1 && s.take(",)") {
			return true
		}
		if s.take(closing) {
			return !tuple || n > 1
		}
		if !s.take(", ") {
			return false
		}
	}
}

// str reads a string or bytes literal.
func (s *literalScanner) str() bool {
	s.take("b")
	mark := s.text[s.at]
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '\\':
			s.at++
		case c == mark:
			s.at++
			return true
		case c < ' ':
			return false
		}
	}
	return false
}

// numberText matches repr() of an int, a float or an imaginary number; sumText matches the parenthesized
// form of other complex numbers.
var (
	realText   = `(?:inf|nan|(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:e[+-][0-9]+)?)`
	numberText = regexp.MustCompile(`^-?` + realText + `j?`)
	sumText    = regexp.MustCompile(`^\(-?` + realText + `[+-]` + realText + `j\)`)
)

// match consumes the text that the regular expression matches at the current position.
func (s *literalScanner) match(re *regexp.Regexp) bool {
	found := re.FindString(s.text[s.at:])
	s.at += len(found)
	return found != ""
}
