// The part `rxjs/testing` of the bundle of RxJS that jest.config.cjs loads.
module.exports = require('rxjs').testing;
