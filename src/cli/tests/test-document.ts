import { LineCounter, type Node, type ParsedNode, type YAMLMap, isMap, isScalar, isSeq, parseDocument } from 'yaml';
import { messageOf } from '../../text/thrown';
import type { RuleTest, SourceLine } from './play';

/** The tests of a file, and what they are played with. */
export interface TestFile {
  /** As it was given, or below the folder that was. */
  readonly path: string;
  /** Paths of rule files and folders; empty: those of the command line. */
  readonly rules: readonly string[];
  /** By the names of the environment. */
  readonly settings: Readonly<Record<string, string>>;
  readonly tests: readonly RuleTest[];
}

type Place = Pick<Node, 'range'> | null | undefined;

/** A test file in YAML: `rules`, `domain`, `settings`, and `tests` with a `name` and `decisions` each. */
export class TestDocument {
  readonly #path: string;
  readonly #lines = new LineCounter();
  readonly #contents: ParsedNode | null;

  /** @throws Error with its place, when it is no YAML */
  constructor(path: string, text: string) {
    this.#path = path;
    const { contents, errors } = parseDocument(text, { lineCounter: this.#lines });
    this.#contents = contents;
    const [first] = errors;
    if (first !== undefined) {
      throw new Error(`${path}:${this.#lines.linePos(first.pos[0]).line}: ${messageOf(first).split('\n')[0]}`);
    }
  }

  /** @throws Error with its place, when it is no test file */
  read(): TestFile {
    const head = this.#members(this.#contents, 'a test file', ['rules', 'domain', 'settings', 'tests']);
    const settings = head.has('settings') ? [...this.#members(head.get('settings'), 'settings')] : [];
    const domain = this.#text(head.get('domain'), 'domain');
    return {
      path: this.#path,
      rules: this.#list(head.get('rules'), 'rules').map((node) => this.#text(node, 'a path of rules')),
      settings: Object.fromEntries(settings.map(([name, node]) => [name, this.#text(node, name)])),
      tests: this.#list(head.get('tests'), 'tests').map((node) => this.#test(node, domain)),
    };
  }

  #test(node: Node, domain: string): RuleTest {
    const test = this.#members(node, 'a test', ['name', 'domain', 'decisions']);
    const [name, own] = [this.#text(test.get('name'), 'name'), this.#text(test.get('domain'), 'domain')];
    return {
      name: name === '' ? `line ${this.#lineOf(node)}` : name,
      domain: own === '' ? domain : own,
      lines: this.#decisions(test.get('decisions') ?? node),
    };
  }

  /** The lines of a block, with their numbers in the file. */
  #decisions(node: Node): readonly SourceLine[] {
    if (!isScalar(node) || node.type !== 'BLOCK_LITERAL') {
      return this.#fail(node, 'decisions are a block of lines: write "decisions: |" and the lines below it');
    }
    const first = this.#lineOf(node) + 1;
    const lines = String(node.value).trimEnd().split('\n');
    return lines.map((line, index) => ({ number: first + index, text: line.trim() }));
  }

  /** The members of a mapping. @param names those that it may have; undefined: any */
  #members(node: Node | null | undefined, what: string, names?: readonly string[]): ReadonlyMap<string, Node> {
    if (!isMap(node)) return this.#fail(node, `${what} is a mapping${names ? ` with ${names.join(', ')}` : ''}`);
    const members = new Map<string, Node>();
    for (const { key, value } of (node as YAMLMap<Node, Node | null>).items) {
      const name = this.#text(key, 'a name');
      if (names?.includes(name) === false) {
        this.#fail(key, `"${name}" is no member of ${what}, which has ${names.join(', ')}`);
      }
      if (value !== null) members.set(name, value);
    }
    return members;
  }

  #text(node: Node | undefined, what: string): string {
    if (node === undefined) return '';
    const value = isScalar(node) ? node.value : undefined;
    if (typeof value === 'string') return value;
    return typeof value === 'number' || typeof value === 'boolean'
      ? String(value)
      : this.#fail(node, `${what} is a text`);
  }

  #list(node: Node | undefined, what: string): readonly Node[] {
    if (node === undefined) return [];
    if (isSeq<Node>(node)) return node.items;
    return isScalar(node) ? [node] : this.#fail(node, `${what} is a list`);
  }

  #lineOf(place: Place): number {
    return this.#lines.linePos(place?.range?.[0] ?? 0).line;
  }

  #fail(place: Place, message: string): never {
    throw new Error(`${this.#path}:${this.#lineOf(place)}: ${message}`);
  }
}
