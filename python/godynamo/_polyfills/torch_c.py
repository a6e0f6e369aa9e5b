"""Imports the stand-ins for functions and classes of torch._C."""

from . import torch_modes, torch_sizes

__all__ = ["torch_modes", "torch_sizes"]
