import { DiscoveryResponse } from '../../src/gen/envoy/service/discovery/v3/discovery';
import type { Any } from '../../src/gen/google/protobuf/any';
import type { RateLimitUnit } from '../../src/gen/ratelimit/config/ratelimit/v3/rls_conf';
import { readRuleFiles } from '../../src/rules/files/read-rule-files';
import type { DomainConfig, JsonObject } from '../../src/rules/rule-config';
import { buildRuleset } from '../../src/rules/ruleset';
import { RULES_TYPE_URL, checkResources } from '../../src/sources/xds/check-resources';
import fc from '../support/data/properties';
import { resourceOf, ruleResource } from '../support/data/rule-resources';
import { written } from '../rules/files/written-rules';
import {
  type RuleSketch,
  atATime,
  domainConfig,
  limit,
  linesOf,
  ruleConfig,
  unlimited,
  withoutPlaces,
} from '../support/data/rules';

/** The limit of the errors and warnings that are listed; the others are only counted. */
const MOST_LINES = 50;

function response(resources: readonly Any[]): Uint8Array {
  const fields = { versionInfo: '1', canary: false, typeUrl: RULES_TYPE_URL, nonce: 'n' };
  return DiscoveryResponse.encode({ ...fields, resources: [...resources] }).finish();
}

/**
 * Checks the same rules in both forms; JSON is YAML. Positions are removed from the messages: a file has lines, a
 * resource has fields.
 */
