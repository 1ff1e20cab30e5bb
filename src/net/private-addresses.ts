import { BlockList, isIPv6 } from 'node:net';

const PRIVATE = new BlockList();
for (const [network, prefix] of [
  ['127.0.0.0', 8],
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
] as const) {
  PRIVATE.addSubnet(network, prefix, 'ipv4');
}
PRIVATE.addAddress('::1', 'ipv6');
PRIVATE.addSubnet('fc00::', 7, 'ipv6');

/**
 * Whether an IP address is one of this machine or of a private network (RFC 1918, RFC 4193), which no router of the
 * internet forwards to.
 */
export function isPrivateAddress(address: string): boolean {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '');
  return PRIVATE.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4');
}
