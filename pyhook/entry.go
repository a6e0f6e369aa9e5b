// Package pyhook is the Go side of the boundary with CPython: the exported functions that the C core
// calls, and the creation of code objects, functions and guarded entries from a translation's result.
//
// Each exported function recovers from panics; gdTranslate opens the scope of its translation. Between two
// calls only the facts in package variables (CPython and torch objects that Go reads once a process) are
// kept. No goroutine is started.
package pyhook

// #cgo CFLAGS: -I${SRCDIR}/py/compat -I${SRCDIR} -Wno-deprecated-declarations
// #cgo LDFLAGS: -Wl,--unresolved-symbols=ignore-all
// #include "bridge.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"
	"unsafe"

	"github.com/godynamo/godynamo/bytecode/translate"
	"github.com/godynamo/godynamo/cache"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"go.uber.org/zap"
)

// gdInit is the symbol that _C looks up. It stores the core's functions and writes the functions of this
// library to out. It returns 0, or -1 on an ABI mismatch.
//
//export gdInit
func gdInit(core *C.gd_core_api, out *C.gd_golib_api) (status C.int) {
	defer func() {
		if recover() != nil {
			status = -1
		}
	}()
	if core.abi != C.GD_ABI_VERSION {
		return -1
	}
	C.gdb_set_core(core)
	C.gdb_fill_golib(out)
	py.LearnKinds()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	return 0
}

// collectAt is the value of GOGC that lets Go's heap grow to 32 MB before the first collection (Go's minimum
// is 4 MB at 100 %). Almost everything that a translation allocates is garbage at its end, so collecting
// early wastes time: `make bench BENCH_ARGS="--only capture"` under GOGC=100 shows the difference.
const collectAt = 800

// gdTranslate translates one frame; see gd_request and gd_reply.
//
//export gdTranslate
func gdTranslate(req *C.gd_request, reply *C.gd_reply) {
	scope := py.OpenScope()
	defer scope.Close()
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(py.NoMemory); !ok {
				report(scope, fmt.Errorf("panic: %v\n%s", r, debug.Stack()))
			}
			reply.status = C.GD_PASS
			reply.entry = nil
		}
	}()
	status, entry := translateRequest(scope, req)
	reply.status = C.int32_t(status)
	reply.entry = (*C.PyObject)(entry)
}

func object(p *C.PyObject) py.Object { return py.At(unsafe.Pointer(p)) }

// translateRequest handles one cache miss from end to end. It returns a GD_* status and, with GD_OK, the entry as
// a new reference.
func translateRequest(s *py.Scope, req *C.gd_request) (int, unsafe.Pointer) {
	t, inst, err := newTranslation(s, req)
	if err != nil {
		report(s, err)
		return C.GD_PASS, nil
	}
	t.beginTrace()
	t.showSteps()
	inst.trace = t.trace
	stored := t.openStored()
	defer stored.close()
	if stored != nil {
		if entry, ok := stored.load(t, inst); ok {
			t.entry = entry
			t.tell(statusLoaded, nil)
			return C.GD_OK, entry.Ptr()
		}
		if C.gdb_interrupted() != 0 {
			return t.failed(errMissing), nil
		}
	}
	g, err := t.translate(inst)
	if err != nil {
		stored.leave(err)
		return t.failed(err), nil
	}
	if stored != nil {
		stored.save(t, inst, g)
	}
	if t.settings.watched&watchedDebug != 0 {
		logger(s).Debug("translated", zap.String("code", codeName(s, t.frame.Code)), zap.Int("ops", t.result.NumOps),
			zap.Int("nodes", len(t.result.Program.Nodes)),
			zap.Float64("us", float64(time.Since(t.started).Nanoseconds())/1e3))
	}
	t.tell("ok", nil)
	return C.GD_OK, t.entry.Ptr()
}

// newTranslation reads a request.
func newTranslation(s *py.Scope, req *C.gd_request) (*translation, *installer, error) {
	function := object(req.function)
	code, _ := s.FunctionField(function, py.FuncCode)
	globals, _ := s.FunctionField(function, py.FuncGlobals)
	f := &translate.Frame{Function: function, Code: code, Globals: globals, NumArgs: int(req.nargs)}
	builtins, err := s.GetAttr(function, "__builtins__")
	if err != nil {
		return nil, nil, err
	}
	f.Builtins = builtins
	f.Inner = req.kind == C.GD_FRAME_HOOK
	if req.kind == C.GD_FRAME_RESUME {
		f.Origin = readOrigin(s, function)
	}
	for _, p := range unsafe.Slice((**C.PyObject)(unsafe.Pointer(req.slots)), int(req.nslots)) {
		f.Slots = append(f.Slots, object(p))
	}
	settings, err := readSettings(s, object(req.options))
	if err != nil {
		return nil, nil, err
	}
	if f.Varied, err = readVaried(s, req, f); err != nil {
		return nil, nil, err
	}
	t := &translation{scope: s, settings: settings, frame: f, request: req, started: time.Now()}
	inst := &installer{owner: object(req.owner), globals: globals, builtins: builtins}
	f.FromSizes, err = inst.readSizePlaces(s, f)
	return t, inst, err
}

