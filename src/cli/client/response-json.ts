import {
  type RateLimitResponse,
  RateLimitResponse_Code as Code,
  type RateLimitResponse_DescriptorStatus as DescriptorStatus,
  type RateLimitResponse_RateLimit as RateLimit,
  RateLimitResponse_RateLimit_Unit as Unit,
} from '../../gen/envoy/service/ratelimit/v3/rls';
import type { HeaderValue } from '../../gen/envoy/config/core/v3/base';
import type { Duration } from '../../gen/google/protobuf/duration';

/**
 * A response as proto3 JSON, indented. It shows every field, also those that weir itself never sets: the server may be
 * another one.
 */
export function responseJson(response: RateLimitResponse): string {
  return JSON.stringify(
    withoutDefaults({
      overallCode: enumName(Code, response.overallCode),
      statuses: response.statuses.map(statusJson),
      responseHeadersToAdd: response.responseHeadersToAdd.map(headerJson),
      requestHeadersToAdd: response.requestHeadersToAdd.map(headerJson),
      rawBody: response.rawBody.toString('base64'),
      dynamicMetadata: response.dynamicMetadata,
    }),
    null,
    2,
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

/** `1.5s`: seconds with as many of three, six or nine decimals as are needed. */
export function durationJson({ seconds, nanos }: Duration): string {
  const sign = seconds < 0n || nanos < 0 ? '-' : '';
  const whole = String(seconds < 0n ? -seconds : seconds);
  const decimals = String(Math.abs(nanos))
    .padStart(9, '0')
    .replace(/(000){1,3}$/, '');
  return `${sign}${whole}${decimals === '' ? '' : `.${decimals}`}s`;
}

/** The name of an enum's value; undefined for the value 0, which proto3 JSON leaves out, the number for one without a name. */
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
