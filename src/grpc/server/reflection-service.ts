import { ServerReflectionRequest, ServerReflectionResponse } from '../../gen/grpc/reflection/v1/reflection';
import { GrpcStatus, type StreamingMethod, type StreamingMethods } from '../method';
import type * as Reflection from './reflection-answers';

/** The two versions differ only in their name. */
const SERVICES = ['grpc.reflection.v1.ServerReflection', 'grpc.reflection.v1alpha.ServerReflection'];

/** The answer repeats the request twice, and may not exceed what the server keeps for a peer that does not read. */
const MAX_REQUEST_BYTES = 64 * 1_024;

const TOO_LARGE = `a ServerReflectionRequest may have at most ${MAX_REQUEST_BYTES} bytes`;

/**
 * Server reflection, v1 and v1alpha: the services of this server and their descriptors, for tools without .proto files.
 *
 * @param services the full names of the other services
 */
export function reflectionService(services: readonly string[]): StreamingMethods {
  const names = [...services, ...SERVICES].toSorted();
  let answers: Reflection.ReflectionAnswers | undefined;

  const begin: StreamingMethod['begin'] = (call) => ({
    message(bytes) {
      if (bytes.length > MAX_REQUEST_BYTES) return call.fail(GrpcStatus.RESOURCE_EXHAUSTED, TOO_LARGE);
      let request: ServerReflectionRequest;
      try {
        request = ServerReflectionRequest.decode(bytes);
      } catch {
        return call.fail(GrpcStatus.INTERNAL, 'invalid ServerReflectionRequest');
      }
      answers ??= answersAbout(names);
      const echo = { validHost: request.host, originalRequest: request, messageResponse: undefined };
      // The fields of a message may be encoded one after the other.
      call.send(Buffer.concat([ServerReflectionResponse.encode(echo).finish(), answers.to(request)]));
    },
    ended: () => call.end(),
  });
  return new Map(SERVICES.map((service) => [`/${service}/ServerReflectionInfo`, { takesOneMessage: false, begin }]));
}

/** Loaded on first use: most servers never receive a reflection request. */
function answersAbout(services: readonly string[]): Reflection.ReflectionAnswers {
  const { ReflectionAnswers } = require('./reflection-answers') as typeof Reflection;
  return new ReflectionAnswers(services);
}
