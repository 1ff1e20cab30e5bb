import { type TrieArrays, TrieBuilder } from './trie';

/** Labels that are no UTF-16 code units: the start and the end of a value. They bind the first and the last part of a pattern. */
export const TEXT_START = 0x10000;
export const TEXT_END = 0x10001;

/** The rank where there is no pattern: greater than all ranks. */
export const NO_RANK = 0x7fffffff;

/**
 * The wildcards of one key, compiled for `WildcardIndex`. Plain data: typed arrays that a thread can transfer.
 *
 * A pattern is a sequence of parts, the texts between its `*`; the first part begins with {@link TEXT_START} and the last one ends with
 * {@link TEXT_END}, unless they are empty. Its rank is its position in the order of the file. The nodes of `parts` are the prefixes of
 * parts, with the failure links of Aho and Corasick; a node represents the part that ends there.
 */
export interface CompiledWildcards {
  readonly parts: TrieArrays;
  /** By node of `parts`, the node of the longest proper suffix of its text. */
  readonly failures: Int32Array;
  /** By node of `parts`, the lowest rank of the patterns that consist of one part, which its text or a suffix of it is. */
  readonly singles: Int32Array;
  /** The nodes up to this one, except the root, begin with {@link TEXT_START}. */
  readonly lastAtStart: number;
  /** Whether a part is bound neither to the start nor to the end. */
  readonly hasFloatingParts: boolean;
  /** The length of the longest part that is bound to the end, but not to the start. */
  readonly longestAtEnd: number;
  /** The lowest rank of the patterns that do not only consist of a part at the start. */
  readonly lowestBeyondStart: number;
  /** The rank of the pattern that every value matches, after which no pattern counts; {@link NO_RANK} if there is none. */
  readonly matchesAll: number;
  /** The patterns of several parts; undefined if there are none. */
  readonly sequences: CompiledSequences | undefined;
}

/** The patterns of several parts. The nodes of `tree` are the beginnings of their sequences of parts, its labels are nodes of `parts`. */
export interface CompiledSequences {
  readonly tree: TrieArrays;
  /** By node of `tree`, the rank of the pattern with exactly these parts, or {@link NO_RANK}. */
  readonly ranks: Int32Array;
  /** By node of `tree`, the lowest rank of the nodes below it. */
  readonly lowestBelow: Int32Array;
  /** By node of `tree`, the next node with the same label, or 0. */
  readonly nextOfPart: Int32Array;
  /** By node of `parts`, the longest part of a sequence that its text ends with; 0 if there is none. Parts are numbered from 1. */
  readonly partOf: Int32Array;
  /** By part, the next shorter part that it ends with; 0 if there is none. */
  readonly shorter: Int32Array;
  /** By part, the lowest rank of the patterns that have it or a shorter part that it ends with. */
  readonly lowestOfPart: Int32Array;
  /** By part, its node of `parts`: its label in `tree`. */
  readonly labelOfPart: Int32Array;
  /** By part, its length, the start and the end of the value included. */
  readonly lengths: Int32Array;
  /** By part, its first node of `tree`, and how many it has. */
  readonly firstOfPart: Int32Array;
  readonly counts: Int32Array;
}

/** Compiles patterns, each with at least one `*`, in the order of their ranks. */
export function compileWildcards(patterns: readonly string[]): CompiledWildcards {
  const compiler = new Compiler();
  const split = patterns.map((pattern) => pattern.split('*'));
  for (const parts of split) compiler.addFirst(parts[0] as string);
  const lastAtStart = compiler.size - 1;
  split.forEach((parts, rank) => compiler.addPattern(parts, rank));
  return compiler.finish(lastAtStart);
}

/** The buffers of compiled wildcards, to be transferred instead of copied. */
export function buffersOf({ parts, failures, singles, sequences }: CompiledWildcards): ArrayBuffer[] {
  const { tree, ...arrays } = sequences ?? { tree: undefined };
  return [parts, { failures, singles }, tree ?? {}, arrays].flatMap((group) =>
    Object.values(group as Record<string, Int32Array<ArrayBuffer>>).map(({ buffer }) => buffer),
  );
}

