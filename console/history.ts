import type { History, HistoryMark } from '../src/operators/live-answers';
import { type Answer, call, useReading } from './api';

/** Seconds that are shown, and between two requests while nothing has been answered. */
const [SHOWN, RETRY] = [3_600, 10];
/** As many as the service keeps. */
const MOST_MARKS = 200;

/** Nothing is known. */
export const EMPTY: History = {
  ...{ interval: RETRY, times: [], marks: [], rules: [], instances: [] },
  rates: { within: [], near: [], over: [], shadow: [], calls: [], invalid: [], storeErrors: [], noMatch: [] },
  latency: { p50: [], p99: [] },
  store: { requests: [], errors: [], latency: [] },
};

/**
 * What was recorded of the last hour. What was read stays, also when the service is started again.
 *
 * @param instance the id of one; empty: all instances as one
 */
export function useRecorded(instance = ''): Answer<History> {
  async function read(last = EMPTY): Promise<History> {
    const query = new URLSearchParams();
    const newest = last.times.at(-1);
    if (newest !== undefined) query.set('since', String(newest));
    if (instance !== '') query.set('instance', instance);
    return joined(last, await call<History>(`history?${String(query)}`));
  }
  return useReading(`history ${instance}`, read, { every: (last = EMPTY) => last.interval * 1000 });
}

export type Series = History['latency']['p50'];

/** Values of a history at the times of another one. */
export function valuesAt(times: readonly number[], own: readonly number[], values: Series): Series {
  const known = new Map(own.map((time, index) => [time, values[index] ?? null]));
  return times.map((time) => known.get(time) ?? null);
}

/** Outages of several servers may begin at the same time. */
function keyOfMark(mark: HistoryMark): string {
  return `${mark.instance} ${mark.at} ${mark.kind} ${mark.kind === 'store' ? `${mark.store} ${mark.server}` : ''}`;
}

/** What was read before, and what is later; of the last hour. */
function joined(old: History, next: History): History {
  const all = [...old.times, ...next.times];
  const found = all.findIndex((time) => time > all.at(-1)! - SHOWN);
  const first = Math.max(0, found);
  function line(before: Series = old.times.map(() => null), after: Series = next.times.map(() => null)): Series {
    return [...before, ...after].slice(first);
  }
  function lines<Name extends string>(before: Record<Name, Series>, after: Record<Name, Series>): Record<Name, Series> {
    const names = Object.keys(after) as Name[];
    return Object.fromEntries(names.map((name) => [name, line(before[name], after[name])])) as Record<Name, Series>;
  }
  const [known, rules] = [old, next].map((each) => new Map(each.rules.map((rule) => [rule.statisticsKey, rule])));
  const marks = new Map([...old.marks, ...next.marks].map((mark) => [keyOfMark(mark), mark]));
  return {
    ...{ interval: next.interval, instances: next.instances, times: all.slice(first) },
    rates: lines(old.rates, next.rates),
    latency: lines(old.latency, next.latency),
    store: lines(old.store, next.store),
    rules: [...new Set([...rules!.keys(), ...known!.keys()])]
      .map((statisticsKey) => {
        const [before, after] = [known!.get(statisticsKey), rules!.get(statisticsKey)];
        return { statisticsKey, hits: line(before?.hits, after?.hits), over: line(before?.over, after?.over) };
      })
      .filter(({ hits }) => hits.some((value) => value !== null)),
    marks: [...marks.values()].sort((one, other) => one.at - other.at).slice(-MOST_MARKS),
  };
}
