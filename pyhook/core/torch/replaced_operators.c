/* Implements torch/replaced_operators.h. */
#include "torch/replaced_operators.h"

#include <string.h>

#include "torch/torch_symbols.h"

/* The operators without their overloads; those in place end in an underscore. */
static const char *const operators[] = {"add",
                                        "sub",
                                        "mul",
                                        "div",
                                        "addcmul",
                                        "addcdiv",
                                        "lerp",
                                        "copy",
                                        "zero",
                                        "sqrt",
                                        "neg",
                                        "abs",
                                        "relu",
                                        "reciprocal",
                                        "rsub",
                                        "clamp_min",
                                        "_local_scalar_dense",
                                        "empty"};

/* Reports whether an entry of torch.library, "aten/add.Tensor/CPU", is a kernel for such an operator. */
static int
replaces(const char *entry)
{
    if (strncmp(entry, "aten/", 5) != 0) {
        return 0;
    }
    const char *name = entry + 5, *key = strrchr(name, '/');
    size_t length = strcspn(name, "./");
    if (key == NULL || strcmp(key, "/Meta") == 0 || strstr(key, "CUDA") != NULL) {
        return 0;
    }
    length -= length > 0 && name[length - 1] == '_';
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        if (strlen(operators[i]) == length && memcmp(operators[i], name, length) == 0) {
            return 1;
        }
    }
    return 0;
}

/* With more removed entries, the operators count as replaced. */
enum { MOST_REMOVED = 64 };

/* What changes in the set if an entry is added: the counts, or else a place that another entry has left. */
static struct {
    Py_ssize_t used, fill;
    const setentry *table;
    int nremoved;
    const setentry *removed[MOST_REMOVED];
} seen;

static inline int
is_removed(const setentry *entry)
{
    return entry->key != NULL && entry->hash == -1;
}

static inline int
is_as_seen(const PySetObject *so)
{
    int same = so->used == seen.used && so->fill == seen.fill && so->table == seen.table;
    for (int i = 0; same && i < seen.nremoved; i++) {
        same = is_removed(seen.removed[i]);
    }
    return same;
}

/* Looks at all entries. Returns whether one of them replaces an operator. */
static int
look(const PySetObject *so)
{
    int replaced = 0;
    seen.used = so->used;
    seen.fill = so->fill;
    seen.table = so->table;
    seen.nremoved = 0;
    for (const setentry *entry = so->table; entry <= so->table + so->mask; entry++) {
        if (is_removed(entry)) {
            if (seen.nremoved == MOST_REMOVED) {
                return 1;
            }
            seen.removed[seen.nremoved++] = entry;
        }
        else if (entry->key != NULL && PyUnicode_CheckExact(entry->key)) {
            const char *text = PyUnicode_AsUTF8(entry->key);
            replaced = replaced || (text != NULL && replaces(text));
        }
    }
    return replaced;
}

int
gd_operators_replaced(void)
{
    static PyObject *entries; /* strong: a set of str, or None if this torch has none */
    static int replaced;
    if (GD_UNLIKELY(entries == NULL)) {
        entries = gd_torch_attribute("library._impls");
        PyErr_Clear();
        if (entries == NULL || !PySet_CheckExact(entries)) {
            Py_XSETREF(entries, Py_NewRef(Py_None));
        }
    }
    if (GD_UNLIKELY(entries == Py_None)) {
        return 1;
    }
    const PySetObject *so = (const PySetObject *)entries;
    if (GD_UNLIKELY(!is_as_seen(so))) {
        replaced = look(so);
        PyErr_Clear();
    }
    return replaced;
}
