/** The names of levels in log lines, least severe first. */
export const LOG_LEVELS = ['debug', 'info', 'warning', 'error', 'fatal'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const BY_NAME: ReadonlyMap<string, LogLevel> = new Map([
  ['trace', 'debug'],
  ['debug', 'debug'],
  ['info', 'info'],
  ['warn', 'warning'],
  ['warning', 'warning'],
  ['error', 'error'],
  ['fatal', 'fatal'],
  ['panic', 'fatal'],
]);

/**
 * The level that a value of LOG_LEVEL means, in any case; undefined when it means none. The Go service's `trace` and
 * `panic` are the nearest level that weir has.
 */
export function parseLogLevel(text: string): LogLevel | undefined {
  return BY_NAME.get(text.toLowerCase());
}
