import { KEY_TOLERANCE, nearestName } from '../../text/nearest-name';
import { ALGORITHMS, FAILURE_POLICIES, LARGEST_LIMIT } from '../rule-config';
import type { AdvisedCode, ProblemCode } from './problems/problem';

/**
 * A kind of value. `text`: a scalar of any type, as it is written. `texts`: a list of these. `choice`: one of certain
 * texts. `flag`: a boolean. `count`: a whole number. `list`: mappings. `section`: a mapping.
 * `data`: any value, which its reader checks.
 */
export type FieldKind = 'text' | 'texts' | 'choice' | 'flag' | 'count' | 'list' | 'section' | 'data';

/** What the value of a field must be. */
export interface FieldType {
  readonly kind: FieldKind;
  /**
   * What it means that the field has no value, for a warning; absent when that is no problem, or a problem of its own.
   */
  readonly empty?: string;
  /** How to write the value, where the kind alone does not say it. */
  readonly advice?: string;
  /** What to write instead of a list. */
  readonly listAdvice?: string;
  /** The code of the problem that a number is not valid. */
  readonly code?: ProblemCode;
  /** The texts of a choice, what they are, for a message, and the code of any other text. */
  readonly choices?: { readonly texts: readonly string[]; readonly what: string; readonly code: AdvisedCode };
  /** The smallest number that is valid; absent: 0. */
  readonly least?: number;
  /** The largest one; absent: 2^32 - 1. */
  readonly most?: number;
  /**
   * Whether a `null` that is written out is reported as well, unless there are nested rules or `rate_limits`, for which
   * it is usual.
   */
  readonly isLimit?: true;
  /** Whether a flag that is false is something else than its absence. */
  readonly isKeptFalse?: true;
  /** Whether it is without effect, and no mistake: tools write it. */
  readonly isIgnored?: true;
  /** Whether a mapping that is assigned again extends the one before it, key by key; otherwise it replaces it. */
  readonly isJoined?: true;
}

const FLAG = { kind: 'flag', empty: 'it is read as false' } as const;
const LIMIT = {
  kind: 'section',
  empty: 'the rule has no limit',
  advice: 'Write `unit` and `requests_per_unit` below it.',
  isJoined: true,
  isLimit: true,
} as const;
function prefixLength(most: number) {
  return { kind: 'count', code: 'invalid-address-prefix', least: 1, most } as const;
}

const RULES = { kind: 'list', empty: 'it contains no rules' } as const;

/** The keys that have a meaning, by the mapping that contains them. The JSON schema of rule files has the same ones. */
export const FIELDS = {
  'top level': {
    domain: { kind: 'text' },
    name: { kind: 'text', isIgnored: true },
    // A problem of its own.
    descriptors: { kind: 'list' },
    default_rate_limit: { ...LIMIT, empty: 'descriptors that match no rule have no limit' },
    on_unmatched: {
      kind: 'choice',
      empty: 'descriptors that match no rule are allowed',
      choices: {
        texts: ['allow', 'deny'],
        what: 'policy for descriptors that match no rule',
        code: 'invalid-unmatched-policy',
      },
    },
  },
  descriptor: {
    key: { kind: 'text' },
    value: { kind: 'text', empty: 'the rule matches any value' },
    value_in: { kind: 'texts', empty: 'the rule matches any value' },
    value_cidr: { kind: 'text', empty: 'the rule matches any value' },
    value_regex: { kind: 'text', empty: 'the rule matches any value' },
    rate_limit: { ...LIMIT, listAdvice: 'Write `rate_limits` for a list of limits.' },
    rate_limits: { kind: 'list', empty: 'the rule has no limit' },
    all_or_nothing: FLAG,
    descriptors: RULES,
    shadow_mode: FLAG,
    enforce_percent: {
      kind: 'count',
      empty: 'the limit is enforced for all callers',
      code: 'invalid-enforce-percent',
      most: 100,
    },
    quota_mode: FLAG,
    on_store_failure: {
      kind: 'choice',
      empty: 'STORE_FAILURE_POLICY decides',
      choices: { texts: FAILURE_POLICIES, what: 'policy for a failure of the store', code: 'invalid-failure-policy' },
    },
    detailed_metric: FLAG,
    value_to_metric: FLAG,
    share_threshold: FLAG,
    address_prefix: {
      kind: 'section',
      empty: 'addresses are counted as they are sent',
      advice: 'Write `ipv4`, `ipv6` or both below it, such as `ipv6: 64`.',
    },
    metadata: { kind: 'data', empty: 'the rule has none', isJoined: true },
  },
  rate_limit: {
    unit: { kind: 'text' },
    unit_multiplier: { kind: 'count', empty: 'the window is one unit', code: 'invalid-unit-multiplier', least: 1 },
    calendar: {
      kind: 'section',
      empty: 'the window has a fixed length',
      advice: 'Write `time_zone` and, for a week or month, `starts_on` below it.',
    },
    requests_per_unit: { kind: 'count', code: 'invalid-requests-per-unit', most: LARGEST_LIMIT },
    algorithm: {
      kind: 'choice',
      empty: 'hits are counted in fixed windows',
      choices: { texts: ALGORITHMS, what: 'algorithm', code: 'invalid-algorithm' },
    },
    burst: { kind: 'count', empty: 'it is requests_per_unit', code: 'invalid-burst', least: 1 },
    max_concurrent: { kind: 'count', empty: 'hits are counted', code: 'invalid-max-concurrent', most: 10_000 },
    postpaid: FLAG,
    lease: { kind: 'flag', empty: 'LEASES decides', isKeptFalse: true },
    active: {
      kind: 'section',
      empty: 'the limit always applies',
      advice: 'Write `time_zone` and `ranges` below it.',
    },
    block_for: { kind: 'data', empty: 'only calls that are over the limit are denied' },
    unlimited: FLAG,
    name: { kind: 'text' },
    replaces: { kind: 'list', empty: 'the rule replaces nothing' },
  },
  calendar: { time_zone: { kind: 'text' }, starts_on: { kind: 'text' } },
  active: { time_zone: { kind: 'text' }, ranges: { kind: 'list' } },
  'active range': { days: { kind: 'texts', empty: 'it is every day' }, from: { kind: 'text' }, to: { kind: 'text' } },
  block_for: {
    first: { kind: 'text' },
    factor: { kind: 'count', empty: 'it is 1', code: 'invalid-block-for', least: 1, most: 10 },
    most: { kind: 'text' },
    forgotten_after: { kind: 'text' },
  },
  address_prefix: { ipv4: prefixLength(32), ipv6: prefixLength(128) },
  replaces: { name: { kind: 'text' } },
} as const satisfies Readonly<Record<string, Readonly<Record<string, FieldType>>>>;

