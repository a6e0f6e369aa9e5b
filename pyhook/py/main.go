package py

import python3 "github.com/DataDog/go-python3"

// Main starts CPython in a process that has none, runs its command line on this thread and finalizes it.
// args[0] is the path of an interpreter, which becomes sys.executable and selects the virtual
// environment. Main returns the exit code, or an error if an argument is not in the locale's encoding.
func Main(args []string) (int, error) { return python3.Py_Main(args) }