function bothForms(configs: readonly DomainConfig[], mergeDomainConfigs = false) {
  const names = configs.map((_, index) => `part-${String(index).padStart(3, '0')}`);
  const files = readRuleFiles(
    configs.map((config, index) => ({
      path: names[index] ?? '',
      content: Buffer.from(JSON.stringify(written(config))),
    })),
    { mergeDomainConfigs },
  );
  const resources = checkResources(
    response(configs.map((config, index) => ruleResource(names[index] ?? '', config)).toReversed()),
    mergeDomainConfigs,
  );
  function messages(lines: readonly string[]) {
    return sorted(lines.map((line) => /^resource '[^']*'(?:, \S+)?: (.*)$/s.exec(line)?.[1] ?? line));
  }
  const [errors, warnings] = [files.errors, files.warnings].map((problems) =>
    sorted(problems.map(({ message, advice }) => `${message}. ${advice}`)),
  );
  return {
    files: { configs: withoutPlaces(files.configs), errors, warnings },
    resources: {
      configs: withoutPlaces(resources.configs),
      errors: messages(resources.errors),
      warnings: messages(resources.warnings),
    },
  };
}

function sorted(messages: readonly string[]): readonly string[] {
  return messages.map(withoutPositions).toSorted((one, other) => (one < other ? -1 : 1));
}

/** Removes the second position that a message may contain. */
function withoutPositions(message: string): string {
  return message
    .replaceAll(/(?:resource '|')?part-\d+'?/g, 'PART')
    .replaceAll(/(?:PART, )?(?:line \d+|descriptors\[\d+\]\S*?|default_rate_limit|on_unmatched)(?=[ ;])/g, 'POSITION');
}

const METADATA = {
  text: 'yes',
  large: 1e21,
  small: 1e-7,
  nothing: null,
  '': [false],
  object: { '<<': { deep: '010' } },
};
const DENY = ruleConfig({ key: 'on_unmatched', value: 'deny', rateLimit: unlimited({ unlimited: false }) });
const DAY_HOURS = { days: ['monday', 'friday'], from: '08:00', to: '18:00' };
const NIGHT = { from: '22:00', to: '06:30' };
/** Rules with every field, and with texts that YAML could read as something else. */
const GOOD = [
  domainConfig(
    'shop',
    { key: 'plain', value: 'exact', rateLimit: limit(4_294_967_295, 'SECOND'), shadowMode: true },
    { key: 'plain', value: 'pre*post', rateLimit: limit(7, 'HOUR'), detailedMetric: true },
    ...['010', 'yes', '~', '<<'].map((value) => ({ key: 'v', value, rateLimit: limit(0, 'YEAR'), quotaMode: true })),
    { key: 'several', rateLimits: [limit(1, 'MINUTE'), limit(9, 'DAY', { algorithm: 'token_bucket', burst: 20 })] },
    { key: 'leased', rateLimits: [limit(1, 'MINUTE', { lease: true }), limit(9, 'DAY', { lease: false })] },
    { key: 'together', rateLimits: [limit(1, 'MINUTE')], allOrNothing: true },
    { key: 'part', rateLimit: limit(1, 'MINUTE'), enforcePercent: 0 },
    { key: 'v', valueIn: ['a', 'b c'], rateLimit: limit(1, 'MINUTE') },
    { key: 'v', valueCidr: '10.0.0.0/8', rateLimit: limit(1, 'MINUTE') },
    { key: 'v', valueCidr: '2001:db8::/32', addressPrefix: { ipv4: 24, ipv6: 48 }, rateLimit: limit(1, 'MINUTE') },
    { key: 'v', valueRegex: '^[0-9]+$', rateLimit: limit(1, 'MINUTE') },
    { key: 'v', value: 'w', rateLimit: limit(1, 'WEEK', { calendar: { timeZone: 'UTC', startsOn: 7 } }) },
    { key: 'v', value: 'm', rateLimit: limit(1, 'MONTH', { calendar: { timeZone: 'Asia/Tokyo', startsOn: 15 } }) },
    {
      key: 'hours',
      rateLimits: [
        limit(1, 'MINUTE', { active: { timeZone: 'Europe/Berlin', ranges: [DAY_HOURS] } }),
        limit(9, 'MINUTE', { active: { timeZone: 'Europe/Berlin', ranges: [{ ...DAY_HOURS, ...NIGHT }] } }),
      ],
    },
    {
      key: 'blocks',
      rateLimit: limit(1, 'MINUTE', { blockFor: { first: 60, factor: 1, most: 60, forgottenAfter: 0 } }),
    },
    {
      key: 'grows',
      rateLimit: limit(1, 'MINUTE', { blockFor: { first: 90, factor: 2, most: 3600, forgottenAfter: 86_400 } }),
    },
    { key: 'at_a_time', rateLimits: [atATime(5), limit(9, 'DAY', { postpaid: true })] },
    { key: 'none_at_a_time', value: 'x', rateLimit: atATime(0, { name: 'none' }) },
    { key: 'named', rateLimit: limit(1, 'MINUTE', { name: 'one' }) },
    { key: 'replacing', rateLimit: limit(1, 'MONTH', { name: 'two', replaces: ['one'] }) },
    { key: 'free', rateLimit: unlimited({ name: 'three' }) },
    { key: 'outer', descriptors: [{ key: 'inner', value: 'x', rateLimit: limit(2, 'WEEK') }] },
    { key: 'tagged', rateLimit: limit(3, 'DAY'), metadata: METADATA },
  ),
  {
    ...domainConfig('api', { key: 'path', rateLimit: limit(1, 'MINUTE') }),
    unmatched: ruleConfig({
      key: 'default_rate_limit',
      rateLimit: limit(9, 'HOUR', { unitMultiplier: 2, name: 'rest' }),
    }),
  },
  { ...domainConfig('closed', { key: 'path' }), unmatched: DENY },
];

describe('rule files and xDS resources', () => {
  test('give the same rules for every field', () => {
    const { files, resources } = bothForms(GOOD);
    expect(files).toEqual({ configs: GOOD, errors: [], warnings: [] });
    expect(resources).toEqual(files);
    expect(linesOf(buildRuleset(resources.configs))).toEqual(linesOf(buildRuleset(files.configs)));
  });

  test('give the same rules, errors and warnings for arbitrary rules', () => {
    fc.assert(
      fc.property(fc.array(anyDomain(), { maxLength: 3 }), fc.boolean(), (configs, merge) => {
        const { files, resources } = bothForms(configs, merge);
        // Without any resource the warning has another text.
        fc.pre(configs.length > 0 && [files.errors!, files.warnings!].every(({ length }) => length <= MOST_LINES));
        expect(resources).toEqual(files);
      }),
      { numRuns: 150 },
    );
  });
});

describe('checkResources', () => {
  function check(...rules: readonly RuleSketch[]) {
    return checkResources(response([ruleResource('r', domainConfig('shop', ...rules))]), false);
  }
  function checkUnit(unit: number, isUnlimited = false) {
    // oxlint-disable-next-line no-unsafe-enum-assignment -- a server may send a value that the enum does not define
    const sent: RateLimitUnit = unit;
    const rateLimit = {
      unit: sent,
      requestsPerUnit: 1,
      largeRequestsPerUnit: 0n,
      unitMultiplier: 0,
      algorithm: '',
      burst: 0,
      calendar: undefined,
      active: undefined,
      blockFor: undefined,
      unlimited: isUnlimited,
      name: '',
      postpaid: false,
      replaces: [],
    };
    const values = {
      valueIn: [],
      valueCidr: '',
      valueRegex: '',
      rateLimits: [],
      allOrNothing: false,
      addressPrefix: undefined,
    };
    const flags = { shadowMode: false, detailedMetric: false, quotaMode: false, metadata: undefined };
    const descriptors = [{ key: 'a', value: '', ...values, ...flags, rateLimit, descriptors: [] }];
    const resource = { name: 'r', domain: 'shop', descriptors, defaultRateLimit: undefined, onUnmatched: '' };
    return checkResources(response([resourceOf(resource)]), false);
  }
  const FIRST = String.raw`^resource 'r', descriptors\[0\]\.`;

  test.each([
    [0, 'UNKNOWN'],
    [99, '99'],
  ])('rejects the unit %i by its name', (unit, shown) => {
    const message = `rate_limit\\.unit: invalid rate limit unit '${shown}'\\. `;
    expect(checkUnit(unit).errors).toEqual([expect.stringMatching(new RegExp(`${FIRST}${message}`))]);
  });

  test('accepts the unit UNKNOWN for an unlimited rule, and warns about its number', () => {
    const { errors, warnings, configs } = checkUnit(0, true);
    const warning = new RegExp(`${FIRST}rate_limit\\.requests_per_unit: .* has no effect`);
    expect([errors, warnings]).toEqual([[], [expect.stringMatching(warning)]]);
    expect(configs[0]?.descriptors[0]?.limits).toEqual([unlimited()]);
  });

  test('treats a limit without a number as 0, and warns where that rejects every request', () => {
    const { errors, warnings } = check({ key: 'a', rateLimit: limit(0, 'MINUTE') });
    const warning = new RegExp(`${FIRST}rate_limit\\.requests_per_unit: a limit of 0 rejects every request`);
    expect([errors, warnings]).toEqual([[], [expect.stringMatching(warning)]]);
  });

  test('gives no advice about files', () => {
    const [empty, shop, again] = ['', 'shop', 'shop'].map((domain, i) => ruleResource(`r${i}`, domainConfig(domain)));
    const { errors, warnings } = checkResources(response([empty!, shop!, again!]), false);
    expect(errors).toEqual([expect.stringContaining('empty domain'), expect.stringContaining('duplicate domain')]);
    expect(warnings).toEqual([expect.stringContaining('no descriptors'), expect.stringContaining('no descriptors')]);
    // The words of the Go service.
    const texts = [...errors, ...warnings].map((line) => line.replaceAll('config file', ''));
    expect(texts.filter((line) => line.includes('file'))).toEqual([]);
  });

  test('rejects metadata that is not JSON', () => {
    const { errors } = check({ key: 'a', rateLimit: limit(1, 'MINUTE'), metadata: { x: Infinity } });
    const message = 'error parsing metadata: JSON cannot represent the number `.inf`';
    expect(errors).toEqual([expect.stringContaining(message)]);
  });

  test('rejects rules that are nested too deeply to be decoded', () => {
    let rule = ruleConfig({ key: 'a' });
    for (let depth = 0; depth < 150; depth += 1) rule = { ...ruleConfig({ key: 'a' }), descriptors: [rule] };
    expect(
      checkResources(response([ruleResource('deep', { domain: 'shop', descriptors: [rule] })]), false).errors,
    ).toEqual([expect.stringMatching(/^resource 1 of 1 cannot be decoded: /)]);
  });

  test('lists at most 50 errors and counts the others', () => {
    expect(check(...Array.from({ length: 60 }, () => ({ key: '' }))).errors.slice(50)).toEqual(['and 10 more errors']);
  });
});

function anyDomain(): fc.Arbitrary<DomainConfig> {
  const name = fc.constantFrom('', 'a', 'b', 'c*', '*c', 'yes', '010', 'ключ', 'x\ny');
  const anyJson = fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<JsonObject[string]>;
  // The generated decoder of protobuf structs drops a member of this name.
  const json = anyJson.filter((value) => !JSON.stringify(value).includes('"__proto__":'));
  const unit = fc.constantFrom('SECOND', 'MINUTE', 'WEEK', 'YEAR' as const);
  const naming = { name, replaces: fc.array(name, { maxLength: 2 }) };
  const aNumber = fc.constantFrom(0, 1, 5, 4_294_967_295, 4_294_967_296, 1e15, 1e15 + 1);
  const rateLimit = fc.oneof(
    fc.constant(undefined),
    fc.record({
      ...naming,
      unit,
      unitMultiplier: fc.constantFrom(1, 10, 11),
      algorithm: fc.constantFrom(undefined, 'token_bucket' as const, 'sliding_window' as const),
      burst: fc.constantFrom(undefined, 1, 4_294_967_295),
      postpaid: fc.boolean(),
      lease: fc.constantFrom(undefined, true, false),
      calendar: fc.option(
        fc.record({ timeZone: fc.constantFrom('UTC', 'Europe/Berlin', 'BST'), startsOn: fc.constantFrom(1, 7, 15) }),
        { nil: undefined },
      ),
      requestsPerUnit: aNumber,
      unlimited: fc.constant(false),
    }),
    fc
      .record({ ...naming, unit: fc.option(unit, { nil: undefined, freq: 4 }) })
      .map((more) => ({ ...unlimited(), ...more })),
  );
  const metadata = fc.option(fc.dictionary(fc.constantFrom('a', 'b', '<<', '1'), json), { nil: undefined });
  const modes = { shadowMode: fc.boolean(), quotaMode: fc.boolean(), detailedMetric: fc.boolean() };
  function rulesOf(descriptors: fc.Arbitrary<readonly RuleSketch[]>): fc.Arbitrary<readonly RuleSketch[]> {
    const values = fc.oneof(
      { weight: 3, arbitrary: fc.record({ value: name }) },
      fc.record({ value: fc.constantFrom('', 'a'), valueIn: fc.array(name, { minLength: 1, maxLength: 3 }) }),
      fc.record({ value: fc.constant(''), valueCidr: fc.constantFrom('10.0.0.0/8', '::/0', '10.0.0.1/8', 'a') }),
      fc.record({ value: fc.constant(''), valueRegex: fc.constantFrom('a', '(', 'x{1000}{2}', '^b*$') }),
    );
    const rule = fc
      .record({ key: name, values, rateLimit, ...modes, metadata, descriptors })
      .map(({ values: matched, ...rest }) => ({ ...rest, ...matched }));
    return fc.array(rule, { maxLength: 2 });
  }
  const rules = rulesOf(rulesOf(rulesOf(fc.constant([])))).map((sketches) => sketches.map(ruleConfig));
  const unmatched = fc.oneof(
    fc.constantFrom(undefined, DENY, { ...DENY, value: 'x' }),
    rateLimit.map((each) => each && ruleConfig({ key: 'default_rate_limit', rateLimit: each })),
  );
  return fc.record({ domain: fc.constantFrom('shop', 'api', 'web', ''), descriptors: rules, unmatched });
}
