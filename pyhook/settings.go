package pyhook

import (
	"github.com/godynamo/godynamo/backends"
	"github.com/godynamo/godynamo/bytecode/translate"
	"github.com/godynamo/godynamo/pyhook/py"
)

// settings holds the options of one translation, from an optimize() call and from godynamo.config.
type settings struct {
	translate.Options
	backend translate.Backend
	watched int64 // which observers need records of the translation: the watched* bits
}

// The bits that godynamo._called.runtime.watched returns; Python has the same numbers.
const (
	watchedDebug   = 1 << iota // Python's logger accepts debug records
	watchedExplain             // an explanation counts captured instructions
	watchedTrace               // GODYNAMO_TRACE
	watchedBisect              // GODYNAMO_BISECT leaves code objects to CPython
)

// readSettings reads a callable's Options object. It reads config values at each translation, so that changes at run
// time take effect.
func readSettings(s *py.Scope, options py.Object) (*settings, error) {
	out := &settings{}
	var err error
	flag := func(o py.Object, name string) bool {
		v, e := s.GetAttr(o, name)
		if e != nil {
			err = e
			return false
		}
		return v == py.True()
	}
	config, e := s.Import("godynamo.config")
	if e != nil {
		return nil, e
	}
	inline := flag(options, "inline")
	out.NoPython = flag(options, "nopython")
	out.PythonOps = flag(options, "python_calls")
	out.Transparent = flag(options, "transparent")
	out.TakesApart = flag(options, "takes_apart")
	out.CheckTypes = flag(options, "check_types")
	out.QueueEffects = flag(config, "queue_effects")
	out.GuardNNModules = flag(config, "guard_nn_modules")
	out.ReuseLayers = flag(config, "reuse_layers")
	out.TranslateEverything = flag(config, "translate_everything")
	dynamic, e := s.GetAttr(options, "dynamic")
	if e != nil {
		return nil, e
	}
	mode, e := s.GetAttr(config, "tensor_guards")
	if e != nil {
		return nil, e
	}
	full := py.GoString(mode) == "full"
	out.FullGuards = !inline || full
	out.AnySize, out.FixesSizes = flag(options, "any_size"), flag(options, "fixes_sizes")
	out.Exporting = flag(options, "exporting")
	out.Dynamic = dynamic == py.True()
	out.SymbolicSizes = dynamic != py.False() && !full && flag(config, "dynamic_shapes")
	out.FixInts, out.FixFloats = flag(config, "specialize_int"), flag(config, "specialize_float")
	out.BreakAtNumbers = !flag(config, "capture_scalar_outputs")
	out.MaxSteps, out.InlineDepth = 200_000, 100
	for name, at := range map[string]*int{"max_translated_instructions": &out.MaxSteps,
		"inline_depth_limit": &out.InlineDepth} {
		v, e := s.GetAttr(config, name)
		if e != nil {
			return nil, e
		}
		if n, ok := py.AsInt(v); ok {
			*at = int(n)
		}
	}
	if err != nil {
		return nil, err
	}
	if out.watched, err = watched(s); err != nil {
		return nil, err
	}
	out.Explain = out.watched&watchedExplain != 0
	if out.watched&watchedBisect != 0 {
		m, err := s.Import("godynamo._translator.bisect")
		if err != nil {
			return nil, err
		}
		if out.Allowed, err = s.GetAttr(m, "allowed"); err != nil {
			return nil, err
		}
		out.NoPython = false // bisect leaves this code to CPython, which nopython=True must not turn into an error
	}
	out.backend, err = backends.For(s, options, inline)
	return out, err
}

// watched returns the bits of godynamo._called.runtime.watched, which say which records have a reader. It is
// called once per translation, and only those records are made.
func watched(s *py.Scope) (int64, error) {
	m, err := s.Import("godynamo._called.runtime")
	if err != nil {
		return 0, err
	}
	r, err := s.CallMethod(m, "watched")
	if err != nil {
		return 0, err
	}
	bits, _ := py.AsInt(r)
	return bits, nil
}
