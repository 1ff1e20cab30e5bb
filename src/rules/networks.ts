import type { WorkBudget } from './wildcards';

/** The longest text of an address: `[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:65535`. */
const LONGEST = 53;
/** How many groups of 16 bits an address has. */
const IPV4_GROUPS = 2;
const IPV6_GROUPS = 8;
const GROUP_BITS = 16;
/** What stands before the bits of an IPv4 address that is mapped to IPv6: five groups of 0, and this one. */
const MAPPED = 0xffff;

const [DOT, COLON, BRACKET] = ['.', ':', '['].map((character) => character.charCodeAt(0));

/** The groups of the last address that was read; those of IPv4 are the last two. */
const groups = new Uint16Array(IPV6_GROUPS);

/**
 * Reads an address as proxies send it: in any notation of `net.isIP`, without a zone, which names an interface of one
 * host; IPv6 also in brackets; with a port after an IPv4 address or after brackets.
 *
 * @returns how many {@link groups} it has, where IPv4 that is mapped to IPv6 is IPv4; 0 for any other text
 */
function readAddress(text: string): number {
  const { length } = text;
  if (length > LONGEST) return 0;
  if (text.charCodeAt(0) === BRACKET) {
    const end = text.indexOf(']');
    return end > 0 && isPort(text, end + 1) ? readIpv6(text, 1, end) : 0;
  }
  const dot = text.indexOf('.');
  const colon = text.indexOf(':');
  if (dot < 0 || (colon >= 0 && colon < dot)) return colon < 0 ? 0 : readIpv6(text, 0, length);
  const end = colon < 0 ? length : colon;
  return isPort(text, end) && readIpv4(text, 0, end) ? IPV4_GROUPS : 0;
}

/** Whether a text ends at a place, or has a port there. */
function isPort(text: string, start: number): boolean {
  return start === text.length || (text.charCodeAt(start) === COLON && /^\d{1,5}$/.test(text.slice(start + 1)));
}

function readIpv4(text: string, start: number, end: number): boolean {
  let [address, byte, dots] = [0, -1, 0];
  for (let at = start; at < end; at += 1) {
    const code = text.charCodeAt(at);
    if (code === DOT) {
      if (byte < 0) return false;
      address = address * 256 + byte;
      byte = -1;
      dots += 1;
    } else {
      const digit = code - 48;
      // A leading 0 would be octal for some.
      if (digit < 0 || digit > 9 || byte === 0) return false;
      byte = byte < 0 ? digit : byte * 10 + digit;
      if (byte > 255) return false;
    }
  }
  if (byte < 0 || dots !== 3) return false;
  address = address * 256 + byte;
  groups[6] = address >>> GROUP_BITS;
  groups[7] = address;
  return true;
}

function readIpv6(text: string, start: number, end: number): number {
  let [count, gap, group, digits, first] = [0, -1, 0, 0, start];
  for (let at = start; at < end; at += 1) {
    const code = text.charCodeAt(at);
    if (code === DOT) {
      if (count > 6 || !readIpv4(text, first, end)) return 0;
      return fillGap(count, gap, 6);
    }
    if (code !== COLON) {
      const digit = hexDigit(code);
      if (digit < 0 || digits === 4) return 0;
      group = group * 16 + digit;
      digits += 1;
      continue;
    }
    if (digits > 0) {
      if (count === 7) return 0;
      groups[count] = group;
      count += 1;
      [group, digits] = [0, 0];
    } else if (at > start) return 0;
    first = at + 1;
    if (text.charCodeAt(first) !== COLON || first >= end) {
      // A single colon: not at the start, and not at the end.
      if (at === start || first === end) return 0;
    } else {
      if (gap >= 0) return 0;
      gap = count;
      at += 1;
      first += 1;
    }
  }
  if (digits > 0) {
    groups[count] = group;
    count += 1;
  }
  return fillGap(count, gap, IPV6_GROUPS);
}

function hexDigit(code: number): number {
  if (code >= 48 && code <= 57) return code - 48;
  const letter = code | 0x20;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
}

/** Puts the zeros of `::` in. @param gap where it is; negative: nowhere @param size how many groups there are to be */
function fillGap(count: number, gap: number, size: number): number {
  if (gap < 0 ? count !== size : count >= size) return 0;
  if (gap >= 0) {
    groups.copyWithin(size - count + gap, gap, count);
    groups.fill(0, gap, size - count + gap);
  }
  return groups[5] === MAPPED && groups.subarray(0, 5).every((group) => group === 0) ? IPV4_GROUPS : IPV6_GROUPS;
}

