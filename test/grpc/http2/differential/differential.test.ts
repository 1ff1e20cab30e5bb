import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MemoryPeer } from '../memory-peer';
import { ReactionReader, type Sequence, barrier, keyOf, sequences } from './sequences';

const ROOT = join(__dirname, '../../../..');
const AGAIN = 'record the reactions of x/net again: see bench/conformance/README.md';
/** More than what a small window makes the server wait for, see `pump` of its send queue. */
const TICK_MS = 100;
/**
 * How golang.org/x/net/http2 reacted, as `bench/conformance/x-net/record.ts` has written it: the reactions by
 * {@link keyOf}.
 */
const recording = JSON.parse(readFileSync(join(__dirname, 'fixtures/x-net.json'), 'utf8')) as {
  readonly version: string;
  readonly reactions: Readonly<Record<string, string>>;
};
const all = sequences();

/**
 * A class of differences. `sent` is the beginning of its row in the table of src/grpc/http2/README.md, which describes
 * and justifies it; the others are what it applies to: the type of the last frame of a step, and the reactions, with
 * `n` in place of the streams.
 */
type Explanation = readonly [sent: string, step: RegExp, weir: RegExp, xNet: RegExp];

const BLOCK = /^(HEADERS|CONTINUATION)$/;
const TOO_SHORT = /^(HEADERS|DATA|PUSH_PROMISE|unknown)$| incomplete$/;

/** In the order of the table. The first that applies explains a difference. */
const EXPLANATIONS: readonly Explanation[] = [
  ['bytes that are not the preface', /^no preface/, /^goaway 1$/, /^(closed)?$/],
  ['SETTINGS with one setting twice', /^SETTINGS$/, /^(goaway 3)?$/, /^goaway 1$/],
  ['an acknowledgement as the first SETTINGS', /^SETTINGS$/, /^goaway [13]$/, /^$/],
  ['33 settings in a frame', /^SETTINGS$/, /^goaway 11$/, /^goaway 1$/],

  ['a frame of a wrong length with another error', /./, /^goaway 1$/, /^goaway 6$/],
  ['a header block that HPACK cannot decode', /./, /^(goaway [15])?$/, /^goaway 9$/],
  ['the header of a frame that is not permitted', / incomplete$/, /^goaway [16]$/, /^$/],
  ['a payload too short for its pad length or priority', TOO_SHORT, /^goaway [16]$/, /^closed$/],
  [
    'HEADERS with too long padding',
    /^(HEADERS|CONTINUATION|.* incomplete)$/,
    /^goaway [15]$/,
    /^n:reset 1( goaway 1)?$/,
  ],

  ['PRIORITY of an idle stream that depends on itself', /^PRIORITY$/, /^goaway 1$/, /^n:reset 1$/],
  ['PRIORITY of 4 bytes', /^PRIORITY$/, /^n:reset 6$/, /^goaway 6$/],
  ['WINDOW_UPDATE of 0 on an idle stream', /^WINDOW_UPDATE$/, /^goaway 1$/, /^n:reset 1$/],
  ['WINDOW_UPDATE of 0 on a closed stream', /^WINDOW_UPDATE$/, /^$/, /^n:reset 1$/],
  ['DATA after the server has reset the stream', /^DATA after reset$/, /^$/, /^n:reset 5$/],
  ['frames after a malformed request', / after reset$/, /^(goaway [19]|n:reset 5)?$/, /^(goaway 1|n:.*)$/],
  ['HEADERS on a stream that both sides have ended', BLOCK, /^goaway 5$/, /^goaway 1$/],
  ['HEADERS on a stream that the client has reset', BLOCK, /^(n:reset 5|goaway 9)$/, /^goaway 1$/],
  ['a stream over MAX_CONCURRENT_STREAMS', BLOCK, /^n:reset 7$/, /^n:reset 1$/],

  ['a table size update after a field', BLOCK, /^goaway 9$/, /^(n:.*)?$/],
  ['a malformed request in HEADERS and CONTINUATION', /^CONTINUATION$/, /^(n:reset 1|goaway 9)$/, /^goaway 1$/],
  ['a field value with spaces around it; content-length', BLOCK, /^n:reset 1$/, /^(n:200.*)?$/],
  ['a connection-specific field, or `te`', BLOCK, /^n:reset 1$/, /^n:400,end(,reset 0)?$/],
  ['a body shorter than content-length', /^(DATA|HEADERS)$/, /^n:reset 1$/, /^n:reset 2$/],
  ['`te: trailers` twice', BLOCK, /^(n:200,end)?$/, /^n:400,end(,reset 0)?$/],
  ['control characters in a field value', BLOCK, /^n:200,end$/, /^n:reset 1$/],

  ['20,000 times PING', /^flood$/, /^goaway 11$/, /^$/],
  ['20,000 CONTINUATION frames', /^flood$/, /^goaway 11$/, /^goaway 1$/],
];

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

/** The first step after which the reactions differ, nothing after which can be compared, and its explanation. */
function firstDifference(sequence: Sequence, theirs: readonly string[]) {
  const ours = weirReactions(sequence);
  const at = sequence.steps.findIndex((_, index) => ours[index] !== theirs[index]);
  if (at < 0) return undefined;
  const { frame, isComplete, stream } = sequence.steps[at]!;
  const before = ours.slice(0, at).flatMap((reaction) => Array.from(reaction.matchAll(/(\d+):\S*reset/g)));
  const step = isComplete ? frame : `${frame} incomplete`;
  // The server has reset the stream of the frame, or a higher one.
  const steps = before.some(([, reset]) => Number(reset) >= stream) ? [step, `${step} after reset`] : [step];
  const [weir, xNet] = [ours[at], theirs[at]].map((it = 'nothing more') => it.replaceAll(/\b\d+:/g, 'n:'));
  const explanation = EXPLANATIONS.find(
    ([, forStep, forWeir, forXNet]) =>
      steps.some((name) => forStep.test(name)) && forWeir.test(weir!) && forXNet.test(xNet!),
  );
  return { explanation, description: `${sequence.name}: ${step}: weir "${weir}", x/net "${xNet}"` };
}

describe(`the HTTP/2 server, compared with golang.org/x/net ${recording.version}`, () => {
  it(`is compared on nearly all sequences, and no other ones are recorded; if not, ${AGAIN}`, () => {
    const keys = new Set(all.map(keyOf));
    const recorded = Object.keys(recording.reactions);

    expect(recorded.filter((key) => !keys.has(key)).slice(0, 3)).toEqual([]);
    // The others are cases of requirements.ts that are new since the last recording.
    expect(recorded.length).toBeGreaterThan(0.99 * keys.size);
    const required = readFileSync(join(ROOT, 'bench/conformance/x-net/go.mod'), 'utf8');
    expect(required).toContain(`golang.org/x/net ${recording.version}\n`);
  });

  it('reacts differently only where an explanation is listed, and every explanation is needed', () => {
    const differences = all.flatMap((sequence) => {
      const recorded = recording.reactions[keyOf(sequence)];
      return recorded === undefined ? [] : (firstDifference(sequence, recorded.split('|')) ?? []);
    });

    expect(differences.filter(({ explanation }) => explanation === undefined)).toEqual([]);
    const used = new Set(differences.map(({ explanation }) => explanation));
    expect(EXPLANATIONS.filter((explanation) => !used.has(explanation))).toEqual([]);
    expect(differences.length).toBeLessThan(all.length / 2);
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
});
