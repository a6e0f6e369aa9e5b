/* A slot of a frame: a variable or a value on its stack. Up to 3.13 it is a pointer; 3.14 has tagged references.
 * Included by py3xx/internals.h of the versions where it is a pointer. */
#ifndef GD_PYCOMMON_SLOTS_H
#define GD_PYCOMMON_SLOTS_H

typedef PyObject *gd_py_slot;

/* Returns the slot's object, borrowed; NULL if the slot is empty. */
static inline PyObject *
gd_py_slot_object(gd_py_slot slot)
{
    return slot;
}

/* Returns the object to which a frame's field refers, borrowed. */
static inline PyObject *
gd_py_reference_object(PyObject *reference)
{
    return reference;
}

/* Returns a slot's value that owns a new reference to the object. */
#define gd_py_slot_new(object) Py_NewRef(object)

/* Releases a slot's or field's object, if there is one. Steals the reference. */
static inline void
gd_py_slot_release(PyObject *reference)
{
    Py_XDECREF(reference);
}

/* Whether a frame that ends releases its last slot first. */
#define GD_PY_CLEARS_BACKWARD 0

/* Returns the number of slots of a frame that are in use. */
#define gd_py_frame_height(frame) ((frame)->stacktop)

/* Puts an object into a slot, and then releases the one that it had. Takes over the reference. */
static inline void
gd_py_slot_set(gd_py_slot *slot, PyObject *value)
{
    PyObject *had = *slot;
    *slot = value;
    Py_XDECREF(had);
}

/* Copies the objects of n slots, borrowed. */
static inline void
gd_py_slots_read(PyObject **out, const gd_py_slot *slots, size_t n)
{
    memcpy(out, slots, n * sizeof *out);
}

#endif
