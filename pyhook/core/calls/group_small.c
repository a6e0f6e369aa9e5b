/* Implements calls/group_small.h. */
#include "calls/group_small.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "torch/kernels.h"
#include "torch/tensor_grad.h"
#include "torch/tensor_layout.h"
#include "torch/torch_observers.h"
#include "torch/torch_state.h"
#include "torch/torch_symbols.h"

/* torch computes 32768 elements and more in several threads, which changes what its vectorized loops leave over. */
enum { SMALL = 16384 };

/* ---- what torch offers ---- */

static struct {
    int known;                        /* 1: all functions are found; -1: they are not */
    void (*bump)(const void *tensor); /* torch::autograd::impl::bump_version(at::Tensor const&) */
    _Bool (*forward_gradients)(void); /* ForwardADLevel::has_any_level: tensors may have tangents */
    _Bool (*inference)(void);         /* InferenceMode::is_enabled: torch makes inference tensors */
    int64_t (*version)(const void *); /* TensorBase::_version */
} torchs;

static int
find(const char *symbol, void *function)
{
    void *address = gd_torch_symbol(symbol);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

/* Reports whether nothing could tell that this thread's operators are not called. */
static int
is_unseen(void)
{
    if (GD_UNLIKELY(torchs.known == 0)) {
        int ok = find("_ZN5torch8autograd4impl12bump_versionERKN2at6TensorE", &torchs.bump)
                 && find("_ZN5torch8autograd14ForwardADLevel13has_any_levelEv", &torchs.forward_gradients)
                 && find("_ZN3c1013InferenceMode10is_enabledEv", &torchs.inference)
                 && find("_ZNK2at10TensorBase8_versionEv", &torchs.version);
        torchs.known = ok ? 1 : -1;
    }
    return torchs.known > 0 && !torchs.forward_gradients() && !torchs.inference() && !gd_torch_observed();
}

/* Returns the at::Tensor that torch's functions read: torch keeps the address of the C++ tensor there. */
static inline const void *
tensor_in(PyObject *tensor)
{
    return (const char *)tensor + gd_tensor_layout.impl;
}

/* Counts an operation in place. */
static inline void
bump(PyObject *tensor)
{
    torchs.bump(tensor_in(tensor));
}

/* ---- values ---- */

/* A tensor's elements. */
typedef struct {
    char *data; /* NULL if the value is no small tensor */
    size_t n;
    int is_double;
    uint32_t shape; /* the first external with this type and these sizes */
} elements;

/* The result of a step. */
typedef struct {
    PyObject *object; /* strong; NULL if the elements are only in the group's room */
    elements at;
    const gd_group_operand *same; /* the step has changed this operand, and returns it; or NULL */
} result;

typedef struct {
    gd_group *g;
    PyObject *const *external;
    elements externals[GD_GROUP_EXTERNALS];
    gd_tensor_view views[GD_GROUP_EXTERNALS]; /* of those that were small tensors at first */
    result *results;                          /* of the steps */
    char *fresh;                              /* memory for the step of an Epilogue, or NULL */
    char *room;                               /* aligned; `slot` bytes for each step of others */
    size_t slot, room_bytes;
} unit;

/* Finds the elements of a tensor that is plain, dense, contiguous, on the CPU, in memory of torch's own allocator, and
 * alone in its storage. */
static int
find_elements(PyObject *v, gd_tensor_view *view, elements *found)
{
    enum { FLOAT = 6, DOUBLE = 7 }; /* c10::ScalarType */
    static char nothing[1];
    if (!gd_tensor_is_plain(v) || !gd_tensor_view_read(v, view) || view->keyset != gd_tensor_layout.cpu_keys
        || (view->scalar_type != FLOAT && view->scalar_type != DOUBLE)) {
        return 0;
    }
    size_t n = 1;
    for (int32_t i = view->ndim - 1; i >= 0; i--) {
        if (view->strides[i] != (int64_t)n && view->sizes[i] != 1) {
            return 0;
        }
        n *= (size_t)view->sizes[i];
        if (n > SMALL) {
            return 0;
        }
        if (n == 0) {
            *found = (elements){nothing, 0, view->scalar_type == DOUBLE, 0};
            return 1;
        }
    }
    const char *storage = GD_TENSOR_FIELD(char *, gd_tensor_impl(v), storage);
    if (storage == NULL) {
        return 0;
    }
    found->is_double = view->scalar_type == DOUBLE;
    found->n = n;
    found->data = *(char *const *)(storage + gd_tensor_layout.data);
    /* Memory of others (numpy, files, lazy copies) has another context. */
    return found->data == GD_TENSOR_FIELD(char *, storage, context) && found->data == gd_kernel_align(found->data)
           && GD_TENSOR_FIELD(uint64_t, storage, nbytes) == n * (found->is_double ? 8 : 4);
}

static int
same_kind(const gd_tensor_view *a, const gd_tensor_view *b)
{
    return a->scalar_type == b->scalar_type && a->ndim == b->ndim && memcmp(a->sizes, b->sizes, sizeof a->sizes) == 0;
}

/* Reads the externals. Returns 0 if one of them is neither a number nor a small tensor without NaN and with torch's own
 * methods. */
static int
read_externals(unit *u)
{
    size_t most = 0;
    for (uint32_t i = 0; i < u->g->externals; i++) {
        PyObject *v = u->external[i];
        elements *e = &u->externals[i];
        e->data = NULL;
        if (PyFloat_CheckExact(v) || PyLong_CheckExact(v)) {
            continue;
        }
        if (!find_elements(v, &u->views[i], e) || !gd_group_calls_torch(u->g, Py_TYPE(v))
            || gd_kernel_nan(e->data, e->n, e->is_double)) {
            return 0;
        }
        most = e->n > most ? e->n : most;
        for (e->shape = 0; e->shape < i; e->shape++) {
            if (u->externals[e->shape].data != NULL && same_kind(&u->views[e->shape], &u->views[i])) {
                break;
            }
        }
    }
    u->slot = (most * sizeof(double) + GD_KERNEL_ALIGNMENT - 1) / GD_KERNEL_ALIGNMENT * GD_KERNEL_ALIGNMENT;
    return 1;
}

/* Reads the externals once more after code of others may have run, which may have given a tensor other memory. One that
 * is another kind of tensor now counts as no small one. */
static void
read_again(unit *u)
{
    for (uint32_t i = 0; i < u->g->externals; i++) {
        elements *e = &u->externals[i], now;
        gd_tensor_view view;
        if (e->data != NULL) {
            int same = find_elements(u->external[i], &view, &now) && same_kind(&view, &u->views[i])
                       && !gd_kernel_nan(now.data, now.n, now.is_double);
            e->data = same ? now.data : NULL;
        }
    }
    u->fresh = u->fresh != NULL ? u->externals[0].data : NULL;
}

/* Returns the value that an operand names, after the changes in place that lead to it. */
static const gd_group_operand *
origin(const unit *u, const gd_group_operand *o)
{
    while (o->from == GD_FROM_STEP && u->results[o->index].same != NULL) {
        o = u->results[o->index].same;
    }
    return o;
}

/* The operand's elements; their data is NULL if it is a number or another object. */
static elements
elements_of(const unit *u, const gd_group_operand *o)
{
    o = origin(u, o);
    return o->from == GD_FROM_EXTERNAL ? u->externals[o->index]
           : o->from == GD_FROM_STEP   ? u->results[o->index].at
                                       : (elements){NULL, 0, 0, 0};
}

/* Returns a new tensor with the elements of a result in the unit's room, or NULL with an exception set. */
static PyObject *
tensor_of(const unit *u, const elements *from, elements *to)
{
    gd_tensor_view view;
    const gd_tensor_view *kind = &u->views[from->shape];
    PyObject *sizes = PyTuple_New(kind->ndim), *empty = gd_torch_attribute("empty"), *made = NULL;
    PyObject *dtype = gd_torch_attribute(from->is_double ? "float64" : "float32");
    for (int32_t i = 0; sizes != NULL && i < kind->ndim; i++) {
        PyTuple_SET_ITEM(sizes, i, PyLong_FromLongLong(kind->sizes[i]));
    }
    PyObject *args = sizes != NULL && !PyErr_Occurred() ? PyTuple_Pack(1, sizes) : NULL;
    PyObject *names = args != NULL ? Py_BuildValue("{s:O,s:s}", "dtype", dtype, "device", "cpu") : NULL;
    if (names != NULL) {
        made = PyObject_Call(empty, args, names);
    }
    Py_XDECREF(sizes);
    Py_XDECREF(empty);
    Py_XDECREF(dtype);
    Py_XDECREF(args);
    Py_XDECREF(names);
    if (made != NULL && (!find_elements(made, &view, to) || !same_kind(&view, kind))) {
        PyErr_SetString(PyExc_SystemError, "torch.empty() has not made a plain tensor of the size it was given");
        Py_CLEAR(made);
    }
    if (made != NULL) {
        memcpy(to->data, from->data, from->n * (from->is_double ? sizeof(double) : sizeof(float)));
        to->shape = from->shape;
    }
    return made;
}

/* Returns the operand as an object, borrowed, or NULL with an exception set. Elements in the unit's room move into a
 * tensor. */
static PyObject *
object_of(unit *u, const gd_group_operand *o)
{
    o = origin(u, o);
    if (o->from != GD_FROM_STEP) {
        return o->from == GD_FROM_EXTERNAL ? u->external[o->index] : o->value;
    }
    result *r = &u->results[o->index];
    if (r->object == NULL) {
        elements to;
        r->object = tensor_of(u, &r->at, &to);
        r->at = r->object != NULL ? to : r->at;
    }
    return r->object;
}

/* ---- steps ---- */

/* Reads a number that fits the elements. */
static int
number_of(unit *u, const gd_group_operand *o, int is_double, double *number)
{
    PyObject *v = elements_of(u, o).data == NULL ? object_of(u, o) : NULL;
    if (v != NULL && PyFloat_CheckExact(v)) {
        *number = PyFloat_AS_DOUBLE(v);
    }
    else if (v != NULL && PyLong_CheckExact(v)) {
        int overflow;
        long whole = PyLong_AsLongAndOverflow(v, &overflow);
        if (overflow != 0 || whole > 1 << 24 || whole < -(1 << 24)) { /* a float has every int up to here */
            return 0;
        }
        *number = (double)whole;
    }
    else {
        return 0;
    }
    int fits = is_double ? !isnan(*number)
                         : isinf(*number) || fabs(*number) <= FLT_MAX; /* torch raises for some larger ones */
    *number = is_double ? *number : (float)*number;
    return fits;
}

/* Reports whether no operand has a keyword, or only the last one, and this is the keyword. */
static int
only_named(const gd_group_step *s, const char *keyword)
{
    return s->names == NULL
           || (PyTuple_GET_SIZE(s->names) == 1 && s->n > 2
               && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(s->names, 0), keyword) == 0);
}

