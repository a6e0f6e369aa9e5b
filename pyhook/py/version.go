package py

// #include <Python.h>
import "C"

// Major and Minor are the version of the Python whose headers the library is compiled with. The library serves this
// version only.
const (
	Major = int(C.PY_MAJOR_VERSION)
	Minor = int(C.PY_MINOR_VERSION)
)
