"""The events of a saver, collected."""

from langgraph.checkpoint.dynamodb._runtime.events import Event


class Collected:
    """An `on_event` that keeps every event."""

    def __init__(self) -> None:
        """Start without any."""
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        """Keep an event."""
        self.events.append(event)

    def of(self, operation: str) -> list[Event]:
        """Return the events of one operation's name."""
        return [each for each in self.events if each.operation == operation]

    def last(self, operation: str) -> Event:
        """Return the last event of one operation's name."""
        return self.of(operation)[-1]
