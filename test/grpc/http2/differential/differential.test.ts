import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Difference, EXPLANATIONS, explanationOf, tableRows } from './differences';
import { keyOf, readRecording } from './recording';
import { type Sequence, sequences } from './sequences';
import type { Step } from './steps';
import { weirReactions } from './weir';

const ROOT = join(__dirname, '../../../..');
const AGAIN = 'record the reactions of x/net again: see bench/conformance/README.md';
const recording = readRecording();
const all = sequences();

function isAfterReset(reactions: readonly string[], { stream }: Step): boolean {
  const reset = reactions.flatMap((reaction) =>
    Array.from(reaction.matchAll(/(\d+):\S*reset/g), ([, id]) => Number(id)),
  );
  return reset.some((id) => id >= stream);
}

function withoutStreams(reaction: string | undefined): string {
  return (reaction ?? 'nothing more').replaceAll(/\b\d+:/g, 'n:');
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

    expect(recorded.filter((key) => !keys.has(key))).toEqual([]);
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

  it('has the explanations in its README', () => {
    const readme = readFileSync(join(ROOT, 'src/grpc/http2/README.md'), 'utf8');
    const [, section = ''] = /## Compared with golang\.org\/x\/net\n(.*?)(?=\n## |$)/s.exec(readme) ?? [];
    const rows = section.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| sent '));

    expect(rows).toEqual(tableRows());
    expect(section).toContain(recording.version);
  });

  it('is compared with the version that go.mod names', () => {
    expect(readFileSync(join(ROOT, 'bench/conformance/x-net/go.mod'), 'utf8')).toContain(
      `golang.org/x/net ${recording.version}\n`,
    );
  });
});
