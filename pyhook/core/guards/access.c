/* Reads objects for the access and check nodes of guard programs, without running user code. */
#include "guards/access.h"

#include "guards/pure.h"
#include "pycommon/guard.h"
#include "pycommon/internals.h"
#include "torch/tensor_grad.h"

PyObject *
gd_instance_attr(PyObject *v, PyObject *name, Py_hash_t hash, gd_inline_cache *cache)
{
    gd_instance_view view;
    gd_instance_look(v, &view);
    if (view.values != NULL) {
        Py_ssize_t at = cache->tag & GD_INLINE_HINT ? (Py_ssize_t)(cache->tag & ~GD_INLINE_HINT) : -1;
        if (GD_UNLIKELY(at < 0 || !gd_inline_is(&view, at, name))) {
            at = gd_inline_position(&view, name, UINT64_MAX);
            if (at < 0) {
                return NULL;
            }
            cache->tag = GD_INLINE_HINT | (uint64_t)at;
            cache->value = NULL;
        }
        return gd_inline_value(&view, at);
    }
    if (view.dict == NULL || !PyDict_Check(view.dict)) {
        return NULL;
    }
    uint64_t tag = gd_dict_tag(view.dict);
    if (GD_UNLIKELY(cache->tag != tag)) {
        cache->value = gd_dict_lookup(view.dict, name, hash);
        cache->tag = tag;
    }
    return cache->value;
}

/* Returns a new iterator over an OrderedDict. Only the iterator yields the keys in the OrderedDict's own
 * order, which is separate from the order of its hash table. Returns NULL with no exception set if
 * iterating could run a key's __hash__, or if memory is out. */
static PyObject *
odict_iterator(PyObject *dict)
{
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);) {
        if (!gd_pure_hash(key)) {
            return NULL;
        }
    }
    PyObject *iterator = PyODict_Type.tp_iter(dict);
    PyErr_Clear();
    return iterator;
}

PyObject *
gd_key_at(PyObject *dict, Py_ssize_t i)
{
    PyObject *key = NULL, *value;
    if (!PyDict_Check(dict)) {
        return PyAnySet_Check(dict) ? gd_set_item(dict, i) : NULL;
    }
    if (!PyODict_Check(dict)) {
        return gd_dict_at(dict, i, &key, &value) ? key : NULL;
    }
    PyObject *iterator = odict_iterator(dict);
    while (iterator != NULL && i >= 0) {
        Py_XDECREF(key);
        key = Py_TYPE(iterator)->tp_iternext(iterator);
        if (key == NULL) {
            break;
        }
        i--;
    }
    PyErr_Clear();
    Py_XDECREF(iterator);
    Py_XDECREF(key); /* the dict still holds the key */
    return key;
}

PyObject *
gd_value_at(PyObject *dict, Py_ssize_t i)
{
    PyObject *key, *value;
    if (PyDict_Check(dict) && !PyODict_Check(dict)) {
        return gd_dict_at(dict, i, &key, &value) ? value : NULL;
    }
    PyObject *wanted = PyDict_Check(dict) ? gd_key_at(dict, i) : NULL;
    for (Py_ssize_t at = 0; wanted != NULL && PyDict_Next(dict, &at, &key, &value);) {
        if (key == wanted) {
            return value;
        }
    }
    return NULL;
}

int
gd_dict_keys_are(PyObject *dict, PyObject *keys)
{
    Py_ssize_t n = PyTuple_GET_SIZE(keys), seen = 0;
    if (PyDict_GET_SIZE(dict) != n) {
        return 0;
    }
    PyObject *key, *value;
    if (!PyODict_Check(dict)) {
        for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value); seen++) {
            if (seen >= n || !gd_equals(key, PyTuple_GET_ITEM(keys, seen))) {
                return 0;
            }
        }
        return seen == n;
    }
    PyObject *iterator = odict_iterator(dict);
    int same = iterator != NULL;
    for (; same && seen < n; seen++) {
        key = Py_TYPE(iterator)->tp_iternext(iterator);
        same = key != NULL && gd_equals(key, PyTuple_GET_ITEM(keys, seen));
        Py_XDECREF(key);
    }
    PyErr_Clear();
    Py_XDECREF(iterator);
    return same;
}

