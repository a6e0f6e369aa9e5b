package variables

import (
	"strings"

	"github.com/godynamo/godynamo/fxgraph"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
)

// torchCall handles a call of a callable of one kind. If the arguments do not fit, it returns neither a result nor an
// error, and the graph breaks.
type torchCall func(tx Translator, t *TorchVariable, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error)

// exactly wraps a handler that takes n positional arguments and no keywords.
func exactly(n int, call func(tx Translator, t *TorchVariable, args []VariableTracker) (VariableTracker,
	error)) torchCall {
	return func(tx Translator, t *TorchVariable, _ string, args []VariableTracker,
		kwargs []Kw) (VariableTracker, error) {
		if len(args) != n || len(kwargs) > 0 {
			return nil, nil
		}
		return call(tx, t, args)
	}
}

// withoutKeywords wraps a handler that takes no keywords.
func withoutKeywords(call func(tx Translator, t *TorchVariable, name string, args []VariableTracker) (VariableTracker,
	error)) torchCall {
	return func(tx Translator, t *TorchVariable, name string, args []VariableTracker,
		kwargs []Kw) (VariableTracker, error) {
		if len(kwargs) > 0 {
			return nil, nil
		}
		return call(tx, t, name, args)
	}
}

// torchCalls are the handlers for each kind of callable.
var torchCalls map[callableKind]torchCall

