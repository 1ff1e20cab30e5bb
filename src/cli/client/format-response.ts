import type { RateLimitDescriptor } from '../../gen/envoy/extensions/common/ratelimit/v3/ratelimit';
import {
  type RateLimitResponse,
  RateLimitResponse_Code as Code,
  type RateLimitResponse_DescriptorStatus as DescriptorStatus,
  RateLimitResponse_RateLimit_Unit as Unit,
} from '../../gen/envoy/service/ratelimit/v3/rls';
import { durationJson } from './response-json';

/** What an unlimited rule leaves. */
const UNLIMITED = 0xffff_ffff;

/** A response for people: the overall code, then a line a descriptor, then headers and metadata where there are any. */
export function formatResponse(asked: readonly RateLimitDescriptor[], response: RateLimitResponse): string {
  const rows = response.statuses.map((status, index) => [
    describe(asked[index]) ?? `descriptor ${index + 1}`,
    codeName(status.code),
    outcome(status),
  ]);
  const lines = [codeName(response.overallCode), ...align(rows)];
  for (const { key, value } of response.responseHeadersToAdd) lines.push(`response header ${key}: ${value}`);
  for (const { key, value } of response.requestHeadersToAdd) lines.push(`request header ${key}: ${value}`);
  if (response.dynamicMetadata !== undefined) lines.push(`metadata ${JSON.stringify(response.dynamicMetadata)}`);
  return lines.join('\n');
}

function describe(descriptor: RateLimitDescriptor | undefined): string | undefined {
  return descriptor?.entries.map(({ key, value }) => `${key}=${value}`).join(',');
}

function codeName(code: Code): string {
  return Code[code] ?? `code ${code}`;
}

function outcome({ currentLimit, limitRemaining, durationUntilReset }: DescriptorStatus): string {
  const reset = durationUntilReset === undefined ? '' : `, resets in ${durationJson(durationUntilReset)}`;
  if (currentLimit === undefined || currentLimit.unit === Unit.UNKNOWN) {
    return limitRemaining === UNLIMITED ? 'unlimited' : `no limit applies${reset}`;
  }
  const { requestsPerUnit, unit, name } = currentLimit;
  const per = (Unit[unit] ?? `unit ${unit}`).toLowerCase();
  return `${limitRemaining} of ${requestsPerUnit} per ${per} left${reset}${name === '' ? '' : ` (${name})`}`;
}

/** Rows as lines, every column but the last as wide as its widest cell. */
function align(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) => `  ${row.map((cell, column) => cell.padEnd(widths[column]!)).join('  ')}`.trimEnd());
}