/* Completes an addition or subtraction: of a tensor, perhaps times alpha, or of a number. */
static int
choose_sum(unit *u, const gd_group_step *s, uint32_t tensors, gd_kernel_call *call)
{
    call->number = 1;
    if (s->n > tensors && !number_of(u, &s->operands[s->n - 1], call->is_double, &call->number)) {
        return 0;
    }
    if (s->small == GD_SMALL_SUB) {
        /* torch negates alpha as the int or float that it is, and an int 0 has no sign. */
        int whole = tensors == 2 && s->n > 2 && PyLong_CheckExact(object_of(u, &s->operands[2]));
        call->number = whole ? 0 - call->number : -call->number;
    }
    call->kernel = tensors == 2 ? GD_KERNEL_ADD_SCALED : GD_KERNEL_ADD_NUMBER;
    return s->n == 2 ? s->names == NULL : tensors == 2 && s->names != NULL && only_named(s, "alpha");
}

/* Completes the call of a step's kernel. `tensors` counts the leading operands that are tensors; all others must be one
 * number. */
static int
choose(unit *u, const gd_group_step *s, uint32_t tensors, gd_kernel_call *call)
{
    static const struct {
        gd_kernel kernel;
        uint32_t tensors;
    } plain[GD_SMALL_ITEM + 1] = {
        [GD_SMALL_MUL] = {GD_KERNEL_MUL, 2},         [GD_SMALL_DIV] = {GD_KERNEL_DIV, 2},
        [GD_SMALL_ADDCMUL] = {GD_KERNEL_ADDCMUL, 3}, [GD_SMALL_ADDCDIV] = {GD_KERNEL_ADDCDIV, 3},
        [GD_SMALL_COPY] = {GD_KERNEL_COPY, 2},       [GD_SMALL_SQRT] = {GD_KERNEL_SQRT, 1},
        [GD_SMALL_NEG] = {GD_KERNEL_NEG, 1},         [GD_SMALL_ABS] = {GD_KERNEL_ABS, 1},
        [GD_SMALL_LERP] = {GD_KERNEL_LERP_NEAR, 2},  [GD_SMALL_RECIPROCAL] = {GD_KERNEL_RECIPROCAL, 1},
        [GD_SMALL_RELU] = {GD_KERNEL_RELU, 1},
    };
    if (s->n > tensors + 1) {
        return 0;
    }
    switch (s->small) {
    case GD_SMALL_ADD:
    case GD_SMALL_SUB:
        return choose_sum(u, s, tensors, call);
    case GD_SMALL_MUL:
    case GD_SMALL_DIV:
        if (tensors == 1 && s->names == NULL && number_of(u, &s->operands[1], call->is_double, &call->number)) {
            call->kernel = s->small == GD_SMALL_MUL ? GD_KERNEL_MUL_NUMBER : GD_KERNEL_DIV_NUMBER;
            return 1;
        }
        break;
    case GD_SMALL_ADDCMUL:
    case GD_SMALL_ADDCDIV:
        call->number = 1;
        if (s->n == 4 && !number_of(u, &s->operands[3], call->is_double, &call->number)) {
            return 0;
        }
        call->kernel = plain[s->small].kernel;
        return tensors == 3 && only_named(s, "value") && (s->n == 4) == (s->names != NULL);
    case GD_SMALL_LERP:
        if (s->n != 3 || s->names != NULL || !number_of(u, &s->operands[2], call->is_double, &call->number)) {
            return 0;
        }
        call->kernel = (call->is_double ? fabs(call->number) : fabsf((float)call->number)) < 0.5 ? GD_KERNEL_LERP_NEAR
                                                                                                 : GD_KERNEL_LERP_FAR;
        return tensors == 2;
    case GD_SMALL_COPY:
        call->a = call->b;
        break;
    default:
        break;
    }
    call->kernel = plain[s->small].kernel;
    return s->n == tensors && s->names == NULL && plain[s->small].tensors == tensors;
}