class Compiler {
  readonly #parts = new TrieBuilder();
  readonly #sequences = new TrieBuilder();
  /** By node of the parts: the lowest rank of the patterns that are this part. */
  readonly #singles = new Map<number, number>();
  /** By node of the sequences. */
  readonly #ranks = new Map<number, number>();
  #hasFloatingParts = false;
  #longestAtEnd = 0;
  #lowestBeyondStart = NO_RANK;
  #matchesAll = NO_RANK;

  get size(): number {
    return this.#parts.size;
  }

  /** Adds the first part of a pattern; all of them are added before other parts, so that their nodes have the lowest numbers. */
  addFirst(text: string): number {
    return text === '' ? 0 : this.#addText(text, this.#parts.add(0, TEXT_START));
  }

  /** @param parts the pattern, split at each `*` */
  addPattern(parts: readonly string[], rank: number): void {
    const nodes = this.#nodesOf(parts);
    const [only] = nodes;
    if (only === undefined) this.#matchesAll = Math.min(this.#matchesAll, rank);
    else if (nodes.length === 1) keepLowest(this.#singles, only, rank);
    else keepLowest(this.#ranks, this.#addSequence(nodes), rank);
    const isStartOnly = nodes.length === 1 && parts[0] !== '';
    if (only !== undefined && !isStartOnly) this.#lowestBeyondStart = Math.min(this.#lowestBeyondStart, rank);
  }

  finish(lastAtStart: number): CompiledWildcards {
    const failures = this.#failures();
    const singles = new Int32Array(this.#parts.size).fill(NO_RANK);
    for (const [node, rank] of this.#singles) singles[node] = rank;
    for (const node of failures.order) {
      const inherited = singles[failures.links[node] as number] as number;
      if (inherited < (singles[node] as number)) singles[node] = inherited;
    }
    return {
      parts: this.#parts.finish(),
      failures: failures.links,
      singles,
      lastAtStart,
      hasFloatingParts: this.#hasFloatingParts,
      longestAtEnd: this.#longestAtEnd,
      lowestBeyondStart: this.#lowestBeyondStart,
      matchesAll: this.#matchesAll,
      sequences: this.#ranks.size === 0 ? undefined : this.#finishSequences(failures),
    };
  }

  /** The nodes of the parts that are not empty. */
  #nodesOf(parts: readonly string[]): number[] {
    const last = parts.length - 1;
    const nodes = [this.addFirst(parts[0] as string)];
    for (let index = 1; index < last; index += 1) {
      const text = parts[index] as string;
      if (text !== '') this.#hasFloatingParts = true;
      nodes.push(this.#addText(text, 0));
    }
    const end = parts[last] as string;
    if (end !== '') {
      nodes.push(this.#parts.add(this.#addText(end, 0), TEXT_END));
      this.#longestAtEnd = Math.max(this.#longestAtEnd, end.length);
    }
    return nodes.filter((node) => node !== 0);
  }

  #addText(text: string, from: number): number {
    let node = from;
    for (let index = 0; index < text.length; index += 1) node = this.#parts.add(node, text.charCodeAt(index));
    return node;
  }

  #addSequence(parts: readonly number[]): number {
    let node = 0;
    for (const part of parts) node = this.#sequences.add(node, part);
    return node;
  }

  /** The failure links, and all nodes except the root in the order of their depth, in which links lead to earlier nodes. */
  #failures(): Failures {
    const parts = this.#parts;
    const depths = this.#depths();
    const order = inOrder(depths);
    const links = new Int32Array(parts.size);
    for (const node of order) {
      const parent = parts.parentOf(node);
      if (parent === 0) continue;
      const label = parts.labelOf(node);
      let suffix = links[parent] as number;
      let link = parts.child(suffix, label);
      while (link === 0 && suffix !== 0) {
        suffix = links[suffix] as number;
        link = parts.child(suffix, label);
      }
      links[node] = link;
    }
    return { links, order, depths };
  }

  /** By node, the length of its text. */
  #depths(): Int32Array {
    const depths = new Int32Array(this.#parts.size);
    // A node has a higher number than its parent.
    for (let node = 1; node < depths.length; node += 1) {
      depths[node] = (depths[this.#parts.parentOf(node)] as number) + 1;
    }
    return depths;
  }

  #finishSequences({ links, order, depths }: Failures): CompiledSequences {
    const { size } = this.#sequences;
    const { ranks, lowestBelow } = this.#sequenceRanks();
    const partOf = new Int32Array(links.length);
    const nextOfPart = new Int32Array(size);
    const [nodes, firstOfPart, counts, lowestOfPart] = [[0], [0], [0], [NO_RANK]];
    for (let node = 1; node < size; node += 1) {
      const label = this.#sequences.labelOf(node);
      let part = partOf[label] as number;
      if (part === 0) {
        partOf[label] = part = nodes.push(label) - 1;
        firstOfPart[part] = 0;
        counts[part] = 0;
        lowestOfPart[part] = NO_RANK;
      }
      nextOfPart[node] = firstOfPart[part] as number;
      firstOfPart[part] = node;
      counts[part] = (counts[part] as number) + 1;
      lowestOfPart[part] = Math.min(lowestOfPart[part] as number, ranks[node] as number, lowestBelow[node] as number);
    }
    const shorter = new Int32Array(nodes.length);
    // In this order, the shorter parts of a node are complete before the node.
    for (const node of order) {
      const inherited = partOf[links[node] as number] as number;
      const part = partOf[node] as number;
      if (part === 0) partOf[node] = inherited;
      else {
        shorter[part] = inherited;
        lowestOfPart[part] = Math.min(lowestOfPart[part] as number, lowestOfPart[inherited] as number);
      }
    }
    return {
      tree: this.#sequences.finish(),
      ranks,
      lowestBelow,
      nextOfPart,
      partOf,
      shorter,
      lowestOfPart: Int32Array.from(lowestOfPart),
      labelOfPart: Int32Array.from(nodes),
      lengths: Int32Array.from(nodes, (node) => depths[node] as number),
      firstOfPart: Int32Array.from(firstOfPart),
      counts: Int32Array.from(counts),
    };
  }

  #sequenceRanks(): Pick<CompiledSequences, 'ranks' | 'lowestBelow'> {
    const { size } = this.#sequences;
    const ranks = new Int32Array(size).fill(NO_RANK);
    const lowestBelow = new Int32Array(size).fill(NO_RANK);
    for (const [node, rank] of this.#ranks) ranks[node] = rank;
    for (let node = size - 1; node > 0; node -= 1) {
      const parent = this.#sequences.parentOf(node);
      const lowest = Math.min(ranks[node] as number, lowestBelow[node] as number);
      if (lowest < (lowestBelow[parent] as number)) lowestBelow[parent] = lowest;
    }
    return { ranks, lowestBelow };
  }
}

interface Failures {
  readonly links: Int32Array;
  readonly order: Int32Array;
  readonly depths: Int32Array;
}

/** All nodes except the root, by depth. */
function inOrder(depths: Int32Array): Int32Array {
  const deepest = depths.reduce((most, depth) => Math.max(most, depth), 0);
  const starts = new Int32Array(deepest + 2);
  for (const depth of depths) (starts[depth + 1] as number) += 1;
  for (let depth = 0; depth <= deepest; depth += 1) (starts[depth + 1] as number) += starts[depth] as number;
  const order = new Int32Array(depths.length);
  depths.forEach((depth, node) => {
    order[starts[depth] as number] = node;
    (starts[depth] as number) += 1;
  });
  return order.subarray(1);
}

function keepLowest(ranks: Map<number, number>, node: number, rank: number): void {
  if (rank < (ranks.get(node) ?? NO_RANK)) ranks.set(node, rank);
}
