"""The list of threads: those of the directory, newest activity first. Nothing here scans the table."""

from __future__ import annotations

from dataclasses import replace

from .._operations.error_collector import OF_ONE_THREAD
from .._operations.threads import ThreadQuery, ThreadSummary, list_threads, look_up
from .._runtime.steps import Op, gather
from .._runtime.storage import Storage
from .documents import Directory, ListedThread

PAGE_THREADS = 20
# A title is sealed, so DynamoDB cannot look for it. A search reads this many threads at a time, and in one request.
_SEARCHED_THREADS = 200
_LOOKED_AT_MAX = 1000


def directory(
    storage: Storage, owner: str | None, title: str, status: str | None, before: str | None
) -> Op[Directory]:
    """Return a page of an owner's threads, or of all: those with a status, and a text in their title in any case."""
    limit, wanted = (_SEARCHED_THREADS if title or status else PAGE_THREADS), title.casefold()
    threads, looked_at = list[ListedThread](), 0
    while True:
        page = yield from list_threads(storage, ThreadQuery(owner=owner, limit=limit, before=before))
        looked_at, before = looked_at + len(page.threads), page.cursor
        named = [each for each in page.threads if wanted in (each.title or "").casefold()]
        listed = yield from gather([_listed(storage, each) for each in named])
        threads += [each for each in listed if status is None or each["status"] == status]
        if before is None or len(threads) >= PAGE_THREADS or looked_at >= _LOOKED_AT_MAX:
            break
    return Directory(threads=threads, looked_at=looked_at, before=before)


def _listed(storage: Storage, summary: ThreadSummary) -> Op[ListedThread]:
    """Look up the status of a thread. One that is damaged hides no other."""
    problem = None
    try:
        newest = yield from look_up(storage, summary.thread_id)
        summary = replace(summary, status=newest.status, step=newest.step)
    except OF_ONE_THREAD as error:
        summary, problem = replace(summary, status=None), str(error)
    return ListedThread(
        thread=summary.thread_id,
        owner=summary.owner,
        title=summary.title,
        last_active=None if summary.last_active is None else summary.last_active.isoformat(),
        status=summary.status,
        step=summary.step,
        problem=problem,
    )
