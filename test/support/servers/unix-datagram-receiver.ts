import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Lines } from './statsd-receivers';

/** Writes each datagram to standard output, in hexadecimal digits; first an empty one, when the socket is bound. */
const PROGRAM = `
use strict; use warnings; use Socket;
my $path = shift;
unlink $path;
socket(my $socket, AF_UNIX, SOCK_DGRAM, 0) or die "socket: $!";
bind($socket, pack_sockaddr_un($path)) or die "bind: $!";
$SIG{TERM} = sub { unlink $path; exit 0 };
$| = 1;
print "\\n";
while (defined recv($socket, my $datagram, 65536, 0)) { print unpack('H*', $datagram), "\\n" }
`;

/** A receiver on a Unix datagram socket, written in Perl, which every Debian has, since Node has no such sockets. */
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
    const output = createInterface(perl.stdout);
    let isReady = false;
    output.on('line', (line) => {
      if (isReady) receiver.#add(Buffer.from(line, 'hex'));
      isReady = true;
    });
    await Promise.race([once(output, 'line'), receiver.#exited]);
    if (!isReady) throw new Error('the receiver has exited');
    return receiver;
  }

  /** Stops reading, so that datagrams fill the queue of the system. */
  pause(): void {
    this.#perl.kill('SIGSTOP');
  }

  resume(): void {
    this.#perl.kill('SIGCONT');
  }

  /** Kills the process: its socket file remains, without a reader. */
  async crash(): Promise<void> {
    this.#perl.kill('SIGKILL');
    await this.#exited;
  }

  /** Stops like a daemon: removes its socket. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.resume();
    this.#perl.kill('SIGTERM');
    await this.#exited;
  }

  #add(datagram: Buffer): void {
    this.datagrams.push(datagram);
    this.lines.push(...datagram.toString().split('\n'));
  }
}
