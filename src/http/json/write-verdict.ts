import { Code, type DescriptorStatus, type HeaderValue, type Verdict } from '../../limiter/verdict';

/** Writes a verdict as a RateLimitResponse in proto3 JSON: without default values, enums by name, durations as `"30s"`. */
export function writeVerdict({ overallCode, statuses, responseHeaders, dynamicMetadata }: Verdict): string {
  let json = `{"overallCode":${codeName(overallCode)}`;
  if (statuses.length > 0) json += `,"statuses":[${statuses.map(writeStatus).join(',')}]`;
  if (responseHeaders.length > 0) json += `,"responseHeadersToAdd":[${responseHeaders.map(writeHeader).join(',')}]`;
  if (dynamicMetadata !== undefined) json += `,"dynamicMetadata":${JSON.stringify(dynamicMetadata)}`;
  return `${json}}`;
}

function writeStatus({ code, currentLimit, limitRemaining, secondsUntilReset }: DescriptorStatus): string {
  let json = `{"code":${codeName(code)}`;
  if (currentLimit !== undefined) {
    const { requestsPerUnit, unit, name } = currentLimit;
    json += ',"currentLimit":{';
    if (requestsPerUnit !== 0) json += `"requestsPerUnit":${requestsPerUnit},`;
    json += `"unit":"${unit.name}"`;
    if (name !== '') json += `,"name":${JSON.stringify(name)}`;
    json += '}';
  }
  if (limitRemaining !== 0) json += `,"limitRemaining":${limitRemaining}`;
  if (secondsUntilReset !== undefined) json += `,"durationUntilReset":"${secondsUntilReset}s"`;
  return `${json}}`;
}

function writeHeader({ key, value }: HeaderValue): string {
  return JSON.stringify({ ...(key !== '' && { key }), ...(value !== '' && { value }) });
}

function codeName(code: Code): string {
  return code === Code.OVER_LIMIT ? '"OVER_LIMIT"' : '"OK"';
}
