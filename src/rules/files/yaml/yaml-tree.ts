import type { Place } from '../problems/source-text';

/**
 * A YAML document as far as rules need it: what was written and where. Aliases are gone: they are the node that they stand
 * for, which may so be reached by several ways, but never from within itself.
 */
export type YamlNode = YamlScalar | YamlMap | YamlList;

export interface YamlScalar extends Place {
  readonly kind: 'scalar';
  /** The text as written: `010` stays `010`. Of a quoted or block scalar its content. */
  readonly text: string;
  /** Neither quoted nor a block: `true` is a boolean only then. */
  readonly plain: boolean;
  /** An explicit tag in its long form, such as `tag:yaml.org,2002:str`. */
  readonly tag: string | undefined;
}

export interface YamlMap extends Place {
  readonly kind: 'map';
  readonly entries: readonly YamlEntry[];
}

export interface YamlEntry {
  readonly key: YamlNode;
  readonly value: YamlNode;
}

export interface YamlList extends Place {
  readonly kind: 'list';
  readonly items: readonly YamlNode[];
}
