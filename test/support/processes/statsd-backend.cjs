// A backend of the statsd daemon: every flush is one line of JSON. It is loaded before the daemon too, for Node 23 and
// later, which have taken util.log away.
require('node:util').log ??= (line) => process.stdout.write(`${line}\n`);

exports.init = (_startupTime, _config, events) => {
  events.on('flush', (_time, { counters, timers, timer_counters, gauges }) => {
    process.stdout.write(`${JSON.stringify({ counters, timers, timerCounts: timer_counters, gauges })}\n`);
  });
  return true;
};
