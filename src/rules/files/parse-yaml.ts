import {
  Composer,
  isAlias,
  isCollection,
  isMap,
  isScalar,
  Parser,
  visit,
  type Document,
  type ParsedNode,
  type YAMLError,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import type { ProblemReport } from './problem-report';
import type { Place, SourceText } from './source-text';
import type { YamlEntry, YamlNode } from './yaml-tree';

/** How many nodes all aliases of a file may stand for together: a few lines of them could stand for more than memory holds. */
export const MAX_ALIASED_NODES = 1_000_000;
/** How deep lists and mappings may lie in each other; each level of descriptors takes two. */
export const MAX_DEPTH = 200;

/** The library quotes what it did not expect, however long it is. */
const LONGEST_MESSAGE = 200;

/**
 * Types are read from the text by ourselves (`yaml-scalar.ts`) and repeated keys and merges belong to the rules, so the
 * library is asked for structure alone.
 */
const OPTIONS = {
  version: '1.1',
  schema: 'failsafe',
  uniqueKeys: false,
  logLevel: 'silent',
  prettyErrors: false,
} as const;

/** Tags of YAML 1.1 that `yaml-scalar.ts` understands. */
const KNOWN_TAGS = new Set(
  ['str', 'int', 'bool', 'float', 'null', 'map', 'seq', 'merge'].map((name) => `tag:yaml.org,2002:${name}`),
);

const DEFAULT_ADVICE = 'Correct the YAML here; the mistake may begin a little above.';

const UNCLOSED_FLOW = 'Close every `{` with a `}` and every `[` with a `]`.';

const ADVICE: Partial<Record<YAMLError['code'], string>> = {
  BAD_ALIAS: 'Put the value in quotes ("*"): an unquoted `*` begins an alias.',
  BAD_INDENT: 'Give all keys of one mapping, and all dashes of one list, the same indentation.',
  BAD_SCALAR_START: 'Put the value in quotes.',
  BLOCK_AS_IMPLICIT_KEY: 'Put a value in quotes when it has `: ` in it; otherwise correct the indentation.',
  MULTILINE_IMPLICIT_KEY: 'Write `key: value`, with a space after the colon.',
};

/**
 * Reads the first document of a text. `undefined` when it cannot be read (the report says why), `null` when there is
 * nothing in it but white space and comments.
 */
export function parseYaml(source: SourceText, report: ProblemReport): YamlNode | null | undefined {
  try {
    return new DocumentReader(source, report).read();
  } catch (error) {
    if (error instanceof Unreadable) return undefined;
    // The library descends by calling itself, so it is the stack that bounds it.
    const tooDeep = error instanceof RangeError;
    if (tooDeep) reportDepth(source, { offset: 0, end: 0 }, report);
    else
      report.add(
        source,
        { offset: 0, end: 0 },
        'yaml-syntax',
        `error loading config file: ${String(error)}`,
        DEFAULT_ADVICE,
      );
    return undefined;
  }
}

/** Ends the reading of a file; what is wrong has been reported. */
class Unreadable extends Error {}

interface Anchor {
  /** Undefined while the anchored node is still being read: an alias to it there would contain itself. */
  node: YamlNode | undefined;
  /** How many nodes it stands for, aliases within it expanded. */
  size: number;
}

class DocumentReader {
  private readonly anchors = new Map<string, Anchor>();
  /** Nodes met so far, aliases expanded. */
  private size = 0;
  private aliasedNodes = 0;

  constructor(
    private readonly source: SourceText,
    private readonly report: ProblemReport,
  ) {}

  read(): YamlNode | null | undefined {
    const documents = new Composer(OPTIONS).compose(new Parser().parse(this.source.text));
    const first = documents.next();
    if (first.done === true) return null;
    const document = first.value;
    if (this.reportErrors(document)) return undefined;
    const goesOn = this.reportSecondDocument(documents);
    if (isEmpty(document) && !goesOn) return null;
    return this.node(document.contents, { offset: 0, end: 0 }, 0);
  }

  private reportSecondDocument(rest: Iterable<Document.Parsed>): boolean {
    for (const document of rest) {
      if (isEmpty(document)) continue;
      const [offset] = document.range;
      const message = 'a second document begins here, and is not read';
      const advice = 'Give each domain a file of its own: only what stands before this `---` or `...` counts.';
      this.report.add(this.source, { offset, end: offset + 3 }, 'second-document', message, advice);
      return true;
    }
    return false;
  }

  private reportErrors(document: Document.Parsed): boolean {
    const { errors, warnings, directives } = document;
    const lines = new Set<number>();
    for (const error of errors) {
      // What the library says further of the same line is mostly a consequence.
      const line = this.source.lineOf(error.pos[0]);
      if (!lines.has(line)) this.reportSyntax(error, document);
      lines.add(line);
    }
    for (const warning of warnings) this.reportSyntaxWarning(warning);
    if (errors.length === 0 && directives.yaml.explicit === true && directives.yaml.version !== '1.1') {
      const message = `error loading config file: found incompatible YAML document: version ${directives.yaml.version}`;
      const at = Math.max(0, this.source.text.indexOf('%YAML'));
      this.report.add(
        this.source,
        { offset: at, end: at + 5 },
        'yaml-version',
        message,
        'Take the %YAML line out: rule files are YAML 1.1.',
      );
      return true;
    }
    return errors.length > 0;
  }

  private reportSyntax(error: YAMLError, document: Document.Parsed): void {
    const { code, pos } = error;
    const place = { offset: pos[0], end: pos[1] };
    if (code === 'TAB_AS_INDENT') {
      const text = 'error loading config file: found a tab where only spaces may indent';
      this.report.add(this.source, place, 'tab-indentation', text, 'Indent with spaces.');
      return;
    }
    const quote =
      code === 'MISSING_CHAR' && error.message.startsWith('Missing closing')
        ? openedBefore(document, pos[0])
        : undefined;
    if (quote !== undefined) {
      const text = 'error loading config file: the quote that opens here is never closed';
      this.report.add(this.source, { offset: quote, end: quote + 1 }, 'yaml-syntax', text, 'Close it.');
      return;
    }
    // Of a line that is indented wrongly the library points at the indentation.
    place.offset = this.skipSpaces(place.offset);
    this.report.add(this.source, place, 'yaml-syntax', syntaxMessage(error), adviceFor(error));
  }

  private skipSpaces(offset: number): number {
    let at = offset;
    while (this.source.text[at] === ' ') at++;
    return at;
  }

  private reportSyntaxWarning(warning: YAMLError): void {
    if (warning.code === 'TAG_RESOLVE_FAILED') return; // Tags are looked at node by node.
    const place = { offset: warning.pos[0], end: warning.pos[1] };
    this.report.add(this.source, place, 'yaml-syntax', syntaxMessage(warning), DEFAULT_ADVICE);
  }

  /** @param owner where to point for a node that is not written: the key that has no value */
  private node(parsed: ParsedNode | null, owner: Place, depth: number): YamlNode {
    this.size++;
    if (parsed === null) return { kind: 'scalar', text: '', plain: true, tag: undefined, ...pick(owner) };
    if (isAlias(parsed)) return this.alias(parsed.source, placeOf(parsed));
    const tag = this.tagOf(parsed);
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
      if (parsed.anchor !== undefined) this.anchors.set(parsed.anchor, { node, size: 1 });
      return node;
    }
    if (depth >= MAX_DEPTH) {
      reportDepth(this.source, placeOf(parsed), this.report);
      throw new Unreadable();
    }
    const anchor = { node: undefined as YamlNode | undefined, size: this.size };
    if (parsed.anchor !== undefined) this.anchors.set(parsed.anchor, anchor);
    anchor.node = isMap(parsed) ? this.map(parsed, depth + 1) : this.list(parsed, depth + 1);
    anchor.size = this.size - anchor.size + 1;
    return anchor.node;
  }

  private map(parsed: YAMLMap.Parsed, depth: number): YamlNode {
    const place = placeOf(parsed);
    const entries: YamlEntry[] = [];
    for (const item of parsed.items) {
      const key = this.node(item.key, place, depth);
      entries.push({ key, value: this.node(item.value, key, depth) });
    }
    return { kind: 'map', entries, ...place };
  }

  private list(parsed: YAMLSeq.Parsed, depth: number): YamlNode {
    const items: YamlNode[] = [];
    const place = placeOf(parsed);
    for (const item of parsed.items) items.push(this.node(item, place, depth));
    return { kind: 'list', items, ...place };
  }

  private alias(name: string, place: Place): YamlNode {
    const anchor = this.anchors.get(name);
    if (anchor === undefined) {
      const message = `error loading config file: unknown anchor '${name}' referenced`;
      this.report.add(
        this.source,
        place,
        'unknown-anchor',
        message,
        `Put the value in quotes ("*${name}") if its \`*\` is a wildcard; otherwise write &${name} above, where it is to be taken from.`,
      );
      throw new Unreadable();
    }
    if (anchor.node === undefined) {
      const message = `error loading config file: anchor '${name}' value contains itself`;
      this.report.add(this.source, place, 'anchor-contains-itself', message, 'Write out what is meant here.');
      throw new Unreadable();
    }
    this.size += anchor.size - 1;
    this.aliasedNodes += anchor.size;
    if (this.aliasedNodes > MAX_ALIASED_NODES) {
      const message = `error loading config file: document contains excessive aliasing: more than ${MAX_ALIASED_NODES} values`;
      this.report.add(
        this.source,
        place,
        'too-many-aliases',
        message,
        'Write fewer rules by alias; a wildcard may do instead.',
      );
      throw new Unreadable();
    }
    return anchor.node;
  }

  private tagOf(parsed: ParsedNode): string | undefined {
    const { tag } = parsed;
    // Without a tag of its own a collection carries that of its schema.
    if (tag === undefined || KNOWN_TAGS.has(tag)) return tag;
    const place = this.tagPlace(parsed.range[0]);
    if (tag === 'tag:yaml.org,2002:binary') {
      const message = 'error loading config file: the tag !!binary is not read';
      this.report.add(this.source, place, 'unsupported-tag', message, 'Write the text itself, in double quotes.');
    } else {
      const message = `the tag ${tag} means nothing here`;
      this.report.add(
        this.source,
        place,
        'ignored-tag',
        message,
        'Take it out, or put the value in quotes if it begins with "!".',
      );
    }
    return tag;
  }

  /** Where the tag of a node stands: the library keeps what it says, not where. */
  private tagPlace(nodeOffset: number): Place {
    const { text } = this.source;
    let offset = text.lastIndexOf('!', nodeOffset - 1);
    while (text[offset - 1] === '!') offset--;
    const length = text.slice(offset, nodeOffset).search(/\s|$/);
    return { offset, end: offset + length };
  }
}

