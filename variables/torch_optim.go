package variables

import (
	"strings"

	"github.com/godynamo/godynamo/pyhook/py"
)

// inOptimizer reports whether the current frame is one of torch.optim's. While a compiler is at work, that code
// computes with tensors in place of Python numbers, so that the results differ in the last bits. A translation runs the
// code as eager mode does.
func inOptimizer(tx Translator) bool {
	name, ok := tx.Scope().DictGetName(tx.Globals(), "__name__")
	return ok && name.Kind() == py.Str && strings.HasPrefix(py.GoString(name), "torch.optim.")
}
