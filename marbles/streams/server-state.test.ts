import type { TestScheduler } from 'rxjs/testing';
import { Trip } from '../../src/streams/deadline';
import type { Fault, ServerReport } from '../../src/streams/server-report';
import { type Ended, ServerState, type ServerStateOptions } from '../../src/streams/server-state';
import { Statistics } from '../../src/statistics/statistics';
import { ServerStates } from '../../src/streams/server-views';
import { RecordedLog } from '../../test/support/data/recorded-log';
import { marbles } from '../support/marbles';

type Act = (server: ServerState) => unknown;

/** A request that is answered after so many milliseconds, or never. @param isOld a fault has begun meanwhile */
function request(time = Infinity, isOld = false): Act {
  return (server) => {
    const trip = new Trip();
    server.sent();
    server.trips.begin(trip);
    return { after: time, act: () => server.ended('ok', { size: 1, milliseconds: server.trips.ended(trip), isOld }) };
  };
}

/** A request that fails at once. */
function failure(server: ServerState): void {
  server.sent();
  server.ended('bad', { size: 1, milliseconds: 0, reason: 'LOADING', trouble: 'failing' });
}

interface Course {
  /** Milliseconds to the answer to a probe; undefined: it has none. */
  readonly probe?: (time: number) => number | undefined;
  readonly options?: Partial<ServerStateOptions>;
}

/**
 * What is reported of a server at which milliseconds: its condition, `held` if calls are refused, since when, and since
 * when there is trouble if there is; probes, and faults that are over, with their length and the calls they affected.
 */
function course(acts: Readonly<Record<number, Act>>, until: number, { probe, options }: Course = {}): string[] {
  return marbles(({ flush }, scheduler) => {
    const events: string[] = [];
    function happens(event: string): void {
      events.push(`${scheduler.now()} ${event}`);
    }
    function ask(): void {
      happens('probe');
      const time = probe?.(scheduler.now());
      if (time !== undefined) scheduler.schedule(() => server.checked(), time);
    }
    const observer = {
      faultEnded: ({ milliseconds, calls, isUp }: Fault) => happens(`over ${milliseconds} ${calls} ${isUp}`),
    };
    const server = new ServerState({
      ...{ name: { server: 'a' }, scheduler, failures: 3, observer, probe: ask },
      ...options,
    });
    server.reports$.subscribe({
      next: (report) => happens(shown(report)),
      complete: () => happens('end'),
    });
    for (const [time, act] of Object.entries(acts))
      scheduler.schedule(() => play(act, server, scheduler), Number(time));
    scheduler.schedule(() => server.end(), until);
    flush();
    return events;
  });
}

function play(act: Act, server: ServerState, scheduler: TestScheduler): void {
  const later = act(server) as { readonly after: number; readonly act: () => void } | undefined;
  if (later !== undefined && later.after < Infinity) scheduler.schedule(later.act, later.after);
}

function shown({ condition, isHeldBack, since, troubleSince }: ServerReport): string {
  const trouble = troubleSince === undefined ? '' : `, trouble since ${troubleSince}`;
  return `${condition}${isHeldBack ? ' held' : ''} since ${since}${trouble}`;
}

