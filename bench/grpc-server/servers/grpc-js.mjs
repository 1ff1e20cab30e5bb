import grpc from '@grpc/grpc-js';
import { ANSWER, PATH } from './constant.mjs';

function pass(bytes) {
  return bytes;
}

export async function start() {
  const server = new grpc.Server();
  server.addService(
    {
      call: {
        path: PATH,
        requestStream: false,
        responseStream: false,
        requestSerialize: pass,
        requestDeserialize: pass,
        responseSerialize: pass,
        responseDeserialize: pass,
      },
    },
    { call: (_call, callback) => callback(null, ANSWER) },
  );
  return new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) =>
      error === null ? resolve(port) : reject(error),
    );
  });
}