func init() { // set here since the handlers refer to Call, which reads torchCalls
	torchCalls = map[callableKind]torchCall{
		kindFromNumpy: exactly(1, func(tx Translator, t *TorchVariable, args []VariableTracker) (VariableTracker,
			error) {
			// any backend takes the tensor of an array that the program only passes on
			if l, ok := args[0].(*LazyVariable); !ok || l.Realized() || !tx.Output().WholeGraph() {
				if r, ok, err := tensorOfArray(tx, t.Fn, "torch.from_numpy", args, nil); ok || err != nil {
					return r, err
				}
			}
			return arrayTensor(tx, t.Fn, args[0])
		}),
		kindNumpy: func(tx Translator, t *TorchVariable, name string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			return t.callNumpy(tx, name, args, kwargs)
		},
		kindOp: func(tx Translator, t *TorchVariable, name string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			return t.dispatched(tx, args, kwargs,
				func() (VariableTracker, error) { return t.callOperator(tx, name, args, kwargs) })
		},
		kindAllowed: func(tx Translator, t *TorchVariable, name string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			return callAllowed(tx, t.Fn, name, args, kwargs, func(n *fxgraph.Node) { n.Opaque = true }, false)
		},
		kindTransform: func(tx Translator, t *TorchVariable, name string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			return higherCalls.Transform(tx, t, name, args, kwargs)
		},
		kindTransformed: func(tx Translator, t *TorchVariable, _ string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			return higherCalls.Transformed(tx, t, args, kwargs)
		},
		kindHop: func(tx Translator, t *TorchVariable, _ string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			return higherCalls.Operator(tx, t, args, kwargs)
		},
		kindTaker: func(tx Translator, t *TorchVariable, _ string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			return higherCalls.Take(tx, t, t.detail, args, kwargs)
		},
		kindSubstitute: func(tx Translator, t *TorchVariable, _ string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			r, _, err := callStandIn(tx, t.Fn, args, kwargs)
			return r, err
		},
		kindNamedtuple: func(tx Translator, t *TorchVariable, _ string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			return t.makeNamedTuple(tx, args, kwargs)
		},
		kindWraps: func(tx Translator, t *TorchVariable, _ string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			return t.callWrapped(tx, args, kwargs)
		},
		kindStandIn: func(tx Translator, t *TorchVariable, name string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			r, _, err := callStandIn(tx, t.Fn, args, kwargs)
			return t.orInlined(tx, name, args, kwargs, r, err)
		},
		kindPure: func(tx Translator, t *TorchVariable, name string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			r, err := foldPure(tx, tx.World().callPure, append([]VariableTracker{NewConstant(t.Fn, nil)}, args...),
				kwargs)
			return t.orInlined(tx, name, args, kwargs, r, err)
		},
		kindForeign: func(tx Translator, t *TorchVariable, name string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			return t.callForeign(tx, name, args, kwargs)
		},
		kindBackwardPass: func(tx Translator, t *TorchVariable, _ string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			return t.startsPass(tx, args, kwargs)
		},
		kindExpectedZero: withoutKeywords(func(tx Translator, t *TorchVariable, name string,
			args []VariableTracker) (VariableTracker, error) {
			return t.expectedZero(tx, name, args)
		}),
		kindFact: func(tx Translator, t *TorchVariable, name string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			return t.factOf(tx, name, args, kwargs)
		},
		kindFold: func(tx Translator, t *TorchVariable, _ string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			return t.assumedConstant(tx, args, kwargs)
		},
		kindConstant: func(tx Translator, t *TorchVariable, name string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			tx.World().Devices = true
			return folded(tx, t, name, args, kwargs)
		},
		kindCheck: func(tx Translator, t *TorchVariable, name string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			return t.check(tx, name, args, kwargs)
		},
		kindDispatch: func(tx Translator, t *TorchVariable, _ string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			return t.dispatch(tx, args, kwargs)
		},
		kindAsked: func(tx Translator, t *TorchVariable, name string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			switch _, entered := tx.World().EnteredAt(); {
			case len(args)+len(kwargs) > 0:
				return nil, nil
			case t.detail == "modes" && entered:
				return t.inlined(tx, name, args, kwargs)
			}
			return t.asked(tx)
		},
		kindState: func(tx Translator, t *TorchVariable, name string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			state := guards.GlobalState()
			if t.detail == "threads" {
				state = guards.NumThreads()
			}
			tx.Output().AddGuards(state)
			return folded(tx, t, name, args, kwargs)
		},
		kindSetState: withoutKeywords(func(tx Translator, t *TorchVariable, name string,
			args []VariableTracker) (VariableTracker, error) {
			if strings.HasPrefix(name, "torch.") {
				if err := withoutModes(tx, name); err != nil {
					return nil, err
				}
			}
			return tx.Output().SwitchState(tx, t.Fn, name, args)
		}),
		kindEnterState: withoutKeywords(func(tx Translator, t *TorchVariable, name string,
			args []VariableTracker) (VariableTracker, error) {
			if err := tx.Output().EntersState(); err != nil {
				return nil, err
			}
			return tx.Output().SwitchState(tx, t.Fn, name, args)
		}),
		kindModes: withoutKeywords(func(tx Translator, t *TorchVariable, name string,
			args []VariableTracker) (VariableTracker, error) {
			return t.modeCall(tx, name, args)
		}),
		kindConverted: func(tx Translator, _ *TorchVariable, _ string, args []VariableTracker,
			_ []Kw) (VariableTracker, error) {
			if len(args) != 2 {
				return nil, nil
			}
			return converted(tx, args[0], args[1])
		},
		kindRecursiveRepr: exactly(1, func(tx Translator, t *TorchVariable, args []VariableTracker) (VariableTracker,
			error) {
			if t.Src == nil {
				return nil, nil
			}
			return t.recursive(tx, args[0])
		}),
		kindExcInfo: exactly(0, func(tx Translator, _ *TorchVariable, _ []VariableTracker) (VariableTracker, error) {
			return excInfo(tx)
		}),
		kindCurrentException: exactly(0, func(tx Translator, _ *TorchVariable, _ []VariableTracker) (VariableTracker,
			error) {
			return currentException(tx)
		}),
		kindTypeHints: exactly(1, func(tx Translator, _ *TorchVariable, args []VariableTracker) (VariableTracker,
			error) {
			return typeHintsOf(tx, args[0])
		}),
		kindSignature: exactly(1, func(tx Translator, _ *TorchVariable, args []VariableTracker) (VariableTracker,
			error) {
			return signatureOf(tx, args[0])
		}),
		kindLog: func(tx Translator, t *TorchVariable, _ string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			return callLogging(tx, t.Fn, args, kwargs)
		},
		kindWarn: func(tx Translator, t *TorchVariable, _ string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			return callWarn(tx, t.Fn, args, kwargs)
		},
		kindMakeSubclass: func(tx Translator, _ *TorchVariable, _ string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			return madeSubclass(tx, makeSubclass, args, kwargs)
		},
		kindMakeWrapper: func(tx Translator, _ *TorchVariable, _ string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			return madeWrapper(tx, args, kwargs)
		},
		kindHandleTorchFunction: func(tx Translator, _ *TorchVariable, _ string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			return handleTorchFunction(tx, args, kwargs)
		},
		kindTorchFunctionCheck: func(tx Translator, t *TorchVariable, _ string, args []VariableTracker,
			_ []Kw) (VariableTracker, error) {
			return t.overloadCheck(tx, args)
		},
		kindTrue: func(tx Translator, _ *TorchVariable, _ string, _ []VariableTracker,
			_ []Kw) (VariableTracker, error) {
			return BoolConst((!tx.World().Transparent || tx.World().optimized > 0) && !inOptimizer(tx)), nil
		},
		kindFalse: func(Translator, *TorchVariable, string, []VariableTracker, []Kw) (VariableTracker, error) {
			return BoolConst(false), nil
		},
		kindTracing: func(tx Translator, _ *TorchVariable, name string, _ []VariableTracker,
			_ []Kw) (VariableTracker, error) {
			if tx.World().Exporting && strings.HasSuffix(name, "is_exporting") {
				return BoolConst(true), nil
			}
			// frames are not translated during torch.jit tracing and similar modes
			tx.Output().AddGuards(guards.GlobalState())
			return BoolConst(false), nil
		},
		kindTensorPredicate: func(tx Translator, t *TorchVariable, name string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			if name == "torch.is_tensor" {
				return t.predicate(tx, name, args)
			}
			if len(args) == 0 && len(kwargs) == 1 && kwargs[0].Name == "input" {
				args, kwargs = []VariableTracker{kwargs[0].Value}, nil
			}
			return t.dispatched(tx, args, kwargs,
				func() (VariableTracker, error) { return t.predicate(tx, name, args) })
		},
		kindLater: func(_ Translator, _ *TorchVariable, name string, _ []VariableTracker,
			_ []Kw) (VariableTracker, error) {
			return nil, exc.Postpone(exc.Uninitialized, "%s", name)
		},
		kindGraphBreak: splits,
		kindSkipFrame:  splits,
		kindRegion: func(tx Translator, t *TorchVariable, _ string, args []VariableTracker,
			_ []Kw) (VariableTracker, error) {
			return t.region(tx, args)
		},
		kindComptime: func(tx Translator, t *TorchVariable, _ string, args []VariableTracker,
			kwargs []Kw) (VariableTracker, error) {
			return t.comptime(tx, args, kwargs)
		},
		kindDisabled: func(_ Translator, t *TorchVariable, name string, _ []VariableTracker,
			_ []Kw) (VariableTracker, error) {
			if t.detail != "" {
				name += " (" + t.detail + ")"
			}
			return nil, unsupported(exc.Disabled, "%s", name)
		},
		kindForbidden: func(_ Translator, _ *TorchVariable, name string, _ []VariableTracker,
			_ []Kw) (VariableTracker, error) {
			return nil, unsupported(exc.CallUnsupported, "%s, marked with godynamo.forbid_in_graph", name)
		},
		kindOpaque:    refused,
		kindInline:    refused,
		kindNamespace: refused,
		kindStandInType: func(tx Translator, _ *TorchVariable, _ string, args []VariableTracker,
			_ []Kw) (VariableTracker, error) {
			return standInType(tx, arg(args, 0))
		},
		kindFirst: func(_ Translator, _ *TorchVariable, _ string, args []VariableTracker,
			_ []Kw) (VariableTracker, error) {
			if len(args) == 0 {
				return nil, nil
			}
			return args[len(args)-1], nil
		},
	}
}

