#include "helpers.h"

#include "structmember.h"

static const gdpy_kind_row kind_rows[] = {
    {&PyBool_Type, GDK_BOOL},
    {&PyLong_Type, GDK_INT},
    {&PyFloat_Type, GDK_FLOAT},
    {&PyUnicode_Type, GDK_STR},
    {&PyTuple_Type, GDK_TUPLE},
    {&PyList_Type, GDK_LIST},
    {&PyDict_Type, GDK_DICT},
    {&PyFunction_Type, GDK_FUNCTION},
    {&PyMethod_Type, GDK_METHOD},
    {&PyCFunction_Type, GDK_BUILTIN},
    {&PyCMethod_Type, GDK_BUILTIN},
    {&PyType_Type, GDK_TYPE},
    {&PyModule_Type, GDK_MODULE},
    {&PySet_Type, GDK_SET},
    {&PyFrozenSet_Type, GDK_FROZENSET},
    {&PySlice_Type, GDK_SLICE},
    {&PyRange_Type, GDK_RANGE},
    {&PyComplex_Type, GDK_COMPLEX},
    {&PyBytes_Type, GDK_BYTES},
    {&PyMethodDescr_Type, GDK_METHOD_DESCR},
    {&PyWrapperDescr_Type, GDK_WRAPPER_DESCR},
    {&PyGetSetDescr_Type, GDK_GETSET},
    {&PyMemberDescr_Type, GDK_MEMBER},
    {&PyCode_Type, GDK_CODE},
    {&PyCell_Type, GDK_CELL},
    {&PyProperty_Type, GDK_PROPERTY},
    {&PyStaticMethod_Type, GDK_STATICMETHOD},
    {&PyClassMethod_Type, GDK_CLASSMETHOD},
    {&PyDictProxy_Type, GDK_MAPPINGPROXY},
    {&PyByteArray_Type, GDK_BYTEARRAY},
    {&PyListIter_Type, GDK_LIST_ITER},
    {&PyTupleIter_Type, GDK_TUPLE_ITER},
    {&PyRangeIter_Type, GDK_RANGE_ITER},
    {&PySuper_Type, GDK_SUPER},
    {&PyClassMethodDescr_Type, GDK_CLASSMETHOD_DESCR},
    {NULL, GDK_NULL},
};

const gdpy_known_objects *
gdpy_known(void)
{
    static gdpy_known_objects known;
    known.none = Py_None;
    known.true_object = Py_True;
    known.false_object = Py_False;
    known.ellipsis = Py_Ellipsis;
    known.not_implemented = Py_NotImplemented;
    known.cell_type = &PyCell_Type;
    known.module_type = &PyModule_Type;
    known.object_type = &PyBaseObject_Type;
    known.type_type = &PyType_Type;
    known.generic_getattr = (void *)PyObject_GenericGetAttr;
    known.generic_setattr = (void *)PyObject_GenericSetAttr;
    known.kinds = kind_rows;
    return &known;
}

PyTypeObject *
gdpy_method_wrapper_type(void)
{
    PyObject *bound = PyObject_GetAttrString(Py_None, "__repr__");
    PyTypeObject *type = bound != NULL ? Py_TYPE(bound) : NULL;
    gdpy_forget_error();
    Py_XDECREF(bound); /* the type is static */
    return type;
}

int
gdpy_iterates(PyTypeObject *type)
{
    PyObject instance = {.ob_type = type}; /* PyIter_Check reads nothing else of it */
    return PyIter_Check(&instance);
}

PyObject *
gdpy_type_lookup(PyObject *type, PyObject *name)
{
    PyObject *v = _PyType_Lookup((PyTypeObject *)type, name);
    Py_XINCREF(v);
    return v;
}

int
gdpy_mro_index(PyObject *type, PyObject *name)
{
    PyObject *mro = ((PyTypeObject *)type)->tp_mro;
    for (Py_ssize_t i = 0; mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *d = gdpy_type_dict((PyTypeObject *)PyTuple_GET_ITEM(mro, i));
        int has = d != NULL ? PyDict_Contains(d, name) : 0;
        if (has < 0) {
            gdpy_forget_error();
        }
        if (has == 1) {
            return (int)i;
        }
    }
    return -1;
}

