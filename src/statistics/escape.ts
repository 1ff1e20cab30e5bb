const SEPARATORS = /[:|]/g;
const IPV4_ADDRESS = /\d{1,3}(?:\.\d{1,3}){3}/g;
// eslint-disable-next-line no-control-regex -- control characters are what this is about
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/g;

/**
 * Makes a joined statistics key fit for every output: `:` and `|` separate the parts of a statsd line, an address's dots
 * would look like levels of the name, and control characters would end the line. The first two steps are byte for byte
 * the Go service's; the order matters, because `1:2` must not become part of an address.
 */
export function escapeStatisticsKey(key: string): string {
  return key
    .replaceAll(SEPARATORS, '_')
    .replaceAll(IPV4_ADDRESS, (address) => address.replaceAll('.', '_'))
    .replaceAll(CONTROL, '_');
}
