package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// run runs the tool. It starts no Python unless a command needs it.
func run(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	app := &App{Stdout: &out, Stderr: &errs}
	root := newRoot(app)
	root.SetArgs(args)
	code = exitCode(&errs, root.Execute())
	return code, out.String(), errs.String()
}

func TestBadUseIsOneLineWithWhatMayHaveBeenMeant(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"rnu"}, `godynamo: unknown command "rnu" for "godynamo"; did you mean run?` + "\n"},
		{[]string{"run", "--modul"},
			"godynamo: unknown flag: --modul; did you mean --module? (godynamo run --help lists them)\n"},
		{[]string{"run"}, "godynamo: run needs a script: godynamo run SCRIPT [ARGS...], or -m MODULE\n"},
	} {
		code, stdout, stderr := run(c.args...)
		assert.Equal(t, 2, code)
		assert.Empty(t, stdout)
		assert.Equal(t, c.want, stderr)
	}
}

func TestHelpNamesEveryCommandAndIsNoError(t *testing.T) {
	code, stdout, _ := run("--help")
	require.Zero(t, code)
	for _, command := range newRoot(&App{}).Commands() {
		assert.Contains(t, stdout, command.Name())
		assert.NotEmpty(t, command.Short, command.Name())
		assert.Nil(t, command.Run, "%s: RunE, so that every error gets its code", command.Name())
	}
}

func TestAnExitCodeSaysNothingMore(t *testing.T) {
	var errs bytes.Buffer
	assert.Equal(t, 1, exitCode(&errs, ExitCode(1)))
	assert.Empty(t, errs.String())
	assert.Equal(t, 2, exitCode(&errs, errors.New("two\n  lines")))
	assert.Equal(t, "godynamo: two lines\n", errs.String())
}

func TestNearestNames(t *testing.T) {
	names := []string{"relu", "mlp_grad", "mlp_no_grad", "identity", "thirty"}
	for _, c := range []struct {
		name string
		want []string
	}{
		{"rleu", []string{"relu"}},
		{"mlp", []string{"mlp_grad", "mlp_no_grad"}},
		{"IDENTITY", []string{"identity"}},
		{"zzzzzz", nil},
	} {
		assert.Equal(t, c.want, Nearest(c.name, names), c.name)
	}
	assert.Equal(t, 3, editDistance("kitten", "sitting"))
}

func TestDisAndExplainTakeTheirArgumentsAlike(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"train.py"},
		{"train.py:f", "more"},
		{"train.py:f", "--epochs", "1"},
		{"train.py:f", "more", "--call", "2", "--", "again"},
		{"--", "train.py:f"},
		{"--call", "0", "train.py:f"},
		{"train.py:f", "--call", "0", "--", "--call", "1"},
	} {
		var said []string
		for _, command := range []string{"dis", "explain"} {
			code, stdout, stderr := run(append([]string{command}, args...)...)
			assert.Equal(t, 2, code, args)
			assert.Empty(t, stdout)
			said = append(said, strings.ReplaceAll(stderr, command, "COMMAND"))
		}
		assert.Equal(t, said[0], said[1])
	}
	flags := func(name string) map[string]string {
		found := map[string]string{}
		cmd, _, err := newRoot(&App{}).Find([]string{name})
		require.NoError(t, err)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			found[f.Name] = f.Shorthand + " " + f.Usage + " " + f.DefValue
		})
		return found
	}
	explain := flags("explain")
	for name, usage := range flags("dis") {
		assert.Equal(t, usage, explain[name], name)
	}
}
