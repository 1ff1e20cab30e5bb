import { type Node, LineCounter, isMap, isScalar, isSeq, parseDocument } from 'yaml';
import { ExpressionError, compileRe2 } from './re2';
import { referencesToNothing } from './fill-in';
import type { Mapping, MappingTable, Observer, Quantile, StatisticType } from './mapping';
import { USUAL_BUCKETS, USUAL_SUMMARY } from './built-in-mapping';

/** What is wrong with a mapping file, and where. */
export class MappingFileError extends Error {
  override readonly name = 'MappingFileError';
}

export interface MappingFile extends MappingTable {
  /** What is understood but has no effect; one sentence each. */
  readonly warnings: readonly string[];
}

const TYPES: Readonly<Record<string, StatisticType>> = {
  counter: 'counter',
  gauge: 'gauge',
  observer: 'observer',
  timer: 'observer',
};
const METRIC_NAME = /^(?:[A-Za-z_:]|\$\{?\d+\}?)(?:[\w:]|\$\{?\d+\}?)*$/;
const LABEL_NAME = /^[A-Za-z_]\w*$/;
const DURATION = /^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+$/;
const MILLISECONDS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1e3,
  m: 60e3,
  h: 3600e3,
};

const OBSERVER_KEYS = ['observer_type', 'timer_type', 'buckets', 'quantiles', 'histogram_options', 'summary_options'];
const DEFAULT_KEYS = [...OBSERVER_KEYS, 'match_type', 'glob_disable_ordering', 'ttl'];
const MAPPING_KEYS = [
  ...OBSERVER_KEYS,
  ...['match', 'match_type', 'match_metric_type', 'name', 'labels', 'help', 'action', 'scale', 'honor_labels', 'ttl'],
];

/**
 * Reads a file in the format of the statsd exporter's mappings, its older forms too (`timer_type`, and `buckets` and
 * `quantiles` of the mapping itself).
 *
 * @throws {MappingFileError} with the line
 */
export function readMappingFile(text: string): MappingFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { version: '1.1', lineCounter: lines, prettyErrors: false });
  const [broken] = document.errors;
  if (broken !== undefined) {
    throw new MappingFileError(`line ${lines.linePos(broken.pos[0]).line}: ${broken.message}`);
  }
  const root = new MappingFields(document.contents, 'the file', lines);
  root.allow(['defaults', 'mappings']);
  const defaults = root.fields('defaults');
  defaults.allow(DEFAULT_KEYS);
  const usual = readObserver(defaults, {
    kind: 'summary',
    buckets: USUAL_BUCKETS,
    quantiles: USUAL_SUMMARY.quantiles,
    maxAge: USUAL_SUMMARY.maxAge,
  });
  const isRegexUsual = defaults.choice('match_type', ['glob', 'regex']) === 'regex';
  const mappings = root.list('mappings').map((fields) => readMapping(fields, isRegexUsual, usual));
  const warnings = mappings.flatMap(({ match, name, labels, isDropped }) =>
    isDropped
      ? []
      : referencesToNothing(match, [name, ...Object.values(labels)]).map((written) => emptyAt(match, written)),
  );
  if (text.includes('ttl:')) warnings.unshift('ttl has no effect: statistics stay for the life of the process.');
  return {
    mappings,
    unmapped: observerOf(usual),
    isByExactness: defaults.flag('glob_disable_ordering'),
    warnings,
  };
}

/** As the statsd exporter has it, silently; text behind a group needs braces around the number. */
function emptyAt(match: Mapping['match'], written: string): string {
  const of = match instanceof RegExp ? match.source : match.join('.');
  return `the mapping of ${of} captures nothing that ${written} could be, so it is empty; a group with text behind it is written \${1}.`;
}

