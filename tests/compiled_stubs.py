"""What the stubs of Cython modules say: functions, classes, and which parameters are arrays."""

import __future__

import inspect
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Union, get_args, get_origin, get_type_hints

import numpy as np

import sparsistent

SOURCE = Path(sparsistent.__file__).parent


def cython_modules(source=SOURCE):
    """The path of each stub by the name of its module below the package."""
    sources = [*source.glob("data/*.pyx"), *source.glob("engine/*.pyx")]
    return {f"{path.parent.name}.{path.stem}": path.with_suffix(".pyi") for path in sorted(sources)}


def read(stub):
    """The functions and classes that a stub defines, by name.

    A stub is a Python file whose functions do nothing; to run it resolves names and aliases.
    """
    flags = __future__.annotations.compiler_flag
    namespace = {"__name__": f"stub of {stub.stem}"}
    exec(compile(stub.read_text(encoding="utf-8"), stub, "exec", flags), namespace)
    return defined_in(namespace, namespace["__name__"])


def defined_in(names, module):
    """The public functions and classes among these names that this module defines.

    Functions for several types of numbers have Cython's own module there.
    """
    return {
        name: value
        for name, value in names.items()
        if not name.startswith("_")
        and callable(value)
        and (value.__module__ == module or value.__module__.startswith("_cython"))
    }


def members(kind):
    """The public methods, properties and other attributes of a class."""
    names = {*vars(kind), *vars(kind).get("__annotations__", ())}
    return {name for name in names if not name.startswith("_")}


def functions(module, stub):
    """Every function, constructor and method of a stub with its signature, without ``self``."""
    for name, value in read(stub).items():
        if not inspect.isclass(value):
            yield f"{module}.{name}", inspect.signature(value), get_type_hints(value)
            continue
        for method, function in vars(value).items():
            plain = getattr(function, "__func__", function)
            if not inspect.isfunction(plain) or (method[0] == "_" and method != "__init__"):
                continue
            signature = inspect.signature(plain)
            if not isinstance(function, staticmethod):
                signature = signature.replace(parameters=[*signature.parameters.values()][1:])
            key = f"{module}.{name}" if method == "__init__" else f"{module}.{name}.{method}"
            yield key, signature, get_type_hints(plain)


@dataclass(frozen=True)
class ArrayParameter:
    """The NumPy types that an array's elements may have, and whether None is as good."""

    elements: frozenset[np.dtype]
    optional: bool


def array_parameter(annotation):
    """What an annotation says of an array; None where it means something else."""
    is_union = get_origin(annotation) in (Union, types.UnionType)
    kinds = get_args(annotation) if is_union else (annotation,)
    arrays = [kind for kind in kinds if get_origin(kind) is np.ndarray]
    if not arrays:
        assert "ndarray" not in str(annotation), f"arrays in another type: {annotation}"
        return None
    elements = frozenset(np.dtype(get_args(get_args(kind)[1])[0]) for kind in arrays)
    return ArrayParameter(elements, optional=types.NoneType in kinds)


@dataclass(frozen=True)
class Function:
    """A compiled function that takes arrays."""

    signature: inspect.Signature
    arrays: dict[str, ArrayParameter]


def functions_of_arrays():
    """Every compiled function, constructor and method that takes arrays, by name."""
    found = {}
    for module, stub in cython_modules().items():
        for key, signature, hints in functions(module, stub):
            arrays = {name: array_parameter(hints[name]) for name in signature.parameters}
            if any(arrays.values()):
                arrays = {name: array for name, array in arrays.items() if array is not None}
                found[key] = Function(signature, arrays)
    return found
