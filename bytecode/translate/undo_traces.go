package translate

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// trace is what an operation leaves behind if a later operation raises and the user's code runs again from the start of
// the piece (the code between two graph breaks).
type trace uint8

const (
	noTrace trace = iota
	// Random numbers were drawn. The state of torch's generators can be restored (Codegen.saveState).
	draws
	// Only tensors of the frame were changed, and these are cheap to copy or got other memory. Their values and their
	// memory can be restored.
	copied
	// A tensor that other code may hold was changed, or numbers were drawn from a generator that was passed.
	lasts
)

// traceOf returns the trace of a node's operation.
func (o *OutputGraph) traceOf(n *fxgraph.Node) trace {
	if n.State || o.foreign.repeatable[n] {
		return noTrace // the modes are restored before the piece runs again
	}
	if n.RunsOnce() {
		return lasts
	}
	t := noTrace
	if n.Inplace && !o.changesOwn(n) || changesStatistics(n) || observers[shortName(n)] {
		t = lasts
		if _, ok := o.changedInputs(n); ok || n.Target.Text == variables.StoreOfData && o.replacedInput(n) != nil {
			t = copied
		}
	}
	return max(t, o.drawsBy(n))
}

// observers lists operations of quantized training that update ranges of values among their operands.
var observers = map[string]bool{"fused_moving_avg_obs_fake_quant": true, "_fused_moving_avg_obs_fq_helper": true}

// drawsInside returns the trace of operations with unknown code. Functions of allow_in_graph and custom operators may
// draw random numbers. Their authors have declared that they have no other effects, except for operands that an
// operator's schema marks as changed (_translator/kinds.operator_trace).
func (o *OutputGraph) drawsInside(n *fxgraph.Node) trace {
	if n.Opaque {
		return draws
	}
	space, custom := strings.CutPrefix(n.Target.Text, operators)
	if !custom || n.Op != fxgraph.CallFunction || strings.HasPrefix(space, "aten.") ||
		strings.HasPrefix(space, "prims.") || strings.HasPrefix(space, "higher_order.") {
		return noTrace
	}
	t, asked := o.operatorTraces[n.Target.Pool]
	if !asked {
		t = lasts
		if m, ok := py.Answered(o.scope.Import("godynamo._translator.kinds")); ok {
			if answer, ok := py.Answered(o.scope.CallMethod(m, "operator_trace", o.pool[n.Target.Pool])); ok {
				t = map[string]trace{"none": noTrace, "draws": draws, "lasts": lasts}[py.GoString(answer)]
			}
		}
		if o.operatorTraces == nil {
			o.operatorTraces = map[int]trace{}
		}
		o.operatorTraces[n.Target.Pool] = t
	}
	return t
}

// drawsBy returns the trace that a node leaves by drawing random numbers. Some operations draw only if an operand
// switches this on.
func (o *OutputGraph) drawsBy(n *fxgraph.Node) trace {
	name := shortName(n)
	by := noTrace
	if f, ok := flagged[strings.TrimSuffix(name, "_")]; ok {
		if f.on(n) {
			by = f.trace
		}
	} else if drawsByName(name) {
		by = draws
	} else {
		by = o.drawsInside(n)
	}
	if by == draws && givenGenerator(n) {
		by = lasts
	}
	return by
}

// flagged lists operations that draw random numbers only if an operand switches this on, as in training.
var flagged = map[string]struct {
	trace
	on func(n *fxgraph.Node) bool
}{
	"dropout": {draws, set(2, "train", true)}, "alpha_dropout": {draws, set(2, "train", true)},
	"feature_dropout":       {draws, set(2, "train", true)},
	"feature_alpha_dropout": {draws, set(2, "train", true)}, "native_dropout": {draws, set(2, "train", true)},
	"rrelu": {draws, set(3, "training", false)}, "scaled_dot_product_attention": {draws, set(4, "dropout_p", false)},
	"lstm": {draws, recurrentDropout}, "gru": {draws, recurrentDropout}, "rnn_tanh": {draws, recurrentDropout},
	"rnn_relu": {draws, recurrentDropout},
}

// set returns a function that reports whether a node's operand switches the effect on. If the operand is missing, the
// function returns absent.
func set(index int, keyword string, absent bool) func(n *fxgraph.Node) bool {
	return func(n *fxgraph.Node) bool {
		if index < len(n.Args) {
			return !isOff(n.Args[index])
		}
		for _, k := range n.Kwargs {
			if k.Name == keyword {
				return !isOff(k.Value)
			}
		}
		return absent
	}
}

// recurrentDropout reports whether the operands dropout and train are both set. The operands end with dropout, train,
// bidirectional; unless the input is packed, batch_first follows.
func recurrentDropout(n *fxgraph.Node) bool {
	for _, i := range []int{5, 6} {
		if i+1 < len(n.Args) && isNumber(n.Args[i]) {
			return !isOff(n.Args[i]) && !isOff(n.Args[i+1])
		}
	}
	return true
}

func isOff(a fxgraph.Arg) bool {
	l, ok := a.(fxgraph.Lit)
	return ok && (l.Text == "False" || l.Text == "0" || l.Text == "0.0")
}

