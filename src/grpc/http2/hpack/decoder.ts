import { LIMITS } from '../limits';
import { ConnectionError, DEFAULT_HEADER_TABLE_BYTES, ErrorCode } from '../protocol';
import type { DynamicTable } from './dynamic-table';
import { FIELD_OVERHEAD, Field, type FieldName, STATIC_FIELDS, fieldName } from './fields';
import { decodeHuffman, maxDecodedLength } from './huffman';

/** The continuation bytes of an integer: enough for 2^31 - 1. Longer encodings are attacks (RFC 7541, section 7.4). */
const MAX_CONTINUATION_BYTES = 5;
const MAX_INTEGER = 0x7fff_ffff;
/** RFC 7541, section 4.2: the smallest size since the last block, and the final size. */
const MAX_SIZE_UPDATES = 2;

const NUL = 0;
const TAB = 9;
const LF = 10;
const CR = 13;
const SPACE = 32;

function compressionError(message: string): never {
  throw new ConnectionError(ErrorCode.COMPRESSION_ERROR, 'compression_error', message);
}

/**
 * Decodes header blocks (RFC 7541). One decoder serves all connections, each with its own dynamic table; its results
 * are valid until the next call. Values over a limit are not converted to strings, unless they enter the dynamic table,
 * which is always kept correct.
 */
export class FieldSectionDecoder {
  readonly #maxListBytes: number;
  readonly #maxFields: number;
  /** The fields of the last block, in order. Only the first {@link count} belong to it. */
  readonly fields: Field[] = [];
  count = 0;
  /** The size of the header list, fields that were dropped included. */
  listBytes = 0;
  /** The header list exceeds a limit, and {@link fields} is incomplete. */
  isOversized = false;
  /** Whether the block changed the table. If not, the same bytes have the same result until the table changes. */
  changedTable = false;
  /** Whether the block refers to the dynamic table. */
  readTable = false;

  #total = 0;
  #source: Buffer = Buffer.alloc(0);
  #position = 0;
  #end = 0;
  #scratch = Buffer.allocUnsafeSlow(1024);
  /** The bytes of the last string are `#stringSource[#stringStart, #stringEnd)`. */
  #stringSource: Buffer = this.#source;
  #stringStart = 0;
  #stringEnd = 0;

  constructor(maxListBytes: number = LIMITS.maxHeaderListBytes, maxFields: number = LIMITS.maxHeaderFields) {
    this.#maxListBytes = maxListBytes;
    this.#maxFields = maxFields;
  }

