/* The gradient of a leaf tensor: see torch/tensor_grad.h. */
#include "torch/tensor_grad.h"

#include "runtime.h"
#include "torch/tensor_layout.h"
#include "torch/torch_state.h"
#include "torch/torch_symbols.h"

/* torch.Tensor and nn.Parameter, strong, and the descriptor TensorBase.grad, which its class owns. NULL until found. */
static PyTypeObject *tensor_type, *parameter_type;
static PyGetSetDescrObject *descriptor;

/* Finds what reading a gradient takes, once. Reports whether it has. Leaves no exception set. */
static int
found(void)
{
    if (GD_LIKELY(descriptor != NULL)) {
        return 1;
    }
    int known = gd_tensor_layout_ensure() && gd_torch_state_ensure() == 0;
    PyObject *tensor = known ? gd_torch_attribute("Tensor") : NULL;
    PyObject *parameter = tensor != NULL ? gd_torch_attribute("nn.Parameter") : NULL;
    PyObject *name = parameter != NULL ? PyUnicode_InternFromString("grad") : NULL;
    PyObject *grad = name != NULL ? _PyType_Lookup(gd_tensor_layout.base, name) : NULL;
    PyErr_Clear();
    Py_XDECREF(name);
    if (grad == NULL || !Py_IS_TYPE(grad, &PyGetSetDescr_Type)) {
        Py_XDECREF(tensor);
        Py_XDECREF(parameter);
        return 0;
    }
    tensor_type = (PyTypeObject *)tensor;
    parameter_type = (PyTypeObject *)parameter;
    descriptor = (PyGetSetDescrObject *)grad;
    return 1;
}

int
gd_tensor_is_plain(PyObject *v)
{
    return found() && (Py_IS_TYPE(v, tensor_type) || Py_IS_TYPE(v, parameter_type));
}

PyObject *
gd_tensor_grad(PyObject *v)
{
    if (!gd_tensor_is_plain(v) || gd_torch_modes_entered(GD_TORCH_FUNCTION_MODES) != 0) {
        return NULL;
    }
    const char *impl = gd_tensor_impl(v);
    if (impl == NULL) {
        return NULL;
    }
    const char *meta = GD_TENSOR_FIELD(char *, impl, autograd_meta);
    if (meta == NULL) {
        return Py_None;
    }
    if (*(const uint64_t *)meta != gd_tensor_layout.plain_meta || !gd_tensor_is_leaf(impl)) {
        return NULL;
    }
    PyObject *grad = descriptor->d_getset->get(v, descriptor->d_getset->closure);
    if (grad == NULL) {
        PyErr_Clear();
        return NULL;
    }
    Py_DECREF(grad); /* v's C++ tensor holds the gradient's, which keeps its Python object */
    return grad;
}

/* Returns a new reference. */
static PyObject *
tensor_grad(PyObject *Py_UNUSED(module), PyObject *v)
{
    PyObject *grad = gd_tensor_grad(v);
    return Py_NewRef(grad != NULL ? grad : Py_NotImplemented);
}

/* Reports whether a gradient is as torch makes it by default: of torch's own class, dense, with the leaf's dtype,
 * sizes and strides, which do not count for dimensions of size 1. Returns 0 also if this cannot be told here. */
static int
fits_leaf(PyObject *gradient, PyObject *leaf)
{
    gd_tensor_view g, l;
    if (!Py_IS_TYPE(gradient, tensor_type) || !gd_tensor_view_read(gradient, &g) || !gd_tensor_view_read(leaf, &l)) {
        return 0;
    }
    int fits = g.scalar_type == l.scalar_type && g.ndim == l.ndim;
    for (int32_t i = 0; fits && i < g.ndim; i++) {
        fits = g.sizes[i] == l.sizes[i] && (g.strides[i] == l.strides[i] || g.sizes[i] == 1);
    }
    return fits;
}

/* Returns a new reference. */
static PyObject *
usual_gradients(PyObject *Py_UNUSED(module), PyObject *leaves)
{
    if (!PyTuple_CheckExact(leaves)) {
        return Py_NewRef(Py_None);
    }
    Py_ssize_t n = PyTuple_GET_SIZE(leaves);
    PyObject *gradients = PyTuple_New(n);
    for (Py_ssize_t i = 0; gradients != NULL && i < n; i++) {
        PyObject *leaf = PyTuple_GET_ITEM(leaves, i), *gradient = gd_tensor_grad(leaf);
        if (gradient == NULL || !fits_leaf(gradient, leaf)) {
            Py_DECREF(gradients);
            return Py_NewRef(Py_None);
        }
        PyTuple_SET_ITEM(gradients, i, Py_NewRef(gradient));
    }
    return gradients;
}

static PyMethodDef functions[] = {
    {"tensor_grad", tensor_grad, METH_O,
     "tensor_grad(tensor) -> Tensor | None | NotImplemented\n\n"
     "The gradient of a leaf tensor, as guards read it. NotImplemented if reading it could run code or warn."},
    {"usual_gradients", usual_gradients, METH_O,
     "usual_gradients(leaves) -> tuple[Tensor, ...] | None\n\n"
     "The gradients of a tuple of leaves, if each is a dense tensor with its leaf's dtype, sizes and strides; None "
     "if that is not so or cannot be told here."},
    {NULL, NULL, 0, NULL},
};

int
gd_tensor_grad_init(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
