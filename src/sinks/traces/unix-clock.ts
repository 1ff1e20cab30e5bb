/**
 * Milliseconds that the system clock may deviate before the clock is set to it: more than the system clock's own inaccuracy, less
 * than matters in a trace.
 */
const TOLERANCE = 50;

/**
 * Unix time in milliseconds with fractions, since a decision takes less than one. Between adjustments it is monotonic, so that
 * child spans lie within their parents. It is adjusted when the system clock is set, or after the machine was suspended.
 *
 * @param now monotonic time in milliseconds, with fractions
 * @param systemNow Unix time in whole milliseconds
 */
export function unixClock(now = () => performance.now(), systemNow = Date.now): () => number {
  let origin = systemNow() - now();
  return () => {
    const elapsed = now();
    const deviation = systemNow() - (origin + elapsed);
    if (Math.abs(deviation) > TOLERANCE) origin += deviation;
    return origin + elapsed;
  };
}
