package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/godynamo/godynamo/cache/disk"
)

// columns is the width of a terminal that the output fits.
const columns = 100

// writeTranslations writes the table of `godynamo cache list`.
func writeTranslations(w io.Writer, s *disk.Store, wide bool) error {
	list := s.List()
	if len(list) == 0 {
		_, err := fmt.Fprintf(w, "%s in %s\n", translations(0), s.Dir())
		return err
	}
	rows := [][]string{{"function", "place", "backend", "python", "torch", "size", "used"}}
	total := int64(0)
	for _, l := range list {
		m := l.Meta
		row := []string{m.Function, place(m.File, m.Line), m.Backend, m.Python, m.Torch, byteSize(l.Size), ago(l.Used)}
		for i := range row {
			row[i] = printable(row[i])
		}
		rows = append(rows, row)
		total += l.Size
	}
	if !wide {
		fit(rows)
	}
	t := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options.DrawBorder = false
	t.SetStyle(style)
	for i, cells := range rows {
		var row table.Row
		for _, cell := range cells {
			row = append(row, cell)
		}
		if i == 0 {
			t.AppendHeader(row)
		} else {
			t.AppendRow(row)
		}
	}
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 6, Align: text.AlignRight, AlignHeader: text.AlignRight},
		{Number: 7, Align: text.AlignRight, AlignHeader: text.AlignRight},
	})
	_, err := fmt.Fprintf(w, "%s\n\n%s, %s in %s\n", t.Render(), translations(len(list)), byteSize(total), s.Dir())
	return err
}

// fit cuts the cells of a table until it fits the terminal. Function and place lose their beginnings, since their ends
// distinguish them, and have what the other columns leave.
func fit(rows [][]string) {
	const longest = 12 // of the other columns
	left := columns - 3*len(rows[0]) + 1
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			if i > 1 {
				row[i] = clipRight(cell, longest)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	for _, width := range widths[2:] {
		left -= width
	}
	function := min(widths[0], max(left/2, left-widths[1]))
	for _, row := range rows {
		row[0], row[1] = clipLeft(row[0], function), clipLeft(row[1], left-function)
	}
}

// clipLeft and clipRight return the last and the first n characters of a text, with a mark if there are more.
func clipLeft(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return "…" + string(runes[len(runes)-n+1:])
	}
	return text
}

func clipRight(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}

// printable replaces what a terminal might execute: names come from files.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

func place(file string, line int) string { return fmt.Sprintf("%s:%d", file, line) }

func translations(n int) string {
	switch n {
	case 0:
		return "no translations"
	case 1:
		return "1 translation"
	}
	return fmt.Sprintf("%d translations", n)
}

func byteSize(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// ago returns how long ago a time was.
func ago(t time.Time) string {
	switch d := time.Since(t); {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%d d ago", int(d.Hours()/24))
	}
}

// writeMisses writes the latest misses, the latest first, of all functions or of the one that names has.
func writeMisses(w io.Writer, s *disk.Store, names []string, count int) error {
	misses := s.Misses()
	if len(names) > 0 {
		var known []string
		for _, m := range misses {
			known = append(known, m.Function)
		}
		slices.Sort(known)
		misses = slices.DeleteFunc(misses, func(r disk.Record) bool { return !isFunction(r.Function, names[0]) })
		if near := Nearest(names[0], slices.Compact(known)); len(misses) == 0 && len(near) > 0 {
			return Problemf("no miss of %s%s", names[0], suggested(near))
		}
	}
	if len(misses) == 0 {
		_, err := fmt.Fprintf(w, "no misses in %s\n", s.Dir())
		return err
	}
	stored := s.List()
	var out strings.Builder
	shown := 0
	for _, m := range slices.Backward(misses) {
		if shown == count {
			fmt.Fprintf(&out, "... and %d earlier (--count)\n", len(misses)-shown)
			break
		}
		shown++
		fmt.Fprintf(&out, "%s (%s), %s\n", printable(m.Function), printable(place(m.File, m.Line)), ago(m.Time))
		if m.Reason != "" {
			fmt.Fprintf(&out, "  %s\n", printable(m.Reason))
		}
		for _, line := range explained(m, stored) {
			fmt.Fprintf(&out, "  %s\n", printable(line))
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// explained compares a miss with the nearest stored translation of its function.
func explained(m disk.Record, stored []disk.Listed) []string {
	var nearest *disk.Listed
	var differences []string
	for i, l := range stored {
		if l.Meta.Function != m.Function {
			continue
		}
		found := differing(l.Meta.Parts, m.Parts)
		if l.Meta.File != m.File {
			found = append(found, fmt.Sprintf("file: stored %s, now %s", l.Meta.File, m.File))
		}
		if nearest == nil || len(found) < len(differences) {
			nearest, differences = &stored[i], found
		}
	}
	switch {
	case nearest == nil:
		return []string{"No translation of this function is stored."}
	case len(differences) == 0:
		return []string{"A translation with this key is stored: it was stored after this miss, or is for other values."}
	}
	lines := []string{fmt.Sprintf("The nearest stored translation, used %s, differs in:", ago(nearest.Used))}
	for _, d := range differences {
		lines = append(lines, "  "+d)
	}
	return lines
}

// differing returns a text for each part of a key that differs.
func differing(stored, now []disk.Part) []string {
	values := func(parts []disk.Part) map[string]string {
		all := map[string]string{}
		for _, p := range parts {
			if have, found := all[p.Name]; found {
				all[p.Name] = have + ", " + p.Value
			} else {
				all[p.Name] = p.Value
			}
		}
		return all
	}
	before, after := values(stored), values(now)
	names := map[string]bool{}
	for _, p := range slices.Concat(stored, now) {
		names[p.Name] = true
	}
	var found []string
	for name := range names {
		old, hadIt := before[name]
		new, hasIt := after[name]
		const longest = 30
		switch oldText, newText := clipRight(old, longest), clipRight(new, longest); {
		case !hadIt:
			found = append(found, fmt.Sprintf("%s: not in the stored key, now %s", name, newText))
		case !hasIt:
			found = append(found, fmt.Sprintf("%s: stored %s, not in the key now", name, oldText))
		case old == new:
		case oldText == newText:
			found = append(found, fmt.Sprintf("%s: stored and now are long texts that differ", name))
		default:
			found = append(found, fmt.Sprintf("%s: stored %s, now %s", name, oldText, newText))
		}
	}
	slices.Sort(found)
	return found
}
