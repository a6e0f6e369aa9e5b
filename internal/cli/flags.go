package cli

import (
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Version is the package's version, set by the build (build_backend/native.py).
var Version = "unknown"

func version() string { return Version }

// unknownFlag adds the nearest flags to cobra's error for an unknown flag.
func unknownFlag(cmd *cobra.Command, err error) error {
	text := err.Error()
	if _, name, found := strings.Cut(text, "unknown flag: --"); found {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := Nearest(name, names); len(near) > 0 {
			text += "; did you mean --" + strings.Join(near, ", --") + "?"
		}
	}
	if strings.HasSuffix(cmd.Use, callUse) {
		text += "; flags of the script follow --"
	}
	return Problemf("%s (%s --help lists them)", text, cmd.CommandPath())
}

// Nearest returns at most three of names: those closest to an unknown name, the nearest first.
func Nearest(name string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var found []candidate
	lower := strings.ToLower(name)
	for _, n := range names {
		d := editDistance(lower, strings.ToLower(n))
		if d <= max(2, len(name)/3) || (len(lower) > 1 && strings.Contains(strings.ToLower(n), lower)) {
			found = append(found, candidate{n, d})
		}
	}
	sort.SliceStable(found, func(i, j int) bool { return found[i].distance < found[j].distance })
	var near []string
	for i := 0; i < len(found) && i < 3; i++ {
		near = append(near, found[i].name)
	}
	return near
}

// suggested returns the end of an error for an unknown name, if some names are near it.
func suggested(near []string) string {
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near, ", ") + "?"
}

// editDistance returns the number of insertions, deletions and replacements that turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, cost)
		}
	}
	return row[len(b)]
}
