package bench

import (
	"context"
	"encoding/csv"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/godynamo/godynamo/internal/page/echarts"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func ptr[T any](x T) *T { return &x }

// made returns a result with three processes of two rounds.
func made() *Result {
	r := &Result{
		Kind: kind, Version: 1,
		Machine: Machine{Date: "2026-01-02 03:04 UTC", CPU: "a processor", Cores: 2, Load: 0.5, Python: "3.11.7",
			Torch: "2.15.0", Godynamo: "0.1.0"},
		Settings: Settings{Engines: []string{"eager", "torch.compile", "godynamo=inductor"}, Processes: 3, Rounds: 2,
			FreshCaches: true},
		Workloads: []*Workload{
			{
				Name: "relu", Suite: "micro", About: "(a + b).relu() * 2", Backend: "eager",
				Engines: map[string]*Figures{
					"eager": {Correct: "yes", Cold: &Cold{Seconds: 0.0002}, Calls: ptr(8), Peak: ptr(int64(92)),
						Samples: [][]float64{{4, 5}, {4.2, 4.4}, {3.9, 9}}},
					"torch.compile": {
						Correct: "yes", Backend: "eager", Graphs: ptr(1), Breaks: ptr(0), Ops: ptr(3),
						Cold: &Cold{0.05, 0.049, 0.001}, Guards: ptr(17),
						Calls: ptr(11), Peak: ptr(int64(92)), Samples: [][]float64{{8, 9}, {8.4, 8.5}, {8.1, 8.1}},
					},
					"godynamo=inductor": {
						Correct: "close", Backend: "inductor", Graphs: ptr(1), Breaks: ptr(0), Ops: ptr(3), Internal: 1,
						Cold: &Cold{2.5, 0.004, 2.496}, Guards: ptr(2),
						GuardsNs: ptr(25.5), Calls: ptr(8), Peak: ptr(int64(3 << 20)),
						Samples: [][]float64{{2, 2.5}, {2.1, 2.2}, {2.2, 2.3}},
					},
				},
			},
			{
				Name: "wrong", Suite: "user", About: "", Backend: "eager", Engines: map[string]*Figures{
					"eager": {Correct: "yes", Samples: [][]float64{{1, 1}, {1, 1}, {1, 1}}},
					"torch.compile": {Correct: "yes", Backend: "eager",
						Samples: [][]float64{{1, 1}, {1, 1}, {1, 1}}},
					"godynamo=inductor": {Error: "AssertionError: another result than eager's in call 1, by 0.5",
						Correct: "no", Samples: [][]float64{{1, 1}}},
				},
			},
			{Name: "dead", Suite: "user", Error: "its process died: signal: segmentation fault",
				Engines: map[string]*Figures{}},
		},
	}
	r.finish()
	return r
}

func TestAProcessCountsByItsBestRoundAndTheFigureIsTheMedianOfProcesses(t *testing.T) {
	f := made().Workloads[0].Engines
	assert.InDelta(t, 4.0, f["eager"].Warm.Value, 1e-9)
	assert.Equal(t, &Interval{1, 1, 1, 0.75}, f["eager"].Ratio)
	// The processes' ratios are 8/4, 8.4/4.2 and 8.1/3.9. The figure is their median, not the ratio of the medians.
	assert.InDelta(t, 2.0, f["torch.compile"].Ratio.Value, 1e-9)
	assert.InDelta(t, 8.1/3.9, f["torch.compile"].Ratio.High, 1e-9)
}

func TestAnIntervalHoldsTheMedianAsOftenAsItSays(t *testing.T) {
	assert.Nil(t, summary(nil))
	assert.Equal(t, &Interval{3, 3, 3, 0}, summary([]float64{3}))
	// An interval from fewer than six processes cannot have 95 % confidence, so it states the confidence that it has.
	assert.Equal(t, &Interval{2, 1, 3, 0.75}, summary([]float64{3, 1, 2}))
	ten := summary([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	assert.InDelta(t, 5.5, ten.Value, 1e-9)
	assert.GreaterOrEqual(t, ten.Confidence, 0.95)
	assert.Greater(t, ten.Low, 1.0)
	assert.Less(t, ten.High, 10.0)
}

func TestAWrongResultHasNoFigures(t *testing.T) {
	f := made().Workloads[1].Engines["godynamo=inductor"]
	assert.Equal(t, &Figures{Error: f.Error, Correct: "no"}, f)
	assert.Equal(t, []string{
		"wrong, godynamo=inductor: AssertionError: another result than eager's in call 1, by 0.5",
		"dead: its process died: signal: segmentation fault",
	}, made().Failed())
}

// golden compares a text with the file testdata/name.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), text)
}

func TestOutputs(t *testing.T) {
	compared := made()
	compared.Comparison = Compare(made(), compared, "old.json", Margin)
	for _, c := range []struct {
		file  string
		write func(*Result, *strings.Builder) error
	}{
		{"result.json", func(r *Result, w *strings.Builder) error { return r.Write(w) }},
		{"table.txt", func(r *Result, w *strings.Builder) error { return r.WriteTable(w) }},
		{"result.csv", func(r *Result, w *strings.Builder) error { return r.WriteCSV(w) }},
		{"gobench.txt", func(r *Result, w *strings.Builder) error { return r.WriteGo(w) }},
	} {
		var out strings.Builder
		require.NoError(t, c.write(compared, &out), c.file)
		golden(t, c.file, out.String())
	}
}

func TestGoFormatIsReadByItsOwnReader(t *testing.T) {
	var out strings.Builder
	require.NoError(t, made().WriteGo(&out))
	reader := benchfmt.NewReader(strings.NewReader(out.String()), "bench.txt")
	lines := 0
	for reader.Scan() {
		result, ok := reader.Result().(*benchfmt.Result)
		require.True(t, ok, "%v", reader.Result())
		lines++
		us, ok := result.Value("sec/op")
		require.True(t, ok)
		assert.Greater(t, us, 1e-7)
		assert.Contains(t, result.Name.String(), "/engine=")
	}
	require.NoError(t, reader.Err())
	assert.Equal(t, 3*6+2*6, lines) // one line per round, but none for a workload whose result is wrong
}

func TestCSVHasALineForEachEngineAndError(t *testing.T) {
	var out strings.Builder
	require.NoError(t, made().WriteCSV(&out))
	rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	require.NoError(t, err)
	assert.Len(t, rows, 1+3+3+1)
}

func TestThePageHoldsEverythingAndNamesNoOtherPlace(t *testing.T) {
	r := made()
	r.Workloads[0].Name = `</script><b>relu`
	r.Comparison = Compare(r, r, "old.json", Margin)
	var out strings.Builder
	require.NoError(t, r.WriteHTML(&out))
	require.Contains(t, out.String(), "!function(t,e)", "the script that draws")
	text := strings.Replace(out.String(), echarts.Script, "", 1)
	assert.Less(t, len(text), 40_000)
	assert.NotContains(t, text, "</script><b>", "a name is text, wherever it stands")
	assert.NotContains(t, text, "src=")
	assert.False(t, strings.Contains(text, "http:") || strings.Contains(text, "https:"))
	for _, want := range []string{"Compared with old.json", "segmentation fault", `id="figures"`, "chart3"} {
		assert.Contains(t, text, want)
	}
}

func TestPlotsAreWrittenEvenWhereFiguresAreMissing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plots")
	require.NoError(t, made().WritePlots(dir))
	for _, p := range plots {
		info, err := os.Stat(filepath.Join(dir, p.file))
		require.NoError(t, err)
		assert.Greater(t, info.Size(), int64(2000))
	}
	empty := made()
	empty.Workloads = empty.Workloads[2:]
	require.NoError(t, empty.WritePlots(dir))
}

func TestAResultIsReadAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	want := made()
	file, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, want.Write(file))
	require.NoError(t, file.Close())
	got, err := Load(path)
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

