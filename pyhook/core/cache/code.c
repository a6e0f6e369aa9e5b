/* Reads and creates code objects, each in one call; implements cache/code.h. */
#include "cache/code.h"

#include "cache/extra_state.h"

/* The objects that a gd_code_view owns until gd_code_view_release. */
typedef struct {
    PyObject *code;     /* strong: the code object, which keeps its strings and tables alive */
    PyObject *bytecode; /* strong: the result of PyCode_GetCode, the unspecialised instructions */
    /* strong list of bytes: encoded names that contain lone surrogates, which UTF-8 cannot encode */
    PyObject *encoded;
    gd_bytes *names;    /* one array for names and localsplusnames */
} view_internal;

/* ---- reading ---- */

static gd_bytes
bytes_of(PyObject *bytes)
{
    return (gd_bytes){PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes)};
}

/* Stores the UTF-8 text of a str in *out; lone surrogates are encoded with surrogatepass. Returns 0, or -1
 * with an exception set. */
static int
utf8_of(view_internal *in, PyObject *str, gd_bytes *out)
{
    Py_ssize_t size;
    const char *data = PyUnicode_AsUTF8AndSize(str, &size);
    if (data == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
            return -1;
        }
        PyErr_Clear();
        PyObject *encoded = PyUnicode_AsEncodedString(str, "utf-8", "surrogatepass");
        if (encoded == NULL) {
            return -1;
        }
        if ((in->encoded == NULL && (in->encoded = PyList_New(0)) == NULL) || PyList_Append(in->encoded, encoded) < 0) {
            Py_DECREF(encoded);
            return -1;
        }
        *out = bytes_of(encoded);
        Py_DECREF(encoded); /* the list holds it */
        return 0;
    }
    *out = (gd_bytes){data, (size_t)size};
    return 0;
}

static void
free_internal(view_internal *in)
{
    if (in != NULL) {
        Py_XDECREF(in->code);
        Py_XDECREF(in->bytecode);
        Py_XDECREF(in->encoded);
        PyMem_Free(in->names);
        PyMem_Free(in);
    }
}

static int
fill_view(view_internal *in, PyCodeObject *code, gd_code_view *out)
{
    PyObject *linetable, *exceptiontable, *localsplus, *kinds;
    gd_py_code_tables(code, &linetable, &exceptiontable, &localsplus, &kinds);
    Py_ssize_t nnames = PyTuple_GET_SIZE(code->co_names), nlocals = PyTuple_GET_SIZE(localsplus);
    in->names = PyMem_Calloc((size_t)(nnames + nlocals) + 1, sizeof(gd_bytes));
    if (in->names == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    in->bytecode = PyCode_GetCode(code);
    if (in->bytecode == NULL) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < nnames + nlocals; i++) {
        PyObject *name = i < nnames ? PyTuple_GET_ITEM(code->co_names, i) : PyTuple_GET_ITEM(localsplus, i - nnames);
        if (utf8_of(in, name, &in->names[i]) < 0) {
            return -1;
        }
    }
    if (utf8_of(in, code->co_name, &out->name) < 0 || utf8_of(in, code->co_qualname, &out->qualname) < 0
        || utf8_of(in, code->co_filename, &out->filename) < 0) {
        return -1;
    }
    out->code = bytes_of(in->bytecode);
    out->linetable = bytes_of(linetable);
    out->exceptiontable = bytes_of(exceptiontable);
    out->flags = code->co_flags;
    out->firstlineno = code->co_firstlineno;
    out->argcount = code->co_argcount;
    out->posonlyargcount = code->co_posonlyargcount;
    out->kwonlyargcount = code->co_kwonlyargcount;
    out->stacksize = code->co_stacksize;
    out->nconsts = (int32_t)PyTuple_GET_SIZE(code->co_consts);
    out->nnames = (int32_t)nnames;
    out->nlocalsplus = (int32_t)nlocals;
    out->names = in->names;
    out->localsplusnames = in->names + nnames;
    out->localspluskinds = (const uint8_t *)PyBytes_AS_STRING(kinds);
    out->consts = &PyTuple_GET_ITEM(code->co_consts, 0);
    out->internal = in;
    return 0;
}

