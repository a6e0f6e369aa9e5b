/* See code_data.h. */
#include "code_data.h"

#if PY_VERSION_HEX < 0x030E0000

static Py_ssize_t extra_index = -1;

int
gd_code_data_init(void (*release)(void *))
{
    if (extra_index < 0) {
        extra_index = _PyEval_RequestCodeExtraIndex(release);
        if (extra_index < 0) {
            PyErr_SetString(PyExc_ImportError, "godynamo: CPython has no free slot for data on code objects");
            return -1;
        }
    }
    return 0;
}

void *
gd_code_data_get(PyCodeObject *code)
{
    void *data = NULL;
    if (_PyCode_GetExtra((PyObject *)code, extra_index, &data) < 0) {
        PyErr_Clear();
        return NULL;
    }
    return data;
}

int
gd_code_data_set(PyCodeObject *code, void *data)
{
    return _PyCode_SetExtra((PyObject *)code, extra_index, data);
}

#else

/* A row of the hash table, which uses linear probing and is at most half full. */
typedef struct {
    PyCodeObject *code; /* borrowed; NULL if the row is free. on_code removes it when the code object dies */
    void *data;
} row;

static struct {
    row *rows;
    size_t capacity; /* a power of two, or 0 */
    size_t used;
    int shift; /* 64 minus the base-2 logarithm of the capacity */
    void (*release)(void *);
} table;

/* Returns the place at which the search for the code object begins. */
static inline size_t
home(PyCodeObject *code)
{
    return (size_t)(((uint64_t)(uintptr_t)code * UINT64_C(0x9E3779B97F4A7C15)) >> table.shift);
}

/* Returns the code object's row or, if it has none, the free row for it. The table has a free row. */
static inline row *
find(PyCodeObject *code)
{
    size_t i = home(code);
    while (table.rows[i].code != NULL && table.rows[i].code != code) {
        i = (i + 1) & (table.capacity - 1);
    }
    return &table.rows[i];
}

void *
gd_code_data_get(PyCodeObject *code)
{
    return table.capacity > 0 ? find(code)->data : NULL;
}

/* Doubles the table. Returns 0, or -1 with MemoryError set and the table as it was. */
static int
grow(void)
{
    row *old = table.rows;
    size_t n = table.capacity;
    row *rows = PyMem_RawCalloc(n > 0 ? n * 2 : 1024, sizeof(row));
    if (rows == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    table.shift = n > 0 ? table.shift - 1 : 64 - 10;
    table.capacity = n > 0 ? n * 2 : 1024;
    table.rows = rows;
    for (size_t i = 0; i < n; i++) {
        if (old[i].code != NULL) {
            *find(old[i].code) = old[i];
        }
    }
    PyMem_RawFree(old);
    return 0;
}

int
gd_code_data_set(PyCodeObject *code, void *data)
{
    if (table.used >= table.capacity / 2 && grow() < 0) {
        return -1;
    }
    *find(code) = (row){code, data};
    table.used++;
    return 0;
}

/* Removes a row. Later rows of the same probe sequence move forward, so that a search still reaches them. */
static void
remove_row(size_t hole)
{
    size_t mask = table.capacity - 1;
    for (size_t i = (hole + 1) & mask; table.rows[i].code != NULL; i = (i + 1) & mask) {
        /* The row may move if its search begins at the hole or before it. */
        if (((i - home(table.rows[i].code)) & mask) >= ((i - hole) & mask)) {
            table.rows[hole] = table.rows[i];
            hole = i;
        }
    }
    table.rows[hole] = (row){NULL, NULL};
    table.used--;
}

/* CPython calls this when a code object is made or dies. */
static int
on_code(PyCodeEvent event, PyCodeObject *code)
{
    if (event == PY_CODE_EVENT_DESTROY && table.capacity > 0) {
        row *r = find(code);
        if (r->code != NULL) {
            void *data = r->data;
            remove_row((size_t)(r - table.rows));
            table.release(data);
        }
    }
    return 0;
}

int
gd_code_data_init(void (*release)(void *))
{
    if (table.release == NULL) {
        if (PyCode_AddWatcher(on_code) < 0) {
            PyErr_SetString(PyExc_ImportError, "godynamo: CPython has no free number for a watcher of code objects");
            return -1;
        }
        table.release = release;
    }
    return 0;
}

#endif
