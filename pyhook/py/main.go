package py

import python3 "github.com/DataDog/go-python3"

// Main starts CPython in a process that has none, runs its command line on this thread and ends it again. args[0] is
// the path of an interpreter: its virtual environment is the one that is used, and sys.executable. It returns the exit
// code; an error where an argument is not in the locale's encoding.
func Main(args []string) (int, error) { return python3.Py_Main(args) }
