import { join } from 'node:path';
import { CHECK } from '../../src/cli/check/check';
import { readRules } from '../../src/cli/check/read-rules';
import type { RuleConfig } from '../../src/rules/rule-config';
import { buildRuleset } from '../../src/rules/ruleset';
import { ServedApi } from '../http/operators/served-api';
import fc from '../support/data/properties';
import { TemporaryFolder } from '../support/data/temporary-folder';
import { runOf } from './run-program';

/** That of the services of `ServedApi`. */
const NOW = 1_000_000_000_000;
beforeEach(() => void jest.spyOn(Date, 'now').mockReturnValue(NOW));
afterEach(() => void jest.restoreAllMocks());

/** A descriptor for each rule, as the command line has it. */
function* descriptorsOf(rules: readonly RuleConfig[], path = ''): Iterable<string> {
  for (const { key, value, descriptors } of rules) {
    const entry = `${path}${key}=${value === '' ? 'x' : value.replaceAll('*', 'x')}`;
    yield entry;
    yield* descriptorsOf(descriptors, `${entry},`);
  }
}

/** Explains each rule of a folder or file with weir-check, and with the API of a service that has counted nothing. */
async function explainedTwice(path: string): Promise<{ readonly checked: unknown; readonly served: unknown }> {
  const { configs, errors } = await readRules(path, { mergeDomainConfigs: true, ignoreDotFiles: true });
  expect(errors).toEqual([]);
  await using api = await ServedApi.start({ ruleset: buildRuleset(configs) });
  const [checked, served]: [unknown[], unknown[]] = [[], []];
  for (const { domain, descriptors } of configs) {
    for (const descriptor of [...descriptorsOf(descriptors), 'no=rule']) {
      const run = await runOf(CHECK, [path, '-merge_domain_configs', '-json', '-explain', domain, descriptor]);
      checked.push(JSON.parse(run.stdout));
      const entries = descriptor.split(',').map((entry) => {
        const equals = entry.indexOf('=');
        return { key: entry.slice(0, equals), value: entry.slice(equals + 1) };
      });
      const body = JSON.stringify({ domain, descriptors: [{ entries }] });
      served.push(await api.json('/api/explanations', { method: 'POST', body }));
    }
  }
  return { checked, served };
}

const ROOT = join(__dirname, '../..');

it.each(['examples/config', 'examples/envoy/config', 'examples/tokens/config'])(
  'weir-check explains each rule of %s as a service does that has counted nothing',
  async (path) => {
    const { checked, served } = await explainedTwice(join(ROOT, path));
    expect(checked).toEqual(served);
    expect(checked).not.toHaveLength(0);
  },
);

const unit = fc.constantFrom('second', 'minute', 'hour', 'day', 'week', 'month', 'year');
const numbers = { requests_per_unit: fc.integer({ min: 0, max: 100 }), unit };
const rateLimit = fc.oneof(
  fc.record(numbers),
  fc.record({ ...numbers, algorithm: fc.constant('sliding_window'), unit_multiplier: fc.integer({ min: 1, max: 9 }) }),
  fc.record({
    ...numbers,
    requests_per_unit: fc.integer({ min: 1, max: 100 }),
    algorithm: fc.constant('token_bucket'),
  }),
  fc.constant({ unit: 'minute', requests_per_unit: 60, algorithm: 'token_bucket', burst: 3 }),
  fc.constant({ unit: 'day', requests_per_unit: 5, calendar: { time_zone: 'Asia/Tokyo' } }),
);
const several = fc.uniqueArray(rateLimit, { minLength: 1, maxLength: 3, selector: (each) => each.unit });
const modes = { shadow_mode: fc.boolean(), quota_mode: fc.boolean() };
const rule = fc.oneof(
  fc.record({ rate_limit: rateLimit, ...modes }),
  fc.record({ rate_limits: several, all_or_nothing: fc.boolean(), ...modes }),
);

it('weir-check explains each generated rule as a service does that has counted nothing', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(rule, { minLength: 1, maxLength: 4 }), async (rules) => {
      using folder = new TemporaryFolder();
      const descriptors = rules.map((each, index) => ({ key: `k${index}`, ...each }));
      folder.write('rules.yaml', JSON.stringify({ domain: 'generated', descriptors }));
      const { checked, served } = await explainedTwice(folder.base);
      expect(checked).toEqual(served);
    }),
    { numRuns: 40 },
  );
});

it('a bucket of 3 tokens that flow in one a second has 2 left after a first call, and is full again after a second', async () => {
  using folder = new TemporaryFolder();
  const bucket = '{unit: minute, requests_per_unit: 60, algorithm: token_bucket, burst: 3}';
  const rules = `{key: one, rate_limit: ${bucket}}, {key: several, rate_limits: [${bucket}]}`;
  folder.write('rules.yaml', `domain: shop\ndescriptors: [${rules}]\n`);
  const { stdout } = await runOf(CHECK, [folder.base, '-json', '-explain', 'shop', 'one=x', 'several=x']);
  const { descriptors } = Object(JSON.parse(stdout)) as { readonly descriptors: readonly unknown[] };
  const status = { code: 'OK', limitRemaining: 2, secondsUntilReset: 1 };
  expect(descriptors).toMatchObject([{ status }, { status }]);
});
