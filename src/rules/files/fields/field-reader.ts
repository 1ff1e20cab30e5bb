import { booleanOf, scalarType } from '../yaml/yaml-scalar';
import { describeNode, printNode } from '../yaml/yaml-text';
import type { YamlMap, YamlNode } from '../yaml/yaml-tree';
import type { Section } from './known-keys';
import { type Field, mergeFields } from './merge-fields';
import { type ReadContext, startOf } from './read-context';
import type { SourceRange } from '../problems/source-text';

/** What a field of another type than expected must be, and how to write it. */
interface ExpectedType {
  readonly expected: string;
  readonly advice: string;
}

/** Reads the fields of one mapping by name and type. A value of the wrong type is reported and read as absent. */
export class FieldReader {
  readonly context: ReadContext;
  /** The start of the mapping, to mark in a message about an absent field. */
  readonly start: SourceRange;
  readonly #fields: ReadonlyMap<string, Field>;
  #wrongTypes: Set<string> | undefined;

  /** @param layers the mapping, preceded by those that it extends (see `mergeFields`) */
  constructor(context: ReadContext, section: Section, layers: readonly [...YamlMap[], YamlMap]) {
    this.context = context;
    this.start = startOf(layers.at(-1) ?? layers[0]);
    this.#fields = mergeFields(context, section, layers);
  }

  get(name: string): Field | undefined {
    return this.#fields.get(name);
  }

  /** Whether the value of a field that was read has the wrong type: what depends on it is not known then. */
  hasWrongType(name: string): boolean {
    return this.#wrongTypes?.has(name) === true;
  }

  /** A scalar's source text, of any type (`value: 010` is `010`, `value: yes` is `yes`); empty when absent or null. */
  text(name: string): string {
    const field = this.get(name);
    if (field === undefined) return '';
    const { value } = field;
    if (value.kind === 'scalar') return scalarType(value) === 'null' ? '' : value.text;
    this.reportType(name, value, { expected: 'text', advice: 'Write a single text value.' });
    return '';
  }

  /** False when absent or null. */
  boolean(name: string): boolean {
    const field = this.get(name);
    if (field === undefined) return false;
    const { value } = field;
    if (value.kind === 'scalar') {
      const type = scalarType(value);
      if (type === 'boolean') return booleanOf(value);
      if (type === 'null') {
        this.reportEmpty(name, 'it is read as false');
        return false;
      }
    }
    this.reportType(name, value, {
      expected: 'true or false',
      advice: 'Write `true` or `false`, without quotes.',
    });
    return false;
  }

  /**
   * A list of mappings. Mappings in a value or an item of the wrong type are read too, so that their problems are reported in the
   * same run.
   * @param consequence what it means when the field is empty, for a message
   */
  list(name: string, consequence: string): readonly YamlMap[] {
    const value = this.get(name)?.value;
    if (value === undefined) return [];
    if (isNull(value)) {
      this.reportEmpty(name, consequence);
      return [];
    }
    if (value.kind !== 'list') {
      this.reportType(name, value, { expected: 'a list', advice: 'Start each item with `- `.' });
      return mapsIn(value);
    }
    for (const item of value.items) {
      if (item.kind === 'map') continue;
      this.context.report(item, {
        code: 'list-item-not-a-mapping',
        message: `config error, yaml file contains list of type other than map: ${printNode(item)}`,
        advice: `Each item of \`${name}\` must be a mapping: \`- key: value\`.`,
      });
    }
    return mapsIn(value);
  }

  /** Reports a field without a value, and what that means. */
  reportEmpty(name: string, consequence: string): void {
    const message = `\`${name}\` is empty: ${consequence}`;
    const advice = 'Give it a value, or remove it.';
    this.context.report(this.get(name)?.key ?? this.start, { code: 'empty-field', message, advice });
  }

  reportType(name: string, value: YamlNode, { expected, advice }: ExpectedType): void {
    const message = `error loading config file: \`${name}\` must be ${expected}, but is ${describeNode(value)}`;
    this.context.report(value, { code: 'wrong-type', message, advice });
    (this.#wrongTypes ??= new Set()).add(name);
  }
}

/** Whether a node has no value: omitted, `~` or `null`. */
export function isNull(node: YamlNode): boolean {
  return node.kind === 'scalar' && scalarType(node) === 'null';
}

/** The node itself if it is a mapping, or the mappings in it if it is a list. */
export function mapsIn(node: YamlNode): readonly YamlMap[] {
  if (node.kind === 'list') return node.items.flatMap(mapsIn);
  return node.kind === 'map' ? [node] : [];
}
