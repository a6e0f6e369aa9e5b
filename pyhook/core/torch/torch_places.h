/* Finds where torch keeps some of the values that its functions return, so that they can be read without a call. */
#ifndef GD_TORCH_PLACES_H
#define GD_TORCH_PLACES_H

#include "pycompat.h"

/* The beginning of at::impl::PythonTorchFunctionTLS, one struct a thread: whether __torch_function__ is disabled, and
 * the vector of the function modes that were entered. gd_torch_probe_functions compares this layout with torch's. */
typedef struct {
    uint8_t disabled; /* the low byte of an enum */
    const char *begin, *end;
} gd_torch_functions;

enum { GD_TORCH_MODE_SIZE = 16 }; /* bytes of an element of the vector, a std::shared_ptr */

/* Returns the address of the byte that the function returns, or NULL if the function does anything but load it. self
 * is the function's argument; a function without parameters ignores it. NULL on processors other
 * than x86-64. */
const uint8_t *gd_torch_byte_of(const void *function, const void *self);

/* The functions of torch that gd_torch_probe_functions compares with the struct. Any of them may be NULL. */
typedef struct {
    const gd_torch_functions *(*get_state)(void);
    int64_t (*stack_len)(void);
    int (*get_disabled)(void);
    void (*set_disabled)(int);
    PyObject *push, *pop; /* borrowed */
} gd_torch_function_calls;

/* Reports whether gd_torch_functions is the layout of the struct to which get_state points. Changes the struct for a
 * moment, on this thread only, while no Python code can run. Leaves no exception set. */
int gd_torch_probe_functions(const gd_torch_function_calls *calls);

#endif
