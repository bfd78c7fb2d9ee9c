"""Cut the weights out of a serialised ONNX model without decoding them.

Walks the protobuf wire format and copies everything but tensor payloads, so that a file of gigabytes costs what its
structure costs. Field numbers are those of onnx.proto.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError

Buffer = bytes | memoryview

KEPT_TENSOR_BYTES = 1024
"""Serialised tensors up to this size keep their values: shapes, axes, scales and the like."""

_KEPT_NODE_BYTES = 4096  # nodes up to this size are copied without looking for tensors in their attributes
_MAX_DEPTH = 100  # protobuf's own limit on nesting
_MAX_FIELDS = 20_000_000  # three or so million stand for a million operators
_MAX_STRUCTURE_BYTES = 2**28
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

# Field number -> (largest size that is copied untouched, rules for copying a larger one; None leaves it out).
Rules = dict[int, "tuple[int, Rules | None]"]
_DROPPED = (0, None)
_TENSOR: Rules = {
    4: _DROPPED,  # float_data
    5: _DROPPED,  # int32_data
    6: _DROPPED,  # string_data
    7: _DROPPED,  # int64_data
    9: _DROPPED,  # raw_data
    10: _DROPPED,  # double_data
    11: _DROPPED,  # uint64_data
    12: _DROPPED,  # doc_string
}
_LARGE_TENSOR = (KEPT_TENSOR_BYTES, _TENSOR)
_LARGE_SPARSE_TENSOR = (KEPT_TENSOR_BYTES, {1: _LARGE_TENSOR, 2: _LARGE_TENSOR})
_ATTRIBUTE: Rules = {
    5: _LARGE_TENSOR,  # t
    10: _LARGE_TENSOR,  # tensors
    22: _LARGE_SPARSE_TENSOR,
    13: _DROPPED,  # doc_string
}
_NODE: Rules = {5: (KEPT_TENSOR_BYTES, _ATTRIBUTE), 6: _DROPPED}  # attribute, doc_string
_GRAPH: Rules = {
    1: (_KEPT_NODE_BYTES, _NODE),
    5: _LARGE_TENSOR,  # initializer
    15: _LARGE_SPARSE_TENSOR,
    10: _DROPPED,  # doc_string
}
_ATTRIBUTE[6] = _ATTRIBUTE[11] = (_KEPT_NODE_BYTES, _GRAPH)  # g, graphs
_FUNCTION: Rules = {7: (_KEPT_NODE_BYTES, _NODE), 8: _DROPPED}  # node, doc_string
_MODEL: Rules = {
    7: (0, _GRAPH),
    25: (_KEPT_NODE_BYTES, _FUNCTION),
    6: _DROPPED,  # doc_string
    20: _DROPPED,  # training_info
}


def strip_model(buffer: Buffer) -> bytes:
    """Return the serialised ModelProto without the payload of large tensors.

    Raises:
        DecodeError: the bytes are not a protobuf message, end too early, or hold more structure than any network has.
    """
    return _Copier(buffer).copy(0, len(buffer), 0, _MODEL)


def _read_varint(buffer: Buffer, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:
            break
    raise DecodeError("truncated or oversized number")


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


class _Copier:
    """Copies messages of one buffer, as long as there are not absurdly many fields in all."""

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer
        self._fields_left = _MAX_FIELDS

    def copy(self, start: int, end: int, depth: int, rules: Rules) -> bytes:
        """Copy a message; a field in ``rules`` that is larger than its limit is rewritten, or left out."""
        if depth > _MAX_DEPTH:
            raise DecodeError("messages are nested too deeply")
        buffer, fields = self._buffer, 0
        parts: list[Buffer] = []
        position = run_start = start
        while position < end:
            fields += 1
            if fields > self._fields_left:
                raise DecodeError("it holds more fields than any network has")
            field_start = position
            tag = buffer[position]
            position += 1
            if tag > 0x7F:
                tag, position = _read_varint(buffer, field_start, end)
            field, wire_type = tag >> 3, tag & 7
            if not field:
                raise DecodeError("field number 0")
            if wire_type == _BYTES:
                if position >= end:
                    raise DecodeError("truncated field")
                length = buffer[position]
                position += 1
                if length > 0x7F:
                    length, position = _read_varint(buffer, position - 1, end)
                payload = position
                position += length
                if position > end:
                    raise DecodeError("truncated field")
                if (rule := rules.get(field)) and length > rule[0]:
                    parts.append(buffer[run_start:field_start])
                    if rule[1] is not None:
                        self._fields_left -= fields
                        fields = 0
                        content = self.copy(payload, position, depth + 1, rule[1])
                        parts += (_varint(tag), _varint(len(content)), content)
                    run_start = position
            elif wire_type == _VARINT:
                _, position = _read_varint(buffer, position, end)
            elif wire_type == _FIXED64:
                position += 8
            elif wire_type == _FIXED32:
                position += 4
            else:
                raise DecodeError(f"wire type {wire_type}")
        if position > end:
            raise DecodeError("truncated field")
        self._fields_left -= fields
        parts.append(buffer[run_start:position])
        if sum(map(len, parts)) > _MAX_STRUCTURE_BYTES:
            raise DecodeError(f"it holds more than {_MAX_STRUCTURE_BYTES >> 20} MiB beside its weights")
        return b"".join(parts)
