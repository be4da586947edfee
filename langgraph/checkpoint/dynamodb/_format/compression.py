"""Compression of what is sealed: zstd with the dictionary, where it helps."""

import sys

from .limits import RAW_BYTES_MAX

# The other modules have it from here.
if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd

_STORED, _ZSTD = 0, 1
_ZSTD_LEVEL = 3
# The decompressor refuses a frame that asks for a larger window than the maximum size of a sealed unit.
_ZSTD_OPTIONS: dict[int, int] = {zstd.DecompressionParameter.window_log_max: RAW_BYTES_MAX.bit_length()}


def compress(raw: bytes) -> tuple[int, bytes]:
    """Compress bytes if that makes them shorter; return how, a number below 256, and the result."""
    # As a prefix, it costs less to set up and the result is smaller; a reader sees no difference.
    compressed = zstd.compress(raw, _ZSTD_LEVEL, zstd_dict=_dictionary().as_prefix)
    return (_ZSTD, compressed) if len(compressed) < len(raw) else (_STORED, raw)


def decompress(compression: int, payload: bytes, bytes_max: int) -> bytes:
    """Undo `compress`.

    Raises:
        ValueError: The bytes are damaged, or decompress to more than `bytes_max`.
    """
    if compression == _STORED:
        return payload
    if compression != _ZSTD:
        raise ValueError(f"its compression {compression} is unknown")
    try:
        decompressor = zstd.ZstdDecompressor(_dictionary(), _ZSTD_OPTIONS)
        raw = decompressor.decompress(payload, bytes_max + 1)
    except zstd.ZstdError as error:
        raise ValueError(f"it cannot be decompressed ({error})") from error
    if not decompressor.eof or len(raw) > bytes_max:
        raise ValueError("its compressed data is larger, decompressed, than it may be")
    return raw


def _dictionary() -> zstd.ZstdDict:
    """Return the dictionary, for one use: its lock must not be copied by a fork while another OS thread holds it."""
    return zstd.ZstdDict(DICTIONARY, is_raw=True)


# The compression dictionary for sealed units, with names that LangGraph's checkpoints have in common


_MESSAGE = b"\xa7content\xa0\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type"
_VALIDATED = b"\xb3model_validate_json"

DICTIONARY = b"".join(
    (
        b"\xacresume_writes\xa9interrupt\xa5value\xaelanggraph.types\xa9Interrupt\xa4Send\xa4node\xa3arg",
        b"\x94\xbalangchain_core.messages.ai\xaeAIMessageChunk\xb3tool_call_chunks\xaechunk_position\xc0",
        b"\x94\xbelangchain_core.messages.system\xadSystemMessage\x86" + _MESSAGE,
        b"\xa6system\xa4name\xc0\xa2id\xc0" + _VALIDATED,
        b"\x93\xb8langchain_core.documents.base\xa8Document\xacpage_content\xa8metadata\xa6source",
        b"\x81\xa4type\xa4text\xa4text\x81\xa4type\xa8thinking\xa9signature\xa8tool_use\xa5input\xa9reasoning",
        b"\xb4cache_creation_input\xb2input_token_details\xb3output_token_details\xaacache_read\xa9reasoning",
        b"\xabstop_reason\xadfinish_reason\xa4stop\xa8end_turn\xa8tool_use\xa5usage\xacservice_tier\xa8logprobs\xc0",
        b"\xaamodel_name\xaemodel_provider\xa2id\xa4msg_\xa9anthropic\xa6openai\xa7bedrock\xb0resp_\xb2system_fingerprint",
        b"\xadbranch:to:agent\xacbranch:to:model\xacbranch:to:tools\xaf__pregel_tasks\xa9__input__\xad__interrupt__",
        b"~__pregel_pull, model~__pregel_pull, agent~__pregel_pull, tools~__pregel_push, ",
        b"\x88\xa1v\x04\xa2ts\xd9 2026-01-01T00:00:00.000000+00:00\xa2id\xd9$1f0c0000-0000-6000-8000-000000000000",
        b"\xb0channel_versions\xadversions_seen\xb0updated_channels\xadpending_sends\x90\xa9__start__\xaestructured_response",
        b"\x94\xbblangchain_core.messages.tool\xabToolMessage\x89" + _MESSAGE,
        b"\xa4tool\xa4name\xa2id\xd9$00000000-0000-4000-8000-000000000000\xactool_call_id\xa6toolu_\xa5call_"
        b"\xa8artifact\xc0\xa6status\xa7success" + _VALIDATED,
        b"\x94\xbdlangchain_core.messages.human\xacHumanMessage\x86"
        + _MESSAGE
        + b"\xa5human\xa4name\xc0\xa2id\xd9$",
        _VALIDATED,
        b"\x94\xbalangchain_core.messages.ai\xa9AIMessage\x89" + _MESSAGE,
        b"\xa2ai\xa4name\xc0\xa2id\xd9,lc_run--00000000-0000-0000-0000-000000000000-0\xaatool_calls\x91\x84\xa4name",
        b"\xa4args\xa2id\xa4type\xa9tool_call\xb2invalid_tool_calls\x90\xaeusage_metadata\x83\xacinput_tokens\xcd",
        b"\xadoutput_tokens\xcc\xactotal_tokens\xcd" + _VALIDATED,
        b"\x94\x00\xa8messages\xa7msgpack\xc4\x91\xc8\x05",
    )
)
