import { type FindPeers, FleetView, type Peer } from '../../../src/operators/fleet/fleet';
import type { Change, Fleet, History, InstanceReport } from '../../../src/operators/live-answers';
import { mergeReports } from '../../../src/operators/fleet/merge-reports';
import type { WatchCounts } from '../../../src/operators/fleet/watches';
import { listedOffender } from '../../support/data/offenders';
import { turnsDuring } from '../../support/waiting/turns';
import { until } from '../../support/waiting/until';
import { reportOf } from '../../support/servers/large-peers';

type Changes = Partial<InstanceReport> & { readonly state?: InstanceReport['health']['state'] };

const RATES = reportOf('').rates;

/** What an instance of this name reports. */
function report(name: string, { state = 'green', ...changes }: Changes = {}): InstanceReport {
  const { health, ...rest } = reportOf(name);
  return {
    ...rest,
    health: { ...health, state },
    rules: { hits: [{ statisticsKey: 'shop.user', hits: 2, over: 1, shadow: 1, calls: 1 }], denials: [] },
    ...changes,
  };
}

/** Peers by their addresses: what each answers, or the error. A promise that does not end is one that hangs. */
type Answers = Record<string, InstanceReport | Error | Promise<never>>;
const EMPTY: History = {
  ...{ interval: 10, instances: [], times: [], rules: [], marks: [], latency: { p50: [], p99: [] } },
  ...{
    rates: Object.fromEntries(Object.keys(RATES!).map((name) => [name, []])) as never,
    store: { requests: [], errors: [], latency: [] },
  },
};
/** A peer that has recorded nothing. */
const FORGETFUL = {
  ...{ history: async () => EMPTY, changes: async () => [], leaves: async () => undefined },
  watch: async () => ({ times: [], calls: [], denied: [] }),
};
function peers(answers: Readonly<Answers>): readonly Peer[] {
  return Object.entries(answers).map(([address, answer]) => ({
    ...{ address, ...FORGETFUL },
    ask: async () => {
      if (answer instanceof Error) throw answer;
      return { report: await answer, note: null };
    },
  }));
}

const OWN = report('own');
function viewOf(answers: Readonly<Answers>, expected?: ReadonlySet<string>): FleetView {
  return fleetOf(async () => peers(answers), expected);
}

function fleetOf(find: FindPeers, expected: ReadonlySet<string> = new Set()): FleetView {
  const kept = { history: { take: () => undefined, lastOf: () => 0 }, changes: { take: () => undefined } };
  return new FleetView({ find, id: OWN.id, expected, kept });
}

/** In what instances differ: `version: 1 of a, 2 of b and c`; what may differ is in brackets. */
function shownDifferences({ differences }: Fleet): readonly string[] {
  return differences.map(({ aspect, name, isExpected, isHidden, values }) => {
    const all = values.map(({ value, instances }) => `${value} of ${instances.join(' and ')}`).join(', ');
    const text = `${[aspect, name].filter(Boolean).join(' ')}: ${all}${isHidden ? ' (hidden)' : ''}`;
    return isExpected ? `[${text}]` : text;
  });
}

let now = 0;
beforeEach(() => {
  now = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => now);
});
afterEach(() => jest.restoreAllMocks());

