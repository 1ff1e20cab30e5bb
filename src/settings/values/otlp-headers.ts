import { splitList } from './lists';
import { accepted, type ValueType } from './value-type';

/**
 * Headers of an OTLP exporter: `key=value` pairs, percent-encoded. Items that are no pairs are left out, because the exporter
 * ignores them in its variables.
 */
export const otlpHeaders: ValueType<Readonly<Record<string, string>>> = {
  allowed: 'list of key=value, percent-encoded',
  parse: (given) => accepted(Object.fromEntries(splitList(given).flatMap(pairOf))),
  format: (headers) =>
    Object.entries(headers)
      .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
      .join(','),
};

function pairOf(item: string): readonly (readonly [name: string, value: string])[] {
  const split = item.indexOf('=');
  const name = percentDecoded(item.slice(0, Math.max(split, 0)).trim());
  return name === '' ? [] : [[name, percentDecoded(item.slice(split + 1).trim())]];
}

/** The text without percent-encoding; as it is, if that is broken. */
export function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
