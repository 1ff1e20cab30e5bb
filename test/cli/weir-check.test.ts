import { execFileSync } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CHECK } from '../../src/cli/check/check';
import type { Problem } from '../../src/rules/files/problems/problem';
import { CONTROL } from '../support/data/hostile-text';
import { TemporaryFolder } from '../support/data/temporary-folder';
import { type ProgramRun, runOf } from './run-program';

const SHOP = `domain: shop
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 10, name: per-user}
    descriptors:
      - key: path
        value: "/img/*"
        share_threshold: true
        shadow_mode: true
        quota_mode: true
        rate_limit: {unit: Hour, requests_per_unit: 5}
  - key: user
    value: anna
  - key: group
    value: staff
    rate_limit: {unlimited: true, replaces: [{name: per-user}]}
`;
const FORUM = 'domain: forum\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1}}]\n';
const INVALID = 'domain: wrong\ndescriptors: [{key: user, rate_limit: {unit: days, requests_per_unit: -1}}]\n';
const SUSPICIOUS = 'domain: doubtful\ndescriptors: [{key: user, value: }]\n';

let folder: TemporaryFolder;
let dir: string;
beforeEach(() => {
  folder = new TemporaryFolder();
  dir = folder.base;
});
afterEach(() => folder[Symbol.dispose]());

function write(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) folder.write(path, text);
}

function check(...flags: readonly string[]) {
  return runOf(CHECK, ['-config_dir', dir, ...flags]);
}
/** The run that prints only these totals. */
function passed(totals: string): ProgramRun {
  return { exitCode: 0, stdout: `passed: ${totals}\n`, stderr: '' };
}

function lastLine({ stdout }: ProgramRun) {
  return stdout.trimEnd().split('\n').at(-1);
}

