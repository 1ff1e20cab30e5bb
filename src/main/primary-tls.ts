import { randomBytes } from 'node:crypto';
import type { ServerTls } from '../grpc/http2/tls/tls-options';
import type { TlsTexts } from '../workers/messages';
import type { WorkerPool } from '../workers/primary/worker-pool';
import type { App } from './app';
import { GrpcTls } from '../sources/certificates/grpc-tls';

const TICKET_KEY_BYTES = 48;

/** The certificates of the gRPC listener when workers do the handshakes: read, checked and counted here, and sent to all of them. */
export class PrimaryTls {
  readonly #tls: GrpcTls;
  readonly #pool: WorkerPool;
  #current: TlsTexts | undefined;

  constructor(app: App, pool: WorkerPool) {
    this.#tls = new GrpcTls(app);
    this.#pool = pool;
  }

  get expiresAt(): number {
    return this.#tls.expiresAt;
  }

  /**
   * Reads the certificates, before workers are started.
   *
   * @throws when they cannot be used
   */
  async open(): Promise<void> {
    this.#replace(await this.#tls.first());
    this.#tls.follow({ replaceTls: (tls) => this.#replace(tls) });
  }

  /** The order that gives a worker the current certificates. */
  get order(): { readonly kind: 'tls'; readonly tls: TlsTexts } | undefined {
    return this.#current && { kind: 'tls', tls: this.#current };
  }

  close(): void {
    this.#tls.close();
  }

  #replace(tls: ServerTls): void {
    const clientCa = tls.clientCa === undefined ? undefined : base64(tls.clientCa);
    // As in a single process: another authority may have revoked the certificate of a ticket's holder.
    const keepsTickets = this.#current !== undefined && this.#current.clientCa === clientCa;
    this.#current = {
      cert: base64(tls.cert),
      key: base64(tls.key),
      clientCa,
      ticketKeys: keepsTickets ? this.#current!.ticketKeys : randomBytes(TICKET_KEY_BYTES).toString('base64'),
    };
    for (const { process } of this.#pool.members) process.order({ kind: 'tls', tls: this.#current });
  }
}

function base64(pem: string | Buffer): string {
  return Buffer.from(pem.toString()).toString('base64');
}