function reportDepth(source: SourceText, place: Place, report: ProblemReport): void {
  const message = `error loading config file: lists and mappings lie in each other more than ${MAX_DEPTH} deep`;
  report.add(
    source,
    place,
    'nested-too-deeply',
    message,
    'Nest fewer levels: each level is one entry of a request descriptor.',
  );
}

function adviceFor({ code, message }: YAMLError): string {
  if (code === 'BAD_INDENT' && message.startsWith('Flow')) return UNCLOSED_FLOW;
  return ADVICE[code] ?? DEFAULT_ADVICE;
}

function syntaxMessage({ message }: YAMLError): string {
  const line = message.replaceAll(/\s+/g, ' ');
  return `error loading config file: ${line.length > LONGEST_MESSAGE ? `${line.slice(0, LONGEST_MESSAGE)}…` : line}`;
}

/** Where the last quoted scalar before a place opens. */
function openedBefore(document: Document.Parsed, offset: number): number | undefined {
  let opened: number | undefined;
  visit(document, {
    Scalar(_, { type, range }) {
      const isQuoted = type === 'QUOTE_DOUBLE' || type === 'QUOTE_SINGLE';
      if (isQuoted && range && range[0] < offset) opened = Math.max(opened ?? 0, range[0]);
    },
  });
  return opened;
}

function isEmpty({ contents, errors }: Document.Parsed): boolean {
  const nothing = contents === null || (isScalar(contents) && contents.source === '' && contents.type === 'PLAIN');
  return nothing && errors.length === 0;
}

/** Of a block collection the place is where it begins: it has no end that one could point at. */
function placeOf(parsed: ParsedNode): Place {
  const [offset, end] = parsed.range;
  return { offset, end: isCollection(parsed) && parsed.flow !== true ? offset + 1 : end };
}

function pick({ offset, end }: Place): Place {
  return { offset, end };
}
