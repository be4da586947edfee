"""DynamoDB's limits, and the sizes and bounds derived from them. Sizes are bytes, times are seconds.

The limits are AWS's: "Quotas in Amazon DynamoDB" in the developer guide. The choices are measured by
`benchmarks/cost.py`; docs/decisions says how.
"""

from __future__ import annotations

# DynamoDB's limits.
PARTITION_KEY_BYTES_MAX = 2048
SORT_KEY_BYTES_MAX = 1024
BATCH_WRITE_ITEMS_MAX = 25
BATCH_GET_ITEMS_MAX = 100

# A value's bytes are cut where their content says so, between these sizes (docs/decisions/0001).
SEGMENT_BYTES_MIN = 4 * 1024
SEGMENT_BYTES_MAX = 16 * 1024
# A checkpoint whose values are no more than this together holds them all itself: one request reads it.
INLINE_STATE_BYTES_MAX = 16 * 1024
# The start of a value holds its length in most encodings and so changes whenever the value grows.
PREAMBLE_BYTES = 16
# The end of a value that has not filled a segment is sealed once a step leaves the channel untouched.
IDLE_TAIL_BYTES_MAX = 512

# A thousand years: no arithmetic with it leaves what DynamoDB's numbers hold.
TTL_SECONDS_MAX = 1000 * 366 * 24 * 3600

# Beyond these stored sizes, a part of an item moves to segments. An item holds at most one body and one
# sealed metadata, or one group of writes and four special ones: far below DynamoDB's 400 KB in all.
BODY_BYTES_MAX = 32 * 1024
METADATA_BYTES_MAX = 8 * 1024
WRITES_BYTES_MAX = 64 * 1024
# What one sealed unit may hold before compression; a bound on what a damaged one can make a reader allocate.
RAW_BYTES_MAX = 16 * 1024 * 1024
# What a checkpoint's values may take up together, serialized, or its writes, unless the saver is told otherwise: few
# processes could hold more, and a few small items can name so much.
CHECKPOINT_BYTES_MAX = 1024 * 1024 * 1024

# Segment ids: a group of this many moves to an index segment, whose id takes its place.
INDEX_GROUP = 32
HEAD_IDS_MAX = 1024

# So many segments are read by one query of what their namespace has, which is charged by their bytes and not by items:
# most of what a namespace has, its newest checkpoint needs. Few are not worth it, and more do not come in one page.
QUERIED_SEGMENTS_MIN = 4
QUERIED_SEGMENTS_MAX = 200

# The first page of a descending query; an idle thread, or one that is interrupted in one task, needs no more, and more
# items would cost a second read unit each time. Later pages grow.
PAGE_ITEMS_FIRST = 2
PAGE_ITEMS_GROWTH = 4
PAGE_ITEMS_MAX = 4096

# Waits before what failed, or what a batch left unprocessed, is sent again; and how long a deletion waits for another.
BACKOFF_SECONDS_FIRST = 0.05
BACKOFF_SECONDS_MAX = 5.0
BACKOFF_SECONDS_TOTAL = 60.0
# Unless the saver is told otherwise, one request's attempts begin within this time, and so much is waited before what a
# batch left unprocessed is sent again. It is spoken of in the log when it takes longer than moments.
RETRY_SECONDS = 60.0
RETRY_SECONDS_QUIET = 2.0
RETRY_WORDS_SECONDS = 10.0

# Attempts of a put or a read that deletions of the same thread keep interrupting.
ATTEMPTS_MAX = 8
# Attempts to merge one task's writes when other calls for the same task interfere.
MERGE_ATTEMPTS_MAX = 16

# What nothing names is removed once it is this old; a put uploads and commits well within it.
ORPHAN_SECONDS = 3600
UPLOAD_SECONDS_MAX = 900
# A deletion's claim on its thread; a process that dies keeps others out for this long.
CLAIM_SECONDS = 120
# A deletion restamps so many items side by side.
RESTAMPS_AT_ONCE = 256
LOCK_TTL_SECONDS_MIN = 1
# Who takes over a thread's lock waits for so much longer than it was held, for clocks that differ by as much.
LOCK_SKEW_SECONDS = 5
# A lock's item stays for so long after the last hold would have ended.
LOCK_KEPT_SECONDS = 3600
# An async operation that is cancelled has this long to let go of what it holds.
ENDING_SECONDS_MAX = 10.0

# Serialisation of more than this leaves the event loop for a thread.
THREADED_WORK_BYTES = 64 * 1024
# Parallel requests of one operation under the blocking driver, and connections per client.
PARALLEL_REQUESTS = 16
POOL_CONNECTIONS = 64
