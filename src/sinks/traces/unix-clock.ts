/** How far the system's clock may go away before it is followed, in milliseconds: more than it is ever late, less than matters. */
const TOLERANCE = 50;

/**
 * Unix time in milliseconds with fractions, since a decision takes less than one. It runs evenly, so that spans lie within each
 * other, and follows the system's clock when that is set, or when the machine has slept.
 *
 * @param now milliseconds since any moment, with fractions, never going back
 * @param systemNow Unix time in whole milliseconds, as far as it is known
 */
export function unixClock(now = () => performance.now(), systemNow = Date.now): () => number {
  let origin = systemNow() - now();
  return () => {
    const elapsed = now();
    const off = systemNow() - (origin + elapsed);
    if (Math.abs(off) > TOLERANCE) origin += off;
    return origin + elapsed;
  };
}