func TestAFileThatIsNoResultIsNamedInOneLine(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		return path
	}
	var whole strings.Builder
	require.NoError(t, made().Write(&whole))
	for _, c := range []struct{ path, want string }{
		{filepath.Join(dir, "none.json"), "there is no file"},
		{write("torn.json", whole.String()[:len(whole.String())/2]), "torn or no JSON: line "},
		{write("empty.json", ""), "torn or no JSON: line 1"},
		{write("other.json", `{"calls": {}}`), `it has no "kind"`},
		{write("list.json", `[1, 2]`), "no result of godynamo bench"},
		{write("new.json", `{"kind": "godynamo bench", "version": 7}`), "has version 7"},
		{write("null.json", `{"kind": "godynamo bench", "version": 1, "workloads": [null]}`), "workload 1 has no name"},
		{write("nothing.json",
			`{"kind": "godynamo bench", "version": 1, "workloads": [{"name": "a", "engines": {"eager": null}}]}`),
			"a has nothing for eager"},
		{dir, "cannot be read"},
	} {
		_, err := Load(c.path)
		require.Error(t, err, c.path)
		assert.IsType(t, Problem(""), err)
		assert.Contains(t, err.Error(), c.want)
		assert.Contains(t, err.Error(), c.path)
		assert.NotContains(t, err.Error(), "\n")
	}
}

func TestWritableTellsBeforeMinutesAreSpent(t *testing.T) {
	dir := t.TempDir()
	assert.NoError(t, Writable(filepath.Join(dir, "a.json")))
	assert.NoError(t, Writable("-"))
	assert.ErrorContains(t, Writable(dir), "is a directory")
	assert.ErrorContains(t, Writable(filepath.Join(dir, "none", "a.json")), "there is no directory")
}

