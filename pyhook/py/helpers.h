/* Batches for the cold path: each does in one C call what would take several calls through cgo (52 ns
 * each). Every comment names the ownership: borrowed, new, stolen. All functions need the GIL. */
#ifndef GD_PY_HELPERS_H
#define GD_PY_HELPERS_H

#include <Python.h>
#include <stdint.h>

/* Fields of a function and of a method. */
enum {
    GDPY_FUNC_CODE,
    GDPY_FUNC_GLOBALS,
    GDPY_FUNC_CLOSURE,
    GDPY_FUNC_DEFAULTS,
    GDPY_FUNC_KWDEFAULTS,
    GDPY_FUNC_MODULE,
    GDPY_FUNC_QUALNAME,
    GDPY_FUNC_NAME,
    GDPY_METHOD_FUNC = 0,
    GDPY_METHOD_SELF,
};

/* Facts about a type, for gdpy_type_is. */
enum {
    GDPY_TYPE_GENERIC_GETATTR,
    GDPY_TYPE_GENERIC_SETATTR,
    GDPY_TYPE_HEAP,
    GDPY_TYPE_HAS_ITERNEXT,
    GDPY_TYPE_HAS_CALL,
    GDPY_TYPE_IDENTITY_HASH,
    GDPY_TYPE_IDENTITY_COMPARE,
    GDPY_TYPE_PLAIN_META_GETATTR,
    GDPY_TYPE_MATCHES_SEQUENCE,
    GDPY_TYPE_MATCHES_MAPPING,
    GDPY_TYPE_MATCHES_SELF,
    GDPY_TYPE_HAS_ITER,
    GDPY_TYPE_OBJECT_NEW,
    GDPY_TYPE_OBJECT_INIT,
    GDPY_TYPE_WRAPS_GENERIC_GETATTR,
    GDPY_TYPE_IS_ABSTRACT,
    GDPY_TYPE_HAS_SUBSCRIPT,
};

/* Kinds that one call distinguishes, by exact type; an instance of a subclass is GDK_OTHER or the nearest
 * *_SUB. kind.go has Go's names. */
enum {
    GDK_NULL,
    GDK_NONE,
    GDK_BOOL,
    GDK_INT,
    GDK_FLOAT,
    GDK_COMPLEX,
    GDK_STR,
    GDK_BYTES,
    GDK_TUPLE,
    GDK_LIST,
    GDK_DICT,
    GDK_SET,
    GDK_FROZENSET,
    GDK_SLICE,
    GDK_RANGE,
    GDK_FUNCTION,
    GDK_METHOD,
    GDK_BUILTIN,
    GDK_METHOD_DESCR,
    GDK_WRAPPER_DESCR,
    GDK_GETSET,
    GDK_MEMBER,
    GDK_TYPE,
    GDK_MODULE,
    GDK_CODE,
    GDK_CELL,
    GDK_ELLIPSIS,
    GDK_NOTIMPLEMENTED,
    GDK_PROPERTY,
    GDK_STATICMETHOD,
    GDK_CLASSMETHOD,
    GDK_METHOD_WRAPPER,
    GDK_TUPLE_SUB,
    GDK_LIST_SUB,
    GDK_DICT_SUB,
    GDK_TYPE_SUB,
    GDK_EXCEPTION,
    GDK_OTHER,
    GDK_MAPPINGPROXY,
    GDK_BYTEARRAY,
    GDK_LIST_ITER,
    GDK_TUPLE_ITER,
    GDK_RANGE_ITER,
    GDK_SUPER,
    GDK_CLASSMETHOD_DESCR
};

int gdpy_kind(PyObject *o);
PyObject *gdpy_type(PyObject *o);                         /* borrowed */
/* Instance attribute read from storage: inline values or dict. Runs no user code, creates no dict. new or
 * NULL, never raises */
