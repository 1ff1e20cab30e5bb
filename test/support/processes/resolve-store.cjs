// Resolves the name store.test to an IPv4 and an IPv6 address, for a process that is started with `--require` of this file. The
// IPv6 address is a mapped one, which works without IPv6 in the network.
const dns = require('node:dns');

const ADDRESSES = [
  { address: '127.0.0.1', family: 4 },
  { address: '::ffff:127.0.0.2', family: 6 },
];
const { lookup } = dns;

dns.lookup = (host, options, callback) => {
  if (host !== 'store.test') return lookup(host, options, callback);
  const { family, all } = options;
  const found = ADDRESSES.filter((each) => !family || each.family === family);
  return process.nextTick(() => (all ? callback(null, found) : callback(null, found[0].address, found[0].family)));
};
