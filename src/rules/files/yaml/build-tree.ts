import { isAlias, isCollection, isMap, isScalar, type ParsedNode, type YAMLMap, type YAMLSeq } from 'yaml';
import type { ProblemDetails } from '../problems/problem';
import { type Report, type SourceRange, type SourceText, rangeOnly } from '../problems/source-text';
import type { YamlEntry, YamlNode } from './yaml-tree';

/**
 * The number of nodes to which all aliases of a file may expand: a few lines of aliases could expand to more than fits
 * in memory.
 */
const MAX_ALIASED_NODES = 1_000_000;
/** The greatest depth of nested lists and mappings; each level of descriptors takes two. */
export const MAX_DEPTH = 200;

/** Tags of YAML 1.1 that `yaml-tree.ts` supports. */
const KNOWN_TAGS = new Set(
  ['str', 'int', 'bool', 'float', 'null', 'map', 'seq', 'merge'].map((name) => `tag:yaml.org,2002:${name}`),
);

/** Converts the library's tree, with aliases replaced by the nodes they refer to; undefined when that fails. */
export function buildTree(root: ParsedNode | null, source: SourceText, report: Report): YamlNode | undefined {
  return new TreeBuilder(source, report).build(root);
}

export const TOO_DEEP: ProblemDetails = {
  code: 'nested-too-deeply',
  message: `error loading config file: lists and mappings are nested more than ${MAX_DEPTH} levels deep`,
};

export const NEVER_CLOSED: ProblemDetails = {
  code: 'yaml-syntax',
  message: 'error loading config file: the quote that opens here is never closed',
  advice: 'Add the closing quote.',
};

/**
 * The offset of the quote that closes the value that begins with a quote at `start`; undefined when there is none
 * before `end`.
 */
export function closingQuote(text: string, start: number, end = text.length): number | undefined {
  const isDouble = text[start] === '"';
  for (let at = start + 1; at < end; at += 1) {
    if (isDouble ? text[at] === '\\' : text[at] === "'" && text[at + 1] === "'") at += 1;
    else if (text[at] === text[start]) return at;
  }
  return undefined;
}

/** A placeholder for a node that cannot be built; its tree is not returned. */
const PLACEHOLDER: YamlNode = { kind: 'scalar', text: '', plain: true, tag: undefined, offset: 0, end: 0 };

const BINARY_TAG = 'tag:yaml.org,2002:binary';

const UNSUPPORTED_TAG: ProblemDetails = {
  code: 'unsupported-tag',
  message: 'error loading config file: the tag !!binary is not supported',
};

const TOO_MANY_ALIASES: ProblemDetails = {
  code: 'too-many-aliases',
  message: `error loading config file: document contains excessive aliasing: more than ${MAX_ALIASED_NODES} values`,
};

interface Anchor {
  /** Undefined until the anchored node is complete: an alias within it would contain itself. */
  node: YamlNode | undefined;
  /** The number of nodes in it, with aliases expanded. */
  size: number;
}

class TreeBuilder {
  readonly #source: SourceText;
  readonly #report: Report;
  readonly #anchors = new Map<string, Anchor>();
  /** The number of nodes read so far, with aliases expanded. */
  #size = 0;
  #aliasedNodes = 0;
  /** A node could not be built. The rest is still built, so that every such place is reported. */
  #failed = false;

  constructor(source: SourceText, report: Report) {
    this.#source = source;
    this.#report = report;
  }

  build(root: ParsedNode | null): YamlNode | undefined {
    const node = this.#node(root, { offset: 0, end: 0 }, 0);
    return this.#failed ? undefined : node;
  }

