// Package ddmin makes a failing set smaller: Zeller and Hildebrandt's delta debugging (IEEE TSE 28(2), 2002).
package ddmin

import "strings"

// Minimize returns a part of items, in their order, for which fails still holds and from which no single item can be taken away
// without it holding no more. fails(items) must hold; fails is asked about no set twice, and never about the empty one. With one culprit among n items it asks about 2·log2(n) sets, in the worst case about n².
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
		if !reduced && parts > 2 { // with two parts a complement is the other part
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

// split cuts items into n parts of sizes that differ by one at most.
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
