package pyhook

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/godynamo/godynamo/pyhook/py"
)

// logger returns the zap logger of one translation. Its core passes records to Python's logger "godynamo"
// while the scope is open; records of a named logger go to "godynamo.<name>". Nothing is buffered, so no
// record is lost when the process forks or ends.
func logger(s *py.Scope) *zap.Logger {
	return zap.New(&pythonCore{scope: s, LevelEnabler: zapcore.DebugLevel})
}

// pythonCore is a zapcore.Core that calls godynamo._called.runtime.log_record(level, logger, message, fields).
type pythonCore struct {
	zapcore.LevelEnabler
	scope  *py.Scope
	fields []zapcore.Field
}

// With implements zapcore.Core.
func (c *pythonCore) With(fields []zapcore.Field) zapcore.Core {
	return &pythonCore{c.LevelEnabler, c.scope, append(append([]zapcore.Field(nil), c.fields...), fields...)}
}

// Check implements zapcore.Core.
func (c *pythonCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return ce.AddCore(e, c)
}

// levels maps zap's levels to the numbers of Python's logging module.
var levels = map[zapcore.Level]int64{
	zapcore.DebugLevel: 10, zapcore.InfoLevel: 20, zapcore.WarnLevel: 30, zapcore.ErrorLevel: 40,
}

// Write implements zapcore.Core. A failure to log does not fail the translation.
func (c *pythonCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	s := c.scope
	var pairs [][2]py.Object
	for _, f := range append(append([]zapcore.Field(nil), c.fields...), fields...) {
		// one encoder per field, since one map for all fields would lose their order
		enc := zapcore.NewMapObjectEncoder()
		f.AddTo(enc)
		switch x := enc.Fields[f.Key].(type) {
		case string:
			pairs = append(pairs, [2]py.Object{s.Str(f.Key), s.Str(x)})
		case int64:
			pairs = append(pairs, [2]py.Object{s.Str(f.Key), s.Int(x)})
		case float64:
			pairs = append(pairs, [2]py.Object{s.Str(f.Key), s.Float(x)})
		}
	}
	d, err := s.Dict(pairs...)
	if err != nil {
		return err
	}
	m, err := s.Import("godynamo._called.runtime")
	if err != nil {
		return err
	}
	_, err = s.CallMethod(m, "log_record", s.Int(levels[e.Level]), s.Str(e.LoggerName), s.Str(e.Message), d)
	return err
}

// Sync implements zapcore.Core.
func (*pythonCore) Sync() error { return nil }