  /** Throws a {@link ConnectionError} with COMPRESSION_ERROR, after which the table differs from the peer's. */
  decode(table: DynamicTable, source: Buffer, start: number, end: number): void {
    this.#source = source;
    this.#position = start;
    this.#end = end;
    this.count = 0;
    this.#total = 0;
    this.listBytes = 0;
    this.isOversized = false;
    this.changedTable = false;
    this.readTable = false;
    let sizeUpdates = 0;

    while (this.#position < end) {
      const first = source[this.#position]!;
      if (first >= 0x80) {
        const field = this.#fieldAt(table, this.#integer(0x7f));
        this.#charge(field.cost);
        this.#add(field);
      } else if (first >= 0x40) {
        this.changedTable = true;
        this.#literal(table, 0x3f, true);
      } else if (first >= 0x20) {
        const size = this.#integer(0x1f);
        if (this.#total > 0) compressionError('table size update after a field');
        sizeUpdates += 1;
        if (sizeUpdates > MAX_SIZE_UPDATES) compressionError('too many table size updates');
        if (size > DEFAULT_HEADER_TABLE_BYTES) compressionError('table size above SETTINGS_HEADER_TABLE_SIZE');
        this.changedTable = true;
        table.resize(size);
      } else {
        this.#literal(table, 0x0f, false);
      }
    }
  }

  #fieldAt(table: DynamicTable, index: number): Field {
    if (index === 0) compressionError('index 0');
    if (index <= STATIC_FIELDS.length) return STATIC_FIELDS[index - 1]!;
    this.readTable = true;
    return table.at(index - STATIC_FIELDS.length - 1) ?? compressionError('index past the end of the table');
  }

  #literal(table: DynamicTable, mask: number, isIndexed: boolean): void {
    const nameIndex = this.#integer(mask);
    let name: FieldName;
    if (nameIndex > 0) name = this.#fieldAt(table, nameIndex).name;
    else {
      this.#string();
      const length = this.#stringEnd - this.#stringStart;
      // Longer than the limit of a list and than the table: only its size matters.
      if (length > this.#maxListBytes) {
        this.#string();
        this.#charge(length + this.#stringEnd - this.#stringStart + FIELD_OVERHEAD);
        if (isIndexed) table.clear();
        return;
      }
      name = fieldName(this.#stringSource.toString('latin1', this.#stringStart, this.#stringEnd));
    }

    this.#string();
    const cost = name.text.length + this.#stringEnd - this.#stringStart + FIELD_OVERHEAD;
    const isIndexable = isIndexed && table.fits(cost);
    this.#charge(cost);
    if (this.isOversized && !isIndexable) {
      if (isIndexed) table.clear();
      return;
    }
    const isValid = this.#isValidValue();
    const field = new Field(name, this.#stringSource.toString('latin1', this.#stringStart, this.#stringEnd), isValid);
    if (isIndexable) table.insert(field);
    else if (isIndexed) table.clear();
    this.#add(field);
  }

  #add(field: Field): void {
    if (this.isOversized) return;
    this.fields[this.count] = field;
    this.count += 1;
  }

  /** Every field counts towards the limits, including fields that are dropped. */
  #charge(cost: number): void {
    this.#total += 1;
    this.listBytes += cost;
    if (this.listBytes > this.#maxListBytes || this.#total > this.#maxFields) this.isOversized = true;
  }

  /** RFC 7541, section 5.1. */
  #integer(mask: number): number {
    let value = this.#source[this.#position]! & mask;
    this.#position += 1;
    if (value < mask) return value;
    let factor = 1;
    for (let bytes = 0; bytes < MAX_CONTINUATION_BYTES; bytes += 1) {
      if (this.#position >= this.#end) compressionError('truncated integer');
      const byte = this.#source[this.#position]!;
      this.#position += 1;
      value += (byte & 0x7f) * factor;
      if (value > MAX_INTEGER) compressionError('integer too large');
      if (byte < 0x80) return value;
      factor *= 0x80;
    }
    return compressionError('integer too long');
  }

  /** RFC 7541, section 5.2. The string is then in `#stringSource[#stringStart, #stringEnd)`. */
  #string(): void {
    if (this.#position >= this.#end) compressionError('truncated literal');
    const isHuffman = this.#source[this.#position]! >= 0x80;
    const length = this.#integer(0x7f);
    const start = this.#position;
    this.#position += length;
    if (this.#position > this.#end) compressionError('string past the end of the block');
    if (!isHuffman) {
      this.#stringSource = this.#source;
      this.#stringStart = start;
      this.#stringEnd = this.#position;
      return;
    }
    const needed = maxDecodedLength(length);
    if (needed > this.#scratch.length) this.#scratch = Buffer.allocUnsafeSlow(needed);
    const decoded = decodeHuffman(this.#source, start, this.#position, this.#scratch);
    if (decoded < 0) compressionError('invalid Huffman code');
    this.#stringSource = this.#scratch;
    this.#stringStart = 0;
    this.#stringEnd = decoded;
  }

  /** RFC 9113, section 8.2.1: no NUL, CR or LF, and no white space at either end. */
  #isValidValue(): boolean {
    const source = this.#stringSource;
    const start = this.#stringStart;
    const end = this.#stringEnd;
    if (start === end) return true;
    const first = source[start]!;
    const last = source[end - 1]!;
    if (first === SPACE || first === TAB || last === SPACE || last === TAB) return false;
    for (let at = start; at < end; at += 1) {
      const byte = source[at]!;
      if (byte <= CR && (byte === NUL || byte === LF || byte === CR)) return false;
    }
    return true;
  }
}