describe('the instances that are shown', () => {
  it('are this one and each peer that is another one, once, with what they report and the sums of all', async () => {
    function limited(count: number): Changes {
      const numbers = { limited: count, recent: count, calls: 10, since: 1_000 + count, until: 2_000 + count };
      const offenders = [listedOffender({ descriptor: 'user=ann', ...numbers })];
      return { offenders: { since: 0, floor: 0, offenders } };
    }
    const view = viewOf({
      'self:1': OWN,
      'a:1': report('a', { ...limited(3), latency: { p50: 0.5, p99: 9 } }),
      '[::1]:1': report('a', limited(3)),
      'b:1': report('b', { ...limited(4), rates: null, latency: null }),
    });
    const fleet = await view.read(report('own', limited(5)));
    expect(fleet.instances.map(({ address, name, problem }) => [address, name, problem])).toEqual([
      [null, 'own', null],
      ['a:1', 'a', null],
      ['b:1', 'b', null],
    ]);
    expect(fleet).toMatchObject({
      ...{ pending: 0, omitted: 0, differences: [], latency: { p50: 0.5, p99: 9 } },
      rates: { within: 2, over: 2, calls: 4 },
      rules: { hits: [{ statisticsKey: 'shop.user', hits: 6, over: 3, shadow: 3, calls: 3 }], denials: [] },
      offenders: [{ descriptor: 'user=ann', limited: 12, recent: 12, share: 0.4, state: 'passes' }],
    });
    expect(fleet.offenders?.[0]?.since).toBe('1970-01-01T00:16:43.000Z');
    const part = { state: 'green', text: '3 instances, which are alike', todo: null, known: 3, seen: 3 };
    expect(view.part(OWN)).toEqual(part);
  });

  it('stand out when they differ from most in rules, version or settings; the folder of the rules does not matter', async () => {
    function rules(version: string): Changes {
      return { loaded: { source: 'files', version, at: '', rules: 1 } };
    }
    const settings = { LOG_LEVEL: 'info', SHADOW_MODE: 'true' };
    const view = viewOf({
      'a:1': report('a', { ...rules('/b/config@0123456789ab'), version: '1.0.1' }),
      'b:1': report('own', { id: 'another', ...rules('/a/config@ffffffffffff'), settings }),
    });
    const fleet = await view.read(OWN);
    expect(fleet.instances.map(({ differs }) => differs)).toEqual([[], ['version'], ['rules', 'settings']]);
    expect(shownDifferences(fleet)).toEqual([
      'rules: 0123456789ab of own and a (a:1), ffffffffffff of own (b:1)',
      'version: 1.0.0 of own and own (b:1), 1.0.1 of a (a:1)',
      'settings SHADOW_MODE: null of own and a (a:1), true of own (b:1)',
    ]);
    expect(view.part(OWN)).toMatchObject({
      state: 'amber',
      text: 'instances differ: rules of own (b:1), version of a (a:1), SHADOW_MODE of own (b:1)',
    });
  });

  it('are not odd by what may differ, which is listed after the rest', async () => {
    const settings = { DEBUG_PORT: '1', LOG_LEVEL: 'info' };
    const expected = new Set(['DEBUG_PORT', 'POOL']);
    const peer = { ...settings, DEBUG_PORT: '2', POOL: '3' };
    const own = report('own', { settings });
    const alike = viewOf({ 'a:1': report('own', { id: 'a', settings: peer }) }, expected);
    const fleet = await alike.read(own);
    expect(fleet.instances.map(({ differs }) => differs)).toEqual([[], []]);
    expect(shownDifferences(fleet)).toEqual([
      '[settings DEBUG_PORT: 1 of own, 2 of own (a:1)]',
      '[settings POOL: null of own, 3 of own (a:1)]',
    ]);
    expect(alike.part(own)).toMatchObject({ state: 'green' });
    const odd = viewOf({ 'a:1': report('own', { id: 'a', settings: { ...peer, SHADOW_MODE: 'true' } }) }, expected);
    expect((await odd.read(own)).differences.map(({ name }) => name)).toEqual(['SHADOW_MODE', 'DEBUG_PORT', 'POOL']);
    expect(odd.part(own)).toMatchObject({ state: 'amber', text: 'instances differ: SHADOW_MODE of own (a:1)' });
  });

  it('list 200 settings that differ, those of the most instances first, and say how many more do', async () => {
    function settings(peer: string): Record<string, string> {
      const others = Array.from({ length: 250 }, (_, index) => [`OF_${peer}_${index}`, '1']);
      return Object.fromEntries([['LOG_LEVEL', 'info'], ...others, ['SHADOW_MODE', peer]]) as Record<string, string>;
    }
    const view = viewOf({
      'a:1': report('a', { settings: settings('A') }),
      'b:1': report('b', { settings: settings('B') }),
    });
    const fleet = await view.read(OWN);
    expect([fleet.differences.length, fleet.omittedDifferences]).toEqual([200, 301]);
    expect(shownDifferences(fleet).slice(0, 2)).toEqual([
      'settings SHADOW_MODE: null of own, A of a (a:1), B of b (b:1)',
      'settings OF_A_0: null of own and b (b:1), 1 of a (a:1)',
    ]);
    expect(fleet.instances.map(({ differs }) => differs)).toEqual([[], ['settings'], ['settings']]);
  });

  it('include one that does not answer, with the reason and its last report, which is in no sum', async () => {
    const answers: Answers = { 'a:1': report('a', { version: '2.0.0' }), 'b:1': new Error('its answer is wrong') };
    const view = viewOf(answers);
    await view.read(OWN);
    answers['a:1'] = new Error('connection refused');
    now += 10_000;
    const { instances, rates, differences } = await view.read(OWN);
    expect(instances.slice(1)).toMatchObject([
      { address: 'a:1', name: 'a', version: '2.0.0', problem: 'connection refused', answeredAt: expect.any(String) },
      { address: 'b:1', name: null, answeredAt: null, differs: [], problem: 'its answer is wrong' },
    ]);
    expect([rates, differences]).toEqual([RATES, []]);
    expect(view.part(OWN)).toMatchObject({
      ...{ state: 'amber', known: 3, seen: 1 },
      text: '2 instances of 3 without an answer: a (a:1): connection refused',
      todo: { link: 'docs/runbook.md#weirdown' },
    });
    answers['a:1'] = report('a', { state: 'red' });
    answers['b:1'] = report('b');
    now += 10_000;
    await view.read(OWN);
    await until('those that failed are asked again', () => view.part(OWN).seen === 3);
    expect(view.part(OWN)).toMatchObject({ state: 'amber', text: 'a (a:1) is red' });
  });
});

