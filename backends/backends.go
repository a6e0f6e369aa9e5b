// Package backends turns captured graphs into runnable code. eager writes them inline, as instructions of the
// transformed function. fx builds a torch.fx.GraphModule and passes it to a callable, such as one of torch's
// registered backends.
package backends

import (
	"github.com/godynamo/godynamo/backends/eager"
	"github.com/godynamo/godynamo/backends/fx"
	"github.com/godynamo/godynamo/bytecode/translate"
	"github.com/godynamo/godynamo/pyhook/py"
)

// For returns the backend that an Options object (python/godynamo/_user/options.py) names.
func For(s *py.Scope, options py.Object, inline bool) (translate.Backend, error) {
	if inline {
		return eager.Backend{}, nil
	}
	return fx.New(s, options)
}
