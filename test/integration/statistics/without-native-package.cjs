// Loaded into the service before all else: makes it a machine that the package of datagram sockets has no binary for.
/* oxlint-disable no-underscore-dangle -- the name that Node gave it */
const Module = require('node:module');

const load = Module._load;
Module._load = function (request, ...rest) {
  if (request.startsWith('node-unix-socket-')) throw new Error(`Cannot find module '${request}'\nRequire stack: none`);
  return load.call(this, request, ...rest);
};
