"""How many examples a property test tries, where each takes longer or shorter than most."""

from hypothesis import settings


def percent(share: int) -> int:
    """Return how many examples a share of those of the profile is: of 100 with most, fewer with `quick`.

    Args:
        share: In percent.
    """
    return max(1, settings.get_profile(settings.get_current_profile_name()).max_examples * share // 100)