/* All other kernels make the processor's NaN, and no external has one. */
static int
makes_another_nan(const gd_kernel_call *call)
{
    return (call->kernel == GD_KERNEL_NEG || call->kernel == GD_KERNEL_ABS)
           && gd_kernel_nan(call->a, call->n, call->is_double);
}

/* Computes a step from the elements of its operands. Returns 1, or 0 if it has no kernel for them, or if torch has
 * computed a step of the unit, and nothing is computed. */
static int
compute(unit *u, uint32_t at)
{
    const gd_group_step *s = &u->g->steps[at];
    result *r = &u->results[at];
    elements e[3] = {{NULL, 0, 0, 0}};
    uint32_t tensors = 0;
    for (; tensors < s->n && tensors < 3; tensors++) {
        e[tensors] = elements_of(u, &s->operands[tensors]);
        if (e[tensors].data == NULL) {
            break;
        }
        if (e[tensors].shape != e[0].shape) {
            return 0;
        }
    }
    if (tensors == 0 || !u->g->with_kernels) {
        return 0;
    }
    gd_kernel_call call = {.is_double = e[0].is_double, .n = e[0].n, .a = e[0].data, .b = e[1].data, .c = e[2].data};
    call.out = s->writes ? e[0].data : u->fresh != NULL ? u->fresh : u->room + at * u->slot;
    if (s->small == GD_SMALL_ZERO && s->n == 1) {
        memset(call.out, 0, call.n * (call.is_double ? 8 : 4));
    }
    else if (!choose(u, s, tensors, &call)) {
        return 0;
    }
    else if (gd_kernel_find(&call)) {
        read_again(u);
        return compute(u, at);
    }
    else if (makes_another_nan(&call) || !gd_kernel_run(&call)) {
        return 0;
    }
    if (!s->writes) {
        r->at = (elements){call.out, e[0].n, e[0].is_double, e[0].shape};
        return 1;
    }
    r->same = origin(u, &s->operands[0]);
    if (r->same->from == GD_FROM_EXTERNAL) {
        bump(u->external[r->same->index]);
    }
    return 1;
}

