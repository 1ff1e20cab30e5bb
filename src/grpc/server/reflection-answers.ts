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
import { type ServerReflectionRequest, ServerReflectionResponse } from '../../gen/grpc/reflection/v1/reflection';
import { GrpcStatus } from '../method';

type MessageResponse = ServerReflectionResponse['messageResponse'];

const INVALID = encoded(failure(GrpcStatus.INVALID_ARGUMENT, 'request without a message_request'));
const NOT_FOUND = encoded(failure(GrpcStatus.NOT_FOUND, 'not found'));

/**
 * The encoded answers about the files of the protocol and those that they import, without what they repeat of the
 * request. They are kept: there is one for each file and type, 20 KiB in all.
 */
export class ReflectionAnswers {
  readonly #registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, Buffer.from(DESCRIPTOR_SET, 'base64')));
  readonly #services: Uint8Array;
  /** By what they describe. */
  readonly #kept = new Map<DescFile | DescMessage, Uint8Array>();

  /** @param services their full names */
  constructor(services: readonly string[]) {
    const value = { service: services.map((name) => ({ name })) };
    this.#services = encoded({ $case: 'listServicesResponse', value });
  }

  to({ messageRequest }: ServerReflectionRequest): Uint8Array {
    switch (messageRequest?.$case) {
      case 'listServices':
        return this.#services;
      case 'fileByFilename':
        return this.#ofFile(this.#registry.getFile(messageRequest.value));
      case 'fileContainingSymbol':
        return this.#ofFile(this.#fileOfSymbol(messageRequest.value));
      case 'fileContainingExtension': {
        const { containingType, extensionNumber } = messageRequest.value;
        const type = this.#registry.getMessage(containingType);
        return this.#ofFile(type && this.#registry.getExtensionFor(type, extensionNumber)?.file);
      }
      case 'allExtensionNumbersOfType':
        return this.#ofType(this.#registry.getMessage(messageRequest.value));
      default:
        return INVALID;
    }
  }

  /**
   * @param symbol the full name of a message, enum, service or extension, or of a method, field or enum value of one
   */
  #fileOfSymbol(symbol: string): DescFile | undefined {
    const own = this.#registry.get(symbol);
    if (own !== undefined) return own.file;
    const dot = symbol.lastIndexOf('.');
    const parent = this.#registry.get(symbol.slice(0, Math.max(dot, 0)));
    const isMember = parent && membersOf(parent).some(({ name }) => name === symbol.slice(dot + 1));
    return isMember ? parent.file : undefined;
  }

  #ofFile(file: DescFile | undefined): Uint8Array {
    return this.#keep(file, (known) => {
      const fileDescriptorProto = withImports(known).map(({ proto }) =>
        Buffer.from(toBinary(FileDescriptorProtoSchema, proto)),
      );
      return { $case: 'fileDescriptorResponse', value: { fileDescriptorProto } };
    });
  }

  #ofType(type: DescMessage | undefined): Uint8Array {
    return this.#keep(type, ({ typeName }) => {
      const extensionNumber = [...this.#registry].flatMap((it) =>
        it.kind === 'extension' && it.extendee.typeName === typeName ? [it.number] : [],
      );
      return { $case: 'allExtensionNumbersResponse', value: { baseTypeName: typeName, extensionNumber } };
    });
  }

  #keep<T extends DescFile | DescMessage>(about: T | undefined, answer: (about: T) => MessageResponse): Uint8Array {
    if (about === undefined) return NOT_FOUND;
    let kept = this.#kept.get(about);
    if (kept === undefined) this.#kept.set(about, (kept = encoded(answer(about))));
    return kept;
  }
}

function membersOf(parent: NonNullable<ReturnType<FileRegistry['get']>>): readonly { readonly name: string }[] {
  if (parent.kind === 'service') return parent.methods;
  if (parent.kind === 'message') return [...parent.fields, ...parent.oneofs];
  return parent.kind === 'enum' ? parent.values : [];
}

/** The file, and after it everything that it imports. */
function withImports(file: DescFile): readonly DescFile[] {
  const found = new Set([file]);
  // A set is iterated with what is added meanwhile.
  for (const each of found) for (const imported of each.dependencies) found.add(imported);
  return [...found];
}

function failure(errorCode: number, errorMessage: string): MessageResponse {
  return { $case: 'errorResponse', value: { errorCode, errorMessage } };
}

function encoded(messageResponse: MessageResponse): Uint8Array {
  return ServerReflectionResponse.encode({ validHost: '', originalRequest: undefined, messageResponse }).finish();
}
