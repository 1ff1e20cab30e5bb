import { DESCRIPTOR_SET } from '../../../gen/descriptor-set';
import { ServerReflectionRequest, ServerReflectionResponse } from '../../../gen/grpc/reflection/v1/reflection';
import { GrpcStatus, type BidirectionalHandler, type StreamingMethods } from '../../method';
import { DescriptorFiles } from './descriptor-files';

/** The two versions differ in nothing but their name. */
const SERVICES = ['grpc.reflection.v1.ServerReflection', 'grpc.reflection.v1alpha.ServerReflection'];

type Answer = ServerReflectionResponse['messageResponse'];

/**
 * Server reflection, v1 and v1alpha: what this server serves and how to talk to it, for tools without .proto files.
 *
 * @param services full names of the other services served
 */
export function reflectionService(services: readonly string[]): StreamingMethods {
  const names = [...services, ...SERVICES].toSorted();
  let files: DescriptorFiles | undefined;
  function answerTo(request: ServerReflectionRequest): Answer {
    // Read when somebody asks: most servers are never asked.
    files ??= new DescriptorFiles(Buffer.from(DESCRIPTOR_SET, 'base64'));
    return answer(request, files, names);
  }

  const handle: BidirectionalHandler = (call) => ({
    message(bytes) {
      let request: ServerReflectionRequest;
      try {
        request = ServerReflectionRequest.decode(bytes);
      } catch {
        return call.fail(GrpcStatus.INTERNAL, 'request is not a ServerReflectionRequest');
      }
      const messageResponse = answerTo(request);
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
  return new Map(SERVICES.map((service) => [`/${service}/ServerReflectionInfo`, { kind: 'bidirectional', handle }]));
}

function answer(
  { messageRequest }: ServerReflectionRequest,
  files: DescriptorFiles,
  services: readonly string[],
): Answer {
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
      return error(GrpcStatus.INVALID_ARGUMENT, 'request asks for nothing');
  }
}

function found(files: Uint8Array[] | undefined): Answer {
  return files === undefined
    ? error(GrpcStatus.NOT_FOUND, 'not found')
    : { $case: 'fileDescriptorResponse', value: { fileDescriptorProto: files.map((file) => Buffer.from(file)) } };
}

function error(errorCode: number, errorMessage: string): Answer {
  return {
    $case: 'errorResponse',
    value: { errorCode, errorMessage },
  };
}
