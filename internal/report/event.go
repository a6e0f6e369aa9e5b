package report

// Version is the version of the trace format that this package reads.
const Version = 1

const format = "godynamo-trace"

// Process is the first event of a file. It describes the process that wrote the file.
type Process struct {
	Format      string            `json:"format"`
	Version     int               `json:"version"`
	PID         int               `json:"pid"`
	Started     float64           `json:"started"`
	Part        int               `json:"part"`
	Argv        []string          `json:"argv"`
	Cwd         string            `json:"cwd"`
	Executable  string            `json:"executable"`
	Platform    string            `json:"platform"`
	Python      string            `json:"python"`
	Torch       string            `json:"torch"`
	Godynamo    string            `json:"godynamo"`
	Config      map[string]any    `json:"config"`
	Environment map[string]string `json:"environment"`
	ForkedFrom  *Fork             `json:"forked_from"`
}

// Fork identifies the parent of a forked process. The parent made the translations with numbers up to Last.
type Fork struct {
	PID  int `json:"pid"`
	Last int `json:"last"`
}

// Place is a function in the user's code.
type Place struct {
	Name string `json:"name"`
	File string `json:"file"`
	Line int    `json:"line"`
}

// Row is a JSON array whose items have several types: a frame of a stack, a part of the guards, or a function's time.
type Row []any

func (r Row) text(i int) string {
	if i < len(r) {
		if s, ok := r[i].(string); ok {
			return s
		}
	}
	return ""
}

func (r Row) number(i int) float64 {
	if i < len(r) {
		if f, ok := r[i].(float64); ok {
			return f
		}
	}
	return 0
}

// Failure is a guard that did not hold.
type Failure struct {
	Reason string  `json:"reason"` // one line with the difference, both values and the remedy
	Text   string  `json:"text"`
	Guard  *string `json:"guard"`
	Found  *string `json:"found"`
	Was    *string `json:"was"`
	File   string  `json:"file"`
	Line   int     `json:"line"`
	Source string  `json:"source"`
}

// Break is a graph break.
type Break struct {
	Code   string  `json:"code"`
	Reason string  `json:"reason"`
	Hint   string  `json:"hint"`
	Stack  []Row   `json:"stack"`
	Around *Around `json:"around"`
}

// Around holds lines of the user's source; First is the number of the first line.
type Around struct {
	First int      `json:"first"`
	Lines []string `json:"lines"`
}

// Guards are the guards of an entry.
type Guards struct {
	Text  string `json:"text"`
	Nodes int    `json:"nodes"`
	Parts []Row  `json:"parts"`
	Words []Row  `json:"words"` // the guards' conditions in words
}

// Bytecode is the user's code and the transformed code, as listed by dis.
type Bytecode struct {
	Original    string `json:"original"`
	Transformed string `json:"transformed"`
}

// Translation is one translation of a frame. docs/trace.md describes the fields.
type Translation struct {
	ID         int                `json:"id"`
	Parent     *int               `json:"parent"`
	Time       float64            `json:"time"`
	Thread     int                `json:"thread"`
	ThreadName string             `json:"thread_name"`
	Kind       string             `json:"kind"`
	Function   Place              `json:"function"`
	ResumesAt  *int               `json:"resumes_at"`
	Stack      []Row              `json:"stack"`
	Status     string             `json:"status"`
	Reason     string             `json:"reason"`
	Backend    string             `json:"backend"`
	Entries    int                `json:"entries"`
	Failures   []Failure          `json:"failures"`
	Breaks     []Break            `json:"breaks"`
	Ops        int                `json:"ops"`
	Graphs     int                `json:"graphs"`
	Graph      string             `json:"graph"`
	Sizes      map[string]string  `json:"sizes"`   // sizes, dtype and device of each value of the graph
	Symbols    []string           `json:"symbols"` // what the symbols in sizes represent
	Guards     Guards             `json:"guards"`
	Bytecode   Bytecode           `json:"bytecode"`
	Resumes    []string           `json:"resumes"`
	Inlined    []string           `json:"inlined"`
	Reused     int                `json:"reused_layers"`
	PythonOps  []Row              `json:"python_ops"`
	Attempts   int                `json:"attempts"`
	Times      map[string]float64 `json:"times"`
	Calls      []Row              `json:"calls"`

	process int // index of the process in the trace
}

// Micros returns the total time of the translation in microseconds.
func (t *Translation) Micros() float64 {
	sum := 0.0
	for _, us := range t.Times {
		sum += us
	}
	return sum
}

// Event is an event that is not a translation. It may refer to a translation.
type Event struct {
	Event       string         `json:"event"` // limit, backend_failed, graph_failed, internal_error, end
	Process     int            `json:"process"`
	Time        float64        `json:"time"`
	Function    *Place         `json:"function"`
	Translation *int           `json:"translation"`
	Limit       int            `json:"limit"`
	Failures    []string       `json:"failures"`
	Backend     string         `json:"backend"`
	Error       string         `json:"error"`
	Where       string         `json:"where"`
	Suppressed  bool           `json:"suppressed"`
	Disabled    bool           `json:"disabled"`
	Counters    map[string]int `json:"counters"`
	Stack       []Row          `json:"stack"`
}
