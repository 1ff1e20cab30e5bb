import { Server, ServerCredentials, type ServerDuplexStream, type StatusObject, status as Code } from '@grpc/grpc-js';
import { DiscoveryRequest, DiscoveryResponse } from '../../../src/gen/envoy/service/discovery/v3/discovery';
import type { Any } from '../../../src/gen/google/protobuf/any';
import { RULES_TYPE_URL } from '../../../src/sources/xds/check-resources';
import { Arrivals } from '../waiting/arrivals';

interface AdsServerOptions {
  readonly credentials?: ServerCredentials;
  /** 0 by default, for a free port. */
  readonly port?: number;
  /** Answers all streams; without it the test does. */
  readonly cache?: SnapshotCache;
}

/** A management server over grpc-js (aggregated discovery), driven by the test or by a snapshot cache. */
export class AdsServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #streams = new Arrivals<AdsServerStream>('a stream');
  /** The requests of all streams. */
  readonly requests: DiscoveryRequest[] = [];
  port = 0;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start({ credentials = ServerCredentials.createInsecure(), port = 0, cache }: AdsServerOptions = {}) {
    const server = new Server();
    const self = new AdsServer(server);
    function handler(call: ServerDuplexStream<DiscoveryRequest, Buffer>) {
      const stream = new AdsServerStream(call, (request) => self.requests.push(request));
      self.#streams.add(stream);
      cache?.serve(stream);
    }
    server.addService(SERVICE, { streamAggregatedResources: handler });
    self.port = await new Promise<number>((resolve, reject) => {
      server.bindAsync(`127.0.0.1:${port}`, credentials, (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
    return self;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  get streamCount(): number {
    return this.#streams.count;
  }

  /** Waits for the next stream that a client opens. */
  nextStream(): Promise<AdsServerStream> {
    return this.#streams.next();
  }

  /** Closes all connections immediately. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.forceShutdown();
    await Promise.resolve();
  }
}

/** The server's side of a stream. */
export class AdsServerStream {
  readonly #call: ServerDuplexStream<DiscoveryRequest, Buffer>;
  readonly #requests = new Arrivals<DiscoveryRequest>('a request');
  /** Resolves when the client has cancelled the stream. */
  readonly cancelled: Promise<void>;
  lastNonce = '';
  #count = 0;

  constructor(call: ServerDuplexStream<DiscoveryRequest, Buffer>, onRequest: (request: DiscoveryRequest) => void) {
    this.#call = call;
    call.on('data', (request: DiscoveryRequest) => {
      onRequest(request);
      this.#requests.add(request);
    });
    call.on('error', () => undefined);
    this.cancelled = new Promise((resolve) => call.on('cancelled', () => resolve()));
  }

  get metadata() {
    return this.#call.metadata;
  }

  /** The `:authority` header of the client. */
  get authority(): string {
    return this.#call.getHost();
  }

  onRequest(listener: (request: DiscoveryRequest) => void): void {
    this.#call.on('data', listener);
  }

  nextRequest(): Promise<DiscoveryRequest> {
    return this.#requests.next();
  }

  /** Sends a response; the fields that are not given have valid values. */
  send(versionInfo: string, resources: readonly Any[], more: Partial<DiscoveryResponse> = {}): void {
    this.#count += 1;
    this.lastNonce = more.nonce ?? `nonce-${this.#count}`;
    const own = { versionInfo, resources: [...resources], canary: false, typeUrl: RULES_TYPE_URL };
    this.sendBytes(DiscoveryResponse.encode({ ...own, ...more, nonce: this.lastNonce }).finish());
  }

  /** Sends raw bytes, which need not be a valid response. */
  sendBytes(bytes: Uint8Array): void {
    this.#call.write(Buffer.from(bytes));
  }

  /** Whether more than a few responses wait to be sent. */
  get isFull(): boolean {
    return this.#call.writableNeedDrain;
  }

  /** Ends the stream with this status; with OK when there is none. */
  end(status?: Partial<StatusObject>): void {
    if (status === undefined) this.#call.end();
    else this.#call.emit('error', { code: Code.UNKNOWN, details: '', ...status });
  }
}

/**
 * Responds like the snapshot caches of common control planes, which compare only versions. A NACK has another version
 * than the cache, so that the rejected response is sent again immediately. A request with an old nonce is ignored.
 */
export class SnapshotCache {
  readonly #sendsAgain: boolean;
  #version = '';
  #resources: readonly Any[] = [];
  readonly #watches = new Map<AdsServerStream, string>();

  /**
   * @param sendsAgain whether a new stream that has the current version gets a response (newer caches send one, older
   * ones do not)
   */
  constructor(sendsAgain = false) {
    this.#sendsAgain = sendsAgain;
  }

  publish(version: string, resources: readonly Any[]): void {
    this.#version = version;
    this.#resources = resources;
    for (const [stream, known] of this.#watches) {
      if (known !== version) this.#respond(stream);
    }
  }

  serve(stream: AdsServerStream): void {
    stream.onRequest(({ versionInfo, responseNonce }) => {
      if (responseNonce !== '' && responseNonce !== stream.lastNonce) return;
      const isNew = responseNonce === '' && (this.#sendsAgain || versionInfo !== this.#version);
      if (this.#version !== '' && (isNew || versionInfo !== this.#version)) this.#respond(stream);
      else this.#watches.set(stream, versionInfo);
    });
  }

  #respond(stream: AdsServerStream): void {
    this.#watches.delete(stream);
    stream.send(this.#version, this.#resources);
  }
}

const SERVICE = {
  streamAggregatedResources: {
    path: '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
    requestStream: true,
    responseStream: true,
    requestSerialize: (request: DiscoveryRequest) => Buffer.from(DiscoveryRequest.encode(request).finish()),
    requestDeserialize: (bytes: Buffer) => DiscoveryRequest.decode(bytes),
    responseSerialize: (bytes: Buffer) => bytes,
    responseDeserialize: (bytes: Buffer) => bytes,
  },
} as const;