int
gd_code_view_open(PyObject *code, gd_code_view *out)
{
    memset(out, 0, sizeof(*out));
    if (!PyCode_Check(code)) {
        PyErr_Format(PyExc_TypeError, "a code object is needed, not %s", Py_TYPE(code)->tp_name);
        return -1;
    }
    view_internal *in = PyMem_Calloc(1, sizeof(*in));
    if (in == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    in->code = Py_NewRef(code);
    if (fill_view(in, (PyCodeObject *)code, out) < 0) {
        free_internal(in);
        memset(out, 0, sizeof(*out));
        return -1;
    }
    return 0;
}

void
gd_code_view_release(gd_code_view *view)
{
    free_internal(view->internal);
    memset(view, 0, sizeof(*view));
}

/* ---- making ---- */

/* Returns a new str from UTF-8 that may contain lone surrogates, or NULL with an exception set. */
static PyObject *
str_of(gd_bytes text)
{
    return PyUnicode_DecodeUTF8(text.data != NULL ? text.data : "", (Py_ssize_t)text.len, "surrogatepass");
}

/* Returns a new tuple of interned str, or NULL with an exception set. */
static PyObject *
tuple_of(const gd_bytes *texts, int32_t n)
{
    PyObject *tuple = n >= 0 ? PyTuple_New(n) : NULL;
    if (n < 0) {
        PyErr_SetString(PyExc_SystemError, "negative number of names");
    }
    for (int32_t i = 0; tuple != NULL && i < n; i++) {
        PyObject *item = str_of(texts[i]);
        if (item == NULL) {
            Py_CLEAR(tuple);
            break;
        }
        PyUnicode_InternInPlace(&item);
        PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

/* Returns a new bytes object, or NULL with an exception set. */
static PyObject *
raw_of(gd_bytes raw)
{
    return PyBytes_FromStringAndSize(raw.data, (Py_ssize_t)raw.len);
}

/* Returns a new code object that is not marked as ours, or NULL with an exception set. */
static PyObject *
assemble(const gd_code_spec *spec)
{
    if (spec->consts == NULL || !PyTuple_CheckExact(spec->consts)) {
        PyErr_SetString(PyExc_SystemError, "code_new: consts must be a tuple");
        return NULL;
    }
    gd_bytes kinds = {(const char *)spec->localspluskinds, (size_t)(spec->nlocalsplus > 0 ? spec->nlocalsplus : 0)};
    gd_py_code_parts parts = {
        .name = str_of(spec->name),
        .qualname = str_of(spec->qualname),
        .filename = str_of(spec->filename),
        .code = raw_of(spec->code),
        .linetable = raw_of(spec->linetable),
        .exceptiontable = raw_of(spec->exceptiontable),
        .consts = spec->consts,
        .names = tuple_of(spec->names, spec->nnames),
        .localsplusnames = tuple_of(spec->localsplusnames, spec->nlocalsplus),
        .localspluskinds = raw_of(kinds),
        .flags = spec->flags,
        .firstlineno = spec->firstlineno,
        .argcount = spec->argcount,
        .posonlyargcount = spec->posonlyargcount,
        .kwonlyargcount = spec->kwonlyargcount,
        .stacksize = spec->stacksize,
    };
    PyObject *const made[] = {parts.name,  parts.qualname,        parts.filename,
                              parts.code,  parts.linetable,       parts.exceptiontable,
                              parts.names, parts.localsplusnames, parts.localspluskinds};
    const size_t nmade = sizeof(made) / sizeof(made[0]);
    int complete = 1;
    for (size_t i = 0; i < nmade; i++) {
        complete &= made[i] != NULL;
    }
    PyObject *code = complete ? gd_py_code_new(&parts) : NULL;
    for (size_t i = 0; i < nmade; i++) {
        Py_XDECREF(made[i]);
    }
    return code;
}

PyObject *
gd_code_new(const gd_code_spec *spec)
{
    PyObject *code = assemble(spec);
    if (code != NULL && gd_code_mark((PyCodeObject *)code, GD_CODE_OURS) < 0) {
        Py_CLEAR(code);
        if (!PyErr_Occurred()) {
            PyErr_NoMemory(); /* CPython sets no exception where there is no memory for a code object's extra data */
        }
    }
    return code;
}

/* ---- for Python: these functions return new references, or NULL with an exception set ---- */

/* Reads a code object and creates an equal new one from the result, not marked as ours. */
static PyObject *
code_roundtrip(PyObject *Py_UNUSED(module), PyObject *code)
{
    gd_code_view view;
    if (gd_code_view_open(code, &view) < 0) {
        return NULL;
    }
    PyObject *consts = PyTuple_New(view.nconsts);
    PyObject *again = NULL;
    if (consts != NULL) {
        for (int32_t i = 0; i < view.nconsts; i++) {
            PyTuple_SET_ITEM(consts, i, Py_NewRef(view.consts[i]));
        }
        gd_code_spec spec = {
            .name = view.name,
            .qualname = view.qualname,
            .filename = view.filename,
            .code = view.code,
            .linetable = view.linetable,
            .exceptiontable = view.exceptiontable,
            .flags = view.flags,
            .firstlineno = view.firstlineno,
            .argcount = view.argcount,
            .posonlyargcount = view.posonlyargcount,
            .kwonlyargcount = view.kwonlyargcount,
            .stacksize = view.stacksize,
            .consts = consts,
            .nnames = view.nnames,
            .nlocalsplus = view.nlocalsplus,
            .names = view.names,
            .localsplusnames = view.localsplusnames,
            .localspluskinds = view.localspluskinds,
        };
        again = assemble(&spec);
        Py_DECREF(consts);
    }
    gd_code_view_release(&view);
    return again;
}

static PyObject *
mark_ours(PyObject *Py_UNUSED(module), PyObject *code)
{
    if (!PyCode_Check(code)) {
        return PyErr_Format(PyExc_TypeError, "a code object is needed, not %s", Py_TYPE(code)->tp_name);
    }
    if (gd_code_mark((PyCodeObject *)code, GD_CODE_OURS) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* Returns a new reference to a tuple or dict, or NULL if it is empty. */
static PyObject *
or_null(PyObject *items)
{
    return PyObject_Size(items) > 0 ? Py_NewRef(items) : NULL;
}

/* Creates a function as MAKE_FUNCTION does. It is written in C, so no signal and no exception of another thread can
 * interrupt it. The user's blocks could not handle such an exception. */
static PyObject *
function_made(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *code, *scope, *defaults, *keywords, *annotations, *closure;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!O!:function_made", &PyCode_Type, &code, &PyDict_Type, &scope, &PyTuple_Type,
                          &defaults, &PyDict_Type, &keywords, &PyTuple_Type, &annotations, &PyTuple_Type, &closure)) {
        return NULL;
    }
    if (PyTuple_GET_SIZE(closure) != ((PyCodeObject *)code)->co_nfreevars) {
        return PyErr_Format(PyExc_ValueError, "%U needs %d cells, not %zd", ((PyCodeObject *)code)->co_name,
                            ((PyCodeObject *)code)->co_nfreevars, PyTuple_GET_SIZE(closure));
    }
    PyFunctionObject *f = (PyFunctionObject *)PyFunction_New(code, scope);
    if (f != NULL) {
        Py_XSETREF(f->func_defaults, or_null(defaults));
        Py_XSETREF(f->func_kwdefaults, or_null(keywords));
        Py_XSETREF(f->func_annotations, or_null(annotations));
        Py_XSETREF(f->func_closure, or_null(closure));
    }
    return (PyObject *)f;
}

static PyMethodDef functions[] = {
    {"function_made", function_made, METH_VARARGS,
     "function_made(code, scope, defaults, keywords, annotations, closure): the function that MAKE_FUNCTION makes in a "
     "module with the globals scope. annotations: names and values in turn. TypeError or ValueError for what does not "
     "fit."},
    {"code_roundtrip", code_roundtrip, METH_O, "Takes a code object apart and makes it again, as a translation does."},
    {"mark_ours", mark_ours, METH_O, "Marks a code object as made by a translation: the hook passes its frames on."},
    {NULL, NULL, 0, NULL},
};

int
gd_code_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