// shell returns a function that makes a child process. The child is written in sh and prints its messages on
// descriptor 3.
func shell(text string) func(...string) *exec.Cmd {
	return func(args ...string) *exec.Cmd {
		return exec.Command("sh", append([]string{"-c", text, "sh"}, args...)...)
	}
}

type silent struct{}

func (silent) Plan(int, int, time.Duration) {}
func (silent) At(int, string, string)       {}
func (silent) Step(int, string, string)     {}

const plan = `case "$2" in *'"do":"plan"'*) echo '{"machine": {"cores": 1}, "workloads": [{"name": "a", "suite": "micro"}, {"name": "b", "suite": "micro"}, {"name": "c", "suite": "user"}]}' >&3; exit;; esac
`

func options(text string) Options {
	return Options{
		Suites: []string{"micro"}, Engines: []string{"eager"}, Processes: 2, Rounds: 2, Quick: true,
		Silence: time.Minute, Progress: silent{},
		Command: shell(plan + `measured() { echo '{"workload": "'$1'", "engines": {"eager": {"correct": true, "seconds": [1e-6, 2e-6]}}}' >&3; }
` + text),
	}
}

func TestTheRestGoesOnWhenAWorkloadKillsItsProcess(t *testing.T) {
	r, err := Run(context.Background(), options(`
case "$2" in
*'"workloads":["a"'*) measured a; echo "on its way" >&2; kill -SEGV $$;;
*'"workloads":["c"'*) measured c; echo '{"done": true}' >&3;;
*) exit 3;;
esac`))
	require.NoError(t, err)
	assert.Equal(t, []string{"b: its process died: signal: segmentation fault: on its way"}, r.Failed())
	assert.Len(t, r.Workloads[0].Engines["eager"].Samples, 2)
	assert.Len(t, r.Workloads[2].Engines["eager"].Samples, 2)
	assert.False(t, r.Interrupted)
}

func TestAChildThatSaysNothingIsEnded(t *testing.T) {
	o := options(`measured a; sleep 60 & sleep 60`)
	o.Silence, o.Processes = 200*time.Millisecond, 1
	o.Only = []string{"a"}
	began := time.Now()
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	assert.Less(t, time.Since(began), 20*time.Second)
	assert.Contains(t, r.Failed()[0], "said nothing for 200ms")
}

func TestWhatWasMeasuredIsKeptWhenItIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	o := options(`measured a; sleep 60`)
	o.Progress = &cancelling{cancel: cancel}
	r, err := Run(ctx, o)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, r.Workloads, 1)
	assert.True(t, r.Interrupted)
	assert.InDelta(t, 1.0, r.Workloads[0].Engines["eager"].Warm.Value, 1e-9)
}

func TestAnInterruptWhilePlanningLeavesNoResult(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	o := options("")
	o.Command = shell("sleep 60")
	r, err := Run(ctx, o)
	assert.Nil(t, r)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

// cancelling is a Progress that ends the run when the first workload is done.
type cancelling struct {
	silent
	cancel func()
}

func (c *cancelling) Step(int, string, string) { c.cancel() }

func TestAPlansProblemIsTheUsers(t *testing.T) {
	o := options("")
	o.Command = shell(`echo '{"problem": "no suite is called x"}' >&3`)
	_, err := Run(context.Background(), o)
	assert.Equal(t, Problem("no suite is called x"), err)
	o.Command = shell(`echo "No module named torch" >&2; exit 1`)
	_, err = Run(context.Background(), o)
	assert.IsType(t, Problem(""), err)
	assert.ErrorContains(t, err, "No module named torch")
}

func TestAnEngineThatFailsInOneProcessHasFailed(t *testing.T) {
	r := &runner{result: &Result{}}
	w := &Workload{Name: "a", Engines: map[string]*Figures{}}
	r.take(w, map[string]*measured{"eager": {Correct: true, Seconds: []float64{1e-6}}}, 1)
	r.take(w, map[string]*measured{"eager": {Error: "wrong now"}}, 2)
	assert.Equal(t, "wrong now", w.Engines["eager"].Error)
	assert.Equal(t, "no", w.Engines["eager"].Correct)
}

func TestWriteFileKeepsLinks(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"there.txt", "not yet.txt"} {
		target, link := filepath.Join(dir, name), filepath.Join(dir, "link to "+name)
		if name == "there.txt" {
			require.NoError(t, os.WriteFile(target, []byte("old"), 0o666))
		}
		require.NoError(t, os.Symlink(name, link))
		require.NoError(t, WriteFile(link, func(w io.Writer) error {
			_, err := w.Write([]byte("new"))
			return err
		}))
		info, err := os.Lstat(link)
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&os.ModeSymlink, "%s is a link still", link)
		text, err := os.ReadFile(target)
		require.NoError(t, err)
		require.Equal(t, "new", string(text))
	}
}
