/* Shows values in the messages of failed guards. This runs no user code: a value of an exact builtin type
 * is shown by its repr, a container by its first items, any other object by its type or name. */
#include "guards/show.h"

enum { MAX_ITEMS = 8, MAX_TEXT = 160, KEPT_AT_END = 40 };

/* Cuts out the middle of a long text. Steals the text. Returns a new str, or NULL with an exception set. */
static PyObject *
shortened(PyObject *text)
{
    Py_ssize_t n = text != NULL ? PyUnicode_GET_LENGTH(text) : 0;
    if (n <= MAX_TEXT) {
        return text;
    }
    PyObject *head = PyUnicode_Substring(text, 0, MAX_TEXT - KEPT_AT_END - 3);
    PyObject *tail = PyUnicode_Substring(text, n - KEPT_AT_END, n);
    PyObject *out = head != NULL && tail != NULL ? PyUnicode_FromFormat("%U...%U", head, tail) : NULL;
    Py_XDECREF(head);
    Py_XDECREF(tail);
    Py_DECREF(text);
    return out;
}

/* Returns the repr of a value that is_plain accepts as a new str, or NULL with an exception set. */
static PyObject *
show_plain(PyObject *v)
{
    PyTypeObject *type = Py_TYPE(v);
    PyObject *part = NULL;
    if (type == &PyUnicode_Type && PyUnicode_GET_LENGTH(v) > 4 * MAX_TEXT) {
        part = PyUnicode_Substring(v, 0, 4 * MAX_TEXT);
    }
    else if (type == &PyBytes_Type && PyBytes_GET_SIZE(v) > 4 * MAX_TEXT) {
        part = PyBytes_FromStringAndSize(PyBytes_AS_STRING(v), 4 * MAX_TEXT);
    }
    PyObject *repr = PyObject_Repr(part != NULL ? part : v);
    Py_XDECREF(part);
    if (repr == NULL && type == &PyLong_Type) { /* more digits than sys.set_int_max_str_digits allows */
        PyErr_Clear();
        return PyUnicode_FromString("an int of many digits");
    }
    return shortened(repr);
}

static int
is_plain(PyObject *v)
{
    PyTypeObject *type = Py_TYPE(v);
    return v == Py_None || v == Py_Ellipsis || type == &PyLong_Type || type == &PyBool_Type || type == &PyFloat_Type
           || type == &PyComplex_Type || type == &PyUnicode_Type || type == &PyBytes_Type || type == &PyRange_Type;
}

static int
is_container(PyObject *v)
{
    return PyTuple_CheckExact(v) || PyList_CheckExact(v) || PyAnySet_CheckExact(v) || PyDict_CheckExact(v);
}

static Py_ssize_t
container_size(PyObject *v)
{
    return PyDict_CheckExact(v) ? PyDict_GET_SIZE(v) : PyAnySet_CheckExact(v) ? PySet_GET_SIZE(v) : Py_SIZE(v);
}

static const char *
brackets_of(PyObject *v)
{
    return PyTuple_CheckExact(v) ? "()" : PyList_CheckExact(v) ? "[]" : "{}";
}

/* Shows an item of a container. A nested container is only shown by its brackets, since the nesting may be
 * deep. v: borrowed; it stays alive, since showing a value runs no code that could drop it. Returns a new
 * str, or NULL with an exception set. */
static PyObject *
show_item(PyObject *v)
{
    if (!is_container(v)) {
        return gd_show_value(v);
    }
    const char *brackets = brackets_of(v);
    return PyUnicode_FromFormat(container_size(v) > 0 ? "%c...%c" : "%c%c", brackets[0], brackets[1]);
}

/* Shows an item of a dict. Returns a new str, or NULL with an exception set. */
static PyObject *
show_pair(PyObject *key, PyObject *value)
{
    PyObject *k = show_item(key), *v = show_item(value);
    PyObject *out = k != NULL && v != NULL ? PyUnicode_FromFormat("%U: %U", k, v) : NULL;
    Py_XDECREF(k);
    Py_XDECREF(v);
    return out;
}

/* Returns the item at *at as a new str and advances *at. Returns NULL at the end, or with an exception set. */
static PyObject *
next_item(PyObject *v, Py_ssize_t *at)
{
    PyObject *key, *value;
    Py_hash_t hash;
    if (PyDict_CheckExact(v)) {
        return PyDict_Next(v, at, &key, &value) ? show_pair(key, value) : NULL;
    }
    if (PyAnySet_CheckExact(v)) {
        return _PySet_NextEntry(v, at, &key, &hash) ? show_item(key) : NULL;
    }
    Py_ssize_t i = (*at)++;
    return i < Py_SIZE(v) ? show_item(PySequence_Fast_GET_ITEM(v, i)) : NULL;
}

/* Shows the first items of a container in brackets. Returns a new str, or NULL with an exception set. */
static PyObject *
show_container(PyObject *v)
{
    Py_ssize_t size = container_size(v), at = 0;
    const char *brackets = brackets_of(v);
    PyObject *text = PyUnicode_FromFormat("%c", brackets[0]);
    for (int i = 0; text != NULL && i < MAX_ITEMS && i < size; i++) {
        PyObject *item = next_item(v, &at);
        if (item == NULL) {
            break;
        }
        if (i > 0) {
            PyUnicode_AppendAndDel(&text, PyUnicode_FromString(", "));
        }
        PyUnicode_AppendAndDel(&text, item); /* releases `item` even if `text` is NULL */
    }
    if (text == NULL || PyErr_Occurred()) {
        Py_XDECREF(text);
        return NULL;
    }
    int one = PyTuple_CheckExact(v) && size == 1;
    PyUnicode_AppendAndDel(&text, size > MAX_ITEMS ? PyUnicode_FromFormat(", ... %zd in all%c", size, brackets[1])
                                                   : PyUnicode_FromFormat(one ? ",%c" : "%c", brackets[1]));
    return shortened(text);
}

PyObject *
gd_show_value(PyObject *v)
{
    if (v == NULL) {
        return PyUnicode_FromString("nothing");
    }
    if (is_plain(v)) {
        return show_plain(v);
    }
    if (is_container(v)) {
        return show_container(v);
    }
    if (PyType_Check(v)) {
        return PyUnicode_FromString(((PyTypeObject *)v)->tp_name);
    }
    if (PyFunction_Check(v) || PyCode_Check(v)) {
        PyCodeObject *code = (PyCodeObject *)(PyCode_Check(v) ? v : ((PyFunctionObject *)v)->func_code);
        return PyUnicode_FromFormat("%s %U (%U:%d)", PyCode_Check(v) ? "the code of" : "function", code->co_qualname,
                                    code->co_filename, code->co_firstlineno);
    }
    if (PyCFunction_Check(v)) {
        return PyUnicode_FromFormat("builtin %s", ((PyCFunctionObject *)v)->m_ml->ml_name);
    }
    return PyUnicode_FromFormat("a %s object", Py_TYPE(v)->tp_name);
}

PyObject *
gd_guard_constant(gd_GuardedCode *e, uint32_t a)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(e->strong); i++) {
        if (PyTuple_GET_ITEM(e->strong, i) == e->consts[a]) {
            return e->consts[a];
        }
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(e->weakrefs); i++) {
        if (PyWeakref_GET_OBJECT(PyTuple_GET_ITEM(e->weakrefs, i)) == e->consts[a]) {
            return e->consts[a];
        }
    }
    return NULL;
}