// translate translates the frame and makes the entry.
func (t *translation) translate(inst *installer) (*cache.GuardedCode, error) {
	s, f, settings := t.scope, t.frame, t.settings
	convert := translate.ConvertFrame(settings.backend, &settings.Options, inst)
	if settings.NoPython {
		convert = translate.ConvertFrameAssert(settings.backend, true, &settings.Options, inst)
	}
	var g *cache.GuardedCode
	var entry py.Object
	var err error
	for attempt := 0; attempt < 2; attempt++ {
		t.result, err = convert(s, f, int(t.request.nentries))
		// No mode was active at the start. If one is active now, an exception from outside has interrupted
		// torch's code inside the mode.
		if err == nil && C.gdb_mode_active() != 0 {
			err = &exc.SkipFrame{Reason: "a torch mode was left entered", Later: true}
		}
		if err == nil {
			settings.Clock.Begin(translate.Installing)
			if g, err = guarded(s, f, t.result); err == nil {
				entry, err = g.Install(s, inst, f.Slots, f.Globals)
			}
			settings.Clock.End()
		}
		if !errors.Is(err, cache.ErrGuardFails) {
			// after ErrGuardFails, try once more: another thread may have changed the objects that were
			// examined
			break
		}
	}
	if err == nil {
		err = inst.keepSizePlaces(s, t.result.SizePlaces)
	}
	if err == nil {
		t.entry = entry
	}
	return g, err
}

// codeName returns a code object's qualified name, for logs.
func codeName(s *py.Scope, code py.Object) string {
	v, ok := py.Answered(s.GetAttr(code, "co_qualname"))
	if !ok {
		return "?"
	}
	return py.GoString(v)
}

// failed maps an error of the translation to the status that tells C how to continue.
func (t *translation) failed(err error) int {
	var unsupported *exc.Unsupported
	var skip *exc.SkipFrame
	var raised *exc.Raised
	var python *py.Error
	switch {
	// the call was interrupted from outside, which is no failure of the translation; the core knows how to
	// continue
	case C.gdb_interrupted() != 0:
		t.endTrace("raised", err)
		return C.GD_RAISE
	case errors.As(err, &skip) && skip.Later:
		t.tell("later", skip)
		return C.GD_PASS
	case errors.As(err, &skip):
		t.tell("skipped", skip)
		if t.settings.NoPython {
			return t.raiseUnsupported(skip.Reason, nil)
		}
		if skip.Always && skip.Code == exc.TooLarge {
			return C.GD_SKIP_HERE
		}
		if skip.Always {
			return C.GD_SKIP
		}
		return C.GD_LEAVE
	case translate.AsUnsupported(err, &unsupported):
		t.tell("skipped", unsupported)
		if t.settings.NoPython || unsupported.Forbidden {
			return t.raiseUnsupported(unsupported.Reason(), unsupported)
		}
		return C.GD_LEAVE
	case errors.As(err, &raised):
		t.endTrace("raised", err)
		return C.GD_RAISE
	case errors.As(err, &python):
		if t.userError(python) {
			t.endTrace("raised", err)
			t.scope.Restore(python)
			return C.GD_RAISE
		}
	}
	t.endTrace("error", err)
	report(t.scope, err)
	return C.GD_PASS
}

// report counts and logs an internal error; the frame runs in CPython.
func report(s *py.Scope, err error) {
	if C.gdb_interrupted() != 0 {
		return
	}
	logger(s).Debug("internal error", zap.Error(err))
	m, ok := py.Answered(s.Import("godynamo._called.runtime"))
	if !ok {
		return
	}
	d, e := s.Dict([2]py.Object{s.Name("error"), s.Str(err.Error())})
	if e == nil {
		_, e = s.CallMethod(m, "internal_error", d)
	}
	if e != nil {
		logger(s).Debug("an internal error could not be counted", zap.Error(e))
	}
}
