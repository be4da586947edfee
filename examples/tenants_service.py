"""One service for many tenants, by one saver: `uvicorn examples.tenants_service:app`.

It needs `TENANTS_ROLE_ARN`, a role of `infra/tenant-role.yaml`, and FastAPI. Who asks is told by a header here; in a
service of yours, by what you authenticate with. On a local engine: put `python -m tools.engine run` before it, and
leave the variable out.
"""

import datetime
import os
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import FastAPI, Header
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from langgraph.checkpoint.dynamodb import DynamoDBSaver
from langgraph.checkpoint.dynamodb.observe import LogEvents
from langgraph.checkpoint.dynamodb.tenants import AssumeTenantRole, TenantCredentials


def local_keys(tenant: str) -> Mapping[str, Any]:
    """Return credentials for an engine on this machine, which takes any."""
    expiration = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    keys = {"AccessKeyId": "local", "SecretAccessKey": "local", "SessionToken": tenant}
    return {**keys, "Expiration": expiration}


async def reply(state: MessagesState) -> MessagesState:
    """Say how often the user has spoken."""
    return {
        "messages": [AIMessage(f"You have said {sum(m.type == 'human' for m in state['messages'])} things.")]
    }


role_arn = os.environ.get("TENANTS_ROLE_ARN")
credentials = TenantCredentials(AssumeTenantRole(role_arn) if role_arn else local_keys)
saver = DynamoDBSaver(
    os.environ.get("CHECKPOINT_TABLE", "langgraph-checkpoints"),
    session=credentials.session(),
    # Each event has its tenant, by which you bill.
    on_event=LogEvents(),
)
agent = StateGraph(MessagesState).add_node(reply).add_edge(START, "reply").compile(checkpointer=saver)
app = FastAPI()


@app.post("/threads/{thread_id}")
async def say(thread_id: str, text: str, tenant: Annotated[str, Header()]) -> str:
    """Answer a message of a tenant's user."""
    # Every request of the block is signed for the tenant, also in the tasks that LangGraph starts.
    with credentials.tenant(tenant):
        state = await agent.ainvoke(
            {"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": f"{tenant}/{thread_id}"}}
        )
    return str(state["messages"][-1].content)
