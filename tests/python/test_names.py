"""The public names: each is used in every_name.py, and help() has a text for it."""

import inspect
from pathlib import Path

import every_name
import vitcpp
from conftest import DATA


def public_names():
    """(name, object) of the package, its modules of functions, and the methods of its classes."""
    owners = [(name, getattr(vitcpp, name)) for name in vitcpp.__all__]
    owners += [(name, value) for name, value in vars(vitcpp.position).items()
               if inspect.isfunction(value) and value.__module__ == "vitcpp.position" and not name.startswith("_")]  # fmt: skip
    for name, value in owners:
        yield name, value
        if inspect.isclass(value) and not issubclass(value, (Exception, dict, tuple)):
            for base in value.__mro__[:-1]:
                yield from ((own, getattr(value, own)) for own in vars(base) if not own.startswith("_"))


def test_every_name_is_used_and_explained():
    used = Path(every_name.__file__).read_text(encoding="utf-8")
    names = dict(public_names())
    assert len(names) > 50
    assert [name for name in names if name not in used] == []
    assert [name for name, value in names.items() if not inspect.getdoc(value)] == []


def test_every_name_works(tmp_path):
    every_name.main(DATA, tmp_path)
