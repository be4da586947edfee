"""What keeps a version from being released."""

import pytest

from langgraph.checkpoint.dynamodb import __version__
from tools.matrix import ROOT
from tools.release import main, problems


def test_the_changelog_of_this_version_has_a_date() -> None:
    assert problems(f"v{__version__}", (ROOT / "CHANGELOG.md").read_text()) == []


def test_another_tag_and_a_changelog_without_a_date_are_named() -> None:
    tag, date = problems("v9", f"## [{__version__}] - unreleased")
    assert tag == f"the tag is 'v9', and the version {__version__}; give v{__version__}"
    assert date.endswith(f"write ## [{__version__}] - YYYY-MM-DD")


def test_nothing_is_built_for_another_tag() -> None:
    with pytest.raises(SystemExit, match="the tag is ''"):
        main([""])
