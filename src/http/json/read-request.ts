import {
  type Descriptor,
  type Entry,
  type LimitOverride,
  NO_HITS_ADDEND,
  type RateLimitRequest,
} from '../../limiter/request';
import { UNIT_NAMES, unitByNumber } from '../../rules/unit';
import { JsonCursor } from './json-cursor';
import { readEnum, readUint32, readUint64 } from './scalars';

/**
 * Reads a RateLimitRequest in proto3 JSON. Fields may have their JSON or their proto name, and null means absent. Strict: unknown
 * fields, duplicate fields and wrong types are rejected.
 *
 * @throws {MalformedBody}
 */
export function readRequest(text: string): RateLimitRequest {
  const cursor = new JsonCursor(text);
  const request = readMessage(cursor);
  cursor.end();
  return request;
}

// Each reader has one bit per field in `seen` to detect duplicates; both names of a field have the same bit.

function readMessage(cursor: JsonCursor): RateLimitRequest {
  let domain = '';
  let descriptors: readonly Descriptor[] = [];
  let hitsAddend = 0;
  let seen = 0;
  cursor.enterObject('a RateLimitRequest');
  for (let name = cursor.nextMember(); name !== undefined; name = cursor.nextMember()) {
    switch (name) {
      case 'domain':
        seen = once(cursor, seen, 1);
        if (!cursor.skipNull()) domain = cursor.string();
        break;
      case 'descriptors':
        seen = once(cursor, seen, 2);
        if (!cursor.skipNull()) descriptors = readList(cursor, 'a list of descriptors', readDescriptor);
        break;
      case 'hitsAddend':
      case 'hits_addend':
        seen = once(cursor, seen, 4);
        if (!cursor.skipNull()) hitsAddend = readUint32(cursor);
        break;
      default:
        unknown(cursor, 'domain, descriptors, hitsAddend');
    }
  }
  return { domain, descriptors, hitsAddend };
}

function readDescriptor(cursor: JsonCursor): Descriptor {
  let entries: readonly Entry[] = [];
  let limit: LimitOverride | undefined;
  let hitsAddend = NO_HITS_ADDEND;
  let isNegativeHits = false;
  let seen = 0;
  cursor.enterObject('a descriptor');
  for (let name = cursor.nextMember(); name !== undefined; name = cursor.nextMember()) {
    switch (name) {
      case 'entries':
        seen = once(cursor, seen, 1);
        if (!cursor.skipNull()) entries = readList(cursor, 'a list of entries', readEntry);
        break;
      case 'limit':
        seen = once(cursor, seen, 2);
        if (!cursor.skipNull()) limit = readLimit(cursor);
        break;
      case 'hitsAddend':
      case 'hits_addend':
        seen = once(cursor, seen, 4);
        if (!cursor.skipNull()) hitsAddend = readUint64(cursor);
        break;
      case 'isNegativeHits':
      case 'is_negative_hits':
        seen = once(cursor, seen, 8);
        if (!cursor.skipNull()) isNegativeHits = cursor.boolean();
        break;
      default:
        unknown(cursor, 'entries, limit, hitsAddend, isNegativeHits');
    }
  }
  return { entries, limit, hitsAddend, isNegativeHits };
}

function readEntry(cursor: JsonCursor): Entry {
  let key = '';
  let value = '';
  let seen = 0;
  cursor.enterObject('an entry');
  for (let name = cursor.nextMember(); name !== undefined; name = cursor.nextMember()) {
    switch (name) {
      case 'key':
        seen = once(cursor, seen, 1);
        if (!cursor.skipNull()) key = cursor.string();
        break;
      case 'value':
        seen = once(cursor, seen, 2);
        if (!cursor.skipNull()) value = cursor.string();
        break;
      default:
        unknown(cursor, 'key, value');
    }
  }
  return { key, value };
}

function readLimit(cursor: JsonCursor): LimitOverride {
  let requestsPerUnit = 0;
  let unit = 0;
  let seen = 0;
  cursor.enterObject('a limit');
  for (let name = cursor.nextMember(); name !== undefined; name = cursor.nextMember()) {
    switch (name) {
      case 'requestsPerUnit':
      case 'requests_per_unit':
        seen = once(cursor, seen, 1);
        if (!cursor.skipNull()) requestsPerUnit = readUint32(cursor);
        break;
      case 'unit':
        seen = once(cursor, seen, 2);
        if (!cursor.skipNull()) unit = readEnum(cursor, UNIT_NAMES);
        break;
      default:
        unknown(cursor, 'requestsPerUnit, unit');
    }
  }
  return { requestsPerUnit, unit: unitByNumber(unit) };
}

function readList<Item>(cursor: JsonCursor, what: string, readItem: (cursor: JsonCursor) => Item): Item[] {
  const items: Item[] = [];
  cursor.enterArray(what);
  while (cursor.nextElement()) items.push(readItem(cursor));
  return items;
}

function once(cursor: JsonCursor, seen: number, field: number): number {
  if ((seen & field) !== 0) cursor.fail('duplicate field');
  return seen | field;
}

function unknown(cursor: JsonCursor, allowed: string): never {
  return cursor.fail(`unknown field; allowed fields: ${allowed}`);
}
