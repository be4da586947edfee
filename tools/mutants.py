"""How many small changes of the code the tests notice, by package: what `make mutants` prints at its end.

mutmut keeps an exit code for each change that it has tried, in files beside its copies of the modules. So the figures
grow with each piece.
"""

import json
from collections import Counter
from pathlib import Path

COPIES = Path("mutants") / "langgraph"
# The exit codes of mutmut; any other is that of tests that failed, or never ended.
_UNNOTICED, _UNREACHED, _UNTRIED = (0,), (5, 33), (None, 2)


def figures(copies: Path) -> dict[str, Counter[str]]:
    """Return the number of changes of each package by what became of them, without those that were not tried."""
    found: dict[str, Counter[str]] = {}
    for path in sorted(copies.rglob("*.meta")):
        place = path.relative_to(copies).parts
        package = "/".join(place[:-1] if place[-2] != "dynamodb" or place[0] == "store" else place)
        counts = found.setdefault(package.removesuffix(".meta"), Counter())
        for code in json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"].values():
            if code not in _UNTRIED:
                unnoticed = "not noticed" if code in _UNNOTICED else "reached by no test"
                counts[unnoticed if code in (*_UNNOTICED, *_UNREACHED) else "noticed"] += 1
    return {package: counts for package, counts in found.items() if counts}


def main() -> None:
    """Print them."""
    for package, counts in figures(COPIES).items():
        share = 100 * counts["noticed"] // counts.total()
        print(f"{package}: {counts['noticed']} of {counts.total()} noticed ({share}%);", end=" ")
        print(f"{counts['reached by no test']} are reached by no test")


if __name__ == "__main__":
    main()
