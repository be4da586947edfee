"""Agents and tools that nobody here wrote, with saver and store on one table."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langgraph.store.dynamodb import DynamoDBStore
from tests.conftest import MakeSaver


class ScriptedModel(GenericFakeChatModel):
    """A model that answers as its script says."""

    def bind_tools(self, tools: object, **options: Any) -> ScriptedModel:
        """Return itself, since the script knows the tools."""
        del tools, options
        return self


def scripted(*answers: AIMessage) -> ScriptedModel:
    """Return a model that gives these answers."""
    return ScriptedModel(messages=iter(answers))


def calling(name: str, **arguments: Any) -> AIMessage:
    """Return an answer that calls a tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": "call-1"}])


def said(text: str) -> dict[str, Any]:
    """Return the input of a human."""
    return {"messages": [HumanMessage(text)]}


def results(state: dict[str, Any]) -> list[str]:
    """Return what the tools returned."""
    return [str(each.content) for each in state["messages"] if isinstance(each, ToolMessage)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_langmem_s_tools_remember_search_change_and_forget(
    store: DynamoDBStore, make_saver: MakeSaver
) -> None:
    langmem = pytest.importorskip("langmem", reason="langmem is in the environment .venv only")
    namespace, saver = ("memories", "{user_id}"), make_saver()
    tools = [langmem.create_manage_memory_tool(namespace), langmem.create_search_memory_tool(namespace)]

    def config(user: str, thread: str) -> Any:
        return {"configurable": {"user_id": user, "thread_id": thread}}

    def agent(call: AIMessage) -> Any:
        return create_agent(scripted(call, AIMessage("done")), tools, checkpointer=saver, store=store)

    remember = calling("manage_memory", content="likes pizza")
    agent(remember).invoke(said("I like pizza"), config("ada", "1"))
    [memory] = store.search(("memories", "ada"))
    search = calling("search_memory", query="food")
    found = await agent(search).ainvoke(said("Dinner?"), config("ada", "2"))
    assert "likes pizza" in results(found)[0]
    assert "pizza" not in results(agent(search).invoke(said("Dinner?"), config("grace", "1")))[0]
    change = calling("manage_memory", action="update", id=memory.key, content="likes pasta")
    await agent(change).ainvoke(said("No, pasta"), config("ada", "3"))
    [changed] = store.search(("memories", "ada"))
    assert (changed.key, changed.value["content"]) == (memory.key, "likes pasta")
    agent(calling("manage_memory", action="delete", id=memory.key)).invoke(
        said("Forget it"), config("ada", "4")
    )
    assert store.search(("memories", "ada")) == []
