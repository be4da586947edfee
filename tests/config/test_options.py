"""Each option has one text, in the model of its configuration: docstrings and pages copy it."""

from typing import Any

import pytest

from langgraph.checkpoint.dynamodb import create_cache, create_checkpointer, create_store
from tests.support.options import right
from tools.options import CLASSES, COMPONENTS, model_of, parameters

EACH_CLASS = pytest.mark.parametrize(
    "kind", [kind for kinds in CLASSES.values() for kind in kinds], ids=lambda kind: kind.__name__
)
# What a file has in another form than a constructor.
ONLY_IN_FILES = {"dynamodb": {"encryption_key", "setup"}, "http": {"ca_file", "proxy", "headers"}}
ONLY_IN_CODE = {"dynamodb": set[str](), "http": {"client_options"}}


def _type_of(kind: type) -> str:
    return next(name for name, kinds in CLASSES.items() if kind in kinds)


@EACH_CLASS
def test_a_constructor_has_the_options_of_its_configuration_with_the_same_defaults(kind: type) -> None:
    fields, named = model_of(kind).model_fields, parameters(kind)
    assert fields.keys() - named.keys() <= ONLY_IN_FILES[_type_of(kind)]
    assert named.keys() - fields.keys() == ONLY_IN_CODE[_type_of(kind)]
    for name, default in named.items():
        if name in fields and default not in (None, ...):
            assert fields[name].is_required() or fields[name].default == default


@EACH_CLASS
def test_what_is_given_is_what_the_constructor_gets(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {name: right(kind, name) for name in parameters(kind)}
    got: dict[str, Any] = {}
    monkeypatch.setattr(kind, "__init__", lambda _, **given: got.update(given))
    monkeypatch.setattr(kind, "__exit__", lambda *_: None)
    monkeypatch.setenv("OWNER_KEY", "0123456789abcdef")
    # Only a part of them is an option of a configuration.
    config = {"headers" if name == "client_options" else name: each[0] for name, each in values.items()}
    create: dict[str, Any] = dict(
        zip(COMPONENTS, (create_checkpointer, create_store, create_cache), strict=True)
    )
    of = next(name for name, each in zip(COMPONENTS, CLASSES[_type_of(kind)], strict=True) if each is kind)
    with create[of]({"type": _type_of(kind), "config": config}):
        assert got == {name: each[1] for name, each in values.items()}


@EACH_CLASS
def test_an_unknown_option_is_refused_with_the_one_that_was_meant(kind: Any) -> None:
    with pytest.raises(
        TypeError, match=f"^{kind.__name__} has no option on_events; did you mean on_event\\?$"
    ):
        kind("https://gateway.example", on_events=print)


def test_every_option_has_a_description() -> None:
    for config in COMPONENTS.values():
        for name in config.types:
            fields = config.find_type(name).options.model_fields
            assert not [each for each, field in fields.items() if not field.description]
