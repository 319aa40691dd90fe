"""The exceptions of the package: one class for each kind of failure, with the text of the library."""

from __future__ import annotations


class Error(Exception):
    """What the library could not do. `str()` is one line: the operation in brackets, then what was expected and found.

    Attributes:
        kind: "argument", "io", "format", "unsupported", "mismatch" or "internal".
    """

    kind: str = "internal"


class ArgumentError(Error, ValueError):
    """The call is wrong: a value out of range, a type or shape that does not fit, a closed model."""

    kind = "argument"


class FileError(Error, OSError):
    """The system refused: a file is missing or unreadable, or memory is short."""

    kind = "io"


class FormatError(Error, ValueError):
    """A file is damaged, truncated, or not what its name says."""

    kind = "format"


class UnsupportedError(Error, NotImplementedError):
    """A well-formed file asks for something that is not implemented."""

    kind = "unsupported"


class MismatchError(Error, ValueError):
    """Files, or a file and an option, contradict each other."""

    kind = "mismatch"


class InternalError(Error, RuntimeError):
    """A defect of the library."""


CLASSES: dict[int, type[Error]] = {
    1: ArgumentError,
    2: FileError,
    3: FormatError,
    4: UnsupportedError,
    5: MismatchError,
    6: InternalError,
}
