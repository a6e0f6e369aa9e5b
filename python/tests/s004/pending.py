"""Tests of rows that are not reached yet, and why; see conftest.py."""

from __future__ import annotations

_BY_REASON: dict[str, list[str]] = {
    "typing.get_type_hints walks __mro__ and evaluates annotations: class attributes of type itself are not read": [
        "test_annotations::test_get_type_hints",
    ],
    "dict.fromkeys is not modelled": [
        "test_builtins::test_dict",
    ],
    "operators, construction and order of sets and frozensets are not modelled": [
        "test_builtins::test_sets",
        "test_classes::test_other_containers[set]",
        "test_classes::test_other_containers[frozenset]",
        "test_expressions::test_set_and_generator_expressions",
        "test_operators::test_operator_on_python_values[set--]",
        "test_operators::test_operator_on_python_values[set-&]",
        "test_operators::test_operator_on_python_values[set-^]",
        "test_operators::test_operator_on_python_values[set-|]",
        "test_operators::test_operator_on_python_values[set-<]",
        "test_operators::test_operator_on_python_values[set->]",
        "test_operators::test_operator_on_python_values[set-==]",
        "test_operators::test_operator_on_python_values[set->=]",
        "test_operators::test_operator_on_python_values[set-<=]",
        "test_operators::test_operator_on_python_values[set-!=]",
        "test_operators::test_set_operators",
        "test_statements::test_augmented_assignment_of_containers",
    ],
    "a property's deleter is not inlined": [
        "test_builtins_i_to_z::test_property",
    ],
    "iteration over a frozenset is not modelled": [
        "test_builtins_i_to_z::test_sorted",
    ],
    "user descriptors are not inlined": [
        "test_classes::test_descriptor",
    ],
    "types.SimpleNamespace is not modelled": [
        "test_classes::test_records_as_arguments",
        "test_expressions::test_attribute_reference",
    ],
    "instances of classes with their own __setattr__ (frozen dataclasses) are not made while translating": [
        "test_classes::test_records_made_inside",
        "test_classes::test_dataclass_helpers",
    ],
    "bytearray is not modelled": [
        "test_classes::test_other_containers[bytearray]",
    ],
    "deque, defaultdict and Counter are not modelled": [
        "test_classes::test_other_containers[deque]",
        "test_classes::test_other_containers[defaultdict]",
        "test_classes::test_other_containers[Counter]",
        "test_classes::test_other_containers_changed",
        "test_classes::test_other_containers_made",
        "test_classes::test_counter",
    ],
    "array.array is not modelled": [
        "test_classes::test_other_containers[array]",
    ],
    "objects with __next__ are not modelled as iterators": [
        "test_control_flow::test_for_over_user_iterators",
    ],
    "torch.inference_mode is not modelled as a mode of the graph": [
        "test_control_flow::test_with_torch_contexts[inference_mode]",
    ],
    "torch.profiler.record_function is not modelled": [
        "test_control_flow::test_with_torch_contexts[profiler]",
    ],
    "dict.get without arguments gives None instead of the TypeError": [
        "test_error_texts::test_text_of_a_caught_exception[dict.get arity]",
    ],
    "str() of a KeyError or AttributeError that CPython raised splits the frame": [
        "test_error_texts::test_common_errors_are_captured",
    ],
    "iteration by __getitem__ alone is not modelled": [
        "test_operators::test_membership[Indexed]",
    ],
    "tensor subclasses run in CPython: config.traceable_tensor_subclasses has no effect yet (rows S001)": [
        "test_types::test_tensor_subclasses[SubTensor]",
        "test_types::test_tensor_subclasses[SubWithTorchFunction]",
    ],
}

#: file::test, with its parameters where only some fail -> why
PENDING: dict[str, str] = {test: why for why, tests in _BY_REASON.items() for test in tests}
