import type { RateLimitDescriptor } from '../../gen/envoy/extensions/common/ratelimit/v3/ratelimit';
import {
  type RateLimitResponse,
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

const UNITS = [
  ['d', 86_400n],
  ['h', 3600n],
  ['m', 60n],
] as const;

/** A duration as people read it: `4h10m23s`, `6d`, `0.5s`, `0s`. Units that are 0 are left out. */
export function formatDuration({ seconds, nanos }: Duration): string {
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

/** Of the fields that have one. */
const ENUMS: Readonly<Record<string, Readonly<Record<number, string>>>> = { overallCode: Code, code: Code, unit: Unit };

/**
 * A message as proto3 JSON, without the fields that have their default. It contains every field, including those that weir never sets,
 * because the server may be a different one.
 */
export function messageJson(message: object): Readonly<Record<string, unknown>> {
  const fields = Object.entries(message).map(([name, value]) => [name, fieldJson(name, value)] as const);
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined && value !== '' && value !== 0));
}

function fieldJson(name: string, value: unknown): unknown {
  // A value without a name is a number. As 0 is omitted, so is its name.
  if (typeof value === 'number') return value === 0 ? undefined : (ENUMS[name]?.[value] ?? value);
  if (Buffer.isBuffer(value)) return value.toString('base64');
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(messageJson);
  if (name === 'dynamicMetadata' || typeof value !== 'object') return value;
  return name === 'durationUntilReset' ? durationJson(value as Duration) : messageJson(value!);
}

/** `1.500s`: seconds with no, three, six or nine decimals, as few as possible. */
export function durationJson({ seconds, nanos }: Duration): string {
  const sign = seconds < 0n || nanos < 0 ? '-' : '';
  const whole = String(seconds < 0n ? -seconds : seconds);
  const decimals = String(Math.abs(nanos))
    .padStart(9, '0')
    .replace(/(000){1,3}$/, '');
  return `${sign}${whole}${decimals === '' ? '' : `.${decimals}`}s`;
}
