package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fake writes a command that behaves like a program under GODYNAMO_BISECT. It reaches the functions a to f, then runs
// the shell code `body`. There `on X` reports whether X is translated.
func fake(t *testing.T, body string) string {
	path := filepath.Join(t.TempDir(), "command")
	text := `#!/bin/sh
[ -n "$GODYNAMO_DISABLE" ] && file=/dev/null || file=${GODYNAMO_BISECT#*:}
case $GODYNAMO_BISECT in record:*) for f in a b c d e f; do echo "/x:y.py:${f}0:$f" | tr abcdef 123456 | sed "s/[0-9]*$/$f/" >>"$file"; done ;; esac
on() { grep -q ":$1\$" "$file"; }
` + body + "\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	return path
}

type answer struct {
	Culprits []culprit
	Certain  bool
	Runs     int
}

func bisected(t *testing.T, args ...string) (code int, found answer, stderr string) {
	code, stdout, stderr := run(append([]string{"bisect", "--json", "-"}, args...)...)
	if stdout != "" {
		require.NoError(t, json.Unmarshal([]byte(stdout), &found), stdout)
	}
	return code, found, stderr
}

func names(found answer) string {
	var out []string
	for _, c := range found.Culprits {
		out = append(out, c.Function)
	}
	return strings.Join(out, " ")
}

func TestBisectFindsWhatMakesACommandFail(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"one", "on c && exit 1; exit 0", "c"},
		{"killed by a signal", "on f && kill -9 $$; exit 0", "f"},
		{"two together", "on b && on e && exit 3; exit 0", "b e"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, found, stderr := bisected(t, "--", fake(t, c.body))
			assert.Zero(t, code, stderr)
			assert.Equal(t, c.want, names(found), stderr)
			assert.True(t, found.Certain)
			assert.Contains(t, stderr, "run 2: with all 6 functions: fails\n")
			assert.Equal(t, found.Runs, strings.Count(stderr, "run "))
		})
	}
}

func TestACulpritsFileMayHaveColons(t *testing.T) {
	_, found, _ := bisected(t, "--", fake(t, "on d && exit 1; exit 0"))
	assert.Equal(t, []culprit{{File: "/x:y.py", Line: 40, Function: "d"}}, found.Culprits)
}

func TestAnotherOutputIsAFailureWhereThatIsAsked(t *testing.T) {
	command := fake(t, "on e && echo wrong || echo right")
	code, _, stderr := bisected(t, "--", command)
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "works with everything translated")
	code, found, _ := bisected(t, "--output", "--", command)
	assert.Zero(t, code)
	assert.Equal(t, "e", names(found))
}

func TestARunThatHangsFails(t *testing.T) {
	code, found, stderr := bisected(t, "--timeout", "300ms", "--", fake(t, "on b && sleep 100; exit 0"))
	assert.Zero(t, code, stderr)
	assert.Equal(t, "b", names(found))
}

func TestAFailureByChanceIsNotTrusted(t *testing.T) {
	// The command fails when everything is translated. It also fails the first time that a certain half is translated,
	// but not the second time.
	state := filepath.Join(t.TempDir(), "state")
	code, _, stderr := bisected(t, "--",
		fake(t,
			`[ -n "$GODYNAMO_DISABLE" ] && exit 0; echo x >>`+state+`; [ $(wc -l <`+state+`) -le 3 ] && exit 1; exit 0`))
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "fails by chance")
}

func TestAnInterruptEndsTheCommandToo(t *testing.T) {
	folder := t.TempDir()
	begun, ended := filepath.Join(folder, "begun"), filepath.Join(folder, "ended")
	command := fake(t, "touch "+begun+"; sleep 3; touch "+ended)
	go func() {
		for range 200 {
			if _, err := os.Stat(begun); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
	}()
	code, _, stderr := bisected(t, "--", command)
	assert.Equal(t, 130, code)
	assert.Contains(t, stderr, "interrupted")
	time.Sleep(3500 * time.Millisecond)
	assert.NoFileExists(t, ended)
}
