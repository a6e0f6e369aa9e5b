/* Implements torch/torch_observers.h. */
#include "torch/torch_observers.h"

#include "runtime.h"
#include "torch/torch_symbols.h"

/* at::isRecordFunctionEnabled and at::enableRecordFunction, which concern the calling thread. NULL if this torch has
 * none, or torch has not been imported. */
static _Bool (*shown)(void);
static void (*show)(_Bool);

static int
found(void)
{
    if (GD_UNLIKELY(show == NULL)) {
        void *is = gd_torch_symbol("_ZN2at23isRecordFunctionEnabledEv");
        void *set = is != NULL ? gd_torch_symbol("_ZN2at20enableRecordFunctionEb") : NULL;
        memcpy(&shown, &is, sizeof shown);
        memcpy(&show, &set, sizeof show);
    }
    return show != NULL;
}

int
gd_torch_observed(void)
{
    static int looked_for;
    static _Bool (*observed)(void);
    if (GD_UNLIKELY(!looked_for)) {
        void *has = gd_torch_symbol("_ZN2at12hasCallbacksEv");
        memcpy(&observed, &has, sizeof observed);
        looked_for = 1;
    }
    return observed == NULL || observed();
}

int
gd_torch_hide(void)
{
    if (!found() || !shown()) {
        return 0;
    }
    gd_thread.hides_operators++;
    show(0);
    return 1;
}

void
gd_torch_show(int hidden)
{
    if (hidden) {
        show(1);
        gd_thread.hides_operators--;
    }
}

/* Returns an immortal object. */
static PyObject *
show_operators(PyObject *Py_UNUSED(module), PyObject *on)
{
    if (gd_thread.hides_operators == 0) { /* the program may have switched observers off itself */
        Py_RETURN_TRUE;
    }
    int before = shown();
    show(on == Py_True);
    return PyBool_FromLong(before);
}

static PyMethodDef functions[] = {
    {"show_operators", show_operators, METH_O,
     "show_operators(on: bool) -> bool\n\n"
     "Shows the thread's operators to profilers while a function is translated, or hides them again. Returns whether "
     "they were shown."},
    {NULL, NULL, 0, NULL},
};

int
gd_torch_observers_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
