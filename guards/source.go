package guards

import "strconv"

// Source is the place a value comes from, in terms of the frame. It is immutable and has three uses: the guard
// program (which fetches the value into a register), Reconstruct (instructions that load it again), and the
// guard text.
//
// Name is a Python expression that evaluates to the value in the environment of godynamo._called.guard_env:
// locals by name, G for the globals dict, ___cells for cells. Two Sources with the same Name are the same
// place.
type Source interface {
	Name() string
	GuardSource() GuardSource
	Base() Source // source it is read from; nil at a root
	isSource()
	// text is Name adapted to the printer, e.g. globals without G[...].
	text(p *printer) string
	// fetch writes the nodes that load the value, given the register of Base's value; see emitter.
	fetch(e *emitter, base uint32) (uint32, error)
	reconstruct(r Reconstructor) error
}

// printer chooses how roots are printed. nil prints names that are unique in every frame.
type printer struct {
	globals map[string]bool // printed bare
	cells   map[string]bool // locals that are cells: the bare name is their contents
	quoted  map[string]bool // locals whose name the text uses for something else
	texts   map[Source]string
}

// printed returns s.text(p), cached: otherwise a path as deep as a module tree would print each place above it
// again. Without a printer it returns the name.
func printed(s Source, p *printer) string {
	if p == nil {
		return s.Name()
	}
	text, ok := p.texts[s]
	if !ok {
		text = s.text(p)
		p.texts[s] = text
	}
	return text
}

// origin holds the fields that every Source has. The printed name is made once.
type origin struct {
	base   Source
	name   string
	family GuardSource
}

func (o *origin) Name() string             { return o.name }
func (o *origin) GuardSource() GuardSource { return o.family }
func (o *origin) Base() Source             { return o.base }
func (o *origin) isSource()                {}

// from returns the origin of a source read from base.
func from(base Source) origin { return origin{base: base, family: base.GuardSource()} }

// LocalSource is a slot of the frame: an argument, or the cell of a free variable.
type LocalSource struct {
	origin
	Local string // variable's name
	Slot  int
}

// NewLocalSource returns the value of slot, which holds the variable name.
func NewLocalSource(name string, slot int) *LocalSource {
	return &LocalSource{origin{name: name, family: SourceLocal}, name, slot}
}

func (s *LocalSource) text(p *printer) string {
	switch {
	case p == nil:
		return s.name
	case p.cells[s.Local]:
		return "___cells[" + quote(s.Local) + "]"
	case p.quoted[s.Local]:
		return "L[" + quote(s.Local) + "]"
	}
	return s.Local
}

// GlobalSource is a variable of the frame's globals.
type GlobalSource struct {
	origin
	Global string
}

// NewGlobalSource returns globals[name].
func NewGlobalSource(name string) *GlobalSource {
	return &GlobalSource{origin{name: "G[" + quote(name) + "]", family: SourceGlobal}, name}
}

func (s *GlobalSource) text(p *printer) string {
	if p != nil && p.globals[s.Global] {
		return s.Global
	}
	return s.name
}

// GlobalsSource is the frame's globals dict itself.
type GlobalsSource struct{ origin }

// NewGlobalsSource returns the globals dict.
func NewGlobalsSource() *GlobalsSource {
	return &GlobalsSource{origin{name: "G", family: SourceGlobal}}
}

func (s *GlobalsSource) text(*printer) string { return s.name }

// BuiltinSource is a builtin that no global shadows.
type BuiltinSource struct {
	origin
	Builtin string
}

// NewBuiltinSource returns builtins[name]; reading it fails once the globals define that name.
func NewBuiltinSource(name string) *BuiltinSource {
	return &BuiltinSource{origin{name: "___builtin(" + quote(name) + ")", family: SourceGlobal}, name}
}

func (s *BuiltinSource) text(*printer) string { return s.name }

// CellSource is the contents of a cell.
type CellSource struct{ origin }

// NewCellSource returns the contents of the cell at base. If base is a slot, the printed name is the
// variable's.
func NewCellSource(base Source) *CellSource {
	s := &CellSource{from(base)}
	if local, ok := base.(*LocalSource); ok {
		s.name = "___cells[" + quote(local.Local) + "].cell_contents"
	} else {
		s.name = base.Name() + ".cell_contents"
	}
	return s
}

func (s *CellSource) text(p *printer) string {
	local, ok := s.base.(*LocalSource)
	if p == nil || (ok && p.quoted[local.Local]) {
		return s.name
	}
	if ok {
		return local.Local
	}
	return printed(s.base, p) + ".cell_contents"
}

// ConstSource is an object that the entry holds: a type or a function that the translation went through.
type ConstSource struct {
	origin
	Const Const
}

// NewConstSource returns the object c, which the entry keeps weakly if possible. text describes it in words;
// the printed name contains text next to the address, since the name must be executable.
func NewConstSource(c Const, text string) *ConstSource {
	name := "___object(" + strconv.FormatUint(c.ID, 10)
	if text != "" {
		name += ", " + quote(text)
	}
	return &ConstSource{origin{name: name + ")", family: SourceConstant}, c}
}

// NewPolyfillSource returns an object of godynamo's own replacements for C code: neither it nor anything read
// from it is guarded.
func NewPolyfillSource(c Const) *ConstSource {
	s := NewConstSource(c, "___polyfill")
	s.family = SourcePolyfill
	return s
}

func (s *ConstSource) text(*printer) string { return s.name }

// RandomValueSource is the i-th random number that the user's code drew. It cannot be guarded, because every
// call draws a new one.
type RandomValueSource struct {
	origin
	Index int
}

// NewRandomValueSource returns the i-th random value of the call.
func NewRandomValueSource(i int) *RandomValueSource {
	return &RandomValueSource{origin{name: "random_value_" + strconv.Itoa(i), family: SourceRandomValue}, i}
}

func (s *RandomValueSource) text(*printer) string { return s.name }

// familySource changes only the GuardSource of a place.
type familySource struct{ origin }

func (s *familySource) text(p *printer) string { return printed(s.base, p) }

// NNModuleSource marks a place as inside an nn.Module.
type NNModuleSource struct{ familySource }

// NewNNModuleSource returns base, marked.
func NewNNModuleSource(base Source) *NNModuleSource {
	s := &NNModuleSource{familySource{from(base)}}
	s.name = base.Name()
	switch s.family {
	case SourceLocal:
		s.family = SourceLocalNNModule
	case SourceGlobal:
		s.family = SourceGlobalNNModule
	}
	return s
}

// NotNNModuleSource removes that mark.
type NotNNModuleSource struct{ familySource }

// NewNotNNModuleSource returns base, unmarked.
func NewNotNNModuleSource(base Source) *NotNNModuleSource {
	s := &NotNNModuleSource{familySource{from(base)}}
	s.name = base.Name()
	switch s.family {
	case SourceLocalNNModule:
		s.family = SourceLocal
	case SourceGlobalNNModule:
		s.family = SourceGlobal
	}
	return s
}