PyObject *
gd_dict_keys_tuple(PyObject *dict)
{
    Py_ssize_t n = PyDict_GET_SIZE(dict);
    PyObject *keys = PyTuple_New(n);
    PyObject *iterator = NULL;
    if (keys != NULL && PyODict_Check(dict) && (iterator = odict_iterator(dict)) == NULL) {
        PyErr_SetString(PyExc_TypeError, "keys whose __hash__ is Python code are not looked at");
        Py_CLEAR(keys);
    }
    Py_ssize_t at = 0;
    for (Py_ssize_t i = 0; keys != NULL && i < n; i++) {
        PyObject *key = NULL, *value;
        if (iterator != NULL) {
            key = Py_TYPE(iterator)->tp_iternext(iterator);
        }
        else if (PyDict_Next(dict, &at, &key, &value)) {
            Py_INCREF(key);
        }
        if (key == NULL) {
            Py_CLEAR(keys);
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_RuntimeError, "dict changed while its keys were read");
            }
        }
        else {
            PyTuple_SET_ITEM(keys, i, key);
        }
    }
    Py_XDECREF(iterator);
    return keys;
}

/* Returns collections.deque, immortal, if v is one or an instance of a subclass, else NULL. */
static PyTypeObject *
deque_of(PyObject *v)
{
    /* deque is a static type, or one that its module keeps. Its instances start with PyObject_VAR_HEAD, which holds
     * their length. */
    static PyTypeObject *deque;
    if (deque == NULL && strcmp(Py_TYPE(v)->tp_name, "collections.deque") == 0 && !gd_py_class_may_change(Py_TYPE(v))) {
        deque = (PyTypeObject *)Py_NewRef(Py_TYPE(v));
    }
    return deque != NULL && PyObject_TypeCheck(v, deque) ? deque : NULL;
}

int
gd_is_deque(PyObject *v)
{
    return deque_of(v) != NULL;
}

PyObject *
gd_deque_item(PyObject *v, Py_ssize_t i)
{
    PyTypeObject *deque = deque_of(v);
    PyObject *item = deque != NULL ? deque->tp_as_sequence->sq_item(v, i) : NULL; /* C code, which runs no other */
    Py_XDECREF(item); /* the deque holds it */
    return item;
}

Py_ssize_t
gd_storage_length(PyObject *v)
{
    if (PyList_Check(v) || PyTuple_Check(v) || PyBytes_Check(v)) {
        return Py_SIZE(v);
    }
    if (PyDict_Check(v)) {
        return PyDict_GET_SIZE(v);
    }
    if (PyAnySet_Check(v)) {
        return PySet_GET_SIZE(v);
    }
    if (PyUnicode_Check(v)) {
        return PyUnicode_GET_LENGTH(v);
    }
    return gd_is_deque(v) ? Py_SIZE(v) : -1;
}

PyObject *
gd_mro_class(PyObject *type, uint32_t i)
{
    PyObject *mro = PyType_Check(type) ? ((PyTypeObject *)type)->tp_mro : NULL;
    return mro != NULL && PyTuple_Check(mro) && (Py_ssize_t)i < PyTuple_GET_SIZE(mro) ? PyTuple_GET_ITEM(mro, i) : NULL;
}

/* Sets *hash to the hash of an object that equals only itself. Returns 0 for other objects. */
static int
identity_hash(PyObject *object, Py_hash_t *hash)
{
    const PyTypeObject *type = Py_TYPE(object);
    if (type->tp_hash == PyBaseObject_Type.tp_hash && type->tp_richcompare == PyBaseObject_Type.tp_richcompare) {
        *hash = type->tp_hash(object);
        return 1;
    }
    /* hash(tensor) is hash(id(tensor)), and an address is less than the modulus of hashes of ints, 2**61 - 1. Tensors
     * of subclasses may hash otherwise. */
    *hash = (Py_hash_t)(uintptr_t)object;
    return gd_tensor_is_plain(object);
}

int
gd_find_object(PyObject *container, PyObject *object, PyObject **value)
{
    Py_hash_t hash;
    *value = NULL;
    if (!identity_hash(object, &hash)) {
        return -1;
    }
    if (PyDict_Check(container)) {
        return gd_dict_find(container, object, hash, value);
    }
    return PyAnySet_Check(container) ? gd_set_find(container, object, hash) : -1;
}

/* Returns a new reference, or NULL with an exception set. */
static PyObject *
find_object(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    if (n != 2) {
        PyErr_SetString(PyExc_TypeError, "find_object() takes a container and an object");
        return NULL;
    }
    PyObject *value;
    int found = gd_find_object(args[0], args[1], &value);
    return found > 0 && value != NULL ? Py_BuildValue("(iO)", found, value) : Py_BuildValue("(i)", found);
}

/* Returns a new reference, or NULL with an exception set. */
static PyObject *
key_at(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    Py_ssize_t i = n == 2 ? PyLong_AsSsize_t(args[1]) : -1;
    PyObject *key = i >= 0 ? gd_key_at(args[0], i) : NULL;
    if (key == NULL && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_LookupError, "there is no such key");
    }
    return Py_XNewRef(key);
}

