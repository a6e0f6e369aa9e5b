package pyhook

// #include <stdlib.h>
// #include "bridge.h"
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
	"unsafe"

	"github.com/godynamo/godynamo/cache"
	"github.com/godynamo/godynamo/cache/disk"
	"github.com/godynamo/godynamo/cache/record"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
	"github.com/zeebo/blake3"
	"go.uber.org/zap"
)

// stored is the folder of translations, as one miss uses it.
type stored struct {
	store *disk.Store
	key   disk.Key
	meta  disk.Meta
	lock  *disk.Lock // held while this process translates; nil if another one does, or if no file can be written
	why   error      // why the last file that was tried does not fit
	uses  *keyUses
}

// keyUses says what one process has done with a key of a folder. A program may make thousands of functions from one
// code object, of which each needs a translation of its own: then neither trying other functions' files nor storing
// more is worth it.
type keyUses struct {
	wasted time.Duration // by tries to load since the last one that was successful
	failed int           // the number of these tries
	stored int
}

const (
	// mostWasted bounds keyUses.wasted, if more than mostFailed tries have failed: on a busy machine one try may take
	// that long.
	mostWasted = 50 * time.Millisecond
	mostFailed = 4
	// mostStored bounds keyUses.stored. It is the number of files of a key.
	mostStored = disk.MaxFiles
)

var usesOf = map[keyIn]*keyUses{}

type keyIn struct {
	store *disk.Store
	key   disk.Key
}

// stores has the open folders by path. It is never closed: a Store holds no file open.
var stores = map[string]*disk.Store{}

// openStored returns the folder of translations and the key of this miss, or nil if translations are not stored or
// this one cannot be.
func (t *translation) openStored() *stored {
	dir := t.settings.cacheDir
	if dir == "" || t.settings.watched&(watchedExplain|watchedTrace|watchedBisect|showAny) != 0 {
		return nil
	}
	s := t.scope
	store, ok := stores[dir]
	if !ok {
		var err error
		if store, err = disk.Open(dir, int64(t.settings.cacheMiB)<<20); err != nil {
			logger(s).Warn("translations are not stored: " + err.Error())
		} else if !store.Exists() { // without a home that can be written
			store = nil
		}
		stores[dir] = store // nil after an error, which is then reported once
	}
	if store == nil {
		return nil
	}
	// The first World imports the translator's modules. A process that only loads translations does not need them.
	if t.frame.Origin != nil {
		w, err := variables.NewWorld(s)
		if err != nil {
			t.unstored(err)
			return nil
		}
		t.frame.FindLoud(w, s) // before the guards of stored translations read the frame
	}
	parts, err := t.keyParts()
	if err != nil {
		t.unstored(err)
		return nil
	}
	return t.storedIn(store, parts)
}

// storedIn returns what load and save need.
func (t *translation) storedIn(store *disk.Store, parts []disk.Part) *stored {
	s, out := t.scope, &stored{store: store}
	h := blake3.New()
	for _, p := range parts {
		for _, text := range [2]string{p.Name, p.Value} {
			var length [8]byte
			binary.LittleEndian.PutUint64(length[:], uint64(len(text)))
			_, _ = h.Write(length[:])
			_, _ = h.WriteString(text)
		}
	}
	copy(out.key[:], h.Sum(nil))
	at := keyIn{store, out.key}
	if out.uses = usesOf[at]; out.uses == nil {
		out.uses = &keyUses{}
		usesOf[at] = out.uses
	}
	out.meta = disk.Meta{Function: codeName(s, t.frame.Code), Parts: parts, Backend: t.settings.backend.Name()}
	for _, p := range parts {
		switch p.Name {
		case "python":
			out.meta.Python = p.Value
		case "torch":
			out.meta.Torch = p.Value
		case "godynamo":
			out.meta.Godynamo = p.Value
		}
	}
	if v, ok := py.Answered(s.GetAttr(t.frame.Code, "co_filename")); ok {
		out.meta.File = py.GoString(v)
	}
	if v, ok := py.Answered(s.GetAttr(t.frame.Code, "co_firstlineno")); ok {
		line, _ := py.AsInt(v)
		out.meta.Line = int(line)
	}
	return out
}

