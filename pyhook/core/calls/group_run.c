/* Runs the units of a group, together where nothing can tell, or else one after the other. */
#include "calls/group_run.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calls/group_small.h"
#include "torch/tensor_grad.h"
#include "torch/tensor_layout.h"
#include "torch/torch_modes.h"
#include "torch/torch_state.h"

/* Tensors of more bytes run alone: little of their time is spent in calling operations, and a unit's operations
 * find the tensor in the cache. The temporaries of units that run together are alive together. */
enum { TENSOR_BYTES = 128 << 10, TOGETHER_BYTES = 4 << 20 };

/* Units of more steps run alone; the translator makes none. */
enum { MOST_STEPS = 64 };

/* ---- one unit after the other ---- */

/* Runs one step of one unit. local: the results of its earlier steps. Returns a new reference. */
static PyObject *
run_step(const gd_group_step *s, PyObject *const *external, PyObject *const *local)
{
    PyObject *args[GD_GROUP_OPERANDS];
    for (uint32_t i = 0; i < s->n; i++) {
        const gd_group_operand *o = &s->operands[i];
        args[i] = o->from == GD_FROM_EXTERNAL ? external[o->index]
                  : o->from == GD_FROM_STEP   ? local[o->index]
                                              : o->value;
    }
    return gd_group_call_step(s, args);
}

/* Runs one unit. local has room for the results, new references until their last use. Returns 0, or -1 with an
 * exception set. */
static int
run_unit(const gd_group *g, PyObject *const *external, PyObject **local)
{
    int failed = 0;
    uint32_t done = 0;
    memset(local, 0, g->nsteps * sizeof(*local));
    for (; done < g->nsteps && !failed; done++) {
        const gd_group_step *s = &g->steps[done];
        local[done] = run_step(s, external, local);
        failed = local[done] == NULL || PyErr_CheckSignals() < 0; /* as CPython does after a call */
        for (uint32_t i = 0; i < s->n; i++) {
            const gd_group_operand *o = &s->operands[i];
            if (o->from == GD_FROM_STEP && g->steps[o->index].last == done) {
                Py_CLEAR(local[o->index]);
            }
        }
        if (s->last == done) {
            Py_CLEAR(local[done]);
        }
    }
    for (uint32_t i = 0; i < done; i++) {
        Py_XDECREF(local[i]);
    }
    return -failed;
}

/* ---- whether units may run together ---- */

typedef struct {
    const char *from, *to;
    int written;
} range;

typedef struct {
    const gd_group *g;
    PyObject *const *external; /* of the first unit */
    uint32_t n;                /* units */
    PyObject **ext_lists;      /* per external: strong list of its values, or NULL */
    PyObject **lists;          /* per step: strong list of its results, or NULL */
} together;

static inline int
is_tensor(PyObject *v)
{
    return PyObject_TypeCheck(v, gd_tensor_layout.base);
}

static int
is_number(PyObject *v)
{
    return PyFloat_CheckExact(v) || PyLong_CheckExact(v);
}

/* Reports whether this thread is in a state in which operations without a common tensor can change places. */
static int
order_is_unseen(void)
{
    return gd_tensor_layout_ensure() && gd_tensor_layout.storage != 0 && gd_torch_state_ensure() == 0
           && !gd_torch_grad_enabled() && !gd_torch_mode_active();
}

/* Stores the memory of a tensor's storage. Returns 0 if the tensor is of another kind than units may have that run
 * together, or if it is large. */
static int
find_memory(PyObject *v, gd_tensor_view *view, range *memory)
{
    enum { FLOAT = 6, DOUBLE = 7 }; /* c10::ScalarType */
    /* _foreach_mul_ of half precision by a number rounds differently. */
    if (!gd_tensor_is_plain(v) || !gd_tensor_view_read(v, view) || view->device_type != 0
        || (view->scalar_type != FLOAT && view->scalar_type != DOUBLE)) {
        return 0;
    }
    const char *storage = GD_TENSOR_FIELD(char *, gd_tensor_impl(v), storage);
    if (storage == NULL) {
        return 0;
    }
    memory->from = GD_TENSOR_FIELD(char *, storage, data);
    uint64_t bytes = GD_TENSOR_FIELD(uint64_t, storage, nbytes);
    memory->to = memory->from + bytes;
    return bytes <= TENSOR_BYTES;
}

/* The operands of a call of torch._foreach_*: tensors, and perhaps a number or a list of numbers at the end. */
typedef struct {
    PyObject *args[GD_GROUP_OPERANDS];
    uint32_t tensors; /* leading lists of tensors */
    int numbers;      /* after them: 0 nothing, 1 one number, 2 a list of numbers, 3 anything else */
} operands;

