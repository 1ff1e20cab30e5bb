import fc from 'fast-check';
import { DiscoveryResponse } from '../../../../src/gen/envoy/service/discovery/v3/discovery';
import type { Any } from '../../../../src/gen/google/protobuf/any';
import type { RateLimitUnit } from '../../../../src/gen/ratelimit/config/ratelimit/v3/rls_conf';
import { readRuleFiles } from '../../../../src/rules/files/read-rule-files';
import { linesOf } from '../../../support/data/rules';
import type { DomainConfig, JsonObject, RuleConfig } from '../../../../src/rules/rule-config';
import { buildRuleset } from '../../../../src/rules/ruleset';
import { checkResources } from '../../../../src/sources/xds/resources/check-resources';
import { RULES_TYPE_URL } from '../../../../src/sources/xds/ads';
import { resourceOf, ruleResource } from '../../../support/data/rule-resources';
import { domainConfig, limit, ruleConfig, unlimited } from '../../../support/data/rules';

/** The limit of the errors and warnings that are listed; the others are only counted. */
const MOST_LINES = 50;

function response(resources: readonly Any[]): Uint8Array {
  return DiscoveryResponse.encode({
    versionInfo: '1',
    resources: [...resources],
    canary: false,
    typeUrl: RULES_TYPE_URL,
    nonce: 'n',
  }).finish();
}

/** Rules as the text of the equivalent rule file; JSON is YAML. */
function ruleFile({ domain, descriptors }: DomainConfig): string {
  return JSON.stringify({ domain, descriptors: descriptors.map(fileRule) });
}

function fileRule(rule: RuleConfig): object {
  const { key, value, rateLimit, shadowMode, quotaMode, detailedMetric, metadata, descriptors } = rule;
  return {
    key,
    ...(value !== '' && { value }),
    ...(rateLimit !== undefined && { rate_limit: fileLimit(rateLimit) }),
    ...(shadowMode && { shadow_mode: true }),
    ...(quotaMode && { quota_mode: true }),
    ...(detailedMetric && { detailed_metric: true }),
    ...(metadata !== undefined && { metadata }),
    ...(descriptors.length > 0 && { descriptors: descriptors.map(fileRule) }),
  };
}

function fileLimit({ unit, requestsPerUnit, name, replaces, ...rest }: NonNullable<RuleConfig['rateLimit']>): object {
  return {
    ...(unit !== undefined && { unit: unit.toLowerCase() }),
    ...((!rest.unlimited || requestsPerUnit !== 0) && { requests_per_unit: requestsPerUnit }),
    ...(rest.unlimited && { unlimited: true }),
    ...(name !== '' && { name }),
    ...(replaces.length > 0 && { replaces: replaces.map((each) => ({ name: each })) }),
  };
}

