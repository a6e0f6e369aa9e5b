// Package ddmin reduces a set that makes something fail. It implements Zeller and Hildebrandt's delta debugging (IEEE
// TSE 28(2), 2002).
package ddmin

import "strings"

// Minimize returns a subset of items, in order. fails(items) must be true. fails returns true for the subset, and false
// if any single item of it is left out. Minimize calls fails at most once for a set, and never for the empty set. If
// one of n items is the culprit, it calls fails for about 2·log2(n) sets, in the worst case for about n².
func Minimize(items []string, fails func([]string) bool) []string {
	known := map[string]bool{}
	ask := fails
	fails = func(some []string) bool {
		key := strings.Join(some, "\x00")
		answer, found := known[key]
		if !found {
			answer = ask(some)
			known[key] = answer
		}
		return answer
	}
	parts := 2
	for len(items) >= 2 {
		chunks := split(items, parts)
		reduced := false
		for _, chunk := range chunks {
			if fails(chunk) {
				items, parts, reduced = chunk, 2, true
				break
			}
		}
		if !reduced && parts > 2 { // with two parts, the complement of one part is the other
			for i := range chunks {
				if rest := without(chunks, i); fails(rest) {
					items, parts, reduced = rest, max(parts-1, 2), true
					break
				}
			}
		}
		if !reduced {
			if parts >= len(items) {
				return items
			}
			parts = min(2*parts, len(items))
		}
	}
	return items
}

// split cuts items into n parts whose sizes differ by at most one.
func split(items []string, n int) [][]string {
	var out [][]string
	for i := range n {
		out = append(out, items[i*len(items)/n:(i+1)*len(items)/n])
	}
	return out
}

func without(chunks [][]string, skip int) []string {
	var out []string
	for i, chunk := range chunks {
		if i != skip {
			out = append(out, chunk...)
		}
	}
	return out
}
