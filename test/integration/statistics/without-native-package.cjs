// Preloaded into the service: simulates a platform for which the native package of datagram sockets has no binary.
/* oxlint-disable no-underscore-dangle -- the name that Node gave it */
const Module = require('node:module');

const load = Module._load;
Module._load = function (request, ...rest) {
  if (request.startsWith('node-unix-socket-')) throw new Error(`Cannot find module '${request}'\nRequire stack: none`);
  return load.call(this, request, ...rest);
};