function readMapping(fields: MappingFields, isRegexUsual: boolean, usual: ObserverFields): Mapping {
  fields.allow(MAPPING_KEYS);
  const match = fields.text('match') ?? fields.fail('match', 'a mapping needs a match');
  const matchType = fields.choice('match_type', ['glob', 'regex']);
  const isRegex = matchType === undefined ? isRegexUsual : matchType === 'regex';
  const isDropped = fields.choice('action', ['map', 'drop']) === 'drop';
  const name = fields.text('name') ?? '';
  if (!isDropped && name === '') fields.fail('name', `the mapping of ${match} needs a name`);
  if (name !== '' && !METRIC_NAME.test(name)) fields.fail('name', `${name} cannot be the name of a metric`);
  const observer = observerOf(readObserver(fields, usual));
  const type = fields.choice('match_metric_type', Object.keys(TYPES));
  return {
    match: isRegex ? readExpression(fields, match) : readGlob(fields, match),
    type: type === undefined ? undefined : TYPES[type],
    isDropped,
    name,
    help: fields.text('help'),
    labels: readLabels(fields.fields('labels'), observer),
    honorLabels: fields.flag('honor_labels'),
    observer,
    scale: fields.number('scale') ?? 1,
  };
}

function readExpression(fields: MappingFields, match: string): RegExp {
  try {
    return compileRe2(match);
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return fields.fail('match', `${match} is no regular expression: ${error.message}`);
  }
}

function readGlob(fields: MappingFields, match: string): readonly string[] {
  const parts = match.split('.');
  if (parts.some((part) => part === '' || (part.includes('*') && part !== '*'))) {
    fields.fail(
      'match',
      `${match} is no glob: a * stands for all that is between two dots; else use match_type: regex`,
    );
  }
  return parts;
}

function readLabels(fields: MappingFields, observer: Observer): Readonly<Record<string, string>> {
  const reserved = observer.kind === 'histogram' ? 'le' : 'quantile';
  const labels: Record<string, string> = {};
  for (const label of fields.keys()) {
    if (!LABEL_NAME.test(label)) fields.fail(label, `${label} cannot be the name of a label`);
    if (label === reserved) fields.fail(label, `${label} is a label of every ${observer.kind} already`);
    labels[label] = fields.text(label) ?? '';
  }
  return labels;
}

/** All that is said of timers, for either kind. */
interface ObserverFields {
  readonly kind: 'histogram' | 'summary';
  readonly buckets: readonly number[];
  readonly quantiles: readonly Quantile[];
  readonly maxAge: number;
}

function observerOf({ kind, buckets, quantiles, maxAge }: ObserverFields): Observer {
  return kind === 'histogram' ? { kind, buckets } : { kind, quantiles, maxAge };
}

function readObserver(fields: MappingFields, usual: ObserverFields): ObserverFields {
  const kinds = ['histogram', 'summary'] as const;
  const histogram = fields.fields('histogram_options');
  histogram.allow(['buckets', 'native_histogram_bucket_factor', 'native_histogram_max_buckets']);
  const summary = fields.fields('summary_options');
  summary.allow(['quantiles', 'max_age', 'age_buckets', 'buf_cap']);
  const kind = fields.choice('observer_type', kinds) ?? fields.choice('timer_type', kinds) ?? usual.kind;
  const buckets = readBuckets(histogram) ?? readBuckets(fields) ?? usual.buckets;
  const quantiles = readQuantiles(summary) ?? readQuantiles(fields) ?? usual.quantiles;
  return { kind, buckets, quantiles, maxAge: summary.duration('max_age') ?? usual.maxAge };
}

function readBuckets(fields: MappingFields): readonly number[] | undefined {
  const buckets = fields.numbers('buckets');
  if (buckets === undefined || buckets.length === 0) return undefined;
  if (buckets.some((bound, index) => index > 0 && bound <= (buckets[index - 1] as number))) {
    fields.fail('buckets', 'each bucket must be larger than the one before it');
  }
  // The bucket above all others is always there.
  return buckets.filter(Number.isFinite);
}

function readQuantiles(fields: MappingFields): readonly Quantile[] | undefined {
  const quantiles = fields.list('quantiles').map((quantile) => {
    quantile.allow(['quantile', 'error']);
    const share = quantile.number('quantile') ?? quantile.fail('quantile', 'a quantile needs its quantile');
    if (share < 0 || share > 1) quantile.fail('quantile', `${share} is not between 0 and 1`);
    return { share };
  });
  return quantiles.length === 0 ? undefined : quantiles;
}

