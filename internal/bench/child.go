package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// request is the message that a child process receives; python/godynamo/_tools/bench/child.py reads it.
type request struct {
	Do        string   `json:"do"` // "plan" or "measure"
	Suites    []string `json:"suites"`
	Only      []string `json:"only"`
	Modules   []string `json:"modules"`
	Engines   []string `json:"engines"`
	Workloads []string `json:"workloads"`
	Rounds    int      `json:"rounds"`
	Details   bool     `json:"details"`
	Caches    string   `json:"caches"`
}

// message is one line of a child's output.
type message struct {
	Problem   string               `json:"problem"`
	Machine   *Machine             `json:"machine"`
	Workloads []*Workload          `json:"workloads"`
	Workload  string               `json:"workload"`
	At        string               `json:"at"`
	Error     string               `json:"error"`
	Engines   map[string]*measured `json:"engines"`
	Done      bool                 `json:"done"`
}

// measured is the part of a message about one engine. Times are in seconds.
type measured struct {
	Error    string    `json:"error"`
	Correct  any       `json:"correct"` // true, or "close"
	Backend  string    `json:"backend"`
	Graphs   *int      `json:"graphs"`
	Breaks   *int      `json:"breaks"`
	Ops      *int      `json:"ops"`
	Internal int       `json:"internal_errors"`
	Cold     *Cold     `json:"cold"`
	Seconds  []float64 `json:"seconds"`
	Guards   *int      `json:"guards"`
	GuardsNs *float64  `json:"guards_ns"`
	Calls    *int      `json:"calls"`
	Bytes    *int64    `json:"bytes"`
}

// died is an error: a child ended before it was done. Its text is the reason.
type died string

func (d died) Error() string { return string(d) }

// environment is added to the user's environment for child processes. With one thread, figures do not depend on the
// machine's other cores. With a fixed hash seed, dicts have the same layout in each process. Downloads are off.
var environment = []string{
	"OMP_NUM_THREADS=1", "PYTHONHASHSEED=0", "HF_HUB_OFFLINE=1", "TRANSFORMERS_VERBOSITY=error", "KINETO_LOG_LEVEL=5",
}

// child runs one request in a child process and passes every message to hear. It returns nil if the child reports that
// it is done, the error of ctx if ctx ends first, a Problem that the child found, or a died. A child that sends nothing
// for longer than silence is killed. The child runs in a process group of its own, so Ctrl-C at a terminal does not
// reach it. When child returns, no process of that group is left.
func child(ctx context.Context, command func(...string) *exec.Cmd, r request, silence time.Duration,
	hear func(message)) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	cmd := command("bench", string(text))
	cmd.Env = append(cmd.Environ(), environment...)
	cmd.ExtraFiles = []*os.File{write} // descriptor 3 in the child
	stderr := new(tail)
	cmd.Stderr = stderr
	// A process that still holds stderr must not block cmd.Wait.
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	write.Close()
	if err != nil {
		return problemf("%s cannot be started: %v", cmd.Path, err)
	}
	lines := make(chan message)
	stop := make(chan struct{})
	defer close(stop)
	go readLines(read, lines, stop)
	end := func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the group has only the child's processes
	}
	timer := time.NewTimer(silence)
	defer timer.Stop()
	done := false
	at := "it began"
	for {
		select {
		case <-ctx.Done():
			end()
			_ = cmd.Wait()
			return ctx.Err()
		case <-timer.C:
			end()
			_ = cmd.Wait()
			return died(fmt.Sprintf("said nothing for %v after %s: ended", silence, at))
		case m, open := <-lines:
			if !open {
				err := cmd.Wait()
				end() // kills processes that the child has left
				switch {
				case done:
					return nil
				case err == nil:
					return died("its process ended early" + stderr.last())
				}
				return died("its process died: " + err.Error() + stderr.last())
			}
			timer.Reset(silence)
			if m.Problem != "" {
				end()
				_ = cmd.Wait()
				return Problem(m.Problem)
			}
			if m.At != "" {
				at = m.At
			}
			done = done || m.Done || m.Machine != nil
			hear(m)
		}
	}
}

// readLines decodes messages until the pipe ends. It skips lines that are not messages.
func readLines(from *os.File, to chan<- message, stop <-chan struct{}) {
	defer close(to)
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, 1<<26)
	for scanner.Scan() {
		var m message
		if json.Unmarshal(scanner.Bytes(), &m) != nil {
			continue
		}
		select {
		case to <- m:
		case <-stop:
			return
		}
	}
}

// tail is a writer that keeps the end of the text.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, text...)
	if extra := len(t.kept) - 1<<14; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return len(text), nil
}

// last returns ": " and the last line that is not empty, or "" if there is none.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(t.kept), []byte("\n"))
	line := strings.TrimSpace(string(lines[len(lines)-1]))
	if line == "" {
		return ""
	}
	return ": " + line
}
