/* Saves and restores a random generator by copying its words. Random.getstate() creates 625 ints, which costs
 * more than most graphs. */
#include "random_words.h"

/* RandomObject of Modules/_randommodule.c; _called/computed.py checks at import that a copy works. */
typedef struct {
    PyObject_HEAD int index;
    uint32_t state[624];
} random_object;

#define WORDS_SIZE ((Py_ssize_t)(sizeof(random_object) - offsetof(random_object, index)))

/* Returns the words of a generator (borrowed), or NULL with TypeError set if the object is too small to hold them.
 * The caller knows that the object is a generator. */
static char *
words_of(PyObject *object)
{
    if (Py_TYPE(object)->tp_basicsize < (Py_ssize_t)sizeof(random_object)) {
        PyErr_SetString(PyExc_TypeError, "random_words() takes a _random.Random");
        return NULL;
    }
    return (char *)&((random_object *)object)->index;
}

/* ---- functions for Python: they return new references, or NULL with an exception set ---- */

static PyObject *
random_words(PyObject *Py_UNUSED(module), PyObject *object)
{
    char *words = words_of(object);
    return words != NULL ? PyBytes_FromStringAndSize(words, WORDS_SIZE) : NULL;
}

static PyObject *
random_put(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2 || !PyBytes_CheckExact(args[1]) || PyBytes_GET_SIZE(args[1]) != WORDS_SIZE) {
        PyErr_SetString(PyExc_TypeError, "random_put() takes a _random.Random and its random_words()");
        return NULL;
    }
    char *words = words_of(args[0]);
    if (words == NULL) {
        return NULL;
    }
    memcpy(words, PyBytes_AS_STRING(args[1]), (size_t)WORDS_SIZE);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"random_words", random_words, METH_O, "random_words(generator) -> bytes\n\nWhat random_put puts back."},
    {"random_put", (PyCFunction)(void (*)(void))random_put, METH_FASTCALL,
     "random_put(generator, words)\n\nMake the generator what it was."},
    {NULL, NULL, 0, NULL},
};

int
gd_random_words_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
