/* What an iterator of a builtin type yields next, read from its memory. Nothing here advances an iterator, runs code or
 * creates an object, except the functions for Python. Each function returns NULL, 0 or -2 for iterators of other types,
 * for those over instances of subclasses, and for those whose next step raises. */
#ifndef GD_GUARD_ITERATORS_H
#define GD_GUARD_ITERATORS_H

#include <Python.h>

#include <stdint.h>

/* Returns a part of the iterator, borrowed, or NULL if there is none. zip: its i-th iterator. enumerate: number 0 is
 * its iterator. map and filter: number 0 is the function, the iterators follow. Others: number 0 is the container. */
PyObject *gd_iterator_part(PyObject *v, uint32_t i);

/* Returns the item that follows i other items, borrowed, or NULL: of a list, a tuple or a dict (a key, if the iterator
 * yields pairs). */
PyObject *gd_iterator_item(PyObject *v, uint32_t i);

/* Returns the value of the pair that an iterator over a dict's items yields after i others, borrowed, or NULL. */
PyObject *gd_iterator_value(PyObject *v, uint32_t i);

/* Sets *number to the number that a range's iterator yields after i others, or that an enumerate counts then. Returns
 * 1, or 0 if there is none. */
int gd_iterator_number(PyObject *v, uint32_t i, int64_t *number);

/* Returns how many items are left, or -1 if the iterator has ended and dropped its container. zip and map: how many
 * iterators they have, plus GD_STRICT for zip(strict=True). Returns -2 if this is unknown. */
enum { GD_STRICT = 1 << 16 };
Py_ssize_t gd_iterator_left(PyObject *v);

/* Compares the layouts that these functions rely on with CPython's and adds the functions for Python. Returns 0, or -1
 * with an exception set. */
int gd_iterators_init(PyObject *module);

#endif