it('one that hangs delays neither the others nor the answer, which says who was not asked yet', async () => {
  const hanging = new Promise<never>(() => undefined);
  const waiting = Object.fromEntries([0, 1, 2, 3].map((index) => [`hang-${index}:1`, hanging]));
  const view = viewOf({ 'a:1': report('a'), ...waiting, 'b:1': report('b') });
  const before = view.part(OWN);
  expect(before).toMatchObject({ state: 'unknown', text: 'looking for other instances', known: 1 });
  const fleet = await view.read(OWN);
  expect(fleet.pending).toBe(5);
  expect(fleet.instances.map(({ name }) => name)).toEqual(['own', 'a', null, null, null, null, null]);
  expect(view.part(OWN)).toMatchObject({ state: 'unknown', text: 'asking 6 other instances', known: 7, seen: 2 });
});

it('those that did not answer are asked one at a time, apart from the others and once in a round', async () => {
  const asked: string[] = [];
  let endFirst: () => void = () => undefined;
  const first = new Promise<void>((resolve) => (endFirst = resolve));
  let isFirstRound = true;
  async function find(): Promise<readonly Peer[]> {
    return ['x:1', 'y:1', 'a:1'].map((address) => ({
      ...{ address, ...FORGETFUL },
      ask: async () => {
        asked.push(address);
        if (address === 'a:1') return { report: report('a'), note: null };
        if (!isFirstRound) await first;
        throw new Error('away');
      },
    }));
  }
  const view = fleetOf(find);
  await view.read(OWN);
  isFirstRound = false;
  asked.splice(0);
  now += 10_000;
  const { instances } = await view.read(OWN);
  expect(instances.map(({ problem }) => problem)).toEqual([null, 'away', 'away', null]);
  expect(asked).toEqual(['x:1', 'a:1']);
  endFirst();
  await until('the other is asked', () => asked.length === 3);
  expect(asked).toEqual(['x:1', 'a:1', 'y:1']);
});

it('an instance that finds no other one says so', async () => {
  const view = viewOf({ 'self:1': OWN });
  await view.read(OWN);
  expect(view.part(OWN)).toMatchObject({ state: 'green', text: 'this is the only instance', known: 1, seen: 1 });
});

