import { type MonoTypeOperatorFunction, Observable, raceWith } from 'rxjs';
import { startReplyTimer } from '../../../../net/reply-timer';

/** Fails when nothing was emitted within the time limit of a reply, in milliseconds. */
export function limitReplyTime<T>(milliseconds: number): MonoTypeOperatorFunction<T> {
  return raceWith(
    new Observable<never>((subscriber) =>
      startReplyTimer(milliseconds, () => subscriber.error(new Error(`no reply within ${milliseconds} ms`))),
    ),
  );
}
