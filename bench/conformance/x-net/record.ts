// Records how golang.org/x/net/http2 reacts to the sequences of test/grpc/http2/differential: see ../README.md.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { connectPlain } from '../../../test/grpc/http2/raw-client';
import {
  ReactionReader,
  type Sequence,
  barrier,
  keyOf,
  sequences,
} from '../../../test/grpc/http2/differential/sequences';

const RECORDING = join(__dirname, '../../../test/grpc/http2/differential/fixtures/x-net.json');
/** Connections at a time. */
const CONCURRENCY = 16;
/** Milliseconds that a handler may take for its response after the PING that follows a step. */
const SETTLE_MS = 8;
/** Milliseconds for the end of a connection after a step that no PING can follow. */
const SILENCE_MS = 60;
/** A handler may be slower: what is not the same in this many recordings one after the other is recorded again. */
const AGREEING = 2;
const MOST_RECORDINGS = 12;

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function startServer(): Promise<{ port: number; child: ChildProcess }> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-x-net-'));
  const program = join(folder, 'server');
  execFileSync('go', ['build', '-o', program, '.'], { cwd: __dirname, stdio: 'inherit' });
  const child = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] });
  child.once('exit', () => rmSync(folder, { recursive: true }));
  const [port] = (await once(createInterface(child.stdout), 'line')) as [string];
  return { port: Number(port), child };
}

async function reactionsOf(port: number, { steps, isFlood }: Sequence): Promise<readonly string[]> {
  const client = connectPlain({ address: '127.0.0.1', family: 'IPv4', port });
  const reader = new ReactionReader();
  const reactions: string[] = [];
  function drain(): void {
    for (const frame of client.frames.splice(0)) reader.read(frame);
  }
  for (const [at, { bytes, isComplete }] of steps.entries()) {
    client.send(bytes);
    if (isComplete) {
      client.send(barrier(at));
      await client.until(`an answer to step ${at} of ${bytes.toString('hex')}`, () => {
        drain();
        return client.isEnded || reader.hasEnded || reader.hasAcknowledged(at);
      });
    }
    await sleep(isComplete ? SETTLE_MS : SILENCE_MS);
    drain();
    reactions.push(reader.take(client.isEnded, isFlood));
    if (reader.hasEnded || client.isEnded) break;
  }
  client.close();
  return reactions;
}

async function recordUntilEqual(port: number, sequence: Sequence): Promise<string> {
  let last = '';
  let equal = 0;
  for (let count = 0; count < MOST_RECORDINGS; count += 1) {
    const next = (await reactionsOf(port, sequence)).join('|');
    equal = next === last ? equal + 1 : 1;
    last = next;
    if (count > 0 && equal === AGREEING) return next;
  }
  throw new Error(`the server reacts differently every time: ${last}`);
}

async function main(): Promise<void> {
  const { port, child } = await startServer();
  const all = sequences();
  const recorded: string[] = [];
  // The workers share the iterator.
  const todo = all.entries();
  async function work(): Promise<void> {
    for (const [at, sequence] of todo) recorded[at] = await recordUntilEqual(port, sequence);
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  child.stdin!.end();
  const [, version] = /golang\.org\/x\/net (v\S+)/.exec(readFileSync(join(__dirname, 'go.mod'), 'utf8'))!;
  const reactions = Object.fromEntries(all.map((sequence, at) => [keyOf(sequence), recorded[at]]));
  writeFileSync(RECORDING, `${JSON.stringify({ version, reactions }, null, 1)}\n`);
}

void main();
