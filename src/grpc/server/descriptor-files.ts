import {
  type DescFile,
  type DescMessage,
  type FileRegistry,
  createFileRegistry,
  fromBinary,
  toBinary,
} from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { DESCRIPTOR_SET } from '../../gen/descriptor-set';

/** The files of the protocol and those that they import, by the keys of reflection requests. */
export class DescriptorFiles {
  readonly #registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, Buffer.from(DESCRIPTOR_SET, 'base64')));

  byName(name: string): DescFile | undefined {
    return this.#registry.getFile(name);
  }

  /** @param symbol the full name of a message, enum, service or extension, or of a method, field or enum value of one */
  bySymbol(symbol: string): DescFile | undefined {
    const own = this.#registry.get(symbol);
    if (own !== undefined) return own.file;
    const dot = symbol.lastIndexOf('.');
    const parent = this.#registry.get(symbol.slice(0, Math.max(dot, 0)));
    const isMember = parent && membersOf(parent).some(({ name }) => name === symbol.slice(dot + 1));
    return isMember ? parent.file : undefined;
  }

  byExtension(type: string, number: number): DescFile | undefined {
    const message = this.messageType(type);
    return message && this.#registry.getExtensionFor(message, number)?.file;
  }

  messageType(name: string): DescMessage | undefined {
    return this.#registry.getMessage(name);
  }

  extensionNumbers({ typeName }: DescMessage): number[] {
    return [...this.#registry].flatMap((it) =>
      it.kind === 'extension' && it.extendee.typeName === typeName ? [it.number] : [],
    );
  }

  /** The serialized file, and after it everything that it imports. */
  withImports(file: DescFile): Uint8Array[] {
    const found = new Set<DescFile>();
    function add(each: DescFile): void {
      if (found.has(each)) return;
      found.add(each);
      each.dependencies.forEach(add);
    }
    add(file);
    return Array.from(found, ({ proto }) => toBinary(FileDescriptorProtoSchema, proto));
  }
}

function membersOf(parent: NonNullable<ReturnType<FileRegistry['get']>>): readonly { readonly name: string }[] {
  if (parent.kind === 'service') return parent.methods;
  if (parent.kind === 'message') return [...parent.fields, ...parent.oneofs];
  return parent.kind === 'enum' ? parent.values : [];
}
