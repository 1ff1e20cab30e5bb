/** A time in the format of ISO 8601, in UTC. @param seconds Unix seconds */
export function isoTime(seconds: number): string {
  // oxlint-disable-next-line no-restricted-globals -- it formats a time, and does not read the clock
  return new Date(seconds * 1000).toISOString();
}
