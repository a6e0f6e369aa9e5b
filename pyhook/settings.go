package pyhook

import (
	"github.com/godynamo/godynamo/backends"
	"github.com/godynamo/godynamo/backends/eager"
	"github.com/godynamo/godynamo/bytecode/translate"
	"github.com/godynamo/godynamo/pyhook/py"
)

// settings holds the options of one translation, from an optimize() call and from godynamo.config.
type settings struct {
	translate.Options
	backend translate.Backend
	watched int64 // which observers need records of the translation: the watched* bits
	// cacheDir is the folder of stored translations, or "". It may have cacheMiB MiB.
	cacheDir string
	cacheMiB int
	// cacheMinMS is the time in ms that the translation of a frame of the hook must take to be stored.
	cacheMinMS int
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
	out.TakesApart, out.TakesSymbols = flag(options, "takes_apart"), flag(options, "takes_symbols")
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
	if err := readSizes(s, options, config, dynamic, &out.Options); err != nil {
		return nil, err
	}
	out.SymbolicSizes = out.SymbolicSizes && !full
	if out.Dynamic && !out.FixesSizes && !out.TakesApart && !out.TakesSymbols {
		out.AnySize = true // until the backend returns something other than the graph
	}
	out.FixInts, out.FixFloats = flag(config, "specialize_int"), flag(config, "specialize_float")
	out.BreakAtNumbers = !flag(config, "capture_scalar_outputs")
	if err := readNumbers(s, config, out); err != nil {
		return nil, err
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
	out.InlineBackend = eager.Backend{}
	out.backend, err = backends.For(s, options, inline)
	return out, err
}

// readNumbers reads the settings that are not flags.
func readNumbers(s *py.Scope, config py.Object, out *settings) error {
	out.MaxSteps, out.InlineDepth = 200_000, 100
	for name, at := range map[string]*int{"max_translated_instructions": &out.MaxSteps,
		"inline_depth_limit": &out.InlineDepth, "cache_mib": &out.cacheMiB, "cache_min_ms": &out.cacheMinMS} {
		v, err := s.GetAttr(config, name)
		if err != nil {
			return err
		}
		if n, ok := py.AsInt(v); ok {
			*at = int(n)
		}
	}
	dir, err := s.GetAttr(config, "cache_dir")
	out.cacheDir = py.GoString(dir)
	return err
}

// readSizes reads the settings that say whether sizes and ints are symbols. dynamic is the argument of optimize().
func readSizes(s *py.Scope, options, config, dynamic py.Object, out *translate.Options) error {
	settings := map[string]bool{"assume_static_by_default": false, "dynamic_shapes": false,
		"automatic_dynamic_shapes": false}
	for name := range settings {
		v, err := s.GetAttr(config, name)
		if err != nil {
			return err
		}
		settings[name] = v == py.True()
	}
	if err := readListed(s, options, config, &out.Listed); err != nil {
		return err
	}
	l := &out.Listed
	off := dynamic == py.False() || !settings["dynamic_shapes"]
	out.Dynamic = dynamic == py.True() || dynamic == py.None() && !settings["assume_static_by_default"]
	l.NoMarks = off
	l.Only = off || l.Shapes != py.None() || !out.Dynamic && !settings["automatic_dynamic_shapes"]
	out.SymbolicSizes = !off || !l.Rules.IsNull()
	if !l.Rules.IsNull() || l.Parameters || l.Modules {
		out.ReuseLayers = false // equal layers have parameters of equal sizes
	}
	return nil
}

// readListed reads the settings that say which sizes and ints may be symbols.
func readListed(s *py.Scope, options, config py.Object, out *translate.Listed) error {
	var err error
	if out.Shapes, err = s.GetAttr(options, "shapes"); err != nil {
		return err
	}
	listed := out.Shapes != py.None()
	for _, name := range [...]string{"dynamic_sources", "unbacked_sources", "static_sources", "dynamic_values"} {
		v, err := s.GetAttr(config, name)
		if err != nil {
			return err
		}
		listed = listed || py.GoString(v) != ""
	}
	for name, at := range map[string]*bool{"allow_ignore_mark_dynamic": &out.IgnoreMarks,
		"force_parameter_static_shapes":          &out.Parameters,
		"force_nn_module_property_static_shapes": &out.Modules} {
		v, err := s.GetAttr(config, name)
		if err != nil {
			return err
		}
		*at = v == py.True()
	}
	out.Parameters, out.Modules = !out.Parameters, !out.Modules
	if !listed {
		return nil
	}
	m, err := s.Import("godynamo._user.sources")
	if err == nil {
		out.Rules, err = s.GetAttr(m, "rules")
	}
	return err
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