// keyParts returns the parts of the key.
func (t *translation) keyParts() ([]disk.Part, error) {
	s := t.scope
	m, err := s.Import("godynamo._stored.keys")
	if err != nil {
		return nil, err
	}
	origin := py.None()
	if t.frame.Origin != nil {
		if origin, err = s.GetAttr(t.frame.Function, originAttr); err != nil {
			return nil, err
		}
	}
	list, err := s.CallMethod(m, "parts", t.frame.Function, origin, object(t.request.options),
		s.Int(int64(t.request.kind)), t.firstType())
	if err != nil {
		return nil, err
	}
	var out []disk.Part
	for _, p := range s.Items(list) {
		pair := s.Items(p)
		out = append(out, disk.Part{Name: py.GoString(pair[0]), Value: py.GoString(pair[1])})
	}
	return out, nil
}

// unstored logs why a translation is not stored.
func (t *translation) unstored(why error) {
	if t.settings.watched&watchedDebug != 0 {
		logger(t.scope).Debug("not stored", zap.String("code", codeName(t.scope, t.frame.Code)), zap.Error(why))
	}
}

// load returns the entry of a stored translation whose guards hold on the frame, as a new reference. If there is none,
// it locks the key, so that processes that start at once wait for this one's translation. The caller calls close.
//
// Keys of frames of the hook are not locked: there may be thousands of small ones, and little is lost if two processes
// translate one of them.
func (f *stored) load(t *translation, inst *installer) (py.Object, bool) {
	if f.uses.wasted > mostWasted && f.uses.failed > mostFailed {
		return py.Object{}, false
	}
	begun := time.Now()
	tried := map[string]bool{}
	entry, ok := f.fitting(t, inst, tried)
	f.uses.wasted, f.uses.failed = f.uses.wasted+time.Since(begun), f.uses.failed+1
	if ok {
		f.uses.wasted, f.uses.failed = 0, 0
	}
	if ok || C.gdb_interrupted() != 0 || t.frame.Inner {
		return entry, ok
	}
	for end := time.Now().Add(longestWait); len(tried) == 0 && f.store.Reason(f.key) == ""; {
		var err error
		if f.lock, err = f.store.Lock(f.key); !errors.Is(err, disk.ErrLocked) || time.Now().After(end) {
			break
		}
		if !f.pause(t) {
			break
		}
	}
	if entry, ok = f.fitting(t, inst, tried); !ok {
		f.miss()
	}
	return entry, ok
}

// longestWait bounds the wait for another process's translation. A compiler may take minutes; waiting for it would be
// slower than running the translator.
const longestWait = 10 * time.Second

// pause lets other threads run for some milliseconds. It returns false if the call has been interrupted.
func (f *stored) pause(t *translation) bool {
	m, ok := py.Answered(t.scope.Import("godynamo._stored.keys"))
	if ok {
		_, ok = py.Answered(t.scope.CallMethod(m, "pause", t.scope.Float(0.005)))
	}
	return ok && C.gdb_interrupted() == 0
}

// fitting tries the files of the key that have not been tried. Translations with a graph break come last: the break may
// have reasons that no guard compares, such as a logger's handlers.
func (f *stored) fitting(t *translation, inst *installer, tried map[string]bool) (py.Object, bool) {
	var entry py.Object
	fits := func(rec *record.Record) bool {
		var err error
		if entry, err = inst.restored(t.scope, t.frame, rec, t.settings.backend); err != nil {
			f.why = err
		} else {
			used[f.key] = true
		}
		return err == nil
	}
	var broken []*record.Record
	for _, file := range f.store.Files(f.key) {
		if tried[file.Name] {
			continue
		}
		tried[file.Name] = true
		_, data, err := f.store.Read(file)
		var rec *record.Record
		if err == nil {
			rec, err = record.Decode(data)
		}
		switch {
		case err != nil:
			f.why = err
		case rec.Flags.Breaks:
			broken = append(broken, rec)
		case fits(rec):
			return entry, true
		}
		if C.gdb_interrupted() != 0 {
			return py.Object{}, false
		}
	}
	for _, rec := range broken {
		if fits(rec) {
			return entry, true
		}
		if C.gdb_interrupted() != 0 {
			break
		}
	}
	return py.Object{}, false
}

// miss notes why no translation was loaded, for `godynamo cache why`.
func (f *stored) miss() {
	why := "no translation is stored"
	if f.why != nil {
		why = f.why.Error()
	} else if r := f.store.Reason(f.key); r != "" {
		why = r
	}
	_ = f.store.Miss(disk.Record{Function: f.meta.Function, File: f.meta.File, Line: f.meta.Line,
		Parts: f.meta.Parts, Reason: why})
}