export type Section = keyof typeof FIELDS;

/** The names of the fields of a section, or of those of one kind. */
export type FieldName<S extends Section, K extends FieldKind = FieldKind> = {
  [Name in keyof (typeof FIELDS)[S]]: (typeof FIELDS)[S][Name] extends { readonly kind: K } ? Name : never;
}[keyof (typeof FIELDS)[S]] &
  string;

/** The texts that a field may have. */
export type Choice<S extends Section, N extends keyof (typeof FIELDS)[S]> = (typeof FIELDS)[S][N] extends {
  readonly choices: { readonly texts: readonly (infer Text)[] };
}
  ? Text
  : never;

const PLACES: Readonly<Record<Section, string>> = {
  'top level': 'at the top level',
  descriptor: 'in a descriptor',
  rate_limit: 'in `rate_limit`',
  calendar: 'in `calendar`',
  active: 'in `active`',
  'active range': 'in a range of `active`',
  block_for: 'in `block_for`',
  address_prefix: 'in `address_prefix`',
  replaces: 'in an entry of `replaces`',
};

const sections = new Map(
  Object.entries(FIELDS).map(([section, fields]) => [section, new Map(Object.entries<FieldType>(fields))]),
);
const everywhere = new Set(Object.keys(FIELDS).flatMap((section) => effectiveKeys(section as Section)));

function effectiveKeys(section: Section): readonly string[] {
  return Object.keys(FIELDS[section]).filter((key) => fieldType(section, key)?.isIgnored !== true);
}

/** The type of a field; undefined when the key has no meaning in this section. */
export function fieldType(section: Section, key: string): FieldType | undefined {
  return sections.get(section)?.get(key);
}

/**
 * The problem of a key that has no meaning in a section, as the rest of a sentence if it has one elsewhere: the Go
 * service accepts it.
 */
export function misplacement(section: Section, key: string): { message: string; advice: string } | undefined {
  if (!everywhere.has(key)) return undefined;
  return {
    message: `\`${key}\` has no effect ${PLACES[section]}`,
    advice: `It has an effect only ${placesOf(key)}; move it there, or remove it.`,
  };
}

/** The advice for a key that is unknown: the known key that was probably meant. */
export function suggestKey(section: Section, key: string): string {
  const here = nearestName(key, effectiveKeys(section), KEY_TOLERANCE);
  if (here !== undefined) return `Did you mean \`${here}\`?`;
  const elsewhere = nearestName(key, everywhere, KEY_TOLERANCE);
  if (elsewhere === undefined) return listKeys(section);
  return `Did you mean \`${elsewhere}\`? It belongs ${placesOf(elsewhere)}.`;
}

export function listKeys(section: Section): string {
  const names = effectiveKeys(section).map((name) => `\`${name}\``);
  return `The keys allowed here are ${names.join(', ')}.`;
}

function placesOf(key: string): string {
  return Object.entries(PLACES)
    .flatMap(([section, place]) => (effectiveKeys(section as Section).includes(key) ? [place] : []))
    .join(' or ');
}