describe('the state of a server', () => {
  let random: jest.SpyInstance;
  // Waits are the longest that can be drawn.
  beforeAll(() => (random = jest.spyOn(Math, 'random').mockReturnValue(1)));
  afterAll(() => random.mockRestore());

  it('is silent a second after an unanswered request, asks ever more rarely, and answers with the first answer', () => {
    const hang = { 10: request(5), 20: request(), 30: request() };
    // Probes before 2,500 ms are not answered, those after that in 10 ms.
    const events = course(hang, 9_000, { probe: (time) => (time < 2_500 ? undefined : 10) });
    expect(events).toEqual([
      '0 unknown since 0',
      '15 answering since 15',
      '1020 silent held since 1020, trouble since 1020',
      '1120 probe',
      '2120 silent held since 1020, trouble since 1020',
      '2320 probe',
      '3320 silent held since 1020, trouble since 1020',
      '3720 probe',
      '3730 answering since 3730',
      '8730 answering since 3730',
      '8730 over 2710 0 true',
      '9000 end',
    ]);
  });

  it('asks at once when something late is answered, and lets calls through when that is', () => {
    const events = course({ 10: request(1_200) }, 7_000, { probe: (time) => (time === 1_210 ? 5 : undefined) });
    expect(events.slice(1)).toEqual([
      '1010 silent held since 1010, trouble since 1010',
      '1110 probe',
      '1210 probe',
      '1215 answering since 1215',
      '6215 answering since 1215',
      '6215 over 205 0 true',
      '7000 end',
    ]);
  });

  it('is not silent while other requests are answered, whatever becomes of one', () => {
    const partly = Object.fromEntries(Array.from({ length: 8 }, (_, index) => [index * 500, request(2)]));
    expect(course({ ...partly, 1: request() }, 3_900)).toEqual([
      '0 unknown since 0',
      '2 answering since 2',
      '3900 end',
    ]);
  });

  it('is away without a connection, in the same fault as the silence before, and answers with the next connection', () => {
    const lost = {
      0: (server: ServerState) => server.connected(2),
      10: request(),
      3_000: (server: ServerState) => server.connected(0, 'ECONNREFUSED'),
      3_100: (server: ServerState) => server.connected(0, 'ECONNREFUSED'),
      4_000: (server: ServerState) => server.connected(1),
    };
    expect(course(lost, 9_500, { probe: () => undefined })).toEqual([
      '0 unknown since 0',
      '0 answering since 0',
      '1010 silent held since 1010, trouble since 1010',
      '1110 probe',
      '2110 silent held since 1010, trouble since 1010',
      '2310 probe',
      '3000 away held since 3000, trouble since 1010',
      '4000 answering since 4000',
      '9000 answering since 4000',
      '9000 over 2990 0 true',
      '9500 end',
    ]);
  });

  it('holds nothing back for a connection that is lost, and tells nothing of it if no call has needed it', () => {
    const blip = {
      0: (server: ServerState) => server.connected(1),
      10: (server: ServerState) => server.connected(0, 'ECONNRESET'),
      50: (server: ServerState) => server.connected(1),
    };
    expect(course(blip, 6_000)).toEqual([
      '0 unknown since 0',
      '0 answering since 0',
      '10 away since 10, trouble since 10',
      '50 answering since 50',
      '5050 answering since 50',
      '6000 end',
    ]);
  });

  it('is unknown again without requests for ten seconds, if its connections are not watched, and sends nothing', () => {
    expect(course({ 10: request(5) }, 20_000)).toEqual([
      '0 unknown since 0',
      '15 answering since 15',
      '11010 unknown since 11010',
      '20000 end',
    ]);
    const watched = { 0: (server: ServerState) => server.connected(1), 10: request(5) };
    expect(course(watched, 20_000)).toEqual(['0 unknown since 0', '0 answering since 0', '20000 end']);
    const silent = course({ ...watched, 12_000: request() }, 14_000);
    expect(silent.filter((event) => event.includes('unknown'))).toEqual(['0 unknown since 0']);
  });

  it('is unknown in the end if it was away for ten seconds', () => {
    const gone = {
      0: (server: ServerState) => server.connected(1),
      10: (server: ServerState) => server.connected(0, 'ECONNRESET'),
    };
    expect(course(gone, 20_000).slice(-2)).toEqual(['20000 unknown since 20000', '20000 end']);
  });

  it('is checked so often without requests where that is wanted, and then fails when a check does', () => {
    const options = { checkEvery: 1_000, failures: 1 };
    const fail = { 2_011: (server: ServerState) => server.checked('it does not answer') };
    const events = course(fail, 2_050, { options, probe: (time) => (time < 2_000 ? 1 : undefined) });
    expect(events).toEqual([
      '0 unknown since 0',
      '1000 probe',
      '1001 answering since 1001',
      '2001 probe',
      '2011 silent held since 2011, trouble since 2011',
      '2050 answering since 2050',
      '2050 over 39 0 false',
      '2050 end',
    ]);
  });

  it('is failing after failed requests in a row, and after an answered probe until a request shows that it counts', () => {
    const failing = { 10: failure, 20: failure, 30: failure, 140: failure, 350: request(1) };
    expect(course(failing, 6_000, { probe: () => 5 })).toEqual([
      '0 unknown since 0',
      '30 failing held since 30, trouble since 30',
      '130 probe',
      '135 failing since 30, trouble since 30',
      '140 failing held since 30, trouble since 30',
      '340 probe',
      '345 failing since 30, trouble since 30',
      '351 answering since 351',
      '5351 answering since 351',
      '5351 over 321 4 true',
      '6000 end',
    ]);
  });

  it('is not slow because of late replies to what was sent before a fault', () => {
    const events = course({ 0: request(5_000, true), 5_500: request(1) }, 9_000, {
      probe: (now) => (now > 4_900 ? 1 : undefined),
    });
    expect(events.filter((event) => event.includes('silent'))).not.toEqual([]);
    expect(events.filter((event) => event.includes('slow'))).toEqual([]);
  });

  it('is slow while requests take long on average', () => {
    const slow = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [index * 100, request(40)]));
    const events = course(slow, 15_000, { options: { checkEvery: 1_000 }, probe: () => 1 });
    expect(events.filter((event) => !event.includes('probe'))).toEqual([
      '0 unknown since 0',
      '40 slow since 40',
      '12948 answering since 12948',
      '15000 end',
    ]);
  });

  it('adds what could not be sent before it lets calls through, and opens again if that fails', () => {
    let adds = 0;
    function begin(server: ServerState): void {
      server.beforeResuming = (added) => {
        adds += 1;
        added(adds > 1);
      };
      server.connected(1);
    }
    const events = course({ 0: begin, 10: request() }, 2_500, { probe: () => 5 });
    expect([adds, events.slice(2)]).toEqual([
      2,
      [
        '1010 silent held since 1010, trouble since 1010',
        '1110 probe',
        '1115 silent held since 1010, trouble since 1010',
        '1315 probe',
        '1320 answering since 1320',
        '2500 answering since 1320',
        '2500 over 310 0 true',
        '2500 end',
      ],
    ]);
  });

  it('tells all that with STORE_BREAKER_FAILURES=0, and holds nothing back', () => {
    const hang = { 10: request(1_500), 20: failure };
    const events = course(hang, 9_000, { options: { failures: 0 }, probe: () => undefined });
    expect(events.filter((event) => !event.includes('probe'))).toEqual([
      '0 unknown since 0',
      '1010 silent since 1010, trouble since 1010',
      '1510 answering since 1510',
      '6510 answering since 1510',
      '6510 over 500 1 true',
      '9000 end',
    ]);
  });

  it('does not give up by silence while the process drains', () => {
    expect(course({ 0: (server) => server.drain(9_000), 10: request() }, 3_000)).toEqual([
      '0 unknown since 0',
      '3000 end',
    ]);
  });
});

