package disk

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// holdLock holds the lock of key 1 until the process is killed.
func holdLock(dir string) error {
	s, err := Open(dir, 0)
	if err != nil {
		return err
	}
	lock, err := s.Lock(key(1))
	if err != nil {
		return err
	}
	defer lock.Unlock()
	fmt.Println("locked")
	time.Sleep(time.Minute)
	return nil
}

func TestOneProcessTranslatesAndTheOthersWait(t *testing.T) {
	s := opened(t)
	assert.True(t, s.Wait(key(1), time.Second, nil), "no folder")
	holder := child("hold a lock", s.Dir())
	out, err := holder.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, holder.Start())
	defer holder.Process.Kill()
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)

	_, err = s.Lock(key(1))
	require.ErrorIs(t, err, ErrLocked)
	other, err := s.Lock(key(2))
	require.NoError(t, err, "each key has its lock")
	other.Unlock()

	assert.False(t, s.Wait(key(1), 20*time.Millisecond, nil))
	asked := 0
	assert.False(t, s.Wait(key(1), time.Minute, func() bool { asked++; return asked == 3 }))

	killed := make(chan error, 1)
	time.AfterFunc(30*time.Millisecond, func() { killed <- holder.Process.Kill() })
	assert.True(t, s.Wait(key(1), time.Minute, nil), "the kernel releases the lock of a process that is killed")
	require.NoError(t, <-killed)
	holder.Wait()

	lock, err := s.Lock(key(1))
	require.NoError(t, err)
	_, err = s.Lock(key(1))
	require.ErrorIs(t, err, ErrLocked, "the lock is not the process's but the caller's")
	lock.Unlock()
	lock.Unlock()
	(*Lock)(nil).Unlock()
	lock, err = s.Lock(key(1))
	require.NoError(t, err)
	lock.Unlock()
}

func TestALockSurvivesItsFolder(t *testing.T) {
	s := opened(t)
	lock, err := s.Lock(key(1))
	require.NoError(t, err)
	require.NoError(t, s.Clear())
	second, err := s.Lock(key(1))
	require.NoError(t, err, "two processes may translate the same after Clear")
	second.Unlock()
	lock.Unlock()
}

func TestALockThatIsNoFile(t *testing.T) {
	for name, make := range hostile {
		t.Run(name, func(t *testing.T) {
			s := opened(t)
			file := put(t, s, key(1), "x")
			make(t, filepath.Join(filepath.Dir(s.pathOf(file)), lockName))
			_, err := s.Lock(key(1))
			assert.Error(t, err)
			assert.NotErrorIs(t, err, ErrLocked, "nobody waits for it")
			assert.True(t, s.Wait(key(1), time.Second, nil))
			assert.Len(t, s.Files(key(1)), 1)
			s.limit = 1
			s.sweep()
			assert.Empty(t, s.Files(key(1)))
		})
	}
}

func BenchmarkFilesOfAnUnknownKey(b *testing.B) {
	s, err := Open(filepath.Join(os.TempDir(), "godynamo-no-such-folder-of-translations"), 0)
	require.NoError(b, err)
	defer os.Remove(s.Dir())
	for b.Loop() {
		s.Files(key(1))
	}
}
