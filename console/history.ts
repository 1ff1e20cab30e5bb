import { useEffect } from 'preact/hooks';
import type { History, HistoryMark } from '../src/operators/live-answers';
import { type Answer, type ApiError, call } from './api';
import { Store, useStore } from './store';

/**
 * What the service has recorded of the last hour. What a page has read stays, also when the service is started again.
 */
const recorded = new Store<Answer<History>>({});

/** Seconds that are shown, and between two requests while nothing has been answered. */
const [SHOWN, RETRY] = [3_600, 10];
/** As many as the service keeps. */
const MOST_MARKS = 200;

/** Outages of several servers may begin at the same time. */
export function keyOfMark(mark: HistoryMark): string {
  return `${mark.at} ${mark.kind} ${mark.kind === 'store' ? `${mark.store} ${mark.server}` : ''}`;
}

let users = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

/** The history of the service, which is read while a component shows it. */
export function useHistory(): Answer<History> {
  useEffect(() => {
    users += 1;
    if (users === 1) void read();
    return () => {
      users -= 1;
      if (users === 0) clearTimeout(timer);
    };
  }, []);
  return useStore(recorded);
}

async function read(): Promise<void> {
  clearTimeout(timer);
  const { value } = recorded.value;
  if (!document.hidden) {
    try {
      const newest = value?.times.at(-1);
      const next = await call<History>(`history${newest === undefined ? '' : `?since=${newest}`}`);
      recorded.set({ value: value === undefined ? next : joined(value, next) });
    } catch (error) {
      recorded.set({ ...recorded.value, error: error as ApiError });
    }
  }
  if (users > 0) timer = setTimeout(() => void read(), (recorded.value.value?.interval ?? RETRY) * 1000);
}

type Series = History['latency']['p50'];

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
