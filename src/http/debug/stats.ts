import { plainNumber } from '../../text/plain-number';
import type { DebugEndpoint } from './endpoint';

/** The name and the current value of a statistic. */
export type Statistic = readonly [name: string, value: number];

/** Every statistic, in any order. */
export type ReadStatistics = () => Iterable<Statistic> | Promise<Iterable<Statistic>>;

/** `/stats`: one line `name: value` per statistic, sorted by name. */
export function stats(statistics: ReadStatistics): DebugEndpoint {
  return {
    path: '/stats',
    description: 'the current value of every statistic, one per line',
    get: async (ctx) => {
      const all = await statistics();
      ctx.type = 'text/plain';
      ctx.body = [...all]
        .sort(([one], [other]) => (one < other ? -1 : Number(one > other)))
        .map(([name, value]) => `${name}: ${plainNumber(value)}\n`)
        .join('');
    },
  };
}
