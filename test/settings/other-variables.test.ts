import { readSettings } from '../../src/settings/read-settings';
import { env, problemsOf } from './environments';

const TAGGED = 'USE_DOG_STATSD=true TAGGEDSTATS_MOGRIFIERS=a';
const COMPLETE = `${TAGGED} TAGGEDSTATS_MOGRIFIER_A_PATTERN=x TAGGEDSTATS_MOGRIFIER_A_NAME=y`;

describe('mogrifiers', () => {
  test('are read from variables that contain their names in upper case, in the order of the list', () => {
    const domain = 'TAGGEDSTATS_MOGRIFIER_DOMAIN_PATTERN=^r\\.(.*)$ TAGGEDSTATS_MOGRIFIER_DOMAIN_NAME=limit.$1';
    const tags = { TAGGEDSTATS_MOGRIFIER_DOMAIN_TAGS: 'domain:$1, kind:rule' };
    const other = 'DOG_STATSD_MOGRIFIER_OTHER_PATTERN=x DOG_STATSD_MOGRIFIER_OTHER_NAME=y';
    const list = 'USE_DOG_STATSD=true TAGGEDSTATS_MOGRIFIERS=domain,other';
    const { settings, warnings } = readSettings({ ...env(`${list} ${domain} ${other}`), ...tags });
    const [first, ...rest] = settings.mogrifiers;
    const patternVariable = 'TAGGEDSTATS_MOGRIFIER_DOMAIN_PATTERN';
    expect(first).toMatchObject({ name: 'DOMAIN', pattern: '^r\\.(.*)$', patternVariable, output: 'limit.$1' });
    expect(first?.tags).toEqual({ domain: '$1', kind: 'rule' });
    expect(rest).toMatchObject([{ name: 'OTHER', patternVariable: 'DOG_STATSD_MOGRIFIER_OTHER_PATTERN', tags: {} }]);
    expect([warnings, Object.isFrozen(first?.tags)]).toEqual([[], true]);
  });

  test('require a pattern and a name, which are not those of other programs', () => {
    const list = 'USE_DOG_STATSD=true USE_DOG_STATSD_MOGRIFIERS=a';
    const missing =
      'is not set, but USE_DOG_STATSD_MOGRIFIERS contains A; set the variable, or remove A from the list.';
    expect(problemsOf({ ...env(`${list} PATTERN=x NAME=y TAGS=a:b`), DOG_STATSD_MOGRIFIER_A_NAME: ' ' })).toEqual([
      `DOG_STATSD_MOGRIFIER_A_PATTERN ${missing}`,
      `DOG_STATSD_MOGRIFIER_A_NAME ${missing}`,
    ]);
  });

  test.each([
    [`${COMPLETE} TAGGEDSTATS_MOGRIFIER_A_TAGS=region`, 'TAGGEDSTATS_MOGRIFIER_A_TAGS="region" is invalid'],
    [`${COMPLETE} TAGGEDSTATS_MOGRIFIER_A_TAGS=region:`, 'item 1 has no value after the ":"'],
    [`${COMPLETE} DOG_STATSD_MOGRIFIER_A_PATTERN=z`, 'are two names of one setting and have different values'],
  ])('have one problem: %s', (text, problem) => {
    expect(problemsOf(env(text))).toEqual([expect.stringContaining(problem)]);
  });

  test('that the list does not contain, or that have no output, cause a warning', () => {
    expect(readSettings(env('USE_DOG_STATSD=true DOG_STATSD_MOGRIFIER_A_TAGS=x:y')).warnings).toEqual([
      'DOG_STATSD_MOGRIFIER_A_TAGS has no effect, because TAGGEDSTATS_MOGRIFIERS does not contain A; ' +
        'add A to the list, or remove the variable.',
    ]);
    const { settings, warnings } = readSettings(env('TAGGEDSTATS_MOGRIFIERS=a DOG_STATSD_MOGRIFIER_B_TAGS=?'));
    const reason = 'has no effect, because USE_TAGGEDSTATS is false by default.';
    expect(warnings).toEqual([`DOG_STATSD_MOGRIFIER_B_TAGS ${reason}`, `TAGGEDSTATS_MOGRIFIERS ${reason}`]);
    expect(settings.mogrifiers).toEqual([]);
  });
});

describe('the variables of a service manager', () => {
  const FOR_US = `LISTEN_PID=${process.pid}`;
  const NAMES = 'set FileDescriptorName= in its unit to grpc, http, debug or metrics.';

  test.each([
    ['', {}],
    ['NOTIFY_SOCKET=/run/n', { notifySocket: '/run/n' }],
    ['WATCHDOG_USEC=30000000', { watchdog: 30_000 }],
    [`WATCHDOG_USEC=1500 WATCHDOG_PID=${process.pid}`, { watchdog: 1.5 }],
    ['WATCHDOG_USEC=1500 WATCHDOG_PID=1', {}],
    [`${FOR_US} LISTEN_FDS=2 LISTEN_FDNAMES=http:grpc`, { sockets: { http: 3, grpc: 4 } }],
    [`${FOR_US} LISTEN_FDS=0`, {}],
    ['LISTEN_PID=1 LISTEN_FDS=1 LISTEN_FDNAMES=http', {}],
  ])('are read: %s', (text, manager) => {
    const none = { notifySocket: undefined, watchdog: undefined, sockets: {} };
    const loaded = readSettings(env(text));
    expect([loaded.manager, loaded.warnings]).toEqual([{ ...none, ...manager }, []]);
  });

  test.each([
    ['WATCHDOG_USEC=999', 'WATCHDOG_USEC="999" is invalid; allowed: whole number of microseconds, at least 1000.'],
    ['WATCHDOG_USEC=1e9', 'WATCHDOG_USEC="1e9" is invalid; allowed: whole number of microseconds, at least 1000.'],
    ['LISTEN_FDS=2 LISTEN_FDNAMES=grpc:weir.socket', `LISTEN_FDNAMES names socket 2 of 2 "weir.socket"; ${NAMES}`],
    ['LISTEN_FDS=1', `LISTEN_FDNAMES names socket 1 of 1 ""; ${NAMES}`],
    ['LISTEN_FDS=2 LISTEN_FDNAMES=grpc:grpc', 'LISTEN_FDNAMES names several sockets "grpc"; a listener takes one.'],
    ['LISTEN_FDS=1000', 'LISTEN_FDS="1000" is invalid; allowed: whole number up to 999.'],
  ])('are a problem of the settings: %s', (text, problem) => {
    expect(problemsOf(env(`${FOR_US} ${text}`))).toEqual([problem]);
  });

  test.each([
    ['USE_PULLMETRICS=false', ['USE_PULLMETRICS is false']],
    ['USE_PULLMETRICS=true', []],
    ['USE_PULLMETRICS=true DISABLE_STATS=true', ['DISABLE_STATS is true']],
  ])('cause a warning if nothing accepts connections on a socket: %s', (text, reasons) => {
    const { warnings } = readSettings(env(`${text} ${FOR_US} LISTEN_FDS=1 LISTEN_FDNAMES=metrics`));
    expect(warnings.filter((warning) => warning.includes('"metrics"'))).toEqual(
      reasons.map((reason) => `the socket "metrics" of the service manager has no effect, because ${reason}`),
    );
  });
});
