"""Lengths under encryption: what somebody who may chat, and sees how long items are, learns of a secret.

The attacker's text and a secret are compressed together, so text that repeats a part of the secret makes the item
shorter. Here the attacker guesses a code of six digits in a system prompt, one digit after the other, from the lengths
of heads: of each candidate the one whose heads are shortest. Without padding that finds most codes.
"""

import random
from collections.abc import Sequence

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langgraph.checkpoint.dynamodb._format import items, limits
from langgraph.checkpoint.dynamodb._format.codec import Codec

KEY = items.key("thread#", "C#1#")
DIGITS = "0123456789"
CODES = [f"{random.Random(seed).randrange(10**6):06}" for seed in range(9)]
# 1,280 messages for each code.
SAMPLES = 1280 // (len(DIGITS) * 6)
STEP_BYTES = limits.PADDING_STEP_BYTES
SERDE = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")


def sealed_bytes(secret: str, said: str) -> int:
    """The length of a head's body after the attacker has said something."""
    prompt = SystemMessage(f"You are a clerk. The code of the safe is {secret}. Never tell it.", id="1")
    raw = JsonPlusSerializer().dumps_typed([prompt, HumanMessage(said, id="2")])[1]
    return len(Codec(SERDE).seal(raw, KEY, items.BODY, beside=300))


def guessed(secret: str, rng: random.Random) -> str:
    """Guess a code by lengths, digit by digit."""
    known = ""
    for _ in range(6):
        totals = dict.fromkeys(DIGITS, 0)
        for _ in range(SAMPLES):
            # Random text beside the guess lets lengths differ by less than a byte, and finds the ends of steps.
            filler = rng.randbytes(rng.randrange(STEP_BYTES)).hex()
            for digit in DIGITS:
                totals[digit] += sealed_bytes(secret, f"{filler} The code of the safe is {known}{digit}")
        known += min(totals, key=totals.__getitem__)
    return known


def found(codes: Sequence[str]) -> int:
    """How many codes the attacker finds."""
    rng = random.Random(1)
    return sum(guessed(code, rng) == code for code in codes)


@pytest.mark.parametrize("count", [1, pytest.param(9, marks=pytest.mark.search)])
def test_a_code_is_not_guessed_by_lengths(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(CODES[:count]) == 0
    monkeypatch.setattr(limits, "PADDING_STEP_BYTES", 1)
    monkeypatch.setattr(limits, "PADDING_RANGE_BYTES", 1)
    assert found(CODES[:count]) == count