/* Reads the number in a tensor of one element, as item() does. Returns 1, 0 if the step is another one, or -1 with an
 * exception set. */
static int
read_item(unit *u, uint32_t at)
{
    const gd_group_step *s = &u->g->steps[at];
    elements e = elements_of(u, &s->operands[0]);
    if (s->small != GD_SMALL_ITEM || s->n != 1 || e.data == NULL || e.n != 1) {
        return 0;
    }
    double number = e.is_double ? *(double *)e.data : *(float *)e.data;
    u->results[at].object = PyFloat_FromDouble(number);
    return u->results[at].object != NULL ? 1 : -1;
}

/* Calls a step's operation. Returns 0, or -1 with an exception set. */
static int
call_step(unit *u, uint32_t at)
{
    const gd_group_step *s = &u->g->steps[at];
    PyObject *args[GD_GROUP_OPERANDS];
    int numbers = 1; /* Python's operators on numbers run no other code */
    for (uint32_t i = 0; i < s->n; i++) {
        args[i] = object_of(u, &s->operands[i]);
        if (args[i] == NULL) {
            return -1;
        }
        numbers &= PyFloat_CheckExact(args[i]) || PyLong_CheckExact(args[i]);
    }
    PyObject *made = gd_group_call_step(s, args);
    if (made == NULL) {
        return -1;
    }
    if (made == args[0] && s->writes) {
        u->results[at].same = origin(u, &s->operands[0]);
        Py_DECREF(made);
    }
    else {
        u->results[at].object = made;
    }
    if (!numbers) {
        u->g->with_kernels = 0;
        read_again(u);
    }
    return 0;
}

