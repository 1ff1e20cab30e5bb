import { dogstatsdLines } from '../../../../src/sinks/statistics/lines/dogstatsd-lines';
import type { LineSender } from '../../../../src/sinks/statistics/senders/line-sender';
import { SendingOutput } from '../../../../src/sinks/statistics/senders/sending-output';
import { Statistics } from '../../../../src/statistics/statistics';
import { recordingLog } from '../../../http/http-client';

/** A DogStatsD output with its statistics and its log. */
export function taggedOutput(sender: LineSender) {
  const statistics = new Statistics(10_000);
  const log = recordingLog();
  const output = new SendingOutput({ statistics, format: dogstatsdLines({}, []), sender, log });
  return {
    statistics,
    log,
    output,
    /** Counts one hit on the rule `d.k` and flushes. */
    async hitAndFlush(this: void): Promise<void> {
      statistics.rule('d.k').totalHits += 1;
      await output.flush();
    },
    [Symbol.dispose]: () => output.close(),
  };
}