/* Returns a new reference, or NULL with an exception set. */
static PyObject *
value_at(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    Py_ssize_t i = n == 2 ? PyLong_AsSsize_t(args[1]) : -1;
    PyObject *value = i >= 0 ? gd_value_at(args[0], i) : NULL;
    if (value == NULL && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_LookupError, "there is no such value");
    }
    return Py_XNewRef(value);
}

static PyMethodDef functions[] = {
    {"value_at", (PyCFunction)(void (*)(void))value_at, METH_FASTCALL,
     "value_at(dict, i) -> Any\n\nThe value of the i-th key of a dict, as guards read it."},
    {"find_object", (PyCFunction)(void (*)(void))find_object, METH_FASTCALL,
     "find_object(container, object) -> tuple\n\n"
     "Looks up an object that equals only itself in a dict or set, as guards do: (1, the dict's value), (1,) if a set "
     "has it, (0,) if not, (-1,) if a comparison of the program would decide."},
    {"key_at", (PyCFunction)(void (*)(void))key_at, METH_FASTCALL,
     "key_at(container, i) -> Any\n\nThe i-th key of a dict or member of a set, as guards read it."},
    {NULL, NULL, 0, NULL},
};

/* The C function that calls of plain Python functions run. Its name is not exported by every build of CPython. */
static vectorcallfunc function_entry;

int
gd_access_init(PyObject *module)
{
    PyCodeObject *code = PyCode_NewEmpty("", "", 0);
    PyObject *globals = PyDict_New();
    PyObject *plain = code != NULL && globals != NULL ? PyFunction_New((PyObject *)code, globals) : NULL;
    function_entry = plain != NULL ? ((PyFunctionObject *)plain)->vectorcall : NULL;
    Py_XDECREF(code);
    Py_XDECREF(globals);
    Py_XDECREF(plain);
    return plain != NULL ? PyModule_AddFunctions(module, functions) : -1;
}

int
gd_runs_its_code(PyObject *function)
{
    return ((PyFunctionObject *)function)->vectorcall == function_entry;
}

PyObject *
gd_func_field(PyObject *v, uint32_t field)
{
    if (field >= GD_EXCEPTION_ARGS) {
        if (!PyExceptionInstance_Check(v)) {
            return NULL;
        }
        PyBaseExceptionObject *e = (PyBaseExceptionObject *)v;
        PyObject *const values[] = {e->args, e->cause, e->context, e->traceback};
        PyObject *value = values[field - GD_EXCEPTION_ARGS];
        return value != NULL ? value : Py_None;
    }
    if (field >= GD_METHOD_SELF) {
        if (!PyMethod_Check(v)) {
            return NULL;
        }
        return field == GD_METHOD_SELF ? PyMethod_GET_SELF(v) : PyMethod_GET_FUNCTION(v);
    }
    if (!PyFunction_Check(v)) {
        return NULL;
    }
    PyFunctionObject *f = (PyFunctionObject *)v;
    if (field == GD_FUNC_CODE && !gd_runs_its_code(v)) {
        return NULL; /* calling it does not run its code */
    }
    PyObject *const values[] = {f->func_code,    f->func_closure,     f->func_defaults,      f->func_kwdefaults,
                                f->func_globals, f->func_name,        f->func_qualname,      f->func_doc,
                                f->func_module,  f->func_annotations, *gd_py_type_params(f), *gd_py_annotate(f)};
    return values[field] != NULL ? values[field] : Py_None;
}

/* Reports whether `name` equals the text after the last dot of `full`, which is the name of a static type. */
static int
short_name_is(const char *full, PyObject *name)
{
    const char *dot = strrchr(full, '.');
    return PyUnicode_CompareWithASCIIString(name, dot != NULL ? dot + 1 : full) == 0;
}

int
gd_name_is(PyObject *v, PyObject *name)
{
    if (PyFunction_Check(v)) {
        return gd_same_key(((PyFunctionObject *)v)->func_name, name);
    }
    if (PyCFunction_Check(v)) {
        return PyUnicode_CompareWithASCIIString(name, ((PyCFunctionObject *)v)->m_ml->ml_name) == 0;
    }
    if (PyType_Check(v)) {
        PyTypeObject *type = (PyTypeObject *)v;
        if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
            return gd_same_key(((PyHeapTypeObject *)v)->ht_name, name);
        }
        return short_name_is(type->tp_name, name);
    }
    static PyObject *key;
    if (PyModule_Check(v) && (key != NULL || (key = PyUnicode_InternFromString("__name__")) != NULL)) {
        PyObject *found = gd_dict_lookup(PyModule_GetDict(v), key, PyObject_Hash(key));
        return found != NULL && gd_same_key(found, name);
    }
    return 0;
}

/* ---- parameter names ---- */

enum { MAX_MODULES = 2048, MAX_MODULE_DEPTH = 64, MAX_NAME = 1024, MAX_SHOWN = 64 };

