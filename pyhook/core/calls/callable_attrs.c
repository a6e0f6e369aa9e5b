/* Attributes and methods of a Callable: see calls/callable_attrs.h. Two tables map each name to its getter or
 * field.
 *
 * Getters and methods return a new reference, or NULL with an exception set.
 */
#include "calls/callable_attrs.h"

#include <stddef.h>

#include "calls/callable.h"

/* Returns the object that the user optimized; borrowed. A `wrapped` of NULL means the function itself. */
static PyObject *
wrapped_of(gd_Callable *w)
{
    return w->wrapped != NULL ? w->wrapped : (PyObject *)w->function;
}

/* ---- names: those set on the Callable (as functools.update_wrapper does), else those of the wrapped object ---- */

static PyObject *
get_name(PyObject *op, void *name)
{
    gd_Callable *w = (gd_Callable *)op;
    if (w->dict != NULL) {
        PyObject *own = PyDict_GetItemString(w->dict, name);
        if (own != NULL) {
            return Py_NewRef(own);
        }
    }
    PyObject *of = Py_NewRef(wrapped_of(w)); /* reading the attribute may run code that replaces __wrapped__ */
    PyObject *value = PyObject_GetAttrString(of, name);
    Py_DECREF(of);
    return value;
}

static int
set_name(PyObject *op, PyObject *value, void *name)
{
    gd_Callable *w = (gd_Callable *)op;
    if (w->dict == NULL && (w->dict = PyDict_New()) == NULL) {
        return -1;
    }
    if (value != NULL) {
        return PyDict_SetItemString(w->dict, name, value);
    }
    if (PyDict_DelItemString(w->dict, name) < 0) {
        if (PyErr_ExceptionMatches(PyExc_KeyError)) {
            PyErr_SetString(PyExc_AttributeError, name);
        }
        return -1;
    }
    return 0;
}

/* ---- attributes that read and write the fields of the function ---- */

static PyObject *
get_field(PyObject *op, void *name)
{
    return PyObject_GetAttrString((PyObject *)((gd_Callable *)op)->function, name);
}

static int
set_field(PyObject *op, PyObject *value, void *name)
{
    PyObject *function = (PyObject *)((gd_Callable *)op)->function;
    return value != NULL ? PyObject_SetAttrString(function, name, value) : PyObject_DelAttrString(function, name);
}

/* ---- fields of the Callable itself ---- */

static PyObject *
get_wrapped(PyObject *op, void *Py_UNUSED(closure))
{
    return Py_NewRef(wrapped_of((gd_Callable *)op));
}

static int
set_wrapped(PyObject *op, PyObject *value, void *Py_UNUSED(closure))
{
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "__wrapped__ cannot be deleted");
        return -1;
    }
    Py_XSETREF(((gd_Callable *)op)->wrapped, Py_NewRef(value));
    return 0;
}

static PyObject *
get_self(PyObject *op, void *Py_UNUSED(closure))
{
    gd_Callable *w = (gd_Callable *)op;
    if (w->self_object == NULL) {
        PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '__self__'", Py_TYPE(op)->tp_name);
        return NULL;
    }
    return Py_NewRef(w->self_object);
}

static PyObject *
get_options(PyObject *op, void *Py_UNUSED(closure))
{
    gd_Root *root = ((gd_Callable *)op)->root;
    PyObject *options = root != NULL ? root->options : NULL;
    return Py_NewRef(options != NULL ? options : Py_None);
}

static PyObject *
get_kind(PyObject *op, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(((gd_Callable *)op)->kind);
}

#define NAME(n) {#n, get_name, set_name, NULL, (void *)#n}
#define FIELD(n) {#n, get_field, set_field, NULL, (void *)#n}

PyGetSetDef gd_callable_getset[] = {
    NAME(__name__),
    NAME(__qualname__),
    NAME(__doc__),
    NAME(__module__),
    FIELD(__code__),
    FIELD(__defaults__),
    FIELD(__kwdefaults__),
    FIELD(__annotations__),
    {"__closure__", get_field, NULL, NULL, (void *)"__closure__"},
    {"__globals__", get_field, NULL, NULL, (void *)"__globals__"},
    {"__builtins__", get_field, NULL, NULL, (void *)"__builtins__"},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {"__wrapped__", get_wrapped, set_wrapped, "what was optimized", NULL},
    {"__self__", get_self, NULL, "the object put before the arguments", NULL},
    {"options", get_options, NULL, "the options of the family", NULL},
    {"kind", get_kind, NULL, "FRAME_DIRECT or FRAME_RESUME", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyMemberDef gd_callable_members[] = {
    {"function", T_OBJECT_EX, offsetof(gd_Callable, function), READONLY, "the function whose code is translated"},
    {"self_object", T_OBJECT, offsetof(gd_Callable, self_object), READONLY,
     "the object put before the arguments, or None"},
    {"cache", T_OBJECT, offsetof(gd_Callable, cache), READONLY, "the FrameCache of the function's code"},
    {"root", T_OBJECT, offsetof(gd_Callable, root), READONLY, "the family's Root"},
    {NULL, 0, 0, 0, NULL},
};

PyObject *
gd_callable_repr(PyObject *op)
{
    PyObject *of = Py_NewRef(wrapped_of((gd_Callable *)op)); /* repr() may run code that replaces __wrapped__ */
    PyObject *text = PyUnicode_FromFormat("<optimized %R>", of);
    Py_DECREF(of);
    return text;
}

/* ---- copying and pickling, as for functions ---- */

static PyObject *
callable_copy(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return Py_NewRef(op);
}

/* Returns a new str, or NULL with an exception set. pickle takes the str as the name of a global: it looks the name
 * up in `__module__` and checks that it finds this very object. So a Callable that can be imported is pickled, and
 * any other raises PicklingError, as for plain functions. */
static PyObject *
callable_reduce(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return get_name(op, "__qualname__");
}

PyMethodDef gd_callable_methods[] = {
    {"__reduce__", callable_reduce, METH_NOARGS, NULL},
    {"__copy__", callable_copy, METH_NOARGS, NULL},
    {"__deepcopy__", callable_copy, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
