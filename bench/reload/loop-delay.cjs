// Loaded into the service with --require: reports the longest delay of its event loop to the parent process on request.
const { monitorEventLoopDelay } = require('node:perf_hooks');

const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
process.on('message', () => {
  process.send({ longest: delay.max / 1e6 });
  delay.reset();
});
// The service ends when it would without this channel.
process.channel?.unref();
