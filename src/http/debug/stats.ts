import type { DebugEndpoint } from './endpoint';

/** A statistic at this moment: its name and its value. */
export type Statistic = readonly [name: string, value: number];

/** `/stats`: `name: value` a line, sorted by name. */
export function stats(statistics: () => Iterable<Statistic>): DebugEndpoint {
  return {
    path: '/stats',
    about: 'all statistics at this moment, one a line',
    get: (ctx) => {
      ctx.type = 'text/plain';
      ctx.body = [...statistics()]
        .sort(([one], [other]) => (one < other ? -1 : Number(one > other)))
        .map(([name, value]) => `${name}: ${value}\n`)
        .join('');
    },
  };
}
