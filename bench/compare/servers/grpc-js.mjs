// grpc-js with a constant response.
import grpc from '@grpc/grpc-js';
import { ANSWER, PATH } from './constant.mjs';

function pass(bytes) {
  return bytes;
}

export function start() {
  return serve((_call, callback) => callback(null, ANSWER));
}

/**
 * Serves the method on a port that the system chooses.
 *
 * @param handle receives a call, whose `request` is the bytes of the message, and a callback for the bytes of the
 * response
 * @returns a promise of the port
 */
export function serve(handle) {
  const server = new grpc.Server();
  const method = { path: PATH, requestStream: false, responseStream: false };
  const codec = {
    requestSerialize: pass,
    requestDeserialize: pass,
    responseSerialize: pass,
    responseDeserialize: pass,
  };
  server.addService({ call: { ...method, ...codec } }, { call: handle });
  return new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) =>
      error === null ? resolve(port) : reject(error),
    );
  });
}
