import { mergeMap } from 'rxjs';
import type { CounterLane } from '../../streams/ports/counters';
import type { Channel } from '../channel/channel';
import { TOPICS } from '../channel/topics';
import { readBatch, writeCounts } from './batch-frames';

/**
 * Applies the batches of a worker to the counters of this process, until the channel closes. A batch is applied when it arrives, whether or not its
 * worker still lives when it is answered.
 *
 * @param counters answers at once, so that the answers have the order of the batches
 */
export function serveCounters(channel: Channel, counters: Pick<CounterLane, 'apply'>): void {
  // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the channel
  channel
    .frames(TOPICS.counters)
    .pipe(mergeMap((body) => counters.apply(readBatch(body))))
    .subscribe((counts) => channel.send(TOPICS.counters, writeCounts(counts)));
}
