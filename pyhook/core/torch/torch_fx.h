/* torch.fx's symbolic tracing, which replaces two functions of torch.nn.Module with its own. */
#ifndef GD_TORCH_FX_H
#define GD_TORCH_FX_H

#include "pycompat.h"

/* Where the two functions are looked for. */
typedef struct {
    PyTypeObject *module; /* torch.nn.Module, strong; NULL: nothing to watch */
    PyObject *globals; /* strong: globals of the two functions that torch.fx puts there */
    unsigned int version; /* torch.nn.Module's version when it was last seen without these functions */
} gd_symbolic_tracer;

/* gd_torch_state_ensure fills it in. */
extern gd_symbolic_tracer gd_fx;

/* Finds torch.nn.Module and the module of torch.fx whose functions replace Module's methods. fx->module stays NULL if
 * torch has no symbolic tracing. Leaves no exception set. */
void gd_find_symbolic_tracer(gd_symbolic_tracer *fx);

/* Reports whether torch.nn.Module has the methods of symbolic tracing. If not, keeps its version. */
int gd_look_for_symbolic_tracer(void);

/* Reports whether torch.fx is tracing symbolically, on any thread. When tracing begins and when it ends,
 * torch.nn.Module gets a new version tag, so usually only the tag is compared. */
static inline int
gd_tracing_symbolically(void)
{
    const gd_symbolic_tracer *fx = &gd_fx;
    if (GD_UNLIKELY(fx->module == NULL)) {
        return 0;
    }
    unsigned int version = fx->module->tp_version_tag;
    return GD_UNLIKELY(version == 0 || version != fx->version) && gd_look_for_symbolic_tracer();
}

#endif