/* Reports whether torch's function takes these operands. */
static int
fits(const gd_group_step *s, const operands *found)
{
    PyObject *name = s->names != NULL ? PyTuple_GET_ITEM(s->names, 0) : NULL;
    if (name != NULL && PyTuple_GET_SIZE(s->names) > 1) {
        return 0;
    }
    switch (s->form) {
    case GD_FOREACH_ONE:
        return found->tensors == 1 && found->numbers == 0;
    case GD_FOREACH_COPY:
        return found->tensors == 2 && found->numbers == 0;
    case GD_FOREACH_LERP:
        return found->tensors == 2 && found->numbers == 1 && name == NULL;
    case GD_FOREACH_OTHER:
        if (found->tensors == 2 && found->numbers == 1) {
            return name != NULL && PyUnicode_CompareWithASCIIString(name, "alpha") == 0;
        }
        return name == NULL && (found->tensors == 2 ? found->numbers == 0 : found->tensors == 1 && found->numbers != 0);
    case GD_FOREACH_THREE:
        if (found->tensors != 3) {
            return 0;
        }
        return found->numbers == 0 || (name != NULL && PyUnicode_CompareWithASCIIString(name, "value") == 0);
    default:
        return 0;
    }
}

/* Reports whether the object is a number that torch takes for elements of single and double precision. */
static int
is_fitting_number(PyObject *v)
{
    int overflow = 0;
    if (PyLong_CheckExact(v)) {
        (void)PyLong_AsLongAndOverflow(v, &overflow);
        return overflow == 0;
    }
    return PyFloat_CheckExact(v) && (fabs(PyFloat_AS_DOUBLE(v)) <= FLT_MAX || !isfinite(PyFloat_AS_DOUBLE(v)));
}

/* Reports whether no operation in place raises for the tensor. torch refuses tensors whose elements share memory, and
 * inference tensors. */
static int
may_change(const gd_tensor_view *view)
{
    for (int32_t i = 0; i < view->ndim; i++) {
        if (view->strides[i] == 0 && view->sizes[i] > 1) {
            return 0;
        }
    }
    return view->keyset == gd_tensor_layout.cpu_keys;
}

static int
same_sizes(const gd_tensor_view *a, const gd_tensor_view *b)
{
    return a->ndim == b->ndim && memcmp(a->sizes, b->sizes, (size_t)a->ndim * sizeof(a->sizes[0])) == 0;
}

/* Adds an operand that is a tensor of this view, or a number (NULL). *result is the view of the step's result so far.
 * Returns 0 if the operation might raise. */
static int
add_operand(const gd_group_step *s, operands *found, const gd_tensor_view *view, const gd_tensor_view **result)
{
    if (view == NULL) {
        found->numbers = found->numbers == 0 ? 1 : 3;
        return 1;
    }
    found->tensors += found->numbers == 0;
    if (*result == NULL || same_sizes(*result, view)) {
        *result = *result != NULL ? *result : view;
        return view->scalar_type == (*result)->scalar_type;
    }
    if (view->ndim != 0) { /* an operand without dimensions fits all others */
        if ((*result)->ndim != 0 || s->writes) {
            return 0;
        }
        *result = view;
    }
    return view->scalar_type == (*result)->scalar_type;
}

/* Reports whether no step of the unit can raise: an exception would come after steps of later units. */
static int
raises_nothing(const gd_group *g, PyObject *const *external, const gd_tensor_view *views)
{
    const gd_tensor_view *made[MOST_STEPS];
    for (uint32_t at = 0; at < g->nsteps; at++) {
        const gd_group_step *s = &g->steps[at];
        const gd_tensor_view *result = NULL;
        operands found = {.tensors = 0, .numbers = 0};
        for (const gd_group_operand *o = s->operands; o < s->operands + s->n; o++) {
            const gd_tensor_view *view = NULL;
            if (o->from == GD_FROM_STEP) {
                view = made[o->index];
            }
            else if (o->from == GD_FROM_EXTERNAL && is_tensor(external[o->index])) {
                view = &views[o->index];
            }
            if ((o->from == GD_FROM_CONSTANT && !is_fitting_number(o->value))
                || !add_operand(s, &found, view, &result)) {
                return 0;
            }
        }
        if (at == MOST_STEPS || (found.tensors == 0 ? s->operator == NULL : s->foreach != NULL && !fits(s, &found))) {
            return 0;
        }
        if (s->small == GD_SMALL_ITEM && (result == NULL || !same_sizes(result, &(gd_tensor_view){.ndim = 0}))) {
            return 0;
        }
        made[at] = s->small != GD_SMALL_ITEM ? result : NULL;
    }
    return 1;
}