// leave notes that the frame is not translated, so that other processes do not wait for each other's attempts.
func (f *stored) leave(why error) {
	if f != nil && f.lock != nil {
		_ = f.store.PutReason(f.key, "it is not translated: "+why.Error())
	}
}

// close releases the key for other processes.
func (f *stored) close() {
	if f != nil {
		f.lock.Unlock()
	}
}

// save stores a finished translation, unless it is a small one of a frame of the hook.
func (f *stored) save(t *translation, inst *installer, g *cache.GuardedCode) {
	small := t.frame.Inner && time.Since(t.started) < time.Duration(t.settings.cacheMinMS)*time.Millisecond
	if small || f.uses.stored >= mostStored {
		return
	}
	rec, err := inst.recorded(t.scope, t.frame, g, t.result, t.settings.backend)
	var data []byte
	if err == nil {
		data, err = rec.Encode()
	}
	if err == nil {
		err = f.store.Put(f.key, f.meta, data)
	}
	if err == nil {
		used[f.key] = true
		f.uses.stored++
		return
	}
	t.unstored(err)
	var python *py.Error
	var refused notStored
	if f.lock != nil && (errors.As(err, &python) || errors.As(err, &refused)) {
		_ = f.store.PutReason(f.key, "it cannot be stored: "+err.Error())
	}
}

// torchState describes torch's global state, as far as guards compare it.
func torchState(s *py.Scope) string { return askKeys(s, "torch_state") }

// askKeys calls a function of godynamo._stored.keys that returns a text. If that fails, no translation is loaded, since
// no text of a file equals the result.
func askKeys(s *py.Scope, name string, args ...py.Object) string {
	m, err := s.Import("godynamo._stored.keys")
	var v py.Object
	if err == nil {
		v, err = s.CallMethod(m, name, args...)
	}
	if err != nil {
		return "unknown: " + err.Error() + time.Now().String()
	}
	return py.GoString(v)
}

// metaOf returns a tensor's metadata, or false if they are not numbers.
func metaOf(s *py.Scope, tensor py.Object) (record.Meta, bool) {
	view := (*C.gd_tensor_view)(C.calloc(1, C.sizeof_gd_tensor_view))
	defer C.free(unsafe.Pointer(view))
	if C.gdb_tensor_view((*C.PyObject)(tensor.Ptr()), view) == 0 {
		return metaInPython(s, tensor)
	}
	m := record.Meta{KeySet: uint64(view.keyset), ScalarType: int32(view.scalar_type),
		DeviceType: int32(view.device_type), DeviceIndex: int32(view.device_index),
		RequiresGrad: view.requires_grad != 0}
	for i := range int(view.ndim) {
		m.Sizes = append(m.Sizes, int64(view.sizes[i]))
		m.Strides = append(m.Strides, int64(view.strides[i]))
	}
	return m, true
}

// metaInPython is metaOf for a tensor that C cannot read.
func metaInPython(s *py.Scope, tensor py.Object) (record.Meta, bool) {
	var m record.Meta
	keys, ok := py.Answered(s.Import("godynamo._stored.keys"))
	if !ok {
		return m, false
	}
	v, ok := py.Answered(s.CallMethod(keys, "tensor_meta", tensor))
	if !ok || v.Kind() != py.Tuple {
		return m, false
	}
	parts := s.Items(v)
	for _, text := range s.Items(parts[0]) {
		m.Texts = append(m.Texts, py.GoString(text))
	}
	m.RequiresGrad = parts[1] == py.True()
	ints := func(items py.Object) (out []int64) {
		for _, item := range s.Items(items) {
			n, _ := py.AsInt(item)
			out = append(out, n)
		}
		return out
	}
	m.Sizes, m.Strides = ints(parts[2]), ints(parts[3])
	return m, true
}

// marksOf describes what mark_dynamic and its kin have noted on a tensor, or returns "".
func marksOf(s *py.Scope, tensor py.Object) string {
	d, ok := s.MadeDict(tensor)
	if !ok {
		return ""
	}
	keys, _ := s.DictItems(d)
	for _, k := range keys {
		if k.Kind() == py.Str && strings.HasPrefix(py.GoString(k), "_dynamo_") {
			return askKeys(s, "marks", d)
		}
	}
	return ""
}

// errMissing is wrapped by errors about a stored translation that does not fit this process or this frame.
var errMissing = errors.New("the stored translation does not fit")

func missing(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errMissing, fmt.Sprintf(format, args...))
}
