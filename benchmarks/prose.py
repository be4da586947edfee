"""Text that compresses like text: the same for the same seed, and never the same sentence twice.

Words are drawn with Zipf's frequencies from a list that is ordered by them, and half of them follow the word
before as they habitually do. What compression makes of a conversation decides half of its price, so neither
random bytes nor a repeated sentence would measure anything: this prose compresses as English does.
"""

import json
from functools import cache
from itertools import accumulate
from pathlib import Path
from random import Random
from uuid import UUID

_WORDS = Path(__file__).with_name("words.txt").read_text(encoding="utf-8").split()
# The Zipf-Mandelbrot law with the constants that fit English.
_WEIGHTS = list(accumulate(1 / (rank + 2.7) for rank in range(1, len(_WORDS) + 1)))
# How often a word is one of the few that habitually follow the word before it.
_HABIT = 0.5


def words(random: Random, count: int) -> list[str]:
    """Return words as often, and in such company, as a text would use them."""
    chosen = _draw(random, count)
    for position in range(1, count):
        if random.random() < _HABIT:
            chosen[position] = random.choice(_followers(chosen[position - 1]))
    return chosen


def _draw(random: Random, count: int) -> list[str]:
    return random.choices(_WORDS, cum_weights=_WEIGHTS, k=count)


@cache
def _followers(word: str) -> list[str]:
    return _draw(Random(word), 3)


def sentence(random: Random) -> str:
    """Return a sentence of 5 to 22 words, with a comma where a long one would have it."""
    chosen = words(random, random.randint(5, 22))
    if len(chosen) > 9:
        chosen[random.randint(3, len(chosen) - 4)] += ","
    return " ".join(chosen).capitalize() + random.choice("....?")


def prose(random: Random, characters: int) -> str:
    """Return whole sentences, in paragraphs, of at least as many characters as asked for."""
    text = sentence(random)
    while len(text) < characters:
        text += ("\n\n" if random.random() < 0.15 else " ") + sentence(random)
    return text


def records(random: Random, characters: int) -> str:
    """Return a JSON document such as a tool would answer with: ids, times, amounts, states and free text."""
    found: list[dict[str, object]] = []
    while len(json.dumps(found)) < characters:
        number = random.randint(100000, 999999)
        found.append(
            {
                "id": f"ORD-{number}",
                "url": f"https://api.example.com/v2/orders/ORD-{number}",
                "created_at": f"2026-{random.randint(1, 12):02}-{random.randint(1, 28):02}"
                f"T{random.randint(0, 23):02}:{random.randint(0, 59):02}:{random.randint(0, 59):02}Z",
                "status": random.choice(("open", "in_transit", "delivered", "returned", "cancelled")),
                "amount": {
                    "value": round(random.uniform(4, 4000), 2),
                    "currency": random.choice(("EUR", "USD")),
                },
                "customer": {"id": random.randint(10000, 99999), "name": " ".join(words(random, 2)).title()},
                "items": [
                    {
                        "sku": f"{random.getrandbits(32):08x}",
                        "name": " ".join(words(random, 3)),
                        "quantity": quantity,
                    }
                    for quantity in random.choices(range(1, 9), k=random.randint(1, 3))
                ],
                "assigned_to": None,
                "note": sentence(random),
            }
        )
    return json.dumps({"total": random.randint(len(found), 400), "results": found})


def uuid(random: Random) -> str:
    """Return a version 4 UUID that depends on the seed only."""
    return str(UUID(int=random.getrandbits(128), version=4))