/** The members of one mapping of YAML; one that is not there has none. */
class MappingFields {
  readonly #node: Node | null | undefined;
  readonly #lines: LineCounter;
  readonly #members = new Map<string, Node | null>();

  constructor(node: Node | null | undefined, what: string, lines: LineCounter) {
    this.#node = node;
    this.#lines = lines;
    if (node === null || node === undefined || (isScalar(node) && node.value === null)) return;
    if (!isMap(node)) throw this.#error(node, `${what} must have members`);
    for (const { key, value } of node.items) {
      // As it is written, for the same reason as texts.
      const written = isScalar(key) ? (key.source ?? String(key.value)) : String(key);
      this.#members.set(written, value as Node | null);
    }
  }

  keys(): Iterable<string> {
    return this.#members.keys();
  }

  allow(keys: readonly string[]): void {
    for (const key of this.#members.keys()) {
      if (!keys.includes(key)) this.fail(key, `${key} is not known here; known are ${keys.join(', ')}`);
    }
  }

  /** As it is written: YAML takes `n` for a truth value and `010` for eight, but here a text is meant. */
  text(key: string): string | undefined {
    const value = this.#scalar(key);
    if (value === undefined || typeof value === 'string') return value;
    const node = this.#members.get(key);
    return (isScalar(node) ? node.source : undefined) ?? this.fail(key, `${key} must be a text`);
  }

  number(key: string): number | undefined {
    const value = this.#scalar(key);
    if (value === undefined) return undefined;
    return typeof value === 'number' && Number.isFinite(value) ? value : this.fail(key, `${key} must be a number`);
  }

  flag(key: string): boolean {
    const value = this.#scalar(key);
    if (value === undefined) return false;
    return typeof value === 'boolean' ? value : this.fail(key, `${key} must be true or false`);
  }

  choice<Choice extends string>(key: string, choices: readonly Choice[]): Choice | undefined {
    const text = this.text(key);
    if (text === undefined || text === '') return undefined;
    return choices.find((choice) => choice === text) ?? this.fail(key, `${key} must be one of ${choices.join(', ')}`);
  }

  /** In milliseconds. */
  duration(key: string): number | undefined {
    const text = this.text(key);
    if (text === undefined) return undefined;
    if (!DURATION.test(text)) return this.fail(key, `${key} must be a duration such as 10m`);
    let sum = 0;
    for (const [, amount = '', unit = ''] of text.matchAll(/([\d.]+)(\D+)/g))
      sum += Number(amount) * (MILLISECONDS[unit] ?? 0);
    return sum;
  }

  numbers(key: string): readonly number[] | undefined {
    if (!this.#members.has(key)) return undefined;
    return this.#items(key).map((item) =>
      isScalar(item) && typeof item.value === 'number'
        ? item.value
        : this.fail(key, `${key} must be a list of numbers`),
    );
  }

  list(key: string): readonly MappingFields[] {
    return this.#items(key).map((item) => new MappingFields(item, `each of ${key}`, this.#lines));
  }

  fields(key: string): MappingFields {
    return new MappingFields(this.#members.get(key), key, this.#lines);
  }

  /** @throws always, saying the line of the member, or of the mapping that lacks it */
  fail(key: string, message: string): never {
    throw this.#error(this.#members.get(key) ?? this.#node, message);
  }

  #items(key: string): readonly (Node | null)[] {
    const node = this.#members.get(key);
    if (node === undefined || node === null || (isScalar(node) && node.value === null)) return [];
    return isSeq(node) ? (node.items as (Node | null)[]) : this.fail(key, `${key} must be a list`);
  }

  #scalar(key: string): unknown {
    const node = this.#members.get(key);
    if (node === undefined || node === null) return undefined;
    if (!isScalar(node)) return this.fail(key, `${key} must be a single value`);
    return node.value ?? undefined;
  }

  #error(node: Node | null | undefined, message: string): MappingFileError {
    const at = node?.range?.[0];
    return new MappingFileError(at === undefined ? message : `line ${this.#lines.linePos(at).line}: ${message}`);
  }
}
