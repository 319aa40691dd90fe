"""`python -m vitcpp` is the program vit."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    program = os.environ.get("VITCPP_PROGRAM") or str(Path(__file__).parent / "bin" / "vit")
    try:
        os.execv(program, ["vit", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"vitcpp: {program}: {error.strerror}")


if __name__ == "__main__":
    main()
