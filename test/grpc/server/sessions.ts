import { Client, credentials } from '@grpc/grpc-js';
import { FrameType } from '../../../src/grpc/http2/protocol';
import { fieldsOf, ofType, ping } from '../http2/frames';
import { type RawClient, connectPlain } from '../http2/raw-client';
import { type TestServer, startServer } from './servers';

const disposables: (() => unknown)[] = [];
afterEach(async () => {
  for (const dispose of disposables.splice(0).toReversed()) await dispose();
  jest.restoreAllMocks();
  passed = 0;
});

/** Starts a server, which is closed after the test. */
export async function start(...options: Parameters<typeof startServer>): Promise<TestServer> {
  const server = await startServer(...options);
  disposables.push(() => server.close());
  return server;
}

export function clientOf({ address }: TestServer, options = {}): Client {
  const client = new Client(`127.0.0.1:${address.port}`, credentials.createInsecure(), options);
  disposables.push(() => client.close());
  return client;
}
/** A client that has sent these bytes. */
export function sending({ address }: Pick<TestServer, 'address'>, ...bytes: Buffer[]): RawClient {
  const client = connectPlain(address).send(...bytes);
  disposables.push(() => client.close());
  return client;
}
/** The gRPC status of a stream, once it has one. */
export async function statusOf(client: RawClient, stream: number): Promise<number> {
  function last(): string | undefined {
    const frame = ofType(client.frames, FrameType.HEADERS, stream).at(-1);
    return frame && fieldsOf(frame.payload)['grpc-status'];
  }
  await client.until(`the status of stream ${stream}`, () => last() !== undefined);
  return Number(last());
}
export async function settled(client: RawClient): Promise<void> {
  const opaque = String(client.frames.length).padStart(8, '-');
  client.send(ping(opaque));
  await client.until('the end of the turn', () => client.isAcknowledged(opaque));
}
const realNow = performance.now.bind(performance);
let passed = 0;
/** Lets the server believe that time has passed. */
export function passTime(ms: number): void {
  passed += ms;
  jest.spyOn(performance, 'now').mockImplementation(() => realNow() + passed);
}
