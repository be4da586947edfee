"""A chat with a sidebar of the user's conversations: `uvicorn --factory examples.chat:app`, and open `/?user=ada`.

The newest conversation comes first, and a page of the sidebar is one query of the table. It needs FastAPI and uvicorn.
To run it on a local engine, put `python -m tools.engine run` before the command. Here a header names the user. In your
service, your authentication does.
"""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, TypeAlias
from uuid import UUID

from fastapi import Body, FastAPI, Header, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel

from langgraph.checkpoint.dynamodb import CheckpointerInputError, DynamoDBSaver, ThreadSummary

PAGE_CHATS = 20
TITLE_CHARACTERS = 60

User: TypeAlias = Annotated[str, Header(pattern=r"^[a-z0-9-]{1,64}$")]
Title: TypeAlias = Annotated[str, Body(embed=True, min_length=1, max_length=TITLE_CHARACTERS)]
Text: TypeAlias = Annotated[str, Body(embed=True, min_length=1, max_length=10_000)]
Continues: TypeAlias = Annotated[bool, Body(embed=True)]


class Chat(BaseModel):
    """A conversation in the sidebar."""

    id: UUID
    title: str | None


class Chats(BaseModel):
    """A page of the sidebar."""

    chats: Sequence[Chat]
    cursor: str | None
    """Continues the list; `None` at its end."""


class Message(BaseModel):
    """A message of a conversation."""

    role: str
    text: str


async def reply(state: MessagesState) -> MessagesState:
    """Answer without a model, to keep the example free of accounts."""
    said = sum(message.type == "human" for message in state["messages"])
    return {
        "messages": [AIMessage(f"You have said {said} things. The last one: {state['messages'][-1].content}")]
    }


def thread_of(user: str, chat: UUID) -> str:
    """Return the thread of a chat. It begins with its user, so nobody reaches another one's."""
    return f"{user}/{chat}"


def chat_of(user: str, thread_id: str) -> UUID | None:
    """Return the chat of a thread; `None` for other threads of the user, such as a copy that an operator made."""
    try:
        chat = UUID(thread_id.removeprefix(f"{user}/"))
    except ValueError:
        return None
    return chat if thread_id == thread_of(user, chat) else None


def chats_of(user: str, threads: Sequence[ThreadSummary]) -> Sequence[Chat]:
    """Return the chats among a user's threads."""
    found = [(chat_of(user, each.thread_id), each.title) for each in threads]
    return [Chat(id=chat, title=title) for chat, title in found if chat is not None]


async def check_exists(saver: DynamoDBSaver, thread_id: str) -> None:
    """Answer 404 for a chat without a message. It may have been deleted in another window."""
    if await saver.aget_tuple({"configurable": {"thread_id": thread_id}}) is None:
        raise HTTPException(404, "There is no such chat. It may have been deleted.")


async def refuse(_request: Request, error: Exception) -> JSONResponse:
    """Answer 422 to what the saver or FastAPI refuses.

    FastAPI's own answer repeats the input, which may be text that no answer can hold: a lone surrogate.
    """
    if isinstance(error, RequestValidationError):
        detail = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    else:
        detail = str(error)
    return JSONResponse({"detail": detail}, 422)


@asynccontextmanager
async def warmed_up(saver: DynamoDBSaver, _app: FastAPI) -> AsyncIterator[None]:
    """Load and connect at the start. Otherwise the first user would wait for that."""
    await saver.awarm_up()
    yield


def create_app(saver: DynamoDBSaver) -> FastAPI:
    """Return the service. The saver has `owner_from="user_id"`, so that it enters each thread in its owner's list."""
    agent = StateGraph(MessagesState).add_node(reply).add_edge(START, "reply").compile(checkpointer=saver)
    app = FastAPI(lifespan=partial(warmed_up, saver))
    app.add_exception_handler(CheckpointerInputError, refuse)
    app.add_exception_handler(RequestValidationError, refuse)

    def config_of(user: str, chat: UUID) -> RunnableConfig:
        return {"configurable": {"thread_id": thread_of(user, chat), "user_id": user}}

    @app.get("/")
    async def page() -> HTMLResponse:
        return HTMLResponse(PAGE)

    @app.get("/chats")
    async def chats(user: User, before: str | None = None) -> Chats:
        found = await saver.athreads(owner=user, limit=PAGE_CHATS, before=before)
        return Chats(chats=chats_of(user, found.threads), cursor=found.cursor)

    @app.get("/chats/{chat}")
    async def messages(user: User, chat: UUID) -> list[Message]:
        state = await agent.aget_state(config_of(user, chat))
        return [Message(role=each.type, text=str(each.content)) for each in state.values.get("messages", [])]

    @app.post("/chats/{chat}")
    async def say(user: User, chat: UUID, text: Text, continues: Continues = False) -> str:
        # The first message begins a chat. A message to a chat that was deleted elsewhere must not begin it again.
        if continues:
            await check_exists(saver, thread_of(user, chat))
        state = await agent.ainvoke({"messages": [HumanMessage(text)]}, config_of(user, chat))
        if len(state["messages"]) == 2:
            # The first message names the chat, until its user does.
            await saver.aset_thread(thread_of(user, chat), title=text[:TITLE_CHARACTERS])
        return str(state["messages"][-1].content)

    @app.put("/chats/{chat}")
    async def rename(user: User, chat: UUID, title: Title) -> None:
        # `set_thread` would enter a chat that was deleted in the list again.
        await check_exists(saver, thread_of(user, chat))
        await saver.aset_thread(thread_of(user, chat), owner=user, title=title)

    @app.delete("/chats/{chat}")
    async def delete(user: User, chat: UUID) -> None:
        await saver.adelete_thread(thread_of(user, chat))

    return app


