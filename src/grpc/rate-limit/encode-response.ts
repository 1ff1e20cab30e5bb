import { Struct } from '../../gen/google/protobuf/struct';
import type { Limit } from '../../counting/limit';
import type { DescriptorStatus, HeaderValue, Verdict } from '../../limiter/verdict';
import { wireNumber } from '../../text/plain-number';
import { WireType } from './protobuf-reader';
import { ProtobufWriter } from './protobuf-writer';

// Tags (`fieldNumber << 3 | wireType`) of the messages in proto/envoy.
const RESPONSE_OVERALL_CODE = (1 << 3) | WireType.VARINT;
const RESPONSE_STATUSES = (2 << 3) | WireType.LEN;
const RESPONSE_HEADERS = (3 << 3) | WireType.LEN;
const RESPONSE_DYNAMIC_METADATA = (6 << 3) | WireType.LEN;
const STATUS_CODE = (1 << 3) | WireType.VARINT;
const STATUS_CURRENT_LIMIT = (2 << 3) | WireType.LEN;
const STATUS_LIMIT_REMAINING = (3 << 3) | WireType.VARINT;
const STATUS_DURATION_UNTIL_RESET = (4 << 3) | WireType.LEN;
const LIMIT_REQUESTS_PER_UNIT = (1 << 3) | WireType.VARINT;
const LIMIT_UNIT = (2 << 3) | WireType.VARINT;
const LIMIT_NAME = (3 << 3) | WireType.LEN;
const HEADER_KEY = (1 << 3) | WireType.LEN;
const HEADER_VALUE = (2 << 3) | WireType.LEN;
const DURATION_SECONDS = (1 << 3) | WireType.VARINT;

/** Shared by all calls: a response is copied out before the next one is encoded. */
const writer = new ProtobufWriter();
const limitWriter = new ProtobufWriter();
/** A rule has the same limit object in every response, so it is encoded once. */
const encodedLimits = new WeakMap<Limit, Uint8Array>();

/**
 * Encodes a verdict as an `envoy.service.ratelimit.v3.RateLimitResponse`.
 *
 * @returns a view that the next call overwrites: copy it before then
 */
export function encodeResponse({ overallCode, statuses, responseHeaders, dynamicMetadata }: Verdict): Uint8Array {
  writer.reset();
  writer.varintField(RESPONSE_OVERALL_CODE, overallCode);
  for (const status of statuses) writeStatus(status);
  for (const header of responseHeaders) writeHeader(header);
  if (dynamicMetadata !== undefined) {
    writer.bytesField(RESPONSE_DYNAMIC_METADATA, Struct.encode(Struct.wrap(dynamicMetadata)).finish());
  }
  return writer.written();
}

function writeStatus({ code, currentLimit, limitRemaining, secondsUntilReset }: DescriptorStatus): void {
  const start = writer.open(RESPONSE_STATUSES);
  writer.varintField(STATUS_CODE, code);
  if (currentLimit !== undefined) writer.bytesField(STATUS_CURRENT_LIMIT, encodedLimit(currentLimit));
  if (limitRemaining !== 0) writer.varintField(STATUS_LIMIT_REMAINING, wireNumber(limitRemaining));
  if (secondsUntilReset !== undefined) {
    const duration = writer.open(STATUS_DURATION_UNTIL_RESET);
    if (secondsUntilReset !== 0) writer.varintField(DURATION_SECONDS, secondsUntilReset);
    writer.close(duration);
  }
  writer.close(start);
}

function encodedLimit(limit: Limit): Uint8Array {
  let encoded = encodedLimits.get(limit);
  if (encoded === undefined) encodedLimits.set(limit, (encoded = encodeLimit(limit)));
  return encoded;
}

function encodeLimit({ requestsPerUnit, unit, name }: Limit): Uint8Array {
  limitWriter.reset();
  if (requestsPerUnit !== 0) limitWriter.varintField(LIMIT_REQUESTS_PER_UNIT, wireNumber(requestsPerUnit));
  limitWriter.varintField(LIMIT_UNIT, unit.number);
  if (name !== '') limitWriter.textField(LIMIT_NAME, name);
  // A view would keep the whole buffer as long as the rule.
  return Uint8Array.from(limitWriter.written());
}

function writeHeader({ key, value }: HeaderValue): void {
  const start = writer.open(RESPONSE_HEADERS);
  writer.textField(HEADER_KEY, key);
  writer.textField(HEADER_VALUE, value);
  writer.close(start);
}