PyObject *
gdpy_dict_get(PyObject *d, PyObject *key)
{
    PyObject *v = PyDict_GetItemWithError(d, key);
    if (v == NULL) {
        gdpy_forget_error();
    }
    return Py_XNewRef(v);
}

Py_ssize_t
gdpy_dict_items(PyObject *d, PyObject **keys, PyObject **values, Py_ssize_t room)
{
    Py_ssize_t pos = 0, n = 0;
    PyObject *k, *v;
    while (n < room && PyDict_Next(d, &pos, &k, &v)) {
        Py_INCREF(k);
        Py_INCREF(v);
        keys[n] = k;
        values[n] = v;
        n++;
    }
    return n;
}

void
gdpy_decref_all(PyObject **items, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_DECREF(items[i]);
    }
}

PyObject *
gdpy_objects_ints(PyObject *a, PyObject *b, long i, long j, PyObject *last)
{
    return last == NULL ? Py_BuildValue("(OOll)", a, b, i, j) : Py_BuildValue("(OOllO)", a, b, i, j, last);
}

PyObject *
gdpy_tuple(PyObject **items, Py_ssize_t n)
{
    PyObject *t = PyTuple_New(n);
    for (Py_ssize_t i = 0; t != NULL && i < n; i++) {
        Py_INCREF(items[i]);
        PyTuple_SET_ITEM(t, i, items[i]);
    }
    return t;
}

PyObject *
gdpy_list(PyObject **items, Py_ssize_t n)
{
    PyObject *t = PyList_New(n);
    for (Py_ssize_t i = 0; t != NULL && i < n; i++) {
        Py_INCREF(items[i]);
        PyList_SET_ITEM(t, i, items[i]);
    }
    return t;
}

/* Reports whether a code object with o among its constants replaces o by the interned string of the same
 * text. The compiler interns constants that look like names; strings that a program computes are not
 * interned. o: borrowed. */
int
gdpy_code_interns(PyObject *o)
{
    if (!PyUnicode_CheckExact(o) || PyUnicode_CHECK_INTERNED(o)) {
        return 0;
    }
    Py_ssize_t n = PyUnicode_GET_LENGTH(o);
    if (n < 2 || !PyUnicode_IS_ASCII(o)) {
        return 0;
    }
    const unsigned char *text = PyUnicode_1BYTE_DATA(o);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!Py_ISALNUM(text[i]) && text[i] != '_') {
            return 0;
        }
    }
    return 1;
}

const char *
gdpy_utf8(PyObject *s, Py_ssize_t *len)
{
    if (!PyUnicode_Check(s)) {
        return NULL;
    }
    const char *p = PyUnicode_AsUTF8AndSize(s, len);
    if (p == NULL) {
        gdpy_forget_error();
    }
    return p;
}

PyObject *
gdpy_function(PyObject *code, PyObject *globals, PyObject *builtins, PyObject *closure, const char *name,
              const char *qualname, PyObject *module)
{
    PyObject *f = PyFunction_New(code, globals);
    if (f == NULL) {
        return NULL;
    }
    if (builtins != NULL) { /* globals['__builtins__'] may have been replaced since the user's function was made */
        Py_INCREF(builtins);
        Py_XSETREF(((PyFunctionObject *)f)->func_builtins, builtins);
    }
    PyObject *n = PyUnicode_FromString(name), *q = PyUnicode_FromString(qualname);
    int bad = n == NULL || q == NULL || PyObject_SetAttrString(f, "__name__", n) < 0
              || PyObject_SetAttrString(f, "__qualname__", q) < 0
              || (module != NULL && PyObject_SetAttrString(f, "__module__", module) < 0)
              || (closure != NULL && PyFunction_SetClosure(f, closure) < 0);
    Py_XDECREF(n);
    Py_XDECREF(q);
    if (bad) {
        Py_DECREF(f);
        return NULL;
    }
    return f;
}

PyObject *
gdpy_cell(PyObject *value)
{
    return PyCell_New(value);
}