PyObject *gdpy_instance_attr(PyObject *o, PyObject *name);
PyObject *gdpy_instance_dict(PyObject *o); /* new reference to an existing dict, or NULL */
PyObject *gdpy_made_dict(PyObject *o); /* the same, created if there is none yet: new */
int gdpy_has_instance_storage(PyObject *o); /* 1 if instances of the type have attributes */
PyObject *gdpy_type_lookup(PyObject *type, PyObject *name); /* new or NULL, never raises (_PyType_Lookup) */
PyObject *gdpy_mro(PyObject *type); /* new or NULL */
/* Index in type.__mro__ of the first class whose __dict__ has the name, or -1. */
int gdpy_mro_index(PyObject *type, PyObject *name);
Py_ssize_t gdpy_seq_size(PyObject *o); /* for a list or tuple */
void gdpy_seq_items(PyObject *o, PyObject **out); /* new references to all items of a list or tuple */
Py_ssize_t gdpy_dict_items(PyObject *d, PyObject **keys, PyObject **values, Py_ssize_t room); /* new references */
PyObject *gdpy_tuple(PyObject **items, Py_ssize_t n); /* new; items borrowed */
void gdpy_decref_all(PyObject **items, Py_ssize_t n); /* steals the items */
/* The tuple (a, b, i, j), or (a, b, i, j, last) unless last is NULL; new; objects borrowed */
PyObject *gdpy_objects_ints(PyObject *a, PyObject *b, long i, long j, PyObject *last);
PyObject *gdpy_list(PyObject **items, Py_ssize_t n); /* new; items borrowed */
const char *gdpy_utf8(PyObject *s, Py_ssize_t *len); /* borrowed; NULL if it cannot be encoded */
PyObject *gdpy_function(PyObject *code, PyObject *globals, PyObject *builtins, PyObject *closure, const char *name,
                        const char *qualname, PyObject *module); /* new */
PyObject *gdpy_cell(PyObject *value); /* new cell holding value (borrowed) */
PyObject *gdpy_cell_get(PyObject *cell); /* new or NULL */
PyObject *gdpy_function_field(PyObject *f, int field); /* field: a GDPY_FUNC_ number; new, NULL if it is NULL */
PyObject *gdpy_method_field(PyObject *m, int field); /* field: a GDPY_METHOD_ number; new */
long long gdpy_int(PyObject *o, int *overflow); /* value of an int */
PyObject *gdpy_member_value(PyObject *descr, PyObject *o, Py_ssize_t *offset); /* T_OBJECT_EX member: new or NULL */
int gdpy_member_is_slot(PyObject *descr); /* 1 for a member made by __slots__, 0 for one of C's */
int gdpy_is_descriptor(PyObject *o); /* bits: 1 has __get__, 2 has __set__ or __delete__ */
/* Whether descr is the type's own C method or slot (is_native), or member or computed field
 * (is_own_field), under that name. descr: borrowed. */
int gdpy_is_native(PyObject *type, const char *name, Py_ssize_t n, PyObject *descr);
int gdpy_is_own_field(PyObject *type, const char *name, Py_ssize_t n, PyObject *descr);
int gdpy_is_coroutine_code(PyObject *code);
int gdpy_code_interns(PyObject *o);
int gdpy_odd_attributes(PyObject *o);
int gdpy_odd_keys(PyObject *dict);
/* Immortal. */
PyObject *gdpy_true(void);
PyObject *gdpy_false(void);
PyObject *gdpy_none(void);
PyObject *gdpy_ellipsis(void);
PyObject *gdpy_cell_type(void);
int gdpy_type_is(PyObject *type, int fact); /* fact: a GDPY_TYPE_ number; function.go explains them */

/* ---- functions that may run the user's Python (run.c). New references, or NULL or -1 with an exception ---- */

/* Called before each of them returns; in a forked child it does not return. NULL in tests: not called. */
extern void (*gdpy_on_return)(void);
/* The core's signal handling (gd_core_api); NULL if Go runs without the core, as in its tests. */
extern int (*gdpy_signals)(void);
/* Clears the pending exception, if any, of a lookup for which failing is a valid result. The core sees
 * the exception first: MemoryError is not a valid result. */
void gdpy_forget_error(void);

PyObject *gdpy_call(PyObject *f, PyObject **args, Py_ssize_t n, PyObject *kwnames);
PyObject *gdpy_import(const char *name);
PyObject *gdpy_getattr(PyObject *o, PyObject *name);
int gdpy_setattr(PyObject *o, PyObject *name, PyObject *value);
PyObject *gdpy_repr(PyObject *o);
PyObject *gdpy_str(PyObject *o);
PyObject *gdpy_compare(int op, PyObject *a, PyObject *b); /* op: < <= == != > >= are 0 to 5 */
int gdpy_contains(PyObject *o, PyObject *value);
int gdpy_truth(PyObject *o);
Py_ssize_t gdpy_len(PyObject *o);
PyObject *gdpy_getitem(PyObject *o, PyObject *key);
int gdpy_isinstance(PyObject *o, PyObject *cls);
int gdpy_issubclass(PyObject *o, PyObject *cls);
PyObject *gdpy_index(PyObject *o);
int gdpy_check_signals(void);
PyObject *gdpy_binary(int op, PyObject *a, PyObject *b); /* op: NB_* of opcode.h, in-place ones included */
PyObject *gdpy_unary(int op, PyObject *a); /* op: 0 +, 1 -, 2 ~, 3 not */
/* Takes the current exception, normalized: new type and value; 0 if there is none. */
int gdpy_take_error(PyObject **type, PyObject **value);

#endif
