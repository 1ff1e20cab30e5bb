import { plainNumber } from '../../text/plain-number';
import type { DebugEndpoint } from './endpoint';
import { SharedPage } from './shared-page';
import { sortedInTurns } from './sorted-in-turns';

/** The name and the current value of a statistic. */
export type Statistic = readonly [name: string, value: number];

/** Every statistic, in any order; each part in a turn of the event loop of its own. */
export type ReadStatistics = () => AsyncIterable<readonly Statistic[]>;

/** `/stats`: one line `name: value` per statistic, sorted by name. */
export function stats(statistics: ReadStatistics): DebugEndpoint {
  const page = new SharedPage(() => pageOf(statistics()));
  return {
    path: '/stats',
    description: 'the current value of every statistic, one per line',
    get: async (ctx) => {
      ctx.type = 'text/plain';
      ctx.body = await page.text();
    },
  };
}

async function* pageOf(statistics: AsyncIterable<readonly Statistic[]>): AsyncIterableIterator<string> {
  for await (const part of sortedInTurns(statistics, ([name]) => name)) {
    yield part.map(([name, value]) => `${name}: ${plainNumber(value)}\n`).join('');
  }
}
