package disk

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func BenchmarkSweep(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "translations"), 0)
	require.NoError(b, err)
	s.roll = func() float64 { return 1 }
	const files = 1000
	for i := range files {
		require.NoError(b, s.Put(key(i), Meta{}, nil))
	}
	for b.Loop() {
		s.sweep()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/files, "µs/file")
}

func BenchmarkRead(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "translations"), 0)
	require.NoError(b, err)
	require.NoError(b, s.Put(key(1), described("f"), make([]byte, 100_000)))
	for b.Loop() {
		for _, file := range s.Files(key(1)) {
			_, _, err := s.Read(file)
			require.NoError(b, err)
		}
	}
}

func BenchmarkPut(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "translations"), 0)
	require.NoError(b, err)
	payload := make([]byte, 100_000)
	for b.Loop() {
		require.NoError(b, s.Put(key(1), described("f"), payload))
	}
}
