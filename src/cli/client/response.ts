import type { RateLimitDescriptor } from '../../gen/envoy/extensions/common/ratelimit/v3/ratelimit';
import { DESCRIPTOR_SET } from '../../gen/descriptor-set';
import {
  RateLimitResponse,
  RateLimitResponse_Code as Code,
  type RateLimitResponse_DescriptorStatus as DescriptorStatus,
  RateLimitResponse_RateLimit_Unit as Unit,
} from '../../gen/envoy/service/ratelimit/v3/rls';
import type { Duration } from '../../gen/google/protobuf/duration';
import { visibleLines } from '../../text/visible';

/** The remaining hits of an unlimited rule. */
const UNLIMITED = 0xffff_ffff;

/** A human-readable response: the overall code, then one line per descriptor, then headers and metadata, if any. */
export function formatResponse(requested: readonly RateLimitDescriptor[], response: RateLimitResponse): string {
  const rows = response.statuses.map((status, index) => [
    requested[index]?.entries.map(({ key, value }) => `${key}=${value}`).join(',') ?? `descriptor ${index + 1}`,
    codeName(status.code),
    outcome(status),
  ]);
  const lines = [codeName(response.overallCode), ...align(rows)];
  for (const { key, value } of response.responseHeadersToAdd) lines.push(`response header ${key}: ${value}`);
  for (const { key, value } of response.requestHeadersToAdd) lines.push(`request header ${key}: ${value}`);
  if (response.dynamicMetadata !== undefined) lines.push(`metadata ${JSON.stringify(response.dynamicMetadata)}`);
  return visibleLines(lines);
}

function codeName(code: Code): string {
  return Code[code] ?? `code ${code}`;
}

function outcome({ code, currentLimit, limitRemaining, durationUntilReset }: DescriptorStatus): string {
  const reset = durationUntilReset === undefined ? '' : `, resets in ${formatDuration(durationUntilReset)}`;
  const { requestsPerUnit = 0, unit = Unit.UNKNOWN, name = '' } = currentLimit ?? {};
  const named = name === '' ? '' : ` (${name})`;
  if (unit !== Unit.UNKNOWN) {
    const per = (Unit[unit] ?? `unit ${unit}`).toLowerCase();
    return `${limitRemaining} of ${requestsPerUnit} per ${per} left${reset}${named}`;
  }
  // A limit without a unit is one on how many run at a time.
  if (requestsPerUnit > 0 || (currentLimit !== undefined && code === Code.OVER_LIMIT)) {
    return `${limitRemaining} of ${requestsPerUnit} at a time left${named}`;
  }
  return limitRemaining === UNLIMITED ? 'unlimited' : `no limit applies${reset}`;
}

/** Formats rows as lines with aligned columns. */
function align(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) => `  ${row.map((cell, column) => cell.padEnd(widths[column]!)).join('  ')}`.trimEnd());
}

const UNITS = [
  ['d', 86_400n],
  ['h', 3600n],
  ['m', 60n],
] as const;

/** A duration as people read it: `4h10m23s`, `6d`, `0.5s`, `0s`. Units that are 0 are left out. */
function formatDuration({ seconds, nanos }: Duration): string {
  const isNegative = seconds < 0n || nanos < 0;
  let rest = seconds < 0n ? -seconds : seconds;
  let text = isNegative ? '-' : '';
  for (const [unit, length] of UNITS) {
    if (rest >= length) text += `${rest / length}${unit}`;
    rest %= length;
  }
  const fraction = String(Math.abs(nanos)).padStart(9, '0').replace(/0+$/, '');
  if (rest === 0n && fraction === '' && /\d/.test(text)) return text;
  return `${text}${rest}${fraction === '' ? '' : `.${fraction}`}s`;
}

/**
 * A response as proto3 JSON, with every field, including those that weir never sets: the server may be a different one.
 * Encoded once more for the library, which is loaded only here.
 */
export async function responseJson(response: RateLimitResponse): Promise<unknown> {
  const { createFileRegistry, fromBinary, toJson } = await import('@bufbuild/protobuf');
  const { FileDescriptorSetSchema } = await import('@bufbuild/protobuf/wkt');
  const types = createFileRegistry(fromBinary(FileDescriptorSetSchema, Buffer.from(DESCRIPTOR_SET, 'base64')));
  const type = types.getMessage('envoy.service.ratelimit.v3.RateLimitResponse')!;
  return toJson(type, fromBinary(type, RateLimitResponse.encode(response).finish()));
}
