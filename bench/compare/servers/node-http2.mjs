import http2 from 'node:http2';
import { ANSWER } from './constant.mjs';

const BODY = Buffer.concat([Buffer.from([0, 0, 0, 0, ANSWER.length]), ANSWER]);

export async function start() {
  const server = http2.createServer();
  server.on('stream', (stream) => {
    // The load client closes its connections with calls outstanding.
    stream.on('error', () => {});
    stream.on('data', () => {});
    stream.on('end', () => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.end(BODY);
    });
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(server.address().port));
  });
}
