"""The matrix of Pythons: which are declared, and how one is found."""

from pathlib import Path

import pytest

from tools import matrix


def test_a_python_of_pyenv_is_found_though_it_is_not_selected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shims, home = tmp_path / "shims", tmp_path / "versions/3.12.1/bin"
    for folder, text in ((shims, "#!/bin/sh\nexit 127\n"), (home, "#!/bin/sh\nexit 0\n")):
        folder.mkdir(parents=True)
        for name in ("python", "python3.12"):
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(shims), prepend=":")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert matrix.find_python("3.12") == home / "python"
    assert matrix.find_python("3.9") is None


def test_the_ends_are_the_oldest_with_the_oldest_and_the_newest_with_the_newest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"3.11": Path("/python3.11"), "3.13": Path("/python3.13")}
    monkeypatch.setattr(matrix, "find_python", found.get)
    ends = ["Python 3.11, lowest", "Python 3.13, boto3"]
    assert [each.title for each in matrix.environments(ends=True)] == ends
    assert "Not on this machine: 3.10, 3.12, 3.14" in capsys.readouterr().out
    every = [*ends, "Python 3.11, aioboto3", "Python 3.13, aioboto3"]
    assert [each.title for each in matrix.environments(ends=False)] == every