it('100 peers are asked at most, three at a time, and not again before a pause', async () => {
  let [open, most] = [0, 0];
  const asked: string[] = [];
  async function find() {
    return Array.from({ length: 120 }, (_, index) => ({
      ...{ address: `peer-${index}:1`, ...FORGETFUL },
      ask: async () => {
        asked.push(`peer-${index}:1`);
        most = Math.max(most, (open += 1));
        // The first ones wait for each other.
        do await new Promise(setImmediate);
        while (most < 3);
        open -= 1;
        return { report: report(`peer-${index}`), note: null };
      },
    }));
  }
  const view = fleetOf(find);
  expect(await view.read(OWN)).toMatchObject({ omitted: 20, pending: 0 });
  expect([asked.length, most]).toEqual([100, 3]);
  await view.read(OWN);
  expect(asked).toHaveLength(100);
  now += 3_001;
  await view.read(OWN);
  expect(asked).toHaveLength(200);
});

it('the event loop turns after each instance whose callers are merged', async () => {
  const callers = Array.from({ length: 50 }, (_, index) => listedOffender({ descriptor: `${index}` }));
  const reports = Array(100).fill(report('', { offenders: { since: 0, floor: 0, offenders: callers } }));
  expect(await turnsDuring(mergeReports(reports))).toBeGreaterThanOrEqual(100);
});

describe('a caller is watched by all instances', () => {
  const CALLER = { domain: 'shop', entries: [{ key: 'user', value: 'ann' }] };
  /** Counts of seconds relative to the present one. */
  function counts(first: number, calls: readonly number[], second = Math.floor(Date.now() / 1000)): WatchCounts {
    return { times: calls.map((_, index) => second + first + index), calls, denied: calls.map((each) => each / 2) };
  }
  /** Peers by name; what each counts, or an error. */
  function watching(answers: Readonly<Record<string, () => WatchCounts>>) {
    const asked: string[] = [];
    const find: FindPeers = async () =>
      Object.entries(answers).map(([name, answer]) => ({
        ...{ address: `${name}:1`, ...FORGETFUL },
        ask: async () => ({ report: report(name, { id: name }), note: null }),
        watch: async (caller) => {
          asked.push(`${name} ${JSON.stringify(caller)}`);
          return answer();
        },
      }));
    return { view: fleetOf(find), asked };
  }
  beforeEach(() => jest.spyOn(Date, 'now').mockReturnValue(1_000_000_500_000));

  it('and their calls are added by the second, up to the last one that all have which are not late', async () => {
    const { view, asked } = watching({
      a: () => counts(-3, [10, 20]),
      late: () => counts(-40, [1, 1]),
      wrong: () => {
        throw new Error('it is away');
      },
    });
    expect(await view.watch(CALLER, counts(-4, [2, 4, 6, 8]), OWN)).toEqual({
      ...counts(-4, [2, 14, 26]),
      missing: ['late (late:1)', 'wrong (wrong:1)'],
    });
    expect(asked).toEqual(['a', 'late', 'wrong'].map((name) => `${name} ${JSON.stringify(CALLER)}`));
    now += 5_000;
    // The same seconds are not added again.
    expect((await view.watch(CALLER, counts(-4, [2, 4, 6, 8]), OWN)).calls).toEqual([2, 14, 26]);
    expect(asked).toHaveLength(6);
  });

  it('while a viewer looks: the others are not asked for it any more some seconds later', async () => {
    const { view, asked } = watching({ a: () => counts(-3, [1]) });
    await view.watch(CALLER, counts(-3, [1]), OWN);
    now += 11_000;
    await view.read(OWN);
    await view.watch({ ...CALLER, domain: 'other' }, counts(-3, [1]), OWN);
    now += 5_000;
    await view.read(OWN);
    await until('the next round is over', () => asked.length >= 3);
    expect(asked.filter((text) => text.includes('"shop"'))).toHaveLength(2);
  });

  it('whatever a peer answers: seconds that cannot be are left out, and lists may be of other lengths', async () => {
    const { view } = watching({
      future: () => counts(-1, Array<number>(60).fill(7)),
      short: () => ({ times: [-1, 0, 0.5, 1e300, 1_000_000_498], calls: [1], denied: [] }),
    });
    const { times, calls, denied } = await view.watch(CALLER, counts(-3, [1, 1, 1]), OWN);
    expect([times.length, calls, denied]).toEqual([2, [1, 1], [0.5, 0.5]]);
  });
});

