import { type DescFile, type FileRegistry, createFileRegistry, fromBinary, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { DESCRIPTOR_SET } from '../../gen/descriptor-set';

/** The files of the protocol and those that they import, by the keys of reflection requests. */
export class DescriptorFiles {
  readonly #registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, Buffer.from(DESCRIPTOR_SET, 'base64')));
  /** By file, once asked for: callers may ask again and again, and serializing takes longest. */
  readonly #serialized = new Map<DescFile, Uint8Array>();

  /** Like the other two lookups, returns the serialized file and everything it imports; undefined when there is none. */
  byName(name: string): Uint8Array[] | undefined {
    return this.#withImports(this.#registry.getFile(name));
  }

  /** @param symbol the full name of a message, enum, service or extension, or of a method, field or enum value of one */
  bySymbol(symbol: string): Uint8Array[] | undefined {
    const own = this.#registry.get(symbol);
    if (own !== undefined) return this.#withImports(own.file);
    const dot = symbol.lastIndexOf('.');
    const parent = this.#registry.get(symbol.slice(0, Math.max(dot, 0)));
    return parent !== undefined && hasMember(parent, symbol.slice(dot + 1))
      ? this.#withImports(parent.file)
      : undefined;
  }

  byExtension(type: string, number: number): Uint8Array[] | undefined {
    const message = this.#registry.getMessage(type);
    return message && this.#withImports(this.#registry.getExtensionFor(message, number)?.file);
  }

  /** Undefined for an unknown type. */
  extensionNumbers(type: string): number[] | undefined {
    if (this.#registry.getMessage(type) === undefined) return undefined;
    return [...this.#registry].flatMap((it) =>
      it.kind === 'extension' && it.extendee.typeName === type ? [it.number] : [],
    );
  }

  #withImports(file: DescFile | undefined): Uint8Array[] | undefined {
    if (file === undefined) return undefined;
    const found = new Set<DescFile>();
    function add(each: DescFile): void {
      if (found.has(each)) return;
      found.add(each);
      each.dependencies.forEach(add);
    }
    add(file);
    return Array.from(found, (each) => this.#serialize(each));
  }

  #serialize(file: DescFile): Uint8Array {
    let bytes = this.#serialized.get(file);
    if (bytes === undefined) this.#serialized.set(file, (bytes = toBinary(FileDescriptorProtoSchema, file.proto)));
    return bytes;
  }
}

function hasMember(parent: NonNullable<ReturnType<FileRegistry['get']>>, name: string): boolean {
  switch (parent.kind) {
    case 'service':
      return parent.methods.some((method) => method.name === name);
    case 'message':
      return parent.fields.some((field) => field.name === name) || parent.oneofs.some((oneof) => oneof.name === name);
    case 'enum':
      return parent.values.some((value) => value.name === name);
    default:
      return false;
  }
}
