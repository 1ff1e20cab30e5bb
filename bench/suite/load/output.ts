import type { Socket } from 'node:net';

const SLAB_BYTES = 262_144;

/** Gathers what is written to a socket in one turn. */
export class Output {
  readonly #socket: Socket;
  #slab = Buffer.allocUnsafe(SLAB_BYTES);
  #start = 0;
  #end = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** The buffer that the last {@link reserve} refers to. */
  get bytes(): Buffer {
    return this.#slab;
  }

  /** Returns the position in {@link bytes} at which the caller has to write this many bytes. */
  reserve(length: number): number {
    if (this.#end + length > SLAB_BYTES) {
      this.flush();
      // The socket may still hold the written bytes.
      this.#slab = Buffer.allocUnsafe(SLAB_BYTES);
      this.#start = 0;
      this.#end = 0;
    }
    const at = this.#end;
    this.#end += length;
    return at;
  }

  flush(): void {
    if (this.#end === this.#start) return;
    const bytes = this.#slab.subarray(this.#start, this.#end);
    this.#start = this.#end;
    if (this.#socket.writable) this.#socket.write(bytes);
  }
}
