import { readSettings } from '../../src/settings/read-settings';
import { problemsOf } from './problems-of';

const TAGGED = { USE_DOG_STATSD: 'true' };

describe('mogrifiers', () => {
  test('are read from variables that contain their names in upper case, in the order of the list', () => {
    const { settings } = readSettings({
      ...TAGGED,
      TAGGEDSTATS_MOGRIFIERS: 'domain, other',
      TAGGEDSTATS_MOGRIFIER_DOMAIN_PATTERN: '^ratelimit\\.(.*)$',
      TAGGEDSTATS_MOGRIFIER_DOMAIN_NAME: 'limit.$1',
      TAGGEDSTATS_MOGRIFIER_DOMAIN_TAGS: 'domain:$1, kind:rule',
      DOG_STATSD_MOGRIFIER_OTHER_PATTERN: 'x',
      DOG_STATSD_MOGRIFIER_OTHER_NAME: 'y',
    });
    expect(settings.mogrifiers).toEqual([
      {
        name: 'DOMAIN',
        pattern: '^ratelimit\\.(.*)$',
        patternVariable: 'TAGGEDSTATS_MOGRIFIER_DOMAIN_PATTERN',
        output: 'limit.$1',
        tags: { domain: '$1', kind: 'rule' },
      },
      { name: 'OTHER', pattern: 'x', patternVariable: 'DOG_STATSD_MOGRIFIER_OTHER_PATTERN', output: 'y', tags: {} },
    ]);
    expect(Object.isFrozen(settings.mogrifiers[0]?.tags)).toBe(true);
  });

  test('require a pattern and a name', () => {
    expect(problemsOf({ ...TAGGED, USE_DOG_STATSD_MOGRIFIERS: 'a', DOG_STATSD_MOGRIFIER_A_NAME: ' ' })).toEqual([
      'DOG_STATSD_MOGRIFIER_A_PATTERN is not set, but USE_DOG_STATSD_MOGRIFIERS contains A; set the variable, or remove A from the list.',
      'DOG_STATSD_MOGRIFIER_A_NAME is not set, but USE_DOG_STATSD_MOGRIFIERS contains A; set the variable, or remove A from the list.',
    ]);
  });

  test('do not fall back to PATTERN and NAME, which other programs set', () => {
    const bare = { PATTERN: 'x', NAME: 'y', TAGS: 'a:b' };
    expect(problemsOf({ ...TAGGED, ...bare, TAGGEDSTATS_MOGRIFIERS: 'a' })).toHaveLength(2);
  });

  test.each(['region', 'region:', ':eu'])('reject the tags %j', (tags) => {
    const environment = {
      ...TAGGED,
      TAGGEDSTATS_MOGRIFIERS: 'a',
      TAGGEDSTATS_MOGRIFIER_A_PATTERN: 'x',
      TAGGEDSTATS_MOGRIFIER_A_NAME: 'y',
      TAGGEDSTATS_MOGRIFIER_A_TAGS: tags,
    };
    expect(problemsOf(environment)).toEqual([expect.stringContaining('TAGGEDSTATS_MOGRIFIER_A_TAGS=')]);
  });

  test('reject different values under a name and its alias', () => {
    const environment = {
      ...TAGGED,
      TAGGEDSTATS_MOGRIFIERS: 'a',
      TAGGEDSTATS_MOGRIFIER_A_PATTERN: 'x',
      DOG_STATSD_MOGRIFIER_A_PATTERN: 'z',
      TAGGEDSTATS_MOGRIFIER_A_NAME: 'y',
    };
    expect(problemsOf(environment)).toEqual([
      expect.stringContaining('are two names of one setting and have different values'),
    ]);
  });

  test('that the list does not contain cause a warning', () => {
    const { warnings } = readSettings({ ...TAGGED, DOG_STATSD_MOGRIFIER_A_TAGS: 'x:y' });
    expect(warnings).toContain(
      'DOG_STATSD_MOGRIFIER_A_TAGS has no effect, because TAGGEDSTATS_MOGRIFIERS does not contain A; add A to the list, or remove the variable.',
    );
  });

  test('are ignored with a warning for each variable while the DogStatsD output is off', () => {
    const { settings, warnings } = readSettings({ TAGGEDSTATS_MOGRIFIERS: 'a', DOG_STATSD_MOGRIFIER_B_TAGS: '?' });
    expect(settings.mogrifiers).toEqual([]);
    const reason = 'has no effect, because USE_TAGGEDSTATS is false by default.';
    expect(warnings).toEqual([`DOG_STATSD_MOGRIFIER_B_TAGS ${reason}`, `TAGGEDSTATS_MOGRIFIERS ${reason}`]);
  });
});
