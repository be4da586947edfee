"""DynamoDB's limits, and the sizes and bounds derived from them. Sizes are bytes, times are seconds.

The limits are AWS's: "Quotas in Amazon DynamoDB" in the developer guide. The choices are measured by
`benchmarks/cost.py`; docs/decisions says how.
"""

# DynamoDB's limits.
PARTITION_KEY_BYTES_MAX = 2048
SORT_KEY_BYTES_MAX = 1024
BATCH_WRITE_ITEMS_MAX = 25
BATCH_GET_ITEMS_MAX = 100
# Items of one batch together, unless one has more. They travel as base64: more than 1 MiB would hold up an event loop,
# and a load balancer passes no more to a function.
BATCH_WRITE_BYTES_MAX = 700_000

# A value is cut into segments at positions that its content determines (docs/decisions/0001): at least the minimum
# after the last cut, and at most the range later. The minimum doubles, up to that of large segments, while at least
# this many of its size are still to be cut.
SEGMENT_BYTES_MIN = 4 * 1024
LARGE_SEGMENT_BYTES_MIN = 32 * 1024
LARGE_SEGMENTS_MIN = 8
CUT_RANGE_BYTES = 12 * 1024
# Pieces that are stored together become one segment if it costs one write unit, and if the pieces together have no more
# than this. The codec opens no segment with more content.
SEGMENT_BYTES_MAX = 128 * 1024
# How much a segment has, about, to estimate what a read takes before it is made.
SEGMENT_BYTES_USUAL = 8 * 1024
# Content of writes is tried inline where no more of it is new: it may compress to what costs less than segments.
NEW_BYTES_INLINE_MAX = 256 * 1024
# A checkpoint whose values are no larger than this together stores them in its head, so one request reads it.
INLINE_STATE_BYTES_MAX = 8 * 1024
# Small values that a step has left alone move to the front of the body, in segments, once they take more than this.
SHARED_BYTES_MIN = 8 * 1024
# The start of a value contains its length in most encodings, so it changes whenever the value grows.
PREAMBLE_BYTES = 16
# A tail of a value of at least this size becomes a segment where that costs no more than having it in the head.
SEALED_TAIL_BYTES_MIN = 512

# A thousand years, so that no arithmetic with it exceeds the range of DynamoDB's numbers.
TTL_SECONDS_MAX = 1000 * 366 * 24 * 3600

# Beyond these stored sizes, a part of an item moves to segments. An item holds at most one body and one
# sealed metadata, or one group of writes and four special ones: far below DynamoDB's 400 KB in all.
BODY_BYTES_MAX = 32 * 1024
METADATA_BYTES_MAX = 8 * 1024
WRITES_BYTES_MAX = 64 * 1024
# The maximum size of one sealed unit before compression. It bounds the memory that a damaged one can make a reader use.
RAW_BYTES_MAX = 16 * 1024 * 1024
# What is encrypted is padded so that its item has a multiple of a step, after random padding of at most a range
# (docs/encrypt.md). The step divides a write unit.
PADDING_STEP_BYTES = 256
PADDING_RANGE_BYTES = 16
# The default for the maximum size of a checkpoint's values together, serialized, or of its writes. Few processes could
# hold more, and a few small items can name as much.
CHECKPOINT_BYTES_MAX = 1024 * 1024 * 1024
# The default for what one search of the store may read.
SEARCH_BYTES_MAX = 64 * 1024 * 1024

# A group of this many segment ids moves to an index segment, whose id replaces them.
INDEX_GROUP = 32
HEAD_IDS_MAX = 1024

# Between these numbers, segments are read by one query of their namespace, which is charged by bytes and not by items:
# the newest checkpoint needs most segments of its namespace. Fewer are not worth it. More do not fit into one page of
# 1 MB: most take a write unit, 1 KB. Of larger ones a page has fewer, and the rest are read by their keys.
QUERIED_SEGMENTS_MIN = 4
QUERIED_SEGMENTS_MAX = 1000