describe('what peers have recorded', () => {
  /** Peers with a history, by their names: the ids and last times of what each has. */
  function recording(names: Readonly<Record<string, Readonly<Record<string, number>>>>) {
    const taken: string[] = [];
    const lasts = new Map<string, number>();
    const reports = new Map(Object.keys(names).map((name) => [name, report(name, { id: name, changes: 1 })]));
    const kept = {
      history: {
        take: ({ id, name }: { readonly id: string; readonly name: string }, { times }: History) => {
          taken.push(`${name}: ${times.length}`);
          lasts.set(id, times.at(-1) ?? lasts.get(id) ?? 0);
        },
        lastOf: (id: string) => lasts.get(id) ?? 0,
      },
      changes: { take: (changes: readonly Change[]) => taken.push(...changes.map(({ instance }) => instance)) },
    };
    const find: FindPeers = async () =>
      Object.entries(names).map(([name, has]) => ({
        ...{ address: `${name}:1`, ...FORGETFUL },
        ask: async () => ({ report: reports.get(name)!, note: null }),
        history: async (id: string, since: number) => ({
          ...EMPTY,
          instances: Object.entries(has).map(([each, last]) => ({ id: each, name: `${each} of ${name}`, until: last })),
          times: Array.from({ length: Math.min(120, (has[id]! - since) / 10) }, (_, at) => since + 10 * (at + 1)),
        }),
        changes: async () =>
          ['1', '2'].map((at) => ({ id: `${at === '1' ? name : 'x'}/${at}`, instance: at }) as Change),
      }));
    return { view: new FleetView({ find, id: OWN.id, expected: new Set(), kept }), taken, reports };
  }

  it('is taken in parts of 120 samples, once in ten seconds, and also what they have of those that do not answer', async () => {
    const { view, taken } = recording({ a: { a: 2_500, gone: 50 }, b: { b: 10, a: 2_500, gone: 70 } });
    await view.read(OWN);
    await until('all is taken', () => taken.filter((text) => text === '2').length === 2);
    function takenOf(begin: RegExp): readonly string[] {
      return taken.filter((text) => begin.test(text));
    }
    expect(takenOf(/^a \(a:1\): /).map((text) => text.split(': ')[1])).toEqual(['120', '120', '10']);
    expect(takenOf(/^gone of a/).length).toBeLessThan(2);
    expect(takenOf(/^gone of b/)).toHaveLength(1);
    expect(takenOf(/^b \(b:1\): /)).toEqual(['b (b:1): 1']);
    expect(takenOf(/^\w \(\w:1\)$|^[12]$/).toSorted()).toEqual(['2', '2', 'a (a:1)', 'b (b:1)']);
    taken.splice(0);
    now += 5_000;
    await view.read(OWN);
    expect(taken).toEqual([]);
    now += 6_000;
    await view.read(OWN);
    await until('their samples are taken again', () => taken.length === 2);
    expect(taken).toEqual(['a (a:1): 0', 'b (b:1): 0']);
  });

  it('is taken from one that ends, also if it was not known before, and from no other', async () => {
    const { view, taken } = recording({ a: { a: 10 }, b: { b: 10 } });
    await view.taking('b', OWN);
    expect(taken).toContain('b (b:1): 1');
    taken.splice(0);
    now += 2_000;
    await view.taking('a', OWN);
    await view.taking('unknown', OWN);
    await view.taking(OWN.id, OWN);
    expect(taken).toEqual(['a (a:1): 0']);
  });
});