/* Returns how many bytes the unit's tensors have, or 0 if the unit runs alone. Fills the ranges of its externals; that
 * of a number is empty. */
static size_t
measure_unit(gd_group *g, PyObject *const *external, range *ranges)
{
    size_t bytes = 1;
    gd_tensor_view views[GD_GROUP_EXTERNALS];
    for (uint32_t i = 0; i < g->externals; i++) {
        ranges[i] = (range){NULL, NULL, g->written[i]};
        if (is_tensor(external[i])) {
            if (!find_memory(external[i], &views[i], &ranges[i]) || (g->written[i] && !may_change(&views[i]))
                || !gd_group_calls_torch(g, Py_TYPE(external[i]))) {
                return 0;
            }
            bytes += (size_t)(ranges[i].to - ranges[i].from);
        }
        else if (!is_fitting_number(external[i])) {
            return 0;
        }
    }
    return raises_nothing(g, external, views) ? bytes : 0;
}

static int
by_start(const void *a, const void *b)
{
    const range *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* Reports whether no memory that is written is in two of the ranges. Sorts them. */
static int
apart(range *ranges, size_t n)
{
    const char *end = NULL, *written_end = NULL; /* of the ranges so far */
    qsort(ranges, n, sizeof(range), by_start);
    for (const range *r = ranges; r < ranges + n; r++) {
        if (r->from == r->to) {
            continue;
        }
        if (r->from < (r->written ? end : written_end)) {
            return 0;
        }
        end = r->to > end ? r->to : end;
        if (r->written) {
            written_end = r->to > written_end ? r->to : written_end;
        }
    }
    return 1;
}

/* ---- units together ---- */

/* Returns the units' values of an operand, borrowed; NULL with an exception set if memory is out. */
static PyObject *
list_of(together *t, const gd_group_operand *o)
{
    if (o->from == GD_FROM_STEP) {
        return t->lists[o->index];
    }
    PyObject **list = &t->ext_lists[o->index];
    if (*list == NULL && (*list = PyList_New(t->n)) != NULL) {
        for (uint32_t u = 0; u < t->n; u++) {
            PyList_SET_ITEM(*list, u, Py_NewRef(t->external[u * t->g->externals + o->index]));
        }
    }
    return *list;
}

static int
all_are(PyObject *list, int (*is)(PyObject *))
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        if (!is(PyList_GET_ITEM(list, i))) {
            return 0;
        }
    }
    return 1;
}

/* Returns the number if all units have the same float, or else the list; borrowed. */
static PyObject *
one_or_all(PyObject *numbers)
{
    PyObject *first = PyList_GET_ITEM(numbers, 0);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(numbers); i++) {
        PyObject *v = PyList_GET_ITEM(numbers, i);
        if (!PyFloat_CheckExact(v) || !PyFloat_CheckExact(first) || PyFloat_AS_DOUBLE(v) != PyFloat_AS_DOUBLE(first)) {
            return numbers;
        }
    }
    return first;
}

/* Returns 0, or -1 with an exception set. */
static int
collect(together *t, const gd_group_step *s, operands *found)
{
    found->tensors = 0;
    found->numbers = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const gd_group_operand *o = &s->operands[i];
        PyObject *v = o->from == GD_FROM_CONSTANT ? o->value : list_of(t, o);
        if (v == NULL) {
            return -1;
        }
        if (o->from != GD_FROM_CONSTANT && found->numbers == 0 && all_are(v, is_tensor)) {
            found->tensors++;
        }
        else if (i + 1 < s->n || (o->from == GD_FROM_CONSTANT ? !is_number(v) : !all_are(v, is_number))) {
            found->numbers = 3;
            return 0;
        }
        else {
            v = o->from == GD_FROM_CONSTANT ? v : one_or_all(v);
            found->numbers = PyList_CheckExact(v) ? 2 : 1;
        }
        found->args[i] = v;
    }
    return 0;
}

/* Runs a step for each unit. Returns a new list of the results. */
static PyObject *
each(together *t, const gd_group_step *s, PyObject **local)
{
    PyObject *results = PyList_New(t->n);
    for (uint32_t u = 0; results != NULL && u < t->n; u++) {
        for (uint32_t i = 0; i < s->n; i++) {
            if (s->operands[i].from == GD_FROM_STEP) {
                local[s->operands[i].index] = PyList_GET_ITEM(t->lists[s->operands[i].index], u);
            }
        }
        PyObject *result = run_step(s, t->external + (size_t)u * t->g->externals, local);
        if (result == NULL) {
            Py_CLEAR(results);
        }
        else {
            PyList_SET_ITEM(results, u, result);
        }
    }
    return results;
}

