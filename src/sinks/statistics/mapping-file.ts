import { parse } from 'yaml';
import { parseNanoseconds } from '../../text/duration';
import { messageOf } from '../../text/thrown';
import { DEFAULT_SUMMARY } from './built-in-mapping';
import {
  type Mapping,
  type MappingTable,
  type Observer,
  type StatisticType,
  type Template,
  globPattern,
  templateOf,
  undefinedReferences,
} from './mapping';
import { type Pattern, compileRe2 } from '../../text/re2';

export interface MappingFile extends MappingTable {
  /** One sentence for each valid part of the file that has no effect. */
  readonly warnings: readonly string[];
}

const TYPES: Readonly<Record<string, StatisticType>> = {
  counter: 'counter',
  gauge: 'gauge',
  observer: 'observer',
  timer: 'observer',
};
// Where digits follow a reference to a group, all of them belong to it: otherwise the time would be exponential.
const METRIC_NAME = /^(?:[A-Za-z_:]|\$\{?\d+(?!\d)\}?)(?:[\w:]|\$\{?\d+(?!\d)\}?)*$/;
const LABEL_NAME = /^[A-Za-z_]\w*$/;

const OBSERVER_KEYS = ['observer_type', 'timer_type', 'buckets', 'quantiles', 'histogram_options', 'summary_options'];
const HISTOGRAM_KEYS = ['buckets', 'native_histogram_bucket_factor', 'native_histogram_max_buckets'];
const DEFAULT_KEYS = [...OBSERVER_KEYS, 'match_type', 'glob_disable_ordering', 'ttl'];
const MAPPING_KEYS = [
  ...OBSERVER_KEYS,
  ...['match', 'match_type', 'match_metric_type', 'name', 'labels', 'help', 'action', 'scale', 'honor_labels', 'ttl'],
];

const MATCH_TYPES = ['glob', 'regex'] as const;
/** What the mappings of a file inherit from its `defaults`. */
interface Defaults {
  readonly matchType: (typeof MATCH_TYPES)[number];
  readonly observer: Observer;
}

/**
 * Reads a mapping file in the statsd exporter's format, including its older forms (`timer_type`, and `buckets` and
 * `quantiles` directly in a mapping).
 *
 * @throws when the file is invalid, with the place: `mappings[2].labels: …`
 */
export function readMappingFile(text: string): MappingFile {
  const root = new FileMap(parseYaml(text), '', ['defaults', 'mappings']);
  const map = root.map('defaults', DEFAULT_KEYS);
  const defaults = {
    matchType: map.choice('match_type', MATCH_TYPES) ?? 'glob',
    observer: readObserver(map, DEFAULT_SUMMARY),
  };
  const mappings = root.maps('mappings', MAPPING_KEYS).map((each) => readMapping(each, defaults));
  const warnings = mappings.filter(({ isDropped }) => !isDropped).flatMap(referenceWarnings);
  if (text.includes('ttl:')) {
    warnings.unshift('ttl has no effect: statistics are kept for the lifetime of the process.');
  }
  return {
    mappings,
    unmapped: defaults.observer,
    isMostSpecificFirst: map.boolean('glob_disable_ordering'),
    warnings,
  };
}

/** The statsd exporter expands such references to empty strings without a warning. */
function referenceWarnings(mapping: Mapping): readonly string[] {
  return undefinedReferences(mapping).map(
    (reference) =>
      `the mapping for ${mapping.glob ?? mapping.match.source} has no group for ${reference}, which ` +
      `expands to an empty string; a group followed by text is written \${1}.`,
  );
}

/** Every scalar is a text, as it is written: as YAML reads them, `n` in a name would be a boolean and `010` eight. */
function parseYaml(text: string): unknown {
  try {
    return parse(text, { schema: 'failsafe', merge: true, logLevel: 'error' });
  } catch (error) {
    const [message] = messageOf(error).split(':\n');
    throw new Error(message, { cause: error });
  }
}

function readMapping(map: FileMap, defaults: Defaults): Mapping {
  const match = map.string('match') || map.fail('a mapping requires match');
  const matchType = map.choice('match_type', MATCH_TYPES) ?? defaults.matchType;
  const isDropped = map.choice('action', ['map', 'drop']) === 'drop';
  const name = map.string('name') ?? '';
  if (!isDropped && name === '') map.fail(`the mapping for ${match} requires name`);
  if (name !== '' && !METRIC_NAME.test(name)) map.fail(`${name} is not a valid metric name`);
  const observer = readObserver(map, defaults.observer);
  const type = map.choice('match_metric_type', Object.keys(TYPES));
  return {
    match: matchType === 'regex' ? readRegex(map, match) : readGlob(map, match),
    glob: matchType === 'regex' ? undefined : match,
    type: type === undefined ? undefined : TYPES[type],
    isDropped,
    name: templateOf(name, matchType),
    help: map.string('help'),
    labels: readLabels(map.map('labels'), observer, matchType),
    honorLabels: map.boolean('honor_labels'),
    observer,
    scale: map.number('scale') ?? 1,
  };
}

function readRegex(map: FileMap, match: string): Pattern {
  try {
    return compileRe2(match);
  } catch (error) {
    return map.fail(`${match} is not a valid regular expression: ${messageOf(error)}`);
  }
}

function readGlob(map: FileMap, match: string): Pattern {
  if (match.split('.').some((component) => component === '' || (component.includes('*') && component !== '*'))) {
    map.fail(
      `${match} is not a valid glob: * must be all of a component between two dots; for other ` +
        'patterns use match_type: regex',
    );
  }
  return globPattern(match);
}

