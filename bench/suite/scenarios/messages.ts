import { RateLimitRequest } from '../../../src/gen/envoy/service/ratelimit/v3/rls';
import type { Messages } from '../load/connection';
import { DOMAIN, type Load } from './loads';

/** Values have this many digits, so that all messages have the same length. */
const DIGITS = 7;
const PLACEHOLDER = '0'.repeat(DIGITS);
/**
 * Has no divisor in common with the numbers of values, so that each value comes once in a round, and neighbours are far
 * apart.
 */
const STRIDE = 514_229;

/**
 * The messages of a load: the value of each descriptor is `v-` and the digits of a number, the same for all descriptors
 * of a call.
 */
export function messagesOf({ descriptors, values, protocol }: Load): Messages {
  const entries = descriptors.map((key) => ({ key, value: valueText(0) }));
  return withDigits(protocol === 'json' ? jsonMessage(entries) : protobufMessage(entries), (call) =>
    values === 1 ? 0 : (call * STRIDE) % values,
  );
}

/** The value with this number in a template with {@link PLACEHOLDER}. */
export function valueText(value: number): string {
  return `v-${String(value).padStart(DIGITS, '0')}`;
}

/** @param valueOf the number whose digits replace all placeholders of the template, for the call with this number */
export function withDigits(template: Buffer, valueOf: (call: number) => number): Messages {
  const places = placesOf(template);
  const [first = 0, ...others] = places;
  return {
    length: template.length,
    write(call, bytes, at) {
      let rest = valueOf(call);
      for (let digit = first + DIGITS - 1; digit >= first; digit -= 1) {
        const tens = Math.floor(rest / 10);
        template[digit] = 0x30 + rest - 10 * tens;
        rest = tens;
      }
      for (const place of others) template.copyWithin(place, first, first + DIGITS);
      template.copy(bytes, at);
      return at + template.length;
    },
  };
}

interface Entry {
  readonly key: string;
  readonly value: string;
}

/** A request with one descriptor for each entry. */
export function protobufMessage(entries: readonly Entry[]): Buffer {
  const descriptors = entries.map((entry) => ({
    entries: [entry],
    limit: undefined,
    hitsAddend: undefined,
    isNegativeHits: false,
  }));
  return Buffer.from(RateLimitRequest.encode({ domain: DOMAIN, descriptors, hitsAddend: 0 }).finish());
}

function jsonMessage(entries: readonly Entry[]): Buffer {
  return Buffer.from(JSON.stringify({ domain: DOMAIN, descriptors: entries.map((entry) => ({ entries: [entry] })) }));
}

function placesOf(template: Buffer): readonly number[] {
  const places: number[] = [];
  for (let at = template.indexOf(PLACEHOLDER); at >= 0; at = template.indexOf(PLACEHOLDER, at + DIGITS))
    places.push(at);
  return places;
}
