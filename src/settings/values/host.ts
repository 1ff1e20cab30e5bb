import { accepted, refused, type ValueType } from './value-type';

const NAME_OR_IPV4 = /^[\w.-]+$/;
const IPV6 = /^(?=.*:.*:)[\da-fA-F:.]+(?:%[\w.-]+)?$/;

/** Whether a text can be a host name or an IP address; an IPv6 address stands without brackets. */
export function isHost(text: string): boolean {
  return NAME_OR_IPV4.test(text) || IPV6.test(text);
}

/** A host name or an IP address. */
export const host: ValueType<string> = {
  allowed: 'host name or IP address',
  read: (text) => (isHost(text) ? accepted(text) : refused('without port, scheme or brackets')),
  write: (value) => value,
};