function readLabels(map: FileMap, { kind }: Observer, matchType: Defaults['matchType']): Mapping['labels'] {
  const reserved = kind === 'histogram' ? 'le' : 'quantile';
  const labels: Record<string, Template> = {};
  for (const label of map.keys()) {
    if (!LABEL_NAME.test(label)) map.fail(`${label} is not a valid label name`);
    if (label === reserved) map.fail(`the label ${label} is reserved: every ${kind} has one`);
    labels[label] = templateOf(map.string(label) ?? '', matchType);
  }
  return labels;
}

/** Reads the options in their present form, or in the older one directly in the map; what is absent is inherited. */
function readObserver(map: FileMap, inherited: Observer): Observer {
  const kinds = ['histogram', 'summary'] as const;
  const histogram = map.map('histogram_options', HISTOGRAM_KEYS);
  const summary = map.map('summary_options', ['quantiles', 'max_age', 'age_buckets', 'buf_cap']);
  const kind = map.choice('observer_type', kinds) ?? map.choice('timer_type', kinds) ?? inherited.kind;
  const buckets = readBuckets(histogram) ?? readBuckets(map) ?? inherited.buckets;
  const quantiles = readQuantiles(summary) ?? readQuantiles(map) ?? inherited.quantiles;
  return { kind, buckets, quantiles, maxAge: summary.duration('max_age') ?? inherited.maxAge };
}

function readBuckets(map: FileMap): readonly number[] | undefined {
  const buckets = map.numbers('buckets');
  if (buckets.length === 0) return undefined;
  if (buckets.some((bound, index) => index > 0 && bound <= (buckets[index - 1] as number))) {
    map.fail('each bucket must be larger than the previous one');
  }
  // The infinite bucket is always written.
  return buckets.filter(Number.isFinite);
}

function readQuantiles(map: FileMap): readonly number[] | undefined {
  const quantiles = map.maps('quantiles', ['quantile', 'error']).map((item) => {
    const quantile = item.number('quantile') ?? item.fail('each item of quantiles requires quantile');
    if (quantile < 0 || quantile > 1) item.fail(`${quantile} is not between 0 and 1`);
    return quantile;
  });
  return quantiles.length === 0 ? undefined : quantiles;
}

const TRUE = /^(?:true|yes|on|y)$/i;
const FALSE = /^(?:false|no|off|n)$/i;

/** A map of the file, with readers for its members by type. A map that is absent or null has no members. */
class FileMap {
  readonly #path: string;
  readonly #members: ReadonlyMap<string, unknown>;

  /**
   * @param path where the map is in the file, for error messages; empty for the file itself
   * @param known the keys that it may have; undefined: any
   */
  constructor(value: unknown, path: string, known?: readonly string[]) {
    this.#path = path;
    if (!isNull(value) && (typeof value !== 'object' || Array.isArray(value))) this.fail('it must be a map');
    this.#members = new Map(isNull(value) ? [] : Object.entries(Object(value)));
    const unknown = known && [...this.keys()].find((key) => !known.includes(key));
    if (unknown !== undefined) this.fail(`unknown key ${unknown}; known keys: ${known?.join(', ')}`);
  }

  keys(): Iterable<string> {
    return this.#members.keys();
  }

  string(key: string): string | undefined {
    const value = this.#members.get(key);
    return value === undefined || typeof value === 'string' ? value : this.fail(`${key} must be a scalar value`);
  }

  number(key: string): number | undefined {
    return this.#read(key, 'a number', (text) => (Number.isFinite(Number(text)) ? Number(text) : undefined));
  }

  /** False when absent. */
  boolean(key: string): boolean {
    return (
      this.#read(key, 'true or false', (text) => TRUE.test(text) || (FALSE.test(text) ? false : undefined)) ?? false
    );
  }

  choice<Choice extends string>(key: string, choices: readonly Choice[]): Choice | undefined {
    return this.#read(key, `one of ${choices.join(', ')}`, (text) => choices.find((choice) => choice === text));
  }

  /** In milliseconds. */
  duration(key: string): number | undefined {
    return this.#read(key, 'a duration such as 10m', (text) => {
      const nanoseconds = parseNanoseconds(text) ?? 0n;
      return nanoseconds > 0n ? Number(nanoseconds) / 1e6 : undefined;
    });
  }

  numbers(key: string): readonly number[] {
    return this.#items(key).map((item) => {
      const value = item === '.inf' || item === '+.inf' ? Infinity : Number(item === '' ? Number.NaN : item);
      return Number.isNaN(value) ? this.fail(`${key} must be a list of numbers`) : value;
    });
  }

  maps(key: string, known: readonly string[]): readonly FileMap[] {
    return this.#items(key).map((item, index) => new FileMap(item, `${this.#pathOf(key)}[${index}]`, known));
  }

  map(key: string, known?: readonly string[]): FileMap {
    return new FileMap(this.#members.get(key), this.#pathOf(key), known);
  }

  /** @throws always */
  fail(message: string): never {
    throw new Error(this.#path === '' ? message : `${this.#path}: ${message}`);
  }

  /**
   * Undefined when it is absent or null.
   *
   * @param valueOf returns undefined for a text that is not `what` it must be
   */
  #read<T>(key: string, what: string, valueOf: (text: string) => T | undefined): T | undefined {
    const text = this.string(key);
    return isNull(text) ? undefined : (valueOf(text) ?? this.fail(`${key} must be ${what}`));
  }

  #items(key: string): readonly unknown[] {
    const value = this.#members.get(key);
    if (isNull(value)) return [];
    return Array.isArray(value) ? value : this.fail(`${key} must be a list`);
  }

  #pathOf(key: string): string {
    return this.#path === '' ? key : `${this.#path}.${key}`;
  }
}

/** Whether YAML reads a text as null, or a member is absent. */
function isNull(value: unknown): value is undefined | null | '' {
  return value === undefined || value === null || value === '' || value === '~' || value === 'null';
}