/** Checks the same rules in both forms. Positions are removed from the messages: a file has lines, a resource has fields. */
function bothForms(configs: readonly DomainConfig[], mergeDomainConfigs = false) {
  const names = configs.map((_, index) => `part-${String(index).padStart(3, '0')}`);
  const files = readRuleFiles(
    configs.map((config, index) => ({ path: names[index] ?? '', content: Buffer.from(ruleFile(config)) })),
    { mergeDomainConfigs },
  );
  const resources = checkResources(
    response(configs.map((config, index) => ruleResource(names[index] ?? '', config)).toReversed()),
    mergeDomainConfigs,
  );
  function messages(lines: readonly string[]) {
    return sorted(lines.map((line) => /^resource '[^']*'(?:, \S+)?: (.*)$/s.exec(line)?.[1] ?? line));
  }
  return {
    files: {
      configs: files.configs,
      errors: sorted(files.errors.map(({ message, advice }) => `${message}. ${advice}`)),
      warnings: sorted(files.warnings.map(({ message, advice }) => `${message}. ${advice}`)),
    },
    resources: {
      configs: resources.configs,
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
    .replaceAll(/(?:PART, )?(?:line \d+|descriptors\[\d+\]\S*?)(?=[ ;])/g, 'POSITION');
}

const GOOD = [
  domainConfig(
    'shop',
    { key: 'plain', rateLimit: limit(5, 'MINUTE') },
    { key: 'plain', value: 'exact', rateLimit: limit(4_294_967_295, 'SECOND'), shadowMode: true },
    { key: 'plain', value: 'pre*post', rateLimit: limit(7, 'HOUR'), detailedMetric: true },
    { key: 'value', value: '010', rateLimit: limit(1, 'DAY') },
    { key: 'value', value: 'yes', rateLimit: limit(0, 'WEEK') },
    { key: 'value', value: '~', rateLimit: limit(1, 'MONTH') },
    { key: 'value', value: '<<', rateLimit: limit(1, 'YEAR'), quotaMode: true },
    { key: 'named', rateLimit: limit(1, 'MINUTE', { name: 'one' }) },
    { key: 'replacing', rateLimit: limit(1, 'MINUTE', { name: 'two', replaces: ['one'] }) },
    { key: 'free', rateLimit: unlimited({ name: 'three' }) },
    { key: 'whitelisted' },
    {
      key: 'outer',
      descriptors: [
        {
          key: 'inner',
          value: 'x',
          rateLimit: limit(2, 'MINUTE'),
          descriptors: [{ key: 'innermost', rateLimit: limit(1, 'MINUTE') }],
        },
      ],
    },
    {
      key: 'tagged',
      rateLimit: limit(3, 'MINUTE'),
      metadata: {
        text: 'yes',
        number: 1.5,
        large: 1e21,
        small: 1e-7,
        negative: -3,
        truth: true,
        nothing: null,
        list: [1, 'a', [false]],
        object: { '<<': { deep: '010' } },
        '': '',
      },
    },
  ),
  domainConfig('api', { key: 'path', rateLimit: limit(1, 'MINUTE') }),
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
        fc.pre(configs.length > 0 && files.errors.length <= MOST_LINES && files.warnings.length <= MOST_LINES);
        expect(resources).toEqual(files);
      }),
      { numRuns: 150 },
    );
  });

  test.each<[string, DomainConfig, string]>([
    [
      'an empty domain',
      domainConfig('', { key: 'a', rateLimit: limit(1, 'MINUTE') }),
      'config file cannot have empty domain',
    ],
    ['an empty key', domainConfig('shop', { key: '' }), 'descriptor has empty key'],
    [
      'a duplicate rule',
      domainConfig('shop', { key: 'a', value: 'b' }, { key: 'a', value: 'b' }),
      "duplicate descriptor composite key 'shop.a_b'",
    ],
    [
      'an empty replaces entry',
      domainConfig('shop', { key: 'a', rateLimit: limit(1, 'MINUTE', { replaces: [''] }) }),
      'should not have an empty replaces entry',
    ],
    [
      'a rule that replaces itself',
      domainConfig('shop', { key: 'a', rateLimit: limit(1, 'MINUTE', { name: 'x', replaces: ['x'] }) }),
      'replaces should not contain name of same descriptor',
    ],
    [
      'a unit of an unlimited rule',
      domainConfig('shop', { key: 'a', rateLimit: unlimited({ unit: 'MINUTE' }) }),
      'should not specify rate limit unit when unlimited',
    ],
    [
      'metadata that is not JSON',
      domainConfig('shop', { key: 'a', rateLimit: limit(1, 'MINUTE'), metadata: { x: Infinity } }),
      'error parsing metadata: JSON cannot represent the number `.inf`',
    ],
  ])('reject %s with the same text', (_, config, message) => {
    const { resources } = bothForms([config]);
    expect(resources.errors).toEqual([expect.stringContaining(`${message}. `)]);
    if (!message.startsWith('error parsing metadata'))
      expect(resources.errors).toEqual(bothForms([config]).files.errors);
  });

  test('reject a duplicate domain with the same text', () => {
    const { files, resources } = bothForms([domainConfig('shop', { key: 'a' }), domainConfig('shop', { key: 'b' })]);
    expect(files.errors).toEqual([
      "duplicate domain 'shop' in config file. PART already describes this domain: join the files, or set MERGE_DOMAIN_CONFIG=true.",
    ]);
    expect(resources.errors).toEqual(files.errors);
  });
});

