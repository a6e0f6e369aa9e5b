// Package backends turns captured graphs into runnable code. The backend eager writes a graph inline, as instructions
// of the transformed function. The backend fx builds a torch.fx.GraphModule and passes it to a callable, such as a
// backend registered in torch.
package backends

import (
	"github.com/godynamo/godynamo/backends/eager"
	"github.com/godynamo/godynamo/backends/fx"
	"github.com/godynamo/godynamo/bytecode/translate"
	"github.com/godynamo/godynamo/pyhook/py"
)

// For returns the backend that is named by an Options object (python/godynamo/_user/options.py).
func For(s *py.Scope, options py.Object, inline bool) (translate.Backend, error) {
	if inline {
		return eager.Backend{}, nil
	}
	return fx.New(s, options)
}
