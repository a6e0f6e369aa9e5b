/* Functions that may run the user's Python on behalf of Go.
 *
 * The user's code may fork, and the call may then return in the child process. Go's runtime is dead in the
 * child: even the return into Go can hang forever, if another thread's processor or the collector was active
 * during the fork. So each function here checks, before it returns to Go, whether the process is still the one
 * in which it was called. In a child this check does not return (gd_core_api.python_returned), and Go's work
 * is abandoned.
 */
#include "helpers.h"

void (*gdpy_on_return)(void);
int (*gdpy_signals)(void);

static inline void
returned(void)
{
    if (gdpy_on_return != NULL) {
        gdpy_on_return();
    }
}

void
gdpy_forget_error(void)
{
    if (PyErr_Occurred()) {
        returned();
        PyErr_Clear();
    }
}

/* Calls the return check. result: stolen, and returned as a new reference. */
static PyObject *
object(PyObject *result)
{
    returned();
    return result;
}

static int
number(int result)
{
    returned();
    return result;
}

PyObject *
gdpy_call(PyObject *f, PyObject **args, Py_ssize_t n, PyObject *kwnames)
{
    return object(PyObject_Vectorcall(f, args, (size_t)n, kwnames));
}

/* Imports in the same way as the core's gd_import (runtime.c), for the same reason: the running frame may
 * have builtins without __import__. */
PyObject *
gdpy_import(const char *name)
{
    PyObject *text = PyUnicode_FromString(name);
    PyObject *top = text != NULL ? PyImport_ImportModuleLevelObject(text, NULL, NULL, NULL, 0) : NULL;
    PyObject *module = top != NULL ? PyImport_GetModule(text) : NULL;
    if (top != NULL && module == NULL && !PyErr_Occurred()) {
        PyErr_SetObject(PyExc_ImportError, text);
    }
    Py_XDECREF(top);
    Py_XDECREF(text);
    return object(module);
}

PyObject *
gdpy_getattr(PyObject *o, PyObject *name)
{
    return object(PyObject_GetAttr(o, name));
}

int
gdpy_setattr(PyObject *o, PyObject *name, PyObject *value)
{
    return number(PyObject_SetAttr(o, name, value));
}

static int quiet_repr(PyObject *o, int depth);

/* Reports whether quiet_repr holds for all items of a list or tuple. Returns 0 if `items` is NULL. items:
 * borrowed. */
static int
quiet_items(PyObject *items, int depth)
{
    for (Py_ssize_t i = 0; items != NULL && i < PySequence_Fast_GET_SIZE(items); i++) {
        if (!quiet_repr(PySequence_Fast_GET_ITEM(items, i), depth)) {
            return 0;
        }
    }
    return items != NULL;
}

/* Reports whether quiet_repr holds for all items of an exact set or deque. o: borrowed. */
static int
quiet_iterable(PyObject *o, int depth)
{
    PyObject *items = PySequence_List(o);
    int quiet = quiet_items(items, depth);
    Py_XDECREF(items);
    return quiet;
}

/* Reports whether quiet_repr holds for all objects in o that the C function owner.__repr__ iterates or
 * prints. o, owner: borrowed. */
static int
quiet_inside(PyObject *o, PyTypeObject *owner, int depth)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (PyMethod_Check(o)) {
        return quiet_repr(PyMethod_GET_SELF(o), depth);
    }
    if (owner == &PyTuple_Type || owner == &PyList_Type) {
        return quiet_items(o, depth);
    }
    if (owner == &PyDict_Type) {
        while (PyDict_Next(o, &at, &key, &value)) {
            if (!quiet_repr(key, depth) || !quiet_repr(value, depth)) {
                return 0;
            }
        }
        return 1;
    }
    if (owner == &PySet_Type || owner == &PyFrozenSet_Type) { /* set.__repr__ calls the __iter__ of a subclass */
        return PyAnySet_CheckExact(o) && quiet_iterable(o, depth);
    }
    if (owner == &PySlice_Type) {
        PySliceObject *s = (PySliceObject *)o;
        return quiet_repr(s->start, depth) && quiet_repr(s->stop, depth) && quiet_repr(s->step, depth);
    }
    if (owner == &Py_GenericAliasType) { /* __repr__ looks up attributes on the classes that the alias names */
        PyObject *args = Py_IS_TYPE(o, owner) ? PyObject_GetAttrString(o, "__args__") : NULL;
        int plain = args != NULL && PyTuple_Check(args);
        for (Py_ssize_t i = 0; plain && i < PyTuple_GET_SIZE(args); i++) {
            PyObject *arg = PyTuple_GET_ITEM(args, i);
            plain = PyType_CheckExact(arg) || arg == Py_Ellipsis || arg == Py_None
                    || (Py_IS_TYPE(arg, owner) && quiet_inside(arg, owner, depth + 1));
        }
        Py_XDECREF(args);
        return plain;
    }
    if (strcmp(owner->tp_name, "collections.deque") == 0) {
        return Py_IS_TYPE(o, owner) && quiet_iterable(o, depth);
    }
    static const char *const containers[] = {"collections.OrderedDict",
                                             "collections.defaultdict",
                                             "types.SimpleNamespace",
                                             "types.UnionType",
                                             "typing.Union", /* the same in 3.14 */
                                             "mappingproxy",
                                             "functools.partial",
                                             "weakref.ReferenceType",
                                             "BaseException",
                                             "ContextVar",
                                             "dict_keys",
                                             "dict_values",
                                             "dict_items",
                                             "odict_keys",
                                             "odict_values",
                                             "odict_items"};
    for (size_t i = 0; i < sizeof(containers) / sizeof(*containers); i++) {
        if (strcmp(owner->tp_name, containers[i]) == 0) {
            return 0;
        }
    }
    return 1;
}

