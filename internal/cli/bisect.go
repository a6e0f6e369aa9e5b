package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/godynamo/godynamo/internal/ddmin"
)

// newBisect returns `godynamo bisect`.
func newBisect(app *App) *cobra.Command {
	b := &bisection{app: app}
	cmd := &cobra.Command{
		Use:   "bisect [flags] -- COMMAND [ARGS...]",
		Short: "Find the code whose translation makes a command fail",
		Long: `Runs a command that works without godynamo and fails with it, again and again with fewer of its
functions translated, until only those remain that make it fail. The command uses godynamo itself, or
runs under godynamo run. A run fails if its exit code is not 0 or, with --output, if its standard output
differs from that without godynamo.`,
		Example: `  godynamo bisect -- python train.py --steps 1
  godynamo bisect --output -- godynamo run infer.py`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return Problemf("bisect needs a command: godynamo bisect -- python SCRIPT [ARGS...]")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			b.command = args
			b.asJSON = cmd.Flags().Changed("json")
			return b.run()
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.BoolVar(&b.output, "output", false, "compare standard output with that of a run without godynamo")
	flags.DurationVar(&b.timeout, "timeout", 10*time.Minute, "a run that takes longer fails")
	flags.BoolVar(&b.verbose, "verbose", false, "show what the command prints")
	flags.StringVar(&b.json, "json", "", "write the result as JSON to this file (-: stdout)")
	return cmd
}

// bisection is one run of `godynamo bisect`.
type bisection struct {
	app     *App
	command []string
	output  bool
	verbose bool
	timeout time.Duration
	json    string
	asJSON  bool

	folder string
	plain  []byte // the command's standard output without godynamo
	runs   int
}

// culprit is one of the user's code objects, as godynamo._translator.bisect names it.
type culprit struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Function string `json:"function"`
}

func (b *bisection) run() error {
	path, err := exec.LookPath(b.command[0])
	if err != nil {
		return Problemf("there is no command %s", b.command[0])
	}
	b.command = append([]string{path}, b.command[1:]...)
	if b.folder, err = os.MkdirTemp("", "godynamo-bisect-"); err != nil {
		return Problemf("%v", err)
	}
	defer os.RemoveAll(b.folder)

	out, failed, err := b.try("GODYNAMO_DISABLE=1")
	if err != nil {
		return err
	}
	b.say("without godynamo", failed)
	if failed {
		return Problemf("the command fails without godynamo too: that is no fault of a translation")
	}
	b.plain = out
	record := filepath.Join(b.folder, "record")
	if _, failed, err = b.try("GODYNAMO_BISECT=record:" + record); err != nil {
		return err
	}
	met, err := lines(record)
	if err != nil {
		return Problemf("%v", err)
	}
	b.say(fmt.Sprintf("with all %d functions", len(met)), failed)
	switch {
	case len(met) == 0:
		return Problemf("the command translates nothing: does it use godynamo? (godynamo run SCRIPT does)")
	case !failed:
		fmt.Fprintln(b.app.Stderr,
			"godynamo: the command works with everything translated: nothing to look for, or it fails by chance only")
		return ExitCode(1)
	}
	var failure error
	left := ddmin.Minimize(met, func(some []string) bool {
		if failure != nil {
			return false
		}
		fails, err := b.with(some)
		if err != nil {
			failure = err
		}
		return fails
	})
	if failure != nil {
		return failure
	}
	// A command that fails at random misleads the search. So the command must fail once more with the functions that
	// were found.
	again, err := b.with(left)
	if err != nil {
		return err
	}
	return b.report(left, again)
}

// with runs the command so that only the functions in `some` are translated. It reports whether the command failed.
func (b *bisection) with(some []string) (bool, error) {
	only := filepath.Join(b.folder, "only")
	if err := os.WriteFile(only, []byte(strings.Join(some, "\n")+"\n"), 0o600); err != nil {
		return false, Problemf("%v", err)
	}
	_, failed, err := b.try("GODYNAMO_BISECT=only:" + only)
	if err == nil {
		b.say(fmt.Sprintf("with %d functions", len(some)), failed)
	}
	return failed, err
}

// try runs the command once with an environment variable set. It returns an error if the command cannot be started, or
// if the user presses Ctrl-C.
func (b *bisection) try(variable string) (stdout []byte, failed bool, err error) {
	b.runs++
	// Ctrl-C at the terminal does not reach the command, which has its own process group. The command is killed
	// together with this process.
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(interrupted, b.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.command[0], b.command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// The command's children are killed as well, so that a run that hangs ends.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(os.Environ(), variable)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if b.verbose {
		fmt.Fprintf(b.app.Stderr, "%s%s", out.Bytes(), errs.Bytes())
	}
	var exit *exec.ExitError
	switch {
	case interrupted.Err() != nil:
		fmt.Fprintln(b.app.Stderr, "godynamo: interrupted")
		return nil, false, ExitCode(130)
	case ctx.Err() != nil, errors.As(err, &exit):
		return out.Bytes(), true, nil
	case err != nil:
		return nil, false, Problemf("cannot run %s: %v", b.command[0], err)
	}
	return out.Bytes(), b.output && b.plain != nil && !bytes.Equal(out.Bytes(), b.plain), nil
}

func (b *bisection) say(what string, failed bool) {
	verdict := "works"
	if failed {
		verdict = "fails"
	}
	fmt.Fprintf(b.app.Stderr, "run %d: %s: %s\n", b.runs, what, verdict)
}

// report prints the functions that were found.
func (b *bisection) report(left []string, again bool) error {
	var found []culprit
	for _, name := range left {
		found = append(found, parseCulprit(name))
	}
	if b.asJSON {
		text, err := json.MarshalIndent(map[string]any{"version": 1, "culprits": found, "runs": b.runs,
			"certain": again}, "", " ")
		if err != nil {
			return err
		}
		if err := b.app.write(b.json, append(text, '\n')); err != nil {
			return err
		}
	}
	if b.json != "-" || !b.asJSON {
		if len(found) > 1 {
			fmt.Fprintf(b.app.Stdout, "The command fails where these %d are translated together:\n", len(found))
		}
		for _, c := range found {
			fmt.Fprintf(b.app.Stdout, "%s (%s:%d)\n", c.Function, c.File, c.Line)
		}
		fmt.Fprintf(b.app.Stdout,
			"godynamo dis %s:%s shows its translation; @godynamo.disable leaves it to CPython; please report it.\n",
			found[len(found)-1].File, found[len(found)-1].Function)
	}
	if !again {
		fmt.Fprintln(b.app.Stderr, "godynamo: it did not fail again: the command fails by chance, do not trust this")
		return ExitCode(1)
	}
	return nil
}

// parseCulprit reads `file:first line:qualified name`. The qualified name contains no colon, but the file may contain
// some.
func parseCulprit(text string) culprit {
	rest, function := cutLast(text)
	file, line := cutLast(rest)
	n, _ := strconv.Atoi(line)
	return culprit{File: file, Line: n, Function: function}
}

func cutLast(text string) (before, after string) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return "", text
	}
	return text[:i], text[i+1:]
}

// lines returns a file's lines in order, without duplicates. It returns none if the file does not exist.
func lines(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	seen := map[string]bool{}
	var out []string
	for _, line := range strings.Split(string(text), "\n") {
		if line != "" && !seen[line] {
			seen[line] = true
			out = append(out, line)
		}
	}
	return out, err
}
