import { SocketAddress, isIP } from 'node:net';
import type { WorkBudget } from './wildcards';

/** The longest address, `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255`. */
const LONGEST = 45;
/** The first digits of an IPv6 address that an IPv4 address is mapped to. */
const MAPPED = '00000000000000000000ffff';

/** The digits of an IPv4 address have this number. */
const IPV4_DIGITS = 8;

/**
 * A network in CIDR notation. Its addresses are written as hexadecimal digits, 8 for IPv4 and 32 for IPv6, so that both
 * are compared in one way: their first digits, and of one more digit the first bits. IPv4 addresses that are mapped to
 * IPv6 are IPv4.
 */
export class Network {
  /** What its addresses begin with. */
  readonly prefix: string;
  /** How many bits the prefix has, and how many digits its addresses. */
  readonly bits: number;
  readonly digits: number;
  /** Whether the text has bits after the prefix; the network is then {@link text}. */
  readonly hasHostBits: boolean;

  private constructor(digits: string, bits: number) {
    const prefix = prefixOf(digits, bits);
    const isMapped = digits.startsWith(MAPPED) && bits >= 4 * MAPPED.length;
    const start = isMapped ? MAPPED.length : 0;
    this.prefix = prefix.slice(start);
    this.bits = bits - 4 * start;
    this.digits = digits.length - start;
    this.hasHostBits = prefix.padEnd(digits.length, '0') !== digits;
  }

  /** Undefined for a text that is no address with a prefix length. */
  static parse(text: string): Network | undefined {
    const [, address = '', length] = /^([^/]*)\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
    const digits = digitsOf(address);
    const bits = Number(length);
    return digits === undefined || bits > 4 * digits.length ? undefined : new Network(digits, bits);
  }

  /** In the usual notation. */
  get text(): string {
    const digits = this.prefix.padEnd(this.digits, '0');
    if (digits.length === IPV4_DIGITS) {
      return `${digits.replaceAll(/../g, (byte) => `${Number.parseInt(byte, 16)}.`).slice(0, -1)}/${this.bits}`;
    }
    const address = digits.replaceAll(/....(?=.)/g, '$&:');
    return `${new SocketAddress({ address, family: 'ipv6' }).address}/${this.bits}`;
  }
}

/** The first bits of an address, as digits; the rest of the last one is 0. */
function prefixOf(digits: string, bits: number): string {
  const whole = bits >> 2;
  const rest = bits & 3;
  if (rest === 0) return digits.slice(0, whole);
  const last = Number.parseInt(digits[whole] as string, 16) & (0xf << (4 - rest));
  return digits.slice(0, whole) + last.toString(16);
}

/**
 * The digits of an address as it is written; undefined for what is none, in the strict sense of `net.isIP`, and for one
 * with a zone.
 */
export function digitsOf(address: string): string | undefined {
  if (address.length > LONGEST || address.includes('%')) return undefined;
  switch (isIP(address)) {
    case 4:
      return ipv4Digits(address);
    case 6: {
      const [first = '', last = ''] = address.toLowerCase().split('::').map(groupDigits);
      return first + last.padStart(32 - first.length, '0');
    }
    default:
      return undefined;
  }
}

function ipv4Digits(address: string): string {
  let digits = '';
  for (const byte of address.split('.')) digits += Number(byte).toString(16).padStart(2, '0');
  return digits;
}

function groupDigits(groups: string): string {
  if (groups === '') return '';
  let digits = '';
  for (const group of groups.split(':')) digits += group.includes('.') ? ipv4Digits(group) : group.padStart(4, '0');
  return digits;
}

/** The networks of one prefix length. */
interface PrefixTable<T> {
  readonly digits: number;
  readonly bits: number;
  readonly byPrefix: Map<string, T>;
}

/** What belongs to networks, of which the smallest one that contains an address is found. */
export class NetworkTable<T> {
  /** The longest prefix first. */
  #tables: readonly PrefixTable<T>[] = [];

  add({ digits, bits, prefix }: Network, item: T): void {
    let table = this.#tables.find((each) => each.digits === digits && each.bits === bits);
    if (table === undefined) {
      table = { digits, bits, byPrefix: new Map() };
      this.#tables = [...this.#tables, table].toSorted((one, other) => other.bits - one.bits);
    }
    if (!table.byPrefix.has(prefix)) table.byPrefix.set(prefix, item);
  }

  /** @throws TooMuchWork */
  find(value: string, budget: WorkBudget): T | undefined {
    let digits = digitsOf(value);
    if (digits === undefined) return undefined;
    if (digits.startsWith(MAPPED)) digits = digits.slice(MAPPED.length);
    for (const table of this.#tables) {
      if (table.digits !== digits.length) continue;
      budget.spend(1);
      const found = table.byPrefix.get(prefixOf(digits, table.bits));
      if (found !== undefined) return found;
    }
    return undefined;
  }
}
