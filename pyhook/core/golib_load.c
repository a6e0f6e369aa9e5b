/* Loads the Go library: see golib_load.h. */
#include "golib_load.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime.h"

/* One folder may hold the libraries of several Pythons: libgodynamo-311.so. */
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define LIBRARY_NAME "libgodynamo-" TEXT(PY_MAJOR_VERSION) TEXT(PY_MINOR_VERSION) ".so"

/* A handle is never closed, since a Go runtime cannot be unloaded. */
static struct {
    int tried;              /* a load was tried in this generation */
    int generation;         /* fork generation of the fields below */
    int ever;               /* this process or an ancestor has loaded the library: only a copy may be loaded now */
    int usable;
    gd_golib_init_fn init;  /* the init function of the copy loaded last */
    gd_golib_api api;
} lib;

/* Writes the path of the library: GODYNAMO_GOLIB, else a file next to this extension. Returns 0, or -1 if the path
 * does not fit. */
static int
library_path(char *path, size_t size)
{
    const char *given = getenv("GODYNAMO_GOLIB");
    if (given != NULL && given[0] != '\0') {
        return (size_t)snprintf(path, size, "%s", given) < size ? 0 : -1;
    }
    Dl_info info;
    if (dladdr(&lib, &info) == 0 || info.dli_fname == NULL) {
        return -1;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    int dir = slash != NULL ? (int)(slash - info.dli_fname) + 1 : 0;
    return (size_t)snprintf(path, size, "%.*s%s", dir, info.dli_fname, LIBRARY_NAME) < size ? 0 : -1;
}

/* Copies a file to a new memfd and returns its descriptor, or -1 with errno set. The descriptor is never closed:
 * the loader identifies libraries by path, and would take a second library with the same /proc path for the first. */
static int
copy_to_memfd(const char *path)
{
    int in = open(path, O_RDONLY | O_CLOEXEC);
    if (in < 0) {
        return -1;
    }
    struct stat st;
    int out = fstat(in, &st) == 0 ? memfd_create("godynamo", MFD_CLOEXEC) : -1;
    off_t left = out >= 0 ? st.st_size : -1;
    char buffer[1 << 16];
    while (left > 0) {
        ssize_t n = read(in, buffer, sizeof(buffer));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        for (ssize_t done = 0; done < n;) {
            ssize_t w = write(out, buffer + done, (size_t)(n - done));
            if (w < 0 && errno == EINTR) {
                continue;
            }
            if (w <= 0) {
                n = 0;
                break;
            }
            done += w;
        }
        if (n == 0) {
            break;
        }
        left -= n;
    }
    close(in);
    if (out >= 0 && left != 0) {
        close(out);
        errno = EIO;
        return -1;
    }
    return out;
}

/* Loads the library at path and calls its init function. Returns NULL, or the reason for the failure, a static
 * string or that of dlerror(). */
static const char *
load(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        return dlerror();
    }
    gd_golib_init_fn init = (gd_golib_init_fn)dlsym(handle, GD_GOLIB_INIT);
    if (init == NULL) {
        return "it has no function " GD_GOLIB_INIT;
    }
    if (lib.ever && init == lib.init) {
        return "the loader gave back the copy of the parent process";
    }
    lib.init = init;
    lib.ever = 1;
    gd_golib_api api = {.abi = 0};
    if (init(&gd_core, &api) != 0 || api.abi != GD_ABI_VERSION || api.size < sizeof(api) || api.translate == NULL
        || api.archive == NULL) {
        return "it was built for another version of godynamo";
    }
    lib.api = api;
    lib.usable = 1;
    GD_COUNT(golib_loads);
    return NULL;
}

/* Gives one warning per process. Even if warnings are errors, a missing library must not fail the user's call. */
static void
warn(const char *path, const char *why)
{
    if (PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "godynamo: cannot load %s (%s); everything runs in CPython", path,
                         why)
        < 0) {
        gd_swallow(NULL);
    }
}

const gd_golib_api *
gd_golib_get(void)
{
    if (lib.generation != gd_runtime.fork_generation) {
        /* The process has forked since the load: the old copy is dead. */
        lib.generation = gd_runtime.fork_generation;
        lib.usable = 0;
        lib.tried = 0;
    }
    if (lib.tried) {
        return lib.usable ? &lib.api : NULL;
    }
    if (lib.ever && !gd_runtime.fork_reload) {
        return NULL; /* not marked as tried, since the setting fork_reload may change */
    }
    lib.tried = 1;
    char path[4096];
    if (library_path(path, sizeof(path)) < 0) {
        warn(LIBRARY_NAME, "its path is unknown");
        return NULL;
    }
    const char *why;
    if (!lib.ever) {
        why = load(path);
    }
    else {
        int fd = copy_to_memfd(path);
        if (fd < 0) {
            why = strerror(errno);
        }
        else {
            /* Name the pid, not "self", since a grandchild may get the same descriptor number. */
            char copy[64];
            snprintf(copy, sizeof(copy), "/proc/%ld/fd/%d", (long)getpid(), fd);
            why = load(copy);
        }
    }
    if (why != NULL) {
        lib.usable = 0;
        warn(path, why);
    }
    return lib.usable ? &lib.api : NULL;
}

/* ---- functions for Python: they return new references, or NULL with an exception set ---- */

static PyObject *
golib_loaded(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(lib.usable && lib.generation == gd_runtime.fork_generation);
}

static PyObject *
golib_calls(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLongLong(gd_runtime.counters[GD_COUNT_golib_calls]);
}

static PyObject *
golib_path(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    char path[4096];
    if (library_path(path, sizeof(path)) < 0) {
        Py_RETURN_NONE;
    }
    return PyUnicode_DecodeFSDefault(path);
}

static PyObject *
archive(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *folder, *file, *result = NULL;
    long long limit;
    int store;
    if (!PyArg_ParseTuple(args, "O&LO&p:archive", PyUnicode_FSConverter, &folder, &limit, PyUnicode_FSConverter, &file,
                          &store)) {
        return NULL;
    }
    const gd_golib_api *api = gd_golib_get();
    char why[512] = "";
    if (api == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "godynamo: the Go library cannot be loaded");
    }
    else {
        int64_t n = api->archive(PyBytes_AS_STRING(folder), limit, PyBytes_AS_STRING(file), store, why, sizeof(why));
        if (n < 0) {
            PyErr_Format(PyExc_ValueError, "godynamo: %s", why);
        }
        else {
            result = PyLong_FromLongLong(n);
        }
    }
    Py_DECREF(folder);
    Py_DECREF(file);
    return result;
}

static PyMethodDef functions[] = {
    {"archive", archive, METH_VARARGS,
     "archive(folder, limit, file, store) -> int\n\n"
     "Writes the translations of a folder that this process uses to a file, or stores those of the file in the folder. "
     "Raises ValueError."},
    {"golib_loaded", golib_loaded, METH_NOARGS, "Whether this process has a Go library it may call."},
    {"golib_calls", golib_calls, METH_NOARGS, "How often the Go library was called."},
    {"golib_path", golib_path, METH_NOARGS, "Where the Go library is looked for."},
    {NULL, NULL, 0, NULL},
};

int
gd_golib_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
