import { MAX_WINDOW_SECONDS } from '../rules/unit';

/**
 * The start of the window that contains `nowSeconds`, in Unix seconds. For stores, a window of the calendar is one from
 * the epoch to its end, which is longer than all others, and does not begin again.
 */
export function windowStart(nowSeconds: number, windowSeconds: number): number {
  if (isCalendarEnd(windowSeconds)) return 0;
  return nowSeconds - (nowSeconds % windowSeconds);
}

/**
 * Whether the length of a window is the end of one of the calendar, in Unix seconds: it says nothing next to the length
 * of another one.
 */
export function isCalendarEnd(windowSeconds: number): boolean {
  return windowSeconds > MAX_WINDOW_SECONDS;
}
