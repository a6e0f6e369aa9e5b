/* Helpers for the cold path. Each does in one C call what would take several calls through cgo (52 ns
 * each). Comments name the ownership: borrowed, new, stolen. All functions need the GIL. */
#ifndef GD_PY_HELPERS_H
#define GD_PY_HELPERS_H

#include <Python.h>
#include <stdint.h>

/* Kinds that py.Object.Kind distinguishes, by exact type. An instance of a subclass has the kind
 * GDK_OTHER or the nearest *_SUB. kind.go has Go's names for the kinds. */
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

typedef struct {
    PyTypeObject *type;
    int kind; /* of an instance of exactly that type */
} gdpy_kind_row;

/* Objects and functions of CPython whose addresses Go compares; all of them are immortal. */
typedef struct {
    PyObject *none, *true_object, *false_object, *ellipsis, *not_implemented;
    PyTypeObject *cell_type, *module_type, *object_type, *type_type;
    void *generic_getattr, *generic_setattr;
    const gdpy_kind_row *kinds; /* ends with a row without a type */
} gdpy_known_objects;

const gdpy_known_objects *gdpy_known(void);

/* Returns the type of bound slot wrappers (`None.__repr__`), borrowed, or NULL. Newer versions do not export it. */
PyTypeObject *gdpy_method_wrapper_type(void);

/* Reports whether instances of the type are iterators. */
int gdpy_iterates(PyTypeObject *type);

/* Constants of the version that Go compiles in (fields.go). */
enum { GDPY_MATCH_SELF = _Py_TPFLAGS_MATCH_SELF };
/* The lowest count of references that Py_INCREF does not change, because the object is immortal. 0: there is none. */
#if PY_VERSION_HEX >= 0x030E0000
#    define GDPY_IMMORTAL (3UL << 30) /* _Py_IMMORTAL_INITIAL_REFCNT */
#elif PY_VERSION_HEX >= 0x030C0000
#    define GDPY_IMMORTAL 0xFFFFFFFFUL
#else
#    define GDPY_IMMORTAL 0UL
#endif
#ifdef Py_GIL_DISABLED
#    error "fields.go counts references as a build with the GIL does"
#endif

/* Returns an instance attribute read from storage (inline values or dict) as a new reference, or NULL.
 * Runs no user code, creates no dict, raises nothing. */
PyObject *gdpy_instance_attr(PyObject *o, PyObject *name);
/* returns a new reference to the instance's dict, or NULL if it does not exist yet */
PyObject *gdpy_instance_dict(PyObject *o);
/* returns a new reference to the instance's dict, which is created if it does not exist yet */
PyObject *gdpy_made_dict(PyObject *o);
int gdpy_has_instance_storage(PyObject *o); /* 1 if instances of the type have attributes */
/* Whether Python code can change the attributes of a class: a class statement made it, or a C library that did not
 * protect it. Some C types of the standard library are static in one version and protected heap types in the next. */
#define GDPY_MAY_CHANGE(type) \
    (((type)->tp_flags & (Py_TPFLAGS_HEAPTYPE | Py_TPFLAGS_IMMUTABLETYPE)) == Py_TPFLAGS_HEAPTYPE)

/* returns the dict of a class, borrowed, or NULL */
PyObject *gdpy_type_dict(PyTypeObject *type);

/* calls _PyType_Lookup; returns a new reference or NULL, never raises */
PyObject *gdpy_type_lookup(PyObject *type, PyObject *name);
/* Returns the index in type.__mro__ of the first class whose __dict__ has the name, or -1. */
int gdpy_mro_index(PyObject *type, PyObject *name);
/* returns a new reference, or NULL; an error of the key's comparison is dropped */
PyObject *gdpy_dict_get(PyObject *d, PyObject *key);
/* Stores new references to at most `room` keys and values, in order, and returns how many. */
Py_ssize_t gdpy_dict_items(PyObject *d, PyObject **keys, PyObject **values, Py_ssize_t room);
PyObject *gdpy_tuple(PyObject **items, Py_ssize_t n); /* returns a new tuple; the items are borrowed */
void gdpy_decref_all(PyObject **items, Py_ssize_t n); /* steals the items */
/* Returns the new tuple (a, b, i, j), or (a, b, i, j, last) if last is not NULL; the objects are borrowed. */
PyObject *gdpy_objects_ints(PyObject *a, PyObject *b, long i, long j, PyObject *last);
PyObject *gdpy_list(PyObject **items, Py_ssize_t n); /* returns a new list; the items are borrowed */
const char *gdpy_utf8(PyObject *s, Py_ssize_t *len); /* borrowed; NULL if s cannot be encoded */
PyObject *gdpy_function(PyObject *code, PyObject *globals, PyObject *builtins, PyObject *closure, const char *name,
                        const char *qualname, PyObject *module); /* returns a new reference */
