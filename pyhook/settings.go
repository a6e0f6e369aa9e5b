package pyhook

import (
	"github.com/godynamo/godynamo/backends"
	"github.com/godynamo/godynamo/bytecode/translate"
	"github.com/godynamo/godynamo/pyhook/py"
)

// settings are what one optimize() call and godynamo.config say about a translation.
type settings struct {
	translate.Options
	backend translate.Backend
	Trace   bool // Python's logger takes debug records
}

// readSettings asks the Options object of a callable; config values are asked at each translation, so that changes at run
// time are seen.
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
	out.TakesApart = flag(options, "takes_apart")
	out.CheckTypes = flag(options, "check_types")
	out.QueueEffects = flag(config, "queue_effects")
	out.GuardNNModules = flag(config, "guard_nn_modules")
	out.ReuseLayers = flag(config, "reuse_layers")
	out.TranslateEverything = flag(config, "translate_everything")
	mode, e := s.GetAttr(config, "tensor_guards")
	if e != nil {
		return nil, e
	}
	out.FullGuards = !inline || py.GoString(mode) == "full"
	out.MaxSteps, out.InlineDepth = 200_000, 100
	for name, at := range map[string]*int{"max_translated_instructions": &out.MaxSteps, "inline_depth_limit": &out.InlineDepth} {
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
	if out.Trace, err = asks(s, "log_debug"); err != nil {
		return nil, err
	}
	if out.Explain, err = asks(s, "explaining"); err != nil {
		return nil, err
	}
	out.backend, err = backends.For(s, options, inline)
	return out, err
}

// asks godynamo._runtime once a translation whether records of this kind are read by anyone, so that none is made in vain.
func asks(s *py.Scope, question string) (bool, error) {
	m, err := s.Import("godynamo._runtime")
	if err != nil {
		return false, err
	}
	r, err := s.CallMethod(m, question)
	return r == py.True(), err
}
