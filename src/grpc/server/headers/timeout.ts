const MAX_DIGITS = 8;

/** Milliseconds per unit, by the letter of the unit (`Timeout` in the specification of gRPC over HTTP/2). */
const UNITS: ReadonlyMap<string, number> = new Map([
  ['H', 3_600_000],
  ['M', 60_000],
  ['S', 1_000],
  ['m', 1],
  ['u', 1e-3],
  ['n', 1e-6],
]);

/** Parses `grpc-timeout` to milliseconds; undefined when it is malformed. 0 is valid: clients send it. */
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
