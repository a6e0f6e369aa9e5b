package cli

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Python is an interpreter in which godynamo is installed. Its fields are found without running the interpreter.
type Python struct {
	Path string // absolute path of the executable
}

// Python returns the interpreter to use. It is the first of --python, $GODYNAMO_PYTHON, the python in this tool's
// folder, and python3 on PATH. The error is a Problemf.
func (app *App) Python() (*Python, error) {
	for _, given := range [][2]string{{"--python", app.python}, {"$GODYNAMO_PYTHON", os.Getenv("GODYNAMO_PYTHON")}} {
		if given[1] == "" {
			continue
		}
		path, err := exec.LookPath(given[1])
		if err != nil {
			return nil, Problemf("%s: no Python at %s", given[0], given[1])
		}
		return python(path)
	}
	if own, err := os.Executable(); err == nil {
		// Symbolic links are not resolved. The tool is in pip's script directory, whose python is the right one. In a
		// virtual environment, that python is a link.
		if beside := filepath.Join(filepath.Dir(own), "python"); isExecutable(beside) {
			return python(beside)
		}
	}
	path, err := exec.LookPath("python3")
	if err != nil {
		return nil, Problemf("no Python beside this tool and no python3 on PATH: say which with --python")
	}
	return python(path)
}

func python(path string) (*Python, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, Problemf("%s: %v", path, err)
	}
	return &Python{Path: absolute}, nil
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() && info.Mode()&0o111 != 0
}

// entry returns the command line that runs one of the tool's commands in Python. It does not pass -P, since the user's
// script determines sys.path.
func (p *Python) entry(args []string) []string {
	line := []string{p.Path}
	if args[0] != "run" { // `run` keeps all output of the script, even torch's warning about NumPy
		line = append(line, "-W", "ignore:Failed to initialize NumPy")
	}
	return append(append(line, "-m", "godynamo._tools"), args...)
}

// Exec replaces this process with `python -m godynamo._tools args...`. So a user's script never runs above a Go frame.
// It returns only on failure.
func (p *Python) Exec(args ...string) error {
	if err := p.check(); err != nil {
		return err
	}
	err := syscall.Exec(p.Path, p.entry(args), os.Environ())
	return Problemf("cannot start %s: %v", p.Path, err)
}

// Command returns `python -m godynamo._tools args...` as a child process that has not been started. It has this
// process's environment.
func (p *Python) Command(args ...string) *exec.Cmd {
	line := p.entry(args)
	return exec.Command(line[0], line[1:]...)
}

// check reports whether the interpreter can import godynamo and torch. It is called before anything is started, and
// takes as long as an empty Python (15 ms).
func (p *Python) check() error {
	_, err := p.Facts()
	return err
}

// Facts is information about an interpreter, obtained without importing torch.
type Facts struct {
	Version   string // "3.11.7"
	Threads   string // "t" for a free-threaded build, otherwise ""
	Package   string // folder of the package `godynamo`
	LibPython string // path of the shared libpython, "" if there is none
	Torch     bool   // whether torch is installed
}

// Minor returns the part of the version that is in the names of libraries, for example "3.11".
func (f *Facts) Minor() string { return f.Version[:strings.LastIndexByte(f.Version, '.')] }

// GoLibrary returns the path of the Go library for this interpreter, which native.py builds: ".../libgodynamo-311.so".
// None is built for a free-threaded interpreter, which has another binary interface.
func (f *Facts) GoLibrary() string {
	return filepath.Join(f.Package, "libgodynamo-"+strings.ReplaceAll(f.Minor(), ".", "")+f.Threads+".so")
}

// noTorch is the usage error for an interpreter without torch.
type noTorch struct{ error }

const askFacts = `
import importlib.util, json, os, sys, sysconfig
spec = importlib.util.find_spec("godynamo")
folder = os.path.dirname(spec.origin) if spec and spec.origin else ""
names = [sysconfig.get_config_var(n) or "" for n in ("INSTSONAME", "LDLIBRARY")]
names.append("libpython%d.%d.so.1.0" % sys.version_info[:2])
folders = [sysconfig.get_config_var("LIBDIR") or "", os.path.join(sys.base_prefix, "lib"), sysconfig.get_config_var("LIBPL") or ""]
multi = sysconfig.get_config_var("MULTIARCH")
folders += [os.path.join(f, multi) for f in ("/usr/lib", "/usr/local/lib") if multi]
found = [os.path.join(f, n) for f in folders for n in names if ".so" in n and os.path.isfile(os.path.join(f, n))]
torch = importlib.util.find_spec("torch")
print(json.dumps({"Version": "%d.%d.%d" % sys.version_info[:3], "Package": folder, "LibPython": found[0] if found else "",
                  "Threads": "t" if "t" in sys.abiflags else "", "Torch": bool(torch and torch.origin)}))
`

// Facts returns information about the interpreter. The error is a Problemf: the interpreter does not start, or it has
// no godynamo or no torch.
func (p *Python) Facts() (*Facts, error) {
	out, err := exec.Command(p.Path, "-c", askFacts).Output()
	if err != nil {
		var failed *exec.ExitError
		text := err.Error()
		if errors.As(err, &failed) && len(failed.Stderr) > 0 {
			lines := strings.Split(strings.TrimSpace(string(failed.Stderr)), "\n")
			text = lines[len(lines)-1]
		}
		return nil, Problemf("%s does not start: %s", p.Path, text)
	}
	facts := new(Facts)
	if err := json.Unmarshal(out, facts); err != nil {
		return nil, Problemf("%s is no Python: %v", p.Path, err)
	}
	if facts.Package == "" {
		return nil, Problemf("godynamo is not installed in %s: pip install it there, or name another with --python",
			p.Path)
	}
	if !facts.Torch {
		return nil, noTorch{Problemf("torch is not installed in %s: %s -m pip install torch", p.Path, p.Path)}
	}
	return facts, nil
}
