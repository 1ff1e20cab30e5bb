import { NEVER } from 'rxjs';
import { Statistics } from '../../../src/statistics/statistics';
import type { Channel } from '../../../src/workers/channel/channel';
import { DurationSender } from '../../../src/workers/statistics/duration-sender';
import { readValues } from '../../../src/workers/statistics/statistics-frames';

const TIMER = 3;
const DROPPED = 'ratelimit.workers.dropped_durations';

describe('DurationSender', () => {
  let sent: Buffer[];
  let channel: Channel & { isCongested: boolean };
  let statistics: Statistics;
  let sender: DurationSender;

  beforeEach(() => {
    sent = [];
    channel = {
      send: (_topic, body) => sent.push(Buffer.from(body)),
      frames: () => NEVER,
      closed$: NEVER,
      drained$: NEVER,
      isCongested: false,
    };
    statistics = new Statistics(0);
    sender = new DurationSender(channel, TIMER, statistics.counter(DROPPED));
  });

  /** Each batch has one duration, its number. */
  function add(first: number, last: number): void {
    for (let number = first; number <= last; number += 1) sender.add(Float64Array.of(number, NaN), 1);
  }

  function received(): readonly number[] {
    return sent.flatMap((body) => [...readValues(body)]);
  }

  it('sends eight batches at once, and the others with the report', () => {
    add(1, 7);
    expect(received()).toEqual([]);

    add(8, 9);
    expect(received()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);

    sender.sendHeld();
    expect(received()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  it('keeps 64 batches while the channel is congested, drops and counts the next, and sends the kept ones afterwards', () => {
    channel.isCongested = true;
    add(1, 66);
    expect([received(), statistics.counter(DROPPED).value]).toEqual([[], 2]);

    channel.isCongested = false;
    add(67, 67);
    expect(received()).toEqual(Array.from({ length: 64 }, (_, index) => index + 1));

    sender.sendHeld();
    expect(received().at(-1)).toBe(67);
  });
});