# The first page of a descending query. An idle thread, or one that is interrupted in one task, needs no more, and more
# items would cost a second read unit each time. Later pages grow.
PAGE_ITEMS_FIRST = 2
PAGE_ITEMS_GROWTH = 4
PAGE_ITEMS_MAX = 768

# Waits before failed requests or unprocessed items are sent again, and how long a deletion waits for another one.
BACKOFF_SECONDS_FIRST = 0.05
BACKOFF_SECONDS_MAX = 5.0
BACKOFF_SECONDS_TOTAL = 60.0
# The default for `retry_seconds`: the attempts of one request start within this time, and unprocessed items of a batch
# are sent again for as long. Retries are logged once they have taken RETRY_SECONDS_QUIET.
RETRY_SECONDS = 60.0
RETRY_SECONDS_QUIET = 2.0
RETRY_WORDS_SECONDS = 10.0
# The same for the cache: running a node is better than waiting for its cache.
CACHE_RETRY_SECONDS = 2.0

# How long an attempt may take to connect, and to wait for the next piece of an answer. They are short, since a thawed
# Lambda finds its connections dead. For the cache, whose requests have to be worth their wait, they are shorter.
CONNECT_SECONDS = 3
READ_SECONDS = 10
CACHE_CONNECT_SECONDS = 1
CACHE_READ_SECONDS = 2

# For how long the thread item, with the owner, and the markers of its namespaces stay when everything of a thread has
# expired. DynamoDB removes expired items "within a few days" (AWS, "Using time to live in DynamoDB").
FINDABLE_SECONDS = 7 * 24 * 3600

# Attempts of a put or a read that deletions of the same thread keep interrupting.
ATTEMPTS_MAX = 8
# Attempts to merge one task's writes when other calls for the same task interfere.
MERGE_ATTEMPTS_MAX = 16

# How long writes wait for the put of their checkpoint, which this process is making: they can name what it stores.
PUT_WAIT_SECONDS_MAX = 10.0
# How long an operation waits for a read that it shares with others, before it reads for itself.
READ_WAIT_SECONDS_MAX = 2.0

# Unnamed segments are removed once they are this old. A put uploads and commits well within this time.
ORPHAN_SECONDS = 3600
UPLOAD_SECONDS_MAX = 900
# How long a deletion's claim lasts: a process that dies keeps others out for this long.
CLAIM_SECONDS = 120
# How many items a deletion restamps in parallel.
RESTAMPS_AT_ONCE = 256
LOCK_TTL_SECONDS_MIN = 1
# A runner that takes over a thread's lock waits this much longer than it was held, since clocks may differ by as much.
LOCK_SKEW_SECONDS = 5
# How long a lock item stays after the end of its last hold.
LOCK_KEPT_SECONDS = 3600
# How long a cancelled async operation has to release its claim or its lock.
ENDING_SECONDS_MAX = 10.0

# A tenant's name, as in infra/tenant.yaml: no character means anything in a key or a policy, and a slash ends the
# prefix.
TENANT_PATTERN = r"^[a-zA-Z0-9._-]{1,128}$"
# How far the clocks of processes may be apart where a day ends. A list asks for the next day, if it begins by then.
SKEW_SECONDS = 300
# How long before an item expires by a process's clock DynamoDB may have removed it by its own.
REMOVED_EARLY_SECONDS = 60
# How old a thread's last activity may be in the directory before a put renews it, if its ttl is not short.
ACTIVITY_SECONDS = 900
# A thread's owner, title and metadata together. An entry of an index costs a write unit for each KB.
ABOUT_BYTES_MAX = 768

# CPU work on more bytes than this runs in an OS thread instead of the event loop.
THREADED_WORK_BYTES = 64 * 1024
# A call that waits longer for the callable of its events says so, once.
EVENT_SECONDS_QUIET = 0.1
# Parallel requests of one operation under the blocking driver, and connections per client.
PARALLEL_REQUESTS = 16
POOL_CONNECTIONS = 64
