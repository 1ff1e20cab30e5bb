import type { History, HistoryMark } from '../src/operators/live-answers';
import { Poll, call } from './api';

/** Seconds that are shown, and between two requests while nothing has been answered. */
const [SHOWN, RETRY] = [3_600, 10];
/** As many as the service keeps. */
const MOST_MARKS = 200;

/** Outages of several servers may begin at the same time. */
export function keyOfMark(mark: HistoryMark): string {
  return `${mark.instance} ${mark.at} ${mark.kind} ${mark.kind === 'store' ? `${mark.store} ${mark.server}` : ''}`;
}

/** What was recorded of the last hour. What was read stays, also when the service is started again. */
function pollOf(instance: string): Poll<History> {
  return new Poll<History>(
    async (last) => {
      const query = new URLSearchParams();
      const newest = last?.times.at(-1);
      if (newest !== undefined) query.set('since', String(newest));
      if (instance !== '') query.set('instance', instance);
      const next = await call<History>(`history?${String(query)}`);
      return last === undefined ? next : joined(last, next);
    },
    (last) => (last?.interval ?? RETRY) * 1000,
  );
}

const polls = new Map<string, Poll<History>>();

/** @param instance the id of one; empty: all instances as one */
export function recordedOf(instance = ''): Poll<History> {
  const poll = polls.get(instance) ?? pollOf(instance);
  polls.set(instance, poll);
  return poll;
}

export type Series = History['latency']['p50'];

/** Values of a history at the times of another one. */
export function valuesAt(times: readonly number[], own: readonly number[], values: Series): Series {
  const known = new Map(own.map((time, index) => [time, values[index] ?? null]));
  return times.map((time) => known.get(time) ?? null);
}

/** What was read before, and what is later; of the last hour. */
export function joined(old: History, next: History): History {
  const all = [...old.times, ...next.times];
  const first = Math.max(
    0,
    all.findIndex((time) => time > all.at(-1)! - SHOWN),
  );
  function line(before: Series | undefined, after: Series | undefined): Series {
    const [missing, unknown] = [old, next].map(({ times }) => times.map(() => null));
    return [...(before ?? missing!), ...(after ?? unknown!)].slice(first);
  }
  function lines<Name extends string>(before: Record<Name, Series>, after: Record<Name, Series>): Record<Name, Series> {
    const names = Object.keys(after) as Name[];
    return Object.fromEntries(names.map((name) => [name, line(before[name], after[name])])) as Record<Name, Series>;
  }
  const rules = new Map(next.rules.map((rule) => [rule.statisticsKey, rule]));
  const known = new Map(old.rules.map((rule) => [rule.statisticsKey, rule]));
  const marks = new Map([...old.marks, ...next.marks].map((mark) => [keyOfMark(mark), mark]));
  return {
    interval: next.interval,
    instances: next.instances,
    times: all.slice(first),
    rates: lines(old.rates, next.rates),
    latency: lines(old.latency, next.latency),
    store: lines(old.store, next.store),
    rules: [...new Set([...rules.keys(), ...known.keys()])]
      .map((statisticsKey) => {
        const [before, after] = [known.get(statisticsKey), rules.get(statisticsKey)];
        return { statisticsKey, hits: line(before?.hits, after?.hits), over: line(before?.over, after?.over) };
      })
      .filter(({ hits }) => hits.some((value) => value !== null)),
    marks: [...marks.values()].sort((one, other) => one.at - other.at).slice(-MOST_MARKS),
  };
}
