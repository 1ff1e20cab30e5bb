const MAX_DIGITS = 8;

/** Milliseconds of each unit, by its letter (gRPC's protocol over HTTP/2: `Timeout`). */
const UNITS: ReadonlyMap<string, number> = new Map([
  ['H', 3_600_000],
  ['M', 60_000],
  ['S', 1_000],
  ['m', 1],
  ['u', 1e-3],
  ['n', 1e-6],
]);

/** Milliseconds that a `grpc-timeout` grants, 0 included as clients send it; undefined where it is none. */
export function parseTimeout(text: string): number | undefined {
  const last = text.length - 1;
  if (last < 1 || last > MAX_DIGITS) return undefined;
  let value = 0;
  for (let at = 0; at < last; at += 1) {
    const digit = text.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    value = value * 10 + digit;
  }
  const unit = UNITS.get(text.charAt(last));
  return unit === undefined ? undefined : value * unit;
}