func isNumber(a fxgraph.Arg) bool {
	l, ok := a.(fxgraph.Lit)
	return ok && l.Text != "" && (l.Text[0] >= '0' && l.Text[0] <= '9') && strings.ContainsAny(l.Text, ".e")
}

// drawsByName reports whether an operation of this name draws random numbers. It caches its results, since it is
// called for every event of every frame. The GIL protects the cache.
func drawsByName(name string) bool {
	by, known := namedRandom[name]
	if !known {
		for _, word := range random {
			by = by || strings.Contains(name, word)
		}
		namedRandom[name] = by
	}
	return by
}

var namedRandom = map[string]bool{}

// random lists substrings of the names of operations that draw random numbers.
var random = []string{"rand", "dropout", "bernoulli", "normal", "multinomial", "poisson", "rrelu",
	"exponential", "uniform",
	"cauchy", "geometric", "random", "fractional", "gumbel", "binomial"}

func givenGenerator(n *fxgraph.Node) bool {
	for _, k := range n.Kwargs {
		if l, ok := k.Value.(fxgraph.Lit); k.Name == "generator" && !(ok && l.Text == "None") {
			return true
		}
	}
	return false
}

// changesOwn reports whether an in-place operation changes storage that was made since the last graph break, as in
// `mask = torch.zeros(n); mask[i] = 1`.
func (o *OutputGraph) changesOwn(n *fxgraph.Node) bool {
	changed, ok := changedBy(n)
	return ok && o.ownStorage(changed, 0)
}

// changedBy returns the only tensor that an in-place operation changes: its `out` argument if it has one, else its
// first operand. ok is false if that tensor is unknown.
func changedBy(n *fxgraph.Node) (changed *fxgraph.Node, ok bool) {
	name := shortName(n)
	plain := strings.HasPrefix(n.Target.Text, "operator.") || strings.HasSuffix(name, "_") && !handsOver[name]
	for _, k := range n.Kwargs {
		if k.Name == "out" {
			changed, ok = k.Value.(*fxgraph.Node)
			return changed, ok && !plain
		}
	}
	if !plain || len(n.Args) == 0 {
		return nil, false
	}
	changed, ok = n.Args[0].(*fxgraph.Node)
	return changed, ok
}

// handsOver lists in-place operations that may replace the storage of a tensor.
var handsOver = map[string]bool{"set_": true, "swap_tensors_": true, "resize_as_": true, "share_memory_": true}

// ownStorage reports whether the piece has made the storage of n's result. This is so if n makes a new tensor, or if n
// is computed only from such tensors, even as a view of them. Only a few operations are followed.
func (o *OutputGraph) ownStorage(n *fxgraph.Node, depth int) bool {
	if n.Op != fxgraph.CallFunction && n.Op != fxgraph.CallMethod || depth > 8 {
		return false
	}
	if hasOut(n) {
		return false
	}
	if o.world.MakesNew(o.scope, n.Target.Text) || o.ofSizes(n) {
		return true
	}
	if n.Inplace { // its result is the tensor that it changes
		changed, ok := changedBy(n)
		return ok && o.ownStorage(changed, depth+1)
	}
	nodes, own := 0, true
	look := func(in *fxgraph.Node) {
		if o.isNumber(in) {
			return
		}
		nodes++
		own = own && o.ownStorage(in, depth+1)
	}
	for _, a := range n.Args {
		fxgraph.EachNode(a, look)
	}
	for _, k := range n.Kwargs {
		fxgraph.EachNode(k.Value, look)
	}
	return nodes > 0 && own
}

// ofSizes reports whether a node is `x.new(2, 3)` or `torch.Tensor(2, 3)`. With another argument, such as a tensor, the
// result may share its memory.
func (o *OutputGraph) ofSizes(n *fxgraph.Node) bool {
	sizes := n.Args
	switch {
	case n.Op == fxgraph.CallMethod && n.Target.Text == "new" && len(sizes) > 0:
		sizes = sizes[1:]
	case n.Op != fxgraph.CallFunction || !legacyClass.MatchString(n.Target.Text):
		return false
	}
	for _, a := range sizes {
		if !o.isSize(a) {
			return false
		}
	}
	return len(n.Kwargs) == 0
}

// legacyClass matches the names of the classes whose calls make tensors: torch.Tensor, torch.FloatTensor, ...
var legacyClass = regexp.MustCompile(`^torch\.[A-Z]?[a-zA-Z0-9]*Tensor$`)

// isSize reports whether an operand is an int, or a tuple or list of ints.
func (o *OutputGraph) isSize(a fxgraph.Arg) bool {
	var items []fxgraph.Arg
	switch a := a.(type) {
	case *fxgraph.Node:
		return o.isNumber(a)
	case fxgraph.Lit:
		_, err := strconv.Atoi(a.Text)
		return err == nil
	case fxgraph.Tuple:
		items = a.Items
	case fxgraph.List:
		items = a.Items
	default:
		return false
	}
	return !slices.ContainsFunc(items, func(item fxgraph.Arg) bool { return !o.isSize(item) })
}

func hasOut(n *fxgraph.Node) bool { return outOf(n) != nil }
