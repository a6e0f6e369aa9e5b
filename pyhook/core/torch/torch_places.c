/* Implements torch/torch_places.h. */
#include "torch/torch_places.h"

#include <string.h>

const uint8_t *
gd_torch_byte_of(const void *function, const void *self)
{
#if defined(__x86_64__)
    /* movzbl OFFSET(%rdi or %rip), %eax; ret. The first argument is in rdi. Each byte is read only if the bytes before
     * it match, so the code never reads past the end of the function. */
    static const uint8_t landing[] = {0xf3, 0x0f, 0x1e, 0xfa}; /* endbr64 */
    enum { RIP = 0x05, RDI_BYTE = 0x47, RDI = 0x87, RET = 0xc3 };
    const uint8_t *code = function;
    size_t n = 0;
    while (n < sizeof(landing) && code[n] == landing[n]) {
        n++;
    }
    code += n == sizeof(landing) ? n : 0;
    if (code[0] != 0x0f || code[1] != 0xb6) {
        return NULL;
    }
    uint8_t base = code[2];
    int32_t offset = (int8_t)code[3];
    if (base == RIP || base == RDI) {
        memcpy(&offset, code + 3, sizeof(offset));
    }
    else if (base != RDI_BYTE) {
        return NULL;
    }
    const uint8_t *end = code + (base == RDI_BYTE ? 4 : 7);
    return *end != RET ? NULL : (base == RIP ? end : (const uint8_t *)self) + offset;
#else
    (void)function;
    (void)self;
    return NULL;
#endif
}

/* Reports whether the struct has the values that torch's functions return. */
static int
agrees(const gd_torch_functions *at, const gd_torch_function_calls *calls)
{
    return at->disabled == calls->get_disabled() && at->end - at->begin == calls->stack_len() * GD_TORCH_MODE_SIZE;
}

int
gd_torch_probe_functions(const gd_torch_function_calls *calls)
{
    if (calls->get_state == NULL || calls->stack_len == NULL || calls->get_disabled == NULL
        || calls->set_disabled == NULL || calls->push == NULL || calls->pop == NULL) {
        return 0;
    }
    const gd_torch_functions *at = calls->get_state();
    int disabled = calls->get_disabled();
    int known = agrees(at, calls);
    for (int value = 0; value <= 2 && known; value++) { /* enabled, disabled for subclasses, disabled */
        calls->set_disabled(value);
        known = calls->get_disabled() == value && agrees(at, calls);
    }
    calls->set_disabled(disabled);

    /* torch accepts any object as a mode. No Python code runs while it is entered: push and pop are functions of C,
     * and the collector is off. */
    int64_t modes = calls->stack_len();
    int collects = PyGC_Disable();
    PyObject *mode = known ? PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type) : NULL;
    PyObject *pushed = mode != NULL ? PyObject_CallOneArg(calls->push, mode) : NULL;
    PyObject *popped = NULL;
    if (pushed != NULL) {
        known = agrees(at, calls) && calls->stack_len() == modes + 1;
        popped = PyObject_CallNoArgs(calls->pop);
    }
    if (collects) {
        PyGC_Enable();
    }
    known = known && popped != NULL && agrees(at, calls) && calls->stack_len() == modes;
    Py_XDECREF(mode);
    Py_XDECREF(pushed);
    Py_XDECREF(popped);
    PyErr_Clear();
    return known;
}
