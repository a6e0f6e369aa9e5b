package fxgraph

import (
	"strconv"
	"strings"
)

// namespace creates a unique name for each node by FX's rules (torch.fx.graph._Namespace, 2.15). The name is the base
// name derived from the target, then base_1, base_2, and so on. It is never a Python keyword or builtin.
// testdata/names.txt has the names that FX chooses.
type namespace struct {
	used  map[string]bool
	count map[string]int // last number used with each base
}

func newNamespace() namespace {
	return namespace{used: map[string]bool{}, count: map[string]int{}}
}

// targetName returns the name that is derived from a node's target, before namespace makes it unique.
func targetName(op OpKind, t Target) string {
	name := t.Text
	switch op {
	case CallFunction:
		name = functionName(name)
	default:
		if strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") {
			name = name[2:max(2, len(name)-2)]
		}
	}
	return snakeCase(name)
}

// functionName returns the `__name__` of the callable with this qualified name. It is the last part of the name, or
// the last two for an overload in torch.ops (torch.ops.aten.add.Tensor).
func functionName(qualified string) string {
	if op, ok := strings.CutPrefix(qualified, "^"); ok { // a Python operation: ^getattr(), ^<PyObjectCall>()
		return strings.Trim(op, "<>()")
	}
	if op, ok := strings.CutPrefix(qualified, "prim::"); ok {
		return op
	}
	last := strings.LastIndexByte(qualified, '.')
	if last < 0 {
		return qualified
	}
	if strings.HasPrefix(qualified, "torch.ops.") && strings.Count(qualified, ".") >= 4 {
		last = strings.LastIndexByte(qualified[:last], '.')
	}
	return qualified[last+1:]
}

// snakeCase puts _ between a lower-case and an upper-case ASCII letter and lowers everything.
func snakeCase(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if i > 0 && 'A' <= s[i] && s[i] <= 'Z' && 'a' <= s[i-1] && s[i-1] <= 'z' {
			b.WriteByte('_')
		}
		b.WriteByte(s[i])
	}
	return strings.ToLower(b.String())
}

// create returns an unused name close to candidate and marks it as used.
func (ns *namespace) create(candidate string) string {
	candidate = legalName(candidate)
	base, num, numbered := splitNumber(candidate)
	if !numbered || ns.used[candidate] {
		num = ns.count[base]
		if illegalNames[candidate] {
			num++
			candidate = base + "_" + strconv.Itoa(num)
		}
	}
	for ns.used[candidate] {
		num++
		candidate = base + "_" + strconv.Itoa(num)
	}
	ns.used[candidate] = true
	ns.count[base] = num
	return candidate
}

// claim marks a name that was read from a text as used. It returns false if the name is already used, or is none that
// create could return.
func (ns *namespace) claim(name string) bool {
	if ns.used[name] || illegalNames[name] {
		return false
	}
	base, num, _ := splitNumber(name)
	ns.used[name] = true
	ns.count[base] = max(ns.count[base], num)
	return true
}

// legalName replaces each run of characters that are illegal in an ASCII identifier with one underscore.
func legalName(s string) string {
	var b strings.Builder
	illegal := false
	for i := 0; i < len(s); i++ {
		if isWord(s[i]) {
			b.WriteByte(s[i])
		} else if !illegal {
			b.WriteByte('_')
		}
		illegal = !isWord(s[i])
	}
	name := b.String()
	switch {
	case name == "":
		return "_unnamed"
	case isDigit(name[0]):
		return "_" + name
	}
	return name
}

// splitNumber splits "relu_12" into "relu" and 12. If the number is too large for an int, it stays part of the base.
func splitNumber(name string) (base string, num int, ok bool) {
	i := len(name)
	for i > 0 && isDigit(name[i-1]) {
		i--
	}
	if i == len(name) || i < 2 || name[i-1] != '_' {
		return name, 0, false
	}
	n, err := strconv.Atoi(name[i:])
	if err != nil {
		return name, 0, false
	}
	return name[:i-1], n, true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWord(c byte) bool {
	return c == '_' || isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// isIdentifier reports whether s could be a name or a part of a target. Such a text consists of ASCII letters, digits
// and _, and does not start with a digit.
func isIdentifier(s string) bool {
	if s == "" || isDigit(s[0]) {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !isWord(s[i]) {
			return false
		}
	}
	return true
}