describe('checkResources', () => {
  function policy(unit: number, isUnlimited = false) {
    const rateLimit = {
      // oxlint-disable-next-line no-unsafe-enum-assignment -- a server may send a value that the enum does not define
      unit: unit as RateLimitUnit,
      requestsPerUnit: 1,
      unlimited: isUnlimited,
      name: '',
      replaces: [],
    };
    const rest = {
      value: '',
      shadowMode: false,
      detailedMetric: false,
      quotaMode: false,
      metadata: undefined,
      descriptors: [],
    };
    const resource = resourceOf({ name: 'r', domain: 'shop', descriptors: [{ key: 'a', rateLimit, ...rest }] });
    return checkResources(response([resource]), false);
  }

  test.each([
    [0, 'UNKNOWN'],
    [8, '8'],
    [99, '99'],
    [-3, '-3'],
  ])('rejects the unit %i by its name', (unit, shown) => {
    expect(policy(unit).errors).toEqual([
      expect.stringMatching(
        new RegExp(`^resource 'r', descriptors\\[0\\]\\.rate_limit\\.unit: invalid rate limit unit '${shown}'\\. `),
      ),
    ]);
  });

  test('accepts the unit UNKNOWN for an unlimited rule, and warns about its number', () => {
    const { errors, warnings, configs } = policy(0, true);
    expect(errors).toEqual([]);
    expect(warnings).toEqual([
      expect.stringMatching(/^resource 'r', descriptors\[0\]\.rate_limit\.requests_per_unit: .* has no effect/),
    ]);
    expect(configs[0]?.descriptors[0]?.rateLimit).toEqual(unlimited());
  });

  test('treats a limit without a number as 0, and warns where that rejects every request', () => {
    const resource = ruleResource('r', domainConfig('shop', { key: 'a', rateLimit: limit(0, 'MINUTE') }));
    expect(checkResources(response([resource]), false)).toMatchObject({
      errors: [],
      warnings: [
        expect.stringMatching(
          /^resource 'r', descriptors\[0\]\.rate_limit\.requests_per_unit: a limit of 0 rejects every request/,
        ),
      ],
    });
  });

  test('rejects rules that are nested too deeply to be decoded', () => {
    let rule = ruleConfig({ key: 'a' });
    for (let depth = 0; depth < 150; depth += 1) rule = { ...ruleConfig({ key: 'a' }), descriptors: [rule] };
    expect(
      checkResources(response([ruleResource('deep', { domain: 'shop', descriptors: [rule] })]), false).errors,
    ).toEqual([expect.stringMatching(/^resource 1 of 1 cannot be decoded: /)]);
  });

  test('lists at most 50 errors and counts the others', () => {
    const resource = ruleResource('r', domainConfig('shop', ...Array.from({ length: 60 }, () => ({ key: '' }))));
    const { errors } = checkResources(response([resource]), false);
    expect(errors).toHaveLength(51);
    expect(errors.at(-1)).toBe('and 10 more errors');
  });
});

function anyDomain(): fc.Arbitrary<DomainConfig> {
  const name = fc.constantFrom('', 'a', 'b', 'c*', '*c', 'yes', '010', 'ключ', 'x\ny');
  const json = fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<JsonObject[string]>;
  const unit = fc.constantFrom('SECOND', 'MINUTE', 'WEEK', 'YEAR' as const);
  const aLimit = fc.record({
    unit,
    requestsPerUnit: fc.constantFrom(0, 1, 5, 4_294_967_295),
    unlimited: fc.constant(false),
    name,
    replaces: fc.array(name, { maxLength: 2 }),
  });
  const noLimit = fc.record({
    unit: fc.option(unit, { nil: undefined, freq: 4 }),
    requestsPerUnit: fc.constant(0),
    unlimited: fc.constant(true),
    name,
    replaces: fc.array(name, { maxLength: 2 }),
  });
  function rulesOf(descriptors: fc.Arbitrary<readonly RuleConfig[]>) {
    return fc.array(
      fc.record<RuleConfig>({
        key: name,
        value: name,
        rateLimit: fc.oneof(fc.constant(undefined), aLimit, noLimit),
        shadowMode: fc.boolean(),
        quotaMode: fc.boolean(),
        detailedMetric: fc.boolean(),
        valueToMetric: fc.constant(false),
        shareThreshold: fc.constant(false),
        metadata: fc.option(fc.dictionary(fc.constantFrom('a', 'b', '<<', '1'), json), { nil: undefined }),
        descriptors,
      }),
      { maxLength: 2 },
    );
  }
  const rules = rulesOf(rulesOf(rulesOf(fc.constant([]))));
  return fc.record({ domain: fc.constantFrom('shop', 'api', 'web', ''), descriptors: rules });
}
