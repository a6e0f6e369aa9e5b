/* Implements torch/torch_symbols.h. Python loads extension modules with RTLD_LOCAL, so symbols are looked up in
 * torch's own libraries. */
#define _GNU_SOURCE
#include "torch/torch_symbols.h"

#include "runtime.h"

#include <dlfcn.h>
#include <link.h>

static void *libraries[3];

static const char *const library_names[] = {"libc10.so", "libtorch_cpu.so", "libtorch_python.so"};

/* dl_iterate_phdr callback: opens the mapped libraries of torch. */
static int
find_library(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    const char *base = strrchr(info->dlpi_name, '/');
    for (size_t i = 0; base != NULL && i < 3; i++) {
        if (libraries[i] == NULL && strcmp(base + 1, library_names[i]) == 0) {
            libraries[i] = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
        }
    }
    return 0;
}

void *
gd_torch_symbol(const char *name)
{
    if (libraries[0] == NULL || libraries[1] == NULL || libraries[2] == NULL) {
        dl_iterate_phdr(find_library, NULL);
    }
    for (size_t i = 0; i < 3; i++) {
        void *address = libraries[i] != NULL ? dlsym(libraries[i], name) : NULL;
        if (address != NULL) {
            return address;
        }
    }
    return dlsym(RTLD_DEFAULT, name);
}

PyObject *
gd_torch_attribute(const char *path)
{
    PyObject *value = gd_import("torch");
    while (value != NULL && *path != '\0') {
        size_t length = strcspn(path, ".");
        PyObject *name = PyUnicode_FromStringAndSize(path, (Py_ssize_t)length);
        PyObject *next = name != NULL ? PyObject_GetAttr(value, name) : NULL;
        Py_XDECREF(name);
        Py_DECREF(value);
        value = next;
        path += length + (path[length] == '.');
    }
    return value;
}
