/**
 * Length in bits of the Huffman code of each byte (RFC 7541, appendix B). The code is canonical, so the lengths define
 * it: codes of the same length are consecutive numbers in the order of their bytes. EOS has 30 bits, all ones.
 */
// prettier-ignore
export const HUFFMAN_CODE_LENGTHS: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
  28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
  5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
  6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
  21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];
const EOS_CODE_LENGTH = 30;

const EOS = 256;
/** The decoder reads 4 bits per step. No code is shorter than 5 bits, so a step yields at most one byte. */
const STEP_BITS = 4;
const STEPS = 1 << STEP_BITS;
/**
 * In the entry of a step, the bits below this hold the byte it yields plus one, or 0; the bits above hold the next
 * node.
 */
const NODE_SHIFT = 9;
const BYTE_MASK = (1 << NODE_SHIFT) - 1;
const INVALID = -1;
const PADDING_BITS = 7;

interface Tables {
  /** Indexed by node × 16 + the next 4 bits. */
  readonly steps: Int32Array;
  /** Indexed by node: 1 if a string may end there, because the bits since the last byte are at most 7 and all ones. */
  readonly mayEnd: Uint8Array;
}

function buildTables(): Tables {
  const symbols = [...HUFFMAN_CODE_LENGTHS, EOS_CODE_LENGTH]
    .map((length, symbol) => ({ length, symbol }))
    .toSorted((a, b) => a.length - b.length || a.symbol - b.symbol);
  // The code tree: children, indexed by node × 2 + bit. 0 is no child yet, a positive number a node, a negative one -1
  // - symbol.
  const children = [0, 0];
  const depths = [0];
  const allOnes = [true];
  let code = 0;
  let codeLength = symbols[0]!.length;
  for (const { length, symbol } of symbols) {
    code *= 2 ** (length - codeLength);
    codeLength = length;
    let node = 0;
    for (let bit = length - 1; bit >= 0; bit -= 1) {
      const branch = node * 2 + ((code >>> bit) & 1);
      if (bit === 0) children[branch] = -1 - symbol;
      else if (children[branch] === 0) {
        children[branch] = depths.length;
        depths.push(depths[node]! + 1);
        allOnes.push(allOnes[node]! && (branch & 1) === 1);
        children.push(0, 0);
      }
      node = children[branch]!;
    }
    code += 1;
  }

  const steps = new Int32Array(depths.length * STEPS);
  for (let start = 0; start < depths.length; start += 1) {
    for (let bits = 0; bits < STEPS; bits += 1) {
      let node = start;
      let bytePlusOne = 0;
      let valid = true;
      for (let bit = STEP_BITS - 1; bit >= 0 && valid; bit -= 1) {
        node = children[node * 2 + ((bits >>> bit) & 1)]!;
        if (node >= 0) continue;
        valid = -1 - node !== EOS;
        bytePlusOne = -node;
        node = 0;
      }
      steps[start * STEPS + bits] = valid ? (node << NODE_SHIFT) | bytePlusOne : INVALID;
    }
  }
  return { steps, mayEnd: Uint8Array.from(depths, (depth, node) => (depth <= PADDING_BITS && allOnes[node] ? 1 : 0)) };
}

const { steps, mayEnd } = buildTables();

/** The maximum number of bytes that `length` bytes of Huffman code decode to: no code is shorter than 5 bits. */
export function maxDecodedLength(length: number): number {
  return Math.floor((length * 8) / 5);
}

/**
 * Decodes the Huffman code in `source[start, end)` into `target` from its beginning; `target` holds
 * {@link maxDecodedLength} bytes. Returns the number of bytes written, or -1 for an error (RFC 7541,
 * section 5.2): an EOS symbol, padding of more than 7 bits, or padding that is not all ones.
 */
export function decodeHuffman(source: Uint8Array, start: number, end: number, target: Uint8Array): number {
  let node = 0;
  let length = 0;
  for (let at = start; at < end; at += 1) {
    const byte = source[at]!;
    let step = steps[node * STEPS + (byte >>> STEP_BITS)]!;
    if (step === INVALID) return -1;
    if ((step & BYTE_MASK) !== 0) {
      target[length] = (step & BYTE_MASK) - 1;
      length += 1;
    }
    step = steps[(step >> NODE_SHIFT) * STEPS + (byte & (STEPS - 1))]!;
    if (step === INVALID) return -1;
    if ((step & BYTE_MASK) !== 0) {
      target[length] = (step & BYTE_MASK) - 1;
      length += 1;
    }
    node = step >> NODE_SHIFT;
  }
  return mayEnd[node] === 1 ? length : -1;
}
