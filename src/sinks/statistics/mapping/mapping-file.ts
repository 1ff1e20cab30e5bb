import type { Mapping, MappingTable, Observer, StatisticType } from './mapping';
import { type DocumentMap, parseMappingDocument } from './mapping-document';
import {
  DEFAULT_OBSERVER_OPTIONS,
  OBSERVER_KEYS,
  type ObserverOptions,
  observerOf,
  readObserverOptions,
} from './observer-options';
import { type Pattern, RegexSyntaxError, compileRe2 } from './re2';
import { undefinedReferences } from './templates';

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
const METRIC_NAME = /^(?:[A-Za-z_:]|\$\{?\d+\}?)(?:[\w:]|\$\{?\d+\}?)*$/;
const LABEL_NAME = /^[A-Za-z_]\w*$/;

const DEFAULT_KEYS = [...OBSERVER_KEYS, 'match_type', 'glob_disable_ordering', 'ttl'];
const MAPPING_KEYS = [
  ...OBSERVER_KEYS,
  ...['match', 'match_type', 'match_metric_type', 'name', 'labels', 'help', 'action', 'scale', 'honor_labels', 'ttl'],
];

/** What the mappings of a file inherit from its `defaults`. */
interface Defaults {
  readonly isRegex: boolean;
  readonly observer: ObserverOptions;
}

/**
 * Reads a mapping file in the statsd exporter's format, including its older forms (`timer_type`, and `buckets` and `quantiles`
 * directly in a mapping).
 *
 * @throws {MappingFileError} when the file is invalid
 */
export function readMappingFile(text: string): MappingFile {
  const root = parseMappingDocument(text);
  root.allowOnly(['defaults', 'mappings']);
  const map = root.map('defaults');
  map.allowOnly(DEFAULT_KEYS);
  const defaults = {
    isRegex: map.choice('match_type', ['glob', 'regex']) === 'regex',
    observer: readObserverOptions(map, DEFAULT_OBSERVER_OPTIONS),
  };
  const mappings = root.maps('mappings').map((each) => readMapping(each, defaults));
  const warnings = mappings.filter(({ isDropped }) => !isDropped).flatMap(referenceWarnings);
  if (text.includes('ttl:')) {
    warnings.unshift('ttl has no effect: statistics are kept for the lifetime of the process.');
  }
  return {
    mappings,
    unmapped: observerOf(defaults.observer),
    isMostSpecificFirst: map.boolean('glob_disable_ordering'),
    warnings,
  };
}

/** The statsd exporter expands such references to empty strings without a warning. */
function referenceWarnings({ match, name, labels }: Mapping): readonly string[] {
  const matched = 'exec' in match ? match.source : match.join('.');
  return undefinedReferences(match, [name, ...Object.values(labels)]).map(
    (reference) =>
      `the mapping for ${matched} has no group for ${reference}, which expands to an empty string; a group followed by text is written \${1}.`,
  );
}

function readMapping(map: DocumentMap, defaults: Defaults): Mapping {
  map.allowOnly(MAPPING_KEYS);
  const match = map.string('match') ?? map.fail('match', 'a mapping requires match');
  const matchType = map.choice('match_type', ['glob', 'regex']);
  const isRegex = matchType === undefined ? defaults.isRegex : matchType === 'regex';
  const isDropped = map.choice('action', ['map', 'drop']) === 'drop';
  const name = map.string('name') ?? '';
  if (!isDropped && name === '') map.fail('name', `the mapping for ${match} requires name`);
  if (name !== '' && !METRIC_NAME.test(name)) map.fail('name', `${name} is not a valid metric name`);
  const observer = observerOf(readObserverOptions(map, defaults.observer));
  const type = map.choice('match_metric_type', Object.keys(TYPES));
  return {
    match: isRegex ? readRegex(map, match) : readGlob(map, match),
    type: type === undefined ? undefined : TYPES[type],
    isDropped,
    name,
    help: map.string('help'),
    labels: readLabels(map.map('labels'), observer),
    honorLabels: map.boolean('honor_labels'),
    observer,
    scale: map.number('scale') ?? 1,
  };
}

function readRegex(map: DocumentMap, match: string): Pattern {
  try {
    return compileRe2(match);
  } catch (error) {
    if (!(error instanceof RegexSyntaxError)) throw error;
    return map.fail('match', `${match} is not a valid regular expression: ${error.message}`);
  }
}

function readGlob(map: DocumentMap, match: string): readonly string[] {
  const components = match.split('.');
  if (components.some((component) => component === '' || (component.includes('*') && component !== '*'))) {
    map.fail(
      'match',
      `${match} is not a valid glob: * must be all of a component between two dots; for other patterns use match_type: regex`,
    );
  }
  return components;
}

function readLabels(map: DocumentMap, observer: Observer): Readonly<Record<string, string>> {
  const reserved = observer.kind === 'histogram' ? 'le' : 'quantile';
  const labels: Record<string, string> = {};
  for (const label of map.keys()) {
    if (!LABEL_NAME.test(label)) map.fail(label, `${label} is not a valid label name`);
    if (label === reserved) map.fail(label, `the label ${label} is reserved: every ${observer.kind} has one`);
    labels[label] = map.string(label) ?? '';
  }
  return labels;
}
