/** The kinds of mappings in a rule file, by their place in the file. */
export type Section = 'top level' | 'descriptor' | 'rate_limit' | 'replaces';

/** The keys that have a meaning in each section. */
export const KNOWN_KEYS = {
  'top level': ['domain', 'descriptors'],
  descriptor: [
    'key',
    'value',
    'rate_limit',
    'descriptors',
    'shadow_mode',
    'quota_mode',
    'detailed_metric',
    'value_to_metric',
    'share_threshold',
    'metadata',
  ],
  rate_limit: ['unit', 'requests_per_unit', 'unlimited', 'name', 'replaces'],
  replaces: ['name'],
} as const satisfies Readonly<Record<Section, readonly string[]>>;

const sections = ['top level', 'descriptor', 'rate_limit', 'replaces'] as const satisfies readonly Section[];
const bySection = new Map<Section, ReadonlySet<string>>(
  sections.map((section) => [section, new Set(KNOWN_KEYS[section])]),
);
const everywhere = new Set<string>(sections.flatMap((section) => KNOWN_KEYS[section]));

/** Whether a key has a meaning in this section. */
export function isKnownIn(section: Section, key: string): boolean {
  return bySection.get(section)?.has(key) === true;
}

/** Whether a key has a meaning in any section: the Go service accepts it in all of them. */
export function isKnownAnywhere(key: string): boolean {
  return everywhere.has(key);
}

/** Every key that has a meaning in any section. */
export const ALL_KEYS: Iterable<string> = everywhere;

/** The sections in which a key has a meaning. */
export function sectionsOf(key: string): readonly Section[] {
  return sections.filter((section) => isKnownIn(section, key));
}
