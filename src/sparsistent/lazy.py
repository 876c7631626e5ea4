"""Attributes that are computed when they are first read, without a lock.

:class:`functools.cached_property` of Python 3.11 holds a lock, one for all instances of a class,
while it computes. A process that is forked meanwhile by another thread inherits the lock and not
the thread that would release it, and waits for ever when it reads the attribute of any instance.
Without a lock, two threads that read an attribute at the same time both compute it, and the value
that is stored last is kept: values must not depend on who computes them.
"""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

Value = TypeVar("Value")


class cached_property(Generic[Value]):
    """A method whose value is stored in the instance's ``__dict__``, where it is found next time.

    >>> class Table:
    ...     @cached_property
    ...     def total(self):
    ...         print("computing")
    ...         return 3
    >>> table = Table()
    >>> table.total + table.total
    computing
    6
    >>> vars(table)
    {'total': 3}
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self.compute = compute
        self.name = compute.__name__
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Value: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> Self | Value:
        """The value, computed: Python asks only where the instance has none."""
        if instance is None:
            return self
        value = self.compute(instance)
        vars(instance)[self.name] = value
        return value
