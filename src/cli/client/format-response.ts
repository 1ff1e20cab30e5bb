import type { RateLimitDescriptor } from '../../gen/envoy/extensions/common/ratelimit/v3/ratelimit';
import {
  type RateLimitResponse,
  RateLimitResponse_Code as Code,
  type RateLimitResponse_DescriptorStatus as DescriptorStatus,
  RateLimitResponse_RateLimit_Unit as Unit,
} from '../../gen/envoy/service/ratelimit/v3/rls';
import { visibleLines } from '../visible';
import { formatDuration } from './format-duration';

/** The remaining hits of an unlimited rule. */
const UNLIMITED = 0xffff_ffff;

/** A human-readable response: the overall code, then one line per descriptor, then headers and metadata, if any. */
export function formatResponse(requested: readonly RateLimitDescriptor[], response: RateLimitResponse): string {
  const rows = response.statuses.map((status, index) => [
    describe(requested[index]) ?? `descriptor ${index + 1}`,
    codeName(status.code),
    outcome(status),
  ]);
  const lines = [codeName(response.overallCode), ...align(rows)];
  for (const { key, value } of response.responseHeadersToAdd) lines.push(`response header ${key}: ${value}`);
  for (const { key, value } of response.requestHeadersToAdd) lines.push(`request header ${key}: ${value}`);
  if (response.dynamicMetadata !== undefined) lines.push(`metadata ${JSON.stringify(response.dynamicMetadata)}`);
  return visibleLines(lines);
}

function describe(descriptor: RateLimitDescriptor | undefined): string | undefined {
  return descriptor?.entries.map(({ key, value }) => `${key}=${value}`).join(',');
}

function codeName(code: Code): string {
  return Code[code] ?? `code ${code}`;
}

function outcome({ currentLimit, limitRemaining, durationUntilReset }: DescriptorStatus): string {
  const reset = durationUntilReset === undefined ? '' : `, resets in ${formatDuration(durationUntilReset)}`;
  if (currentLimit === undefined || currentLimit.unit === Unit.UNKNOWN) {
    return limitRemaining === UNLIMITED ? 'unlimited' : `no limit applies${reset}`;
  }
  const { requestsPerUnit, unit, name } = currentLimit;
  const per = (Unit[unit] ?? `unit ${unit}`).toLowerCase();
  return `${limitRemaining} of ${requestsPerUnit} per ${per} left${reset}${name === '' ? '' : ` (${name})`}`;
}

/** Formats rows as lines with aligned columns. */
function align(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) => `  ${row.map((cell, column) => cell.padEnd(widths[column]!)).join('  ')}`.trimEnd());
}