def app() -> FastAPI:
    """Return the service on the table that the environment names."""
    table_name = os.environ.get("CHECKPOINT_TABLE", "langgraph-checkpoints")
    return create_app(DynamoDBSaver(table_name, owner_from="user_id"))


# Texts are only ever shown as text: nothing of the table is parsed as HTML.
PAGE = """<!doctype html>
<html lang="en">
  <meta charset="utf-8">
  <title>Chat</title>
  <link rel="icon" href="data:,">
  <style>
    body { display: grid; grid-template-columns: 300px 1fr; height: 100vh; margin: 0; font: 15px system-ui; }
    nav { overflow-y: auto; padding: 16px; background: #f3f4f7; }
    nav ul { padding: 0; list-style: none; }
    nav li { display: flex; gap: 4px; margin: 4px 0; }
    nav .open { flex: 1; overflow: hidden; text-align: left; text-overflow: ellipsis; white-space: nowrap; }
    nav [aria-current] { font-weight: 700; }
    main { display: flex; flex-direction: column; padding: 16px; }
    #messages { flex: 1; overflow-y: auto; }
    .human { text-align: right; }
    form { display: flex; gap: 8px; }
    form input { flex: 1; padding: 8px; }
  </style>
  <nav aria-label="Conversations">
    <button id="new">New chat</button>
    <ul id="chats"></ul>
    <button id="more" hidden>More</button>
  </nav>
  <main>
    <div id="messages" role="log" aria-label="Messages"></div>
    <p id="problem" role="alert"></p>
    <form id="say"><input name="text" aria-label="Message" autocomplete="off" required><button>Send</button></form>
  </main>
  <script>
    const user = new URLSearchParams(location.search).get("user") ?? "ada";
    const at = (id) => document.getElementById(id);
    let [chat, cursor] = [null, null];

    async function ask(method, path, body) {
      const headers = { user, "content-type": "application/json" };
      const response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
      at("problem").textContent = response.ok ? "" : `${method} ${path} failed: ${await response.clone().text()}`;
      if (!response.ok) throw new Error(at("problem").textContent);
      return response.json();
    }

    function button(text, label, press) {
      const made = Object.assign(document.createElement("button"), { textContent: text, onclick: press });
      made.setAttribute("aria-label", label);
      return made;
    }

    function row({ id, title }) {
      const [item, name] = [document.createElement("li"), title ?? "New chat"];
      const open = button(name, name, () => show(id));
      open.className = "open";
      const rename = async () => {
        const wanted = prompt("Title", name);
        if (wanted) {
          await ask("PUT", `/chats/${id}`, { title: wanted });
          item.replaceWith(row({ id, title: wanted }));
        }
      };
      const remove = async () => {
        await ask("DELETE", `/chats/${id}`);
        item.remove();
        if (chat === id) begin();
      };
      item.dataset.id = id;
      if (id === chat) open.setAttribute("aria-current", "true");
      item.append(open, button("✎", `Rename ${name}`, rename), button("✕", `Delete ${name}`, remove));
      return item;
    }

    async function more() {
      const page = await ask("GET", cursor ? `/chats?before=${encodeURIComponent(cursor)}` : "/chats");
      const shown = new Set([...at("chats").children].map((each) => each.dataset.id));
      at("chats").append(...page.chats.filter((each) => !shown.has(each.id)).map(row));
      cursor = page.cursor;
      at("more").hidden = cursor === null;
    }

    function mark(id) {
      chat = id;
      for (const item of at("chats").children) {
        item.firstChild.toggleAttribute("aria-current", item.dataset.id === id);
      }
    }

    function begin() {
      mark(crypto.randomUUID());
      at("messages").replaceChildren();
    }

    function add({ role, text }) {
      at("messages").append(Object.assign(document.createElement("p"), { className: role, textContent: text }));
    }

    async function show(id) {
      mark(id);
      at("messages").replaceChildren();
      const messages = await ask("GET", `/chats/${id}`);
      if (id === chat) messages.forEach(add);
    }

    at("new").onclick = begin;
    at("more").onclick = more;
    at("say").onsubmit = async (event) => {
      event.preventDefault();
      const [id, field] = [chat, event.target.elements.text];
      const text = field.value;
      const known = [...at("chats").children].find((each) => each.dataset.id === id);
      add({ role: "human", text });
      field.value = "";
      const answer = await ask("POST", `/chats/${id}`, { text, continues: known !== undefined });
      if (id === chat) add({ role: "ai", text: answer });
      // The index of the list lags a little, so the page puts the chat on top itself.
      at("chats").prepend(known ?? row({ id, title: text.slice(0, 60) }));
    };
    begin();
    more();
  </script>
</html>
"""
