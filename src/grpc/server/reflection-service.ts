import type { DescFile, DescMessage } from '@bufbuild/protobuf';
import { ServerReflectionRequest, ServerReflectionResponse } from '../../gen/grpc/reflection/v1/reflection';
import { GrpcStatus, type StreamingMethod, type StreamingMethods } from '../method';
import type * as Descriptors from './descriptor-files';

/** The two versions differ only in their name. */
const SERVICES = ['grpc.reflection.v1.ServerReflection', 'grpc.reflection.v1alpha.ServerReflection'];

/** The answer repeats the request twice, and may not exceed what the server keeps for a peer that does not read. */
const MAX_REQUEST_BYTES = 64 * 1_024;

const TOO_LARGE = `a ServerReflectionRequest may have at most ${MAX_REQUEST_BYTES} bytes`;

type MessageResponse = ServerReflectionResponse['messageResponse'];

/**
 * Server reflection, v1 and v1alpha: the services of this server and their descriptors, for tools without .proto files.
 *
 * @param services the full names of the other services
 */
export function reflectionService(services: readonly string[]): StreamingMethods {
  const names = [...services, ...SERVICES].toSorted();
  let answers: Answers | undefined;

  const begin: StreamingMethod['begin'] = (call) => ({
    message(bytes) {
      if (bytes.length > MAX_REQUEST_BYTES) return call.fail(GrpcStatus.RESOURCE_EXHAUSTED, TOO_LARGE);
      let request: ServerReflectionRequest;
      try {
        request = ServerReflectionRequest.decode(bytes);
      } catch {
        return call.fail(GrpcStatus.INTERNAL, 'invalid ServerReflectionRequest');
      }
      answers ??= new Answers(descriptorFiles(), names);
      const echo = { validHost: request.host, originalRequest: request, messageResponse: undefined };
      // The fields of a message may be encoded one after the other.
      call.send(Buffer.concat([ServerReflectionResponse.encode(echo).finish(), answers.to(request)]));
    },
    ended: () => call.end(),
  });
  return new Map(SERVICES.map((service) => [`/${service}/ServerReflectionInfo`, { takesOneMessage: false, begin }]));
}

/** Loaded on first use: most servers never receive a reflection request. */
function descriptorFiles(): Descriptors.DescriptorFiles {
  const { DescriptorFiles } = require('./descriptor-files') as typeof Descriptors;
  return new DescriptorFiles();
}

const INVALID = encoded(failure(GrpcStatus.INVALID_ARGUMENT, 'request without a message_request'));
const NOT_FOUND = encoded(failure(GrpcStatus.NOT_FOUND, 'not found'));

/** The encoded answers, without what they repeat of the request. They are kept: there is one for each file and type, 20 KiB in all. */
class Answers {
  readonly #files: Descriptors.DescriptorFiles;
  readonly #services: Uint8Array;
  /** By what they describe. */
  readonly #kept = new Map<DescFile | DescMessage, Uint8Array>();

  constructor(files: Descriptors.DescriptorFiles, services: readonly string[]) {
    this.#files = files;
    const value = { service: services.map((name) => ({ name })) };
    this.#services = encoded({ $case: 'listServicesResponse', value });
  }

  to({ messageRequest }: ServerReflectionRequest): Uint8Array {
    switch (messageRequest?.$case) {
      case 'listServices':
        return this.#services;
      case 'fileByFilename':
        return this.#ofFile(this.#files.byName(messageRequest.value));
      case 'fileContainingSymbol':
        return this.#ofFile(this.#files.bySymbol(messageRequest.value));
      case 'fileContainingExtension': {
        const { containingType, extensionNumber } = messageRequest.value;
        return this.#ofFile(this.#files.byExtension(containingType, extensionNumber));
      }
      case 'allExtensionNumbersOfType':
        return this.#ofType(this.#files.messageType(messageRequest.value));
      default:
        return INVALID;
    }
  }

  #ofFile(file: DescFile | undefined): Uint8Array {
    return this.#keep(file, (known) => {
      const fileDescriptorProto = this.#files.withImports(known).map((bytes) => Buffer.from(bytes));
      return { $case: 'fileDescriptorResponse', value: { fileDescriptorProto } };
    });
  }

  #ofType(type: DescMessage | undefined): Uint8Array {
    return this.#keep(type, (known) => {
      const value = { baseTypeName: known.typeName, extensionNumber: this.#files.extensionNumbers(known) };
      return { $case: 'allExtensionNumbersResponse', value };
    });
  }

  #keep<T extends DescFile | DescMessage>(about: T | undefined, answer: (about: T) => MessageResponse): Uint8Array {
    if (about === undefined) return NOT_FOUND;
    let kept = this.#kept.get(about);
    if (kept === undefined) this.#kept.set(about, (kept = encoded(answer(about))));
    return kept;
  }
}

function failure(errorCode: number, errorMessage: string): MessageResponse {
  return { $case: 'errorResponse', value: { errorCode, errorMessage } };
}

function encoded(messageResponse: MessageResponse): Uint8Array {
  return ServerReflectionResponse.encode({ validHost: '', originalRequest: undefined, messageResponse }).finish();
}
