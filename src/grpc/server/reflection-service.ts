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
  let files: Descriptors.DescriptorFiles | undefined;
  function responseTo(request: ServerReflectionRequest): MessageResponse {
    files ??= descriptorFiles();
    return resolve(request, files, names);
  }

  const begin: StreamingMethod['begin'] = (call) => ({
    message(bytes) {
      if (bytes.length > MAX_REQUEST_BYTES) return call.fail(GrpcStatus.RESOURCE_EXHAUSTED, TOO_LARGE);
      let request: ServerReflectionRequest;
      try {
        request = ServerReflectionRequest.decode(bytes);
      } catch {
        return call.fail(GrpcStatus.INTERNAL, 'invalid ServerReflectionRequest');
      }
      const messageResponse = responseTo(request);
      call.send(
        ServerReflectionResponse.encode({
          validHost: request.host,
          originalRequest: request,
          messageResponse,
        }).finish(),
      );
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

function resolve(
  { messageRequest }: ServerReflectionRequest,
  files: Descriptors.DescriptorFiles,
  services: readonly string[],
): MessageResponse {
  switch (messageRequest?.$case) {
    case 'listServices':
      return { $case: 'listServicesResponse', value: { service: services.map((name) => ({ name })) } };
    case 'fileByFilename':
      return found(files.byName(messageRequest.value));
    case 'fileContainingSymbol':
      return found(files.bySymbol(messageRequest.value));
    case 'fileContainingExtension':
      return found(files.byExtension(messageRequest.value.containingType, messageRequest.value.extensionNumber));
    case 'allExtensionNumbersOfType': {
      const numbers = files.extensionNumbers(messageRequest.value);
      if (numbers === undefined) return found(undefined);
      const value = { baseTypeName: messageRequest.value, extensionNumber: numbers };
      return { $case: 'allExtensionNumbersResponse', value };
    }
    default:
      return error(GrpcStatus.INVALID_ARGUMENT, 'request without a message_request');
  }
}

function found(files: Uint8Array[] | undefined): MessageResponse {
  return files === undefined
    ? error(GrpcStatus.NOT_FOUND, 'not found')
    : { $case: 'fileDescriptorResponse', value: { fileDescriptorProto: files.map((file) => Buffer.from(file)) } };
}

function error(errorCode: number, errorMessage: string): MessageResponse {
  return {
    $case: 'errorResponse',
    value: { errorCode, errorMessage },
  };
}
