import {
  type RateLimitResponse,
  RateLimitResponse_Code as Code,
  type RateLimitResponse_DescriptorStatus as DescriptorStatus,
  type RateLimitResponse_RateLimit as RateLimit,
  RateLimitResponse_RateLimit_Unit as Unit,
} from '../../gen/envoy/service/ratelimit/v3/rls';
import type { HeaderValue } from '../../gen/envoy/config/core/v3/base';
import type { Duration } from '../../gen/google/protobuf/duration';
import { visibleJson } from '../visible';

/**
 * A response as indented proto3 JSON. It contains every field, including those that weir never sets, because the server may be
 * a different one.
 */
export function responseJson(response: RateLimitResponse): string {
  return visibleJson(
    withoutDefaults({
      overallCode: enumName(Code, response.overallCode),
      statuses: response.statuses.map(statusJson),
      responseHeadersToAdd: response.responseHeadersToAdd.map(headerJson),
      requestHeadersToAdd: response.requestHeadersToAdd.map(headerJson),
      rawBody: response.rawBody.toString('base64'),
      dynamicMetadata: response.dynamicMetadata,
    }),
  );
}

function statusJson({ code, currentLimit, limitRemaining, durationUntilReset }: DescriptorStatus) {
  return withoutDefaults({
    code: enumName(Code, code),
    currentLimit: currentLimit && limitJson(currentLimit),
    limitRemaining,
    durationUntilReset: durationUntilReset && durationJson(durationUntilReset),
  });
}

function limitJson({ requestsPerUnit, unit, name }: RateLimit) {
  return withoutDefaults({ requestsPerUnit, unit: enumName(Unit, unit), name });
}

function headerJson({ key, value, rawValue }: HeaderValue) {
  return withoutDefaults({ key, value, rawValue: rawValue.toString('base64') });
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

/** The name of an enum value, or its number if it has no name; undefined for the value 0, which proto3 JSON omits. */
function enumName(names: Readonly<Record<number, string>>, value: number): string | number | undefined {
  return value === 0 ? undefined : (names[value] ?? value);
}

function withoutDefaults(message: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(message).filter(
      ([, value]) =>
        value !== undefined && value !== '' && value !== 0 && !(Array.isArray(value) && value.length === 0),
    ),
  );
}
