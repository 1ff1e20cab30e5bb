import { isAlias, isCollection, isMap, isScalar, type ParsedNode, type YAMLMap, type YAMLSeq } from 'yaml';
import type { ProblemReport } from '../problems/problem-report';
import type { Place, SourceText } from '../problems/source-text';
import type { YamlEntry, YamlNode } from './yaml-tree';

/** How many nodes all aliases of a file may stand for together: a few lines of them could stand for more than memory holds. */
export const MAX_ALIASED_NODES = 1_000_000;
/** How deep lists and mappings may lie in each other; each level of descriptors takes two. */
export const MAX_DEPTH = 200;

/** Tags of YAML 1.1 that `yaml-scalar.ts` understands. */
const KNOWN_TAGS = new Set(
  ['str', 'int', 'bool', 'float', 'null', 'map', 'seq', 'merge'].map((name) => `tag:yaml.org,2002:${name}`),
);

/** Makes our tree of the library's, with aliases replaced by what they stand for; undefined when that cannot be done. */
export function buildTree(root: ParsedNode | null, source: SourceText, report: ProblemReport): YamlNode | undefined {
  return new TreeBuilder(source, report).build(root);
}

/** Says that a file is nested beyond what is read. */
export function reportDepth(source: SourceText, place: Place, report: ProblemReport): void {
  const message = `error loading config file: lists and mappings lie in each other more than ${MAX_DEPTH} deep`;
  const advice = 'Nest fewer levels: each level is one entry of a request descriptor.';
  report.add(source, place, 'nested-too-deeply', message, advice);
}

/** Stands where nothing can be built; the tree it is in is not handed out. */
const NOTHING: YamlNode = { kind: 'scalar', text: '', plain: true, tag: undefined, offset: 0, end: 0 };

interface Anchor {
  /** Undefined while the anchored node is still being read: an alias to it there would contain itself. */
  node: YamlNode | undefined;
  /** How many nodes it stands for, aliases within it expanded. */
  size: number;
}

class TreeBuilder {
  readonly #source: SourceText;
  readonly #report: ProblemReport;
  readonly #anchors = new Map<string, Anchor>();
  /** Nodes met so far, aliases expanded. */
  #size = 0;
  #aliasedNodes = 0;
  /** Something could not be built. The rest is built all the same, so that every such place is named. */
  #failed = false;

  constructor(source: SourceText, report: ProblemReport) {
    this.#source = source;
    this.#report = report;
  }

  build(root: ParsedNode | null): YamlNode | undefined {
    const node = this.#node(root, { offset: 0, end: 0 }, 0);
    return this.#failed ? undefined : node;
  }

  /** @param owner where to point for a node that is not written: the key that has no value */
  #node(parsed: ParsedNode | null, owner: Place, depth: number): YamlNode {
    this.#size += 1;
    if (parsed === null) return { kind: 'scalar', text: '', plain: true, tag: undefined, ...pick(owner) };
    if (isAlias(parsed)) return this.#alias(parsed.source, placeOf(parsed));
    const tag = this.#tagOf(parsed);
    if (isScalar(parsed)) {
      const text = parsed.source ?? '';
      const plain = parsed.type === 'PLAIN';
      const node: YamlNode = {
        kind: 'scalar',
        text,
        plain,
        tag,
        ...(plain && text === '' ? pick(owner) : placeOf(parsed)),
      };
      if (parsed.anchor !== undefined) this.#anchors.set(parsed.anchor, { node, size: 1 });
      return node;
    }
    if (depth >= MAX_DEPTH) {
      reportDepth(this.#source, placeOf(parsed), this.#report);
      return this.#fail();
    }
    const anchor = { node: undefined as YamlNode | undefined, size: this.#size };
    if (parsed.anchor !== undefined) this.#anchors.set(parsed.anchor, anchor);
    anchor.node = isMap(parsed) ? this.#map(parsed, depth + 1) : this.#list(parsed, depth + 1);
    anchor.size = this.#size - anchor.size + 1;
    return anchor.node;
  }

  #map(parsed: YAMLMap.Parsed, depth: number): YamlNode {
    const place = placeOf(parsed);
    const entries: YamlEntry[] = [];
    for (const item of parsed.items) {
      const key = this.#node(item.key, place, depth);
      entries.push({ key, value: this.#node(item.value, key, depth) });
    }
    return { kind: 'map', entries, ...place };
  }

  #list(parsed: YAMLSeq.Parsed, depth: number): YamlNode {
    const items: YamlNode[] = [];
    const place = placeOf(parsed);
    for (const item of parsed.items) items.push(this.#node(item, place, depth));
    return { kind: 'list', items, ...place };
  }

  #alias(name: string, place: Place): YamlNode {
    const anchor = this.#anchors.get(name);
    if (anchor === undefined) {
      const message = `error loading config file: unknown anchor '${name}' referenced`;
      this.#report.add(
        this.#source,
        place,
        'unknown-anchor',
        message,
        `Put the value in quotes ("*${name}") if its \`*\` is a wildcard; otherwise write &${name} above, where it is to be taken from.`,
      );
      return this.#fail();
    }
    if (anchor.node === undefined) {
      const message = `error loading config file: anchor '${name}' value contains itself`;
      this.#report.add(this.#source, place, 'anchor-contains-itself', message, 'Write out what is meant here.');
      return this.#fail();
    }
    this.#size += anchor.size - 1;
    const before = this.#aliasedNodes;
    this.#aliasedNodes += anchor.size;
    if (before > MAX_ALIASED_NODES) return this.#fail();
    if (this.#aliasedNodes > MAX_ALIASED_NODES) {
      const message = `error loading config file: document contains excessive aliasing: more than ${MAX_ALIASED_NODES} values`;
      this.#report.add(
        this.#source,
        place,
        'too-many-aliases',
        message,
        'Write fewer rules by alias; a wildcard may do instead.',
      );
      return this.#fail();
    }
    return anchor.node;
  }

  #fail(): YamlNode {
    this.#failed = true;
    return NOTHING;
  }

  #tagOf(parsed: ParsedNode): string | undefined {
    const { tag } = parsed;
    // Without a tag of its own a collection carries that of its schema.
    if (tag === undefined || KNOWN_TAGS.has(tag)) return tag;
    const place = this.#tagPlace(parsed.range[0]);
    if (tag === 'tag:yaml.org,2002:binary') {
      const message = 'error loading config file: the tag !!binary is not read';
      this.#report.add(this.#source, place, 'unsupported-tag', message, 'Write the text itself, in double quotes.');
    } else {
      const message = `the tag ${tag} means nothing here`;
      this.#report.add(
        this.#source,
        place,
        'ignored-tag',
        message,
        'Take it out, or put the value in quotes if it begins with "!".',
      );
    }
    return tag;
  }

  /** Where the tag of a node stands: the library keeps what it says, not where. */
  #tagPlace(nodeOffset: number): Place {
    const { text } = this.#source;
    let offset = text.lastIndexOf('!', nodeOffset - 1);
    while (text[offset - 1] === '!') offset -= 1;
    const length = text.slice(offset, nodeOffset).search(/\s|$/);
    return { offset, end: offset + length };
  }
}

/** Of a block collection the place is where it begins: it has no end that one could point at. */
function placeOf(parsed: ParsedNode): Place {
  const [offset, end] = parsed.range;
  return { offset, end: isCollection(parsed) && parsed.flow !== true ? offset + 1 : end };
}

function pick({ offset, end }: Place): Place {
  return { offset, end };
}
