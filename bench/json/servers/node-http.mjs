// Node's HTTP server with a constant response, without reading the body as JSON: what no server on it can be cheaper than.
import { createServer } from 'node:http';
import { ANSWER } from './answer.mjs';

export async function start() {
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': ANSWER.length });
      response.end(ANSWER);
    });
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve({ port: server.address().port }));
  });
}