/* Runs a step of all units. Returns a new list of the results. */
static PyObject *
all_at_once(together *t, const gd_group_step *s, PyObject **local)
{
    operands found;
    if (s->foreach == NULL) {
        return each(t, s, local);
    }
    if (collect(t, s, &found) < 0) {
        return NULL;
    }
    if (found.numbers == 3 || found.tensors == 0 || !fits(s, &found)) {
        return each(t, s, local);
    }
    /* A list of numbers is the function's own parameter, not `value`. */
    PyObject *names = found.numbers == 2 ? NULL : s->names;
    PyObject *result = PyObject_Vectorcall(s->foreach, found.args, s->n - (names != NULL), names);
    if (result == NULL || !s->writes) {
        PyObject *list = result != NULL ? PySequence_List(result) : NULL;
        Py_XDECREF(result);
        return list;
    }
    Py_DECREF(result);
    return Py_NewRef(found.args[0]);
}

/* Runs the units together. lists and local have room for a result of each step: strong in lists, borrowed in local.
 * Returns 0, or -1 with an exception set. */
static int
run_together(const gd_group *g, PyObject *const *external, uint32_t n, PyObject **lists, PyObject **local)
{
    PyObject *ext_lists[GD_GROUP_EXTERNALS] = {NULL};
    together t = {g, external, n, ext_lists, lists};
    int failed = 0;
    memset(lists, 0, g->nsteps * sizeof(*lists));
    for (uint32_t i = 0; i < g->nsteps && !failed; i++) {
        const gd_group_step *s = &g->steps[i];
        lists[i] = all_at_once(&t, s, local);
        failed = lists[i] == NULL;
        for (uint32_t k = 0; k < s->n; k++) {
            const gd_group_operand *o = &s->operands[k];
            if (o->from == GD_FROM_STEP && g->steps[o->index].last == i) {
                Py_CLEAR(lists[o->index]);
            }
        }
    }
    for (uint32_t i = 0; i < g->nsteps; i++) {
        Py_XDECREF(lists[i]);
    }
    for (uint32_t i = 0; i < g->externals; i++) {
        Py_XDECREF(ext_lists[i]);
    }
    return -failed;
}

/* Runs units from the first on: as many together as are small, or one. Returns how many, or -1 with an exception set.
 * ranges has room for those of all units, and room for two results of each step, new references. */
static int
run_next(gd_group *g, PyObject *const *external, uint32_t left, range *ranges, PyObject **room)
{
    uint32_t n = 0;
    for (size_t bytes = 0, one; n < left && bytes <= TOGETHER_BYTES; n++, bytes += one) {
        one = measure_unit(g, external + (size_t)n * g->externals, ranges + (size_t)n * g->externals);
        if (one == 0) {
            break;
        }
    }
    if (n >= 2 && apart(ranges, (size_t)n * g->externals)) {
        g->grouped += n;
        int failed = run_together(g, external, n, room, room + g->nsteps) < 0 || PyErr_CheckSignals() < 0;
        return failed ? -1 : (int)n;
    }
    n = n > 0 ? n : 1;
    for (uint32_t u = 0; u < n; u++) {
        if (run_unit(g, external + (size_t)u * g->externals, room) < 0) {
            return -1;
        }
    }
    return (int)n;
}

/* Returns a new reference, or NULL with an exception set. */
PyObject *
gd_group_call(PyObject *group, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    gd_group *g = (gd_group *)group;
    size_t n = (size_t)g->units * g->externals;
    if (kwnames != NULL || (size_t)PyVectorcall_NARGS(nargsf) != n) {
        PyErr_Format(PyExc_TypeError, "a group takes %zu values", n);
        return NULL;
    }
    PyObject **room = PyMem_Malloc(2 * g->nsteps * sizeof(PyObject *));
    range *ranges = PyMem_Malloc(n * sizeof(range));
    if (room == NULL || ranges == NULL) {
        PyErr_NoMemory();
    }
    int unseen = order_is_unseen(), ran = room != NULL && ranges != NULL ? 0 : -1;
    g->grouped = g->small = 0;
    for (uint32_t u = 0; ran >= 0 && u < g->units; u += (uint32_t)ran) {
        PyObject *const *external = args + (size_t)u * g->externals;
        if (unseen) {
            ran = gd_group_run_small(g, external);
            ran = ran != 0 ? ran : run_next(g, external, g->units - u, ranges, room);
        }
        else {
            ran = run_unit(g, external, room) < 0 ? -1 : 1;
        }
    }
    PyMem_Free(room);
    PyMem_Free(ranges);
    return ran < 0 ? NULL : Py_NewRef(Py_None);
}
