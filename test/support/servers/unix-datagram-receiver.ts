import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Lines } from './statsd-receivers';

/** Passes on what comes, each datagram behind its length; first an empty one, when there is somebody to send to. */
const PROGRAM = `
use strict; use warnings; use Socket;
my $path = shift;
unlink $path;
socket(my $socket, AF_UNIX, SOCK_DGRAM, 0) or die "socket: $!";
bind($socket, pack_sockaddr_un($path)) or die "bind: $!";
$SIG{TERM} = sub { unlink $path; exit 0 };
binmode STDOUT; $| = 1;
print pack('N', 0);
while (defined recv($socket, my $datagram, 65536, 0)) { print pack('N', length $datagram), $datagram }
`;
const PREFIX = 4;

/** A daemon that reads datagrams from a Unix socket, which Node cannot: a few lines of Perl, which every Debian has. */
export class UnixDatagramReceiver extends Lines implements AsyncDisposable {
  readonly #perl: ChildProcess;
  readonly datagrams: Buffer[] = [];
  readonly #exited: Promise<unknown>;

  private constructor(perl: ChildProcess) {
    super();
    this.#perl = perl;
    this.#exited = once(perl, 'exit');
  }

  static async start(path: string): Promise<UnixDatagramReceiver> {
    const perl = spawn('perl', ['-e', PROGRAM, path], { stdio: ['ignore', 'pipe', 'inherit'] });
    const receiver = new UnixDatagramReceiver(perl);
    await new Promise<void>((resolve, reject) => {
      receiver.#exited.then(() => reject(new Error('the receiver has ended')), reject);
      let isReady = false;
      let rest = Buffer.alloc(0);
      perl.stdout.on('data', (chunk: Buffer) => {
        rest = Buffer.concat([rest, chunk]);
        while (rest.length >= PREFIX && rest.length >= PREFIX + rest.readUInt32BE(0)) {
          const end = PREFIX + rest.readUInt32BE(0);
          if (isReady) receiver.#takeDatagram(Buffer.from(rest.subarray(PREFIX, end)));
          isReady = true;
          rest = rest.subarray(end);
          resolve();
        }
      });
    });
    return receiver;
  }

  /** Stops reading: what comes is left to the system, until it has no room. */
  pause(): void {
    this.#perl.kill('SIGSTOP');
  }

  resume(): void {
    this.#perl.kill('SIGCONT');
  }

  /** Ends as by an accident: its socket stays, and nobody reads from it. */
  async crash(): Promise<void> {
    this.#perl.kill('SIGKILL');
    await this.#exited;
  }

  /** Ends as a daemon does: its socket is gone. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.resume();
    this.#perl.kill('SIGTERM');
    await this.#exited;
  }

  #takeDatagram(datagram: Buffer): void {
    this.datagrams.push(datagram);
    this.take(datagram.toString().split('\n'));
  }
}
