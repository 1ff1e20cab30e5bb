import {
  type Descriptor,
  type Entry,
  type LimitOverride,
  NO_HITS_ADDEND,
  type RateLimitRequest,
} from '../../limiter/request';
import { unitByNumber } from '../../rules/unit';
import { Wire, WireReader } from './protobuf-reader';

// Tags, `fieldNumber << 3 | wireType`, of the messages of proto/envoy.
const REQUEST_DOMAIN = (1 << 3) | Wire.LEN;
const REQUEST_DESCRIPTORS = (2 << 3) | Wire.LEN;
const REQUEST_HITS_ADDEND = (3 << 3) | Wire.VARINT;
const DESCRIPTOR_ENTRIES = (1 << 3) | Wire.LEN;
const DESCRIPTOR_LIMIT = (2 << 3) | Wire.LEN;
const DESCRIPTOR_HITS_ADDEND = (3 << 3) | Wire.LEN;
const DESCRIPTOR_IS_NEGATIVE_HITS = (4 << 3) | Wire.VARINT;
const ENTRY_KEY = (1 << 3) | Wire.LEN;
const ENTRY_VALUE = (2 << 3) | Wire.LEN;
const LIMIT_REQUESTS_PER_UNIT = (1 << 3) | Wire.VARINT;
const LIMIT_UNIT = (2 << 3) | Wire.VARINT;
const WRAPPED_VALUE = (1 << 3) | Wire.VARINT;

/**
 * Decodes an `envoy.service.ratelimit.v3.RateLimitRequest` straight into what the limiter takes. By hand, because it is a
 * large part of what a decision costs; fields that are not known are passed over, a field given twice counts as protobuf
 * says (the last scalar wins, messages are merged).
 *
 * @throws WireError when the bytes are not such a message
 */
export function decodeRequest(bytes: Uint8Array): RateLimitRequest {
  const reader = new WireReader(bytes);
  let domain = '';
  const descriptors: Descriptor[] = [];
  let hitsAddend = 0;
  while (reader.hasMore) {
    const tag = reader.tag();
    if (tag === REQUEST_DOMAIN) domain = reader.text();
    else if (tag === REQUEST_DESCRIPTORS) descriptors.push(decodeDescriptor(reader));
    else if (tag === REQUEST_HITS_ADDEND) hitsAddend = reader.uint32();
    else reader.skip(tag);
  }
  return { domain, descriptors, hitsAddend };
}

function decodeDescriptor(reader: WireReader): Descriptor {
  const outerEnd = reader.enter();
  const entries: Entry[] = [];
  let limit: LimitOverride | undefined;
  let hitsAddend = NO_HITS_ADDEND;
  let isNegativeHits = false;
  while (reader.hasMore) {
    const tag = reader.tag();
    if (tag === DESCRIPTOR_ENTRIES) entries.push(decodeEntry(reader));
    else if (tag === DESCRIPTOR_LIMIT) limit = decodeLimit(reader, limit);
    else if (tag === DESCRIPTOR_HITS_ADDEND) hitsAddend = decodeWrapped(reader, hitsAddend);
    else if (tag === DESCRIPTOR_IS_NEGATIVE_HITS) isNegativeHits = reader.bool();
    else reader.skip(tag);
  }
  reader.leave(outerEnd);
  return { entries, limit, hitsAddend, isNegativeHits };
}

function decodeEntry(reader: WireReader): Entry {
  const outerEnd = reader.enter();
  let key = '';
  let value = '';
  while (reader.hasMore) {
    const tag = reader.tag();
    if (tag === ENTRY_KEY) key = reader.text();
    else if (tag === ENTRY_VALUE) value = reader.text();
    else reader.skip(tag);
  }
  reader.leave(outerEnd);
  return { key, value };
}

function decodeLimit(reader: WireReader, before: LimitOverride | undefined): LimitOverride {
  const outerEnd = reader.enter();
  let requestsPerUnit = before?.requestsPerUnit ?? 0;
  let unit = before?.unit;
  while (reader.hasMore) {
    const tag = reader.tag();
    if (tag === LIMIT_REQUESTS_PER_UNIT) requestsPerUnit = reader.uint32();
    else if (tag === LIMIT_UNIT) unit = unitByNumber(reader.uint32());
    else reader.skip(tag);
  }
  reader.leave(outerEnd);
  return { requestsPerUnit, unit };
}

/** A `google.protobuf.UInt64Value`: present even when it is empty, and then 0. */
function decodeWrapped(reader: WireReader, before: number): number {
  const outerEnd = reader.enter();
  let value = before === NO_HITS_ADDEND ? 0 : before;
  while (reader.hasMore) {
    const tag = reader.tag();
    if (tag === WRAPPED_VALUE) value = reader.uint64();
    else reader.skip(tag);
  }
  reader.leave(outerEnd);
  return value;
}
