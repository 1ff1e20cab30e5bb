import { getHeapSpaceStatistics } from 'node:v8';
import { OpenStreams } from '../../../src/grpc/http2/streams/open-streams';
import type { Stream } from '../../../src/grpc/http2/streams/stream';
import { collectGarbage } from '../../support/processes/collect-garbage';
import { seededRandom } from './seeded-random';

function stream(id: number): Stream<unknown> {
  return { id, call: Array.from({ length: 32 }, () => id) } as unknown as Stream<unknown>;
}

function idsOf(open: OpenStreams<unknown>): readonly number[] {
  return open
    .list()
    .map(({ id }) => id)
    .toSorted((one, other) => one - other);
}

function oldBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space')!.space_used_size;
}

describe('the open streams of a connection', () => {
  it('are those that were added and not deleted, whatever their ids', () => {
    const random = seededRandom('open streams');
    function below(bound: number): number {
      return Math.floor(random() * bound);
    }
    for (let round = 0; round < 50; round += 1) {
      const open = new OpenStreams();
      const model = new Map<number, Stream<unknown>>();
      let id = 1;
      for (let step = 0; step < 500; step += 1) {
        if (below(100) < 45 && model.size > 0) {
          const victim = [...model.keys()][below(model.size)]!;
          open.delete(victim);
          model.delete(victim);
        } else {
          // Many of the ids have the same place in the table.
          id += below(2) === 0 ? 2 : 64;
          const added = stream(id);
          open.add(added);
          model.set(id, added);
        }
        for (let asked = Math.max(1, id - 200); asked <= id; asked += 1) {
          if (open.get(asked) !== model.get(asked)) throw new Error(`${asked} is wrong at step ${step}`);
        }
      }
      expect(open.size).toBe(model.size);
      expect(idsOf(open)).toEqual([...model.keys()]);
      open.delete(id + 2);
      expect(open.size).toBe(model.size);
      open.clear();
      expect([open.size, open.list(), open.get(id)]).toEqual([0, [], undefined]);
    }
  });

  it('are listed as they were when the list was made', () => {
    const open = new OpenStreams();
    for (const id of [1, 3, 5]) open.add(stream(id));
    const seen: number[] = [];
    for (const { id } of open.list()) {
      seen.push(id);
      open.delete(id);
      open.delete(id + 2);
      open.add(stream(id + 100));
    }
    expect(new Set(seen)).toEqual(new Set([1, 3, 5]));
    expect(idsOf(open)).toEqual([101, 103, 105]);
  });

  it.each([
    ['one after the other', (index: number) => 2 * index + 1],
    ['64 apart', (index: number) => 64 * index + 1],
    ['after a stream that stays', (index: number) => (index === 0 ? 1 : 2 * index + 2_001)],
  ])('are found, added and deleted in constant time, however many they are: ids %s', (_, idOf) => {
    const open = new OpenStreams();
    const inFlight = 1_000;
    const rounds = 20_000;
    let reads = 0;
    for (let index = 0; index < rounds; index += 1) {
      open.add({
        get id() {
          reads += 1;
          return idOf(index);
        },
      } as Stream<unknown>);
      if (index > inFlight) open.delete(idOf(index - inFlight));
    }
    expect(open.size).toBe(inFlight + 1);
    expect(reads / rounds).toBeLessThan(10);
  });

  it('leave nothing of those that were deleted for a full garbage collection', () => {
    const open = new OpenStreams();
    const inFlight = 32;
    const last = 40_000;
    let before = 0;
    for (let id = 1; id < 2 * last; id += 2) {
      open.add(stream(id));
      if (id > 2 * inFlight) open.delete(id - 2 * inFlight);
      // What is there by then has become old.
      if (id === last + 1) {
        collectGarbage();
        before = oldBytes();
      }
      if (id % 1_000 === 1) collectGarbage({ type: 'minor' });
    }
    // With a `Map` instead, these are 7 MB.
    expect(oldBytes() - before).toBeLessThan(1_000_000);
  });
});
