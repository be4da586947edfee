"""Runs a sample agent with a model that fails at some messages: what comes before the handlers that tests start.

At "poison" the model raises an error; at "hang" the process ends in the middle, as a time-out of Lambda ends it.
"""

import importlib
import os
import signal
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage

# By its name, as the processes have it that import it from the folder of the samples.
agent: Any = importlib.import_module("agent")
answer = agent.call_model


def call_model(messages: list[AnyMessage], memories: list[str]) -> Any:
    """Answer the newest of these messages, unless it is one of the two."""
    newest = [message.content for message in messages if isinstance(message, HumanMessage)][-1]
    if newest == "hang":
        os.kill(os.getpid(), signal.SIGKILL)
    if newest == "poison":
        raise RuntimeError("the model refuses")
    return answer(messages, memories)


agent.call_model = call_model