/* ---- units ---- */

/* Takes the group's room: a call of the same group in a signal handler or finalizer gets another one. Returns 0, or -1
 * if memory is out. */
static int
take_room(unit *u)
{
    gd_group *g = u->g;
    size_t bytes = g->nsteps * (sizeof(result) + (u->fresh == NULL ? u->slot : 0)) + GD_KERNEL_ALIGNMENT;
    if (g->room == NULL || g->room_bytes < bytes) {
        PyMem_Free(g->room);
        g->room = PyMem_Malloc(bytes);
        g->room_bytes = bytes;
    }
    if (g->room == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    u->results = (result *)g->room;
    u->room = gd_kernel_align(g->room + g->nsteps * sizeof(result));
    memset(u->results, 0, g->nsteps * sizeof(result));
    u->room_bytes = g->room_bytes;
    g->room = NULL;
    return 0;
}

static void
give_room_back(unit *u)
{
    for (uint32_t i = 0; i < u->g->nsteps; i++) {
        Py_CLEAR(u->results[i].object);
    }
    PyMem_Free(u->g->room);
    u->g->room = (char *)u->results;
    u->g->room_bytes = u->room_bytes;
}

/* Runs the steps, in the unit's room. Returns 1, or -1 with an exception set. */
static int
run_steps(unit *u)
{
    int ran = 1;
    for (uint32_t at = 0; at < u->g->nsteps && ran >= 0; at++) {
        ran = read_item(u, at);
        ran = ran != 0 ? ran : compute(u, at);
        ran = ran != 0 ? ran : call_step(u, at);
    }
    return ran < 0 ? -1 : 1;
}

int
gd_group_run_small(gd_group *g, PyObject *const *external)
{
    unit u;
    u.g = g;
    u.external = external;
    u.fresh = NULL;
    if (!g->with_kernels || !gd_kernels_in_use() || !is_unseen() || !read_externals(&u)) {
        return 0;
    }
    if (take_room(&u) < 0) {
        return -1;
    }
    int ran = run_steps(&u);
    give_room_back(&u);
    if (ran < 0 || PyErr_CheckSignals() < 0) {
        return -1;
    }
    g->small++;
    return 1;
}

/* Reports whether the strides are those of a tensor that torch has just made. In a contiguous tensor, dimensions of
 * size 1 may have other strides. */
static int
strides_are_usual(const gd_tensor_view *view)
{
    int64_t n = 1;
    for (int32_t i = view->ndim - 1; i >= 0; i--) {
        if (view->strides[i] != n) {
            return 0;
        }
        n *= view->sizes[i];
    }
    return 1;
}

/* Reports whether an external may be an operand of an Epilogue: a number, or a tensor with usual strides with which
 * autograd records nothing. */
static int
is_plain_operand(const unit *u, uint32_t i)
{
    return u->externals[i].data == NULL
           || (u->externals[i].n > 0 && strides_are_usual(&u->views[i])
               && (!u->views[i].requires_grad || !gd_torch_grad_enabled()));
}

PyObject *
gd_group_run_fresh(gd_group *g, PyObject *const *external)
{
    unit u;
    u.g = g;
    u.external = external;
    if (!gd_tensor_is_plain(external[0]) || GD_TENSOR_FIELD(void *, gd_tensor_impl(external[0]), autograd_meta) != NULL
        || !gd_kernels_in_use() || !is_unseen() || !read_externals(&u) || u.externals[0].data == NULL
        || torchs.version(tensor_in(external[0])) != 0) { /* torch has changed what it made: v @ m for a vector v */
        return NULL;
    }
    for (uint32_t i = 0; i < g->externals; i++) {
        if (!is_plain_operand(&u, i)) {
            return NULL;
        }
    }
    u.fresh = u.externals[0].data;
    if (take_room(&u) < 0) {
        return NULL;
    }
    PyObject *made = NULL;
    if (run_steps(&u) > 0) {
        made = Py_NewRef(u.results->object != NULL ? u.results->object : external[0]);
    }
    give_room_back(&u);
    return made;
}