/** The first bits of the address that was read, as one character for each group; the others are 0. */
function maskedGroups(size: number, bits: number): string {
  let masked = '';
  for (let index = 0; index < size; index += 1) {
    const kept = Math.max(0, Math.min(GROUP_BITS, bits - index * GROUP_BITS));
    masked += String.fromCharCode(groups[IPV6_GROUPS - size + index]! & (MAPPED << (GROUP_BITS - kept)));
  }
  return masked;
}

/** An address as RFC 5952 writes it, or a network. @param address a character for each group */
function textOf(address: string, bits: number): string {
  const size = address.length;
  const length = bits === GROUP_BITS * size ? '' : `/${bits}`;
  if (size === IPV4_GROUPS) {
    const [high, low] = [address.charCodeAt(0), address.charCodeAt(1)];
    return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}${length}`;
  }
  // The longest run of zeros, of several the first one; a single zero is none.
  let [start, longest, run] = [size, 1, 0];
  for (let index = 0; index < size; index += 1) {
    run = address.charCodeAt(index) === 0 ? run + 1 : 0;
    if (run > longest) [start, longest] = [index + 1 - run, run];
  }
  let text = '';
  for (let index = 0; index < size; index += 1) {
    if (index === start) {
      text += '::';
      index += longest - 1;
    } else text += `${index === 0 || index === start + longest ? '' : ':'}${address.charCodeAt(index).toString(16)}`;
  }
  return text + length;
}

/** How many bits of an address are counted together: `address_prefix`. */
export interface AddressPrefix {
  readonly ipv4: number;
  readonly ipv6: number;
}

/** What is counted for a value: its address in one notation, or its network; a value that is no address, as it is. */
export function countedAddress(value: string, { ipv4, ipv6 }: AddressPrefix): string {
  const size = readAddress(value);
  if (size === 0) return value;
  const bits = size === IPV4_GROUPS ? ipv4 : ipv6;
  return textOf(maskedGroups(size, bits), bits);
}

/**
 * A network in CIDR notation. Its addresses are texts with a character for each 16 bits, 2 for IPv4 and 8 for IPv6, so
 * that both are compared in one way. IPv4 addresses that are mapped to IPv6 are IPv4.
 */
export class Network {
  private constructor(
    /** The first address of the network. */
    readonly address: string,
    /** How many bits the prefix has. */
    readonly bits: number,
    /** Whether the text has bits after the prefix; the network is then {@link text}. */
    readonly hasHostBits: boolean,
  ) {}

  /** Undefined for a text that is no address with a prefix length. */
  static parse(text: string): Network | undefined {
    const [, address = '', length] = /^([\d.:a-f]*)\/(0|[1-9]\d{0,2})$/i.exec(text) ?? [];
    if (/\.\d+:/.test(address)) return undefined;
    let size = readAddress(address);
    let bits = Number(length);
    if (size === IPV4_GROUPS && address.includes(':')) {
      // A network with fewer bits has addresses of IPv6 that are not mapped, too.
      if (bits >= 96) bits -= 96;
      else size = IPV6_GROUPS;
    }
    if (size === 0 || bits > GROUP_BITS * size) return undefined;
    const first = maskedGroups(size, bits);
    return new Network(first, bits, first !== maskedGroups(size, GROUP_BITS * size));
  }

  get family(): keyof AddressPrefix {
    return this.address.length === IPV4_GROUPS ? 'ipv4' : 'ipv6';
  }

  /** How many bits its addresses have. */
  get most(): number {
    return GROUP_BITS * this.address.length;
  }

  /** In the usual notation. */
  get text(): string {
    const address = textOf(this.address, this.bits);
    return address.includes('/') ? address : `${address}/${this.bits}`;
  }
}

/** The networks of one prefix length. */
interface PrefixTable<T> {
  /** The size of the addresses of these networks. */
  readonly size: number;
  readonly bits: number;
  readonly byAddress: Map<string, T>;
}

/** What belongs to networks, of which the smallest one that contains an address is found. */
export class NetworkTable<T> {
  /** The longest prefix first. */
  #tables: readonly PrefixTable<T>[] = [];

  add({ address, bits }: Network, item: T): void {
    const size = address.length;
    let table = this.#tables.find((each) => each.size === size && each.bits === bits);
    if (table === undefined) {
      table = { size, bits, byAddress: new Map() };
      this.#tables = [...this.#tables, table].toSorted((one, other) => other.bits - one.bits);
    }
    if (!table.byAddress.has(address)) table.byAddress.set(address, item);
  }

  /** @throws TooMuchWork */
  find(value: string, budget: WorkBudget): T | undefined {
    const size = readAddress(value);
    if (size === 0) return undefined;
    for (const table of this.#tables) {
      if (table.size !== size) continue;
      budget.spend(1);
      const found = table.byAddress.get(maskedGroups(size, table.bits));
      if (found !== undefined) return found;
    }
    return undefined;
  }
}
