import type { RuleListing } from '../../operators/rules';
import type { RuleFile } from '../../rules/files/read-rule-files';

/** The depth of a domain, whose rules have the depth 0. */
const DOMAIN = -1;

/** A listing as one JSON object, in which rules contain their nested rules. */
export function* rulesText({ items, ...origin }: RuleListing): Generator<string, void, void> {
  yield `${JSON.stringify(origin).slice(0, -1)},"domains":[`;
  // The depth of the item before; its list of descriptors is still open.
  let last: number | undefined;
  for (const item of items) {
    const { depth, ...members } = { depth: DOMAIN, ...item };
    if (last !== undefined && depth <= last) yield `${']}'.repeat(last - depth + 1)},`;
    yield `${JSON.stringify(members).slice(0, -1)},"descriptors":[`;
    last = depth;
  }
  yield `${last === undefined ? '' : ']}'.repeat(last - DOMAIN + 1)}]}`;
}

/** The files of a configuration; each is decoded when it is written. */
export function* textsOf(files: readonly RuleFile[]): Generator<object, void, void> {
  for (const { path, content } of files) yield { path, text: new TextDecoder().decode(content) };
}

/**
 * The JSON of a value in parts, for which the event loop turns: each item of its lists and each member of its objects,
 * down to a depth.
 */
export function* jsonText(value: unknown, depth: number): Generator<string, void, void> {
  if (depth === 0 || typeof value !== 'object' || value === null) return yield JSON.stringify(value);
  let separator = '';
  if (Symbol.iterator in value) {
    yield '[';
    for (const item of value as Iterable<unknown>) {
      yield separator;
      yield* jsonText(item, depth - 1);
      separator = ',';
    }
    return yield ']';
  }
  yield '{';
  for (const name of Object.keys(value)) {
    // Some are computed when they are read.
    const member: unknown = value[name as keyof typeof value];
    if (member === undefined) continue;
    yield `${separator}${JSON.stringify(name)}:`;
    yield* jsonText(member, depth - 1);
    separator = ',';
  }
  return yield '}';
}

export function* statisticsText(
  entries: Iterable<readonly [name: string, value: number]>,
): Generator<string, void, void> {
  let separator = '{"statistics":{';
  for (const [name, value] of entries) {
    yield `${separator}${JSON.stringify(name)}:${JSON.stringify(value)}`;
    separator = ',';
  }
  yield `${separator === ',' ? '' : separator}}}`;
}
