/* Batches for the cold path: each does in one C call what would take several through cgo (52 ns a call).
 * Ownership in every comment: borrowed, new, stolen. All need the GIL. */
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

/* What is asked of a type. */
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

/* Kinds told apart in one call; exact types only, subclasses are GDK_OTHER or the nearest *_SUB. kind.go has Go's
 * names. */
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
/* Instance attribute by storage alone: inline values or dict; runs no user code, makes no dict. new or NULL, never
 * raises */
PyObject *gdpy_instance_attr(PyObject *o, PyObject *name);
PyObject *gdpy_instance_dict(PyObject *o); /* new reference to an existing dict, or NULL */
PyObject *gdpy_made_dict(PyObject *o); /* the same, made where there is none yet: new */
int gdpy_has_instance_storage(PyObject *o); /* 1 when the type gives instances attributes */
PyObject *gdpy_type_lookup(PyObject *type, PyObject *name); /* new or NULL, never raises (_PyType_Lookup) */
PyObject *gdpy_mro(PyObject *type); /* new or NULL */
/* Index in type.__mro__ of the class whose __dict__ has name, or -1. */
int gdpy_mro_index(PyObject *type, PyObject *name);
Py_ssize_t gdpy_seq_size(PyObject *o); /* of a list or tuple */
void gdpy_seq_items(PyObject *o, PyObject **out); /* new references to all items of a list or tuple */
Py_ssize_t gdpy_dict_items(PyObject *d, PyObject **keys, PyObject **values, Py_ssize_t room); /* new references */
PyObject *gdpy_tuple(PyObject **items, Py_ssize_t n); /* new; items borrowed */
void gdpy_decref_all(PyObject **items, Py_ssize_t n); /* steals the items */
/* The tuple (a, b, i, j), or with last (a, b, i, j, last); new; objects borrowed, last may be NULL */
PyObject *gdpy_objects_ints(PyObject *a, PyObject *b, long i, long j, PyObject *last);
PyObject *gdpy_list(PyObject **items, Py_ssize_t n); /* new; items borrowed */
const char *gdpy_utf8(PyObject *s, Py_ssize_t *len); /* borrowed; NULL for unencodable */
PyObject *gdpy_function(PyObject *code, PyObject *globals, PyObject *builtins, PyObject *closure, const char *name,
                        const char *qualname, PyObject *module); /* new */
PyObject *gdpy_cell(PyObject *value); /* new cell holding value (borrowed) */
PyObject *gdpy_cell_get(PyObject *cell); /* new or NULL */
/* One field of a function: 0 code 1 globals 2 closure 3 defaults 4 kwdefaults 5 module 6 qualname 7 name. new or
 * NULL */
PyObject *gdpy_function_field(PyObject *f, int field); /* a GDPY_FUNC_ number. New, or NULL where the field is NULL */
PyObject *gdpy_method_field(PyObject *m, int field); /* a GDPY_METHOD_ number. New */
long long gdpy_int(PyObject *o, int *overflow); /* of an int */
PyObject *gdpy_member_value(PyObject *descr, PyObject *o, Py_ssize_t *offset); /* T_OBJECT_EX member: new or NULL */
int gdpy_member_is_slot(PyObject *descr); /* a member as __slots__ makes them, not one of C's */
int gdpy_is_descriptor(PyObject *o); /* 1 has __get__, 2 has __set__ or __delete__ too */
/* A C method or slot, or a member or computed field, that is the type's own under that name; borrowed. */
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
int gdpy_type_is(PyObject *type, int fact); /* a GDPY_TYPE_ number; function.go says what they mean */

/* ---- what may run the user's Python (run.c). New references, or NULL or -1 with an exception ---- */

/* Asked before each of them returns; in a forked child it does not come back. NULL: nobody asks (tests). */
extern void (*gdpy_on_return)(void);
/* The core's signal handling (gd_core_api); NULL where Go runs without it, as in its tests. */
extern int (*gdpy_signals)(void);
/* Clears the pending exception, if any, of a look-up whose failure is an answer. The core is told of it first: no
 * answer rests on MemoryError. */
void gdpy_forget_error(void);

PyObject *gdpy_call(PyObject *f, PyObject **args, Py_ssize_t n, PyObject *kwnames);
PyObject *gdpy_import(const char *name);
PyObject *gdpy_getattr(PyObject *o, PyObject *name);
int gdpy_setattr(PyObject *o, PyObject *name, PyObject *value);
PyObject *gdpy_repr(PyObject *o);
PyObject *gdpy_str(PyObject *o);
PyObject *gdpy_compare(int op, PyObject *a, PyObject *b); /* < <= == != > >= are 0 to 5 */
int gdpy_contains(PyObject *o, PyObject *value);
int gdpy_truth(PyObject *o);
Py_ssize_t gdpy_len(PyObject *o);
PyObject *gdpy_getitem(PyObject *o, PyObject *key);
int gdpy_isinstance(PyObject *o, PyObject *cls);
int gdpy_issubclass(PyObject *o, PyObject *cls);
PyObject *gdpy_index(PyObject *o);
int gdpy_check_signals(void);
PyObject *gdpy_binary(int op, PyObject *a, PyObject *b); /* NB_* of opcode.h, in-place ones too */
PyObject *gdpy_unary(int op, PyObject *a); /* 0 +, 1 -, 2 ~, 3 not */
/* Takes the current exception, normalized: new type and value; 0 without one. */
int gdpy_take_error(PyObject **type, PyObject **value);

#endif