PyObject *gdpy_cell(PyObject *value); /* returns a new cell that holds value (borrowed) */
long long gdpy_int(PyObject *o, int *overflow); /* returns the value of an int */
/* returns the value of an object member as a new reference, or NULL */
PyObject *gdpy_member_value(PyObject *descr, PyObject *o, Py_ssize_t *offset);
int gdpy_member_is_slot(PyObject *descr); /* returns 1 for a member made by __slots__, 0 for a member defined in C */
/* Report whether descr is the type's own C method or slot (gdpy_is_native), or the type's own member or
 * computed field (gdpy_is_own_field), under that name. descr: borrowed. */
int gdpy_is_native(PyObject *type, const char *name, Py_ssize_t n, PyObject *descr);
int gdpy_is_own_field(PyObject *type, const char *name, Py_ssize_t n, PyObject *descr);
int gdpy_code_interns(PyObject *o);
int gdpy_odd_attributes(PyObject *o);
int gdpy_odd_keys(PyObject *dict);
int gdpy_odd_class(PyObject *type);
int gdpy_reads_generically(PyObject *type);
int gdpy_runs_its_code(PyObject *function);
PyObject *gdpy_type_params(const PyFunctionObject *function); /* borrowed; NULL in versions without the field */
PyObject *gdpy_annotate(const PyFunctionObject *function);    /* borrowed; NULL in versions without the field */
/* The function runs_its_code of gd_core_api; NULL if Go runs without the core, as in its tests. */
extern int (*gdpy_function_is_plain)(PyObject *function);

/* ---- may run the user's Python (run.c); return new references, or NULL or -1 with an exception set ---- */

/* Each function of this section calls this pointer before it returns; in a forked child the call does not return.
 * In Go's tests it is NULL, and nothing is called. */
extern void (*gdpy_on_return)(void);
/* The function check_signals of gd_core_api; NULL if Go runs without the core, as in its tests. */
extern int (*gdpy_signals)(void);
/* Clears the pending exception, if any, after a lookup that may fail with an ordinary exception. The core
 * sees the exception first, since MemoryError must not count as a failed lookup. */
void gdpy_forget_error(void);

PyObject *gdpy_call(PyObject *f, PyObject **args, Py_ssize_t n, PyObject *kwnames);
PyObject *gdpy_import(const char *name);
PyObject *gdpy_getattr(PyObject *o, PyObject *name);
int gdpy_setattr(PyObject *o, PyObject *name, PyObject *value);
PyObject *gdpy_repr(PyObject *o);
PyObject *gdpy_str(PyObject *o);
/* op: the operators < <= == != > >= have the numbers 0 to 5 */
PyObject *gdpy_compare(int op, PyObject *a, PyObject *b);
int gdpy_contains(PyObject *o, PyObject *value);
int gdpy_truth(PyObject *o);
Py_ssize_t gdpy_len(PyObject *o);
PyObject *gdpy_getitem(PyObject *o, PyObject *key);
int gdpy_isinstance(PyObject *o, PyObject *cls);
int gdpy_issubclass(PyObject *o, PyObject *cls);
PyObject *gdpy_index(PyObject *o);
int gdpy_check_signals(void);
/* op: an NB_* number of opcode.h, in-place operators included */
PyObject *gdpy_binary(int op, PyObject *a, PyObject *b);
PyObject *gdpy_unary(int op, PyObject *a); /* op: 0 +, 1 -, 2 ~, 3 not */
/* Takes the current exception, normalized, and stores new references to its type and value. Returns 0 if
 * there is none. */
int gdpy_take_error(PyObject **type, PyObject **value);

#endif
