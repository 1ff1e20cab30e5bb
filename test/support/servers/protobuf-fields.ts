import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';

/** The fields of a protobuf message, by number. */
export class Fields {
  readonly #values = new Map<number, (Uint8Array | bigint | number)[]>();

  constructor(message: Uint8Array) {
    const reader = new BinaryReader(message);
    while (reader.pos < reader.len) {
      const [field, type] = reader.tag();
      const values = this.#values.get(field) ?? [];
      this.#values.set(field, values);
      if (type === WireType.LengthDelimited) values.push(reader.bytes());
      else if (type === WireType.Varint) values.push(Number(reader.uint64()));
      else if (type === WireType.Bit64) values.push(BigInt(reader.fixed64()));
      else if (type === WireType.Bit32) values.push(reader.fixed32());
      else reader.skip(type, field);
    }
  }

  messages(field: number): readonly Fields[] {
    return this.#bytes(field).map((bytes) => new Fields(bytes));
  }

  text(field: number, encoding: BufferEncoding = 'utf8'): string {
    return Buffer.from(this.#bytes(field)[0] ?? []).toString(encoding);
  }

  number(field: number): number {
    return Number(this.#values.get(field)?.[0] ?? 0);
  }

  /** Undefined when there is none. */
  double(field: number): number | undefined {
    const value = this.#values.get(field)?.[0];
    return typeof value === 'bigint' ? new Float64Array(BigInt64Array.of(value).buffer)[0] : undefined;
  }

  /** Of type `sint32`. */
  signed(field: number): number {
    const value = this.number(field);
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  /** Of a packed field. */
  numbers(field: number): readonly number[] {
    const numbers: number[] = [];
    for (const bytes of this.#bytes(field)) {
      const reader = new BinaryReader(bytes);
      while (reader.pos < reader.len) numbers.push(Number(reader.uint64()));
    }
    return numbers;
  }

  nanoseconds(field: number): bigint {
    const value = this.#values.get(field)?.[0];
    return typeof value === 'bigint' ? value : 0n;
  }

  attributes(field: number): Readonly<Record<string, string | number>> {
    const pairs = this.messages(field).map((pair) => {
      const value = pair.messages(2)[0] ?? new Fields(new Uint8Array());
      return [pair.text(1), value.#values.has(3) ? value.number(3) : value.text(1)] as const;
    });
    return Object.fromEntries(pairs);
  }

  #bytes(field: number): readonly Uint8Array[] {
    return (this.#values.get(field) ?? []).filter((value) => value instanceof Uint8Array);
  }
}
