package variables

import (
	"strings"

	"github.com/godynamo/godynamo/pyhook/py"
)

// inOptimizer reports whether the current frame is one of torch.optim's. While a compiler is at work, that code
// computes with tensors in place of Python numbers, so that the results differ in the last bits. A translation runs the
// code as eager mode does.
func inOptimizer(tx Translator) bool { return IsOptimizers(tx.Scope(), tx.Globals()) }

// IsOptimizers reports whether these are the globals of a module of torch.optim.
func IsOptimizers(s *py.Scope, globals py.Object) bool { return isOf(s, globals, "torch.optim.") }

// IsDistributions reports whether these are the globals of a module of torch.distributions.
func IsDistributions(s *py.Scope, globals py.Object) bool {
	return isOf(s, globals, "torch.distributions.")
}

// IsModuleCall reports whether these are the globals of torch.nn.modules.module, whose code calls forward and hooks.
func IsModuleCall(s *py.Scope, globals py.Object) bool {
	return isOf(s, globals, "torch.nn.modules.module")
}

// MayPredict reports whether these are the globals of a module of torch in whose code branches on tensors' values are
// predicted: those of optimizers and their stand-ins, and of the functions that clip gradients.
func MayPredict(s *py.Scope, globals py.Object) bool {
	return IsOptimizers(s, globals) || isOf(s, globals, "torch.nn.utils.clip_grad") ||
		isOf(s, globals, "godynamo._polyfills.torch_optim")
}

// isOf reports whether these are the globals of a module whose name starts with space.
func isOf(s *py.Scope, globals py.Object, space string) bool {
	name, ok := s.DictGetName(globals, "__name__")
	return ok && name.Kind() == py.Str && strings.HasPrefix(py.GoString(name), space)
}
