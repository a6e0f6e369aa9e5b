// Package cli is the command line tool, with one file for each command. It uses no Python object. A command that needs
// Python runs `python -m godynamo._tools COMMAND` with the interpreter in which the package is installed (python.go).
//
// Exit codes: 0 if all is well, 1 if a requested check failed (a regression, a finding of `doctor`, a wrong result), 2
// for a usage error, with one line on stderr. A user's script keeps its own exit code.
package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// App holds what the commands share: the standard streams and the Python to use.
type App struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	python         string // value of --python
}

// Terminal reports whether stderr, where progress is shown, is a terminal.
func (*App) Terminal() bool {
	info, err := os.Stderr.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// ExitCode is an error that ends the tool with this exit code. Nothing is printed for it, since all messages have been
// printed.
type ExitCode int

// Error implements error.
func (c ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// problem is a usage error, reported in one line.
type problem string

func (p problem) Error() string { return string(p) }

// Problemf returns a usage error. It is printed as one line, `godynamo: ...`, and ends the tool with exit code 2. The
// text states what is wrong and what to do.
func Problemf(format string, args ...any) error {
	return problem(strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " "))
}

// Main runs the tool and returns its exit code. args are the arguments after the tool's name.
func Main(args []string) int {
	app := &App{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	root := newRoot(app)
	root.SetArgs(args)
	return exitCode(app.Stderr, root.Execute())
}

// exitCode prints an error and returns its exit code.
func exitCode(stderr io.Writer, err error) int {
	var code ExitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	fmt.Fprintf(stderr, "godynamo: %s\n", oneLine(err.Error()))
	return 2
}

// oneLine joins a text into one line. cobra's suggestions are a paragraph of their own.
func oneLine(text string) string {
	text, names, found := strings.Cut(text, "\n\nDid you mean this?\n")
	if found {
		text += "; did you mean " + strings.Join(strings.Fields(names), ", ") + "?"
	}
	return strings.Join(strings.Fields(text), " ")
}

// newRoot returns the command `godynamo` with all other commands below it.
func newRoot(app *App) *cobra.Command {
	root := &cobra.Command{
		Use:   "godynamo",
		Short: "See, measure and check what godynamo makes of a PyTorch program",
		Long: "godynamo captures the tensor operations of Python functions as guarded, cached graphs.\n" +
			"This tool runs programs under it, explains what was captured and what was not, and measures.",
		SilenceErrors:     true,
		SilenceUsage:      true,
		Version:           version(),
		DisableAutoGenTag: true,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SuggestionsMinimumDistance = 2
	root.SetVersionTemplate("godynamo {{.Version}}\n")
	root.SetIn(app.Stdin)
	root.SetOut(app.Stdout)
	root.SetErr(app.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return unknownFlag(cmd, err) })
	root.PersistentFlags().StringVar(&app.python, "python", "",
		"Python that godynamo is installed in (default: $GODYNAMO_PYTHON, the one beside this tool, python3)")
	for _, command := range []func(*App) *cobra.Command{
		newBisect,
		newBench,
		newCache,
		newDis,
		newDoctor,
		newExplain,
		newReport,
		newRun,
	} {
		root.AddCommand(command(app))
	}
	return root
}