describe('weir-check', () => {
  it('prints totals for valid files and exits with 0', async () => {
    write({ 'shop.yaml': SHOP, 'more/forum.yml': FORUM });
    expect(await check()).toEqual(passed('2 files, 2 domains, 5 rules; 0 errors, 0 warnings'));
  });

  it('shows every character of a file and of its name in its place', async () => {
    write({ 'x\u202e\u0007.yaml': 'domain: shop\ndescriptors: [{key: user, "a\u2066\u202e": 1}]\n' });
    const { stdout } = await check();
    expect(stdout).toContain(String.raw`/x\u202e\u0007.yaml:2:27: error:`);
    expect(stdout.split('\n').slice(1, 3)).toEqual([
      String.raw`  | descriptors: [{key: user, "a\u2066\u202e": 1}]`,
      `  |                           ${'^'.repeat(15)}`,
    ]);
    expect((await check('-json')).stdout).not.toMatch(CONTROL);
    write({ 'x\u202e\u0007.yaml': SHOP });
    for (const flags of [[], ['-json']]) {
      const explained = await check('-explain', ...flags, 'shop', 'user=\u202e');
      expect([explained.exitCode, explained.stdout]).toEqual([0, expect.not.stringMatching(CONTROL)]);
    }
    expect((await check('-diff', '\u202e')).stdout).toContain(
      String.raw`\u202e: error: the folder or file cannot be read`,
    );
  });

  it('reads a pipe, as `<(helm template …)` of a shell gives one', async () => {
    const pipe = join(dir, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const [run] = await Promise.all([runOf(CHECK, [pipe]), writeFile(pipe, FORUM)]);
    expect(run).toEqual(passed('1 file, 1 domain, 1 rule; 0 errors, 0 warnings'));
  });

  it('prints every error of every file and exits with 1', async () => {
    write({ 'a.yaml': INVALID, 'b.yaml': 'nonsense\n', 'good.yaml': SHOP });
    const run = await check();
    expect(run.exitCode).toBe(1);
    expect(run.stdout.match(/^\S+: error: /gm)).toEqual([
      `${dir}/a.yaml:2:46: error: `,
      `${dir}/a.yaml:2:71: error: `,
      `${dir}/b.yaml:1:1: error: `,
    ]);
    expect(lastLine(run)).toBe('failed: 3 files, 2 domains, 5 rules; 3 errors, 0 warnings');
  });

  it('fails for warnings only with -strict, and accepts two files for one domain only with -merge_domain_configs', async () => {
    write({ 'a.yaml': SUSPICIOUS });
    expect((await check()).exitCode).toBe(0);
    const strict = await check('-strict');
    expect([strict.exitCode, lastLine(strict)]).toEqual([1, 'failed: 1 file, 1 domain, 1 rule; 0 errors, 1 warning']);
    write({ 'a.yaml': FORUM, 'b.yaml': FORUM.replace('user', 'path') });
    expect((await check()).exitCode).toBe(1);
    expect(await check('-merge_domain_configs')).toEqual(passed('2 files, 1 domain, 2 rules; 0 errors, 0 warnings'));
  });

  it.each([
    ['local', 1],
    ['allow', 0],
  ])('with STORE_FAILURE_POLICY=%s names the rules that the policy local does not cover', async (policy, warnings) => {
    const limit = '{unit: hour, requests_per_unit: 5, algorithm: sliding_window}';
    const bucket = '{unit: hour, requests_per_unit: 5, algorithm: token_bucket}';
    const rules = [
      `{key: slides, rate_limit: ${limit}}`,
      `{key: own, on_store_failure: deny, rate_limit: ${limit}}`,
      '{key: plain, rate_limit: {unit: day, requests_per_unit: 1}}',
      `{key: all, all_or_nothing: true, rate_limits: [{unit: day, requests_per_unit: 9}, ${bucket}]}`,
      '{key: blocks, rate_limit: {unit: day, requests_per_unit: 1, block_for: 24h}}',
    ];
    write({ 'shop.yaml': `domain: shop\ndescriptors: [${rules.join(', ')}]\ndefault_rate_limit: ${bucket}\n` });
    const { stdout } = await runOf(CHECK, [dir], { STORE_FAILURE_POLICY: policy });
    expect(stdout).toContain(`0 errors, ${warnings} warning`);
    const named =
      'limits with an algorithm, all_or_nothing, block_for or max_concurrent: without the store, ' +
      'calls for 4 rules (shop.default_rate_limit, shop.slides, shop.all, …) fail';
    expect(stdout.includes(': warning: STORE_FAILURE_POLICY=local')).toBe(warnings === 1);
    expect(stdout.includes(named)).toBe(warnings === 1);
    expect(await runOf(CHECK, [dir], { STORE_FAILURE_POLICY: 'nothing' })).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('STORE_FAILURE_POLICY') as unknown,
    });
  });

  const EARLIER = 'STORE_DECISION_TIMEOUT only makes calls fail earlier, because no policy answers them';
  const CUT = 'KVSTORE_TIMEOUT is shorter than the 100 ms after which policies answer calls';
  const UNDECIDED = 'KVSTORE_PIPELINE_WINDOW is not shorter than the 100 ms after which policies answer calls';
  it.each<[NodeJS.ProcessEnv, policy: string, message: string | undefined]>([
    [{ STORE_DECISION_TIMEOUT: '50ms' }, 'error', EARLIER],
    [{ STORE_DECISION_TIMEOUT: '50ms' }, 'allow', undefined],
    [{ STORE_DECISION_TIMEOUT: '50ms', STORE_FAILURE_POLICY: 'deny' }, 'error', undefined],
    [{ STORE_DECISION_TIMEOUT: '50ms', BACKEND_TYPE: 'memcache' }, 'error', undefined],
    [{ REDIS_TIMEOUT: '50ms' }, 'allow', CUT],
    [{ KVSTORE_TIMEOUT: '50ms', STORE_FAILURE_POLICY: 'allow' }, 'error', CUT],
    [{ KVSTORE_TIMEOUT: '50ms' }, 'error', undefined],
    [{ KVSTORE_TIMEOUT: '0' }, 'allow', undefined],
    [{ KVSTORE_TIMEOUT: '50ms', STORE_DECISION_TIMEOUT: '20ms' }, 'allow', undefined],
    [{ REDIS_PIPELINE_WINDOW: '100ms' }, 'allow', UNDECIDED],
    [{ KVSTORE_PIPELINE_WINDOW: '100ms' }, 'error', undefined],
  ])(
    'with %j and a rule with the policy %s says whether the times fit together',
    async (environment, policy, message) => {
      const rule = `{key: a, on_store_failure: ${policy}, rate_limit: {unit: day, requests_per_unit: 1}}`;
      write({ 'shop.yaml': `domain: shop\ndescriptors: [${rule}]\n` });
      const { exitCode, stdout } = await runOf(CHECK, [dir, '-json'], environment);
      const { warnings } = JSON.parse(stdout) as { readonly warnings: readonly Problem[] };
      const expected = { code: 'times-without-effect', message: expect.stringContaining(message ?? '') as string };
      expect([exitCode, warnings]).toMatchObject([0, message === undefined ? [] : [expected]]);
    },
  );

  const MEMCACHED = 'memcached has no scripts, without which hits cannot be taken up to a limit';
  const EXACT = 'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT needs the exact count of each call';
  it.each<[NodeJS.ProcessEnv, string | undefined]>([
    [{ BACKEND_TYPE: 'memcache' }, MEMCACHED],
    [{ BACKEND_TYPE: 'Plaincache' }, MEMCACHED],
    [{ BACKEND_TYPE: 'redis', STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true' }, EXACT],
    [{ BACKEND_TYPE: 'redis' }, undefined],
    [{}, undefined],
  ])('with %j names the rules whose `lease` has no effect', async (environment, reason) => {
    const limits = ['true', 'false'].map((lease) => `{unit: day, requests_per_unit: 1, lease: ${lease}}`);
    const rules = [`{key: a, rate_limit: ${limits[0]}}`, `{key: b, rate_limit: ${limits[1]}}`, '{key: c}'];
    write({ 'shop.yaml': `domain: shop\ndescriptors: [${rules.join(', ')}]\ndefault_rate_limit: ${limits[0]}\n` });
    const { exitCode, stdout } = await runOf(CHECK, [dir, '-json'], environment);
    const { warnings } = JSON.parse(stdout) as { readonly warnings: readonly Problem[] };
    const message = `\`lease\` of 2 rules (shop.default_rate_limit, shop.a) has no effect: ${reason}`;
    expect([exitCode, warnings]).toMatchObject([
      0,
      reason === undefined ? [] : [{ code: 'lease-without-effect', severity: 'warning', message }],
    ]);
    expect(warnings).toHaveLength(reason === undefined ? 0 : 1);
  });

  it('rejects what a store without scripts cannot do, as the service does, at its place', async () => {
    const limit = '{unit: minute, requests_per_unit: 1, block_for: 10m}';
    write({ 'shop.yaml': `domain: shop\ndescriptors:\n  - {key: a}\n  - {key: b, rate_limit: ${limit}}\n` });
    expect((await runOf(CHECK, [dir], { BACKEND_TYPE: 'redis' })).exitCode).toBe(0);
    const { exitCode, stdout } = await runOf(CHECK, [dir], { BACKEND_TYPE: 'memcache' });
    expect([exitCode, stdout]).toEqual([
      1,
      `${join(dir, 'shop.yaml')}:4:11: error: block_for cannot be used: memcached has no scripts, without which a ` +
        'decision is not atomic [store-without-scripts]\n  Remove it, or use another store.\n\n' +
        'failed: 1 file, 1 domain, 2 rules; 1 error, 0 warnings\n',
    ]);
  });

  it('reads the files that the service reads', async () => {
    write({
      'shop.yaml': SHOP,
      'deep/er/forum.yml': FORUM,
      '.hidden.yaml': INVALID,
      '..data/wrong.yaml': INVALID,
      'notes.txt': 'no rules',
      'elsewhere.txt': FORUM.replace('forum', 'linked'),
    });
    symlinkSync('elsewhere.txt', join(dir, 'linked.yaml'));
    symlinkSync('deep', join(dir, 'shallow'));
    const run = await check('-ignore_dot_files');
    expect(lastLine(run)).toBe('passed: 3 files, 3 domains, 6 rules; 0 errors, 2 warnings');
    expect(run.stdout).toContain('ignored files: elsewhere.txt, notes.txt [ignored-files]');
    expect(run.stdout).toContain('links to folders are not followed: shallow [linked-folders]');
    expect((await check()).stdout).toContain('.hidden.yaml:2:46: error: invalid rate limit unit');
  });

  it('prints one JSON object with -json', async () => {
    write({ 'a.yaml': INVALID, 'b.yaml': SUSPICIOUS });
    const { exitCode, stdout } = await check('--json');
    const place = { severity: 'error', file: join(dir, 'a.yaml'), line: 2, message: expect.any(String) };
    const errors = [
      expect.objectContaining({ ...place, code: 'invalid-unit', column: 46 }),
      expect.objectContaining({ ...place, code: 'invalid-requests-per-unit', column: 71 }),
    ];
    const warnings = [expect.objectContaining({ code: 'empty-field', severity: 'warning', file: join(dir, 'b.yaml') })];
    expect([exitCode, JSON.parse(stdout)]).toEqual([
      1,
      { ok: false, files: 2, domains: 2, rules: 2, errors, warnings },
    ]);
  });

  it('accepts a folder, and a single file, in any place of the command line', async () => {
    write({ 'shop.yaml': SHOP, 'wrong.yaml': INVALID });
    for (const argv of ['PATH', 'PATH -strict', '-strict PATH', '-config_dir PATH']) {
      const [all, good, wrong] = await Promise.all(
        ['', '/shop.yaml', '/wrong.yaml'].map((path) => runOf(CHECK, argv.replace('PATH', dir + path).split(' '))),
      );
      expect(lastLine(all!)).toBe('failed: 2 files, 2 domains, 5 rules; 2 errors, 0 warnings');
      expect(good).toEqual(passed('1 file, 1 domain, 4 rules; 0 errors, 0 warnings'));
      expect(wrong!.exitCode).toBe(1);
      expect(wrong!.stdout).toContain(`${join(dir, 'wrong.yaml')}:2:46: error: invalid rate limit unit 'days'`);
    }
  });

  it('rejects a file without content, and a folder that does not exist', async () => {
    write({ 'shop.yaml': SHOP, 'forum.yaml': '' });
    const run = await check();
    expect(run.exitCode).toBe(1);
    expect(run.stdout).toContain('forum.yaml:1:1: error: config file cannot have empty domain [empty-domain]');
    const nowhere = await runOf(CHECK, ['-config_dir', join(dir, 'nowhere')]);
    const message = 'the folder or file cannot be read: ENOENT: no such file or directory [unreadable-folder]';
    expect(nowhere).toMatchObject({ exitCode: 1, stdout: expect.stringContaining(message) });
  });

  it.each([
    ['', 'give the folder with the rule files, or rule files'],
    ['-diff .', 'give two folders or files with rules: -diff OLD NEW'],
    ['-diff . . .', 'give two folders or files with rules: -diff OLD NEW'],
    ['-test', 'give the test files: *.test.yaml, *.decisions, or folders with such files'],
    ['. -update', 'flags -coverage and -update require -test'],
    ['. -test -explain', 'flags -explain and -test exclude each other'],
    [
      '. -format yaml',
      'invalid value "yaml" for flag -format: expected one of text, json, github, sarif, junit, markdown',
    ],
    ['. -format markdown', '-format markdown is not possible here: text, json, github, sarif, junit are'],
    ['. -replay - -format junit', '-format junit is not possible here: text, json are'],
    ['-config_dir . -x', 'unknown flag -x'],
    [
      '-config_dir . -explain shop',
      'flag -explain requires a path, a domain and descriptors: PATH -explain DOMAIN KEY=VALUE,KEY=VALUE …',
    ],
    ['. -now . -html', 'flags -now and -html require -replay'],
    ['. -replay - -html -json', 'flags -html and -format json exclude each other'],
    ['. -replay - -explain shop a=b', 'flags -replay and -explain exclude each other'],
    ['-config_dir . -explain shop a=b c', 'invalid descriptor "c": expected name=value instead of "c"'],
  ])('rejects the command line "%s" and exits with 2', async (line, message) => {
    const run = await runOf(CHECK, line === '' ? [] : line.split(' '));
    expect(run).toMatchObject({ exitCode: 2, stdout: '' });
    expect(run.stderr).toBe(`weir-check: ${message}\nRun weir-check -h for its flags.\n`);
  });
});

describe('weir-check -explain', () => {
  beforeEach(() => write({ 'shop.yaml': SHOP }));

  const CARL = `OK: no descriptor is over its limit
descriptor 1: user=carl,path=/`;
  const BY_KEY = '  level 1, user=carl: the rule without a value matches; 1 rule has another value\n';

  /** Descriptors of the domain shop, and their explanations; N is the start of the hour, T its end. */
  const EXPLAINED: Readonly<Record<string, string>> = {
    'user=carl,path=/img/a.png': `${CARL}img/a.png
${BY_KEY}  level 2, path=/img/a.png: '/img/*' matches
  rule shop.user.path_/img/* (shop.yaml:6:14)
  OK: the count would be 1 after 1 hit, within the limit of 5
  5 per hour, shadow mode, quota, resets T
  key shop_user_carl_path_/img/*_N, count 0`,
    'user=carl,path=/': `${CARL}
${BY_KEY}  level 2, path=/: '/img/*' does not match
  OK: no limit applies, because no rule matches
  nearest shop.user.path_/img/* (shop.yaml:6:14): entry 2 has the value '/', but the rule '/img/*'`,
    'user=anna,path=/': `OK: no descriptor is over its limit
descriptor 1: user=anna,path=/
  level 1, user=anna: 'anna' matches; the rule without a value is not tried
  OK: no limit applies, because the descriptor has more entries than rules are nested
  nearest shop.user_anna (shop.yaml:12:10): the descriptor has 2 entries, but no rules are nested in this one, which matches the first one`,
    'group=crew': `OK: no descriptor is over its limit
descriptor 1: group=crew
  level 1, group=crew: 1 rule has another value
  OK: no limit applies, because no rule matches
  nearest shop.group_staff (shop.yaml:14:10): entry 1 has the value 'crew', but the rule 'staff'`,
    'group=staff user=carl': `OK: no descriptor is over its limit
descriptor 1: group=staff
  level 1, group=staff: 'staff' matches
  rule shop.group_staff (shop.yaml:14:10)
  OK: the rule is unlimited
descriptor 2: user=carl
${BY_KEY}  rule shop.user (shop.yaml:3:10)
  OK: the rule is not applied, because shop.group_staff replaces it`,
  };

  it.each(Object.entries(EXPLAINED))('explains %s', async (descriptors, text) => {
    const { stdout, ...rest } = await check('--explain', 'shop', ...descriptors.split(' '));
    const timeless = stdout
      .replaceAll(`${dir}/`, '')
      .replace(/\d{10}/, 'N')
      .replace(/resets \S+:00:00\.000Z/, 'resets T');
    expect({ stdout: timeless, ...rest }).toEqual({ exitCode: 0, stdout: `${text}\n`, stderr: '' });
  });

  it('says whether a limit is enforced for the caller', async () => {
    write({
      'shop.yaml':
        'domain: gradual\ndescriptors: [{key: user, enforce_percent: 5, rate_limit: {unit: day, ' +
        'requests_per_unit: 0}}]',
    });
    const { stdout } = await check('-explain', 'gradual', 'user=anna', 'user=ben');
    expect(stdout).toContain('OVER_LIMIT: descriptor 1 is over its limit\n');
    expect(stdout).toContain('over the limit of 0\n  0 per day, enforced for 5 % of callers, resets ');
    expect(stdout).toContain(
      'over the limit of 0, which enforce_percent allows\n  0 per day, enforced for 5 % of callers, not for this one, ',
    );
  });

  it('says by which network an address is counted', async () => {
    write({
      'shop.yaml':
        'domain: nets\ndescriptors: [{key: ip, address_prefix: {ipv6: 48}, rate_limit: {unit: day, ' +
        'requests_per_unit: 5}}]',
    });
    const { stdout } = await check('-explain', 'nets', 'ip=[2001:DB8:1:2::3]:443', 'ip=198.51.100.7', 'ip=x');
    expect(stdout).toContain('\n  counted as ip=2001:db8:1::/48\n  OK: ');
    expect(stdout).toContain('key nets_ip_2001:db8:1::/48_');
    expect(stdout.match(/counted as/g)).toHaveLength(1);
  });

  it('says when a limit applies that does not apply now', async () => {
    const [today, other] = [
      'time_zone: UTC',
      'ranges: [{ from: "00:00", to: "00:01" }, { from: "00:01", to: "24:00" }]',
    ];
    const limit = `{unit: day, requests_per_unit: 5, active: { ${today}, ${other} }}`;
    const day = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'][
      (new Date().getUTCDay() + 3) % 7
    ];
    const later = `{unit: day, requests_per_unit: 5, active: { ${today}, ranges: [{ days: [${day}] }] }}`;
    write({
      'shop.yaml': `domain: nets\ndescriptors: [{key: on, rate_limit: ${limit}}, {key: off, rate_limit: ${later}}]`,
    });
    const { stdout } = await check('-explain', 'nets', 'on=x', 'off=x');
    expect(stdout).toContain('\n  5 per day, active 00:00-00:01,00:01-24:00 UTC, resets ');
    expect(stdout).toMatch(
      /\n {2}OK: no limit applies at this hour: the rule is not active until \S+T00:00:00\.000Z\n/,
    );
  });

  it('explains a descriptor that matches no rule by the default of its domain', async () => {
    write({ 'shop.yaml': `${SHOP}default_rate_limit: { unit: hour, requests_per_unit: 5 }\n` });
    const { stdout } = await check('-explain', 'shop', 'group=crew');
    expect(stdout).toContain(`  rule shop.default_rate_limit (${dir}/shop.yaml:`);
    expect(stdout).toContain(
      '\n  OK: no rule matches, so default_rate_limit applies: the count would be 1 after 1 hit, ',
    );
    write({ 'shop.yaml': `${SHOP}on_unmatched: deny\n` });
    const denied = await check('-explain', 'shop', 'group=crew');
    expect(denied.stdout).toMatch(/^OVER_LIMIT: descriptor 1 is denied\n/);
    expect(denied.stdout).toContain('\n  OVER_LIMIT: no rule matches, and on_unmatched denies that\n');
  });

  it.each([
    ['day', '', 'Asia/Tokyo', String.raw`T15:00:00\.000Z`],
    ['week', '', 'Asia/Tokyo from monday', String.raw`T15:00:00\.000Z`],
    ['month', ', starts_on: 15', 'Asia/Tokyo from day 15', String.raw`-14T15:00:00\.000Z`],
    ['year', '', 'Asia/Tokyo', String.raw`-12-31T15:00:00\.000Z`],
  ])('names the time zone of a %s of the calendar, its first day and its end', async (unit, startsOn, zone, end) => {
    const calendar = `calendar: { time_zone: Asia/Tokyo${startsOn} }`;
    write({
      'shop.yaml': `domain: shop\ndescriptors: [{key: a, rate_limit: {unit: ${unit}, requests_per_unit: 5, ${calendar}}}]`,
    });
    const { stdout } = await check('-explain', 'shop', 'a=x');
    expect(stdout).toMatch(new RegExp(String.raw`\n {2}5 per ${unit}, in ${zone}, resets \S+${end}\n`));
  });

  it('names the nearest domain for an unknown one', async () => {
    const { stdout } = await check('-explain', 'shopp', 'user=anna');
    expect(stdout).toContain(`\n  nearest: the rules have the domain 'shop', not 'shopp'\n`);
  });

  it('rejects what the service would reject', async () => {
    const run = await check('-explain', 'shop', Array.from({ length: 101 }, () => 'user=anna').join(','));
    expect([run.exitCode, run.stdout, run.stderr]).toEqual([1, '', expect.stringMatching(/^weir-check: .*101/)]);
  });

  it('takes the path as an argument, and flags in any place', async () => {
    const { stdout } = await check('-explain', 'shop', 'user=bo,path=/');
    const file = `${dir}/shop.yaml -merge_domain_configs`;
    for (const line of [`${dir} shop user=bo,path=/ -explain`, `-explain ${file} shop user=bo,path=/`]) {
      const run = await runOf(CHECK, line.split(' '));
      expect(run.stdout).toBe(stdout);
    }
  });

  it('prints the explanation of the API with -json', async () => {
    const { stdout } = await check('-explain', 'shop', 'user=anna,path=/', '-json');
    const place = { file: `${dir}/shop.yaml`, line: 12, column: 10 };
    const rule = { statisticsKey: 'shop.user_anna', key: 'user', value: 'anna', place };
    const candidates = [{ rule, outcome: 'chosen' }, { outcome: 'not tried' }];
    const step = { key: 'user', value: 'anna', candidates, omitted: 0, otherValues: 0, keys: [] };
    expect(JSON.parse(stdout)).toMatchObject({
      domain: 'shop',
      descriptors: [{ steps: [step], outcome: 'too deep', rule: null, counter: null, status: { code: 'OK' } }],
      answer: { overallCode: 'OK' },
      error: null,
    });
  });

  it('prints the errors instead, as text or JSON, if there are any', async () => {
    write({ 'a.yaml': INVALID });
    const run = await check('-explain', 'wrong', 'user=anna');
    expect([run.exitCode, run.stdout]).toEqual([1, expect.stringContaining('invalid rate limit unit')]);
    const json = await check('-explain', 'wrong', 'user=anna', '-json');
    expect(json.exitCode).toBe(1);
    expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, errors: [{ code: 'invalid-unit' }, {}] });
  });
});