/* The state of a walk in the order of nn.Module.named_parameters: a module's own parameters, then those of
 * its children. Each module and parameter is visited once. */
typedef struct {
    PyObject *names;
    PyObject *found; /* a list that collects the names instead of comparing them, or NULL */
    Py_ssize_t next; /* the next expected name */
    PyObject **seen; /* modules and parameters visited; borrowed */
    Py_ssize_t nseen;
    char path[MAX_NAME];
} name_walk;

static int
first_time(name_walk *w, PyObject *v)
{
    for (Py_ssize_t i = 0; i < w->nseen; i++) {
        if (w->seen[i] == v) {
            return 0;
        }
    }
    if (w->nseen < MAX_MODULES) {
        w->seen[w->nseen++] = v;
    }
    return 1;
}

/* Returns an attribute of the module that is a dict, borrowed, or NULL if there is none. */
static PyObject *
module_dict(PyObject *module, const char *text)
{
    PyObject *name = PyUnicode_InternFromString(text);
    if (name == NULL) {
        PyErr_Clear();
        return NULL;
    }
    gd_inline_cache cache = {0, NULL};
    PyObject *dict = gd_instance_attr(module, name, PyObject_Hash(name), &cache);
    Py_DECREF(name);
    return dict != NULL && PyDict_Check(dict) ? dict : NULL;
}

/* Appends ".name" to the path. Returns the new length, or -1. */
static int
extend(name_walk *w, int length, PyObject *key)
{
    const char *text = PyUnicode_CheckExact(key) ? PyUnicode_AsUTF8(key) : NULL;
    if (text == NULL) {
        PyErr_Clear();
        return -1;
    }
    int n = snprintf(w->path + length, (size_t)(MAX_NAME - length), "%s%s", length > 0 ? "." : "", text);
    return n >= 0 && n < MAX_NAME - length ? length + n : -1;
}

static int
collect(name_walk *w)
{
    PyObject *name = PyUnicode_FromString(w->path);
    int failed = name == NULL || PyList_Append(w->found, name) < 0;
    Py_XDECREF(name);
    return !failed;
}

static int
walk_module(name_walk *w, PyObject *module, int length, int depth)
{
    if (!first_time(w, module)) {
        return 1;
    }
    PyObject *parameters = module_dict(module, "_parameters"), *children = module_dict(module, "_modules");
    if (parameters == NULL || children == NULL || depth > MAX_MODULE_DEPTH || w->nseen >= MAX_MODULES) {
        return 0;
    }
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(parameters, &at, &key, &value);) {
        if (value == Py_None || !first_time(w, value)) {
            continue;
        }
        if (w->found != NULL) {
            if (extend(w, length, key) < 0 || PyList_GET_SIZE(w->found) >= MAX_SHOWN || !collect(w)) {
                return 0;
            }
            w->path[length] = '\0';
            continue;
        }
        if (extend(w, length, key) < 0 || w->next >= PyTuple_GET_SIZE(w->names)
            || !PyUnicode_Check(PyTuple_GET_ITEM(w->names, w->next))) {
            return 0;
        }
        const char *wanted = PyUnicode_AsUTF8(PyTuple_GET_ITEM(w->names, w->next++));
        if (wanted == NULL || strcmp(wanted, w->path) != 0) {
            PyErr_Clear();
            return 0;
        }
        w->path[length] = '\0';
    }
    for (Py_ssize_t at = 0; PyDict_Next(children, &at, &key, &value);) {
        int longer = value == Py_None ? 0 : extend(w, length, key);
        if (longer < 0 || (value != Py_None && !walk_module(w, value, longer, depth + 1))) {
            return 0;
        }
        w->path[length] = '\0';
    }
    return 1;
}

int
gd_param_names_are(PyObject *module, PyObject *names)
{
    name_walk w = {.names = names, .seen = PyMem_Malloc(MAX_MODULES * sizeof(PyObject *))};
    if (w.seen == NULL) {
        return 0;
    }
    int same = walk_module(&w, module, 0, 0) && w.next == PyTuple_GET_SIZE(names);
    PyMem_Free(w.seen);
    return same;
}

PyObject *
gd_param_names(PyObject *module)
{
    name_walk w = {.found = PyList_New(0), .seen = PyMem_Malloc(MAX_MODULES * sizeof(PyObject *))};
    int met = w.found != NULL && w.seen != NULL && (walk_module(&w, module, 0, 0) || PyList_GET_SIZE(w.found) > 0);
    PyErr_Clear();
    PyObject *names = met ? PyList_AsTuple(w.found) : NULL;
    PyErr_Clear();
    PyMem_Free(w.seen);
    Py_XDECREF(w.found);
    return names;
}
