/* Finds the addresses of some of torch's settings, so that they can be read without calling torch's getters. */
#ifndef GD_TORCH_PLACES_H
#define GD_TORCH_PLACES_H

#include "pycompat.h"

/* The first fields of at::impl::PythonTorchFunctionTLS, of which each thread has one: whether __torch_function__ is
 * disabled, and the vector of active function modes. gd_torch_probe_functions checks that torch has this layout. */
typedef struct {
    uint8_t disabled; /* the low byte of an enum */
    const char *begin, *end;
} gd_torch_functions;

enum { GD_TORCH_MODE_SIZE = 16 }; /* bytes of an element of the vector, a std::shared_ptr */

/* Returns the address of the byte that a getter loads and returns, or NULL if the getter does anything else. self is
 * the getter's argument, if it has one. On processors other than x86-64, always returns NULL. */
const uint8_t *gd_torch_byte_of(const void *function, const void *self);

/* torch's functions that read and change the struct. Any of them may be NULL. */
typedef struct {
    const gd_torch_functions *(*get_state)(void);
    int64_t (*stack_len)(void);
    int (*get_disabled)(void);
    void (*set_disabled)(int);
    PyObject *push, *pop; /* borrowed */
} gd_torch_function_calls;

/* Reports whether the struct that get_state returns has the layout of gd_torch_functions. Changes this thread's struct
 * and restores it; no Python code runs in between. Leaves no exception set. */
int gd_torch_probe_functions(const gd_torch_function_calls *calls);

#endif
