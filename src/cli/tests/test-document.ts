import { ProblemReport, type SourceText } from '../../rules/files/problems/source-text';
import { decodeText } from '../../rules/files/yaml/decode-text';
import { parseYaml } from '../../rules/files/yaml/parse-yaml';
import { type YamlNode, isNull } from '../../rules/files/yaml/yaml-tree';
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

/**
 * Reads a test file in YAML: `rules`, `domain`, `settings`, and `tests` with a `name` and `decisions` each. The YAML is
 * read as that of rule files.
 *
 * @throws Error with its place, when it is no YAML or no test file
 */
export function readTestDocument(path: string, content: Uint8Array): TestFile {
  const report = new ProblemReport();
  const source = decodeText(path, content, report);
  const root = source && parseYaml(source, report.of(source));
  const [first] = report.finish([path]).errors;
  if (first !== undefined) throw new Error(`${path}:${first.line}: ${first.message}`);
  return new TestDocument(source!).read(root);
}

class TestDocument {
  readonly #source: SourceText;

  constructor(source: SourceText) {
    this.#source = source;
  }

  read(root: YamlNode | undefined): TestFile {
    const head = this.#members(root, 'a test file', ['rules', 'domain', 'settings', 'tests']);
    const settings = head.has('settings') ? [...this.#members(head.get('settings'), 'settings')] : [];
    const domain = this.#text(head.get('domain'), 'domain');
    return {
      path: this.#source.file,
      rules: this.#list(head.get('rules'), 'rules').map((node) => this.#text(node, 'a path of rules')),
      settings: Object.fromEntries(settings.map(([name, node]) => [name, this.#text(node, name)])),
      tests: this.#list(head.get('tests'), 'tests').map((node) => this.#test(node, domain)),
    };
  }

  #test(node: YamlNode, domain: string): RuleTest {
    const test = this.#members(node, 'a test', ['name', 'domain', 'decisions']);
    const [name, own] = [this.#text(test.get('name'), 'name'), this.#text(test.get('domain'), 'domain')];
    return {
      name: name === '' ? `line ${this.#lineOf(node)}` : name,
      domain: own === '' ? domain : own,
      lines: this.#decisions(test.get('decisions') ?? node),
    };
  }

  /** The lines of a block, with their numbers in the file. */
  #decisions(node: YamlNode): readonly SourceLine[] {
    if (node.kind !== 'scalar' || this.#source.text[node.offset] !== '|') {
      return this.#fail(node, 'decisions are a block of lines: write "decisions: |" and the lines below it');
    }
    const first = this.#lineOf(node) + 1;
    const lines = node.text.trimEnd().split('\n');
    return lines.map((line, index) => ({ number: first + index, text: line.trim() }));
  }

  /** The members of a mapping. @param names those that it may have; undefined: any */
  #members(node: YamlNode | undefined, what: string, names?: readonly string[]): ReadonlyMap<string, YamlNode> {
    if (node?.kind !== 'map')
      return this.#fail(node, `${what} is a mapping${names ? ` with ${names.join(', ')}` : ''}`);
    const members = new Map<string, YamlNode>();
    for (const { key, value } of node.entries) {
      const name = this.#text(key, 'a name');
      if (names?.includes(name) === false) {
        this.#fail(key, `"${name}" is no member of ${what}, which has ${names.join(', ')}`);
      }
      if (members.has(name)) this.#fail(key, `"${name}" is repeated: keep one of the two`);
      if (!isNull(value)) members.set(name, value);
    }
    return members;
  }

  #text(node: YamlNode | undefined, what: string): string {
    if (node === undefined) return '';
    return node.kind === 'scalar' && !isNull(node) ? node.text : this.#fail(node, `${what} is a text`);
  }

  #list(node: YamlNode | undefined, what: string): readonly YamlNode[] {
    if (node === undefined) return [];
    if (node.kind === 'list') return node.items;
    return node.kind === 'scalar' ? [node] : this.#fail(node, `${what} is a list`);
  }

  #lineOf(node: YamlNode | undefined): number {
    return this.#source.lineOf(node?.offset ?? 0);
  }

  #fail(node: YamlNode | undefined, message: string): never {
    throw new Error(`${this.#source.file}:${this.#lineOf(node)}: ${message}`);
  }
}
