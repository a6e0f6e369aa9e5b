package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Page returns the text of docs/cli.md, which contains each command's help. A test checks that the page matches the
// tool; `go test ./internal/cli -update` writes it.
func Page() string {
	root := newRoot(&App{})
	var out strings.Builder
	out.WriteString(`# The command line tool

Printed from the tool's own help (` + "`godynamo COMMAND --help`" + `) by internal/cli/page.go.

`)
	fmt.Fprintf(&out, "%s\n\n| command | does |\n|---|---|\n", root.Long)
	commands := root.Commands()
	for _, c := range commands {
		if !c.Hidden && c.Name() != "help" {
			fmt.Fprintf(&out, "| [%s](#godynamo-%s) | %s |\n", c.Name(), c.Name(), c.Short)
		}
	}
	out.WriteString(`
Exit codes: 0 success; 1 a negative finding (a regression, a problem that doctor found, a result that differs from
eager mode); 2 a usage error, reported in one line on stderr. A program that the tool runs keeps its own exit code.
Every command takes ` + "`--python`" + `: the Python in which godynamo is installed. The default is $GODYNAMO_PYTHON, else the
one beside the tool, else python3.
`)
	for _, c := range commands {
		if !c.Hidden && c.Name() != "help" && c.Name() != "completion" {
			section(&out, c)
		}
	}
	out.WriteString("\n## godynamo completion\n\n`godynamo completion bash` (zsh, fish, powershell) prints what a " +
		"shell needs to complete commands and flags; " +
		"`godynamo completion bash --help` says where to put it.\n")
	return out.String()
}

func section(out *strings.Builder, c *cobra.Command) {
	text := c.Long
	if text == "" {
		text = c.Short
	}
	fmt.Fprintf(out, "\n## godynamo %s\n\n%s\n\n```text\ngodynamo %s\n\n", c.Name(), text, c.Use)
	for _, sub := range c.Commands() {
		fmt.Fprintf(out, "  %-15s %s\n", sub.Use, sub.Short)
		for line := range strings.Lines(sub.LocalNonPersistentFlags().FlagUsages()) {
			fmt.Fprintf(out, "%16s%s", "", line)
		}
	}
	if c.HasSubCommands() {
		out.WriteString("\n")
	}
	out.WriteString(strings.TrimRight(c.LocalFlags().FlagUsages(), "\n"))
	out.WriteString("\n```\n")
	if c.Example != "" {
		fmt.Fprintf(out, "\nExamples:\n\n```text\n%s\n```\n", c.Example)
	}
}