long long
gdpy_int(PyObject *o, int *overflow)
{
    if (!PyLong_Check(o)
        /* a type in the user's code may define __index__ */
        && GDPY_MAY_CHANGE(Py_TYPE(o))) {
        *overflow = 1;
        return 0;
    }
    long long v = PyLong_AsLongLongAndOverflow(o, overflow);
    if (PyErr_Occurred()) {
        gdpy_forget_error();
        *overflow = 1;
    }
    return v;
}

PyObject *
gdpy_member_value(PyObject *descr, PyObject *o, Py_ssize_t *offset)
{
    PyMemberDef *m = ((PyMemberDescrObject *)descr)->d_member;
    if ((m->type != T_OBJECT_EX && m->type != T_OBJECT) || m->flags & ~READONLY
        || !PyObject_TypeCheck(o, PyDescr_TYPE(descr))) {
        return NULL;
    }
    *offset = m->offset;
    PyObject *v = *(PyObject **)((char *)o + m->offset);
    Py_XINCREF(v);
    return v;
}

int
gdpy_member_is_slot(PyObject *descr)
{
    PyMemberDef *m = ((PyMemberDescrObject *)descr)->d_member;
    return m->type == T_OBJECT_EX && !(m->flags & READONLY);
}

/* Reports whether a C descriptor found in a type under a name was defined there by the type itself or by
 * its builtin base. A descriptor copied from another class behaves differently: C.__len__ = list.__len__
 * rejects the type's instances, C.__init__ = object.__repr__ does something else, and so does C.update =
 * dict.update in a subclass of OrderedDict. name: n bytes of UTF-8, not terminated by 0. */
static int
is_own(PyObject *type, const char *name, Py_ssize_t n, PyObject *descr)
{
    PyObject *own = PyDescr_NAME(descr);
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(own, &length);
    if (text == NULL) {
        PyErr_Clear();
        return 0;
    }
    PyObject *mro = ((PyTypeObject *)type)->tp_mro;
    if (length != n || memcmp(text, name, n) != 0 || mro == NULL) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *k = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        if (k != PyDescr_TYPE(descr) && GDPY_MAY_CHANGE(k)) {
            continue;
        }
        PyObject *dict = gdpy_type_dict(k), *found = dict == NULL ? NULL : PyDict_GetItemWithError(dict, own);
        if (found != NULL) {
            return found == descr;
        }
    }
    return 0;
}

int
gdpy_is_native(PyObject *type, const char *name, Py_ssize_t n, PyObject *descr)
{
    return (Py_IS_TYPE(descr, &PyWrapperDescr_Type) || Py_IS_TYPE(descr, &PyMethodDescr_Type)
            || Py_IS_TYPE(descr, &PyClassMethodDescr_Type))
           && is_own(type, name, n, descr);
}

int
gdpy_is_own_field(PyObject *type, const char *name, Py_ssize_t n, PyObject *descr)
{
    return (Py_IS_TYPE(descr, &PyMemberDescr_Type) || Py_IS_TYPE(descr, &PyGetSetDescr_Type))
           && is_own(type, name, n, descr);
}

int (*gdpy_function_is_plain)(PyObject *);

int
gdpy_runs_its_code(PyObject *function)
{
    return gdpy_function_is_plain == NULL || gdpy_function_is_plain(function);
}

/* Reports whether the type's __getattribute__ is a wrapper of PyObject_GenericGetAttr:
 * object.__getattribute__, or the wrapper of a C type that uses the same function. */
int
gdpy_reads_generically(PyObject *type)
{
    PyTypeObject *t = (PyTypeObject *)type;
    PyObject *mro = t->tp_mro;
    for (Py_ssize_t i = 0; mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *dict = gdpy_type_dict((PyTypeObject *)PyTuple_GET_ITEM(mro, i));
        PyObject *hook = dict != NULL ? PyDict_GetItemString(dict, "__getattribute__") : NULL;
        if (hook != NULL) {
            return Py_IS_TYPE(hook, &PyWrapperDescr_Type) && PyType_IsSubtype(t, PyDescr_TYPE(hook))
                   && ((PyWrapperDescrObject *)hook)->d_wrapped == (void *)PyObject_GenericGetAttr;
        }
    }
    return 0;
}
