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

int
gd_operators_replaced(void)
{
    static PyObject *entries; /* strong: a set of str, or None if this torch has none */
    static struct {
        Py_ssize_t used, fill;
        const setentry *table;
    } seen; /* what changes if an entry is added, even after another one was removed */
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
    if (GD_LIKELY(so->used == seen.used && so->fill == seen.fill && so->table == seen.table)) {
        return replaced;
    }
    seen.used = so->used;
    seen.fill = so->fill;
    seen.table = so->table;
    replaced = 0;
    for (Py_ssize_t i = 0; i <= so->mask && !replaced; i++) {
        PyObject *key = so->table[i].key;
        const char *text = key != NULL && PyUnicode_CheckExact(key) ? PyUnicode_AsUTF8(key) : NULL;
        replaced = text != NULL && replaces(text);
    }
    PyErr_Clear();
    return replaced;
}
