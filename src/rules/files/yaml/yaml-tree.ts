import type { SourceRange } from '../problems/source-text';

/**
 * A YAML document, reduced to what rules need: text and position. An alias is replaced by the node that it refers to, so one
 * node may have several parents, but never contains itself.
 */
export type YamlNode = YamlScalar | YamlMap | YamlList;

export interface YamlScalar extends SourceRange {
  readonly kind: 'scalar';
  /** The text as written: `010` stays `010`. For a quoted or block scalar, its content. */
  readonly text: string;
  /** Neither quoted nor a block scalar: only then is `true` a boolean. */
  readonly plain: boolean;
  /** The explicit tag in its long form, such as `tag:yaml.org,2002:str`. */
  readonly tag: string | undefined;
}

export interface YamlMap extends SourceRange {
  readonly kind: 'map';
  readonly entries: readonly YamlEntry[];
}

export interface YamlEntry {
  readonly key: YamlNode;
  readonly value: YamlNode;
}

export interface YamlList extends SourceRange {
  readonly kind: 'list';
  readonly items: readonly YamlNode[];
}