  /** @param owner the range to use for an omitted node: that of the key without a value */
  #node(parsed: ParsedNode | null, owner: SourceRange, depth: number): YamlNode {
    this.#size += 1;
    if (parsed === null) return { kind: 'scalar', text: '', plain: true, tag: undefined, ...rangeOnly(owner) };
    if (isAlias(parsed)) return this.#alias(parsed.source, rangeOf(parsed));
    const tag = this.#tagOf(parsed);
    if (isScalar(parsed)) {
      const text = parsed.source ?? '';
      const plain = parsed.type === 'PLAIN';
      const [start, end] = parsed.range;
      const isQuoted = parsed.type === 'QUOTE_DOUBLE' || parsed.type === 'QUOTE_SINGLE';
      // The library reads a value without a closing quote up to the end of its line, and reports no error if that is an
      // escaped quote: `"a\"` or `'a''`.
      if (isQuoted && closingQuote(this.#source.text, start, end) !== end - 1) {
        return this.#fail({ offset: start, end: start + 1 }, NEVER_CLOSED);
      }
      const node: YamlNode = {
        kind: 'scalar',
        text,
        plain,
        tag,
        ...(plain && text === '' ? rangeOnly(owner) : rangeOf(parsed)),
      };
      if (parsed.anchor !== undefined) this.#anchors.set(parsed.anchor, { node, size: 1 });
      return node;
    }
    if (depth >= MAX_DEPTH) {
      this.#report(rangeOf(parsed), TOO_DEEP);
      return this.#fail(owner, undefined);
    }
    const anchor = { node: undefined as YamlNode | undefined, size: this.#size };
    if (parsed.anchor !== undefined) this.#anchors.set(parsed.anchor, anchor);
    anchor.node = isMap(parsed) ? this.#map(parsed, depth + 1) : this.#list(parsed, depth + 1);
    anchor.size = this.#size - anchor.size + 1;
    return anchor.node;
  }

  #map(parsed: YAMLMap.Parsed, depth: number): YamlNode {
    const range = rangeOf(parsed);
    const entries: YamlEntry[] = [];
    for (const item of parsed.items) {
      const key = this.#node(item.key, range, depth);
      entries.push({ key, value: this.#node(item.value, key, depth) });
    }
    return { kind: 'map', entries, ...range };
  }

  #list(parsed: YAMLSeq.Parsed, depth: number): YamlNode {
    const items: YamlNode[] = [];
    const range = rangeOf(parsed);
    for (const item of parsed.items) items.push(this.#node(item, range, depth));
    return { kind: 'list', items, ...range };
  }

  #alias(name: string, range: SourceRange): YamlNode {
    const anchor = this.#anchors.get(name);
    if (anchor === undefined) {
      return this.#fail(range, {
        code: 'unknown-anchor',
        message: `error loading config file: unknown anchor '${name}' referenced`,
        advice: `Quote the value ("*${name}") if its \`*\` is a wildcard; otherwise define the anchor &${name} above.`,
      });
    }
    if (anchor.node === undefined) {
      return this.#fail(range, {
        code: 'anchor-contains-itself',
        message: `error loading config file: anchor '${name}' value contains itself`,
      });
    }
    this.#size += anchor.size - 1;
    const before = this.#aliasedNodes;
    this.#aliasedNodes += anchor.size;
    if (this.#aliasedNodes <= MAX_ALIASED_NODES) return anchor.node;
    // Reported once, for the alias that exceeds the limit.
    return this.#fail(range, before > MAX_ALIASED_NODES ? undefined : TOO_MANY_ALIASES);
  }

  #fail(range: SourceRange, details: ProblemDetails | undefined): YamlNode {
    this.#failed = true;
    if (details !== undefined) this.#report(range, details);
    return PLACEHOLDER;
  }

  #tagOf(parsed: ParsedNode): string | undefined {
    const { tag } = parsed;
    // A collection without an explicit tag has that of its schema.
    if (tag === undefined || KNOWN_TAGS.has(tag)) return tag;
    const message = `the tag ${tag} has no meaning here`;
    const details = tag === BINARY_TAG ? UNSUPPORTED_TAG : ({ code: 'ignored-tag', message } as const);
    this.#report(this.#tagRange(parsed.range[0]), details);
    return tag;
  }

  /** The range of a node's tag: the library keeps the tag's text, but not its position. */
  #tagRange(nodeOffset: number): SourceRange {
    const { text } = this.#source;
    let offset = text.lastIndexOf('!', nodeOffset - 1);
    while (text[offset - 1] === '!') offset -= 1;
    const length = text.slice(offset, nodeOffset).search(/\s|$/);
    return { offset, end: offset + length };
  }
}

/** A block collection has no end that can be shown, so its range is its start. */
function rangeOf(parsed: ParsedNode): SourceRange {
  const [offset, end] = parsed.range;
  return { offset, end: isCollection(parsed) && parsed.flow !== true ? offset + 1 : end };
}
