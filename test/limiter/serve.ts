import type { LimiterOptions } from '../../src/limiter/options';
import type { Descriptor } from '../../src/limiter/request';
import { Code, type Verdict } from '../../src/limiter/verdict';
import type { RuleLimit } from '../../src/rules/rule-config';
import { descriptor, request } from '../support/data/requests';
import { type RuleSketch, limit, rulesetOf } from '../support/data/rules';
import { TestService } from '../support/data/service';

/** 10 s into a minute, an hour and a day. */
export const NOW = 1_699_920_010_000;

const services: TestService[] = [];
afterEach(() => Promise.all(services.splice(0).map((service) => service.close())));

/** A service with rules for the domain `shop`, which is closed after the test. */
export function serve(rules: readonly RuleSketch[], options: Partial<LimiterOptions> = {}, now = NOW): TestService {
  const service = new TestService(rulesetOf('shop', ...rules), options, now);
  services.push(service);
  return service;
}

/** Decides a request to the domain `shop`. */
export function call(service: TestService, ...descriptors: readonly (string | Descriptor)[]): Verdict {
  return service.decide(request('shop', descriptors));
}

/** The overall codes of requests that are sent one after the other, each with one descriptor. */
export function overall(service: TestService, ...requests: readonly (string | Descriptor)[]): readonly string[] {
  return requests.map((each) => (call(service, each).overallCode === Code.OK ? 'OK' : 'OVER'));
}

export function codes({ statuses }: Verdict): readonly string[] {
  return statuses.map(({ code }) => (code === Code.OK ? 'OK' : 'OVER'));
}

export function remaining({ statuses }: Verdict): readonly number[] {
  return statuses.map(({ limitRemaining }) => limitRemaining);
}

/** Codes and remaining requests of all descriptors: `OVER 0, OK 3`. */
export function shown(verdict: Verdict): string {
  const left = remaining(verdict);
  return codes(verdict)
    .map((code, index) => `${code} ${left[index]}`)
    .join(', ');
}

/** A descriptor with hits of its own; negative ones are subtracted, −0 is one of them. */
export function hits(text: string, count: number): Descriptor {
  return descriptor(text, { hitsAddend: Math.abs(count), isNegativeHits: isNegative(count) });
}

export function perMinute(requests: number, more: Partial<RuleLimit> = {}): RuleLimit {
  return limit(requests, 'MINUTE', more);
}

/** A rule for the key `k`. */
export function rule(requests: number, more: Partial<RuleSketch> = {}): RuleSketch {
  return { key: 'k', rateLimit: perMinute(requests), ...more };
}

export function isNegative(count: number): boolean {
  return count < 0 || Object.is(count, -0);
}
