package bench

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// The output fits a terminal with this number of columns. A row begins with two names, those of the workload and the
// engine. A name that is longer than its limit is broken into lines.
const (
	width         = 100
	workloadLimit = 26
	engineLimit   = 22
)

// inParts renders groups of rows as tables that fit the width, with a line between groups. Columns that do not fit go
// to another table below, which repeats the first two columns. Columns from number `right` on, counted from 1, are
// aligned to the right.
func inParts(head []string, groups [][]table.Row, right int) []string {
	widths := make([]int, len(head))
	for i, name := range head {
		widths[i] = utf8.RuneCountInString(name)
	}
	for _, group := range groups {
		for _, row := range group {
			for i, cell := range row {
				widths[i] = max(widths[i], utf8.RuneCountInString(fmt.Sprint(cell)))
			}
		}
	}
	names := min(widths[0], workloadLimit) + 2 + 1 + min(widths[1], engineLimit) + 2
	var parts []string
	for from := 2; from < len(head); {
		to, taken := from, names
		for to < len(head) && (to == from || taken+1+widths[to]+2 <= width) {
			taken += 1 + widths[to] + 2
			to++
		}
		parts = append(parts, part(head, groups, from, to, right))
		from = to
	}
	return parts
}

// part renders the first two columns, and the columns with an index in [from, to).
func part(head []string, groups [][]table.Row, from, to, right int) string {
	pick := func(row table.Row) table.Row {
		picked := append(table.Row{}, row[:2]...)
		if from < len(row) {
			picked = append(picked, row[from:min(to, len(row))]...)
		}
		return picked
	}
	whole := make(table.Row, len(head))
	for i, name := range head {
		whole[i] = name
	}
	t := newTable()
	t.AppendHeader(pick(whole))
	for i, group := range groups {
		if i > 0 {
			t.AppendSeparator()
		}
		for _, row := range group {
			t.AppendRow(pick(row))
		}
	}
	columns := []table.ColumnConfig{{Number: 1, WidthMax: workloadLimit}, {Number: 2, WidthMax: engineLimit}}
	for i := max(from+1, right); i <= to; i++ {
		columns = append(columns, table.ColumnConfig{Number: i - from + 2, Align: text.AlignRight,
			AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	return t.Render()
}

func newTable() table.Writer {
	t := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options.DrawBorder = false
	t.SetStyle(style)
	return t
}

// wrapped breaks lines that are longer than the terminal at spaces, and indents the continuation. A longer word stays
// whole.
func wrapped(lines string) string {
	var out []string
	for _, line := range strings.Split(lines, "\n") {
		taken := ""
		for _, word := range strings.Split(line, " ") {
			switch {
			case taken == "":
				taken = word
			case utf8.RuneCountInString(taken)+1+utf8.RuneCountInString(word) > width:
				out = append(out, taken)
				taken = "  " + word
			default:
				taken += " " + word
			}
		}
		out = append(out, taken)
	}
	return strings.Join(out, "\n")
}
