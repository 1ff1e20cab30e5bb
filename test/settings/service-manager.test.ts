import { readServiceManager } from '../../src/settings/service-manager';
import { SettingsError, readSettings } from '../../src/settings/read-settings';

const PID = 4711;

function sockets(environment: Record<string, string>) {
  const { manager, problems } = readServiceManager({ LISTEN_PID: String(PID), ...environment }, PID);
  return problems.length > 0 ? problems : manager.sockets;
}

describe('what a service manager has put into the environment', () => {
  it('is nothing without its variables', () => {
    expect(readServiceManager({}, PID)).toEqual({
      manager: { notifySocket: undefined, watchdog: undefined, sockets: {} },
      problems: [],
    });
  });

  it.each([
    ['in microseconds', { WATCHDOG_USEC: '30000000' }, 30_000],
    ['for this process', { WATCHDOG_USEC: '1500', WATCHDOG_PID: String(PID) }, 1.5],
    ['for another process', { WATCHDOG_USEC: '1500', WATCHDOG_PID: '1' }, undefined],
  ])('can be a watchdog %s', (_, environment, watchdog) => {
    expect(readServiceManager(environment, PID)).toMatchObject({ manager: { watchdog }, problems: [] });
  });

  it.each(['0', '999', '-5', '30s', '1e9'])('is not a watchdog of WATCHDOG_USEC=%s', (text) => {
    const { manager, problems } = readServiceManager({ WATCHDOG_USEC: text }, PID);
    expect(manager.watchdog).toBeUndefined();
    expect(problems).toEqual([
      `WATCHDOG_USEC="${text}" is invalid; allowed: whole number of microseconds, at least 1000.`,
    ]);
  });

  it.each([
    ['by their names', { LISTEN_FDS: '2', LISTEN_FDNAMES: 'http:grpc' }, { http: 3, grpc: 4 }],
    ['none', { LISTEN_FDS: '0' }, {}],
    ['none for another process', { LISTEN_FDS: '1', LISTEN_PID: '1', LISTEN_FDNAMES: 'http' }, {}],
  ])('can be sockets: %s', (_, environment, expected) => {
    expect(sockets(environment)).toEqual(expected);
  });

  it.each([
    [
      'a name that is no listener',
      { LISTEN_FDS: '2', LISTEN_FDNAMES: 'grpc:weir.socket' },
      'LISTEN_FDNAMES names socket 2 of 2 "weir.socket"; set FileDescriptorName= in its unit to grpc, http, debug or metrics.',
    ],
    [
      'a missing name',
      { LISTEN_FDS: '1' },
      'LISTEN_FDNAMES names socket 1 of 1 ""; set FileDescriptorName= in its unit to grpc, http, debug or metrics.',
    ],
    [
      'a name twice',
      { LISTEN_FDS: '2', LISTEN_FDNAMES: 'grpc:grpc' },
      'LISTEN_FDNAMES names several sockets "grpc"; a listener takes one.',
    ],
    ['a wrong number', { LISTEN_FDS: '1000' }, 'LISTEN_FDS="1000" is invalid; allowed: whole number up to 999.'],
  ])('is a problem with %s', (_, environment, problem) => {
    expect(sockets(environment)).toEqual([problem]);
  });

  it('is part of the settings, and its problems of their error', () => {
    expect(readSettings({ NOTIFY_SOCKET: '/run/n' }).manager.notifySocket).toBe('/run/n');
    expect(readSettings({ NOTIFY_SOCKET: '/run/n', LISTEN_PID: '1', LISTEN_FDS: '1' }).warnings).toEqual(
      readSettings({}).warnings,
    );
    expect(() => readSettings({ WATCHDOG_USEC: 'x' })).toThrow(SettingsError);
  });

  it.each([
    [
      { USE_PULLMETRICS: 'false' },
      ['the socket "metrics" of the service manager has no effect, because USE_PULLMETRICS is false'],
    ],
    [{ USE_PULLMETRICS: 'true' }, []],
    [
      { USE_PULLMETRICS: 'true', DISABLE_STATS: 'true' },
      ['the socket "metrics" of the service manager has no effect, because DISABLE_STATS is true'],
    ],
  ])('causes a warning if nothing accepts on a socket: %j', (environment, expected) => {
    const { warnings } = readSettings({
      ...environment,
      LISTEN_PID: String(process.pid),
      LISTEN_FDS: '1',
      LISTEN_FDNAMES: 'metrics',
    });
    expect(warnings.filter((warning) => warning.includes('"metrics"'))).toEqual(expected);
  });
});
