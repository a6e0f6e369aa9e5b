package variables

import (
	"fmt"
	"slices"
	"strings"
)

// result describes what an operation returns: its kind and, for givesTensors, the number of tensors.
type result struct {
	kind resultKind
	n    int
}

// parseResult parses the Python form of a result kind: a word, or "tensors:N".
func parseResult(text string) (r result, err error) {
	word, count, counted := strings.Cut(text, ":")
	r.kind = resultKind(word)
	if counted {
		for _, c := range count {
			r.n = 10*r.n + int(c-'0')
		}
	}
	if !slices.Contains(resultKinds, r.kind) || counted != (r.kind == givesTensors) {
		return r, fmt.Errorf("%q is no result kind", text)
	}
	return r, nil
}

// String returns the Python form of the kind.
func (r result) String() string {
	if r.kind == givesTensors {
		return string(r.kind) + ":" + itoa(r.n)
	}
	return string(r.kind)
}

// number reports whether the result is always an int, always a float, or always a bool.
func (r result) number() bool {
	return r.kind == givesInt || r.kind == givesFloat || r.kind == givesBool
}
