/* CPython 3.14: versions of dicts, which 3.14 no longer has. A dict watcher gives a dict a new version before each of
 * its changes. The version is in the upper half of _ma_watcher_tag, which only free-threaded builds use. */
#include "pycompat.h"

static int watcher = -1;      /* the number of our watcher; -1 if all numbers are taken */
static uint32_t last_version; /* of any dict */

/* Gives a dict a new version. Once all versions are used up, a changed dict has none any more. */
static void
renew(PyDictObject *dict)
{
    last_version += last_version != UINT32_MAX;
    uint64_t version = last_version != UINT32_MAX ? last_version : 0;
    dict->_ma_watcher_tag = (uint32_t)dict->_ma_watcher_tag | version << GD_DICT_VERSION_SHIFT;
}

static int
before_change(PyDict_WatchEvent event, PyObject *dict, PyObject *Py_UNUSED(key), PyObject *Py_UNUSED(value))
{
    if (event != PyDict_EVENT_DEALLOCATED) {
        renew((PyDictObject *)dict);
    }
    return 0;
}

int
gd_dict_start_versions(PyObject *dict)
{
    if (watcher < 0 || last_version == UINT32_MAX) {
        return 0;
    }
    if (PyDict_Watch(watcher, dict) < 0) {
        PyErr_Clear();
        return 0;
    }
    renew((PyDictObject *)dict);
    return gd_dict_has_version(dict);
}

int
gd_dict_versions_init(void)
{
    if (watcher < 0) {
        watcher = PyDict_AddWatcher(before_change);
        if (watcher < 0) {
            PyErr_Clear(); /* guards then read the dicts themselves */
        }
    }
    return 0;
}