/* Reports whether repr(o) runs no user code. A __repr__ in Python must be torch's or numpy's function. For
 * a __repr__ in C, everything that o contains is checked. o: borrowed. */
static int
quiet_repr(PyObject *o, int depth)
{
    static PyObject *repr;
    if (repr == NULL && (repr = PyUnicode_InternFromString("__repr__")) == NULL) {
        return 0;
    }
    PyObject *method = _PyType_Lookup(Py_TYPE(o), repr);
    if (method == NULL || depth > 20) {
        return 0;
    }
    if (PyFunction_Check(method)) {
        PyObject *module = PyFunction_GET_MODULE(method);
        const char *name = module != NULL && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : NULL;
        return name != NULL && (strncmp(name, "torch", 5) == 0 || strncmp(name, "numpy", 5) == 0);
    }
    if (!Py_IS_TYPE(method, &PyWrapperDescr_Type) && !Py_IS_TYPE(method, &PyMethodDescr_Type)) {
        return 0;
    }
    PyTypeObject *owner = PyDescr_TYPE(method);
    return PyType_IsSubtype(Py_TYPE(o), owner) && quiet_inside(o, owner, depth + 1);
}

/* Returns repr(o) for messages, or only the name of o's type if repr(o) would run user code. The result is
 * a new str, or NULL with an exception set. */
PyObject *
gdpy_repr(PyObject *o)
{
    if (!quiet_repr(o, 0)) {
        PyErr_Clear();
        return PyUnicode_FromFormat("<%s object>",
                                    PyType_Check(o) ? ((PyTypeObject *)o)->tp_name : Py_TYPE(o)->tp_name);
    }
    return object(PyObject_Repr(o));
}

PyObject *
gdpy_str(PyObject *o)
{
    return object(PyObject_Str(o));
}

PyObject *
gdpy_compare(int op, PyObject *a, PyObject *b)
{
    return object(PyObject_RichCompare(a, b, op));
}

int
gdpy_contains(PyObject *o, PyObject *value)
{
    return number(PySequence_Contains(o, value));
}

int
gdpy_truth(PyObject *o)
{
    return number(PyObject_IsTrue(o));
}

Py_ssize_t
gdpy_len(PyObject *o)
{
    Py_ssize_t n = PyObject_Length(o);
    returned();
    return n;
}

PyObject *
gdpy_getitem(PyObject *o, PyObject *key)
{
    return object(PyObject_GetItem(o, key));
}

int
gdpy_isinstance(PyObject *o, PyObject *cls)
{
    return number(PyObject_IsInstance(o, cls));
}

int
gdpy_issubclass(PyObject *o, PyObject *cls)
{
    return number(PyObject_IsSubclass(o, cls));
}

PyObject *
gdpy_index(PyObject *o)
{
    return object(PyNumber_Index(o));
}

int
gdpy_check_signals(void)
{
    return number(gdpy_signals != NULL ? gdpy_signals() : PyErr_CheckSignals());
}

/* Returns a ** b as a new reference, or NULL with an exception set. */
static PyObject *
power(PyObject *a, PyObject *b)
{
    return PyNumber_Power(a, b, Py_None);
}

/* Returns the result of a **= b as a new reference, or NULL with an exception set. */
static PyObject *
ipower(PyObject *a, PyObject *b)
{
    return PyNumber_InPlacePower(a, b, Py_None);
}

PyObject *
gdpy_binary(int op, PyObject *a, PyObject *b)
{
    /* in the order of NB_ADD .. NB_INPLACE_XOR in Include/opcode.h of CPython 3.11 */
    static PyObject *(*const table[])(PyObject *, PyObject *) = {
        PyNumber_Add,
        PyNumber_And,
        PyNumber_FloorDivide,
        PyNumber_Lshift,
        PyNumber_MatrixMultiply,
        PyNumber_Multiply,
        PyNumber_Remainder,
        PyNumber_Or,
        power,
        PyNumber_Rshift,
        PyNumber_Subtract,
        PyNumber_TrueDivide,
        PyNumber_Xor,
        PyNumber_InPlaceAdd,
        PyNumber_InPlaceAnd,
        PyNumber_InPlaceFloorDivide,
        PyNumber_InPlaceLshift,
        PyNumber_InPlaceMatrixMultiply,
        PyNumber_InPlaceMultiply,
        PyNumber_InPlaceRemainder,
        PyNumber_InPlaceOr,
        ipower,
        PyNumber_InPlaceRshift,
        PyNumber_InPlaceSubtract,
        PyNumber_InPlaceTrueDivide,
        PyNumber_InPlaceXor,
    };
    return object(table[op](a, b));
}

PyObject *
gdpy_unary(int op, PyObject *a)
{
    switch (op) {
    case 0:
        return object(PyNumber_Positive(a));
    case 1:
        return object(PyNumber_Negative(a));
    case 2:
        return object(PyNumber_Invert(a));
    default: {
        int t = number(PyObject_Not(a));
        return t < 0 ? NULL : PyBool_FromLong(t);
    }
    }
}

int
gdpy_take_error(PyObject **type, PyObject **value)
{
    PyObject *t, *v, *tb;
    returned(); /* the core sees every exception that Go receives */
    PyErr_Fetch(&t, &v, &tb);
    if (t == NULL) {
        *type = *value = NULL;
        return 0;
    }
    PyErr_NormalizeException(&t, &v, &tb);
    *type = t;
    *value = v;
    Py_XDECREF(tb);
    returned();
    return 1;
}