it('servers do not give up by silence while the process drains', () => {
  const fault = marbles(({ flush }, scheduler) => {
    const states = new ServerStates({ scheduler, failures: 5, statistics: new Statistics(10), log: new RecordedLog() });
    const server = states.open({ name: { server: 'a' }, lines: { begins: '', ends: '' }, probe: () => undefined });
    states.drain(9_000);
    server.sent();
    server.trips.begin(new Trip());
    scheduler.schedule(() => server.end(), 2_000);
    flush();
    return server.report.lastFault;
  });
  expect(fault).toBeUndefined();
});

it('the log has the first of each kind of failed requests, also without a fault, and an end after five seconds without', () => {
  const lines = marbles(({ flush }, scheduler) => {
    const log = new RecordedLog();
    const states = new ServerStates({ scheduler, failures: 5, statistics: new Statistics(10), log });
    const faults = { begins: 'it is away', ends: 'it is back' };
    const server = states.open({ name: { server: 'a' }, lines: faults, probe: () => undefined });
    function ended(time: number, outcome: 'ok' | 'bad', more?: Partial<Ended>): void {
      scheduler.schedule(() => server.ended(outcome, { size: 1, milliseconds: 1, ...more }), time);
    }
    ended(0, 'bad', { reason: 'late' });
    ended(1, 'ok');
    ended(2, 'bad', { reason: 'late' });
    ended(3, 'bad', { reason: 'lost' });
    ended(4, 'bad', { reason: 'OOM', isLogged: true });
    ended(5, 'ok');
    ended(5_002, 'ok');
    ended(5_003, 'ok');
    ended(6_000, 'bad', { reason: 'late' });
    // The fault that these are has a line of its own.
    for (let failed = 0; failed < 4; failed += 1) ended(6_001, 'bad', { reason: 'cut' });
    scheduler.schedule(() => server.end(), 7_000);
    flush();
    return log.lines.map(({ level, message, fields }) => `${level} ${message} ${String(fields['reason'])}`);
  });
  expect(lines).toEqual([
    'warn requests to a counter store fail late',
    'warn requests to a counter store fail lost',
    'notice requests to a counter store no longer fail undefined',
    'warn requests to a counter store fail late',
    'warn requests to a counter store fail cut',
    'warn it is away cut',
    'notice a counter store that does not answer is no longer called undefined',
  ]);
});
