package guards

import "strconv"

// Source is the place from which a value is read, in terms of the frame. It is immutable and has three uses:
// the guard program fetches the value into a register, Reconstruct emits instructions that load the value
// again, and the guard text prints the place.
//
// Name is a Python expression that evaluates to the value in the environment of godynamo._called.guard_env:
// locals are names, G is the globals dict, ___cells holds the cells. Two Sources with the same Name are the
// same place.
type Source interface {
	Name() string
	GuardSource() GuardSource
	Base() Source // the source from which this source is read; nil for a root
	isSource()
	// text returns Name adapted to the printer, e.g. with globals printed without G[...].
	text(p *printer) string
	// fetch writes the nodes that load the value, given the register with Base's value; see emitter.
	fetch(e *emitter, base uint32) (uint32, error)
	reconstruct(r Reconstructor) error
}

// printer decides how roots (sources without a base) are printed. A nil printer prints names that are unique
// in every frame.
type printer struct {
	globals map[string]bool // globals that are printed as bare names
	cells   map[string]bool // locals that are cells; the bare name then means the contents
	quoted  map[string]bool // locals whose name the text uses for something else
	texts   map[Source]string
}

// printed returns s.text(p) from a cache. Without the cache, each source in a deep module tree would print all
// places above itself again. If p is nil, printed returns s.Name().
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

// NewLocalSource returns the source of a slot that holds the variable called `name`.
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

// NewGlobalSource returns the source of globals[name].
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

// NewGlobalsSource returns the source of the globals dict.
func NewGlobalsSource() *GlobalsSource {
	return &GlobalsSource{origin{name: "G", family: SourceGlobal}}
}

func (s *GlobalsSource) text(*printer) string { return s.name }

// BuiltinSource is a builtin that no global shadows.
type BuiltinSource struct {
	origin
	Builtin string
}

// NewBuiltinSource returns the source of builtins[name]. Reading it fails once the globals define that name.
func NewBuiltinSource(name string) *BuiltinSource {
	return &BuiltinSource{origin{name: "___builtin(" + quote(name) + ")", family: SourceGlobal}, name}
}

func (s *BuiltinSource) text(*printer) string { return s.name }

// CellSource is the contents of a cell.
type CellSource struct{ origin }

// NewCellSource returns the source of the contents of the cell at base. If base is a slot, the printed name
// is the name of the variable.
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

// ConstSource is an object that the entry itself refers to, such as a type or an inlined function.
type ConstSource struct {
	origin
	Const Const
}

// NewConstSource returns the source of the object c, which the entry keeps weakly if possible. text
// describes c in words. The printed name contains the address of c next to text, since the name must be
// executable.
func NewConstSource(c Const, text string) *ConstSource {
	name := "___object(" + strconv.FormatUint(c.ID, 10)
	if text != "" {
		name += ", " + quote(text)
	}
	return &ConstSource{origin{name: name + ")", family: SourceConstant}, c}
}

// NewPolyfillSource returns the source of an object in godynamo's Python replacements for C code. No guard
// checks the object or any value read from it.
func NewPolyfillSource(c Const) *ConstSource {
	s := NewConstSource(c, "___polyfill")
	s.family = SourcePolyfill
	return s
}

func (s *ConstSource) text(*printer) string { return s.name }

// RandomValueSource is the i-th random number that the user's code drew. It cannot be guarded, because every
// call draws a new number.
type RandomValueSource struct {
	origin
	Index int
}

// NewRandomValueSource returns the source of the i-th random value of the call.
func NewRandomValueSource(i int) *RandomValueSource {
	return &RandomValueSource{origin{name: "random_value_" + strconv.Itoa(i), family: SourceRandomValue}, i}
}

func (s *RandomValueSource) text(*printer) string { return s.name }

// familySource is the same place as its base, with another GuardSource.
type familySource struct{ origin }

func (s *familySource) text(p *printer) string { return printed(s.base, p) }

// NNModuleSource marks a place as being inside an nn.Module.
type NNModuleSource struct{ familySource }

// NewNNModuleSource returns base with the mark of an nn.Module.
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

// NotNNModuleSource removes the mark of an NNModuleSource.
type NotNNModuleSource struct{ familySource }

// NewNotNNModuleSource returns base without the mark of an nn.Module.
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