// refused handles callables that always break the graph: it returns no result.
func refused(Translator, *TorchVariable, string, []VariableTracker, []Kw) (VariableTracker, error) {
	return nil, nil
}

func folded(tx Translator, t *TorchVariable, _ string, args []VariableTracker, kwargs []Kw) (VariableTracker, error) {
	return foldCall(tx, t.Fn, args, kwargs)
}

func splits(tx Translator, t *TorchVariable, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	return nil, t.asksToSplit(tx, name, args, kwargs)
}

// dispatched runs the call's __torch_function__ handlers if there are any. Otherwise it runs plain.
func (t *TorchVariable) dispatched(tx Translator, args []VariableTracker, kwargs []Kw,
	plain func() (VariableTracker, error)) (VariableTracker, error) {
	if r, ok, err := dispatchTorch(tx, t.Fn, args, kwargs, plain); ok || err != nil {
		return r, err
	}
	return plain()
}

// orInlined returns r and err, unless err is a graph break. Then it inlines the Python function and returns that
// result.
func (t *TorchVariable) orInlined(tx Translator, name string, args []VariableTracker, kwargs []Kw, r VariableTracker,
	err error) (VariableTracker, error) {
	if _, unknown := err.(*exc.Unsupported); !unknown {
		return r, err
	}
	return t.inlined(tx, name, args, kwargs)
}

// inlined inlines a Python function of torch.
func (t *TorchVariable) inlined(tx Translator, name string, args []VariableTracker,
	kwargs []Kw) (VariableTracker, error) {
	return tx.Inline(NewFunction(t.Fn, guards.NewConstSource(tx.Output().Const(t.Fn), "___function_"+name)),
		args, kwargs)
}
