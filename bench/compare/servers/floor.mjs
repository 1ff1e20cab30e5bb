// The least that a server in Node can do for a call of the load `10k-keys` or `json`: it reads the same bytes, and
// writes as many as weir.
import http from 'node:http';
import net from 'node:net';
import frames from '../../suite/load/frames.cjs';
import { ANSWER } from './constant.mjs';

const HEADER_BYTES = 9;
const PREFACE_BYTES = 24;
const [DATA, HEADERS] = [0, 1];
const [END_STREAM, END_HEADERS] = [1, 4];
const STATUS = {
  code: 'OK',
  currentLimit: { requestsPerUnit: 4_000_000_000, unit: 'DAY' },
  limitRemaining: 3_999_999_999,
  durationUntilReset: '43200s',
};
const JSON_ANSWER = JSON.stringify({ overallCode: 'OK', statuses: [STATUS] });

/** @param protocol of the load: `json`, or `grpc`, for which frames are only counted */
export function start({ protocol }) {
  const server =
    protocol === 'json' ? http.createServer(answerJson) : net.createServer({ noDelay: true }, answerFrames);
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(server.address().port));
  });
}

function answerJson(request, response) {
  request.on('data', () => {});
  request.on('end', () => response.setHeader('content-type', 'application/json').end(JSON_ANSWER));
}

function answerFrames(socket) {
  const response = responseOf();
  let rest = Buffer.alloc(0);
  // The load client closes its connections with calls in flight.
  socket.on('error', () => {});
  // Without the preface, which only clients send.
  socket.write(frames.opening().subarray(PREFACE_BYTES));
  let at = frames.opening().length;
  socket.on('data', (chunk) => {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const answers = [];
    while (bytes.length - at >= HEADER_BYTES) {
      const end = at + HEADER_BYTES + bytes.readUIntBE(at, 3);
      if (end > bytes.length) break;
      if (bytes[at + 3] === DATA) answers.push(response(bytes.readUInt32BE(at + 5)));
      at = end;
    }
    rest = bytes.subarray(at);
    at = 0;
    if (answers.length > 0) socket.write(answers.length === 1 ? answers[0] : Buffer.concat(answers));
  });
}

/**
 * Returns a function from a stream to the bytes of its response: frames of the lengths of those of weir, of which a
 * client reads the message.
 */
function responseOf() {
  const message = Buffer.concat([Buffer.from([0, 0, 0, 0, 28]), ANSWER, Buffer.alloc(28 - ANSWER.length)]);
  const template = Buffer.concat([
    frames.frame(HEADERS, END_HEADERS, 0, Buffer.alloc(20)),
    frames.frame(DATA, 0, 0, message),
    frames.frame(HEADERS, END_HEADERS | END_STREAM, 0, Buffer.alloc(15)),
  ]);
  const streams = [5, HEADER_BYTES + 20 + 5, 2 * HEADER_BYTES + 20 + message.length + 5];
  return (stream) => {
    const bytes = Buffer.from(template);
    for (const place of streams) bytes.writeUInt32BE(stream, place);
    return bytes;
  };
}
