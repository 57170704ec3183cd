"""Exceptions, one for each way in which the caller can react."""

from typing import Any

__all__ = [
    "AfterCommitError",
    "AlreadyExistsError",
    "CorruptError",
    "Error",
    "InvalidError",
    "IoError",
    "LimitError",
    "LockedError",
    "NoSpaceError",
    "NotAnIndexError",
    "ParamsMismatchError",
    "PoisonedError",
    "UnsupportedError",
]


class Error(Exception):
    """The base class of errors. The message names the problem and where it occurred; the attributes are for programs.

    Attributes that do not apply are None.

    path: the file or directory.
    section, offset: where in the file damage was found.
    record: the position in the batch, from 0, of the refused record.
    field: the name of the parameter or argument.
    expected, found: the expected and the actual value, as text.
    remedy: what to do next.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        section: str | None = None,
        offset: int | None = None,
        record: int | None = None,
        field: str | None = None,
        expected: str | None = None,
        found: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message)
        self.path = path
        self.section = section
        self.offset = offset
        self.record = record
        self.field = field
        self.expected = expected
        self.found = found
        self.remedy = remedy

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message} ({self.remedy})" if self.remedy else message

    def __reduce__(self) -> tuple[Any, ...]:
        # Keeps all attributes, so that a worker's error reaches the driver complete.
        return _again, (type(self), self.args[0], self.__dict__.copy())


def _again(cls: type[Error], message: str, details: dict[str, Any]) -> Error:
    return cls(message, **details)


class NotAnIndexError(Error):
    """There is no index at this path."""


class AlreadyExistsError(Error):
    """The path of the new index exists already; nothing was changed."""


class LockedError(Error):
    """An index has one writer at a time, across processes."""


class UnsupportedError(Error):
    """The file was written by a newer version of twindex."""


class ParamsMismatchError(Error):
    """The parameters differ; `field` names the first difference."""


class CorruptError(Error):
    """Bytes on disk differ from what was written."""


class IoError(Error):
    """The operating system reported an error."""


class InvalidError(Error, ValueError):
    """An argument or a request is invalid."""


class LimitError(Error, ValueError):
    """A documented limit was reached; nothing was written."""


class NoSpaceError(Error):
    """The disk has too little space for the request; nothing was written."""


class PoisonedError(Error):
    """An earlier write failed, so the writer accepts no more changes."""


class AfterCommitError(Error):
    """The batch is committed, but the writer stopped after it."""
