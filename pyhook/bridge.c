#include "bridge.h"
#include "_cgo_export.h"
#include "py/helpers.h"

const gd_core_api *gd_core;

void
gdb_set_core(const gd_core_api *core)
{
    gd_core = core;
    gdpy_on_return = core->python_returned;
    gdpy_signals = core->check_signals;
    gdpy_function_is_plain = core->runs_its_code;
}
int
gdb_code_view(PyObject *code, gd_code_view *out)
{
    return gd_core->code_view(code, out);
}
void
gdb_code_view_release(gd_code_view *view)
{
    gd_core->code_view_release(view);
}
PyObject *
gdb_code_new(const gd_code_spec *spec)
{
    return gd_core->code_new(spec);
}
PyObject *
gdb_entry_new(const gd_entry_spec *spec)
{
    return gd_core->entry_new(spec);
}
int
gdb_entry_check(PyObject *entry, PyObject *const *slots, uint32_t nslots, PyObject *globals, PyObject *builtins,
                int32_t *failed)
{
    return gd_core->entry_check(entry, slots, nslots, globals, builtins, failed);
}
int
gdb_tensor_view(PyObject *tensor, gd_tensor_view *out)
{
    return gd_core->tensor_view(tensor, out);
}
int
gdb_interrupted(void)
{
    return gd_core->interrupted();
}
int
gdb_mode_active(void)
{
    return gd_core->mode_active();
}
PyObject *
gdb_resume_new(PyObject *owner, PyObject *function)
{
    return gd_core->resume_new(owner, function);
}

static int
translate(const gd_request *request, gd_reply *reply)
{
    gdTranslate((gd_request *)request, reply);
    return 0;
}

static int64_t
archive(const char *folder, int64_t limit, const char *file, int store, char *error, size_t size)
{
    return gdArchive((char *)folder, limit, (char *)file, store, error, size);
}

void
gdb_fill_golib(gd_golib_api *out)
{
    out->abi = GD_ABI_VERSION;
    out->size = sizeof(*out);
    out->translate = translate;
    out->archive = archive;
}
