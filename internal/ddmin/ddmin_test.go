package ddmin

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatRemainsIsWhatMakesItFail(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 64, 1000} {
		var items []string
		for i := range n {
			items = append(items, fmt.Sprint(i))
		}
		for _, culprits := range [][]int{{0}, {n - 1}, {n / 2}, {0, n - 1}, {n / 3, n / 2, n - 1}} {
			var want []string
			for i, item := range items {
				if slices.Contains(culprits, i) {
					want = append(want, item)
				}
			}
			asked := map[string]bool{}
			got := Minimize(items, func(some []string) bool {
				key := fmt.Sprint(some)
				assert.False(t, asked[key], "asked twice about %s", key)
				asked[key] = true
				assert.NotEmpty(t, some)
				for _, w := range want {
					if !slices.Contains(some, w) {
						return false
					}
				}
				return true
			})
			assert.Equal(t, want, got, "%d items, culprits %v", n, culprits)
			if len(want) == 1 {
				assert.LessOrEqual(t, len(asked), 2*10+1, "halving %d", n)
			}
		}
	}
}

func TestNothingIsTakenAwayThatIsNeeded(t *testing.T) {
	// The set fails with any two of the three items, so the result has two of them.
	got := Minimize([]string{"a", "b", "c", "d", "e"}, func(some []string) bool {
		n := 0
		for _, s := range some {
			if s == "a" || s == "c" || s == "e" {
				n++
			}
		}
		return n >= 2
	})
	assert.Len(t, got, 2)
	assert.NotContains(t, got, "b")
}
