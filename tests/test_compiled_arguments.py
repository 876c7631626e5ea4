"""Compiled functions refuse arrays of another type, shape or layout, beyond which they would read.

The functions are found by the Cython sources and their stubs, so that none is forgotten; each needs
valid arguments in compiled_arguments.
"""

import inspect
from importlib import import_module

import numpy as np
import pytest
from compiled_arguments import MAKERS
from compiled_stubs import cython_modules, defined_in, functions_of_arrays, members, read

ELEMENTS = [np.dtype(kind) for kind in "?bBhilLefdD"]
FUNCTIONS = functions_of_arrays()


@pytest.mark.parametrize(("name", "stub"), cython_modules().items())
def test_a_stub_has_all_that_is_public(name, stub):
    module, promised = import_module(f"sparsistent.{name}"), read(stub)
    assert module.__doc__
    compiled = defined_in(vars(module), module.__name__)
    assert set(compiled) == set(promised)
    for key, value in compiled.items():
        assert value.__doc__, key
        if inspect.isclass(value):
            assert members(value) == members(promised[key])


def test_every_function_that_takes_arrays_has_valid_arguments():
    assert set(MAKERS) == set(FUNCTIONS), "see tests/compiled_arguments.py"


def made(key):
    """A call and its arguments, as the maker gives them."""
    call, arguments = MAKERS[key].make()
    assert list(arguments) == list(FUNCTIONS[key].signature.parameters)
    return call, arguments


def call_with(key, **changed):
    call, arguments = made(key)
    arguments |= changed
    by_name = {
        name: arguments.pop(name)
        for name, parameter in FUNCTIONS[key].signature.parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    return call(*arguments.values(), **by_name)


def given_arrays(key):
    """Name and value of each array that the maker gives."""
    _, arguments = made(key)
    for name, parameter in FUNCTIONS[key].arrays.items():
        value = arguments[name]
        if value is None and parameter.optional:
            continue
        assert value.dtype in parameter.elements
        assert value.size > 1, f"{name} needs two elements at least to be strided"
        yield name, value


def strided(value):
    """The same values, with a gap after each."""
    wide = np.zeros((*value.shape[:-1], 2 * value.shape[-1]), value.dtype)
    wide[..., ::2] = value
    return wide[..., ::2]


def of_other_types(value, elements):
    """Not an array, or one of other elements, byte order or number of dimensions."""
    # A bool is an unsigned byte in the buffer protocol.
    alike = {np.dtype(np.uint8), np.dtype(np.bool_)}
    accepted = elements | (alike if elements & alike else set())
    yield from ("text", 0.5, value.tolist())
    yield from (np.zeros(value.shape, kind) for kind in ELEMENTS if kind not in accepted)
    yield from (value[None], np.array(value[0]))
    if value.itemsize > 1:
        yield value.astype(value.dtype.newbyteorder())


def of_other_lengths(name, value, maker):
    """One element less or more along an axis."""
    for axis in range(value.ndim):
        if {name, (name, axis)} & set(maker.any_length):
            continue
        last = value.shape[axis] - 1
        # First, because where that is not checked nothing beyond the array is read.
        if not {name, (name, axis)} & set(maker.longer):
            yield value.take([*range(last + 1), last], axis)
        yield value.take(range(last), axis)


def is_refused(key, **changed):
    try:
        call_with(key, **changed)
    except (TypeError, ValueError):
        return
    pytest.fail(f"{key} takes {changed}")


@pytest.mark.parametrize("key", FUNCTIONS)
def test_arrays_of_other_types_are_refused(key):
    call_with(key)
    for name, value in given_arrays(key):
        parameter = FUNCTIONS[key].arrays[name]
        if not parameter.optional:
            is_refused(key, **{name: None})
        for other in of_other_types(value, parameter.elements):
            is_refused(key, **{name: other})


@pytest.mark.parametrize("key", FUNCTIONS)
def test_arrays_of_other_lengths_are_refused(key):
    for name, value in given_arrays(key):
        for other in of_other_lengths(name, value, MAKERS[key]):
            is_refused(key, **{name: other})


@pytest.mark.parametrize("key", FUNCTIONS)
def test_strided_arrays_are_taken_where_that_is_said(key):
    for name, value in given_arrays(key):
        for other in (strided(value), np.asfortranarray(value)):
            if other.flags.c_contiguous:
                continue
            if name in MAKERS[key].any_layout:
                call_with(key, **{name: other})
            else:
                is_refused(key, **{name: other})


@pytest.mark.parametrize("key", FUNCTIONS)
def test_read_only_arrays_are_taken_unless_they_are_written_to(key):
    for name, value in given_arrays(key):
        value.flags.writeable = False
        if name in MAKERS[key].written:
            is_refused(key, **{name: value})
        else:
            call_with(key, **{name: value})
