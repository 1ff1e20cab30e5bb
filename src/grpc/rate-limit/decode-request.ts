import type { Purpose } from '../../counting/algorithms/algorithm';
import {
  type Descriptor,
  type Entry,
  type LimitOverride,
  MAX_DESCRIPTORS,
  MAX_ENTRIES_PER_DESCRIPTOR,
  NO_HITS_ADDEND,
  type RateLimitRequest,
  countDescriptor,
  countEntry,
} from '../../limiter/request';
import { unitByNumber } from '../../rules/unit';
import { ProtobufReader, WireType } from './protobuf-reader';

// Tags (`fieldNumber << 3 | wireType`) of the messages in proto/envoy.
const REQUEST_DOMAIN = (1 << 3) | WireType.LEN;
const REQUEST_DESCRIPTORS = (2 << 3) | WireType.LEN;
const REQUEST_HITS_ADDEND = (3 << 3) | WireType.VARINT;
const DESCRIPTOR_ENTRIES = (1 << 3) | WireType.LEN;
const DESCRIPTOR_LIMIT = (2 << 3) | WireType.LEN;
const DESCRIPTOR_HITS_ADDEND = (3 << 3) | WireType.LEN;
const DESCRIPTOR_IS_NEGATIVE_HITS = (4 << 3) | WireType.VARINT;
const ENTRY_KEY = (1 << 3) | WireType.LEN;
const ENTRY_VALUE = (2 << 3) | WireType.LEN;
const LIMIT_REQUESTS_PER_UNIT = (1 << 3) | WireType.VARINT;
const LIMIT_UNIT = (2 << 3) | WireType.VARINT;
const WRAPPED_VALUE = (1 << 3) | WireType.VARINT;

/**
 * Decodes an `envoy.service.ratelimit.v3.RateLimitRequest` into the limiter's own type. Hand-written, because decoding
 * is a large part of the cost of a decision. Unknown fields are skipped; for a repeated occurrence of a field the rules
 * of protobuf apply: the last scalar wins, messages are merged.
 *
 * Descriptors and entries over their maximum are counted, and neither kept nor checked.
 *
 * @throws ProtobufError when the bytes are not such a message
 * @throws DecisionError when reading on would take too much work, before anything else is known of the request
 */
export function decodeRequest(bytes: Uint8Array, purpose?: Purpose): RateLimitRequest {
  return requestIn(new ProtobufReader(bytes), purpose);
}

/** Decodes a request from what is left of the message that the reader is in; throws as {@link decodeRequest}. */
export function requestIn(reader: ProtobufReader, purpose?: Purpose): RateLimitRequest {
  let domain = '';
  let descriptors: Descriptor[] = [];
  let hitsAddend = 0;
  while (reader.hasMore) {
    const tag = reader.tag();
    if (tag === REQUEST_DOMAIN) domain = reader.name();
    else if (tag === REQUEST_DESCRIPTORS) {
      // Mostly the only one: V8 makes room for 17 elements when one is added to an empty array.
      if (descriptors.length === 0) descriptors = [decodeDescriptor(reader, 1)];
      else readDescriptor(reader, descriptors);
    } else if (tag === REQUEST_HITS_ADDEND) hitsAddend = reader.uint32();
    else reader.skip(tag);
  }
  return { domain, descriptors, hitsAddend, purpose };
}

function readDescriptor(reader: ProtobufReader, descriptors: Descriptor[]): void {
  if (descriptors.length < MAX_DESCRIPTORS) {
    descriptors.push(decodeDescriptor(reader, descriptors.length + 1));
    return;
  }
  reader.skip(REQUEST_DESCRIPTORS);
  countDescriptor(descriptors);
}

function decodeDescriptor(reader: ProtobufReader, number: number): Descriptor {
  const outerEnd = reader.enter();
  let entries: Entry[] = [];
  let limit: LimitOverride | undefined;
  let hitsAddend = NO_HITS_ADDEND;
  let isNegativeHits = false;
  while (reader.hasMore) {
    const tag = reader.tag();
    if (tag === DESCRIPTOR_ENTRIES) {
      if (entries.length === 0) entries = [decodeEntry(reader)];
      else readEntry(reader, entries, number);
    } else if (tag === DESCRIPTOR_LIMIT) limit = decodeLimit(reader, limit);
    else if (tag === DESCRIPTOR_HITS_ADDEND) hitsAddend = decodeWrapped(reader, hitsAddend);
    else if (tag === DESCRIPTOR_IS_NEGATIVE_HITS) isNegativeHits = reader.bool();
    else reader.skip(tag);
  }
  reader.leave(outerEnd);
  return { entries, limit, hitsAddend, isNegativeHits };
}

function readEntry(reader: ProtobufReader, entries: Entry[], number: number): void {
  if (entries.length < MAX_ENTRIES_PER_DESCRIPTOR) {
    entries.push(decodeEntry(reader));
    return;
  }
  reader.skip(DESCRIPTOR_ENTRIES);
  countEntry(entries, number);
}

function decodeEntry(reader: ProtobufReader): Entry {
  const outerEnd = reader.enter();
  let key = '';
  let value = '';
  while (reader.hasMore) {
    const tag = reader.tag();
    if (tag === ENTRY_KEY) key = reader.name();
    else if (tag === ENTRY_VALUE) value = reader.text();
    else reader.skip(tag);
  }
  reader.leave(outerEnd);
  return { key, value };
}

function decodeLimit(reader: ProtobufReader, before: LimitOverride | undefined): LimitOverride {
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

/** Decodes a `google.protobuf.UInt64Value`: an empty one is present, with the value 0. */
function decodeWrapped(reader: ProtobufReader, before: number): number {
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
