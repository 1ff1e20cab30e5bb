const SEPARATORS = /[:|]/g;
const IPV4_ADDRESS = /\d{1,3}(?:\.\d{1,3}){3}/g;
// eslint-disable-next-line no-control-regex -- the expression looks for control characters
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/g;

/**
 * Escapes a joined statistics key for all outputs: `:` and `|` separate the parts of a statsd line, the dots of an
 * address would be read as levels of the name, and control characters would end the line. The first two steps are
 * exactly those of the Go service. The order matters, because `1:2` must not become part of an address.
 */
export function escapeStatisticsKey(key: string): string {
  return key
    .replaceAll(SEPARATORS, '_')
    .replaceAll(IPV4_ADDRESS, (address) => address.replaceAll('.', '_'))
    .replaceAll(CONTROL, '_');
}
