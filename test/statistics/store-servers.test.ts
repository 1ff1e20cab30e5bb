import { asyncScheduler } from 'rxjs';
import { Statistics } from '../../src/statistics/statistics';
import { serverStates } from '../support/data/server-states';

const LINES = { begins: 'begins', ends: 'ends' };
const CONDITION = 'ratelimit.store.condition';

/** The servers of a store, whose statistics are read by name. */
function opened(names: readonly string[]) {
  const statistics = new Statistics(100);
  const servers = serverStates({ statistics, scheduler: asyncScheduler });
  const states = names.map((server) => servers.open({ name: { server, store: 'main' }, lines: LINES }));
  return { statistics, states };
}

/** The conditions of a server whose gauge is not 0. */
function conditionsOf({ gauges }: Statistics, server: string): readonly string[] {
  const shown = [...gauges].filter(({ name, tags }) => name === CONDITION && tags['server'] === server);
  expect(shown).toHaveLength(6);
  return shown.filter(({ read }) => read() !== 0).map(({ tags, read }) => `${tags['condition']} ${read()}`);
}

describe('the gauges of a server of the store', () => {
  it('show the one condition that it is in, and none when it is no longer used', () => {
    const {
      statistics,
      states: [state],
    } = opened(['a', 'b']);
    expect(conditionsOf(statistics, 'a')).toEqual(['unknown 1']);
    state!.connected(1);
    expect(conditionsOf(statistics, 'a')).toEqual(['answering 1']);
    state!.connected(0);
    expect(conditionsOf(statistics, 'a')).toEqual(['away 1']);
    expect(conditionsOf(statistics, 'b')).toEqual(['unknown 1']);
    state!.end();
    expect(conditionsOf(statistics, 'a')).toEqual([]);
  });

  it('exist, as its counters, for 256 servers', () => {
    const { statistics, states } = opened(Array.from({ length: 300 }, (_, number) => `node-${number}`));
    for (const state of states) {
      state.ended('bad', { size: 1, milliseconds: 1 });
      state.end();
    }
    const names = Array.from(statistics.gauges, ({ name }) => name);
    expect(names.filter((name) => name === 'ratelimit.store.breaker_open')).toHaveLength(256);
    expect(names.filter((name) => name === CONDITION)).toHaveLength(6 * 256);
    const failed = statistics.counters.filter(({ name }) => name === 'ratelimit.store.failed_requests');
    expect([failed.length, failed.at(-1)!.tags['server'], failed.at(-1)!.value]).toEqual([256, 'node-255', 1]);
  });
});
