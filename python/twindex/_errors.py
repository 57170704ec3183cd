"""Exceptions, by what the caller can do about them."""

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
    """What twindex refuses or finds wrong. The message says what and where; the attributes say it to a program.

    Attributes that do not apply are None.

    path: the file or directory.
    section, offset: where in the file damage was noticed.
    record: the place in a batch, from 0, of the record that was refused.
    field: the parameter that differs.
    expected, found: both values, as text.
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
        # With all that is known, so that an error of a worker reaches the driver whole.
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
    """A newer twindex wrote it."""


class ParamsMismatchError(Error):
    """Made with other parameters; `field` says which differs."""


class CorruptError(Error):
    """Bytes on disk are not what was written."""


class IoError(Error):
    """The operating system refused."""


class InvalidError(Error, ValueError):
    """The caller asked for something that cannot be."""


class LimitError(Error, ValueError):
    """A stated limit was reached; nothing was written."""


class NoSpaceError(Error):
    """The disk has too little space for the request; nothing was written."""


class PoisonedError(Error):
    """An earlier write failed, and ended the writer."""


class AfterCommitError(Error):
    """The batch is committed, but the writer stopped after it."""
