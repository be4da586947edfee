"""Agents that nobody here wrote, with saver, store and cache on one table."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedStore
from langgraph.types import CachePolicy

from langgraph.cache.dynamodb import DynamoDBCache
from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.store.dynamodb import DynamoDBStore
from tests.conftest import MakeSaver
from tools.engine import Engine


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


@pytest.fixture
def saver(make_saver: MakeSaver) -> DynamoDBSaver:
    """Give a saver on the store's table."""
    return make_saver()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_langmem_s_tools_remember_search_change_and_forget(
    store: DynamoDBStore, saver: DynamoDBSaver
) -> None:
    langmem = pytest.importorskip("langmem", reason="langmem is in the environment .venv only")
    namespace = ("memories", "{user_id}")
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


async def test_an_agent_has_saver_store_and_cache_on_one_table(
    engine: Engine, table_name: str, sessions: dict[str, Any], store: DynamoDBStore, saver: DynamoDBSaver
) -> None:
    asked: list[str] = []

    @tool
    def remember(text: str, store: Annotated[Any, InjectedStore()]) -> str:
        """Remember a text."""
        store.put(("memories", "ada"), text, {"text": text})
        return "remembered"

    def greet(state: MessagesState) -> dict[str, Any]:
        asked.append(str(state["messages"][-1].content))
        return {"messages": [AIMessage(f"You said {asked[-1]}")]}

    def build(cache: DynamoDBCache[Any]) -> Any:
        model = scripted(calling("remember", text="pizza"), AIMessage("done"))
        builder = StateGraph(MessagesState)
        key = CachePolicy(key_func=lambda state: str(state["messages"][-1].content))
        builder.add_node("greet", greet, cache_policy=key)
        builder.add_node("agent", create_agent(model, [remember]))
        builder.add_edge(START, "greet").add_edge("greet", "agent")
        return builder.compile(checkpointer=saver, store=store, cache=cache)

    reach = {"endpoint_url": engine.endpoint_url, **sessions}
    opened: DynamoDBCache[Any] = DynamoDBCache(table_name, **reach)
    with opened as cache:
        first = build(cache).invoke(said("hello"), {"configurable": {"thread_id": "1"}})
        second = await build(cache).ainvoke(said("hello"), {"configurable": {"thread_id": "2"}})
    # The second thread's first node comes from the cache.
    assert asked == ["hello"]
    assert [each.content for each in first["messages"]] == [each.content for each in second["messages"]]
    assert results(second) == ["remembered"]
    assert [each.key for each in store.search(("memories", "ada"))] == ["pizza"]
    stored = await saver.aget_tuple({"configurable": {"thread_id": "2"}})
    assert stored is not None
    assert stored.checkpoint["channel_values"]["messages"][-1].content == "done"
