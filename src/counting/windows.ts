import type { CountedLimit } from './operation';

/** What says when the present window of a limit ends. */
export type LimitWindow = Pick<CountedLimit, 'lengthSeconds' | 'endsAt'>;

/** The start of the window of a fixed length that contains `nowSeconds`, in Unix seconds. */
export function windowStart(nowSeconds: number, lengthSeconds: number): number {
  return nowSeconds - (nowSeconds % lengthSeconds);
}

/**
 * The first second after the window that contains `nowSeconds`, in Unix seconds; that of a window of the calendar may
 * be over.
 */
export function windowEnd({ lengthSeconds, endsAt }: LimitWindow, nowSeconds: number): number {
  return endsAt ?? windowStart(nowSeconds, lengthSeconds) + lengthSeconds;
}

/** Whether a key of one window is kept as long as that of another one. */
export function areOneWindow(one: LimitWindow, other: LimitWindow): boolean {
  return one.lengthSeconds === other.lengthSeconds && one.endsAt === other.endsAt;
}
