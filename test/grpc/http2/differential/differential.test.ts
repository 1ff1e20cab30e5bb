import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MemoryPeer } from '../memory-peer';
import { type Difference, EXPLANATIONS, explanationOf } from './differences';
import { ReactionReader, barrier } from './reactions';
import { keyOf, readRecording } from './recording';
import { type Sequence, type Step, sequences } from './sequences';

const ROOT = join(__dirname, '../../../..');
const AGAIN = 'record the reactions of x/net again: see bench/conformance/README.md';
/** More than what a small window makes the server wait for, see `pump` of its send queue. */
const TICK_MS = 100;
const recording = readRecording();
const all = sequences();

/** The reactions of weir's server to the steps, up to the end of the connection. */
function weirReactions({ steps, isFlood }: Sequence): readonly string[] {
  // The PINGs between the steps are no flood.
  const peer = new MemoryPeer(isFlood ? {} : { pingStrikes: Infinity });
  const reader = new ReactionReader();
  const reactions: string[] = [];
  for (const [at, step] of steps.entries()) {
    peer.send(step.bytes).wait(TICK_MS);
    if (step.isComplete) peer.send(barrier(at));
    for (const frame of peer.frames) reader.read(frame);
    peer.transport.sent = [];
    reactions.push(reader.take(peer.transport.isDestroyed, isFlood));
    if (reader.hasEnded || peer.transport.isDestroyed) break;
    if (step.isComplete && !reader.hasAcknowledged(at)) throw new Error('the PING was not answered');
  }
  peer.close();
  return reactions;
}

function isAfterReset(reactions: readonly string[], { stream }: Step): boolean {
  const reset = reactions.flatMap((reaction) =>
    Array.from(reaction.matchAll(/(\d+):\S*reset/g), ([, id]) => Number(id)),
  );
  return reset.some((id) => id >= stream);
}

function withoutStreams(reaction = 'nothing more'): string {
  return reaction.replaceAll(/\b\d+:/g, 'n:');
}

/** The first step after which the reactions differ; nothing after it can be compared. */
function firstDifference(sequence: Sequence, theirs: readonly string[]): Difference | undefined {
  const { steps } = sequence;
  const ours = weirReactions(sequence);
  const at = steps.findIndex((_, index) => ours[index] !== theirs[index]);
  if (at < 0) return undefined;
  const step = steps[at]!;
  return {
    step: step.isComplete ? step.frame : `${step.frame} incomplete`,
    isAfterReset: isAfterReset(ours.slice(0, at), step),
    weir: withoutStreams(ours[at]),
    xNet: withoutStreams(theirs[at]),
  };
}

describe(`the HTTP/2 server, compared with golang.org/x/net ${recording.version}`, () => {
  it(`is compared on nearly all sequences, and no other ones are recorded; if not, ${AGAIN}`, () => {
    const keys = new Set(all.map(keyOf));
    const recorded = Object.keys(recording.reactions);

    expect(recorded.filter((key) => !keys.has(key)).slice(0, 3)).toEqual([]);
    // The others are cases of requirements.ts that are new since the last recording.
    expect(recorded.length).toBeGreaterThan(0.99 * keys.size);
  });

  it('reacts differently only where an explanation is listed, and every explanation is needed', () => {
    const unexplained: string[] = [];
    const used = new Set<unknown>();
    let equal = 0;
    for (const sequence of all) {
      const recorded = recording.reactions[keyOf(sequence)];
      if (recorded === undefined) continue;
      const difference = firstDifference(sequence, recorded.split('|'));
      if (difference === undefined) {
        equal += 1;
        continue;
      }
      const explanation = explanationOf(difference);
      used.add(explanation);
      const { step, weir, xNet } = difference;
      if (explanation === undefined) unexplained.push(`${sequence.name}: ${step}: weir "${weir}", x/net "${xNet}"`);
    }

    expect(unexplained).toEqual([]);
    expect(EXPLANATIONS.filter((explanation) => !used.has(explanation))).toEqual([]);
    expect(equal).toBeGreaterThan(all.length / 2);
  });

  it('has a row for each explanation, and no other, in the table of its README', () => {
    const readme = readFileSync(join(ROOT, 'src/grpc/http2/README.md'), 'utf8');
    const [, section = ''] = /## Compared with golang\.org\/x\/net\n(.*?)(?=\n## |$)/s.exec(readme) ?? [];
    const rows = section.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| sent '));

    expect(rows.map((row, at) => row.slice(2, 2 + (EXPLANATIONS[at]?.[0].length ?? 0)))).toEqual(
      EXPLANATIONS.map(([sent]) => sent),
    );
    expect(section).toContain(recording.version);
  });

  it('is compared with the version that go.mod names', () => {
    expect(readFileSync(join(ROOT, 'bench/conformance/x-net/go.mod'), 'utf8')).toContain(
      `golang.org/x/net ${recording.version}\n`,
    );
  });
});
