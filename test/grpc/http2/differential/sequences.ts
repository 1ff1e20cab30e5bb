import { FLOODS, floodBytes } from './floods';
import { RandomFrames } from '../random-frames';
import { REQUIREMENTS } from '../requirements';
import { seededRandom } from '../seeded-random';
import { type Step, stepsOf } from './steps';

const RANDOM_SEQUENCES = 5_000;

/** The input of one connection, which is sent to both servers. */
export interface Sequence {
  readonly name: string;
  readonly bytes: Buffer;
  readonly steps: readonly Step[];
  /** Only what becomes of the connection is compared. */
  readonly isFlood: boolean;
}

function inSteps(name: string, bytes: Buffer): Sequence {
  return { name, bytes, steps: stepsOf(bytes), isFlood: false };
}

function flood([name, frames]: readonly [string, Buffer]): Sequence {
  const bytes = floodBytes(frames);
  return { name, bytes, steps: [{ bytes, frame: 'flood', stream: 0, isComplete: true }], isFlood: true };
}

/** Every case of requirements.ts, floods, and random sequences, a third of them damaged. */
export function sequences(): readonly Sequence[] {
  const frames = new RandomFrames(seededRandom('differential'));
  return [
    ...REQUIREMENTS.map(({ reference, title, before, bytes }) =>
      inSteps(`${reference}: ${title}`, Buffer.concat([before, bytes])),
    ),
    ...Object.entries(FLOODS).map(flood),
    ...Array.from({ length: RANDOM_SEQUENCES }, (_, at) => inSteps(`random ${at}`, frames.sequence())),
  ];
}
